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
use crate::delivery::destination::{Destination, DestinationState};
use crate::delivery::forwarders::ForwarderEnd;
use crate::delivery::forwarding::{Delivered, Errand, Errands, Forwarding};
use crate::delivery::letter::{DeadLetter, Sequence, Waiting};
use crate::delivery::question::{Answer, Question};
use crate::ids::{EventId, Shard};
use crate::limits::STORE_RETRY_MS;
use crate::moment::{Moment, Timestamp};
use crate::supervision::Failure;
use crate::supervision::Unserved;

/// What happens to a forwarder: `R` takes the answer to a question.
#[derive(Clone, Debug)]
pub enum Input<R> {
    /// It was started, or its deadline has come.
    Due,
    /// Something began to wait in these shards.
    News(Vec<Shard>),
    /// What was read of a shard, as [`Errand::Read`] asked.
    Rows(Shard, Vec<Waiting>),
    /// The dead letters that were read, as [`Errand::ReadDead`] asked.
    Dead(Vec<DeadLetter>),
    /// What came of a delivery.
    Delivered(Sequence, Delivered),
    /// The store did not answer what an errand needs.
    Unread(Errand),
    /// So many events wait.
    Backlog(u64),
    /// A caller asks something.
    Asked(Question, R),
    /// Its customer goes, with all that is kept of it.
    Forgotten,
}

/// What a forwarder wants done, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum ForwarderEffect<R> {
    /// Save it, and tell [`Forwarder::handle_receipt`] what came of it before any other input.
    Commit(Batch),
    /// Deliver to the destination as it is from now on.
    Retarget(Box<Destination>),
    /// Begin an errand, whose end is an input.
    Begin(Errand),
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
    Answer(R, Result<Answer, Unserved>),
    /// End, and tell the supervisor why.
    End(ForwarderEnd),
}

/// The forwarder of one destination.
pub struct Forwarder<R> {
    forwarding: Forwarding,
    /// What is left of a step until it is saved.
    saving: Option<Vec<ForwarderEffect<R>>>,
    /// Errands for which the store did not answer, and when they are begun again. What is under way
    /// beside them must not begin anew for that.
    unread: VecDeque<(Timestamp, Errand)>,
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
    pub fn handle(&mut self, m: &mut Moment, input: Input<R>, out: &mut Vec<ForwarderEffect<R>>) {
        assert!(self.saving.is_none(), "one step at a time");
        let (it, mut errands, mut rest) = (&mut self.forwarding, Errands::new(), Vec::new());
        match input {
            Input::Due => {
                let is_due = |(at, _): &(Timestamp, Errand)| *at <= m.now();
                while self.unread.front().is_some_and(is_due)
                    && let Some((_, errand)) = self.unread.pop_front()
                {
                    match errand {
                        Errand::Deliver(waiting) => it.put_back(waiting.sequence),
                        Errand::Read { .. } | Errand::ReadDead { .. } => {
                            rest.push(ForwarderEffect::Begin(errand));
                        }
                    }
                }
                it.handle_timeout(m, &mut errands);
            }
            Input::News(shards) => it.note_news(m, shards, &mut errands),
            Input::Rows(shard, rows) => it.handle_rows(m, shard, rows, &mut errands),
            Input::Dead(letters) => it.handle_dead(m, letters, &mut errands),
            Input::Delivered(sequence, delivered) => {
                it.handle_delivered(m, sequence, delivered, &mut errands);
            }
            Input::Unread(errand) => {
                let again_at = m.now().plus_ms(STORE_RETRY_MS);
                self.unread.push_back((again_at, errand));
            }
            Input::Backlog(waiting) => it.note_backlog(m, waiting, &mut errands),
            Input::Asked(question, reply) => {
                self.take_question(m, question, reply, (&mut errands, &mut rest));
            }
            Input::Forgotten => rest.push(ForwarderEffect::End(ForwarderEnd::Removed)),
        }
        self.settle(errands, rest, out);
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
        let unsaved = ForwarderEnd::Failed(Failure::Unsaved);
        out.push(ForwarderEffect::End(unsaved));
    }

    /// When [`Input::Due`] is due.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        let again = self.unread.front().map(|(at, _)| *at);
        let due = [self.forwarding.next_timeout(), again];
        due.into_iter().flatten().min()
    }

    /// How the destination stands.
    pub fn forwarding(&self) -> &Forwarding {
        &self.forwarding
    }

    fn take_question(
        &mut self,
        m: &mut Moment,
        question: Question,
        reply: R,
        (errands, rest): (&mut Errands, &mut Vec<ForwarderEffect<R>>),
    ) {
        let it = &mut self.forwarding;
        let answer = match question {
            Question::Amend(amended) => {
                it.amend(m, *amended, errands);
                let destination = Box::new(it.destination().clone());
                rest.push(ForwarderEffect::Retarget(destination.clone()));
                Answer::Destination(destination)
            }
            Question::Restart => {
                it.restart(m, errands);
                Answer::Destination(Box::new(it.destination().clone()))
            }
            Question::Replay => Answer::Replayed(it.replay(m, errands)),
            Question::Discard(letters) => Answer::Discarded(it.discard(m, &letters, errands)),
            Question::Test => {
                let (event, at) = (EventId::new(m.uuid()), m.now());
                return rest.push(ForwarderEffect::Test { event, at, reply });
            }
            Question::Remove => {
                it.remove(errands);
                let removed = ForwarderEffect::Answer(reply, Ok(Answer::Removed));
                let end = ForwarderEffect::End(ForwarderEnd::Removed);
                return rest.extend([removed, end]);
            }
        };
        rest.push(ForwarderEffect::Answer(reply, Ok(answer)));
    }

    fn settle(
        &mut self,
        errands: Errands,
        mut rest: Vec<ForwarderEffect<R>>,
        out: &mut Vec<ForwarderEffect<R>>,
    ) {
        let (batch, errands) = errands.settle();
        rest.extend(errands.into_iter().map(ForwarderEffect::Begin));
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
