//! Who reads? A few threads, so that a question never waits for the disk on the thread of a device.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use sled::Db;
use tokio::sync::oneshot;

use super::committer::TellPanic;
use super::fault::Fault;
use super::gauge::Gauge;
use crate::{Answer, Unavailable};

/// Enough that one long question (a deep page, a wide window) does not hold up the others; more
/// would only compete with the devices for cores.
const READERS: usize = 4;

/// Questions that may wait. A page takes tens of microseconds, so that is a fraction of a second;
/// one more is answered as unavailable.
const QUESTIONS_MAX: usize = 4_096;

/// Asks the tree something and sends the answer on its way.
type Question = Box<dyn FnOnce(&Db) + Send>;

/// The threads that answer questions.
pub(super) struct Readers {
    queue: Option<SyncSender<Question>>,
    threads: Vec<JoinHandle<()>>,
    gauge: Arc<Gauge>,
}

impl Readers {
    /// Starts the threads.
    pub(super) fn start(db: &Db, gauge: &Arc<Gauge>) -> io::Result<Self> {
        let (queue, questions) = sync_channel(QUESTIONS_MAX);
        let questions = Arc::new(Mutex::new(questions));
        let threads = (0..READERS)
            .map(|number| {
                let (db, gauge) = (db.clone(), Arc::clone(gauge));
                let questions = Arc::clone(&questions);
                Builder::new()
                    .name(format!("store-reader-{number}"))
                    .spawn(move || answer_all(&db, gauge, &questions))
            })
            .collect::<io::Result<_>>()?;
        Ok(Self {
            queue: Some(queue),
            threads,
            gauge: Arc::clone(gauge),
        })
    }

    /// Has a question answered.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Db) -> Result<T, Fault> + Send + 'static,
    ) -> Answer<T> {
        let (reply, answer) = oneshot::channel();
        let gauge = Arc::clone(&self.gauge);
        let asked: Question = Box::new(move |db| {
            let answer = question(db).map_err(|fault| report(&fault, &gauge));
            // Who no longer waits does not need to know.
            let _ = reply.send(answer);
        });
        let queue = self.queue.as_ref().filter(|_| !self.gauge.failed());
        if queue.is_none_or(|queue| queue.try_send(asked).is_err()) {
            return Box::pin(std::future::ready(Err(Unavailable)));
        }
        Box::pin(async move { answer.await.unwrap_or(Err(Unavailable)) })
    }

    /// Has a question answered whose answer is shown to somebody: what is not durable may yet
    /// never have been, so the answer waits until all it may have seen is.
    pub(super) fn show<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Db) -> Result<T, Fault> + Send + 'static,
    ) -> Answer<T> {
        let (seeing, gauge) = (Arc::clone(&self.gauge), Arc::clone(&self.gauge));
        let answer = self.ask(move |db| question(db).map(|answer| (answer, seeing.seen())));
        Box::pin(async move {
            let (answer, seen) = answer.await?;
            gauge.settled(seen).await?;
            Ok(answer)
        })
    }

    /// Answers what was asked and ends the threads.
    pub(super) fn stop(&mut self) {
        self.queue = None;
        for thread in self.threads.drain(..) {
            // A reader that panicked has said so.
            let _ = thread.join();
        }
    }
}

fn answer_all(db: &Db, gauge: Arc<Gauge>, questions: &Mutex<Receiver<Question>>) {
    let _tell = TellPanic(gauge);
    loop {
        // The lock guards only the wait for a question, which cannot leave it broken.
        let asked = questions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        let Ok(question) = asked else { return };
        question(db);
    }
}

fn report(fault: &Fault, gauge: &Gauge) -> Unavailable {
    tracing::error!(%fault, "a question cannot be answered");
    if fault.is_fatal() {
        gauge.fail();
    }
    Unavailable
}
