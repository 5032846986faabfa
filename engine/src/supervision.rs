//! What happens after an actor failed? Devices and forwarders are supervised alike.
//!
//! ```text
//!              spawned             failed
//!  Restoring ---------> Running -----------> Restoring, at once or after a pause
//!                          |
//!                          | panicked too often within a window
//!                          v
//!                        Parked: not restored until the next start
//! ```

use std::collections::HashMap;
use std::hash::Hash;

use crate::limits::{PANIC_WINDOW_MS, PANICS_MAX};
use crate::moment::Timestamp;

/// A supervised actor: `H` is its handle while it runs, `W` are the inputs that wait while it is
/// restored.
#[derive(Debug)]
pub enum Child<H, W> {
    /// Its state is being read from the store.
    Restoring(W),
    /// It runs.
    Running {
        /// The handle of the actor.
        handle: H,
        /// Distinguishes this actor from earlier ones with the same key.
        generation: Generation,
    },
    /// It panicked repeatedly.
    Parked,
}

/// Numbers the actors that a supervisor spawned.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Generation(u32);

impl<H, W> Child<H, W> {
    /// Whether the actor of this generation runs; a report of an earlier one is ignored.
    pub fn is_running_as(&self, reported: Generation) -> bool {
        matches!(self, Self::Running { generation, .. } if *generation == reported)
    }
}

/// Why a command got no answer from an actor.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Unserved {
    /// There is no such device or destination.
    #[error("there is no such device or destination")]
    Unknown,
    /// The service is overloaded, or the actor is being restored or parked: retry later.
    #[error("the service is overloaded")]
    Busy,
    /// The actor or the store failed: whether the command took effect is unknown, and the caller
    /// has to read it.
    #[error("the actor or the store failed")]
    Failed,
}

/// Why an actor failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ActorFailure {
    /// It panicked.
    Panicked,
    /// It could not save what it decided, or could not read what it needs.
    Unsaved,
}

/// The decision about a failure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// Restore it from the store.
    Restore,
    /// Do not restore it, and log that for its customer.
    Park,
}

/// Counts the panics of actors and assigns generations.
#[derive(Debug)]
pub struct Supervisor<K> {
    panics: HashMap<K, Panics>,
    last: Generation,
}

impl<K: Eq + Hash> Supervisor<K> {
    /// Judges the failure of an actor.
    pub fn judge(&mut self, now: Timestamp, key: K, failure: ActorFailure) -> Verdict {
        match failure {
            ActorFailure::Unsaved => Verdict::Restore,
            ActorFailure::Panicked => self.panics.entry(key).or_default().count(now),
        }
    }

    /// The generation of the actor that is spawned next.
    pub fn next_generation(&mut self) -> Generation {
        self.last = Generation(self.last.0.wrapping_add(1));
        self.last
    }

    /// Forgets the panics of an actor that was removed.
    pub fn forget(&mut self, key: &K) {
        self.panics.remove(key);
    }
}

impl<K> Default for Supervisor<K> {
    fn default() -> Self {
        Self {
            panics: HashMap::new(),
            last: Generation::default(),
        }
    }
}

/// The panics of one actor within a window that begins with the first of them.
#[derive(Clone, Copy, Debug, Default)]
struct Panics {
    count: u8,
    first_at: Timestamp,
}

impl Panics {
    fn count(&mut self, now: Timestamp) -> Verdict {
        if self.count == 0 || now.since_ms(self.first_at) > PANIC_WINDOW_MS {
            *self = Self {
                count: 0,
                first_at: now,
            };
        }
        self.count = self.count.saturating_add(1);
        match self.count > PANICS_MAX {
            true => Verdict::Park,
            false => Verdict::Restore,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_that_panics_too_often_within_the_window_is_parked_and_others_are_not() {
        let mut supervisor = Supervisor::default();
        for ms in 0..i64::from(PANICS_MAX) {
            assert_eq!(panics(&mut supervisor, ms, "meter"), Verdict::Restore);
        }
        let last = PANIC_WINDOW_MS;
        assert_eq!(panics(&mut supervisor, last, "meter"), Verdict::Park);
        assert_eq!(panics(&mut supervisor, last, "other"), Verdict::Restore);
    }

    #[test]
    fn panics_before_the_window_do_not_count() {
        let mut supervisor = Supervisor::default();
        for ms in 0..i64::from(PANICS_MAX) {
            assert_eq!(panics(&mut supervisor, ms, "meter"), Verdict::Restore);
        }
        for ms in [PANIC_WINDOW_MS + 1, PANIC_WINDOW_MS + 2] {
            assert_eq!(panics(&mut supervisor, ms, "meter"), Verdict::Restore);
        }
    }

    #[test]
    fn a_step_that_was_not_saved_never_parks() {
        let mut supervisor = Supervisor::default();
        for _ in 0..100 {
            let verdict = supervisor.judge(Timestamp::default(), "meter", ActorFailure::Unsaved);
            assert_eq!(verdict, Verdict::Restore);
        }
    }

    #[test]
    fn a_generation_distinguishes_an_actor_from_earlier_ones() {
        let mut supervisor = Supervisor::<&str>::default();
        let (early, late) = (supervisor.next_generation(), supervisor.next_generation());
        let child: Child<(), ()> = Child::Running {
            handle: (),
            generation: late,
        };
        assert!(child.is_running_as(late) && !child.is_running_as(early));
        assert!(!Child::<(), ()>::Parked.is_running_as(late));
    }

    fn panics(supervisor: &mut Supervisor<&'static str>, ms: i64, key: &'static str) -> Verdict {
        let now = Timestamp::from_ms(1_700_000_000_000 + ms);
        supervisor.judge(now, key, ActorFailure::Panicked)
    }
}
