//! What reaches the service and what it does: every act is seen by the judge before it counts.

use engine::peer::Peer;

use super::World;
use crate::disk::Waiting;
use crate::event::Event;
use crate::laws::{Breach, Decision, Departure};
use crate::service::{Act, Input, Receipt, Reply};
use crate::trace::What;

/// How soon a device whose step was not saved is brought back.
const RESTORE_AFTER_MS: i64 = 1_000;

impl World {
    pub(super) fn reach_service(&mut self, from: Peer, datagram: &[u8]) {
        if !self.service.is_up() {
            return;
        }
        let port = Self::port_of(from);
        self.note(What::ServiceHears {
            port,
            datagram: datagram.into(),
        });
        self.judge.heard(from, datagram);
        self.serve(|service, turn| service.hear(from, datagram, turn));
    }

    pub(super) fn due(&mut self, who: usize, run: u64) {
        if self.service.is_up() && self.service.run() == run {
            self.serve(|service, turn| service.hand(who, Input::Due, turn));
        }
    }

    pub(super) fn fetched(&mut self, who: usize, fetch: u64) {
        if self.service.awaits(who, fetch) {
            let restored = self.disk.durable.restored(who);
            self.serve(|service, turn| service.revive(who, restored, turn));
        }
    }

    pub(super) fn restore_soon(&mut self, who: usize, run: u64) {
        if self.service.is_up() && self.service.run() == run {
            self.serve(|service, turn| service.restore_if_away(who, turn));
        }
    }

    /// The disk is done with its oldest batch, and the receipt goes out.
    pub(super) fn committed(&mut self, run: u64) {
        if self.service.run() != run || !self.service.is_up() {
            return;
        }
        let batch = self
            .disk
            .next_batch()
            .expect("a batch waits for its commit");
        let (who, step) = (batch.who, batch.step);
        let receipt = self.write(batch);
        self.serve(|service, turn| service.receive(who, step, receipt, turn));
    }

    /// Does a batch, unless there was no room for it.
    pub(super) fn write(&mut self, waiting: Waiting) -> Receipt {
        let Waiting {
            who,
            step,
            batch,
            fits,
        } = waiting;
        if !fits {
            self.census.unsaved += 1;
            self.note(What::Unsaved { who, step });
            self.judge.forgotten(step);
            self.judge.machine_is_gone(who);
            return Receipt::Unsaved;
        }
        let moved = match self.disk.durable.apply(batch) {
            Ok(moved) => moved,
            Err(refused) => self.fail(&Breach {
                law: "an_owner_never_conflicts_with_itself",
                what: format!("step {step} of device {who}: {}", refused.0),
            }),
        };
        self.note(What::Durable { who, step });
        for moved in &moved {
            let action = self
                .disk
                .durable
                .action(who, moved.action)
                .expect("it was saved");
            let (status, attempts) = (action.status, action.attempts_made);
            let id = *moved.action.as_bytes();
            self.census.count_outcome(moved, action);
            self.note(What::Saved {
                who,
                action: id,
                status,
                attempts,
            });
        }
        let durable = &self.disk.durable;
        let verdict = self
            .judge
            .became_durable(self.now_ms, step, who, &moved, durable);
        self.check(verdict);
        Receipt::Durable
    }

    pub(super) fn perform(&mut self, act: Act) {
        match act {
            Act::Decided {
                who,
                on,
                step,
                saves,
                begins,
            } => {
                let decision = Decision {
                    at_ms: self.now_ms,
                    who,
                    on,
                    step,
                    saves,
                    begins,
                };
                let verdict = self.judge.decided(decision, &self.disk.durable);
                self.check(verdict);
            }
            Act::Commit { who, step, batch } => self.commit(who, step, batch),
            Act::Send {
                step,
                who,
                to,
                datagram,
            } => self.send(step, who, to, datagram),
            Act::Reply { call, step, reply } => self.reply(call, step, &reply),
            Act::Fetch {
                who,
                fetch,
                after_ms,
            } => {
                let takes_ms = after_ms + i64::from(self.chance.below(20));
                self.queue
                    .push(self.now_ms + takes_ms, Event::Fetched { who, fetch });
            }
            Act::RestoreSoon { who } => {
                let run = self.service.run();
                let at_ms = self.now_ms + RESTORE_AFTER_MS;
                self.queue.push(at_ms, Event::RestoreSoon { who, run });
            }
            Act::Wake { who, at } => {
                let run = self.service.run();
                let at_ms = at.as_ms().max(self.now_ms);
                self.queue.push(at_ms, Event::Due { who, run });
            }
            Act::Restored { who, pending } => {
                self.census.restored += 1;
                self.note(What::Restored {
                    who,
                    pending: pending.len(),
                });
                let verdict = self
                    .judge
                    .restored(self.now_ms, who, &pending, &self.disk.durable);
                self.check(verdict);
            }
            Act::Fell { who, parked } => {
                self.census.panics += 1;
                self.census.parked += u64::from(parked);
                self.note(What::Fell { who, parked });
                self.judge.machine_is_gone(who);
            }
        }
    }

    fn commit(&mut self, who: usize, step: u64, batch: engine::change::Batch) {
        let slow_ms = match self.chance.hits(self.faults.slow_commit_percent) {
            true => i64::from(self.chance.below(8_000)),
            false => i64::from(1 + self.chance.below(5)),
        };
        let fits = self.now_ms >= self.disk.full_until_ms;
        self.disk.take_in(Waiting {
            who,
            step,
            batch,
            fits,
        });
        self.disk.busy_until_ms = self.disk.busy_until_ms.max(self.now_ms) + slow_ms;
        let run = self.service.run();
        self.queue
            .push(self.disk.busy_until_ms, Event::Committed { run });
        self.note(What::Commits { who, step });
    }

    fn send(&mut self, step: Option<u64>, who: Option<usize>, to: Peer, datagram: Vec<u8>) {
        let port = Self::port_of(to);
        self.note(What::ServiceSays {
            port,
            datagram: datagram.as_slice().into(),
        });
        let at_ms = self.now_ms;
        let departure = Departure {
            to,
            at_ms,
            step,
            who,
            datagram: &datagram,
        };
        let verdict = self.judge.left(&departure, &self.disk.durable);
        self.check(verdict);
        self.travel(|| Event::ReachesDevice {
            to,
            datagram: datagram.clone(),
        });
    }

    fn reply(&mut self, call: u64, step: Option<u64>, reply: &Reply) {
        let what = match reply {
            Reply::Submitted(Ok(_)) => "accepted",
            Reply::Submitted(Err(_)) => "refused",
            Reply::Cancelled(Ok(_)) | Reply::CancelledAll(_) => "cancelled",
            Reply::Cancelled(Err(_)) => "not cancelled",
            Reply::Unserved => "not served",
        };
        self.note(What::Told { call, what });
        self.census.count_reply(reply);
        let Some((who, question)) = self.callers.hear(call, reply) else {
            panic!("call {call} is answered twice");
        };
        let durable = &self.disk.durable;
        let verdict = self.judge.replied(who, &question, step, reply, durable);
        self.check(verdict);
    }
}
