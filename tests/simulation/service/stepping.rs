//! How a device's actor performs a step.
//!
//! A step that saved waits for its receipt before anything else of it happens; the device's next
//! inputs wait with it, other devices do not. If the step was not saved, the device says nothing
//! and is brought back from the disk.

use std::sync::Arc;

use engine::change::Owner;
use engine::effect::{Departure, Effects, Speech};
use engine::peer::Peer;
use engine::profile::Profile;

use super::resident::{Open, Resident, Taken};
use super::{Act, Arbiter, Curse, End, Input, Loss, Question, Receipt, Reply, Saves, Took, Turn};
use crate::wire;

impl Arbiter {
    /// Lets the machine take one step.
    pub(super) fn handle(&mut self, who: usize, input: Input, turn: &mut Turn<'_>) {
        if let Input::Asked(call, Question::TakeNewNames) = input {
            return self.read_names(who, call, turn);
        }
        let Resident::Live(live) = &mut self.residents[who] else {
            panic!("only a device that is there takes a step");
        };
        if let Input::Heard(heard) = &input {
            let end = End::Handled { who };
            let number = heard.number;
            turn.acts.push(Act::Ended { number, end });
        }
        if !Arc::ptr_eq(live.device.terms(), &self.terms) {
            live.device.take_terms(Arc::clone(&self.terms));
        }
        let mut m = turn.moment();
        let mut out = Effects::new();
        let taken = live.take(input, &mut m, &mut out);
        if self.is_struck(who, Curse::Deciding) {
            return self.fall(who, taken.answer.map(|(call, _)| call), turn);
        }
        self.settle(who, taken, out, turn);
    }

    /// Asks the disk who a device is; it is the device's turn meanwhile.
    fn read_names(&mut self, who: usize, call: u64, turn: &mut Turn<'_>) {
        let step = turn.number();
        turn.acts.push(Act::ReadNames { who, step });
        if let Resident::Live(live) = &mut self.residents[who] {
            live.open = Some(Open {
                step,
                speeches: Vec::new(),
                answer: Some((call, Reply::Renamed)),
            });
        }
    }

    /// Takes what the disk says of who a device is, if its actor still waits for it.
    pub(crate) fn take_names(
        &mut self,
        who: usize,
        step: u64,
        names: &Profile,
        turn: &mut Turn<'_>,
    ) {
        let Resident::Live(live) = &mut self.residents[who] else {
            return;
        };
        if live.open.as_ref().is_some_and(|open| open.step == step) {
            live.device.adopt(names);
            self.receive(who, step, Receipt::Durable, turn);
        }
    }

    /// Performs a step: what is saved first, then the rest.
    fn settle(&mut self, who: usize, taken: Taken, effects: Effects, turn: &mut Turn<'_>) {
        let Taken { took, answer } = taken;
        let step = turn.number();
        let (sends, throws) = wire::requests_sent(&effects);
        let (batch, speeches) = effects.settle(self.owner(who));
        let saves = match batch.is_empty() {
            true => Saves::Nothing,
            false => Saves::Something,
        };
        turn.acts.push(Act::Decided {
            who,
            took,
            step,
            saves,
            sends,
            throws,
        });
        let open = Open {
            step,
            speeches,
            answer,
        };
        if batch.is_empty() {
            return self.perform(who, open, turn);
        }
        turn.acts.push(Act::Commit { who, step, batch });
        if let Resident::Live(live) = &mut self.residents[who] {
            live.open = Some(open);
        }
    }

    /// Does in order what a step wants done besides saving, then answers who asked.
    fn perform(&mut self, who: usize, open: Open, turn: &mut Turn<'_>) {
        let step = Some(open.step);
        let mut departure = None;
        for speech in open.speeches {
            match speech {
                Speech::Rebind { from, to } => {
                    turn.acts.push(Act::Rebound { who, from, to });
                    self.rebind(who, from, to);
                }
                Speech::Send { to, datagram } => {
                    turn.acts.push(Act::Send {
                        step,
                        who: Some(who),
                        to,
                        datagram,
                    });
                }
                Speech::SendBare { to, bytes } => {
                    let how = turn.departure();
                    departure = Some(how);
                    turn.acts.push(Act::Throw {
                        step: open.step,
                        who,
                        to,
                        bytes,
                        departure: how,
                    });
                }
            }
        }
        if let Some(departure) = departure {
            // Whoever asked was promised an attempt, and not that it succeeds.
            turn.reply(open.answer, step);
            return self.take_departure(who, departure, turn);
        }
        self.rest(who, turn);
        turn.reply(open.answer, step);
    }

    /// Tells the device what became of its bare datagram: a step of its own, of which nothing else
    /// that is for the device comes in between.
    fn take_departure(&mut self, who: usize, departure: Departure, turn: &mut Turn<'_>) {
        let Resident::Live(live) = &mut self.residents[who] else {
            panic!("only a device that is there says something");
        };
        if !Arc::ptr_eq(live.device.terms(), &self.terms) {
            live.device.take_terms(Arc::clone(&self.terms));
        }
        let mut m = turn.moment();
        let mut out = Effects::new();
        live.device.handle_departure(&mut m, departure, &mut out);
        let taken = Taken {
            took: Took::NOTHING,
            answer: None,
        };
        self.settle(who, taken, out, turn);
    }

    pub(super) fn rebind(&mut self, who: usize, from: Option<Peer>, to: Option<Peer>) {
        let Resident::Live(live) = &mut self.residents[who] else {
            panic!("only a device that is there says where it is");
        };
        let key = self.directory.keys[who];
        self.router.rebind(key, from, to, &mut live.said);
    }

    /// The step is done: the device is woken when it is due, and moves out if it was removed.
    fn rest(&mut self, who: usize, turn: &mut Turn<'_>) {
        let Resident::Live(live) = &mut self.residents[who] else {
            panic!("only a device that is there comes to rest");
        };
        if live.is_retired {
            let mailbox = std::mem::take(&mut live.mailbox);
            self.move_out(who, turn);
            super::resident::refuse_all(who, mailbox, Loss::Unknown, turn);
        } else {
            live.arm(who, turn);
            self.move_out_if_idle(who, turn);
        }
    }

    pub(super) fn move_out_if_idle(&mut self, who: usize, turn: &mut Turn<'_>) {
        if let Resident::Live(live) = &self.residents[who]
            && live.open.is_none()
            && live.device.is_idle()
            && live.mailbox.is_empty()
        {
            self.move_out(who, turn);
        }
    }

    /// Takes the receipt of a device's open step.
    pub(crate) fn receive(&mut self, who: usize, step: u64, receipt: Receipt, turn: &mut Turn<'_>) {
        let Resident::Live(live) = &mut self.residents[who] else {
            panic!("a device waits for its receipt");
        };
        let open = live.open.take().expect("a device waits for its receipt");
        assert_eq!(open.step, step, "receipts come in the order of their steps");
        match receipt {
            Receipt::Unsaved => return self.give_up(who, open, turn),
            Receipt::Durable if self.is_struck(who, Curse::Speaking) => {
                return self.fall(who, open.answer.map(|(call, _)| call), turn);
            }
            Receipt::Durable => self.perform(who, open, turn),
        }
        self.take_next(who, turn);
    }

    /// Lets a device take the inputs that waited, up to the next step that has to be saved.
    pub(super) fn take_next(&mut self, who: usize, turn: &mut Turn<'_>) {
        while let Resident::Live(live) = &mut self.residents[who]
            && live.open.is_none()
            && let Some(input) = live.mailbox.pop_front()
        {
            self.handle(who, input, turn);
        }
    }

    fn owner(&self, who: usize) -> Owner {
        Owner::Shard {
            shard: self.directory.keys[who].shard(),
            epoch: self.epoch,
        }
    }

    fn is_struck(&mut self, who: usize, at: Curse) -> bool {
        let Some((cursed, curse, again)) = &mut self.curse else {
            return false;
        };
        if (*cursed, *curse) != (who, at) {
            return false;
        }
        match again {
            0 => self.curse = None,
            1.. => *again -= 1,
        }
        true
    }
}
