//! Which object lists do devices have in common? One copy of each list for all devices of an
//! arbiter.

use std::collections::BTreeSet;
use std::sync::Arc;

use protocol::lwm2m::links::ObjectLinks;

use crate::limits::OBJECT_LISTS_MAX;

/// With fewer new lists than this, a sweep for unused ones is not worth it.
const SWEEP_AFTER_MIN: usize = 64;

/// The object lists that devices have in common.
#[derive(Debug)]
pub struct ObjectLists {
    lists: BTreeSet<Arc<ObjectLinks>>,
    /// The number of new lists until the next sweep.
    sweep_after: usize,
}

impl Default for ObjectLists {
    fn default() -> Self {
        Self {
            lists: BTreeSet::new(),
            sweep_after: SWEEP_AFTER_MIN,
        }
    }
}

impl ObjectLists {
    /// Replaces a list by the equal one that is shared, or shares it with devices to come.
    pub fn share(&mut self, list: &mut Arc<ObjectLinks>) {
        if let Some(known) = self.lists.get(list) {
            *list = Arc::clone(known);
            return;
        }
        self.sweep_now_and_then();
        if self.lists.len() < OBJECT_LISTS_MAX {
            self.lists.insert(Arc::clone(list));
        }
    }

    /// The number of lists, unused ones included.
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// Whether there are no lists.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Drops unused lists. The interval between sweeps is as many new lists as there are lists to
    /// check, so a new list costs one check.
    fn sweep_now_and_then(&mut self) {
        if self.sweep_after == 0 {
            self.lists.retain(|list| Arc::strong_count(list) > 1);
            self.sweep_after = self.lists.len().max(SWEEP_AFTER_MIN);
        }
        self.sweep_after -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_become_one() {
        let mut lists = ObjectLists::default();
        let (mut first, mut same, mut other) = (list(1), list(1), list(2));
        lists.share(&mut first);
        lists.share(&mut same);
        lists.share(&mut other);
        assert!(Arc::ptr_eq(&first, &same));
        assert!(!Arc::ptr_eq(&first, &other));
        assert_eq!(*same, *list(1));
        assert_eq!(lists.len(), 2);
    }

    #[test]
    fn unused_lists_are_dropped() {
        let mut lists = ObjectLists::default();
        let mut lasting = list(0);
        lists.share(&mut lasting);
        for id in 1..10_000 {
            lists.share(&mut list(id));
            assert!(lists.len() <= 1 + SWEEP_AFTER_MIN);
        }
        let mut again = list(0);
        lists.share(&mut again);
        assert!(Arc::ptr_eq(&lasting, &again));
    }

    #[test]
    fn at_the_bound_a_list_stays_with_its_device() {
        let mut lists = ObjectLists::default();
        let mut held: Vec<Arc<ObjectLinks>> = (0..=OBJECT_LISTS_MAX).map(list).collect();
        held.iter_mut().for_each(|held| lists.share(held));
        assert_eq!(lists.len(), OBJECT_LISTS_MAX);
        let (mut early, mut late) = (list(0), list(OBJECT_LISTS_MAX));
        lists.share(&mut early);
        lists.share(&mut late);
        assert!(Arc::ptr_eq(&held[0], &early));
        assert!(!Arc::ptr_eq(&held[OBJECT_LISTS_MAX], &late));
        held.clear();
        for number in 1..=2 * OBJECT_LISTS_MAX {
            lists.share(&mut list(number));
        }
        lists.share(&mut late);
        assert!(Arc::strong_count(&late) > 1);
    }

    /// A list that differs for each number.
    fn list(number: usize) -> Arc<ObjectLinks> {
        let text = format!("</3/0>,</10{}/{}>", number / 50_000, number % 50_000);
        Arc::new(ObjectLinks::decode(text.as_bytes()).unwrap())
    }
}
