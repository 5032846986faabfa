//! Which paths are observed, and which notifications are due? (RFC 7641 section 4, LwM2M Core 1.1
//! section 6.4)
//!
//! The last notified value is compared with the current one; if they differ, a notification is due.
//! A notification that is not acknowledged yet delays the next one.

use std::collections::BTreeMap;

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::exchange::Exchange;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use protocol::lwm2m::attributes::AttributeName;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;

use super::answers::repeat;
use super::configuration::Notify;
use super::event::{DeviceEvent, DeviceOutput, Uplink};
use super::outcome::ResponseContent;
use super::resources::Resources;
use super::{SimulatedDevice, blocks};

/// The maximum number of observed paths: far more than a small device has memory for. Beyond it a
/// request to observe is answered like a read (section 4.1).
const OBSERVATIONS_MAX: usize = 64;

/// The bits of a sequence number.
const SEQUENCE_MASK: u32 = 0xFF_FFFF;

/// All observations.
#[derive(Clone, Debug, Default)]
pub(super) struct Observations {
    entries: Vec<Observation>,
    /// The sequence number of the last notification of any observation.
    sequence: u32,
}

#[derive(Clone, Debug)]
struct Observation {
    token: Token,
    paths: Box<[Path]>,
    /// Whether it is of several paths, of which there may be one.
    is_composite: bool,
    accept: Option<ContentFormat>,
    /// The conditions in the request; those that were written to the path apply, too.
    attributes: BTreeMap<AttributeName, f64>,
    notified: ResponseContent,
    notified_at_ms: i64,
    /// The number that was notified, if it is one.
    number: Option<f64>,
    pending: Option<ResponseContent>,
    /// The message id of the last notification, which a Reset would have.
    message_id: Option<MessageId>,
    /// The notification whose acknowledgement is awaited.
    open: Option<Exchange>,
}

impl SimulatedDevice {
    /// Sends the notifications that are due.
    pub(super) fn notify(&mut self, now_ms: i64, out: &mut Vec<DeviceOutput>) {
        self.session
            .observations
            .notify_again(now_ms, &self.resources);
        let Observations { entries, sequence } = &mut self.session.observations;
        let kind = match self.configuration.notify {
            Notify::Confirmable => MessageKind::Confirmable,
            Notify::NonConfirmable => MessageKind::NonConfirmable,
        };
        entries.retain_mut(|observation| {
            let Some(pending) = observation.take_pending(now_ms, &self.resources) else {
                return true;
            };
            // An error is notified once, and ends the observation (section 4.2).
            let goes_on = pending.code.is_success();
            let message_id = self.session.message_ids.take();
            let observe = goes_on.then(|| next(sequence));
            let outcome = ResponseContent { observe, ..pending };
            let message = Message::separate(kind, outcome.code, message_id, observation.token);
            let message = blocks::begin(outcome.fill(message), self.configuration.block);
            out.push(DeviceOutput::Send(message.encode()));
            out.push(match goes_on {
                true => observation.notified(),
                false => observation.ended(),
            });
            observation.message_id = Some(message_id);
            observation.open = (kind == MessageKind::Confirmable).then(|| {
                let transmission = &self.configuration.transmission;
                Exchange::begin(now_ms, transmission, &message, self.rng.number_u32())
            });
            goes_on
        });
    }
}

impl Observations {
    /// Starts an observation with the response to its request, and replaces others of that token or
    /// path. Returns the sequence number of the response; None beyond the maximum.
    pub(super) fn begin(
        &mut self,
        now_ms: i64,
        request: &Message,
        (paths, resources): (&[Path], &Resources),
        content: &ResponseContent,
    ) -> Option<u32> {
        self.entries
            .retain(|other| other.token != request.token && *other.paths != *paths);
        if self.entries.len() >= OBSERVATIONS_MAX {
            return None;
        }
        let one = paths.first().copied().filter(|_| paths.len() == 1);
        let attributes = one.and_then(|path| resources.attributes_in(request, path).ok());
        let attributes = attributes.unwrap_or_default();
        let given = attributes.iter().filter_map(|it| {
            let value = it.value.as_ref()?.parse().ok()?;
            Some((it.name, value))
        });
        self.entries.push(Observation {
            token: request.token,
            paths: paths.into(),
            is_composite: request.code == Code::FETCH,
            accept: request.accept(),
            attributes: given.collect(),
            notified: content.clone(),
            notified_at_ms: now_ms,
            number: one.and_then(|path| number_at(resources, path)),
            pending: None,
            message_id: None,
            open: None,
        });
        Some(next(&mut self.sequence))
    }

    /// Ends the observation of some paths, if it has this token.
    pub(super) fn end(&mut self, token: Token, paths: &[Path]) {
        self.entries
            .retain(|other| other.token != token || *other.paths != *paths);
    }

    /// Ends all observations silently.
    pub(super) fn forget(&mut self) {
        self.entries.clear();
    }

    /// Compares the observed values with those notified last.
    pub(super) fn look(&mut self, resources: &Resources) {
        for observation in &mut self.entries {
            let current = observation.current(resources);
            let is_worth = current != observation.notified && observation.is_worth(resources);
            observation.pending = is_worth.then_some(current);
        }
    }

    /// Has values notified whose longest period is over.
    fn notify_again(&mut self, now_ms: i64, resources: &Resources) {
        for observation in &mut self.entries {
            let again_at_ms = observation.period_ends_at(AttributeName::MaximumPeriod, resources);
            if again_at_ms.is_some_and(|at_ms| at_ms <= now_ms) && observation.pending.is_none() {
                observation.pending = Some(observation.current(resources));
            }
        }
    }

    /// When the next notification is due that waits for a time.
    pub(super) fn notifies_at(&self, resources: &Resources) -> Option<i64> {
        let at_ms = |observation: &Observation| {
            let period = match observation.has_pending() {
                true => AttributeName::MinimumPeriod,
                false => AttributeName::MaximumPeriod,
            };
            let is_idle = observation.open.is_none();
            let ends_at = observation.period_ends_at(period, resources);
            ends_at.filter(|_| is_idle)
        };
        self.entries.iter().filter_map(at_ms).min()
    }

    /// Handles the answer to a notification; returns whether the message is one.
    pub(super) fn handle(&mut self, message: &Message, out: &mut Vec<DeviceOutput>) -> bool {
        let is_about = |it: &Observation| it.message_id == Some(message.message_id);
        let Some(place) = self.entries.iter().position(is_about) else {
            return false;
        };
        match message.kind {
            MessageKind::Acknowledgement => {
                let observation = self.entries.get_mut(place);
                observation.is_some_and(|observation| observation.open.take().is_some())
            }
            MessageKind::Reset => {
                let observation = self.entries.remove(place);
                out.push(observation.ended());
                true
            }
            MessageKind::Confirmable | MessageKind::NonConfirmable => false,
        }
    }

    /// Retransmits unacknowledged notifications; one that is given up ends its observation.
    pub(super) fn handle_timeout(&mut self, now_ms: i64, out: &mut Vec<DeviceOutput>) {
        self.entries.retain_mut(|observation| {
            let Some(exchange) = &mut observation.open else {
                return true;
            };
            let goes_on = repeat(exchange, now_ms, Uplink::Notification, out);
            if !goes_on {
                out.push(observation.ended());
            }
            goes_on
        });
    }

    /// Abandons the notifications in flight.
    pub(super) fn abandon(&mut self) {
        for observation in &mut self.entries {
            observation.open = None;
        }
    }

    /// When a notification is retransmitted or given up.
    pub(super) fn next_timeout(&self) -> Option<i64> {
        let open = self.entries.iter().filter_map(|it| it.open.as_ref());
        open.map(Exchange::next_timeout).min()
    }

    /// Whether a notification is due at once.
    pub(super) fn has_pending(&self, resources: &Resources) -> bool {
        let is_due = |it: &Observation| {
            let waits = it.period_ends_at(AttributeName::MinimumPeriod, resources);
            it.has_pending() && waits.is_none()
        };
        self.entries.iter().any(is_due)
    }

    /// Whether a notification waits for its acknowledgement.
    pub(super) fn is_waiting(&self) -> bool {
        self.entries.iter().any(|it| it.open.is_some())
    }
}

impl Observation {
    fn has_pending(&self) -> bool {
        self.pending.is_some() && self.open.is_none()
    }

    /// Takes the value to notify, which then counts as notified, unless its shortest period lasts.
    fn take_pending(&mut self, now_ms: i64, resources: &Resources) -> Option<ResponseContent> {
        let waits = self.period_ends_at(AttributeName::MinimumPeriod, resources);
        if !self.has_pending() || waits.is_some_and(|at_ms| now_ms < at_ms) {
            return None;
        }
        let pending = self.pending.take()?;
        self.notified = pending.clone();
        self.notified_at_ms = now_ms;
        self.number = self.one().and_then(|path| number_at(resources, path));
        Some(pending)
    }

    fn current(&self, resources: &Resources) -> ResponseContent {
        match (self.one(), self.accept) {
            (Some(path), accept) if !self.is_composite => resources.read(path, accept),
            (_, Some(accept)) => resources.read_several(&self.paths, accept),
            (_, None) => ResponseContent::of(Code::NOT_ACCEPTABLE),
        }
    }

    /// Whether a change meets a condition on the value, if there is any (LwM2M Core 1.2 section
    /// 7.3.2).
    fn is_worth(&self, resources: &Resources) -> bool {
        let attributes = self.attributes(resources);
        let of = |name: AttributeName| attributes.get(&name).copied();
        let conditions = [
            of(AttributeName::GreaterThan),
            of(AttributeName::LessThan),
            of(AttributeName::Step),
            of(AttributeName::Edge),
        ];
        let now = self.one().and_then(|path| number_at(resources, path));
        let (Some(before), Some(now)) = (self.number, now) else {
            return true;
        };
        let [greater, less, step, edge] = conditions;
        let crosses = |bound: f64| (before > bound) != (now > bound);
        conditions.iter().all(Option::is_none)
            || greater.is_some_and(crosses)
            || less.is_some_and(crosses)
            || step.is_some_and(|step| (now - before).abs() >= step)
            || edge.is_some_and(|edge| before != now && now == edge)
    }

    fn period_ends_at(&self, name: AttributeName, resources: &Resources) -> Option<i64> {
        let period_s = self.attributes(resources).get(&name).copied()?;
        Some(
            self.notified_at_ms
                .saturating_add((period_s * 1_000.0) as i64),
        )
    }

    fn attributes(&self, resources: &Resources) -> BTreeMap<AttributeName, f64> {
        let written = self.one().map(|path| resources.attributes_of(path));
        let mut attributes = written.unwrap_or_default();
        attributes.extend(&self.attributes);
        attributes
    }

    /// The observed path, if it is one.
    fn one(&self) -> Option<Path> {
        match *self.paths {
            [path] => Some(path),
            _ => None,
        }
    }

    /// The path in events: of several, the first.
    fn path(&self) -> Path {
        self.paths.first().copied().unwrap_or(Path::object(0))
    }

    fn notified(&self) -> DeviceOutput {
        DeviceOutput::Report(DeviceEvent::Notified { path: self.path() })
    }

    fn ended(&self) -> DeviceOutput {
        DeviceOutput::Report(DeviceEvent::ObservationEnded { path: self.path() })
    }
}

/// The value of a resource as a number, if it is one.
fn number_at(resources: &Resources, path: Path) -> Option<f64> {
    match resources.value(path)? {
        Value::Boolean(truth) => Some(f64::from(u8::from(*truth))),
        Value::Float(number) => Some(*number),
        Value::Integer(number) | Value::Time(number) => Some(*number as f64),
        Value::UnsignedInteger(number) => Some(*number as f64),
        Value::CoreLink(_) | Value::ObjectLink(_) | Value::Opaque(_) | Value::String(_) => None,
    }
}

fn next(sequence: &mut u32) -> u32 {
    *sequence = sequence.wrapping_add(1) & SEQUENCE_MASK;
    *sequence
}

#[cfg(test)]
mod tests {
    use super::{SEQUENCE_MASK, next};

    #[test]
    fn sequence_numbers_wrap_after_24_bits() {
        let mut sequence = SEQUENCE_MASK - 1;
        let numbers = [
            next(&mut sequence),
            next(&mut sequence),
            next(&mut sequence),
        ];
        assert_eq!(numbers, [SEQUENCE_MASK, 0, 1]);
    }
}
