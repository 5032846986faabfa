//! The acts of the service: the judge checks every act before it takes effect.

use engine::action::timeline::TimelineEvent;
use engine::arbiter::cell::CommitFailure;
use engine::arbiter::input::ActorExit;
use engine::arbiter::input::{DeviceCommand, DeviceReply};
use engine::change::{Batch, Change};
use engine::credentials::Psk;
use engine::ids::DeviceKey;
use engine::peer::Peer;
use engine::sealed::Sealed;
use engine::supervision::Generation;
use engine::supervision::Unserved;

use super::plain::is_continue;
use super::{Activity, World};
use crate::disk::{ActionMove, Author, BatchFate, BatchSummary, CustomerChange, PendingBatch};
use crate::event::{DeviceStep, Event};
use crate::laws::{Breach, Decision, SentDatagram};
use crate::service::{ArbiterAct, ArbiterRun, CommitResult, Reply};
use crate::trace::TraceEvent;

impl World {
    pub(super) fn arbiter_due(&mut self, at: ArbiterRun) {
        self.serve(at, |arbiter, turn| arbiter.wake(turn));
    }

    /// An actor reports that it is idle, and its arbiter handles the report.
    pub(super) fn idle(&mut self, at: ArbiterRun, who: usize, report: (Generation, ActorExit)) {
        self.serve(at, |arbiter, turn| arbiter.ended(who, report, turn));
    }

    /// The disk has applied its oldest batch, and the receipt is sent.
    pub(super) fn committed(&mut self, run: u64) {
        if !self.service.is_up_since(run) {
            return;
        }
        let batch = self
            .disk
            .next_batch()
            .expect("a batch waits for its commit");
        let (author, receipt) = self.write(batch);
        match author {
            Author::Device { at, who, step } => {
                let receipt = match receipt {
                    CommitResult::Durable => Ok(()),
                    CommitResult::Unsaved | CommitResult::Conflict => Err(CommitFailure::Failed),
                };
                self.serve(at, |arbiter, turn| {
                    arbiter.receive(who, step, receipt, turn)
                });
            }
            Author::Forwarder {
                id,
                generation,
                step,
            } => self.forwarder_step_ended((id, generation, step), receipt),
            Author::Bootstrap(of, plan) => self.bootstrap_committed(of, *plan, receipt),
            Author::Campaign(id) => self.campaign_committed(id, receipt),
            // If it is not saved, the next handshake leads to it again.
            Author::KeyUse => {}
            Author::Customer(change) => self.customer_change_done(change, receipt),
        }
    }

    /// Applies a batch, unless the disk had no room for it, or another owner came before it.
    pub(super) fn write(&mut self, waiting: PendingBatch) -> (Author, CommitResult) {
        let PendingBatch {
            author,
            batch,
            fate,
        } = waiting;
        let is_superseded = self.disk.durable.is_superseded(batch.owner);
        if is_superseded || fate == BatchFate::Lost {
            self.census.superseded += u64::from(is_superseded && fate == BatchFate::Fits);
            self.census.forgotten += u64::from(fate == BatchFate::Lost);
            self.laws.forgotten(author.step());
            return (author, CommitResult::Unsaved);
        }
        if fate == BatchFate::HasNoRoom {
            self.census.unsaved += 1;
            self.laws.forgotten(author.step());
            if let Author::Device { who, step, .. } = author {
                self.note(TraceEvent::Unsaved { who, step });
                self.laws.machine_is_gone(who);
            }
            return (author, CommitResult::Unsaved);
        }
        self.census.count_batch(&batch);
        let verdict = self.laws.will_write(&batch, &self.disk.durable);
        self.check(verdict);
        let ended = keys_ended(&batch);
        let done = match self.disk.durable.apply(batch) {
            Ok(done) => done,
            // The device that does not exist ended its row when it was removed; the customer
            // changed a profile.
            Err(_)
                if matches!(
                    author,
                    Author::Campaign(_) | Author::Bootstrap(..) | Author::KeyUse
                ) =>
            {
                return (author, CommitResult::Conflict);
            }
            Err(refused) => self.fail(&Breach {
                law: "an_owner_never_conflicts_with_itself",
                what: format!("{author:?}: {}", refused.0),
            }),
        };
        match author {
            Author::Device { who, step, .. } => self.step_is_durable(who, step, &done),
            Author::Forwarder { id, step, .. } => {
                self.laws.forgotten(Some(step));
                self.note(TraceEvent::Post {
                    id,
                    does: "is kept",
                });
            }
            Author::Customer(CustomerChange::Create(id, behaviour)) => {
                self.laws.ledgers.created(id, behaviour)
            }
            Author::Bootstrap(..)
            | Author::Campaign(_)
            | Author::KeyUse
            | Author::Customer(CustomerChange::AddCampaign(_) | CustomerChange::Switch) => {}
        }
        for (device, key) in ended {
            self.key_ended(self.service.who(device), &key);
        }
        for moved in &done.rows {
            self.census.count_row(moved);
        }
        let (rows, durable) = (&done.rows, &self.disk.durable);
        let verdict = self.laws.campaigns.moved(self.now_ms, rows, durable);
        self.check(verdict);
        for waiting in &done.numbered {
            self.laws.ledgers.numbered(waiting, &self.disk.durable);
            self.notify_forwarders(waiting.partition());
        }
        (author, CommitResult::Durable)
    }

    /// A step of a device is durable.
    fn step_is_durable(&mut self, who: usize, step: u64, done: &BatchSummary) {
        self.note(TraceEvent::Durable { who, step });
        for moved in &done.moved {
            self.see_moved(moved);
        }
        if let Some(who) = done.removed {
            self.see_removed(who);
        }
        let durable = &self.disk.durable;
        let before = done.observed_before.as_deref().unwrap_or_default();
        let now = &durable.record(who).observations;
        self.census.count_observations(before, now);
        self.census.observations_lost += done.lost.len() as u64;
        let verdict = self
            .laws
            .became_durable(self.now_ms, step, who, done, durable);
        self.check(verdict);
    }

    fn see_moved(&mut self, moved: &ActionMove) {
        let action = self.disk.durable.action(moved.who, moved.action);
        let action = action.expect("it was saved");
        let (status, attempts) = (action.status, action.attempts_made);
        self.census.count_outcome(moved, action);
        let last = action.timeline.as_slice().last().map(|last| last.what);
        let is_cut_off = match last {
            Some(TimelineEvent::GaveUp | TimelineEvent::Rejected) => true,
            Some(TimelineEvent::Answered(code)) => !code.is_success(),
            _ => false,
        };
        if is_cut_off && self.laws.is_in_blocks(moved.action) {
            self.census.transfers_given_up += 1;
        }
        self.note(TraceEvent::Saved {
            who: moved.who,
            action: *moved.action.as_bytes(),
            status,
            attempts,
        });
    }

    fn see_removed(&mut self, who: usize) {
        self.note(TraceEvent::Device {
            who,
            does: "is removed",
        });
        self.end_sessions(who);
        if self.activity == Activity::Lively {
            let at_ms = self.later_ms();
            self.queue.push(at_ms, Event::Added { who });
        }
    }

    pub(super) fn perform(&mut self, at: ArbiterRun, act: ArbiterAct) {
        match act {
            ArbiterAct::Sorted { number, whose } => self.sorted(number, whose),
            ArbiterAct::Forwarded { number, to } => self.forwarded(at, number, to),
            ArbiterAct::Ended { number, end } => self.ended(number, end),
            ArbiterAct::Post { to, post } => self.post(at, to, post),
            ArbiterAct::LookUp(look_up) => self.look_up(at, look_up),
            ArbiterAct::Rebound { who, from, to } => self.laws.routing.rebound(who, from, to),
            ArbiterAct::Decided {
                who,
                took,
                step,
                saves,
                sends,
                throws,
            } => {
                self.count_step(&took, &sends, throws);
                let decision = Decision {
                    at_ms: self.now_ms,
                    who,
                    took,
                    step,
                    saves,
                    reporting: self.service.policy().passive_reporting,
                    sends,
                    throws,
                };
                let verdict = self.laws.decided(decision, &self.disk.durable);
                self.check(verdict);
            }
            ArbiterAct::Commit { who, step, batch } => self.commit(at, who, step, batch),
            ArbiterAct::Send {
                step,
                who,
                to,
                datagram,
            } => self.send(at, (step, who), to, datagram),
            ArbiterAct::SealAnswer {
                who,
                address,
                message,
            } => {
                self.note(TraceEvent::ServiceSays {
                    port: address.port(),
                    datagram: message.as_slice().into(),
                });
                self.seal_answer(at, (who, address), &message);
            }
            ArbiterAct::Throw {
                step,
                who,
                to,
                bytes,
                action,
                outcome,
            } => {
                self.throw((at, step), (who, to), &bytes, outcome);
                self.say_later(at, who, (action, outcome));
            }
            ArbiterAct::Reply { call, step, reply } => self.reply(call, step, &reply),
            ArbiterAct::PrepareBootstrap { who, step, order } => {
                self.prepare_bootstrap(at, (who, step), &order);
            }
            ArbiterAct::ReadImage { who, step, range } => {
                self.read_image(DeviceStep { at, who, step }, range);
            }
            ArbiterAct::ReadNames { who, step } => self.read_names(at, who, step),
            ArbiterAct::Started => self.note(TraceEvent::Started { at: at.id }),
            ArbiterAct::WakeArbiter { at: due } => {
                let at_ms = due.as_ms().max(self.now_ms);
                self.queue.push(at_ms, Event::ArbiterDue { at });
            }
            ArbiterAct::Idle { who, report } => {
                let after_ms = match self.rng.below(4) {
                    0 => i64::from(self.rng.below(200)),
                    _ => 0,
                };
                let idle = Event::Idle { at, who, report };
                self.queue.push(self.now_ms + after_ms, idle);
            }
            ArbiterAct::Restored { who, restored } => self.restored(at, who, &restored),
            ArbiterAct::MovedOut { who, registered } => self.laws.moved_out(who, registered),
            ArbiterAct::Fell { who, parked } => {
                self.census.panics += 1;
                self.census.parked += u64::from(parked);
                self.note(TraceEvent::Fell { who, parked });
                self.laws.machine_is_gone(who);
            }
        }
    }

    fn commit(&mut self, at: ArbiterRun, who: usize, step: u64, batch: Batch) {
        self.note(TraceEvent::Commits { who, step });
        self.commit_as(Author::Device { at, who, step }, batch);
    }

    /// Puts a batch behind the others.
    pub(super) fn commit_as(&mut self, author: Author, batch: Batch) {
        let slow_ms = match self.rng.hits(self.faults.slow_commit_percent) {
            true => i64::from(self.rng.below(8_000)),
            false => i64::from(1 + self.rng.below(5)),
        };
        let fate = match self.now_ms >= self.disk.full_until_ms {
            true => BatchFate::Fits,
            false => BatchFate::HasNoRoom,
        };
        self.disk.take_in(PendingBatch {
            author,
            batch,
            fate,
        });
        self.disk.busy_until_ms = self.disk.busy_until_ms.max(self.now_ms) + slow_ms;
        let run = self.service.run();
        self.queue
            .push(self.disk.busy_until_ms, Event::Committed { run });
    }

    fn send(
        &mut self,
        at: ArbiterRun,
        (step, who): (Option<u64>, Option<usize>),
        to: Peer,
        datagram: Vec<u8>,
    ) {
        let port = Self::port_of(to);
        self.note(TraceEvent::ServiceSays {
            port,
            datagram: datagram.as_slice().into(),
        });
        let at_ms = self.now_ms;
        let is_asked = self.is_asked(who, &datagram);
        self.census.blocks_up += u64::from(is_continue(&datagram));
        self.census.published_in_blocks +=
            u64::from(self.laws.sent_data.acknowledges_blocks(&datagram));
        let outcome = SentDatagram {
            to,
            at_ms,
            step,
            who,
            is_asked,
            datagram: &datagram,
        };
        let verdict = self.laws.left(&outcome, &self.disk.durable);
        self.check(verdict);
        if let (Some(who), Some(_)) = (who, to.association) {
            return self.send_secured(at, who, datagram);
        }
        self.leave_node(at, || Event::ReachesDevice {
            to,
            datagram: datagram.clone(),
        });
    }

    pub(super) fn reply(&mut self, call: u64, step: Option<u64>, reply: &Reply) {
        let what = match reply {
            Ok(DeviceReply::Submitted(Ok(_))) => "accepted",
            Ok(DeviceReply::Submitted(Err(_))) => "refused",
            Ok(DeviceReply::Cancelled(Ok(_)) | DeviceReply::CancelledAll(_)) => "cancelled",
            Ok(DeviceReply::Cancelled(Err(_))) => "not cancelled",
            Ok(DeviceReply::Retired) => "removed",
            Ok(DeviceReply::ProfileRead) => "it goes by it",
            Ok(DeviceReply::Inspected(_)) => "how it is",
            Ok(DeviceReply::UpdateTaken) => "its update",
            Err(Unserved::Unknown) => "there is no such device",
            Err(Unserved::Busy | Unserved::Failed) => "not served",
        };
        self.note(TraceEvent::Replied { call, what });
        self.census.count_reply(reply);
        let Some((who, question)) = self.callers.receive(call, reply) else {
            panic!("call {call} is answered twice");
        };
        let durable = &self.disk.durable;
        let verdict = self.laws.replied(who, &question, step, reply, durable);
        self.check(verdict);
        self.reply_for_campaign(call, reply);
        if let DeviceCommand::ReadProfile = question {
            self.profile_reply(who, reply);
        }
    }
}

/// The pre-shared keys that a batch ends, and whose they are.
fn keys_ended(batch: &Batch) -> Vec<(DeviceKey, Sealed)> {
    let mut ended = Vec::new();
    for change in &batch.changes {
        if let Change::PutDevice {
            was: Some(was),
            profile,
        } = change
        {
            let is_valid = |key: &Psk| profile.credentials.psks().any(|valid| valid == key);
            let over = was.credentials.psks().filter(|key| !is_valid(key));
            ended.extend(over.map(|key| (was.key(), key.key.clone())));
        }
    }
    ended
}
