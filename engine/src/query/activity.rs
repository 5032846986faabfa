//! How busy was a customer, minute by minute?

use crate::moment::Timestamp;

/// What was stored of a customer within a minute.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ActivityMinute {
    /// When the minute began.
    pub begun_at: Timestamp,
    /// Events: device data, changes of life cycles, errors and results.
    pub events: u64,
    /// Action requests that were created.
    pub requests: u64,
}
