//! The observations of a device: begun and ended by requests, reported in notifications, requested
//! again when the device may have lost them (RFC 7641; LwM2M Core 1.2 section 6.4).
//!
//! ```text
//!          observe-start           registers again, leaves
//!  (none) ---------------> Held <--------------------------> Owed
//!    ^                      |      requested again, 2.05       |
//!    +-- observe-end, 4.xx -+----- 4.xx, 5.xx, no Observe -----+
//! ```
//!
//! A notification whose value continues in further blocks is published, and acknowledged, once the
//! whole value has been fetched (RFC 7959 section 2.6).

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

/// Block2 is the only critical option that is understood in a notification.
const KNOWN_IN_NOTIFICATIONS: [u16; 1] = [option::BLOCK2];

/// The requests to the device that its observations need.
#[derive(Default)]
pub(super) struct ObservationRequests {
    /// The paths to observe again: the device may have lost the observations, and an uplink was
    /// received since.
    pending: Vec<Path>,
    /// Notifications that continue in further blocks, the newest of each observation.
    notified: Vec<Datagram>,
    /// The notification that is being fetched.
    fetched: Option<Box<Datagram>>,
}

impl ObservationRequests {
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.notified.is_empty()
    }
}

/// What a notification is, before its value is decoded.
pub(super) enum NotificationKind {
    /// It must not be interpreted; a Reset makes the device stop.
    Unsupported,
    /// It exceeds the rate of the device.
    Excessive,
    /// It continues in further blocks.
    GoesOn,
    Whole,
}

/// The observations of a device.
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

    /// Saves the record of the device, which includes its observations.
    pub(super) fn save_record(&self, cx: &mut Context<'_>) {
        cx.registration.save(self.observed, cx.m.now(), cx.out);
    }

    /// Classifies a notification of a path.
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
            // It is not acknowledged, so the device may end the observation. Marking that costs no
            // write.
            if let Some(observation) = self.observation_mut(path) {
                observation.renew();
            }
            return NotificationKind::Excessive;
        }
        if self.is_to_be_fetched(path, message, cx.now()) {
            self.store_part(datagram);
            return NotificationKind::GoesOn;
        }
        NotificationKind::Whole
    }

    /// Handles a notification: it has a value, or it ends the observation (RFC 7641 section 4.2),
    /// or both.
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
            match self.accept_if_newer(path, sequence, cx.now()) {
                true => take_values(cx, ingest, path, message),
                false => NotificationOutcome::Stale,
            }
        } else {
            let outcome = take_values(cx, ingest, path, message);
            self.lose_established(cx, path, "the device ended the observation");
            outcome
        }
    }

    /// Handles the answer to a renewed observe request.
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
            observation.token = stored(token);
            observation.state = ObservationState::Held;
            observation.newest = Some(NewestNotification::new(sequence, cx.now().as_ms()));
        }
        self.save_record(cx);
    }

    /// Records an observation that begins, or begins again.
    pub(super) fn begun(
        &mut self,
        cx: &mut Context<'_>,
        (path, action): (Path, ActionId),
        (token, sequence): (Token, u32),
    ) {
        let observation = Observation {
            path,
            token: stored(token),
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

    /// Removes an observation that a request ended, or that the device refuses.
    pub(super) fn ended(&mut self, cx: &mut Context<'_>, path: Path) {
        if self.drop_observation(path) {
            self.save_record(cx);
        }
    }

    /// Removes an observation that the device ended, and logs it.
    pub(super) fn lose(&mut self, cx: &mut Context<'_>, path: Path, why: &str) {
        if self.drop_observation(path) {
            self.save_record(cx);
            cx.note(StepEventKind::ObservationLost);
            cx.log(|m, sighting| Entry::observation_lost(m, sighting, &path, why));
        }
    }

    /// The device may have lost its observations: it registered again, or left; or it moved, and
    /// notifications from an unknown peer were rejected. Returns whether there are any.
    pub(super) fn renew_all(&mut self) -> bool {
        self.observed.iter_mut().for_each(Observation::renew);
        *self.requests = ObservationRequests::default();
        !self.observed.is_empty()
    }

    /// An uplink was received: lost observations are requested again, except the one whose request
    /// is in flight.
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

    /// The device is silent: observations are requested again after its next uplink.
    pub(super) fn hold_back(&mut self) {
        self.requests.pending.clear();
        self.drop_notified();
    }

    /// Drops notifications that continue in further blocks: the device cannot be requested now.
    pub(super) fn drop_notified(&mut self) {
        self.requests.notified.clear();
    }

    /// The next request to the device. Notifications are fetched before anything is observed again.
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

    /// The message that requests an observation again; none if that is not needed any more, because
    /// a request ended it or began it again.
    ///
    /// It has a new token: a device that still holds the old observation must not confuse the two.
    /// It requests none of the formats the device refused in this attempt.
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

    /// The notification that was fetched: as it was received, and as if it had come in one message.
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

    /// Gives up on fetching a notification. It is not acknowledged, so the device repeats a
    /// confirmable one.
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

    /// The token of the observation of a path.
    pub(super) fn token_observing(&self, path: Path) -> Option<Token> {
        self.observation(path).map(token_of)
    }

    /// The token of the observation of a path, if the device holds it.
    pub(super) fn token_held(&self, path: Path) -> Option<Token> {
        let is_held = |observation: &&Observation| observation.state == ObservationState::Held;
        self.observation(path).filter(is_held).map(token_of)
    }

    pub(super) fn path_observed_as(&self, token: Token) -> Option<Path> {
        let mut observations = self.observed.iter();
        let found = observations.find(|observation| token_of(observation) == token);
        found.map(|observation| observation.path)
    }

    /// The message id and the token of the next request to the device.
    pub(super) fn label(&self, cx: &mut Context<'_>) -> ExchangeLabel {
        ExchangeLabel {
            message_id: cx.message_id(),
            token: self.draw_token(cx.m),
        }
    }

    /// Four random bytes: enough that nobody off the path guesses them (RFC 7252 section 5.3.1),
    /// and as few as a radio should carry. Never the token of an observation, whose notifications
    /// would be mistaken for the answer.
    pub(super) fn draw_token(&self, m: &mut Moment) -> Token {
        loop {
            let token = m.next_u32().to_be_bytes();
            if !self.observed.iter().any(|o| o.token == token) {
                return Token::new(&token).expect("four bytes fit a token");
            }
        }
    }

    /// Removes an observation that the device says it ended. One that is to be requested again
    /// stays: the answer to that request decides.
    fn lose_established(&mut self, cx: &mut Context<'_>, path: Path, why: &str) {
        if self.token_held(path).is_some() {
            self.lose(cx, path, why);
        }
    }

    /// Stores a notification until its whole value has been fetched. Of each observation the newest
    /// is stored, besides the one being fetched: what arrives for that may be older than the
    /// newest.
    fn store_part(&mut self, datagram: &Datagram) {
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

    /// Whether a notification is newer than those before it; if so, it is now the newest.
    fn accept_if_newer(&mut self, path: Path, sequence: u32, now: Timestamp) -> bool {
        let is_newer = self.is_newer(path, sequence, now);
        if is_newer && let Some(observation) = self.observation_mut(path) {
            observation.newest = Some(NewestNotification::new(sequence, now.as_ms()));
        }
        is_newer
    }

    fn is_newer(&self, path: Path, sequence: u32, now: Timestamp) -> bool {
        let received = NewestNotification::new(sequence, now.as_ms());
        self.observation(path).is_some_and(|observation| {
            let newest = observation.newest;
            newest.is_none_or(|newest| newest.is_outdated_by(&received))
        })
    }

    /// Whether a notification continues in further blocks that are worth fetching: it is not
    /// outdated, and not an error response with a long diagnostic payload.
    fn is_to_be_fetched(&self, path: Path, message: &Message, now: Timestamp) -> bool {
        let goes_on = message.block2().is_some_and(|block| block.has_more());
        let is_outdated = |sequence| !self.is_newer(path, sequence, now);
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

    /// Removes an observation. Returns whether there was one.
    fn drop_observation(&mut self, path: Path) -> bool {
        let before = self.observed.len();
        let observations = std::mem::take(self.observed).into_iter();
        *self.observed = observations.filter(|o| o.path != path).collect();
        self.observed.len() < before
    }
}

/// Publishes the values of an observed path. A payload that cannot be decoded is logged for the
/// customer: the value is not requested again.
fn take_values(
    cx: &mut Context<'_>,
    ingest: &mut Ingest<'_>,
    path: Path,
    message: &Message,
) -> NotificationOutcome {
    match cx.codec().values_in(cx.now(), Scope::Within(path), message) {
        Ok(measurements) if measurements.is_empty() => NotificationOutcome::Empty,
        Ok(measurements) => {
            let values = measurements.iter().map(|it| it.values.len()).sum();
            ingest.count_further(cx.now(), values);
            cx.publish_measurements(Cause::Observation(path), measurements);
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

fn stored(token: Token) -> [u8; OBSERVATION_TOKEN_BYTES] {
    let bytes = token.as_bytes().try_into();
    bytes.expect("a token of the service has as many bytes")
}
