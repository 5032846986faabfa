//! What a device said or did, as it is kept in its history and told to others.

use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;

use crate::action::Protocol;
use crate::ids::{ActionId, CustomerId, DeviceKey, EventId};
use crate::moment::Timestamp;

/// One thing a device said or did.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its id; ids sort by time.
    pub id: EventId,
    /// Whose device it is.
    pub customer: CustomerId,
    /// The device.
    pub device: DeviceKey,
    /// When it was heard.
    pub at: Timestamp,
    /// What it was.
    pub happening: Happening,
}

/// What a device can say or do.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// It told values.
    Telemetry(Telemetry),
    /// It came or went.
    Lifecycle(Lifecycle),
}

/// Values a device told. They are from then on the last that are known.
#[derive(Clone, Debug, PartialEq)]
pub struct Telemetry {
    /// The protocol they came by.
    pub source: Protocol,
    /// Why they came.
    pub cause: Cause,
    /// The values by path.
    pub values: Box<[(Path, Value)]>,
}

/// Why a device told values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cause {
    /// The path is observed (RFC 7641).
    Observation(Path),
    /// A request asked for them.
    Action(ActionId),
}

/// How a device came or went (LwM2M Core 1.2 section 6.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lifecycle {
    /// It registered.
    Registered,
    /// It said that it leaves.
    Deregistered,
    /// It was not heard within its lifetime.
    RegistrationExpired,
}
