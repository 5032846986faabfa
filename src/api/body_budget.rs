//! How much memory do the bodies of all calls in progress take? At most a budget, of which an
//! address and a customer have a part each, so that one caller cannot use up the others' share.
//!
//! A body counts as it arrives, and until its call is answered.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::ids::CustomerId;

/// The part of the budget that one address or one customer may take.
const PART: usize = 4;

/// The bodies of all calls in progress.
#[derive(Clone, Debug)]
pub(super) struct BodyBudget {
    bytes_max: usize,
    /// What an address or a customer may take: at least one whole body.
    part_bytes_max: usize,
    used: Arc<Mutex<Used>>,
}

/// Whose body it is.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum BodyOwner {
    /// The address that the call came from.
    Address(IpAddr),
    /// The customer that calls.
    Customer(CustomerId),
}

/// The budget is used up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct BudgetExceeded;

/// What one body takes of the budget, until it is dropped.
#[derive(Debug)]
pub(super) struct BodyReservation {
    budget: BodyBudget,
    owners: Vec<BodyOwner>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Used {
    bytes: usize,
    bytes_by_owner: HashMap<BodyOwner, usize>,
}

impl BodyBudget {
    /// A budget for bodies of at most `body_bytes_max` each.
    pub(super) fn new(bytes_max: usize, body_bytes_max: usize) -> Self {
        Self {
            bytes_max: bytes_max.max(body_bytes_max),
            part_bytes_max: (bytes_max / PART).max(body_bytes_max),
            used: Arc::default(),
        }
    }

    /// A body that has not arrived yet.
    pub(super) fn open(&self, owners: Vec<BodyOwner>) -> BodyReservation {
        BodyReservation {
            budget: self.clone(),
            owners,
            bytes: 0,
        }
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BodyReservation {
    /// Whether so many more bytes would fit now.
    pub(super) fn has_room(&self, bytes: usize) -> Result<(), BudgetExceeded> {
        self.fits(&self.budget.used(), bytes)
    }

    /// Takes so many more bytes.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), BudgetExceeded> {
        let mut used = self.budget.used();
        self.fits(&used, bytes)?;
        used.bytes += bytes;
        for owner in &self.owners {
            *used.bytes_by_owner.entry(owner.clone()).or_default() += bytes;
        }
        drop(used);
        self.bytes += bytes;
        Ok(())
    }

    fn fits(&self, used: &Used, bytes: usize) -> Result<(), BudgetExceeded> {
        let fits = |used: usize, max: usize| used.saturating_add(bytes) <= max;
        let part = self.budget.part_bytes_max;
        let of = |owner| used.bytes_by_owner.get(owner).copied().unwrap_or_default();
        let fits_parts = self.owners.iter().all(|owner| fits(of(owner), part));
        match fits(used.bytes, self.budget.bytes_max) && fits_parts {
            true => Ok(()),
            false => Err(BudgetExceeded),
        }
    }
}

impl Drop for BodyReservation {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut used = self.budget.used();
        used.bytes -= self.bytes;
        for owner in self.owners.drain(..) {
            if let Entry::Occupied(mut of_owner) = used.bytes_by_owner.entry(owner) {
                *of_owner.get_mut() -= self.bytes;
                if *of_owner.get() == 0 {
                    of_owner.remove();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_and_a_customer_take_a_quarter_each_and_all_of_them_the_whole() {
        let budget = BodyBudget::new(400, 50);
        let mut bodies: Vec<_> = (1..=4).map(|number| body(&budget, number)).collect();
        for body in &mut bodies {
            assert_eq!(body.take(60), Ok(()));
            assert_eq!(body.take(40), Ok(()));
            assert_eq!(body.take(1), Err(BudgetExceeded), "its part");
        }
        let mut fifth = body(&budget, 5);
        assert_eq!(fifth.has_room(1), Err(BudgetExceeded), "the whole");
        bodies.pop();
        assert_eq!(fifth.take(100), Ok(()));
        // The same address in the name of another customer, and the other way round.
        let address = BodyOwner::Address([10, 0, 0, 1].into());
        assert_eq!(budget.open(vec![address]).take(1), Err(BudgetExceeded));
        assert_eq!(budget.open(vec![customer(1)]).take(1), Err(BudgetExceeded));
        drop((bodies, fifth));
        let used = budget.used();
        assert_eq!(used.bytes, 0);
        assert!(used.bytes_by_owner.is_empty());
    }

    #[test]
    fn a_budget_has_room_for_one_whole_body() {
        let budget = BodyBudget::new(40, 50);
        assert_eq!(body(&budget, 1).take(50), Ok(()));
    }

    fn body(budget: &BodyBudget, number: u8) -> BodyReservation {
        let address = BodyOwner::Address([10, 0, 0, number].into());
        budget.open(vec![address, customer(number)])
    }

    fn customer(number: u8) -> BodyOwner {
        BodyOwner::Customer(CustomerId::parse(&format!("customer-{number}")).unwrap())
    }
}
