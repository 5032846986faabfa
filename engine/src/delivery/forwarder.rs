//! What does the forwarder of a destination do next? It takes one step at a time: the changes of a
//! step are saved before its other effects, and an input waits for the step before it.
//!
//! ```text
//!          a step changes something              saved
//!  Ready --------------------------------> Saving ------> Ready: the other effects follow
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
use crate::ids::{EventId, Partition};
use crate::limits::STORE_RETRY_MS;
use crate::moment::{Moment, Timestamp};
use crate::supervision::ActorFailure;
use crate::supervision::Unserved;

/// An input of a forwarder; `R` takes the reply to a command.
#[derive(Clone, Debug)]
pub enum ForwarderInput<R> {
    /// The forwarder was started, or its deadline has come.
    Timeout,
    /// These partitions have new events.
    PartitionsReady(Vec<Partition>),
    /// The events of a partition that [`ForwarderTask::Read`] requested.
    EventsRead(Partition, Vec<QueuedEvent>),
    /// The dead letters that [`ForwarderTask::ReadDeadLetters`] requested.
    DeadLettersRead(Vec<DeadLetter>),
    /// The outcome of the delivery that begins with this event.
    Delivered(Sequence, DeliveryOutcome),
    /// The store could not be read for a task.
    ReadFailed(ForwarderTask),
    /// The number of queued events.
    Backlog(u64),
    /// A command of a caller.
    Command(DestinationCommand, R),
    /// End without a change: the customer is removed with everything stored for it, or another node
    /// delivers from now on.
    Stop,
}

/// An effect of a forwarder, performed in order.
#[derive(Clone, Debug, PartialEq)]
pub enum ForwarderEffect<R> {
    /// Commit the batch, and pass the receipt to [`Forwarder::handle_receipt`] before any other
    /// input.
    Commit(Batch),
    /// Use the changed destination for later deliveries.
    Retarget(Box<Destination>),
    /// Begin a task; its result is an input.
    Begin(ForwarderTask),
    /// Send a test event, and reply with its outcome.
    Test {
        /// The event id of the test.
        event: EventId,
        /// When it is sent.
        at: Timestamp,
        /// Takes the reply.
        reply: R,
    },
    /// Show the operator the new state of the destination.
    ShowState {
        /// The state last shown to the operator.
        before: Option<DestinationState>,
        /// The new state.
        state: DestinationState,
    },
    /// Reply to a caller.
    Answer(R, Result<DestinationReply, Unserved>),
    /// End, and report the reason to the supervisor.
    End(ForwarderExit),
}

/// The forwarder of one destination.
pub struct Forwarder<R> {
    forwarding: Forwarding,
    /// The effects of a step that wait for its commit.
    saving: Option<Vec<ForwarderEffect<R>>>,
    /// Tasks for which the store could not be read, and when they begin again. Only these begin
    /// again: other tasks are in flight.
    unread: VecDeque<(Timestamp, ForwarderTask)>,
    /// The state last shown to the operator.
    shown: Option<DestinationState>,
}

impl<R> Forwarder<R> {
    /// A forwarder that has not started yet.
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
        let (it, mut tasks, mut effects) =
            (&mut self.forwarding, ForwarderOutput::new(), Vec::new());
        match input {
            ForwarderInput::Timeout => {
                let is_due = |(at, _): &(Timestamp, ForwarderTask)| *at <= m.now();
                while self.unread.front().is_some_and(is_due)
                    && let Some((_, task)) = self.unread.pop_front()
                {
                    match task {
                        ForwarderTask::Deliver(events) => it.put_back(&events),
                        ForwarderTask::Read { .. } | ForwarderTask::ReadDeadLetters { .. } => {
                            effects.push(ForwarderEffect::Begin(task));
                        }
                    }
                }
                it.handle_timeout(m, &mut tasks);
            }
            ForwarderInput::PartitionsReady(partitions) => {
                it.note_ready_partitions(m, partitions, &mut tasks)
            }
            ForwarderInput::EventsRead(partition, rows) => {
                it.handle_events_read(m, partition, rows, &mut tasks)
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
            ForwarderInput::Backlog(queued) => it.note_backlog(m, queued, &mut tasks),
            ForwarderInput::Command(command, reply) => {
                self.take_command(m, command, reply, (&mut tasks, &mut effects));
            }
            ForwarderInput::Stop => effects.push(ForwarderEffect::End(ForwarderExit::Removed)),
        }
        self.settle(tasks, effects, out);
    }

    /// Handles the receipt of a commit. If the step was not saved, its effects are dropped and its
    /// caller gets an error.
    pub fn handle_receipt(
        &mut self,
        receipt: Result<(), Unserved>,
        out: &mut Vec<ForwarderEffect<R>>,
    ) {
        let effects = self.saving.take().expect("a step waits for its receipt");
        let Err(refusal) = receipt else {
            return out.extend(effects);
        };
        for effect in effects {
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

    /// The state of the destination's deliveries.
    pub fn forwarding(&self) -> &Forwarding {
        &self.forwarding
    }

    fn take_command(
        &mut self,
        m: &mut Moment,
        command: DestinationCommand,
        reply: R,
        (tasks, effects): (&mut ForwarderOutput, &mut Vec<ForwarderEffect<R>>),
    ) {
        let it = &mut self.forwarding;
        let answer = match command {
            DestinationCommand::Amend(amended) => {
                it.amend(m, *amended, tasks);
                let destination = Box::new(it.destination().clone());
                effects.push(ForwarderEffect::Retarget(destination.clone()));
                DestinationReply::Destination(destination)
            }
            DestinationCommand::Restart => {
                it.restart(m, tasks);
                DestinationReply::Destination(Box::new(it.destination().clone()))
            }
            DestinationCommand::Replay => {
                it.replay(m, tasks);
                DestinationReply::Replayed
            }
            DestinationCommand::Discard(dead_letters) => {
                DestinationReply::Discarded(it.discard(m, &dead_letters, tasks))
            }
            DestinationCommand::Test => {
                let (event, at) = (EventId::new(m.uuid()), m.now());
                return effects.push(ForwarderEffect::Test { event, at, reply });
            }
            DestinationCommand::Remove => {
                it.remove(tasks);
                let removed = ForwarderEffect::Answer(reply, Ok(DestinationReply::Removed));
                let end = ForwarderEffect::End(ForwarderExit::Removed);
                return effects.extend([removed, end]);
            }
        };
        effects.push(ForwarderEffect::Answer(reply, Ok(answer)));
    }

    fn settle(
        &mut self,
        tasks: ForwarderOutput,
        mut effects: Vec<ForwarderEffect<R>>,
        out: &mut Vec<ForwarderEffect<R>>,
    ) {
        let (batch, tasks) = tasks.settle();
        effects.extend(tasks.into_iter().map(ForwarderEffect::Begin));
        let state = self.forwarding.destination().state;
        let before = self.shown.replace(state);
        if before != Some(state) {
            effects.push(ForwarderEffect::ShowState { before, state });
        }
        if batch.is_empty() {
            return out.extend(effects);
        }
        self.saving = Some(effects);
        out.push(ForwarderEffect::Commit(batch));
    }
}

#[cfg(test)]
mod tests;
