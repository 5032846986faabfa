//! Which paths are observed, and which notifications are due? (RFC 7641 section 4, LwM2M Core 1.1
//! section 6.4)
//!
//! The last notified value is compared with the current one; if they differ, a notification is due.
//! A notification that is not acknowledged yet delays the next one.

use protocol::coap::content::ContentFormat;
use protocol::coap::exchange::Exchange;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use protocol::lwm2m::path::Path;

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
    path: Path,
    accept: Option<ContentFormat>,
    notified: ResponseContent,
    pending: Option<ResponseContent>,
    /// The message id of the last notification, which a Reset would have.
    message_id: Option<MessageId>,
    /// The notification whose acknowledgement is awaited.
    open: Option<Exchange>,
}

impl SimulatedDevice {
    /// Sends the notifications that are due.
    pub(super) fn notify(&mut self, now_ms: i64, out: &mut Vec<DeviceOutput>) {
        let Observations { entries, sequence } = &mut self.session.observations;
        let kind = match self.configuration.notify {
            Notify::Confirmable => MessageKind::Confirmable,
            Notify::NonConfirmable => MessageKind::NonConfirmable,
        };
        entries.retain_mut(|observation| {
            let Some(pending) = observation.take_pending() else {
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
        request: &Message,
        path: Path,
        content: &ResponseContent,
    ) -> Option<u32> {
        self.entries
            .retain(|other| other.token != request.token && other.path != path);
        if self.entries.len() >= OBSERVATIONS_MAX {
            return None;
        }
        self.entries.push(Observation {
            token: request.token,
            path,
            accept: request.accept(),
            notified: content.clone(),
            pending: None,
            message_id: None,
            open: None,
        });
        Some(next(&mut self.sequence))
    }

    /// Ends the observation of a path, if it has this token.
    pub(super) fn end(&mut self, token: Token, path: Path) {
        self.entries
            .retain(|other| other.token != token || other.path != path);
    }

    /// Ends all observations silently.
    pub(super) fn forget(&mut self) {
        self.entries.clear();
    }

    /// Compares the observed values with those notified last.
    pub(super) fn look(&mut self, resources: &Resources) {
        for observation in &mut self.entries {
            let current = resources.read(observation.path, observation.accept);
            observation.pending = (current != observation.notified).then_some(current);
        }
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

    /// Whether a notification is due.
    pub(super) fn has_pending(&self) -> bool {
        self.entries.iter().any(Observation::has_pending)
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

    /// Takes the value to notify, which then counts as notified.
    fn take_pending(&mut self) -> Option<ResponseContent> {
        if !self.has_pending() {
            return None;
        }
        let pending = self.pending.take()?;
        self.notified = pending.clone();
        Some(pending)
    }

    fn notified(&self) -> DeviceOutput {
        DeviceOutput::Report(DeviceEvent::Notified { path: self.path })
    }

    fn ended(&self) -> DeviceOutput {
        DeviceOutput::Report(DeviceEvent::ObservationEnded { path: self.path })
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
