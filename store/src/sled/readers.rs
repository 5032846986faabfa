//! Which threads read? A few of their own, so that a query never waits for the disk on a device's
//! thread.
//!
//! ```text
//!  ask      single things, for a device or a call        -> 2 threads
//!  show     lists for callers, of any length             -> 3 threads
//!  prepare  what a start restores in the background      -> 2 threads
//!  deliver  events on their way to customers' systems    -> 2 threads
//!  stream   events for readers of streams                -> 1 thread
//! ```
//!
//! Each pool has a queue and threads of its own: a long list or a start in progress never delays a
//! device that registers. One limit remains: while sled applies a group's rows, all reads wait, so
//! the size of a group is bounded, too.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use metrics::Gauge as Level;
use sled::Db;
use tokio::sync::oneshot;
use tracing::Span;

use super::committer::PanicGuard;
use super::fault::Fault;
use crate::commit_state::CommitState;
use crate::meters::{self, QueueWait};
use crate::{ReadAnswer, Unavailable};

/// Single rows take microseconds, so these threads are rarely busy at the same time; the second one
/// runs while the first waits for the disk.
const POINT_THREADS: usize = 2;

/// Enough that one long list (a deep page, a wide window) does not delay the others; more would
/// only compete with the devices for cores.
const LIST_THREADS: usize = 3;

/// One core reads some 150,000 devices a second out of the page cache, more than the arbiters
/// start; the second thread runs while the first waits for a cold disk.
const RESTORE_THREADS: usize = 2;

/// Deliveries read blocks of events, each in tens of microseconds; the second thread runs while the
/// first waits for the disk.
const DELIVER_THREADS: usize = 2;

/// A stream that resumes reads days of events as fast as it can; readers share what one thread
/// reads, and deliveries do not notice.
const STREAM_THREADS: usize = 1;

/// Queries that may wait in a pool. Each takes tens of microseconds, so that is a fraction of a
/// second; one more is answered as unavailable.
const QUESTIONS_MAX: usize = 4_096;

/// Reads the tree and sends the answer.
type ReadJob = Box<dyn FnOnce(&Db) + Send>;

/// The threads that answer queries.
pub(super) struct Readers {
    point: ReaderPool,
    list: ReaderPool,
    restore: ReaderPool,
    deliver: ReaderPool,
    stream: ReaderPool,
    state: Arc<CommitState>,
}

impl Readers {
    /// Starts the threads.
    pub(super) fn start(db: &Db, state: &Arc<CommitState>) -> io::Result<Self> {
        Ok(Self {
            point: ReaderPool::start("point", POINT_THREADS, db, state)?,
            list: ReaderPool::start("list", LIST_THREADS, db, state)?,
            restore: ReaderPool::start("restore", RESTORE_THREADS, db, state)?,
            deliver: ReaderPool::start("deliver", DELIVER_THREADS, db, state)?,
            stream: ReaderPool::start("stream", STREAM_THREADS, db, state)?,
            state: Arc::clone(state),
        })
    }

    /// Answers a query about a single thing.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Db) -> Result<T, Fault> + Send + 'static,
    ) -> ReadAnswer<T> {
        self.point.answer(&self.state, question)
    }

    /// Answers a query for a caller: what is not durable may still be lost, so the answer waits
    /// until everything it may have seen is durable.
    pub(super) fn show<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Db) -> Result<T, Fault> + Send + 'static,
    ) -> ReadAnswer<T> {
        self.settled(&self.list, question)
    }

    /// Answers a query about an event in delivery, which the caller knows to be durable.
    pub(super) fn fetch<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Db) -> Result<T, Fault> + Send + 'static,
    ) -> ReadAnswer<T> {
        self.deliver.answer(&self.state, question)
    }

    /// Answers a query about an event for a stream, which the caller knows to be durable.
    pub(super) fn follow<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Db) -> Result<T, Fault> + Send + 'static,
    ) -> ReadAnswer<T> {
        self.stream.answer(&self.state, question)
    }

    /// Answers a query about events to be delivered, which must be durable as well.
    pub(super) fn deliver<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Db) -> Result<T, Fault> + Send + 'static,
    ) -> ReadAnswer<T> {
        self.settled(&self.deliver, question)
    }

    /// Answers a query in the background.
    pub(super) fn prepare<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Db) -> Result<T, Fault> + Send + 'static,
    ) -> ReadAnswer<T> {
        self.restore.answer(&self.state, question)
    }

    /// Answers all queued queries and ends the threads.
    pub(super) fn stop(&mut self) {
        for pool in [
            &mut self.point,
            &mut self.list,
            &mut self.restore,
            &mut self.deliver,
            &mut self.stream,
        ] {
            pool.stop();
        }
    }

    /// Answers a query in a pool, and holds the answer back until everything it may have seen is
    /// durable.
    fn settled<T: Send + 'static>(
        &self,
        pool: &ReaderPool,
        question: impl FnOnce(&Db) -> Result<T, Fault> + Send + 'static,
    ) -> ReadAnswer<T> {
        let (seeing, state) = (Arc::clone(&self.state), Arc::clone(&self.state));
        let question = move |db: &Db| question(db).map(|answer| (answer, seeing.seen()));
        let answer = pool.answer(&self.state, question);
        Box::pin(async move {
            let (answer, seen) = answer.await?;
            state.settled(seen).await?;
            Ok(answer)
        })
    }
}

/// Threads that share a queue.
struct ReaderPool {
    queue: Option<SyncSender<ReadJob>>,
    threads: Vec<JoinHandle<()>>,
    /// How many queries wait.
    waiting: Level,
}

impl ReaderPool {
    fn start(
        name: &'static str,
        threads: usize,
        db: &Db,
        state: &Arc<CommitState>,
    ) -> io::Result<Self> {
        let (queue, questions) = sync_channel(QUESTIONS_MAX);
        let questions = Arc::new(Mutex::new(questions));
        let threads = (0..threads)
            .map(|number| {
                let (db, state) = (db.clone(), Arc::clone(state));
                let questions = Arc::clone(&questions);
                Builder::new()
                    .name(format!("store-{name}-{number}"))
                    .spawn(move || answer_all(&db, state, &questions))
            })
            .collect::<io::Result<_>>()?;
        Ok(Self {
            queue: Some(queue),
            threads,
            waiting: meters::waiting_in(name),
        })
    }

    fn answer<T: Send + 'static>(
        &self,
        state: &Arc<CommitState>,
        question: impl FnOnce(&Db) -> Result<T, Fault> + Send + 'static,
    ) -> ReadAnswer<T> {
        let (reply, answer) = oneshot::channel();
        let reported = Arc::clone(state);
        let waits = QueueWait::among(&self.waiting);
        let span = Span::current();
        let job: ReadJob = Box::new(move |db| {
            drop(waits);
            let answered = || question(db).map_err(|fault| report(&fault, &reported));
            // Problems are logged in the span of the caller.
            let answer = span.in_scope(answered);
            // The caller may have stopped waiting.
            let _ = reply.send(answer);
        });
        let queue = self.queue.as_ref().filter(|_| !state.failed());
        if queue.is_none_or(|queue| queue.try_send(job).is_err()) {
            return Box::pin(std::future::ready(Err(Unavailable)));
        }
        Box::pin(async move { answer.await.unwrap_or(Err(Unavailable)) })
    }

    fn stop(&mut self) {
        self.queue = None;
        for thread in self.threads.drain(..) {
            // A reader that panicked has logged it.
            let _ = thread.join();
        }
    }
}

fn answer_all(db: &Db, state: Arc<CommitState>, questions: &Mutex<Receiver<ReadJob>>) {
    let _tell = PanicGuard(state);
    loop {
        // The lock guards only the wait for a query, which cannot leave it broken.
        let job = questions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        let Ok(question) = job else { return };
        question(db);
    }
}

fn report(fault: &Fault, state: &CommitState) -> Unavailable {
    tracing::error!(%fault, "a query failed");
    if fault.is_fatal() {
        state.fail();
    }
    Unavailable
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use engine::moment::Timestamp;

    use super::*;
    use crate::conformance::wait;

    #[test]
    fn a_single_thing_is_answered_while_lists_and_a_start_take_long() {
        let db = sled::Config::new().temporary(true).open().unwrap();
        let state = Arc::new(CommitState::new(1, Timestamp::default));
        let mut readers = Readers::start(&db, &state).unwrap();
        let (begun, busy) = channel();
        let (finish, finished) = channel::<()>();
        let finished = Arc::new(Mutex::new(finished));
        let long = || {
            let (begun, finished) = (begun.clone(), Arc::clone(&finished));
            move |_: &Db| {
                begun.send(()).unwrap();
                let _ = finished.lock().unwrap().recv();
                Ok(())
            }
        };
        let lists: Vec<_> = (0..2 * LIST_THREADS)
            .map(|_| readers.show(long()))
            .collect();
        let pages: Vec<_> = (0..2 * RESTORE_THREADS)
            .map(|_| readers.prepare(long()))
            .collect();
        for _ in 0..LIST_THREADS + RESTORE_THREADS {
            busy.recv().unwrap();
        }

        assert_eq!(wait(readers.ask(|_| Ok(7))), Ok(7));

        drop(finish);
        for slow in lists.into_iter().chain(pages) {
            assert_eq!(wait(slow), Ok(()));
        }
        readers.stop();
    }
}
