//! What does the forwarder of a destination do next? One step at a time: what a step changes is
//! saved before anything else is done, and an input waits for the step before it.
//!
//! ```text
//!          a step changes something               saved
//!  Ready --------------------------------> Saving ------> Ready: the rest of the step is done
//!   |                                        |
//!   | its destination is removed             | not saved
//!   v                                        v
//!  End                                      End: restored from the store
//! ```

use std::collections::VecDeque;

use crate::change::Batch;
use crate::delivery::backlog::{DeadLetter, QueuedEvent, Sequence};
use crate::delivery::command::{DestinationCommand, DestinationReply};
use crate::delivery::destination::{Destination, DestinationState};
use crate::delivery::forwarders::ForwarderExit;
use crate::delivery::forwarding::{DeliveryOutcome, ForwarderOutput, ForwarderTask, Forwarding};
use crate::ids::{EventId, Shard};
use crate::limits::STORE_RETRY_MS;
use crate::moment::{Moment, Timestamp};
use crate::supervision::ActorFailure;
use crate::supervision::Unserved;

/// What happens to a forwarder: `R` takes the answer to a question.
#[derive(Clone, Debug)]
pub enum ForwarderInput<R> {
    /// It was started, or its deadline has come.
    Timeout,
    /// Something began to wait in these shards.
    ShardsReady(Vec<Shard>),
    /// What was read of a shard, as [`ForwarderTask::Read`] asked.
    EventsRead(Shard, Vec<QueuedEvent>),
    /// The dead letters that were read, as [`ForwarderTask::ReadDeadLetters`] asked.
    DeadLettersRead(Vec<DeadLetter>),
    /// What came of a delivery.
    Delivered(Sequence, DeliveryOutcome),
    /// The store did not answer what an errand needs.
    ReadFailed(ForwarderTask),
    /// So many events wait.
    Backlog(u64),
    /// A caller asks something.
    Command(DestinationCommand, R),
    /// Its customer goes, with all that is kept of it.
    CustomerRemoved,
}

/// What a forwarder wants done, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum ForwarderEffect<R> {
    /// Save it, and tell [`Forwarder::handle_receipt`] what came of it before any other input.
    Commit(Batch),
    /// Deliver to the destination as it is from now on.
    Retarget(Box<Destination>),
    /// Begin an errand, whose end is an input.
    Begin(ForwarderTask),
    /// Send a test message, and answer what came of it.
    Test {
        /// The event it pretends to be.
        event: EventId,
        /// When it is sent.
        at: Timestamp,
        /// Who asked for it.
        reply: R,
    },
    /// Tell the operator that the destination is in another state than before.
    ShowState {
        /// The state the operator was told of.
        before: Option<DestinationState>,
        /// The state it is in.
        state: DestinationState,
    },
    /// Answer a caller.
    Answer(R, Result<DestinationReply, Unserved>),
    /// End, and tell the supervisor why.
    End(ForwarderExit),
}

/// The forwarder of one destination.
pub struct Forwarder<R> {
    forwarding: Forwarding,
    /// What is left of a step until it is saved.
    saving: Option<Vec<ForwarderEffect<R>>>,
    /// Errands for which the store did not answer, and when they are begun again. What is under way
    /// beside them must not begin anew for that.
    unread: VecDeque<(Timestamp, ForwarderTask)>,
    /// The state the operator was told of.
    shown: Option<DestinationState>,
}

impl<R> Forwarder<R> {
    /// A forwarder that is about to start.
    pub fn new(forwarding: Forwarding) -> Self {
        Self {
            forwarding,
            saving: None,
            unread: VecDeque::new(),
            shown: None,
        }
    }

    /// Takes the next step.
    pub fn handle(
        &mut self,
        m: &mut Moment,
        input: ForwarderInput<R>,
        out: &mut Vec<ForwarderEffect<R>>,
    ) {
        assert!(self.saving.is_none(), "one step at a time");
        let (it, mut tasks, mut rest) = (&mut self.forwarding, ForwarderOutput::new(), Vec::new());
        match input {
            ForwarderInput::Timeout => {
                let is_due = |(at, _): &(Timestamp, ForwarderTask)| *at <= m.now();
                while self.unread.front().is_some_and(is_due)
                    && let Some((_, task)) = self.unread.pop_front()
                {
                    match task {
                        ForwarderTask::Deliver(waiting) => it.put_back(waiting.sequence),
                        ForwarderTask::Read { .. } | ForwarderTask::ReadDeadLetters { .. } => {
                            rest.push(ForwarderEffect::Begin(task));
                        }
                    }
                }
                it.handle_timeout(m, &mut tasks);
            }
            ForwarderInput::ShardsReady(shards) => it.note_ready_shards(m, shards, &mut tasks),
            ForwarderInput::EventsRead(shard, rows) => {
                it.handle_events_read(m, shard, rows, &mut tasks)
            }
            ForwarderInput::DeadLettersRead(dead_letters) => {
                it.handle_dead_letters_read(m, dead_letters, &mut tasks)
            }
            ForwarderInput::Delivered(sequence, delivered) => {
                it.handle_delivered(m, sequence, delivered, &mut tasks);
            }
            ForwarderInput::ReadFailed(task) => {
                let again_at = m.now().plus_ms(STORE_RETRY_MS);
                self.unread.push_back((again_at, task));
            }
            ForwarderInput::Backlog(waiting) => it.note_backlog(m, waiting, &mut tasks),
            ForwarderInput::Command(question, reply) => {
                self.take_command(m, question, reply, (&mut tasks, &mut rest));
            }
            ForwarderInput::CustomerRemoved => {
                rest.push(ForwarderEffect::End(ForwarderExit::Removed))
            }
        }
        self.settle(tasks, rest, out);
    }

    /// Takes the receipt of what was to be saved: if it was not, nothing of the step happened.
    pub fn handle_receipt(
        &mut self,
        receipt: Result<(), Unserved>,
        out: &mut Vec<ForwarderEffect<R>>,
    ) {
        let rest = self.saving.take().expect("a step waits for its receipt");
        let Err(refusal) = receipt else {
            return out.extend(rest);
        };
        for effect in rest {
            if let ForwarderEffect::Answer(reply, _) = effect {
                out.push(ForwarderEffect::Answer(reply, Err(refusal)));
            }
        }
        let unsaved = ForwarderExit::Failed(ActorFailure::Unsaved);
        out.push(ForwarderEffect::End(unsaved));
    }

    /// When [`ForwarderInput::Timeout`] is due.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        let again = self.unread.front().map(|(at, _)| *at);
        let due = [self.forwarding.next_timeout(), again];
        due.into_iter().flatten().min()
    }

    /// How the destination stands.
    pub fn forwarding(&self) -> &Forwarding {
        &self.forwarding
    }

    fn take_command(
        &mut self,
        m: &mut Moment,
        question: DestinationCommand,
        reply: R,
        (tasks, rest): (&mut ForwarderOutput, &mut Vec<ForwarderEffect<R>>),
    ) {
        let it = &mut self.forwarding;
        let answer = match question {
            DestinationCommand::Amend(amended) => {
                it.amend(m, *amended, tasks);
                let destination = Box::new(it.destination().clone());
                rest.push(ForwarderEffect::Retarget(destination.clone()));
                DestinationReply::Destination(destination)
            }
            DestinationCommand::Restart => {
                it.restart(m, tasks);
                DestinationReply::Destination(Box::new(it.destination().clone()))
            }
            DestinationCommand::Replay => DestinationReply::Replayed(it.replay(m, tasks)),
            DestinationCommand::Discard(dead_letters) => {
                DestinationReply::Discarded(it.discard(m, &dead_letters, tasks))
            }
            DestinationCommand::Test => {
                let (event, at) = (EventId::new(m.uuid()), m.now());
                return rest.push(ForwarderEffect::Test { event, at, reply });
            }
            DestinationCommand::Remove => {
                it.remove(tasks);
                let removed = ForwarderEffect::Answer(reply, Ok(DestinationReply::Removed));
                let end = ForwarderEffect::End(ForwarderExit::Removed);
                return rest.extend([removed, end]);
            }
        };
        rest.push(ForwarderEffect::Answer(reply, Ok(answer)));
    }

    fn settle(
        &mut self,
        tasks: ForwarderOutput,
        mut rest: Vec<ForwarderEffect<R>>,
        out: &mut Vec<ForwarderEffect<R>>,
    ) {
        let (batch, tasks) = tasks.settle();
        rest.extend(tasks.into_iter().map(ForwarderEffect::Begin));
        let state = self.forwarding.destination().state;
        let before = self.shown.replace(state);
        if before != Some(state) {
            rest.push(ForwarderEffect::ShowState { before, state });
        }
        if batch.is_empty() {
            return out.extend(rest);
        }
        self.saving = Some(rest);
        out.push(ForwarderEffect::Commit(batch));
    }
}

#[cfg(test)]
mod tests;
