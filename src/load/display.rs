//! How is the progress of a load test shown? As a moving line on a terminal, as a line every few
//! seconds elsewhere.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use harness::load::worker::ProgressCounts;
use indicatif::{ProgressBar, ProgressDrawTarget};

use super::options::LoadOptions;

/// The interval at which the line on a terminal moves.
const MOVES: Duration = Duration::from_millis(500);

/// Prints the progress of one task to standard error.
pub(super) struct Display {
    name: &'static str,
    bar: Option<ProgressBar>,
    every: Duration,
    begun_at: Instant,
    // The counts that were printed last, and when.
    printed: ProgressCounts,
    printed_at: Instant,
}

impl Display {
    /// Starts the display of a task.
    pub(super) fn open(name: &'static str, options: &LoadOptions) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar
        });
        let now = Instant::now();
        Self {
            name,
            every: bar.as_ref().map_or(options.progress_lines(), |_| MOVES),
            bar,
            begun_at: now,
            printed: ProgressCounts::default(),
            printed_at: now,
        }
    }

    /// Prints the progress, if it is time to.
    pub(super) fn show(&mut self, now: ProgressCounts) {
        let since = self.printed_at.elapsed();
        if since < self.every {
            return;
        }
        let line = line(
            self.name,
            self.begun_at.elapsed(),
            (self.printed, now),
            since,
        );
        match &self.bar {
            Some(bar) => {
                bar.set_message(line);
                bar.tick();
            }
            None => eprintln!("{line}"),
        }
        self.printed = now;
        self.printed_at = Instant::now();
    }

    /// Restores the terminal.
    pub(super) fn close(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

fn line(
    name: &str,
    elapsed: Duration,
    (before, now): (ProgressCounts, ProgressCounts),
    since: Duration,
) -> String {
    let answered = now.answered.saturating_sub(before.answered);
    let rate = answered as f64 / since.as_secs_f64();
    let ProgressCounts {
        begun,
        answered,
        failed,
    } = now;
    let under_way = begun.saturating_sub(answered + failed);
    let seconds = elapsed.as_secs();
    format!(
        "{name} {seconds} s: {answered} answered, {rate:.0}/s, {under_way} in progress, \
         {failed} failed"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_rate_since_the_last_one() {
        let at = |begun, answered, failed| ProgressCounts {
            begun,
            answered,
            failed,
        };
        let two = (at(100, 90, 0), at(1_200, 1_090, 10));
        assert_eq!(
            line(
                "updating",
                Duration::from_secs(9),
                two,
                Duration::from_secs(2)
            ),
            "updating 9 s: 1090 answered, 500/s, 100 in progress, 10 failed"
        );
    }
}
