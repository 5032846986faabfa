//! Who is notified of partitions in which events begin to wait?

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use engine::ids::{CustomerId, Partition};

use crate::{EventNews, PartitionNotifier};

/// The notifiers that are held.
#[derive(Default)]
pub(crate) struct PartitionNotifiers {
    by_customer: Mutex<ByCustomer>,
    of_all: Mutex<Vec<Weak<EventNews>>>,
}

type ByCustomer = HashMap<CustomerId, Vec<Weak<PartitionNotifier>>>;

impl PartitionNotifiers {
    /// A notifier of the partitions in which events begin to wait for a customer's destinations
    /// from now on, as long as it is held.
    pub(crate) fn subscribe(&self, customer: CustomerId) -> Arc<PartitionNotifier> {
        let notifier = Arc::default();
        let mut by_customer = locked(&self.by_customer);
        let notifiers = by_customer.entry(customer).or_default();
        notifiers.retain(|notifier| notifier.strong_count() > 0);
        notifiers.push(Arc::downgrade(&notifier));
        notifier
    }

    /// What learns of all events that are stored here from now on, as long as it is held.
    pub(crate) fn subscribe_to_all(&self) -> Arc<EventNews> {
        let news = Arc::default();
        locked(&self.of_all).push(Arc::downgrade(&news));
        news
    }

    /// Notifies the subscribers of events that were stored here. Only durable events may be
    /// reported.
    pub(crate) fn notify(&self, begun: Vec<(CustomerId, Partition)>) {
        if begun.is_empty() {
            return;
        }
        locked(&self.of_all).retain(|news| {
            let news = news.upgrade();
            news.map(|news| news.note(&begun)).is_some()
        });
        self.notify_customers(begun);
    }

    /// Notifies the subscribers of events that were stored elsewhere; of all partitions, if it is
    /// not known which have some.
    pub(crate) fn notify_of_others(&self, begun: Option<Vec<(CustomerId, Partition)>>) {
        match begun {
            Some(begun) => self.notify_customers(begun),
            None => {
                let by_customer = locked(&self.by_customer);
                let held = by_customer.values().flatten().filter_map(Weak::upgrade);
                held.for_each(|it| Partition::all().for_each(|partition| it.note(partition)));
            }
        }
    }

    fn notify_customers(&self, begun: Vec<(CustomerId, Partition)>) {
        let mut by_customer = locked(&self.by_customer);
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
}

/// The lock may be poisoned: notifiers are always consistent.
fn locked<T>(notifiers: &Mutex<T>) -> MutexGuard<'_, T> {
    notifiers.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

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
            !locked(&notifiers.by_customer).contains_key(&one),
            "nobody is left to tell"
        );
    }

    #[test]
    fn what_is_stored_here_is_news_of_all_and_what_is_stored_elsewhere_is_not() {
        let notifiers = PartitionNotifiers::default();
        let acme = id("acme");
        let here = (acme.clone(), Partition(3));
        let news = notifiers.subscribe_to_all();
        let notifier = notifiers.subscribe(acme.clone());
        notifiers.notify(vec![here.clone(), here.clone()]);
        notifiers.notify_of_others(Some(vec![(acme, Partition(4))]));
        assert_eq!(notifier.take(), [Partition(3), Partition(4)]);
        assert_eq!(news.take(), BTreeSet::from([here]));
        assert_eq!(news.take(), BTreeSet::new());
        notifiers.notify_of_others(None);
        assert_eq!(notifier.take().len(), 16);
        assert_eq!(news.take(), BTreeSet::new());
    }
}
