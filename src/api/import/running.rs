//! May an import start? One per customer at a time, and a few in all.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use engine::ids::CustomerId;

use crate::api::error::{ApiError, ErrorDetail};

/// Concurrent imports. They share one disk, so more would not be faster; each holds a few MiB.
const IMPORTS_MAX: usize = 4;

/// The imports in progress.
#[derive(Clone, Debug, Default)]
pub(in crate::api) struct RunningImports(Arc<Mutex<BTreeSet<CustomerId>>>);

/// The slot of an import; released on drop.
#[derive(Debug)]
pub(super) struct ImportSlot {
    imports: RunningImports,
    customer: CustomerId,
}

impl RunningImports {
    /// Acquires the slot of an import, if one is free.
    pub(super) fn enter(&self, customer: &CustomerId) -> Result<ImportSlot, ApiError> {
        let mut customers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
}

impl Drop for ImportSlot {
    fn drop(&mut self) {
        let customers = self.imports.0.lock();
        let mut customers = customers.unwrap_or_else(PoisonError::into_inner);
        customers.remove(&self.customer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_customer_has_one_import_at_a_time() {
        let imports = RunningImports::default();
        let first = imports.enter(&customer(1)).unwrap();
        let second = imports.enter(&customer(1)).unwrap_err().into_faults();
        assert_eq!(second[0].code, "IMPORT_RUNNING");
        drop(first);
        assert!(imports.enter(&customer(1)).is_ok());
    }

    #[test]
    fn concurrent_imports_are_bounded() {
        let imports = RunningImports::default();
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
