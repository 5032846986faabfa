//! How does a test wait for something that happens in another process or thread?
//!
//! It polls until a deadline. This is the only place where a test may pause.

use std::time::{Duration, Instant};

/// Long enough for a loaded machine; a test that passes never waits this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(10);

/// Polls until `look` returns something; after [`PATIENCE`] fails with what was awaited.
pub(crate) fn until<T>(awaited: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            Instant::now() < deadline,
            "not within {PATIENCE:?}: {awaited}"
        );
        std::thread::sleep(PAUSE);
    }
}

/// Waits until the clock, which the service reads in milliseconds, shows another time than before.
pub(crate) fn another_millisecond() {
    let begun = Instant::now();
    let passed = || (begun.elapsed() > Duration::from_millis(2)).then_some(());
    until("another millisecond", passed);
}
