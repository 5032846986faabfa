//! How devices come back: on demand, after a failure, and all of them when the service starts;
//! and how they go.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use engine::device::Device;
use engine::device::record::Restored;
use engine::ids::DeviceKey;
use engine::registry::AfterPanic;

use super::resident::{Live, Open, Resident, refuse_all};
use super::{Act, Arbiter, Input, Loss, PassedOver, Reply, Turn, Unread};
use crate::disk::Page;

/// How far the background has come with bringing devices back.
#[derive(Default)]
pub(super) struct Starting {
    /// Who moved out since the page under way was asked for: what it says of them is old.
    left: BTreeSet<usize>,
}

impl Arbiter {
    /// Lets a device move out.
    pub(super) fn move_out(&mut self, who: usize, turn: &mut Turn<'_>) {
        self.let_go(who, turn);
        if let Some(starting) = &mut self.starting {
            starting.left.insert(who);
        }
    }

    /// Ends the actor of a device if there is one; returns what waited for it.
    fn let_go(&mut self, who: usize, turn: &mut Turn<'_>) -> VecDeque<Input> {
        match std::mem::replace(&mut self.residents[who], Resident::Away) {
            Resident::Live(mut live) => {
                let (key, registered) = (self.directory.keys[who], live.device.bound_peer());
                self.router.abandon(key, &mut live.said);
                turn.acts.push(Act::MovedOut { who, registered });
                live.mailbox
            }
            Resident::Away | Resident::Restoring { .. } | Resident::Parked => VecDeque::new(),
        }
    }

    /// Brings a device back from the disk; its inputs wait meanwhile.
    pub(super) fn restore(&mut self, who: usize, turn: &mut Turn<'_>) {
        let fetch = turn.number();
        self.residents[who] = Resident::Restoring {
            fetch,
            waiting: VecDeque::new(),
        };
        turn.acts.push(Act::Fetch { who, fetch });
    }

    /// Brings back, page by page, every device at home here that is live.
    pub(crate) fn restore_all(&mut self, turn: &mut Turn<'_>) {
        self.starting = Some(Starting::default());
        self.restore_from(*self.homes.keys(self.here).start(), turn);
    }

    pub(crate) fn restore_from(&mut self, first: DeviceKey, turn: &mut Turn<'_>) {
        if let Some(starting) = &mut self.starting {
            starting.left.clear();
        }
        let keys = first..=*self.homes.keys(self.here).end();
        turn.acts.push(Act::AskPage { keys });
    }

    /// Takes a page of devices that were live when it was read, or that there is none for now.
    pub(crate) fn take_page(
        &mut self,
        first: DeviceKey,
        page: Result<Page, Unread>,
        turn: &mut Turn<'_>,
    ) {
        let Ok(page) = page else {
            return turn.acts.push(Act::AskPageSoon { first });
        };
        for (who, restored) in page.devices {
            let Some(starting) = &self.starting else {
                return;
            };
            // Whoever was here meanwhile knows more than the page.
            if !matches!(self.residents[who], Resident::Away) {
                let why = PassedOver::Here;
                turn.acts.push(Act::PassedOver { who, why });
            } else if starting.left.contains(&who) {
                let why = PassedOver::Left;
                turn.acts.push(Act::PassedOver { who, why });
            } else {
                self.start_device(who, restored, VecDeque::new(), turn);
            }
        }
        match page.next {
            Some(next) => self.restore_from(next, turn),
            None => {
                self.starting = None;
                turn.acts.push(Act::Started);
            }
        }
    }

    /// The time has come to bring a device back whose step was not saved.
    pub(crate) fn restore_if_away(&mut self, who: usize, turn: &mut Turn<'_>) {
        self.soon.remove(&who);
        if matches!(self.residents[who], Resident::Away) {
            self.restore(who, turn);
        }
    }

    /// Whether this reading of the disk is still waited for.
    pub(crate) fn awaits(&self, who: usize, fetch: u64) -> bool {
        matches!(&self.residents[who], Resident::Restoring { fetch: found, .. } if *found == fetch)
    }

    /// Begins the actor of a device with what the disk kept of it, if it did.
    pub(crate) fn revive(
        &mut self,
        who: usize,
        found: Result<Option<Restored>, Unread>,
        turn: &mut Turn<'_>,
    ) {
        let Resident::Restoring { waiting, .. } = &mut self.residents[who] else {
            panic!("only who is waited for comes back");
        };
        let waiting = std::mem::take(waiting);
        match found {
            Ok(Some(restored)) => self.start_device(who, restored, waiting, turn),
            Ok(None) => {
                self.move_out(who, turn);
                refuse_all(who, waiting, Loss::Unknown, turn);
            }
            Err(Unread) => {
                refuse_all(who, waiting, Loss::Abandoned, turn);
                self.restore_soon(who, turn);
            }
        }
    }

    fn start_device(
        &mut self,
        who: usize,
        restored: Restored,
        waiting: VecDeque<Input>,
        turn: &mut Turn<'_>,
    ) {
        turn.acts.push(Act::Restored {
            who,
            restored: Box::new(restored.clone()),
        });
        let mut m = turn.moment();
        let device = Device::restore(&mut m, Arc::clone(&self.terms), restored);
        let bound = device.bound_peer();
        let mut live = Box::new(Live::new(device));
        live.mailbox = waiting;
        live.arm(who, turn);
        self.residents[who] = Resident::Live(live);
        if bound.is_some() {
            self.rebind(who, bound, bound);
        }
        self.take_next(who, turn);
        self.move_out_if_idle(who, turn);
    }

    fn restore_soon(&mut self, who: usize, turn: &mut Turn<'_>) {
        self.move_out(who, turn);
        self.soon.insert(who);
        turn.acts.push(Act::RestoreSoon { who });
    }

    /// A step was not saved: nothing of it happened, and the device is brought back a little
    /// later. What waited for the actor dies with it.
    pub(super) fn give_up(&mut self, who: usize, open: Open, turn: &mut Turn<'_>) {
        let call = open.answer.map(|(call, _)| call);
        self.drop_actor(who, call, turn);
        self.restore_soon(who, turn);
    }

    /// The actor of a device panics: its buffer of effects, its machine and its mailbox are gone.
    pub(super) fn fall(&mut self, who: usize, call: Option<u64>, turn: &mut Turn<'_>) {
        self.drop_actor(who, call, turn);
        let after = self.panics[who].note(turn.now);
        let parked = after == AfterPanic::Park;
        turn.acts.push(Act::Fell { who, parked });
        match after {
            AfterPanic::Restore => self.restore(who, turn),
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
        let waiting = self.let_go(who, turn);
        refuse_all(who, waiting, Loss::Abandoned, turn);
    }
}
