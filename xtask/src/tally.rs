//! How many tests passed and failed, and what did those that failed print, according to the output
//! of cargo?

/// Counts over any number of test programs.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Tally {
    /// Tests that passed.
    pub(crate) passed: u64,
    /// Tests that failed.
    pub(crate) failed: u64,
    /// Tests that were not run.
    pub(crate) ignored: u64,
    /// What the tests that failed printed, to be printed again at the end: with `--no-fail-fast` it
    /// stands before the output of all programs that ran afterwards.
    pub(crate) failures: String,
    is_in_failures: bool,
}

impl Tally {
    /// Takes a line of a test program's output.
    pub(crate) fn take(&mut self, line: &str) {
        let is_summary = line.starts_with("test result: ");
        self.is_in_failures = !is_summary && (self.is_in_failures || line == "failures:");
        if self.is_in_failures {
            self.failures.push_str(line);
            self.failures.push('\n');
        }
        self.count(line);
    }

    /// Counts a line if it is the summary.
    fn count(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result: ") else {
            return;
        };
        for part in counts.split([';', '.']) {
            let mut words = part.split_whitespace();
            let (Some(number), Some(kind)) = (words.next(), words.next()) else {
                continue;
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match kind {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn summaries_add_up_and_failures_are_kept() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test a_thing ... ok",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; \
             finished in 0.00s",
            "the device said: test result: 9 passed",
            "failures:",
            "---- another_thing stdout ----",
            "it was not so",
            "test result: FAILED. 4 passed; 2 failed; 1 ignored; 0 measured; 5 filtered out; \
             finished in 12.34s",
            "error: 1 target failed",
        ] {
            tally.take(line);
        }
        assert_eq!(
            tally,
            Tally {
                passed: 7,
                failed: 2,
                ignored: 1,
                failures: "failures:\n---- another_thing stdout ----\nit was not so\n".into(),
                is_in_failures: false,
            }
        );
    }
}
