//! The objects a customer defines: OMA XML of its own, beside what the registry of OMA has.

use protocol::lwm2m::version::Version;

use crate::ids::CustomerId;
use crate::moment::Timestamp;

/// Names a customer's definition of a version of an object.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct DefinitionId {
    /// Whose it is.
    pub customer: CustomerId,
    /// The number of the object.
    pub object: u16,
    /// The version it defines.
    pub version: Version,
}

/// A customer's definition of a version of an object.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Definition {
    /// Which it is.
    pub id: DefinitionId,
    /// The OMA XML it came in, which was read without a fault.
    pub xml: Box<str>,
    /// When it was put.
    pub at: Timestamp,
}
