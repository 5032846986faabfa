//! What is observed of a device: begun and ended by requests, told in notifications, asked for
//! anew when the device forgot it (RFC 7641; LwM2M Core 1.2 section 6.4).
//!
//! ```text
//!          observe-start            registers anew, leaves
//!  (none) ---------------> Held <--------------------------> Owed
//!    ^                      |        asked again, 2.05         |
//!    +-- observe-end, 4.xx -+-- 4.xx, 5.xx, not observed any more
//! ```

use protocol::coap::message::Message;
use protocol::coap::observe::Newest;
use protocol::coap::option;
use protocol::coap::token::Token;
use protocol::lwm2m::operation::{self, Label};
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::Scope;

use crate::action::{Action, Lwm2mRequest, Operation, Protocol, Request};
use crate::admin_log::entry::Entry;
use crate::datagram::Datagram;
use crate::device::Device;
use crate::device::formats::FormatSet;
use crate::device::queue::{Failure, Pending, Unfit};
use crate::device::record::{OBSERVATION_TOKEN_BYTES, Observation, ObservationState};
use crate::effect::Effects;
use crate::event::Cause;
use crate::ids::ActionId;
use crate::limits::OBSERVATIONS_MAX;
use crate::moment::{Moment, Timestamp};
use crate::occurrence::{Heard, News, What};

/// Block2 is the one critical option with which a notification may speak to us.
const KNOWN_IN_NOTIFICATIONS: [u16; 1] = [option::BLOCK2];

impl Device {
    /// Takes a response nobody waits for: a notification, if something is observed under its
    /// token.
    pub(super) fn take_notification(
        &mut self,
        m: &mut Moment,
        datagram: &Datagram,
        out: &mut Effects,
    ) -> Heard {
        let message = &datagram.message;
        // A device that left forgot what is observed: what was under way is told so, too.
        let observed = self.path_observed_as(message.token);
        let registered = self.record.registration.as_ref();
        let Some(path) = registered.and(observed) else {
            // A confirmable one comes again, and what it tells is observed by then. From where the
            // device is just asked, it may be another's.
            let may_be_another_s = self.is_asked_elsewhere(datagram.peer);
            if !may_be_another_s && !self.is_about_to_observe(message.token) {
                self.reject(m, datagram, out);
            }
            return Heard::Unasked;
        };
        if message
            .unknown_critical_option(&KNOWN_IN_NOTIFICATIONS)
            .is_some()
        {
            // The device stops notifying when it is told that nobody understands it.
            let why = "a notification has a critical option that is not supported";
            out.note(None, What::Notified(News::Unusable));
            self.lose_held(m, path, why, out);
            self.reject(m, datagram, out);
            return Heard::Notification;
        }
        if !self.pace.take(m.now(), 1) {
            // The device may take it that nobody listens, and forget. It costs no write to know.
            if let Some(observation) = self.observation_mut(path) {
                observation.owe();
            }
            out.note(None, What::Notified(News::Excessive));
            return Heard::Notification;
        }
        if self.is_to_be_fetched(path, message, m.now()) {
            self.note_awake(m.now());
            self.put_by(datagram);
            return Heard::Part;
        }
        self.note_uplink(m.now(), Protocol::Lwm2m);
        let news = self.take_news(m, path, message, out);
        out.note(None, What::Notified(news));
        if self.record_is_stale(m.now()) {
            self.save_record(m.now(), out);
        }
        self.acknowledge(m, datagram, out);
        Heard::Notification
    }

    /// Takes what a notification tells: the value, or that there are no more (RFC 7641 section
    /// 4.2), or both.
    fn take_news(
        &mut self,
        m: &mut Moment,
        path: Path,
        message: &Message,
        out: &mut Effects,
    ) -> News {
        if !message.code.is_success() {
            let why = format!("the device answered {}", message.code);
            self.lose_held(m, path, &why, out);
            News::Unusable
        } else if let Some(sequence) = message.observe() {
            match self.is_news(path, sequence, m.now()) {
                true => self.take_values(m, path, message, out),
                false => News::Stale,
            }
        } else {
            let news = self.take_values(m, path, message, out);
            self.lose_held(m, path, "the device ended it", out);
            news
        }
    }

    /// Takes the answer to being asked again for what it forgot.
    pub(super) fn observed_again(
        &mut self,
        m: &mut Moment,
        path: Path,
        token: Token,
        answer: &Message,
        out: &mut Effects,
    ) {
        self.take_values(m, path, answer, out);
        match answer.observe() {
            Some(sequence) => {
                let newest = Newest::new(sequence, m.now().as_ms());
                if let Some(observation) = self.observation_mut(path) {
                    observation.token = kept(token);
                    observation.state = ObservationState::Held;
                    observation.newest = Some(newest);
                }
                self.save_record(m.now(), out);
            }
            None => self.lose_observation(m, path, "the device does not observe it again", out),
        }
    }

    /// Takes the answer that begins an observation, or begins it anew.
    pub(super) fn observation_begun(
        &mut self,
        m: &mut Moment,
        (path, action): (Path, ActionId),
        token: Token,
        sequence: u32,
        out: &mut Effects,
    ) {
        let observation = Observation {
            path,
            token: kept(token),
            action,
            begun_at: m.now(),
            state: ObservationState::Held,
            newest: Some(Newest::new(sequence, m.now().as_ms())),
        };
        let others = std::mem::take(&mut self.record.observations).into_iter();
        let others = others.filter(|other| other.path != path);
        self.record.observations = others.chain([observation]).collect();
        self.save_record(m.now(), out);
    }

    /// Takes note that the device was told to end an observation.
    pub(super) fn observation_ended(&mut self, m: &mut Moment, path: Path, out: &mut Effects) {
        if self.drop_observation(path) {
            self.save_record(m.now(), out);
        }
    }

    /// Forgets what a device refuses to begin or to end: it does not observe it either.
    pub(super) fn forget_refused(&mut self, m: &mut Moment, action: &Action, out: &mut Effects) {
        match &action.request {
            Request::Lwm2m(Lwm2mRequest {
                operation: Operation::ObserveStart | Operation::ObserveEnd,
                path,
                ..
            }) => self.observation_ended(m, *path, out),
            Request::Udp(_) | Request::Coap(_) | Request::Lwm2m(_) => {}
        }
    }

    /// Ends an observation that the device ended, and tells the customer.
    pub(super) fn lose_observation(
        &mut self,
        m: &mut Moment,
        path: Path,
        why: &str,
        out: &mut Effects,
    ) {
        if self.drop_observation(path) {
            self.save_record(m.now(), out);
            out.note(None, What::ObservationLost);
            let entry = Entry::observation_lost(m, self.seen_at(self.record.peer), &path, why);
            self.log(m, entry, out);
        }
    }

    /// Ends an observation that the device says it ended, if that is not the one it forgot anyway:
    /// whether it observes that again is what it is asked.
    fn lose_held(&mut self, m: &mut Moment, path: Path, why: &str, out: &mut Effects) {
        if self.token_held(path).is_some() {
            self.lose_observation(m, path, why, out);
        }
    }

    /// The device forgot what is observed of it: it registers anew, or is gone; or it moved, and
    /// what it told meanwhile from where nobody knew it was rejected. Says whether anything is
    /// observed.
    pub(super) fn owe_observations(&mut self) -> bool {
        self.record
            .observations
            .iter_mut()
            .for_each(Observation::owe);
        if let Some(busy) = &mut self.busy {
            busy.owed.clear();
            busy.notified.clear();
            busy.fetched = None;
        }
        !self.record.observations.is_empty()
    }

    /// The device was heard: what it forgot is asked for again, unless it is just being asked.
    pub(super) fn release_observations(&mut self) {
        let in_flight = self.observation_in_flight();
        let is_owed = |observation: &&Observation| {
            observation.state == ObservationState::Owed && Some(observation.path) != in_flight
        };
        let owed = self.record.observations.iter().filter(is_owed);
        let owed: Vec<Path> = owed.map(|observation| observation.path).collect();
        if !owed.is_empty() {
            self.busy.get_or_insert_default().owed = owed;
        }
    }

    /// What is to be asked for again next.
    pub(super) fn next_owed(&mut self) -> Option<Path> {
        let busy = self.busy.as_mut()?;
        (!busy.owed.is_empty()).then(|| busy.owed.remove(0))
    }

    /// The message that asks again for what a device forgot; none if it is not owed any more,
    /// because a request ended it, or began it anew.
    ///
    /// It has a token of its own: a device that did not forget all of the old observation must not
    /// take it for that. It asks in none of the formats the device refused in this attempt.
    pub(super) fn observe_again(
        &mut self,
        m: &mut Moment,
        path: Path,
        refused: FormatSet,
    ) -> Option<Message> {
        let observation = self.observation(path)?;
        if observation.state == ObservationState::Held {
            return None;
        }
        let label = Label {
            message_id: self.take_message_id(),
            token: self.draw_token(m),
        };
        Some(operation::observe(
            label,
            self.root(),
            path,
            self.format_to_read(path, refused),
        ))
    }

    /// Whether one more path may be observed.
    pub(super) fn may_observe(&self, path: Path) -> Result<(), Unfit> {
        let is_observed = self.observation(path).is_some();
        if is_observed || self.record.observations.len() < OBSERVATIONS_MAX {
            return Ok(());
        }
        let why = format!("{OBSERVATIONS_MAX} paths of the device are observed already");
        Err(refused(why))
    }

    /// Whether there is an observation of the path to end, or will be when its turn comes.
    pub(super) fn may_forget(&self, path: Path) -> Result<(), Unfit> {
        let begins = |pending: &Pending| match &pending.action.request {
            Request::Udp(_) | Request::Coap(_) => false,
            Request::Lwm2m(request) => {
                request.operation == Operation::ObserveStart && request.path == path
            }
        };
        let will_be = self.pending().iter().any(begins);
        if will_be || self.observation(path).is_some() {
            return Ok(());
        }
        Err(refused(format!("{path} is not observed")))
    }

    /// The token a path is observed under.
    pub(super) fn token_observing(&self, path: Path) -> Option<Token> {
        self.observation(path).map(token_of)
    }

    /// The token under which the device knows that a path is observed.
    pub(super) fn token_held(&self, path: Path) -> Option<Token> {
        let is_held = |observation: &&Observation| observation.state == ObservationState::Held;
        self.observation(path).filter(is_held).map(token_of)
    }

    /// Four random bytes: enough that nobody off the path guesses one (RFC 7252 section 5.3.1), and
    /// as few as a radio should carry. Never those of an observation, whose notifications would be
    /// taken for the answer.
    pub(super) fn draw_token(&self, m: &mut Moment) -> Token {
        loop {
            let token = m.next_u32().to_be_bytes();
            if !self.record.observations.iter().any(|o| o.token == token) {
                return Token::new(&token).expect("four bytes fit a token");
            }
        }
    }

    /// Takes the values a device tells of an observed path. Bytes that cannot be read are kept for
    /// the customer to look at: the device is not asked for them again.
    fn take_values(
        &mut self,
        m: &mut Moment,
        path: Path,
        message: &Message,
        out: &mut Effects,
    ) -> News {
        match self.values_in(m, Scope::Within(path), message) {
            Ok(told) if told.is_empty() => News::Empty,
            Ok(told) => {
                let values = told.iter().map(|told| told.values.len()).sum();
                self.count_further(m.now(), values);
                self.tell_measurements(m, Cause::Observation(path), told, out);
                News::Told
            }
            Err(why) => {
                let why = format!("a notification of {path} cannot be read: {why}");
                self.keep_unreadable(m, &why, &message.payload, out);
                News::Unusable
            }
        }
    }

    /// Whether a notification is newer than those before it, which it is from now on.
    fn is_news(&mut self, path: Path, sequence: u32, now: Timestamp) -> bool {
        let is_news = self.would_be_news(path, sequence, now);
        if is_news && let Some(observation) = self.observation_mut(path) {
            observation.newest = Some(Newest::new(sequence, now.as_ms()));
        }
        is_news
    }

    fn would_be_news(&self, path: Path, sequence: u32, now: Timestamp) -> bool {
        let heard = Newest::new(sequence, now.as_ms());
        self.observation(path).is_some_and(|observation| {
            let newest = observation.newest;
            newest.is_none_or(|newest| newest.is_outdated_by(&heard))
        })
    }

    /// Whether a notification goes on in further blocks and is worth asking for them: it is not
    /// outdated, and does not just say at length that there will be no other.
    fn is_to_be_fetched(&self, path: Path, message: &Message, now: Timestamp) -> bool {
        let goes_on = message.block2().is_some_and(|block| block.has_more());
        let is_outdated = |sequence| !self.would_be_news(path, sequence, now);
        goes_on && message.code.is_success() && !message.observe().is_some_and(is_outdated)
    }

    pub(super) fn path_observed_as(&self, token: Token) -> Option<Path> {
        let mut observations = self.record.observations.iter();
        let found = observations.find(|observation| token_of(observation) == token);
        found.map(|observation| observation.path)
    }

    fn observation(&self, path: Path) -> Option<&Observation> {
        let mut observations = self.record.observations.iter();
        observations.find(|observation| observation.path == path)
    }

    fn observation_mut(&mut self, path: Path) -> Option<&mut Observation> {
        let mut observations = self.record.observations.iter_mut();
        observations.find(|observation| observation.path == path)
    }

    /// Drops an observation and says whether there was one.
    fn drop_observation(&mut self, path: Path) -> bool {
        let before = self.record.observations.len();
        let observations = std::mem::take(&mut self.record.observations).into_iter();
        self.record.observations = observations.filter(|o| o.path != path).collect();
        self.record.observations.len() < before
    }
}

fn token_of(observation: &Observation) -> Token {
    Token::new(&observation.token).expect("four bytes fit a token")
}

fn kept(token: Token) -> [u8; OBSERVATION_TOKEN_BYTES] {
    let bytes = token.as_bytes().try_into();
    bytes.expect("a token of the service has as many bytes")
}

fn refused(why: String) -> Unfit {
    Unfit {
        failure: Failure::Refused,
        why,
    }
}
