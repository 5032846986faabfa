//! Is a rate exceeded? Counted by the generic cell rate algorithm (ITU-T I.371): a bucket is one
//! number, the time at which everything taken so far is due at the exact rate.

use crate::moment::Timestamp;

/// The sets of a table, a power of two.
const SETS: usize = 1_024;

/// The entries of a set: they share a line of the processor's cache.
const WAYS: usize = 4;

/// A number of units per second, and how many may be taken at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    interval_us: i64,
    tolerance_us: i64,
}

/// What was taken of a rate.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Bucket {
    /// When everything taken so far is due; nothing was taken if that is in the past.
    due_at_us: i64,
}

/// What each of any number of senders has taken of a rate, in a fixed space.
///
/// A bucket whose time is in the past is as good as none, so only senders near their rate need an
/// entry. In a full set the entry that is least in debt gives way: its sender may take a little
/// more than its rate.
#[derive(Debug)]
pub(super) struct RateTable {
    rate: Option<Rate>,
    sets: Box<[[Entry; WAYS]]>,
    /// The latest time in any bucket.
    latest: Bucket,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    digest: u64,
    bucket: Bucket,
}

impl Rate {
    /// A rate, and for how many seconds of it nothing needs to have been taken before; none if it
    /// is 0.
    pub(super) fn of(per_second: u32, burst_s: i64) -> Option<Self> {
        (per_second > 0).then(|| Self {
            // Rounded up, so that a burst is never larger than stated.
            interval_us: i64::from(1_000_000_u32.div_ceil(per_second)),
            tolerance_us: burst_s * 1_000_000,
        })
    }

    /// The latest time of a bucket, unless the clock was set back.
    fn latest_us(self, now_us: i64) -> i64 {
        now_us + self.tolerance_us + self.interval_us
    }
}

impl Bucket {
    /// Whether nothing can be taken now.
    pub(super) fn is_used_up(self, rate: Rate, now: Timestamp) -> bool {
        let now_us = us(now);
        (now_us + rate.tolerance_us..=rate.latest_us(now_us)).contains(&self.due_at_us)
    }

    /// Takes one, whether or not it can be taken.
    pub(super) fn add(&mut self, rate: Rate, now: Timestamp) {
        let now_us = us(now);
        let due_at_us = self.due_at_us.max(now_us) + rate.interval_us;
        self.due_at_us = due_at_us.min(rate.latest_us(now_us));
    }

    /// Takes one if it can be taken; returns whether it was.
    pub(super) fn take(&mut self, rate: Rate, now: Timestamp) -> bool {
        let can = !self.is_used_up(rate, now);
        if can {
            self.add(rate, now);
        }
        can
    }
}

impl RateTable {
    /// A table of senders of which none has taken anything; without a rate nothing is ever used
    /// up.
    pub(super) fn at(rate: Option<Rate>) -> Self {
        let sets = if rate.is_some() { SETS } else { 0 };
        Self {
            rate,
            sets: vec![[Entry::default(); WAYS]; sets].into(),
            latest: Bucket::default(),
        }
    }

    /// Whether any sender may have used up its rate.
    pub(super) fn is_any_used_up(&self, now: Timestamp) -> bool {
        self.rate
            .is_some_and(|rate| self.latest.due_at_us >= us(now) + rate.tolerance_us)
    }

    /// Whether a sender has used up its rate.
    pub(super) fn is_used_up(&self, digest: u64, now: Timestamp) -> bool {
        let set = self.sets.get(place(digest));
        let entry = set.and_then(|set| set.iter().find(|entry| entry.digest == digest));
        match (self.rate, entry) {
            (Some(rate), Some(entry)) => entry.bucket.is_used_up(rate, now),
            (Some(_) | None, _) => false,
        }
    }

    /// Takes one for a sender, whether or not it can be taken.
    pub(super) fn add(&mut self, digest: u64, now: Timestamp) {
        if let Some((rate, bucket)) = self.bucket_of(digest) {
            bucket.add(rate, now);
            let bucket = *bucket;
            self.latest = self.latest.max(bucket);
        }
    }

    /// Takes one for a sender if it can be taken; returns whether it was.
    pub(super) fn take(&mut self, digest: u64, now: Timestamp) -> bool {
        self.bucket_of(digest)
            .is_none_or(|(rate, bucket)| bucket.take(rate, now))
    }

    fn bucket_of(&mut self, digest: u64) -> Option<(Rate, &mut Bucket)> {
        let rate = self.rate?;
        let set = self.sets.get_mut(place(digest))?;
        let at = match set.iter().position(|entry| entry.digest == digest) {
            Some(at) => at,
            None => {
                let (at, entry) = (set.iter_mut().enumerate()).min_by_key(|(_, it)| it.bucket)?;
                *entry = Entry {
                    digest,
                    bucket: Bucket::default(),
                };
                at
            }
        };
        Some((rate, &mut set.get_mut(at)?.bucket))
    }
}

fn place(digest: u64) -> usize {
    usize::try_from(digest >> 54).expect("ten bits")
}

fn us(at: Timestamp) -> i64 {
    at.as_ms().saturating_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_ms(1_700_000_000_000);

    #[test]
    fn a_burst_and_then_the_rate_can_be_taken() {
        let rate = Rate::of(100, 2).unwrap();
        let mut bucket = Bucket::default();
        let taken_at =
            |bucket: &mut Bucket, now| (0..1_000).filter(|_| bucket.take(rate, now)).count();
        assert_eq!(taken_at(&mut bucket, START), 200);
        assert!(bucket.is_used_up(rate, START));
        assert_eq!(taken_at(&mut bucket, START.plus_ms(1_000)), 100);
        assert_eq!(taken_at(&mut bucket, START.plus_ms(60_000)), 200);
    }

    #[test]
    fn what_is_taken_in_spite_of_the_rate_does_not_add_up() {
        let rate = Rate::of(100, 1).unwrap();
        let mut bucket = Bucket::default();
        for _ in 0..100_000 {
            bucket.add(rate, START);
        }
        assert!(bucket.is_used_up(rate, START));
        assert!(!bucket.is_used_up(rate, START.plus_ms(20)));
    }

    #[test]
    fn a_clock_that_is_set_back_blocks_nobody() {
        let rate = Rate::of(100, 1).unwrap();
        let mut bucket = Bucket::default();
        while bucket.take(rate, START) {}
        let earlier = START.plus_ms(-3_600_000);
        assert!(bucket.take(rate, earlier));
        bucket.add(rate, earlier);
        assert!(bucket.is_used_up(rate, earlier));
        assert!(!bucket.is_used_up(rate, earlier.plus_ms(20)));
    }

    #[test]
    fn without_a_rate_nothing_is_used_up() {
        assert!(Rate::of(0, 1).is_none());
        let mut table = RateTable::at(None);
        table.add(7, START);
        assert!(
            table.take(7, START) && !table.is_used_up(7, START) && !table.is_any_used_up(START)
        );
    }

    #[test]
    fn senders_do_not_use_up_each_others_rate() {
        let mut table = RateTable::at(Rate::of(10, 1));
        // All of them are in one set.
        for digest in 1..=WAYS as u64 {
            assert!(!table.is_used_up(digest, START));
            while table.take(digest, START) {}
            assert!(table.is_used_up(digest, START));
        }
        assert!(!table.is_used_up(5, START));
    }

    #[test]
    fn in_a_full_set_the_sender_least_in_debt_gives_way() {
        let mut table = RateTable::at(Rate::of(10, 1));
        for digest in 1..=WAYS as u64 {
            for _ in 0..digest {
                table.add(digest, START);
            }
        }
        for _ in 0..20 {
            table.add(9, START);
        }
        assert!(table.is_used_up(9, START) && table.is_any_used_up(START));
        let mut left = (1..=WAYS as u64).filter(|digest| {
            let entries = &table.sets[place(*digest)];
            entries.iter().any(|entry| entry.digest == *digest)
        });
        assert_eq!(left.next(), Some(2));
        assert!(!table.is_any_used_up(START.plus_ms(2_000)));
    }
}
