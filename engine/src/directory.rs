//! Decisions about records that no actor owns: customers, API clients, tokens, devices, settings.
//!
//! A decision takes the records that were read and returns a batch whose preconditions are those
//! records. If a precondition fails, the caller reads and decides again.

pub mod amending;
pub mod bootstrap;
pub mod credentials;
pub mod customer;
pub mod definition;
pub mod destination;
pub mod device;
pub mod firmware;
pub mod import;
pub mod job;
pub mod psk;
pub mod schedule;
pub mod setting;
pub mod sms;

use crate::change::{Batch, Change, Expect, UniqueName};
use crate::moment::Moment;

/// A decision: the changes, and the answer to the caller once they are durable.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision<T> {
    /// The changes.
    pub batch: Batch,
    /// The answer to the caller.
    pub answer: T,
}

/// Why a well-formed request is refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DirectoryRefusal {
    /// There is no such customer.
    #[error("there is no such customer")]
    CustomerUnknown,
    /// There is no such API client.
    #[error("there is no such API client")]
    ClientUnknown,
    /// There is no such secret.
    #[error("there is no such secret")]
    SecretUnknown,
    /// There is no such device.
    #[error("there is no such device")]
    DeviceUnknown,
    /// The device has no such key.
    #[error("the device has no such key")]
    KeyUnknown,
    /// Another customer has the id.
    #[error("another customer has this id")]
    CustomerExists,
    /// Other devices have these unique names.
    #[error("another device has this identifier")]
    DeviceExists(Vec<UniqueName>),
    /// The customer has the most API clients allowed.
    #[error("a customer can have at most {max} API clients")]
    TooManyClients {
        /// The most allowed.
        max: usize,
    },
    /// The API client has the most secrets allowed.
    #[error("an API client can have at most {max} valid secrets; delete one first")]
    TooManySecrets {
        /// The most allowed.
        max: usize,
    },
    /// Without this secret the API client would have none.
    #[error("this is the only valid secret of the API client; create another one first")]
    LastSecret,
    /// There is no such definition of an object.
    #[error("there is no such object definition")]
    DefinitionUnknown,
    /// The service relies on the definition of this object.
    #[error("object {object} is reserved and cannot be redefined")]
    ObjectReserved {
        /// The object id.
        object: u16,
    },
    /// The customer has the most object definitions allowed.
    #[error("a customer can have at most {max} object definitions")]
    TooManyDefinitions {
        /// The most allowed.
        max: usize,
    },
    /// The definitions of the customer are too long in total.
    #[error("the object definitions of a customer can have at most {max} bytes in total")]
    DefinitionsTooLong {
        /// The most bytes allowed.
        max: usize,
    },
    /// The customer has a plugin of this partner already.
    #[error("a customer can have one plugin of {partner}; delete it first")]
    PluginExists {
        /// The id of the partner.
        partner: &'static str,
    },
    /// The customer has the most webhooks and brokers allowed.
    #[error("a customer can have at most {max} webhooks and MQTT brokers")]
    TooManyIntegrations {
        /// The most allowed.
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

/// Draws the integer id of the SMS events of seed 6: 53 random bits, because a JSON number holds no
/// more (RFC 8259 section 6) and random numbers need no shared counter.
fn draw_number(m: &mut Moment) -> u64 {
    m.next_u64() >> 11
}
