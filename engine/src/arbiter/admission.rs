//! Whose datagrams does an arbiter handle when somebody sends too many? Strangers, each device and
//! the devices of each customer have a rate, and what is beyond it is dropped.
//!
//! | rate | counts | beyond it |
//! |---|---|---|
//! | stranger | refused messages from an address without a device | its datagrams are unread |
//! | strangers | those of all addresses | no look-up in the store begins for such a sender |
//! | device | everything from one address and port | it is dropped unread |
//! | customer | messages of its devices while another customer's send | they are dropped |
//!
//! A message is refused if its sender is no known device. An address is one of IPv4 or a /64 of
//! IPv6. Datagrams from a peer at which a device is registered, or from the address of a device,
//! are always read. Answers to requests do not count for a customer.
//!
//! Nothing that is dropped is answered: a device retransmits a confirmable message, and waits
//! longer each time (RFC 7252 section 4.2), and a flood is not worth an answer. The tables have a
//! fixed size, and cost a known device one line of the processor's cache per datagram.

mod customers;
mod known_addresses;
mod rate;

use std::hash::{DefaultHasher, Hash, Hasher as _};

use crate::dispatch::RateScope;
use crate::ids::CustomerId;
use crate::limits::{
    CUSTOMER_RATE, DEVICE_RATE, DEVICE_RATE_BURST_S, STRANGER_RATE, STRANGER_RATE_BURST_S,
    STRANGERS_RATE_FACTOR,
};
use crate::moment::Timestamp;
use crate::network::network_of_host;
use crate::peer::Peer;

use customers::CustomerRates;
use known_addresses::KnownAddresses;
use rate::{Bucket, Rate, RateTable};

pub use customers::CustomerSlot;

/// The rates that an operator may set; 0 means none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RateLimits {
    /// Refused messages per second from one address without a known device.
    pub stranger: u32,
    /// Datagrams per second from one address and port.
    pub device: u32,
    /// Messages per second and arbiter of the devices of one customer, while those of another one
    /// send.
    pub customer: u32,
}

/// What came to light about a sender after its datagram was admitted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SenderStanding {
    /// A device has its address.
    Known,
    /// It is no known device: its message was refused.
    Stranger,
}

/// What an arbiter tells the one that received a datagram about its sender.
#[derive(Clone, Copy, Debug)]
pub struct SenderNote {
    /// The sender.
    pub peer: Peer,
    /// What it is.
    pub standing: SenderStanding,
}

/// What the senders of an arbiter's datagrams have used of their rates.
#[derive(Debug)]
pub(super) struct Admission {
    strangers: RateTable,
    all_strangers: Bucket,
    strangers_rate: Option<Rate>,
    devices: RateTable,
    customers: CustomerRates,
    known_addresses: KnownAddresses,
}

impl RateLimits {
    /// Without limits.
    pub const NONE: Self = Self {
        stranger: 0,
        device: 0,
        customer: 0,
    };
}

impl Default for RateLimits {
    fn default() -> Self {
        Self {
            stranger: STRANGER_RATE,
            device: DEVICE_RATE,
            customer: CUSTOMER_RATE,
        }
    }
}

impl Admission {
    /// Nothing is used yet of these rates.
    pub(super) fn within(rates: RateLimits) -> Self {
        let all_strangers = rates.stranger.saturating_mul(STRANGERS_RATE_FACTOR);
        Self {
            strangers: RateTable::at(Rate::of(rates.stranger, STRANGER_RATE_BURST_S)),
            all_strangers: Bucket::default(),
            strangers_rate: Rate::of(all_strangers, 1),
            devices: RateTable::at(Rate::of(rates.device, DEVICE_RATE_BURST_S)),
            customers: CustomerRates::at(Rate::of(rates.customer, 1)),
            known_addresses: KnownAddresses::default(),
        }
    }

    /// Whether a datagram that is not decoded yet is handled. `knows` says whether a device is
    /// registered at its peer.
    pub(super) fn admit(
        &mut self,
        now: Timestamp,
        peer: Peer,
        knows: impl FnOnce() -> bool,
    ) -> Result<(), RateScope> {
        if self.strangers.is_any_used_up(now)
            && self
                .strangers
                .is_used_up(digest(&network_of_host(peer.ip())), now)
            && !self.known_addresses.has(peer.ip())
            && !knows()
        {
            return Err(RateScope::Stranger);
        }
        match self.devices.take(digest(&peer), now) {
            true => Ok(()),
            false => Err(RateScope::Device),
        }
    }

    /// Whether a look-up may begin for the sender of a message.
    pub(super) fn admit_look_up(
        &self,
        now: Timestamp,
        peer: Peer,
        knows: impl FnOnce() -> bool,
    ) -> Result<(), RateScope> {
        let is_used_up = self
            .strangers_rate
            .is_some_and(|rate| self.all_strangers.is_used_up(rate, now));
        match is_used_up && !self.known_addresses.has(peer.ip()) && !knows() {
            true => Err(RateScope::Strangers),
            false => Ok(()),
        }
    }

    /// Whether a message of a device of this customer is handled.
    pub(super) fn admit_of(
        &mut self,
        customer: CustomerSlot,
        now: Timestamp,
    ) -> Result<(), RateScope> {
        match self.customers.take(customer, now) {
            true => Ok(()),
            false => Err(RateScope::Customer),
        }
    }

    /// Notes what a sender is.
    pub(super) fn note(&mut self, now: Timestamp, note: SenderNote) {
        let ip = note.peer.ip();
        match note.standing {
            SenderStanding::Known => self.known_addresses.note(ip),
            SenderStanding::Stranger => {
                self.strangers.add(digest(&network_of_host(ip)), now);
                if let Some(rate) = self.strangers_rate {
                    self.all_strangers.add(rate, now);
                }
            }
        }
    }

    /// The slot of a customer.
    pub(super) fn slot_of(&mut self, customer: &CustomerId) -> CustomerSlot {
        self.customers.slot_of(customer)
    }
}

fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
