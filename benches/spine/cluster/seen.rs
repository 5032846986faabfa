//! Does a request ever seem to go back? What reads have shown of each one.
//!
//! A request only moves on: it exists, has ever more attempts behind it, and ends in one status. So
//! its reads are linearisable if, and only if, none shows less than one that had ended before it
//! began.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// How far a request has come.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Progress {
    /// The attempts that it has behind it.
    pub(crate) attempts: u64,
    /// The status in which it has ended, if it has.
    pub(crate) ended: Option<String>,
}

/// The requests that were accepted, each as far as a read has shown it.
#[derive(Clone, Default)]
pub(crate) struct SeenRequests(Arc<Mutex<ShownProgress>>);

#[derive(Default)]
struct ShownProgress {
    by_id: HashMap<String, Progress>,
    ids: Vec<String>,
    reads: u64,
    back: u64,
}

impl SeenRequests {
    /// A request was accepted: every read that begins from now on shows it.
    pub(crate) fn accept(&self, id: &str) {
        let mut shown = self.lock();
        shown.by_id.insert(id.to_owned(), Progress::default());
        shown.ids.push(id.to_owned());
    }

    /// One of the requests, with what a read that begins now has to show at least.
    pub(crate) fn choose(&self, number: usize) -> Option<(String, Progress)> {
        let shown = self.lock();
        let id = shown.ids.get(number % shown.ids.len().max(1))?;
        Some((id.clone(), shown.by_id[id].clone()))
    }

    /// A read has ended that had to show so much, and showed this; none if it showed no request.
    pub(crate) fn read(&self, id: &str, least: &Progress, found: Option<Progress>) {
        let mut shown = self.lock();
        shown.reads += 1;
        let Some(found) = found.filter(|found| !found.is_before(least)) else {
            shown.back += 1;
            return;
        };
        // Another read may have shown more meanwhile.
        let known = shown.by_id.get_mut(id).expect("it was chosen");
        if known.is_before(&found) {
            *known = found;
        }
    }

    /// How many reads there were, and how many of them showed less than one before.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let shown = self.lock();
        (shown.reads, shown.back)
    }

    fn lock(&self) -> MutexGuard<'_, ShownProgress> {
        self.0.lock().expect("nobody panics with it")
    }
}

impl Progress {
    /// Whether a request that is there is not here yet, or ended otherwise.
    fn is_before(&self, there: &Self) -> bool {
        self.attempts < there.attempts || there.ended.is_some() && self.ended != there.ended
    }
}
