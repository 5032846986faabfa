//! What a device said or did, told on: to its history, and so to whoever reads or is sent it.

use crate::action::{Action, Protocol};
use crate::admin_log::entry::{Entry, Seen};
use crate::change::Change;
use crate::device::Device;
use crate::device::samples::Measurement;
use crate::effect::{Effect, Effects};
use crate::event::{Cause, Conclusion, Event, Happening, Lifecycle, Speaker, Telemetry};
use crate::ids::EventId;
use crate::limits::UNREADABLE_LOG_MS;
use crate::moment::{Moment, Timestamp};
use crate::peer::Peer;
use crate::terms::Wanted;

impl Device {
    /// Tells values, those of each time for themselves.
    pub(super) fn tell_measurements(
        &self,
        m: &mut Moment,
        cause: Cause,
        measurements: Vec<Measurement>,
        out: &mut Effects,
    ) {
        for told in measurements {
            let telemetry = Telemetry {
                source: Protocol::Lwm2m,
                cause,
                measured_at: told.measured_at,
                values: told.values.into_iter().collect(),
            };
            self.tell(m, Happening::Telemetry(telemetry), out);
        }
    }

    /// Writes an entry into the customer's log. What failed is told on, too.
    pub(super) fn log(&self, m: &mut Moment, entry: Entry, out: &mut Effects) {
        let told = Event::of_entry(m, &entry, &self.identity);
        out.push(Effect::Log(Box::new(entry)));
        if let Some(event) = told {
            out.push(Effect::Save(Change::AppendEvent(Box::new(event))));
        }
    }

    /// Keeps bytes that cannot be read, but not each time: a device must not fill the log.
    pub(super) fn keep_unreadable(
        &mut self,
        m: &mut Moment,
        why: &str,
        bytes: &[u8],
        out: &mut Effects,
    ) {
        if self.may_log_unreadable(m.now()) {
            let entry = Entry::undecodable_payload(m, self.seen_at(self.record.peer), why, bytes);
            self.log(m, entry, out);
        }
    }

    /// Keeps data that is about nothing, but not each time.
    pub(super) fn log_invalid_topic(
        &mut self,
        m: &mut Moment,
        why: &str,
        bytes: &[u8],
        out: &mut Effects,
    ) {
        if self.may_log_unreadable(m.now()) {
            let entry = Entry::invalid_topic(m, self.seen_at(self.record.peer), why, bytes);
            self.log(m, entry, out);
        }
    }

    /// Whether bytes that cannot be taken are logged, which they are then.
    fn may_log_unreadable(&mut self, now: Timestamp) -> bool {
        let logged_at = &mut self.busy.get_or_insert_default().unreadable_logged_at;
        if logged_at.is_some_and(|at| (0..UNREADABLE_LOG_MS).contains(&now.since_ms(at))) {
            return false;
        }
        *logged_at = Some(now);
        self.linger(now.plus_ms(UNREADABLE_LOG_MS));
        true
    }

    /// Takes account of values beyond the first, which let the others in.
    pub(super) fn count_further(&mut self, now: Timestamp, values: usize) {
        let further = u16::try_from(values).unwrap_or(u16::MAX).saturating_sub(1);
        self.pace.take(now, further);
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

    /// Tells that a request of a caller is final, if anybody wants to know.
    pub(super) fn tell_concluded(&self, m: &mut Moment, action: &Action, out: &mut Effects) {
        match self.terms.results {
            Wanted::No => {}
            Wanted::Yes => {
                let conclusion = Conclusion {
                    action: action.id,
                    protocol: action.protocol(),
                    status: action.status,
                    outcome: action.outcome.clone(),
                };
                self.tell(m, Happening::Concluded(Box::new(conclusion)), out);
            }
        }
    }

    pub(super) fn tell(&self, m: &mut Moment, happening: Happening, out: &mut Effects) {
        let seen_at = self.record.peer.map(|peer| peer.ip());
        let event = Event {
            id: EventId::new(m.uuid()),
            customer: self.identity.customer(),
            device: self.key(),
            speaker: Speaker::of(&self.identity, seen_at.or(self.identity.ip())),
            at: m.now(),
            happening,
        };
        out.push(Effect::Save(Change::AppendEvent(Box::new(event))));
    }
}
