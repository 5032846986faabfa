//! Decisions about records no actor owns: customers, API clients, tokens, devices and settings.
//!
//! A decision takes what was read and gives a batch that expects what it rests on. Whoever commits
//! it reads again and decides anew when that does not hold any more.

pub mod amending;
pub mod customer;
pub mod definition;
pub mod destination;
pub mod device;
pub mod import;
pub mod psk;
pub mod setting;

use crate::change::{Batch, Change, Expect, UniqueName};
use crate::moment::Moment;

/// A decision: what changes, and what the caller is told once it is durable.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision<T> {
    /// What changes.
    pub batch: Batch,
    /// What the caller is told.
    pub answer: T,
}

/// A well-formed wish that cannot be granted.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DirectoryRefusal {
    /// There is no such customer.
    #[error("there is no such customer")]
    CustomerUnknown,
    /// There is no such API client.
    #[error("there is no such API client")]
    ClientUnknown,
    /// There is no such device.
    #[error("there is no such device")]
    DeviceUnknown,
    /// There is no such destination.
    #[error("there is no such destination")]
    DestinationUnknown,
    /// Another customer has the id.
    #[error("another customer has this id")]
    CustomerExists,
    /// Other devices bear these names.
    #[error("another device has this identifier")]
    DeviceExists(Vec<UniqueName>),
    /// The customer has as many API clients as one may have.
    #[error("a customer can have at most {max} API clients")]
    TooManyClients {
        /// How many one may have.
        max: usize,
    },
    /// There is no such definition of an object.
    #[error("there is no such object definition")]
    DefinitionUnknown,
    /// The object is one that the service relies on.
    #[error("object {object} is reserved and cannot be redefined")]
    ObjectReserved {
        /// Its number.
        object: u16,
    },
    /// The customer has as many definitions of objects as one may have.
    #[error("a customer can have at most {max} object definitions")]
    TooManyDefinitions {
        /// How many one may have.
        max: usize,
    },
    /// The definitions of the customer together are as long as they may be.
    #[error("the object definitions of a customer can have at most {max} bytes in total")]
    DefinitionsTooLong {
        /// How many bytes they may have.
        max: usize,
    },
    /// The customer has as many destinations as one may have.
    #[error("a customer can have at most {max} webhooks")]
    TooManyDestinations {
        /// How many one may have.
        max: usize,
    },
}

fn decided<T>(expects: Vec<Expect>, change: Change, answer: T) -> Decision<T> {
    let batch = guarded(expects, change);
    Decision { batch, answer }
}

fn guarded(expects: Vec<Expect>, change: Change) -> Batch {
    Batch {
        expects,
        changes: vec![change],
        ..Batch::default()
    }
}

/// The integer that the SMS events of seed 6 call a thing by: 53 bits of chance, for a JSON
/// number holds no more (RFC 8259 section 6) and no counter is to be agreed on.
fn draw_number(m: &mut Moment) -> u64 {
    m.next_u64() >> 11
}
