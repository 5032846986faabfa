//! May an import start, and may it commit a batch? One import per customer at a time, and a few in
//! all; a few batches of all of them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use engine::ids::CustomerId;

use crate::api::error::{ApiError, ErrorDetail};

/// Concurrent imports; each holds a few MiB. Those that wait for their callers leave the disk to
/// the others.
const IMPORTS_MAX: usize = 16;

/// Batches of all imports that are committed at a time. Imports share one disk, so more would not
/// be faster, and the commits of other callers and devices would wait longer behind them.
const BATCHES_MAX: usize = 12;

/// The imports in progress.
#[derive(Clone, Debug)]
pub(in crate::api) struct RunningImports {
    customers: Arc<Mutex<BTreeSet<CustomerId>>>,
    batches: Arc<Semaphore>,
}

/// The slot of an import; released on drop.
#[derive(Debug)]
pub(super) struct ImportSlot {
    imports: RunningImports,
    customer: CustomerId,
}

impl RunningImports {
    /// No import is in progress.
    pub(in crate::api) fn none() -> Self {
        Self {
            customers: Arc::default(),
            batches: Arc::new(Semaphore::new(BATCHES_MAX)),
        }
    }

    /// Acquires the slot of an import, if one is free.
    pub(super) fn enter(&self, customer: &CustomerId) -> Result<ImportSlot, ApiError> {
        let mut customers = self
            .customers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if customers.contains(customer) {
            let message = "another import of this customer is in progress";
            return Err(ApiError::conflict(vec![ErrorDetail::new(
                "IMPORT_RUNNING",
                message,
            )]));
        }
        if customers.len() >= IMPORTS_MAX {
            return Err(ApiError::busy());
        }
        customers.insert(customer.clone());
        Ok(ImportSlot {
            imports: self.clone(),
            customer: customer.clone(),
        })
    }

    /// Waits for the slot of a batch; the imports that wait get theirs in turn. Released on drop.
    pub(super) async fn batch_slot(&self) -> OwnedSemaphorePermit {
        let slot = Arc::clone(&self.batches).acquire_owned().await;
        slot.expect("the semaphore is never closed")
    }
}

impl Drop for ImportSlot {
    fn drop(&mut self) {
        let customers = self.imports.customers.lock();
        let mut customers = customers.unwrap_or_else(PoisonError::into_inner);
        customers.remove(&self.customer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_customer_has_one_import_at_a_time() {
        let imports = RunningImports::none();
        let first = imports.enter(&customer(1)).unwrap();
        let second = imports.enter(&customer(1)).unwrap_err().into_faults();
        assert_eq!(second[0].code, "IMPORT_RUNNING");
        drop(first);
        assert!(imports.enter(&customer(1)).is_ok());
    }

    #[test]
    fn concurrent_imports_are_bounded() {
        let imports = RunningImports::none();
        let enter = |number| imports.enter(&customer(number));
        let mut places: Vec<_> = (0..IMPORTS_MAX)
            .map(|number| enter(number).unwrap())
            .collect();
        let refused = enter(IMPORTS_MAX).unwrap_err().into_faults();
        assert_eq!(refused[0].code, "UNAVAILABLE");
        places.pop();
        assert!(enter(IMPORTS_MAX).is_ok());
    }

    fn customer(number: usize) -> CustomerId {
        CustomerId::parse(&format!("customer-{number}")).unwrap()
    }
}
