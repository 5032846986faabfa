//! Which lines of the operator's log are left out? Those that repeat without end.
//!
//! A full disk or a lost network concerns each of a million devices, and a line for each would fill
//! the disk as well. Of the warnings and errors of one place in the code, some are logged in each
//! minute; the others are counted and reported in one line.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::callsite::Identifier;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Filter};

/// The lines of one place in the code that are logged in a minute.
const LINES_MAX: u64 = 20;

/// Counts the lines of each place in the code.
#[derive(Clone, Default)]
pub(super) struct Repeats(Arc<Mutex<HashMap<Identifier, Lines>>>);

/// The lines of a place in the code in this minute.
struct Lines {
    place: &'static Metadata<'static>,
    count: u64,
}

/// How many lines were left out, and where they come from.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct LeftOut {
    pub(super) lines: u64,
    /// The module.
    pub(super) target: &'static str,
    /// The line in the source.
    pub(super) line: u32,
}

impl Repeats {
    /// Begins a minute; returns what was left out in the one before.
    pub(super) fn begin_minute(&self) -> Vec<LeftOut> {
        let places = std::mem::take(&mut *self.places());
        let left_out = places.into_values().filter_map(|lines| {
            Some(LeftOut {
                lines: lines
                    .count
                    .checked_sub(LINES_MAX)
                    .filter(|more| *more > 0)?,
                target: lines.place.target(),
                line: lines.place.line().unwrap_or_default(),
            })
        });
        left_out.collect()
    }

    fn is_logged(&self, place: &'static Metadata<'static>) -> bool {
        if *place.level() > Level::WARN {
            return true;
        }
        let mut places = self.places();
        let lines = places
            .entry(place.callsite())
            .or_insert(Lines { place, count: 0 });
        lines.count += 1;
        lines.count <= LINES_MAX
    }

    /// The lock may be poisoned: counts are always consistent.
    fn places(&self) -> MutexGuard<'_, HashMap<Identifier, Lines>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Subscriber> Filter<S> for Repeats {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        self.is_logged(event.metadata())
    }
}

#[cfg(test)]
mod tests {
    use tracing::subscriber::with_default;
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::{Layer, Registry};

    use super::*;

    /// Counts the lines that are logged, by level.
    #[derive(Clone, Default)]
    struct Logged(Arc<Mutex<HashMap<Level, u64>>>);

    impl<S: Subscriber> Layer<S> for Logged {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            let mut logged = self.0.lock().unwrap();
            *logged.entry(*event.metadata().level()).or_default() += 1;
        }
    }

    #[test]
    fn the_warnings_of_a_place_beyond_some_a_minute_are_counted() {
        let (logged, repeats) = (Logged::default(), Repeats::default());
        let log = || {
            for _ in 0..50 {
                tracing::error!("one place");
                tracing::info!("no problem");
            }
            tracing::warn!("another place");
        };
        let line = line!() - 5;
        let counts = [
            (Level::ERROR, LINES_MAX),
            (Level::WARN, 1),
            (Level::INFO, 50),
        ];
        for _ in 0..2 {
            with_default(subscriber_of(&logged, &repeats), log);
            let expected: HashMap<Level, u64> = counts.into_iter().collect();
            assert_eq!(std::mem::take(&mut *logged.0.lock().unwrap()), expected);
            let left_out = LeftOut {
                lines: 50 - LINES_MAX,
                target: module_path!(),
                line,
            };
            assert_eq!(repeats.begin_minute(), [left_out]);
        }
        assert_eq!(repeats.begin_minute(), []);
    }

    fn subscriber_of(logged: &Logged, repeats: &Repeats) -> impl Subscriber + Send + Sync {
        Registry::default().with(logged.clone().with_filter(repeats.clone()))
    }
}
