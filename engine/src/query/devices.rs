//! Which devices of a customer does a query select?

use crate::action::Protocol;
use crate::ids::CustomerId;
use crate::limits::NAMES_SEARCHED_MAX;

/// A filter for devices, ordered by device id.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeviceFilter {
    /// Only those of one customer.
    pub customer: CustomerId,
    /// Only those that are registered, or only those that are not.
    pub registered: Option<bool>,
    /// Only those that ever sent over this protocol.
    pub protocols_seen: Option<Protocol>,
}

impl DeviceFilter {
    /// All devices of a customer.
    pub fn all_of(customer: CustomerId) -> Self {
        Self {
            customer,
            registered: None,
            protocols_seen: None,
        }
    }
}

/// More names match the prefix than a search reads.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("matches more than {NAMES_SEARCHED_MAX} identifiers; use a longer prefix")]
pub struct SearchTooBroad;
