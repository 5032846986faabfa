//! What a device said or did, told on: to its history, and so to whoever reads or is sent it.

use protocol::lwm2m::payload::Reading;

use crate::action::Protocol;
use crate::admin_log::entry::Seen;
use crate::change::Change;
use crate::device::Device;
use crate::effect::{Effect, Effects};
use crate::event::{Cause, Event, Happening, Lifecycle, Speaker, Telemetry};
use crate::ids::EventId;
use crate::moment::Moment;
use crate::peer::Peer;

impl Device {
    /// Tells values, if there are any.
    pub(super) fn tell_values(
        &self,
        m: &mut Moment,
        cause: Cause,
        values: Reading,
        out: &mut Effects,
    ) {
        if values.is_empty() {
            return;
        }
        let telemetry = Telemetry {
            source: Protocol::Lwm2m,
            cause,
            measured_at: None,
            values: values.into_iter().collect(),
        };
        self.tell(m, Happening::Telemetry(telemetry), out);
    }

    /// The device as an entry of the log shows it, at the peer it was last seen at.
    pub(super) fn seen_at(&self, peer: Option<Peer>) -> Seen<'_> {
        Seen {
            key: self.key,
            identity: &self.identity,
            at: peer.map(|peer| peer.ip()),
        }
    }

    /// Tells that the device came or went.
    pub(super) fn tell_lifecycle(&self, m: &mut Moment, what: Lifecycle, out: &mut Effects) {
        self.tell(m, Happening::Lifecycle(what), out);
    }

    fn speaker(&self) -> Speaker {
        let seen_at = self.record.peer.map(|peer| peer.ip());
        Speaker {
            device: self.identity.device(),
            iccid: self.identity.iccid(),
            imsi: self.identity.imsi(),
            ip: seen_at.or(self.identity.ip()),
        }
    }

    fn tell(&self, m: &mut Moment, happening: Happening, out: &mut Effects) {
        let event = Event {
            id: EventId::new(m.uuid()),
            customer: self.identity.customer(),
            device: self.key(),
            speaker: self.speaker(),
            at: m.now(),
            happening,
        };
        out.push(Effect::Save(Change::AppendEvent(Box::new(event))));
    }
}
