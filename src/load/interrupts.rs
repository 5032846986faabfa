//! What does Ctrl-C do to a load test? The first ends it early, with its report; the second does
//! not wait for what is in progress; the third ends the program.

use std::io;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Instant;

use harness::load::worker::LoadProgress;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// The exit status of a program that SIGINT ended.
const INTERRUPTED: i32 = 130;

/// The interrupts so far.
#[derive(Clone, Default)]
pub(super) struct Interrupts(Arc<InterruptState>);

#[derive(Default)]
struct InterruptState {
    count: AtomicU32,
    first_at: OnceLock<Instant>,
}

impl Interrupts {
    /// From now on, SIGINT and SIGTERM are counted and do not end the program.
    pub(super) fn watch() -> io::Result<Self> {
        let interrupts = Self::default();
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let entered = runtime.enter();
        let mut ctrl_c = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        drop(entered);
        let counted = interrupts.clone();
        thread::spawn(move || {
            runtime.block_on(async {
                loop {
                    tokio::select! {
                        _ = ctrl_c.recv() => {}
                        _ = terminate.recv() => {}
                    }
                    counted.count();
                }
            });
        });
        Ok(interrupts)
    }

    /// Lets workers finish after the first interrupt, and stops them after the second.
    pub(super) fn pass_on(&self, workers: &LoadProgress) {
        if self.is_finishing() {
            workers.finish();
        }
        if self.is_stopping() {
            workers.stop();
        }
    }

    /// Whether the load must end early.
    pub(super) fn is_finishing(&self) -> bool {
        self.0.count.load(Ordering::Relaxed) >= 1
    }

    /// Whether nothing must be waited for any more.
    pub(super) fn is_stopping(&self) -> bool {
        self.0.count.load(Ordering::Relaxed) >= 2
    }

    /// When the first interrupt came.
    pub(super) fn first_at(&self) -> Option<Instant> {
        self.0.first_at.get().copied()
    }

    fn count(&self) {
        self.0.first_at.get_or_init(Instant::now);
        match self.0.count.fetch_add(1, Ordering::Relaxed) {
            0 => eprintln!("signalbox: ends early; waiting for what is in progress"),
            1 => eprintln!("signalbox: stops without waiting"),
            _ => process::exit(INTERRUPTED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Interrupts;

    #[test]
    fn the_first_interrupt_finishes_and_the_second_stops() {
        let interrupts = Interrupts::default();
        assert!(!interrupts.is_finishing() && interrupts.first_at().is_none());
        interrupts.count();
        assert!(interrupts.is_finishing() && !interrupts.is_stopping());
        let first_at = interrupts.first_at();
        interrupts.count();
        assert!(interrupts.is_stopping());
        assert_eq!(interrupts.first_at(), first_at);
    }
}
