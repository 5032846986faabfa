//! What does a device send by itself, and how much of it is accepted? Values (LwM2M Core 1.2
//! section 6.4.6), data over plain CoAP and bare UDP, and bodies in blocks (RFC 7959 section 2.3).
//!
//! What a device can cause to be written has a bound: its `RateWindow` counts what is published,
//! and rejections are logged at most once per interval. One body at a time is assembled, no longer
//! than what fits the limit of a single datagram, and dropped when no further block arrives.

use protocol::coap::assembly::{Assembly, AssemblyOutcome};
use protocol::coap::code::Code;
use protocol::coap::message::Message;
use protocol::lwm2m::payload::{Sample, Scope, Undecodable, UnreadableValue};

use crate::action::Protocol;
use crate::admin_log::entry::Entry;
use crate::admin_log::payload::{FurtherPayloads, RejectedPayload};
use crate::datagram::Datagram;
use crate::device::context::Context;
use crate::device::rejections::{RejectedMessage, RejectionTally, UnloggedRejections};
use crate::device::samples;
use crate::event::{Cause, Data, EventContent};
use crate::limits::{
    RATE_WINDOW_S, TRANSFER_IDLE_MS, UNREADABLE_LOG_MS, UNREADABLE_VALUES_NAMED_MAX,
};
use crate::moment::Timestamp;
use crate::peer::Peer;
use crate::step_event::NotificationOutcome;
use crate::topic::Topic;

/// This many bytes of data count as one value: a value takes less space in the store, but more
/// rows.
const VALUE_BYTES: usize = 256;

/// A body that is being assembled.
pub(super) struct IncomingBody {
    peer: Peer,
    assembly: Assembly,
}

impl IncomingBody {
    /// When it is dropped unless another block arrives.
    pub(super) fn expires_at(&self) -> Timestamp {
        Timestamp::from_ms(self.assembly.expires_at(TRANSFER_IDLE_MS))
    }

    /// The bytes of memory its blocks occupy.
    pub(super) fn memory(&self) -> usize {
        self.assembly.memory()
    }
}

/// What is remembered for a while and is not in the store.
#[derive(Default)]
pub(super) struct Retained {
    rejections: RejectionTally,
    unreadable_logged_at: Option<Timestamp>,
    /// When the rest is forgotten.
    until: Option<Timestamp>,
}

impl Retained {
    pub(super) fn is_empty(&self) -> bool {
        self.next_timeout().is_none()
    }

    /// When something of it expires.
    pub(super) fn next_timeout(&self) -> Option<Timestamp> {
        let ends = [self.until, self.rejections.until()];
        ends.into_iter().flatten().min()
    }

    /// Drops what has expired: unreadable bytes may be logged again then anyway.
    fn end(&mut self, now: Timestamp) -> bool {
        let is_over = self.until.is_some_and(|until| until <= now);
        if is_over {
            (self.until, self.unreadable_logged_at) = (None, None);
        }
        is_over
    }

    fn keep(&mut self, until: Timestamp) {
        self.until = self.until.max(Some(until));
    }

    /// Whether unreadable bytes may be logged again; if so, they count as logged now.
    fn may_log_unreadable(&mut self, now: Timestamp) -> bool {
        let is_apart = |at: Timestamp| !(0..UNREADABLE_LOG_MS).contains(&now.since_ms(at));
        let may_log = self.unreadable_logged_at.is_none_or(is_apart);
        if may_log {
            self.unreadable_logged_at = Some(now);
            self.keep(now.plus_ms(UNREADABLE_LOG_MS));
        }
        may_log
    }
}

/// What became of values or data over CoAP, and how they are answered.
pub(super) enum IngestOutcome {
    /// They are accepted: 2.04.
    Accepted(NotificationOutcome),
    /// There are no data, where there must be some.
    Empty,
    /// They cannot be decoded, which is logged. They are answered with this code and text.
    Unusable(Code, String),
}

impl IngestOutcome {
    /// The outcome for metrics.
    pub(super) fn of_notification(&self) -> NotificationOutcome {
        match self {
            Self::Accepted(outcome) => *outcome,
            Self::Empty => NotificationOutcome::Empty,
            Self::Unusable(..) => NotificationOutcome::Unusable,
        }
    }
}

/// How much is accepted, and the body that is being assembled.
pub(super) struct Ingest<'s> {
    rate: &'s mut RateWindow,
    body: &'s mut Option<Box<IncomingBody>>,
    retained: &'s mut Retained,
}

impl<'s> Ingest<'s> {
    pub(super) fn new(
        rate: &'s mut RateWindow,
        body: &'s mut Option<Box<IncomingBody>>,
        retained: &'s mut Retained,
    ) -> Self {
        Self {
            rate,
            body,
            retained,
        }
    }

    /// Accepts this many values, if the rate window still has room.
    pub(super) fn take(&mut self, cx: &Context<'_>, values: u16) -> bool {
        let max = cx.rules().limits.values_max;
        self.rate.take(cx.now(), values, max)
    }

    /// Counts the values beyond the first, which was counted when the message was accepted.
    pub(super) fn count_further(&mut self, cx: &Context<'_>, values: usize) {
        let further = u16::try_from(values).unwrap_or(u16::MAX).saturating_sub(1);
        self.take(cx, further);
    }

    /// Keeps the device from being idle, with what it remembers, until a time.
    pub(super) fn linger(&mut self, until: Timestamp) {
        self.retained.keep(until);
    }

    /// Forgets what has expired. Returns whether there was any.
    pub(super) fn forget(&mut self, now: Timestamp) -> bool {
        self.body.take_if(|it| it.expires_at() <= now);
        self.retained.end(now)
    }

    /// Logs that a message was rejected, or counts it: a stranger must not fill the log.
    pub(super) fn log_rejection(&mut self, cx: &mut Context<'_>, rejected: RejectedMessage) {
        let due = self.retained.rejections.take(cx.now(), rejected);
        log_rejections(cx, due);
    }

    /// Logs the rejections that were counted until now.
    pub(super) fn log_unlogged_rejections(&mut self, cx: &mut Context<'_>) {
        let due = self.retained.rejections.end(cx.now());
        log_rejections(cx, due);
    }

    /// Logs a payload that cannot be decoded, with its bytes as long as the quota of the device has
    /// room.
    pub(super) fn keep_unreadable(&mut self, cx: &mut Context<'_>, why: &str, bytes: &[u8]) {
        if let Some(payload) = self.undecodable(cx, bytes) {
            cx.log(|m, sighting| Entry::undecodable_payload(m, sighting, why, payload));
        }
    }

    /// Logs a payload that is not accepted, whatever is in it, but not each time.
    pub(super) fn keep_rejected(&mut self, cx: &mut Context<'_>, why: &str, bytes: &[u8]) {
        if let Some(payload) = self.rejected(cx, bytes) {
            cx.log(|m, sighting| Entry::undecodable_payload(m, sighting, why, payload));
        }
    }

    /// Logs the values of a payload that cannot be read, although others can, like a payload that
    /// cannot be decoded.
    pub(super) fn name_unreadable(
        &mut self,
        cx: &mut Context<'_>,
        (what, bytes): (&str, &[u8]),
        unreadable: &[UnreadableValue],
    ) {
        if unreadable.is_empty() {
            return;
        }
        let Some(payload) = self.undecodable(cx, bytes) else {
            return;
        };
        let named = unreadable.iter().take(UNREADABLE_VALUES_NAMED_MAX);
        let mut why: Vec<String> = named.map(UnreadableValue::to_string).collect();
        if let Some(more @ 1..) = unreadable.len().checked_sub(UNREADABLE_VALUES_NAMED_MAX) {
            why.push(format!("{more} more"));
        }
        let why = why.join("; ");
        cx.log(|m, sighting| Entry::unreadable_values(m, sighting, (what, &why), payload));
    }

    /// Adds a block to a body, which may begin with it.
    pub(super) fn gather(&mut self, cx: &Context<'_>, datagram: &Datagram) -> AssemblyOutcome {
        let Datagram { peer, message, .. } = datagram;
        let begins = message.block1().is_some_and(|block| block.number() == 0);
        let is_its = self.body.as_ref().is_some_and(|it| it.peer == *peer);
        if begins && !is_its {
            *self.body = Some(Box::new(IncomingBody {
                peer: *peer,
                assembly: Assembly::default(),
            }));
        }
        let max = cx.rules().limits.data_bytes_max;
        let gathered = match self.body.as_mut().filter(|it| it.peer == *peer) {
            Some(incoming) => incoming.assembly.take(cx.now().as_ms(), message, max),
            None => return AssemblyOutcome::Incomplete,
        };
        if gathered != AssemblyOutcome::Continue {
            *self.body = None;
        }
        gathered
    }

    /// Drops the blocks of an unfinished body; its next block is answered that they are missing.
    pub(super) fn drop_unfinished(&mut self) {
        *self.body = None;
    }

    /// Handles a Send and returns its answer. The answer is sent after the commit; values that are
    /// not accepted now are sent again by the device.
    pub(super) fn take_send(&mut self, cx: &mut Context<'_>, message: &Message) -> IngestOutcome {
        match cx.codec().samples_in(Scope::All, message) {
            Ok(decoded) => {
                let outcome = self.publish_send(cx, decoded.samples);
                self.name_unreadable(cx, ("a Send", &message.payload), &decoded.unreadable);
                IngestOutcome::Accepted(outcome)
            }
            Err(why) => {
                let what = format!("the Send cannot be decoded: {why}");
                self.keep_unreadable(cx, &what, &message.payload);
                IngestOutcome::Unusable(code_for(why), why.to_string())
            }
        }
    }

    /// Publishes data over plain CoAP as it was received, and returns the answer.
    pub(super) fn take_data(&mut self, cx: &mut Context<'_>, message: &Message) -> IngestOutcome {
        let bytes = &message.payload;
        match Topic::among(message.uri_query()) {
            Ok(_) if bytes.is_empty() => IngestOutcome::Empty,
            Ok(topic) => {
                self.publish_data(cx, (Protocol::Coap, Some(topic)), bytes);
                IngestOutcome::Accepted(NotificationOutcome::Published)
            }
            Err(why) => {
                let why = why.to_string();
                if let Some(payload) = self.rejected(cx, bytes) {
                    cx.log(|m, sighting| Entry::invalid_topic(m, sighting, &why, payload));
                }
                IngestOutcome::Unusable(Code::BAD_REQUEST, why)
            }
        }
    }

    /// Handles the bytes of a bare datagram.
    pub(super) fn take_udp(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> NotificationOutcome {
        if bytes.is_empty() {
            return NotificationOutcome::Empty;
        }
        let max = cx.rules().limits.data_bytes_max;
        if bytes.len() > max {
            let why = format!(
                "the datagram of {} bytes exceeds the limit of {max} bytes",
                bytes.len()
            );
            self.keep_rejected(cx, &why, bytes);
            return NotificationOutcome::Unusable;
        }
        self.publish_data(cx, (Protocol::Udp, None), bytes);
        NotificationOutcome::Published
    }

    /// A payload that cannot be decoded, if it has to be logged: each with its bytes while the
    /// quota of the device has room, then one a minute without, because a device must not fill the
    /// log.
    fn undecodable<'b>(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &'b [u8],
    ) -> Option<RejectedPayload<'b>> {
        if let Some(bytes) = cx.within_log_quota(bytes) {
            return Some(RejectedPayload {
                bytes: Some(bytes),
                further: FurtherPayloads::Logged,
            });
        }
        let without_bytes = RejectedPayload {
            bytes: None,
            further: FurtherPayloads::OncePerMinute,
        };
        let may_log = self.retained.may_log_unreadable(cx.now());
        may_log.then_some(without_bytes)
    }

    /// A payload that is not accepted, if it has to be logged: one a minute, with its bytes while
    /// the quota of the device has room. The bytes of the others add no information.
    fn rejected<'b>(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &'b [u8],
    ) -> Option<RejectedPayload<'b>> {
        let may_log = self.retained.may_log_unreadable(cx.now());
        may_log.then(|| RejectedPayload {
            bytes: cx.within_log_quota(bytes),
            further: FurtherPayloads::OncePerMinute,
        })
    }

    fn publish_send(&mut self, cx: &mut Context<'_>, samples: Vec<Sample>) -> NotificationOutcome {
        if samples.is_empty() {
            return NotificationOutcome::Empty;
        }
        self.count_further(cx, samples.len());
        let mut paths = samples.iter().map(|sample| sample.path);
        let unknown = paths.find(|path| !cx.codec().knows(*path));
        let measurements = samples::by_time(cx.now(), samples);
        cx.publish_measurements(Cause::Send, measurements);
        // Values of unknown objects are published too, and logged once.
        if let Some(path) = unknown
            && cx.registration.note_unknown_object()
        {
            cx.log(|m, sighting| Entry::unknown_object(m, sighting, &path));
        }
        NotificationOutcome::Published
    }

    fn publish_data(
        &mut self,
        cx: &mut Context<'_>,
        (source, topic): (Protocol, Option<Topic>),
        bytes: &[u8],
    ) {
        self.count_further(cx, bytes.len() / VALUE_BYTES);
        let bytes = bytes.into();
        let data = Data {
            source,
            topic,
            bytes,
        };
        cx.publish(EventContent::Data(Box::new(data)));
    }
}

fn log_rejections(
    cx: &mut Context<'_>,
    due: Option<(RejectedMessage, Option<UnloggedRejections>)>,
) {
    if let Some((rejected, unlogged)) = due {
        cx.log_at(Some(rejected.from), |m, sighting| {
            Entry::message_rejected(m, sighting, &rejected, unlogged)
        });
    }
}

/// What was accepted from a device in the current window, in values. Compact, because every device
/// has one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateWindow {
    /// When the window began, in seconds since 1970.
    began_s: [u8; 4],
    accepted: u16,
}

impl RateWindow {
    /// Accepts this many values, if there is still room for one in a window of `max`.
    pub(super) fn take(&mut self, now: Timestamp, values: u16, max: u16) -> bool {
        let (now_s, began_s) = (now.as_short_s(), u32::from_be_bytes(self.began_s));
        let is_under_way = now_s >= began_s && now_s - began_s < RATE_WINDOW_S;
        if !is_under_way {
            *self = Self {
                began_s: now_s.to_be_bytes(),
                accepted: 0,
            };
        }
        let is_room = self.accepted < max;
        if is_room {
            self.accepted = self.accepted.saturating_add(values);
        }
        is_room
    }
}

/// The answer to a payload that cannot be decoded. An unsupported format is no case of its own
/// (4.15): no device sends the same again in another format.
fn code_for(why: Undecodable) -> Code {
    match why {
        Undecodable::TooMany => Code::REQUEST_ENTITY_TOO_LARGE,
        Undecodable::UnsupportedFormat(_)
        | Undecodable::OneValue(_)
        | Undecodable::Nameless(_)
        | Undecodable::NoFormat
        | Undecodable::Malformed(_)
        | Undecodable::MalformedTlv(_)
        | Undecodable::MalformedSamples { .. } => Code::BAD_REQUEST,
    }
}
