//! What is every part of a device given in a step? Time and entropy, the policy, the effects, and
//! the part that all others depend on: identity and registration.

use protocol::coap::dedup::MessageMark;
use protocol::coap::message::{Message, MessageId};

use crate::action::Protocol;
use crate::admin_log::entry::{DeviceSighting, Entry};
use crate::bootstrap::BootstrapRecord;
use crate::change::Change;
use crate::device::codec::Codec;
use crate::device::reachability::Reachability;
use crate::device::registration::RegistrationState;
use crate::device::samples::Measurement;
use crate::device::update::OngoingUpdate;
use crate::effect::{Effect, Effects};
use crate::event::{Cause, DeviceInfo, Event, EventContent, Lifecycle, Telemetry};
use crate::ids::EventId;
use crate::limits::LOG_PAYLOAD_BYTES_MAX;
use crate::moment::{Moment, Timestamp};
use crate::peer::Peer;
use crate::policy::{CustomerPolicy, Wanted};
use crate::rules::Rules;
use crate::step_event::StepEventKind;

/// What a step is given.
pub(super) struct Context<'s> {
    pub(super) m: &'s mut Moment,
    pub(super) out: &'s mut Effects,
    pub(super) policy: &'s CustomerPolicy,
    pub(super) next_message_id: &'s mut u16,
    pub(super) registration: &'s mut RegistrationState,
    /// The firmware update of the device, while a campaign updates it; stored with the record.
    pub(super) update: &'s mut Option<Box<OngoingUpdate>>,
    /// The message whose data are published, if it can be recognised after a restart.
    pub(super) reporting: Option<MessageMark>,
}

impl<'s> Context<'s> {
    pub(super) fn now(&self) -> Timestamp {
        self.m.now()
    }

    pub(super) fn rules(&self) -> &'s Rules {
        &self.policy.rules
    }

    pub(super) fn reachability(&self) -> Reachability<'_> {
        Reachability::of(self.registration, &self.policy.rules)
    }

    pub(super) fn codec(&self) -> Codec<'_> {
        Codec::of(self.registration, &self.policy.catalog)
    }

    /// The next message id of the service towards the device (RFC 7252 section 4.4).
    pub(super) fn message_id(&mut self) -> MessageId {
        let id = MessageId(*self.next_message_id);
        *self.next_message_id = self.next_message_id.wrapping_add(1);
        id
    }

    pub(super) fn send(&mut self, to: Peer, message: &Message) {
        self.out.send(to, message.encode());
    }

    /// Reports an event that has no call behind it.
    pub(super) fn note(&mut self, what: StepEventKind) {
        self.out.note(None, what);
    }

    /// The bytes of a rejected payload, if the quota of the device has room to store them in the
    /// log.
    pub(super) fn within_log_quota<'b>(&mut self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let (now, max) = (self.m.now(), self.rules().limits.log_payload_bytes_per_day);
        let stored = bytes.len().min(LOG_PAYLOAD_BYTES_MAX);
        let has_room = self.registration.use_log_quota(now, stored, max);
        has_room.then_some(bytes)
    }

    /// Writes an entry into the customer's log, with the address of the device's last message. An
    /// error entry is also published.
    pub(super) fn log(&mut self, entry: impl FnOnce(&mut Moment, DeviceSighting<'_>) -> Entry) {
        self.log_at(self.registration.peer(), entry);
    }

    /// Writes an entry about the device, or a sender that claims to be the device, at a peer.
    pub(super) fn log_at(
        &mut self,
        peer: Option<Peer>,
        entry: impl FnOnce(&mut Moment, DeviceSighting<'_>) -> Entry,
    ) {
        let identity = self.registration.identity();
        let key = self.registration.key();
        let at = peer.map(|peer| peer.ip());
        let entry = entry(self.m, DeviceSighting { key, identity, at });
        let event = Event::of_entry(self.m, &entry, identity);
        self.out.push(Effect::Log(Box::new(entry)));
        if let Some(event) = event {
            self.save(Change::AppendEvent(Box::new(event)));
        }
    }

    /// Notes that the device was heard, and publishes what that changes.
    pub(super) fn note_heard(&mut self) {
        let now = self.now();
        let is_back = self
            .registration
            .note_heard(now, self.policy.offline_after_s);
        if is_back {
            self.publish(EventContent::Lifecycle(Lifecycle::Back));
        }
        if self.policy.sleep_events == Wanted::Yes && self.registration.note_awake() {
            self.publish(EventContent::Lifecycle(Lifecycle::Awake));
        }
    }

    /// When the device falls asleep, if somebody wants to know.
    pub(super) fn asleep_at(&self) -> Option<Timestamp> {
        self.reachability().asleep_at(self.policy.sleep_events)
    }

    /// Publishes an event of the device.
    pub(super) fn publish(&mut self, content: EventContent) {
        let identity = self.registration.identity();
        let seen_at = self.registration.peer().map(|peer| peer.ip());
        let device = self.registration.key();
        let id = match self.reporting {
            Some(mark) => EventId::of_message(self.m, device, mark),
            None => EventId::new(self.m.uuid()),
        };
        let event = Event {
            id,
            customer: identity.customer(),
            device,
            device_info: DeviceInfo::of(identity, seen_at.or(identity.ip())),
            at: self.m.now(),
            content,
        };
        self.save(Change::AppendEvent(Box::new(event)));
    }

    /// Publishes values, one event for each time.
    pub(super) fn publish_measurements(&mut self, cause: Cause, measurements: Vec<Measurement>) {
        for measurement in measurements {
            self.publish(EventContent::Telemetry(Telemetry {
                source: Protocol::Lwm2m,
                cause,
                measured_at: measurement.measured_at,
                values: measurement.values.into_iter().collect(),
            }));
        }
    }

    /// Saves how the bootstrap of the device is going.
    pub(super) fn save_bootstrap(&mut self, bootstrap: BootstrapRecord) {
        self.save(Change::PutBootstrap {
            device: self.registration.key(),
            bootstrap: Box::new(bootstrap),
        });
    }

    fn save(&mut self, change: Change) {
        self.out.push(Effect::Save(change));
    }
}
