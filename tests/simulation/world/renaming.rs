//! Customers change the addresses of devices, and the service has to apply the changes.

use engine::arbiter::input::DeviceCommand;
use engine::supervision::Unserved;

use super::World;
use crate::event::Event;
use crate::service::{ArbiterRun, Reply};
use crate::trace::TraceEvent;

/// After this time a device is asked again to read its profile.
const TELL_AGAIN_MS: i64 = 100;

impl World {
    /// Changes the address of a device and of its profile, and asks the device to read the profile.
    /// While the service is down no change is possible.
    pub(crate) fn readdress(&mut self, who: usize) {
        if !self.service.is_up() || !self.disk.durable.exists(who) || self.is_sharing(who) {
            return;
        }
        let Some(ip) = self.fleet.readdress(who, &mut self.rng) else {
            return;
        };
        self.note(TraceEvent::Device {
            who,
            does: "has another address",
        });
        self.disk.durable.amend(who, ip);
        self.unread_profiles[who] += 1;
        self.ask(who, DeviceCommand::ReadProfile);
    }

    pub(super) fn read_names(&mut self, at: ArbiterRun, who: usize, step: u64) {
        let at_ms = self.now_ms + self.read_ms();
        self.queue.push(at_ms, Event::NamesRead { at, who, step });
    }

    pub(super) fn names_read(&mut self, at: ArbiterRun, who: usize, step: u64) {
        let names = self.disk.durable.profile(who).clone();
        self.serve(at, |arbiter, turn| {
            arbiter.take_names(who, step, &names, turn);
        });
    }

    /// If the device could not read its profile, it is asked again: the change is durable.
    pub(super) fn profile_reply(&mut self, who: usize, reply: &Reply) {
        if let Err(Unserved::Busy | Unserved::Failed) = reply {
            let run = self.service.run();
            let at_ms = self.now_ms + TELL_AGAIN_MS;
            self.queue.push(at_ms, Event::ProfileUnread { who, run });
        } else {
            self.unread_profiles[who] -= 1;
        }
    }

    pub(super) fn profile_unread(&mut self, who: usize, run: u64) {
        if self.service.is_up_since(run) {
            self.ask(who, DeviceCommand::ReadProfile);
        }
    }
}
