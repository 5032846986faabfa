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
//! A notification that continues in further blocks is acknowledged at once: many devices serve the
//! next block only then, and end the observation if the acknowledgement is late. Its further blocks
//! are requested (RFC 7959 section 2.6), and the whole value is published. Meanwhile the
//! observation is Owed: if the rest is lost, the observation is requested again, and with it the
//! value. A newer notification takes the place of an incomplete one.

use protocol::coap::message::Message;
use protocol::coap::observe::NewestNotification;
use protocol::coap::option;
use protocol::coap::token::Token;
use protocol::lwm2m::operation::{self, ExchangeLabel};
use protocol::lwm2m::payload::Scope;

use crate::admin_log::entry::Entry;
use crate::datagram::Datagram;
use crate::device::codec::Observed;
use crate::device::context::Context;
use crate::device::exchange::ExchangeTarget;
use crate::device::formats::{AttemptState, FormatSet};
use crate::device::ingest::Ingest;
use crate::device::record::{
    OBSERVATION_TOKEN_BYTES, Observation, ObservationState, ObservationTarget,
};
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
    /// The observations to request again, each by the request that began it: the device may have
    /// lost them, and an uplink was received since.
    pending: Vec<ActionId>,
    /// Notifications that continue in further blocks, the newest of each observation.
    notified: Vec<FirstBlock>,
    /// The notification whose further blocks are being requested.
    continued: Option<Box<FirstBlock>>,
    next: NextTurn,
}

/// A notification that continues in further blocks.
struct FirstBlock {
    message: Message,
    /// It is outdated once this is not the newest notification of its observation any more.
    newest: Option<NewestNotification>,
    /// The state of the observation before it.
    state: ObservationState,
}

/// What goes first if both wait: a device that notifies without a pause must not keep the requests
/// of callers waiting.
#[derive(Clone, Copy, Default, Eq, PartialEq)]
enum NextTurn {
    #[default]
    Notification,
    Action,
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
    /// It continues in further blocks, which are to be requested.
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
        let update = cx.update.as_ref().map(|ongoing| &ongoing.update);
        cx.registration
            .save(self.observed, update, cx.m.now(), cx.out);
    }

    /// Classifies a notification of a path.
    pub(super) fn judge(
        &mut self,
        cx: &mut Context<'_>,
        ingest: &mut Ingest<'_>,
        (key, datagram): (ActionId, &Datagram),
    ) -> NotificationKind {
        let message = &datagram.message;
        if message
            .unknown_critical_option(&KNOWN_IN_NOTIFICATIONS)
            .is_some()
        {
            let why = "a notification has an unsupported critical option";
            self.lose_established(cx, key, why);
            return NotificationKind::Unsupported;
        }
        if !ingest.take(cx, 1) {
            // It is not acknowledged, so the device may end the observation. Marking that costs no
            // write.
            if let Some(observation) = self.observation_mut(key) {
                observation.renew();
            }
            return NotificationKind::Excessive;
        }
        if self.is_to_be_continued(key, message, cx.now()) {
            self.store_first_block(cx, key, message);
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
        (key, message): (ActionId, &Message),
    ) -> NotificationOutcome {
        if !message.code.is_success() {
            let why = format!("the device answered {}", message.code);
            self.lose_established(cx, key, &why);
            NotificationOutcome::Unusable
        } else if let Some(sequence) = message.observe() {
            match self.accept_if_newer(key, sequence, cx.now()) {
                true => self.take_values(cx, ingest, key, message),
                false => NotificationOutcome::Stale,
            }
        } else {
            self.take_last(cx, ingest, (key, message))
        }
    }

    /// Handles a notification whose blocks are all there. The device holds the observation.
    pub(super) fn take_assembled(
        &mut self,
        cx: &mut Context<'_>,
        ingest: &mut Ingest<'_>,
        (key, message): (ActionId, &Message),
    ) -> NotificationOutcome {
        if message.observe().is_none() {
            return self.take_last(cx, ingest, (key, message));
        }
        let outcome = self.take_values(cx, ingest, key, message);
        self.save_record(cx);
        outcome
    }

    fn take_last(
        &mut self,
        cx: &mut Context<'_>,
        ingest: &mut Ingest<'_>,
        (key, message): (ActionId, &Message),
    ) -> NotificationOutcome {
        let outcome = self.take_values(cx, ingest, key, message);
        self.lose_established(cx, key, "the device ended the observation");
        outcome
    }

    /// Handles the answer to a renewed observe request.
    pub(super) fn observed_again(
        &mut self,
        cx: &mut Context<'_>,
        ingest: &mut Ingest<'_>,
        key: ActionId,
        (token, answer): (Token, &Message),
    ) {
        self.take_values(cx, ingest, key, answer);
        let Some(sequence) = answer.observe() else {
            return self.lose(cx, key, "the device did not restart the observation");
        };
        if let Some(observation) = self.observation_mut(key) {
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
        (what, action): (Observed<'_>, ActionId),
        (token, sequence): (Token, u32),
    ) {
        let observation = Observation {
            target: what.target.clone(),
            attributes: what.attributes.clone(),
            token: stored(token),
            action,
            begun_at: cx.now(),
            state: ObservationState::Held,
            newest: Some(NewestNotification::new(sequence, cx.now().as_ms())),
        };
        // The rest of an earlier notification under the same token does not end the observation.
        let waiting = self.requests.notified.iter_mut();
        for first in waiting.filter(|it| it.message.token == token) {
            first.state = ObservationState::Held;
        }
        let others = std::mem::take(self.observed).into_iter();
        let others = others.filter(|other| other.target != *what.target);
        *self.observed = others.chain([observation]).collect();
        self.save_record(cx);
    }

    /// Removes an observation that a request ended, or that the device refuses.
    pub(super) fn ended(&mut self, cx: &mut Context<'_>, target: &ObservationTarget) {
        let key = self.find(target).map(|observation| observation.action);
        if key.is_some_and(|key| self.drop_observation(key).is_some()) {
            self.save_record(cx);
        }
    }

    /// Removes an observation that the device ended, and logs it.
    pub(super) fn lose(&mut self, cx: &mut Context<'_>, key: ActionId, why: &str) {
        if let Some(lost) = self.drop_observation(key) {
            self.save_record(cx);
            cx.note(StepEventKind::ObservationLost);
            cx.log(|m, sighting| Entry::observation_lost(m, sighting, &lost.target, why));
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
            Some(ExchangeTarget::Observation(key)) => Some(key),
            Some(
                ExchangeTarget::Action(_)
                | ExchangeTarget::Report(_)
                | ExchangeTarget::Notification(_)
                | ExchangeTarget::Bootstrap
                | ExchangeTarget::Update(_),
            )
            | None => None,
        };
        let is_owed = |observation: &&Observation| {
            observation.state == ObservationState::Owed && Some(observation.action) != in_flight
        };
        let owed = self.observed.iter().filter(is_owed);
        let owed: Vec<ActionId> = owed.map(|observation| observation.action).collect();
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

    /// The next notification to continue: the request for its further blocks, and its first block.
    ///
    /// The request has the path and the format of the one that began the observation, but neither
    /// Observe nor ETag: by that the device knows which body it is about (RFC 7959 sections 2.4 and
    /// 2.6).
    pub(super) fn next_continuation(&mut self, cx: &mut Context<'_>) -> Option<(Message, Message)> {
        while !self.requests.notified.is_empty() {
            let first = self.requests.notified.remove(0);
            let token = first.message.token;
            let message = first.message.clone();
            self.requests.continued = Some(Box::new(first));
            if self.is_superseded(token) {
                self.drop_superseded(cx);
            } else if let Some(request) = self.continuation(cx, token, &message) {
                self.requests.next = NextTurn::Action;
                return Some((request, message));
            }
        }
        None
    }

    /// The request for the further blocks of a notification with this token.
    fn continuation(&self, cx: &mut Context<'_>, token: Token, first: &Message) -> Option<Message> {
        let observation = self.observed_as(token)?;
        let label = self.label(cx);
        let codec = cx.codec();
        match &observation.target {
            ObservationTarget::Path(path) => {
                let preferred = codec.format_to_read(*path, FormatSet::default());
                let format = preferred.map(|it| first.content_format().unwrap_or(it));
                let request = operation::read(label, codec.root(), *path, format);
                Some(codec.with_attributes(request, &observation.attributes))
            }
            ObservationTarget::Paths(paths) => {
                let format = codec.format_of_composite(FormatSet::default())?;
                let accept = first.content_format().unwrap_or(format);
                let request =
                    operation::read_composite(label, codec.root(), paths, accept, format).ok()?;
                Some(codec.with_attributes(request, &observation.attributes))
            }
        }
    }

    /// Whether anything waits to be requested.
    pub(super) fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Whether a notification in blocks goes before the requests of callers. The device is in the
    /// middle of it and may refuse anything else meanwhile.
    pub(super) fn is_turn_of_notification(&self) -> bool {
        self.requests.next == NextTurn::Notification && !self.requests.notified.is_empty()
    }

    /// A request of a caller goes to the device.
    pub(super) fn note_turn_of_action(&mut self) {
        self.requests.next = NextTurn::Notification;
    }

    /// The next observation to request again. One that the device offers no way to request any more
    /// is lost.
    pub(super) fn next_request(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Option<(ExchangeTarget, Message)> {
        while !self.requests.pending.is_empty() {
            let key = self.requests.pending.remove(0);
            if let Some(message) = self.observe_again(cx, key, AttemptState::default()) {
                return Some((ExchangeTarget::Observation(key), message));
            }
            let state = self.observation(key).map(|observation| observation.state);
            if state == Some(ObservationState::Owed) {
                self.lose(
                    cx,
                    key,
                    "the device no longer takes such a request for several paths",
                );
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
        key: ActionId,
        attempt: AttemptState,
    ) -> Option<Message> {
        let observation = self.observation(key)?;
        if observation.state == ObservationState::Held {
            return None;
        }
        let what = Observed {
            target: &observation.target,
            attributes: &observation.attributes,
        };
        let label = self.label(cx);
        cx.codec().observe(label, what, attempt)
    }

    /// Whether the rest of a notification is not needed any more: there is a newer one, or the
    /// observation ended.
    pub(super) fn is_superseded(&self, token: Token) -> bool {
        let newest = self.observed_as(token).map(|it| it.newest);
        let continued = self.requests.continued.as_deref();
        newest.is_none() || continued.map(|first| first.newest) != newest
    }

    /// Ends the continuation of a notification that is not needed any more.
    pub(super) fn drop_superseded(&mut self, cx: &mut Context<'_>) {
        cx.note(StepEventKind::Notified(NotificationOutcome::Stale));
        let token = self.requests.continued.as_ref().map(|it| it.message.token);
        let mut waiting = self.requests.notified.iter();
        if waiting.any(|other| Some(other.message.token) == token) {
            self.requests.continued = None;
        } else if self.end_continued().is_some() {
            self.save_record(cx);
        }
    }

    /// Ends the continuation of a notification: the observation is as it was before. Returns the
    /// request that began the observation.
    pub(super) fn end_continued(&mut self) -> Option<ActionId> {
        let first = self.requests.continued.take()?;
        let key = self.key_observed_as(first.message.token)?;
        self.observation_mut(key)?.state = first.state;
        Some(key)
    }

    /// Gives up on the rest of a notification. The observation stays Owed: it is requested again
    /// after the next uplink.
    pub(super) fn abandon(&mut self, cx: &mut Context<'_>) {
        if self.requests.continued.take().is_some() {
            cx.note(StepEventKind::Notified(NotificationOutcome::Unusable));
        }
    }

    /// Gives up on the rest of a notification that the device refused, and logs it.
    pub(super) fn missed(&mut self, cx: &mut Context<'_>, ingest: &mut Ingest<'_>, why: &str) {
        if let Some(first) = self.requests.continued.take() {
            cx.note(StepEventKind::Notified(NotificationOutcome::Unusable));
            let why = format!("the rest of a notification could not be read: {why}");
            ingest.keep_unreadable(cx, &why, &first.message.payload);
        }
    }

    /// Whether one more observation may begin.
    pub(super) fn may_observe(&self, target: &ObservationTarget) -> Result<(), String> {
        if self.find(target).is_some() || self.observed.len() < OBSERVATIONS_MAX {
            return Ok(());
        }
        Err(format!(
            "the device has {OBSERVATIONS_MAX} observations, which is the maximum"
        ))
    }

    /// The token of an observation, if the device holds it.
    pub(super) fn token_held(&self, target: &ObservationTarget) -> Option<Token> {
        let is_held = |observation: &&Observation| observation.state == ObservationState::Held;
        self.find(target).filter(is_held).map(token_of)
    }

    /// The observation of a path, or of several.
    pub(super) fn find(&self, target: &ObservationTarget) -> Option<&Observation> {
        let mut observations = self.observed.iter();
        observations.find(|observation| observation.target == *target)
    }

    /// The request that began the observation with this token.
    pub(super) fn key_observed_as(&self, token: Token) -> Option<ActionId> {
        self.observed_as(token)
            .map(|observation| observation.action)
    }

    fn observed_as(&self, token: Token) -> Option<&Observation> {
        let mut observations = self.observed.iter();
        observations.find(|observation| token_of(observation) == token)
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
    fn lose_established(&mut self, cx: &mut Context<'_>, key: ActionId, why: &str) {
        let state = self.observation(key).map(|observation| observation.state);
        if state == Some(ObservationState::Held) {
            self.lose(cx, key, why);
        }
    }

    /// Stores the first block of a notification, the newest of each observation, until its turn
    /// comes. The observation is Owed until the rest was received.
    fn store_first_block(&mut self, cx: &mut Context<'_>, key: ActionId, message: &Message) {
        let requests = &mut *self.requests;
        let waiting = requests.notified.iter();
        let before = waiting.chain(requests.continued.as_deref());
        let mut before = before.filter(|other| other.message.token == message.token);
        let replaced = before.next().map(|other| other.state);
        requests
            .notified
            .retain(|other| other.message.token != message.token);
        if let Some(sequence) = message.observe() {
            self.accept_if_newer(key, sequence, cx.now());
        }
        let Some(observation) = self.observation_mut(key) else {
            return;
        };
        let first = FirstBlock {
            message: message.clone(),
            newest: observation.newest,
            state: replaced.unwrap_or(observation.state),
        };
        observation.state = ObservationState::Owed;
        self.requests.notified.push(first);
        if replaced.is_none() {
            self.save_record(cx);
        }
    }

    /// Whether a notification is newer than those before it; if so, it is now the newest.
    fn accept_if_newer(&mut self, key: ActionId, sequence: u32, now: Timestamp) -> bool {
        let is_newer = self.is_newer(key, sequence, now);
        if is_newer && let Some(observation) = self.observation_mut(key) {
            observation.newest = Some(NewestNotification::new(sequence, now.as_ms()));
        }
        is_newer
    }

    fn is_newer(&self, key: ActionId, sequence: u32, now: Timestamp) -> bool {
        let received = NewestNotification::new(sequence, now.as_ms());
        self.observation(key).is_some_and(|observation| {
            let newest = observation.newest;
            newest.is_none_or(|newest| newest.is_outdated_by(&received))
        })
    }

    /// Whether a notification continues in further blocks that are worth requesting: it is not
    /// outdated, and not an error response with a long diagnostic payload.
    fn is_to_be_continued(&self, key: ActionId, message: &Message, now: Timestamp) -> bool {
        let goes_on = message.block2().is_some_and(|block| block.has_more());
        let is_outdated = |sequence| !self.is_newer(key, sequence, now);
        goes_on && message.code.is_success() && !message.observe().is_some_and(is_outdated)
    }

    fn observation(&self, key: ActionId) -> Option<&Observation> {
        let mut observations = self.observed.iter();
        observations.find(|observation| observation.action == key)
    }

    fn observation_mut(&mut self, key: ActionId) -> Option<&mut Observation> {
        let mut observations = self.observed.iter_mut();
        observations.find(|observation| observation.action == key)
    }

    /// Removes an observation and returns it, if there is one.
    fn drop_observation(&mut self, key: ActionId) -> Option<Observation> {
        let (mut dropped, others): (Vec<_>, Vec<_>) = std::mem::take(self.observed)
            .into_iter()
            .partition(|observation| observation.action == key);
        *self.observed = others.into();
        dropped.pop()
    }

    /// Publishes the values of an observation. What cannot be decoded is logged for the customer:
    /// the value is not requested again.
    fn take_values(
        &self,
        cx: &mut Context<'_>,
        ingest: &mut Ingest<'_>,
        key: ActionId,
        message: &Message,
    ) -> NotificationOutcome {
        let Some(observation) = self.observation(key) else {
            return NotificationOutcome::Stale;
        };
        let target = &observation.target;
        let (read, cause) = match target {
            ObservationTarget::Path(path) => {
                let scope = Scope::Within(*path);
                let read = cx.codec().values_in(cx.now(), scope, message);
                (read, Cause::Observation(*path))
            }
            ObservationTarget::Paths(paths) => {
                let read = cx.codec().values_at(cx.now(), paths, message);
                (read, Cause::CompositeObservation(key))
            }
        };
        match read {
            Ok(read) if read.measurements.is_empty() => NotificationOutcome::Empty,
            Ok(read) => {
                ingest.count_further(cx, read.count());
                cx.publish_measurements(cause, read.measurements);
                let what = format!("the notification for {target}");
                ingest.name_unreadable(cx, (&what, &message.payload), &read.unreadable);
                NotificationOutcome::Published
            }
            Err(why) => {
                let why = format!("the notification for {target} cannot be decoded: {why}");
                ingest.keep_unreadable(cx, &why, &message.payload);
                NotificationOutcome::Unusable
            }
        }
    }
}

pub(super) fn token_of(observation: &Observation) -> Token {
    Token::new(&observation.token).expect("four bytes fit a token")
}

fn stored(token: Token) -> [u8; OBSERVATION_TOKEN_BYTES] {
    let bytes = token.as_bytes().try_into();
    bytes.expect("a token of the service has as many bytes")
}
