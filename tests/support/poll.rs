//! How does a test wait for something that happens elsewhere?
//!
//! It looks again until a deadline. This is the one place where a test may pause.

use std::time::{Duration, Instant};

/// Long enough for a loaded machine; a test that passes never waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(10);

/// Looks until there is something to see, and fails after [`PATIENCE`] with what was awaited.
pub(crate) fn until<T>(awaited: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(
            Instant::now() < deadline,
            "not within {PATIENCE:?}: {awaited}"
        );
        std::thread::sleep(PAUSE);
    }
}

/// Waits until what happens next has another time than what happened before: the service counts
/// milliseconds.
pub(crate) fn another_millisecond() {
    let begun = Instant::now();
    let passed = || (begun.elapsed() > Duration::from_millis(2)).then_some(());
    until("another millisecond", passed);
}
