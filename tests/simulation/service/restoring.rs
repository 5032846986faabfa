//! How devices come back: on demand, after a failure, and all of them when the service starts;
//! and how they go.

use std::collections::VecDeque;
use std::sync::Arc;

use engine::device::Device;
use engine::device::record::Restored;
use engine::registry::AfterPanic;

use super::resident::{Live, Open, Resident, turn_away};
use super::{Act, Reply, Service, Turn, moment};

impl Service {
    /// Starts the service; the devices in the list are brought back in the background.
    pub(crate) fn start(&mut self, live: impl Iterator<Item = usize>, turn: &mut Turn<'_>) {
        self.run += 1;
        self.is_up = true;
        for (place, who) in (0..).zip(live) {
            self.restore(who, place, turn);
        }
    }

    /// Ends the service in the middle of everything: all that is not on the disk is gone.
    pub(crate) fn crash(&mut self) {
        self.is_up = false;
        self.who_by_peer.clear();
        self.curse = None;
        for resident in &mut self.residents {
            *resident = Resident::Away;
        }
        self.panics
            .iter_mut()
            .for_each(|panics| *panics = Default::default());
    }

    /// Brings a device back from the disk; its inputs wait meanwhile.
    pub(super) fn restore(&mut self, who: usize, after_ms: i64, turn: &mut Turn<'_>) {
        self.fetches += 1;
        let fetch = self.fetches;
        self.residents[who] = Resident::Restoring {
            fetch,
            waiting: VecDeque::new(),
        };
        turn.acts.push(Act::Fetch {
            who,
            fetch,
            after_ms,
        });
    }

    pub(crate) fn restore_if_away(&mut self, who: usize, turn: &mut Turn<'_>) {
        if matches!(self.residents[who], Resident::Away) {
            self.restore(who, 0, turn);
        }
    }

    /// Whether this reading of the disk is still waited for.
    pub(crate) fn awaits(&self, who: usize, fetch: u64) -> bool {
        matches!(&self.residents[who], Resident::Restoring { fetch: found, .. } if *found == fetch)
    }

    /// Begins the actor of a device with what the disk kept of it.
    pub(crate) fn revive(&mut self, who: usize, restored: Restored, turn: &mut Turn<'_>) {
        let pending = restored.pending.iter().map(|action| action.id).collect();
        let mut m = moment(turn);
        let device = Device::restore(&mut m, Arc::clone(&self.rules), restored);
        if let Some(peer) = device.bound_peer() {
            self.rebind(who, None, Some(peer));
        }
        turn.acts.push(Act::Restored { who, pending });
        let mut live = Box::new(Live::new(device));
        let before = std::mem::replace(&mut self.residents[who], Resident::Away);
        if let Resident::Restoring { waiting, .. } = before {
            live.mailbox = waiting;
        }
        live.arm(who, turn);
        self.residents[who] = Resident::Live(live);
        self.take_next(who, turn);
    }

    /// A step was not saved: nothing of it happened, and the device is brought back a little
    /// later. What waited for the actor dies with it.
    pub(super) fn give_up(&mut self, who: usize, open: Open, turn: &mut Turn<'_>) {
        let call = open.answer.map(|(call, _)| call);
        self.drop_actor(who, call, turn);
        turn.acts.push(Act::RestoreSoon { who });
    }

    /// The actor of a device panics: its buffer of effects, its machine and its mailbox are gone.
    pub(super) fn fall(&mut self, who: usize, call: Option<u64>, turn: &mut Turn<'_>) {
        self.drop_actor(who, call, turn);
        let after = self.panics[who].note(turn.now);
        let parked = after == AfterPanic::Park;
        turn.acts.push(Act::Fell { who, parked });
        match after {
            AfterPanic::Restore => self.restore(who, 0, turn),
            AfterPanic::Park => self.residents[who] = Resident::Parked,
        }
    }

    fn drop_actor(&mut self, who: usize, call: Option<u64>, turn: &mut Turn<'_>) {
        if let Some(call) = call {
            turn.acts.push(Act::Reply {
                call,
                step: None,
                reply: Reply::Unserved,
            });
        }
        let before = std::mem::replace(&mut self.residents[who], Resident::Away);
        if let Resident::Live(live) = before {
            for input in live.mailbox {
                turn_away(input, turn);
            }
        }
    }
}
