//! How many tests passed and failed, according to the summary lines of cargo?

/// Counts over any number of test programs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Tally {
    /// Tests that passed.
    pub(crate) passed: u64,
    /// Tests that failed.
    pub(crate) failed: u64,
    /// Tests that were not run.
    pub(crate) ignored: u64,
}

impl Tally {
    /// Counts a line of a test program's output if it is the summary.
    pub(crate) fn count(&mut self, line: &str) {
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
    fn closing_lines_add_up_and_other_lines_do_not_count() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test a_thing ... ok",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; \
             finished in 0.00s",
            "the device said: test result: 9 passed",
            "test result: FAILED. 4 passed; 2 failed; 1 ignored; 0 measured; 5 filtered out; \
             finished in 12.34s",
        ] {
            tally.count(line);
        }
        assert_eq!(
            tally,
            Tally {
                passed: 7,
                failed: 2,
                ignored: 1
            }
        );
    }
}
