//! What have the devices of each customer taken of their rate? It counts only while devices of
//! another customer send: one that is alone may use everything.

use std::collections::HashMap;

use super::rate::{Bucket, Rate};
use crate::ids::CustomerId;
use crate::moment::Timestamp;

/// How long after a message another customer counts as sending.
const SENDING_MS: i64 = 1_000;

/// The number of a customer within an arbiter: smaller than its id, because each device has it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CustomerSlot(u32);

/// What the devices of each customer have taken.
#[derive(Debug)]
pub(super) struct CustomerRates {
    rate: Option<Rate>,
    slot_by_customer: HashMap<CustomerId, CustomerSlot>,
    bucket_by_slot: Vec<Bucket>,
    /// Whose device sent last, and when.
    latest: Option<(CustomerSlot, Timestamp)>,
    /// When a device of another customer sent last before.
    other_at: Option<Timestamp>,
}

impl CustomerRates {
    /// Nothing is taken yet.
    pub(super) fn at(rate: Option<Rate>) -> Self {
        Self {
            rate,
            slot_by_customer: HashMap::new(),
            bucket_by_slot: Vec::new(),
            latest: None,
            other_at: None,
        }
    }

    /// The slot of a customer.
    pub(super) fn slot_of(&mut self, customer: &CustomerId) -> CustomerSlot {
        if let Some(slot) = self.slot_by_customer.get(customer) {
            return *slot;
        }
        let number = u32::try_from(self.bucket_by_slot.len());
        let slot = CustomerSlot(number.expect("there are fewer customers than devices"));
        self.bucket_by_slot.push(Bucket::default());
        self.slot_by_customer.insert(customer.clone(), slot);
        slot
    }

    /// Takes this many for a customer if one can be taken; returns whether they were.
    pub(super) fn take(&mut self, customer: CustomerSlot, units: u32, now: Timestamp) -> bool {
        let Some(rate) = self.rate else {
            return true;
        };
        let latest = self.latest.replace((customer, now));
        if let Some((other, at)) = latest
            && other != customer
        {
            self.other_at = Some(at);
        }
        let is_alone = self
            .other_at
            .is_none_or(|at| now.since_ms(at) >= SENDING_MS);
        let Some(bucket) = self.bucket_by_slot.get_mut(customer.0 as usize) else {
            return true;
        };
        match is_alone {
            true => {
                *bucket = Bucket::default();
                true
            }
            false => {
                let can = bucket.take(rate, now);
                if can {
                    (1..units).for_each(|_| bucket.add(rate, now));
                }
                can
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_ms(1_700_000_000_000);

    #[test]
    fn a_customer_that_is_alone_has_no_rate() {
        let (mut rates, [acme, _]) = rates();
        assert_eq!(taken(&mut rates, acme, START), 1_000);
    }

    #[test]
    fn customers_that_send_at_the_same_time_have_a_rate_each() {
        let (mut rates, [acme, other]) = rates();
        assert!(rates.take(other, 1, START), "it is alone still");
        assert_eq!(taken(&mut rates, acme, START), 10);
        assert_eq!(taken(&mut rates, other, START), 10);
        assert_eq!(taken(&mut rates, acme, START.plus_ms(500)), 5);
        assert_eq!(taken(&mut rates, acme, START.plus_ms(1_000)), 1_000);
    }

    #[test]
    fn what_costs_more_takes_more() {
        let (mut rates, [acme, other]) = rates();
        assert!(rates.take(other, 1, START));
        let taken = (0..1_000).filter(|_| rates.take(acme, 4, START));
        assert_eq!(taken.count(), 3, "of ten the last took what was left");
    }

    #[test]
    fn a_customer_keeps_its_slot() {
        let (mut rates, [acme, other]) = rates();
        assert_ne!(acme, other);
        assert_eq!(rates.slot_of(&CustomerId::parse("acme").unwrap()), acme);
    }

    fn rates() -> (CustomerRates, [CustomerSlot; 2]) {
        let mut rates = CustomerRates::at(Rate::of(10, 1));
        let slots = ["acme", "other"].map(|name| rates.slot_of(&CustomerId::parse(name).unwrap()));
        (rates, slots)
    }

    fn taken(rates: &mut CustomerRates, customer: CustomerSlot, now: Timestamp) -> usize {
        (0..1_000).filter(|_| rates.take(customer, 1, now)).count()
    }
}
