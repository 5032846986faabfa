//! Whose datagrams does an arbiter handle when somebody sends too many? Strangers, each device and
//! the devices of each customer have a rate, and what is beyond it is dropped.
//!
//! | rate | counts | beyond it |
//! |---|---|---|
//! | stranger | refused messages from an address without a device | its datagrams are unread |
//! | strangers | answers to senders at all such addresses, and look-ups | neither is done |
//! | device | everything from one address and port | it is dropped unread |
//! | customer | messages of its devices while those of another one send | they are dropped |
//!
//! A message is refused if its sender is no known device. An address is one of IPv4 or a /64 of
//! IPv6. Datagrams from a peer at which a device is registered, or from the address of a device,
//! are always read. Of a customer, a message with a payload counts five times and an answer to a
//! request does not.
//!
//! Nothing that is dropped is answered: a device retransmits a confirmable message, and waits
//! longer each time (RFC 7252 section 4.2), and a flood is not worth an answer. The tables have a
//! fixed size, and cost a known device one line of the processor's cache per datagram.

mod customers;
mod rate;

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::Arc;

use crate::dispatch::RateScope;
use crate::ids::CustomerId;
use crate::known_devices::{DeviceMark, KnownDevices};
use crate::limits::{
    CUSTOMER_RATE, DEVICE_RATE, DEVICE_RATE_BURST_S, STRANGER_RATE, STRANGER_RATE_BURST_S,
    STRANGERS_RATE_FACTOR,
};
use crate::moment::Timestamp;
use crate::network::network_of_host;
use crate::peer::Peer;

use customers::CustomerRates;
use rate::{Bucket, Rate, RateTable};

pub use customers::CustomerSlot;

/// The messages that one with a payload counts as: it is stored, which takes ten times as long as
/// an update that changes nothing.
const STORED_UNITS: u32 = 5;

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

/// How a message of a stranger may be handled, each within a rate of all strangers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum StrangerHandling {
    /// Its device is looked up.
    LookUp,
    /// It belongs to no device and is answered.
    Answer,
}

/// What the senders of an arbiter's datagrams have used of their rates.
#[derive(Debug)]
pub(super) struct Admission {
    known_devices: Arc<KnownDevices>,
    strangers: RateTable,
    answers: Bucket,
    look_ups: Bucket,
    /// The rate of answers, and that of look-ups.
    strangers_rate: Option<Rate>,
    devices: RateTable,
    customers: CustomerRates,
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
    pub(super) fn within(rates: RateLimits, known_devices: Arc<KnownDevices>) -> Self {
        let all_strangers = rates.stranger.saturating_mul(STRANGERS_RATE_FACTOR);
        Self {
            known_devices,
            strangers: RateTable::at(Rate::of(rates.stranger, STRANGER_RATE_BURST_S)),
            answers: Bucket::default(),
            look_ups: Bucket::default(),
            strangers_rate: Rate::of(all_strangers, 1),
            devices: RateTable::at(Rate::of(rates.device, DEVICE_RATE_BURST_S)),
            customers: CustomerRates::at(Rate::of(rates.customer, 1)),
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
            && !self.may_be_device_at(peer)
            && !knows()
        {
            return Err(RateScope::Stranger);
        }
        match self.devices.take(digest(&peer), now) {
            true => Ok(()),
            false => Err(RateScope::Device),
        }
    }

    /// Whether a message may be handled in this way, whose sender may be a stranger. `knows` as for
    /// a datagram.
    pub(super) fn admit_handling(
        &mut self,
        handling: StrangerHandling,
        now: Timestamp,
        peer: Peer,
        knows: impl FnOnce() -> bool,
    ) -> Result<(), RateScope> {
        let Some(rate) = self.strangers_rate else {
            return Ok(());
        };
        if self.may_be_device_at(peer) || knows() {
            return Ok(());
        }
        let bucket = match handling {
            StrangerHandling::LookUp => &mut self.look_ups,
            StrangerHandling::Answer => &mut self.answers,
        };
        match bucket.take(rate, now) {
            true => Ok(()),
            false => Err(RateScope::Strangers),
        }
    }

    /// Whether a message of a device of this customer is handled.
    pub(super) fn admit_of(
        &mut self,
        customer: CustomerSlot,
        has_payload: bool,
        now: Timestamp,
    ) -> Result<(), RateScope> {
        let units = if has_payload { STORED_UNITS } else { 1 };
        match self.customers.take(customer, units, now) {
            true => Ok(()),
            false => Err(RateScope::Customer),
        }
    }

    /// Counts a refused message against its sender, which is no known device.
    pub(super) fn note_stranger(&mut self, now: Timestamp, peer: Peer) {
        let address = network_of_host(peer.ip());
        self.strangers.add(digest(&address), now);
    }

    /// The slot of a customer.
    pub(super) fn slot_of(&mut self, customer: &CustomerId) -> CustomerSlot {
        self.customers.slot_of(customer)
    }

    fn may_be_device_at(&self, peer: Peer) -> bool {
        self.known_devices.may_have(DeviceMark::Address(peer.ip()))
    }
}

fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
