//! What is observed of a device: begun and ended by requests, told in notifications, asked for
//! anew when the device forgot it (RFC 7641; LwM2M Core 1.2 section 6.4).
//!
//! ```text
//!          observe-start            registers anew, leaves
//!  (none) ---------------> Held <--------------------------> Owed
//!    ^                      |        asked again, 2.05         |
//!    +-- observe-end, 4.xx -+-- 4.xx, 5.xx, not observed any more
//! ```
//!
//! A notification that goes on in further blocks is told, and acknowledged, once all of the value
//! is there: the device is asked for it (RFC 7959 section 2.6).

use protocol::coap::message::Message;
use protocol::coap::observe::NewestNotification;
use protocol::coap::option;
use protocol::coap::token::Token;
use protocol::lwm2m::operation::{self, ExchangeLabel};
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::Scope;

use crate::admin_log::entry::Entry;
use crate::datagram::Datagram;
use crate::device::context::Context;
use crate::device::exchange::ExchangeTarget;
use crate::device::formats::FormatSet;
use crate::device::ingest::Ingest;
use crate::device::record::{OBSERVATION_TOKEN_BYTES, Observation, ObservationState};
use crate::event::Cause;
use crate::ids::ActionId;
use crate::limits::OBSERVATIONS_MAX;
use crate::moment::{Moment, Timestamp};
use crate::step_event::{NotificationOutcome, StepEventKind};

/// Block2 is the one critical option with which a notification may speak to us.
const KNOWN_IN_NOTIFICATIONS: [u16; 1] = [option::BLOCK2];

/// What the device is to be asked because of its observations.
#[derive(Default)]
pub(super) struct ObservationRequests {
    /// What is to be observed again: the device forgot it and was heard since.
    pending: Vec<Path>,
    /// Notifications that go on in further blocks, of each observation the newest.
    notified: Vec<Datagram>,
    /// The one of them that is being fetched.
    fetched: Option<Box<Datagram>>,
}

impl ObservationRequests {
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.notified.is_empty()
    }
}

/// What a notification is, before its value is looked at.
pub(super) enum NotificationKind {
    /// It must not be interpreted: the device stops when it is told so.
    Unsupported,
    /// It came behind more than are taken.
    Excessive,
    /// It goes on in further blocks.
    GoesOn,
    Whole,
}

/// What is observed.
pub(super) struct Observations<'s> {
    observed: &'s mut Box<[Observation]>,
    requests: &'s mut ObservationRequests,
}

impl<'s> Observations<'s> {
    pub(super) fn new(
        observed: &'s mut Box<[Observation]>,
        requests: &'s mut ObservationRequests,
    ) -> Self {
        Self { observed, requests }
    }

    /// Saves the record of the device, which has what is observed of it.
    pub(super) fn save_record(&self, cx: &mut Context<'_>) {
        cx.registration.save(self.observed, cx.m.now(), cx.out);
    }

    /// Looks at a notification of what is observed at a path.
    pub(super) fn judge(
        &mut self,
        cx: &mut Context<'_>,
        ingest: &mut Ingest<'_>,
        (path, datagram): (Path, &Datagram),
    ) -> NotificationKind {
        let message = &datagram.message;
        if message
            .unknown_critical_option(&KNOWN_IN_NOTIFICATIONS)
            .is_some()
        {
            let why = "a notification has an unsupported critical option";
            self.lose_established(cx, path, why);
            return NotificationKind::Unsupported;
        }
        if !ingest.take(cx.now(), 1) {
            // The device may take it that nobody listens, and forget. It costs no write to know.
            if let Some(observation) = self.observation_mut(path) {
                observation.renew();
            }
            return NotificationKind::Excessive;
        }
        if self.is_to_be_fetched(path, message, cx.now()) {
            self.put_by(datagram);
            return NotificationKind::GoesOn;
        }
        NotificationKind::Whole
    }

    /// Takes what a notification tells: the value, or that there are no more (RFC 7641 section
    /// 4.2), or both.
    pub(super) fn take(
        &mut self,
        cx: &mut Context<'_>,
        ingest: &mut Ingest<'_>,
        (path, message): (Path, &Message),
    ) -> NotificationOutcome {
        if !message.code.is_success() {
            let why = format!("the device answered {}", message.code);
            self.lose_established(cx, path, &why);
            NotificationOutcome::Unusable
        } else if let Some(sequence) = message.observe() {
            match self.is_news(path, sequence, cx.now()) {
                true => take_values(cx, ingest, path, message),
                false => NotificationOutcome::Stale,
            }
        } else {
            let news = take_values(cx, ingest, path, message);
            self.lose_established(cx, path, "the device ended the observation");
            news
        }
    }

    /// Takes the answer to being asked again for what it forgot.
    pub(super) fn observed_again(
        &mut self,
        cx: &mut Context<'_>,
        ingest: &mut Ingest<'_>,
        path: Path,
        (token, answer): (Token, &Message),
    ) {
        take_values(cx, ingest, path, answer);
        let Some(sequence) = answer.observe() else {
            return self.lose(cx, path, "the device did not restart the observation");
        };
        if let Some(observation) = self.observation_mut(path) {
            observation.token = kept(token);
            observation.state = ObservationState::Held;
            observation.newest = Some(NewestNotification::new(sequence, cx.now().as_ms()));
        }
        self.save_record(cx);
    }

    /// Takes the answer that begins an observation, or begins it anew.
    pub(super) fn begun(
        &mut self,
        cx: &mut Context<'_>,
        (path, action): (Path, ActionId),
        (token, sequence): (Token, u32),
    ) {
        let observation = Observation {
            path,
            token: kept(token),
            action,
            begun_at: cx.now(),
            state: ObservationState::Held,
            newest: Some(NewestNotification::new(sequence, cx.now().as_ms())),
        };
        let others = std::mem::take(self.observed).into_iter();
        let others = others.filter(|other| other.path != path);
        *self.observed = others.chain([observation]).collect();
        self.save_record(cx);
    }

    /// Takes note that the device was told to end an observation, or does not begin it.
    pub(super) fn ended(&mut self, cx: &mut Context<'_>, path: Path) {
        if self.drop_observation(path) {
            self.save_record(cx);
        }
    }

    /// Ends an observation that the device ended, and tells the customer.
    pub(super) fn lose(&mut self, cx: &mut Context<'_>, path: Path, why: &str) {
        if self.drop_observation(path) {
            self.save_record(cx);
            cx.note(StepEventKind::ObservationLost);
            cx.log(|m, seen| Entry::observation_lost(m, seen, &path, why));
        }
    }

    /// The device forgot what is observed of it: it registers anew, or is gone; or it moved, and
    /// what it told meanwhile from where nobody knew it was rejected. Says whether anything is
    /// observed.
    pub(super) fn renew_all(&mut self) -> bool {
        self.observed.iter_mut().for_each(Observation::renew);
        *self.requests = ObservationRequests::default();
        !self.observed.is_empty()
    }

    /// The device was heard: what it forgot is asked for again, unless it is just being asked.
    pub(super) fn release(&mut self, in_flight: Option<ExchangeTarget>) {
        let in_flight = match in_flight {
            Some(ExchangeTarget::Observation(path)) => Some(path),
            Some(
                ExchangeTarget::Action(_)
                | ExchangeTarget::Report(_)
                | ExchangeTarget::Notification(_),
            )
            | None => None,
        };
        let is_owed = |observation: &&Observation| {
            observation.state == ObservationState::Owed && Some(observation.path) != in_flight
        };
        let owed = self.observed.iter().filter(is_owed);
        let owed: Vec<Path> = owed.map(|observation| observation.path).collect();
        if !owed.is_empty() {
            self.requests.pending = owed;
        }
    }

    /// The device is silent: it is asked again when it is heard.
    pub(super) fn hold_back(&mut self) {
        self.requests.pending.clear();
        self.drop_notified();
    }

    /// Drops the notifications that go on: the device cannot be asked now.
    pub(super) fn drop_notified(&mut self) {
        self.requests.notified.clear();
    }

    /// What is to be asked next, and how: a notification is fetched before anything is observed
    /// again.
    pub(super) fn next_request(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Option<(ExchangeTarget, Message)> {
        while !self.requests.notified.is_empty() {
            let datagram = self.requests.notified.remove(0);
            let token = datagram.message.token;
            if let Some(path) = self.path_observed_as(token) {
                let label = self.label(cx);
                let format = datagram.message.content_format();
                let message = operation::read(label, cx.codec().root(), path, format);
                self.requests.fetched = Some(Box::new(datagram));
                return Some((ExchangeTarget::Notification(token), message));
            }
        }
        while !self.requests.pending.is_empty() {
            let path = self.requests.pending.remove(0);
            if let Some(message) = self.observe_again(cx, path, FormatSet::default()) {
                return Some((ExchangeTarget::Observation(path), message));
            }
        }
        None
    }

    /// The message that asks again for what a device forgot; none if it is not owed any more,
    /// because a request ended it, or began it anew.
    ///
    /// It has a token of its own: a device that did not forget all of the old observation must not
    /// take it for that. It asks in none of the formats the device refused in this attempt.
    pub(super) fn observe_again(
        &self,
        cx: &mut Context<'_>,
        path: Path,
        refused: FormatSet,
    ) -> Option<Message> {
        if self.observation(path)?.state == ObservationState::Held {
            return None;
        }
        let label = self.label(cx);
        let codec = cx.codec();
        let format = codec.format_to_read(path, refused);
        Some(operation::observe(label, codec.root(), path, format))
    }

    /// The notification that was fetched, as it came and as if it had come whole.
    pub(super) fn take_fetched(
        &mut self,
        token: Token,
        answer: &Message,
    ) -> Option<(Box<Datagram>, Datagram)> {
        let part = self.end_fetch(token)?;
        let message = part.message.clone();
        let message = message
            .without_option(option::BLOCK2)
            .without_option(option::SIZE2)
            .with_payload(answer.payload.as_slice());
        let whole = part.with(message);
        Some((part, whole))
    }

    /// Gives a notification up. It is not acknowledged: a confirmable one comes again.
    pub(super) fn missed(
        &mut self,
        cx: &mut Context<'_>,
        ingest: &mut Ingest<'_>,
        (token, why): (Token, &str),
    ) {
        if let Some(datagram) = self.end_fetch(token) {
            cx.note(StepEventKind::Notified(NotificationOutcome::Unusable));
            let why = format!("the rest of a notification could not be fetched: {why}");
            ingest.keep_unreadable(cx, &why, &datagram.message.payload);
        }
    }

    /// Whether one more path may be observed.
    pub(super) fn may_observe(&self, path: Path) -> Result<(), String> {
        if self.is_observed(path) || self.observed.len() < OBSERVATIONS_MAX {
            return Ok(());
        }
        Err(format!(
            "the device has {OBSERVATIONS_MAX} observations, which is the maximum"
        ))
    }

    pub(super) fn is_observed(&self, path: Path) -> bool {
        self.observation(path).is_some()
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

    pub(super) fn path_observed_as(&self, token: Token) -> Option<Path> {
        let mut observations = self.observed.iter();
        let found = observations.find(|observation| token_of(observation) == token);
        found.map(|observation| observation.path)
    }

    /// What the next request to the device is known by.
    pub(super) fn label(&self, cx: &mut Context<'_>) -> ExchangeLabel {
        ExchangeLabel {
            message_id: cx.message_id(),
            token: self.draw_token(cx.m),
        }
    }

    /// Four random bytes: enough that nobody off the path guesses one (RFC 7252 section 5.3.1), and
    /// as few as a radio should carry. Never those of an observation, whose notifications would be
    /// taken for the answer.
    pub(super) fn draw_token(&self, m: &mut Moment) -> Token {
        loop {
            let token = m.next_u32().to_be_bytes();
            if !self.observed.iter().any(|o| o.token == token) {
                return Token::new(&token).expect("four bytes fit a token");
            }
        }
    }

    /// Ends an observation that the device says it ended, if that is not the one it forgot anyway:
    /// whether it observes that again is what it is asked.
    fn lose_established(&mut self, cx: &mut Context<'_>, path: Path, why: &str) {
        if self.token_held(path).is_some() {
            self.lose(cx, path, why);
        }
    }

    /// Keeps a notification until all of its value is there. Of each observation the newest one
    /// counts, and the one being fetched: what comes for that may be older than the newest.
    fn put_by(&mut self, datagram: &Datagram) {
        let is_it = |fetched: &Datagram| {
            let (it, other) = (&fetched.message, &datagram.message);
            (it.token, it.message_id) == (other.token, other.message_id)
        };
        if self.requests.fetched.as_deref().is_some_and(is_it) {
            return;
        }
        let notified = &mut self.requests.notified;
        notified.retain(|other| other.message.token != datagram.message.token);
        notified.push(datagram.clone());
    }

    fn end_fetch(&mut self, token: Token) -> Option<Box<Datagram>> {
        let fetched = &mut self.requests.fetched;
        fetched.take_if(|fetched| fetched.message.token == token)
    }

    /// Whether a notification is newer than those before it, which it is from now on.
    fn is_news(&mut self, path: Path, sequence: u32, now: Timestamp) -> bool {
        let is_news = self.would_be_news(path, sequence, now);
        if is_news && let Some(observation) = self.observation_mut(path) {
            observation.newest = Some(NewestNotification::new(sequence, now.as_ms()));
        }
        is_news
    }

    fn would_be_news(&self, path: Path, sequence: u32, now: Timestamp) -> bool {
        let heard = NewestNotification::new(sequence, now.as_ms());
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

    fn observation(&self, path: Path) -> Option<&Observation> {
        let mut observations = self.observed.iter();
        observations.find(|observation| observation.path == path)
    }

    fn observation_mut(&mut self, path: Path) -> Option<&mut Observation> {
        let mut observations = self.observed.iter_mut();
        observations.find(|observation| observation.path == path)
    }

    /// Drops an observation and says whether there was one.
    fn drop_observation(&mut self, path: Path) -> bool {
        let before = self.observed.len();
        let observations = std::mem::take(self.observed).into_iter();
        *self.observed = observations.filter(|o| o.path != path).collect();
        self.observed.len() < before
    }
}

/// Takes the values a device tells of an observed path. Bytes that cannot be read are kept for
/// the customer to look at: the device is not asked for them again.
fn take_values(
    cx: &mut Context<'_>,
    ingest: &mut Ingest<'_>,
    path: Path,
    message: &Message,
) -> NotificationOutcome {
    match cx.codec().values_in(cx.now(), Scope::Within(path), message) {
        Ok(told) if told.is_empty() => NotificationOutcome::Empty,
        Ok(told) => {
            let values = told.iter().map(|told| told.values.len()).sum();
            ingest.count_further(cx.now(), values);
            cx.publish_measurements(Cause::Observation(path), told);
            NotificationOutcome::Published
        }
        Err(why) => {
            let why = format!("the notification for {path} cannot be decoded: {why}");
            ingest.keep_unreadable(cx, &why, &message.payload);
            NotificationOutcome::Unusable
        }
    }
}

fn token_of(observation: &Observation) -> Token {
    Token::new(&observation.token).expect("four bytes fit a token")
}

fn kept(token: Token) -> [u8; OBSERVATION_TOKEN_BYTES] {
    let bytes = token.as_bytes().try_into();
    bytes.expect("a token of the service has as many bytes")
}
