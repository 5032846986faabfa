//! Who is notified of partitions in which events begin to wait?

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use engine::ids::{CustomerId, Partition};

use crate::PartitionNotifier;

/// The notifiers that are held, by customer.
#[derive(Default)]
pub(crate) struct PartitionNotifiers(Mutex<ByCustomer>);

type ByCustomer = HashMap<CustomerId, Vec<Weak<PartitionNotifier>>>;

impl PartitionNotifiers {
    /// A notifier of the partitions in which events begin to wait for a customer's destinations
    /// from now on, as long as it is held.
    pub(crate) fn subscribe(&self, customer: CustomerId) -> Arc<PartitionNotifier> {
        let notifier = Arc::default();
        let mut by_customer = self.lock();
        let notifiers = by_customer.entry(customer).or_default();
        notifiers.retain(|notifier| notifier.strong_count() > 0);
        notifiers.push(Arc::downgrade(&notifier));
        notifier
    }

    /// Notifies the subscribers. Only durable events may be reported.
    pub(crate) fn notify(&self, begun: Vec<(CustomerId, Partition)>) {
        if begun.is_empty() {
            return;
        }
        let mut by_customer = self.lock();
        for (customer, partition) in begun {
            let Some(notifiers) = by_customer.get_mut(&customer) else {
                continue;
            };
            notifiers.retain(|notifier| {
                notifier
                    .upgrade()
                    .map(|notifier| notifier.note(partition))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> CustomerId {
        CustomerId::parse(text).unwrap()
    }

    #[test]
    fn every_notifier_of_a_customer_is_notified_while_it_is_held() {
        let notifiers = PartitionNotifiers::default();
        let [one, other] = [id("a"), id("b")];
        let [first, second] = [
            notifiers.subscribe(one.clone()),
            notifiers.subscribe(one.clone()),
        ];
        let elsewhere = notifiers.subscribe(other.clone());
        notifiers.notify(vec![
            (one.clone(), Partition(3)),
            (one.clone(), Partition(9)),
        ]);
        assert_eq!(first.take(), [Partition(3), Partition(9)]);
        assert_eq!(second.take(), [Partition(3), Partition(9)]);
        assert_eq!(elsewhere.take(), []);
        drop(second);
        notifiers.notify(vec![(one.clone(), Partition(4)), (other, Partition(5))]);
        assert_eq!(
            (first.take(), elsewhere.take()),
            (vec![Partition(4)], vec![Partition(5)])
        );
        drop((first, elsewhere));
        notifiers.notify(vec![(one.clone(), Partition(4))]);
        assert!(
            !notifiers.lock().contains_key(&one),
            "nobody is left to tell"
        );
    }
}
