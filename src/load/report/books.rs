//! Is everything that the server acknowledged where it should be?
//!
//! A Send that was not acknowledged may have arrived all the same: only its acknowledgement was
//! lost.

use harness::load::tally::NumberedSend;

/// Missing Sends that are named.
const NAMED_MAX: usize = 10;

/// The result of the comparison.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::load) struct BooksReport {
    /// Sends that the server acknowledged.
    pub(in crate::load) acknowledged: u64,
    /// Those in the history of the devices.
    pub(in crate::load) history: BooksFound,
    /// Those at the webhook, if there is one.
    pub(in crate::load) webhook: Option<BooksFound>,
    /// Events that came to the webhook again, under the same id.
    pub(in crate::load) repeated: u64,
    /// Sends that came to the webhook after a later one of their device.
    pub(in crate::load) disordered: u64,
}

/// What was found in one place.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::load) struct BooksFound {
    /// Different Sends.
    pub(in crate::load) found: u64,
    /// Acknowledged Sends that are not there.
    pub(in crate::load) missing: u64,
    /// The first of them.
    pub(in crate::load) first_missing: Vec<NumberedSend>,
    /// Sends that are there more than once: how often too many.
    pub(in crate::load) doubled: u64,
    /// Sends that are there although they were not acknowledged.
    pub(in crate::load) unacknowledged: u64,
}

impl BooksReport {
    /// What is missing, in words.
    pub(in crate::load) fn faults(&self) -> Vec<String> {
        let history = fault("the history", &self.history);
        let webhook = self.webhook.as_ref();
        let webhook = webhook.and_then(|found| fault("the webhook", found));
        history.into_iter().chain(webhook).collect()
    }
}

impl BooksFound {
    /// Compares what was acknowledged with what was found.
    pub(in crate::load) fn compare(
        acknowledged: &[NumberedSend],
        mut found: Vec<NumberedSend>,
    ) -> BooksFound {
        let all = found.len();
        found.sort_unstable();
        found.dedup();
        let is_missing = |send: &&NumberedSend| found.binary_search(send).is_err();
        let missing: Vec<&NumberedSend> = acknowledged.iter().filter(is_missing).collect();
        BooksFound {
            found: found.len() as u64,
            missing: missing.len() as u64,
            doubled: (all - found.len()) as u64,
            unacknowledged: (found.len() + missing.len() - acknowledged.len()) as u64,
            first_missing: missing.into_iter().take(NAMED_MAX).copied().collect(),
        }
    }
}

fn fault(place: &str, found: &BooksFound) -> Option<String> {
    let missing = found.missing;
    let first = found.first_missing.first()?;
    let NumberedSend { device, number } = first;
    Some(format!(
        "{missing} acknowledged Sends are missing in {place}; \
         the first is number {number}, of device {device}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sends(of: &[(u32, u32)]) -> Vec<NumberedSend> {
        let sends = of.iter();
        sends
            .map(|(device, number)| NumberedSend {
                device: *device,
                number: *number,
            })
            .collect()
    }

    #[test]
    fn books_that_agree_have_no_fault() {
        let sent = sends(&[(0, 1), (0, 2), (1, 3)]);
        let found = BooksFound::compare(&sent, sends(&[(1, 3), (0, 2), (0, 1)]));
        let expected = BooksFound {
            found: 3,
            ..BooksFound::default()
        };
        assert_eq!(found, expected);
        let report = BooksReport {
            acknowledged: 3,
            history: found,
            webhook: None,
            repeated: 0,
            disordered: 0,
        };
        assert_eq!(report.faults(), [""; 0]);
    }

    #[test]
    fn a_missing_a_doubled_and_an_unacknowledged_send_are_told_apart() {
        let sent = sends(&[(0, 1), (0, 2), (1, 3)]);
        let found = BooksFound::compare(&sent, sends(&[(0, 1), (0, 1), (0, 1), (1, 3), (1, 4)]));
        let expected = BooksFound {
            found: 3,
            missing: 1,
            first_missing: sends(&[(0, 2)]),
            doubled: 2,
            unacknowledged: 1,
        };
        assert_eq!(found, expected);
        let report = BooksReport {
            acknowledged: 3,
            history: BooksFound::default(),
            webhook: Some(found),
            repeated: 0,
            disordered: 0,
        };
        assert_eq!(
            report.faults(),
            ["1 acknowledged Sends are missing in the webhook; \
              the first is number 2, of device 0"]
        );
    }

    #[test]
    fn a_send_found_at_another_device_is_missing() {
        let found = BooksFound::compare(&sends(&[(0, 1)]), sends(&[(1, 1)]));
        assert_eq!((found.missing, found.unacknowledged), (1, 1));
    }
}
