//! How does an arbiter count? In plain numbers of its own thread, published at intervals.

use std::array;
use std::cell::Cell;

use engine::dispatch::datagram_form::DatagramForm;
use metrics::{Counter, counter};

/// A plain count and the counter it is published as, to which others may add, too.
pub(crate) struct Count {
    count: Cell<u64>,
    published: Cell<u64>,
    counter: Counter,
}

impl Count {
    /// A count of zero.
    pub(super) fn new(counter: Counter) -> Self {
        Self {
            count: Cell::new(0),
            published: Cell::new(0),
            counter,
        }
    }

    /// Counts one more.
    pub(crate) fn one(&self) {
        self.count.set(self.count.get() + 1);
    }

    /// Sets the count to a later value.
    pub(super) fn reach(&self, count: u64) {
        self.count.set(count);
    }

    /// Publishes the count.
    pub(super) fn publish(&self) {
        let count = self.count.get();
        let published = self.published.replace(count);
        self.counter.increment(count.saturating_sub(published));
    }
}

/// Counts of several kinds.
pub(crate) struct Family<const N: usize>([Count; N]);

impl<const N: usize> Family<N> {
    /// Counts of zero, one for each value of a label.
    pub(super) fn new(
        name: &'static str,
        arbiter: &str,
        label: &'static str,
        words: [&'static str; N],
    ) -> Self {
        let arbiter = || arbiter.to_owned();
        let published = |word| counter!(name, "arbiter" => arbiter(), label => word);
        Self::of(words.map(published))
    }

    /// Counts of zero, published as these counters.
    pub(super) fn of(published: [Counter; N]) -> Self {
        Self(published.map(Count::new))
    }

    /// Counts one more of a kind.
    pub(crate) fn one(&self, kind: usize) {
        if let Some(count) = self.0.get(kind) {
            count.one();
        }
    }

    /// Sets the count of a kind to a later value.
    pub(super) fn reach(&self, kind: usize, count: u64) {
        if let Some(counted) = self.0.get(kind) {
            counted.reach(count);
        }
    }

    /// Publishes the counts.
    pub(super) fn publish(&self) {
        self.0.iter().for_each(Count::publish);
    }
}

/// Counts of datagrams by their form.
pub(crate) struct DatagramCounts {
    counts: [Cell<u64>; DatagramForm::COUNT],
    published: Vec<(DatagramForm, Count)>,
}

impl DatagramCounts {
    /// Counts of zero, for datagrams of these forms.
    pub(super) fn new(
        name: &'static str,
        arbiter: &str,
        forms: impl Iterator<Item = DatagramForm>,
    ) -> Self {
        let published = |form: DatagramForm| {
            let arbiter = arbiter.to_owned();
            let (kind, code) = (form.kind(), form.code());
            let counter = counter!(name, "arbiter" => arbiter, "type" => kind, "code" => code);
            (form, Count::new(counter))
        };
        Self {
            counts: array::from_fn(|_| Cell::new(0)),
            published: forms.map(published).collect(),
        }
    }

    /// Counts a datagram.
    pub(crate) fn one(&self, form: DatagramForm) {
        if let Some(count) = self.counts.get(form.index()) {
            count.set(count.get() + 1);
        }
    }

    /// Publishes the counts.
    pub(super) fn publish(&self) {
        for (form, published) in &self.published {
            published.reach(self.counts.get(form.index()).map_or(0, Cell::get));
            published.publish();
        }
    }
}
