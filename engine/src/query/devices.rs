//! Which devices of a customer are wanted?

use crate::action::Protocol;
use crate::ids::CustomerId;
use crate::limits::NAMES_SEARCHED_MAX;

/// Which devices are wanted, by device id.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeviceFilter {
    /// Whose.
    pub customer: CustomerId,
    /// Only those that are registered, or only those that are not.
    pub registered: Option<bool>,
    /// Only those that were ever heard over this protocol.
    pub protocols_seen: Option<Protocol>,
}

impl DeviceFilter {
    /// All of a customer.
    pub fn all_of(customer: CustomerId) -> Self {
        Self {
            customer,
            registered: None,
            protocols_seen: None,
        }
    }
}

/// More names begin so than are looked at.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("matches more than {NAMES_SEARCHED_MAX} identifiers; use a longer prefix")]
pub struct SearchTooBroad;
