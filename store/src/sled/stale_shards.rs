//! Where may rows be that every destination of their customer is past?
//!
//! Wherever a destination advanced, and wherever events wait when the store is opened or a
//! destination is removed. Shards without changes are not looked at again, so the cost of a sweep
//! is that of what it removes.

use std::collections::BTreeMap;
use std::ops::Bound;

use engine::ids::{CustomerId, Shard};
use sled::Tree;

use super::customers_having::customers_having;
use super::fault::Fault;
use super::key;
use crate::shards::ShardSet;

/// The shards in which rows may be stale, by customer.
#[derive(Default)]
pub(super) struct StaleShards {
    shards_by_customer: BTreeMap<CustomerId, ShardSet>,
    /// The customer that had the last turn.
    last: Option<CustomerId>,
}

impl StaleShards {
    /// Every shard in which events wait.
    pub(super) fn load(tree: &Tree) -> Result<Self, Fault> {
        let mut stale = Self::default();
        for customer in customers_having(tree, &key::outbox::all_waiting())? {
            stale.note_all(&customer);
        }
        Ok(stale)
    }

    /// Notes that a destination of a customer advanced in a shard.
    pub(super) fn note(&mut self, customer: &CustomerId, shard: Shard) {
        match self.shards_by_customer.get_mut(customer) {
            Some(shards) => shards.insert(shard),
            None => {
                let mut shards = ShardSet::default();
                shards.insert(shard);
                self.shards_by_customer.insert(customer.clone(), shards);
            }
        }
    }

    /// Notes that a customer lost a destination.
    pub(super) fn note_all(&mut self, customer: &CustomerId) {
        self.shards_by_customer
            .insert(customer.clone(), ShardSet::ALL);
    }

    /// How many customers there are.
    pub(super) fn customers(&self) -> usize {
        self.shards_by_customer.len()
    }

    /// The customer whose turn it is: all have turns in rotation.
    pub(super) fn next_customer(&mut self) -> Option<CustomerId> {
        let behind = match &self.last {
            Some(last) => (Bound::Excluded(last.clone()), Bound::Unbounded),
            None => (Bound::Unbounded, Bound::Unbounded),
        };
        let mut customers = self.shards_by_customer.range(behind);
        let next = customers.next().or(self.shards_by_customer.iter().next());
        self.last = next.map(|(customer, _)| customer.clone());
        self.last.clone()
    }

    /// The first shard of a customer.
    pub(super) fn first_of(&self, customer: &CustomerId) -> Option<Shard> {
        self.shards_by_customer.get(customer)?.first()
    }

    /// Notes that the shards of a customer before this one have no stale rows.
    pub(super) fn clear_before(&mut self, customer: &CustomerId, shard: Shard) {
        self.change(customer, |shards| shards.remove_before(shard));
    }

    /// Notes that a shard of a customer has no stale rows.
    pub(super) fn clear(&mut self, customer: &CustomerId, shard: Shard) {
        self.change(customer, |shards| shards.remove(shard));
    }

    /// Notes that a customer has no stale rows.
    pub(super) fn clear_all(&mut self, customer: &CustomerId) {
        self.shards_by_customer.remove(customer);
    }

    fn change(&mut self, customer: &CustomerId, change: impl FnOnce(&mut ShardSet)) {
        if let Some(shards) = self.shards_by_customer.get_mut(customer) {
            change(shards);
            if shards.is_empty() {
                self.shards_by_customer.remove(customer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> CustomerId {
        CustomerId::parse(text).unwrap()
    }

    #[test]
    fn customers_have_their_turns_one_after_another() {
        let mut stale = StaleShards::default();
        assert_eq!(stale.next_customer(), None);
        for customer in ["b", "a", "c"] {
            stale.note(&id(customer), Shard(7));
        }
        let turns: Vec<_> = (0..4).filter_map(|_| stale.next_customer()).collect();
        assert_eq!(turns, ["a", "b", "c", "a"].map(id));
        stale.clear_all(&id("b"));
        assert_eq!(stale.next_customer(), Some(id("c")));
        stale.clear_all(&id("c"));
        assert_eq!(stale.next_customer(), Some(id("a")));
    }

    #[test]
    fn a_customer_is_forgotten_with_its_last_shard() {
        let mut stale = StaleShards::default();
        let customer = id("a");
        for shard in [3, 5, 900] {
            stale.note(&customer, Shard(shard));
        }
        stale.clear_before(&customer, Shard(5));
        assert_eq!(stale.first_of(&customer), Some(Shard(5)));
        stale.clear(&customer, Shard(5));
        assert_eq!(stale.first_of(&customer), Some(Shard(900)));
        assert_eq!(stale.customers(), 1);
        stale.clear(&customer, Shard(900));
        assert_eq!((stale.customers(), stale.first_of(&customer)), (0, None));
        stale.note_all(&customer);
        assert_eq!(stale.first_of(&customer), Some(Shard(0)));
    }
}
