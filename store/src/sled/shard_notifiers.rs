//! Who is notified of shards in which events begin to wait?

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use engine::ids::{CustomerId, Shard};

use super::key::outbox;
use super::overlay::Overlay;
use crate::ShardNotifier;

/// The notifiers that are held, by customer.
#[derive(Default)]
pub(super) struct ShardNotifiers(Mutex<ByCustomer>);

type ByCustomer = HashMap<CustomerId, Vec<Weak<ShardNotifier>>>;

impl ShardNotifiers {
    /// A notifier of the shards in which events begin to wait for a customer's destinations from
    /// now on, as long as it is held.
    pub(super) fn subscribe(&self, customer: CustomerId) -> Arc<ShardNotifier> {
        let notifier = Arc::default();
        let mut by_customer = self.lock();
        let notifiers = by_customer.entry(customer).or_default();
        notifiers.retain(|notifier| notifier.strong_count() > 0);
        notifiers.push(Arc::downgrade(&notifier));
        notifier
    }

    /// Notifies the subscribers. Only durable events may be reported.
    pub(super) fn notify(&self, begun: Vec<(CustomerId, Shard)>) {
        if begun.is_empty() {
            return;
        }
        let mut by_customer = self.lock();
        for (customer, shard) in begun {
            let Some(notifiers) = by_customer.get_mut(&customer) else {
                continue;
            };
            notifiers.retain(|notifier| {
                notifier
                    .upgrade()
                    .map(|notifier| notifier.note(shard))
                    .is_some()
            });
            if notifiers.is_empty() {
                by_customer.remove(&customer);
            }
        }
    }

    /// The lock may be poisoned: a map of notifiers is always consistent.
    fn lock(&self) -> MutexGuard<'_, ByCustomer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// In which shards the rows of a group make events begin to wait.
pub(super) fn begun_in(rows: &Overlay<'_>) -> Vec<(CustomerId, Shard)> {
    let mut begun = Vec::new();
    let mut last: &[u8] = &[];
    for key in rows.put_under(&outbox::all_waiting()) {
        let shard = outbox::shard_part(key);
        if shard == last {
            continue;
        }
        last = shard;
        let place = outbox::position_of(key);
        begun.extend(place.map(|(customer, shard, _)| (customer, shard)));
    }
    begun
}

#[cfg(test)]
mod tests {
    use engine::delivery::backlog::Sequence;
    use sled::IVec;

    use super::*;

    fn id(text: &str) -> CustomerId {
        CustomerId::parse(text).unwrap()
    }

    #[test]
    fn every_notifier_of_a_customer_is_notified_while_it_is_held() {
        let notifiers = ShardNotifiers::default();
        let [one, other] = [id("a"), id("b")];
        let [first, second] = [
            notifiers.subscribe(one.clone()),
            notifiers.subscribe(one.clone()),
        ];
        let elsewhere = notifiers.subscribe(other.clone());
        notifiers.notify(vec![(one.clone(), Shard(3)), (one.clone(), Shard(9))]);
        assert_eq!(first.take(), [Shard(3), Shard(9)]);
        assert_eq!(second.take(), [Shard(3), Shard(9)]);
        assert_eq!(elsewhere.take(), []);
        drop(second);
        notifiers.notify(vec![(one.clone(), Shard(4)), (other, Shard(5))]);
        assert_eq!(
            (first.take(), elsewhere.take()),
            (vec![Shard(4)], vec![Shard(5)])
        );
        drop((first, elsewhere));
        notifiers.notify(vec![(one.clone(), Shard(4))]);
        assert!(
            !notifiers.lock().contains_key(&one),
            "nobody is left to tell"
        );
    }

    #[test]
    fn a_shard_is_reported_once_per_group_and_not_for_removals() {
        let db = sled::Config::new().temporary(true).open().unwrap();
        let mut rows = Overlay::new(&db);
        for (customer, shard, number) in [("a", 7, 1), ("a", 7, 2), ("a", 8, 3), ("b", 7, 4)] {
            let key = outbox::waiting(&id(customer), Shard(shard), Sequence(number));
            rows.put(key.into(), IVec::default());
        }
        rows.remove(outbox::waiting(&id("c"), Shard(1), Sequence(0)));
        rows.put(outbox::newest_number().into(), IVec::default());
        let expected = [("a", 7), ("a", 8), ("b", 7)];
        let expected = expected.map(|(customer, shard)| (id(customer), Shard(shard)));
        assert_eq!(begun_in(&rows), expected);
    }
}
