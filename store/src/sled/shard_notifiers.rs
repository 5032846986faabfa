//! Who is told in which shards something begins to wait?

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use engine::ids::{CustomerId, Shard};

use super::key::outbox;
use super::overlay::Overlay;
use crate::ShardNotifier;

/// The boards that are held, by customer.
#[derive(Default)]
pub(super) struct ShardNotifiers(Mutex<ByCustomer>);

type ByCustomer = HashMap<CustomerId, Vec<Weak<ShardNotifier>>>;

impl ShardNotifiers {
    /// A board that is told of what begins to wait for the destinations of a customer from now on,
    /// as long as it is held.
    pub(super) fn subscribe(&self, customer: CustomerId) -> Arc<ShardNotifier> {
        let notifier = Arc::default();
        let mut by_customer = self.lock();
        let notifiers = by_customer.entry(customer).or_default();
        notifiers.retain(|notifier| notifier.strong_count() > 0);
        notifiers.push(Arc::downgrade(&notifier));
        notifier
    }

    /// Tells the boards. Only what is durable may be told.
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

    /// A map of boards cannot be left half.
    fn lock(&self) -> MutexGuard<'_, ByCustomer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// In which shards something begins to wait with the rows of a group.
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
    fn every_board_of_a_customer_is_told_while_it_is_held() {
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
    fn a_shard_is_told_of_once_in_a_group_and_not_for_what_goes() {
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
