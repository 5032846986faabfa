//! The identity of a device as its customer defined it, apart from its state.

use std::net::IpAddr;
use std::num::NonZeroU32;

use crate::credentials::DeviceCredentials;
use crate::ids::{CustomerId, DeviceId, DeviceKey, Endpoint, Iccid, Imsi, Msisdn};
use crate::moment::Timestamp;
use crate::tags::Tags;
use crate::wake_up::WakeUpMessage;

/// The identity of a device as its customer registered it with the service.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Profile {
    /// The customer of the device.
    pub customer: CustomerId,
    /// Its device id.
    pub device: DeviceId,
    /// Its id in the SMS events of seed 6, an integer.
    pub number: u64,
    /// The SIM in it.
    pub iccid: Iccid,
    /// The subscriber identity of the SIM, where known.
    pub imsi: Option<Imsi>,
    /// The telephone number of the SIM, where known.
    pub msisdn: Option<Msisdn>,
    /// The fixed address of the SIM, where it has one: without DTLS it identifies the sender.
    pub ip: Option<IpAddr>,
    /// The endpoint client name it registers with.
    pub endpoint: Endpoint,
    /// Its display name.
    pub name: Option<Box<str>>,
    /// The keys with which it proves its identity over DTLS.
    pub credentials: DeviceCredentials,
    /// When it was created.
    pub created_at: Timestamp,
    /// Its tags.
    pub tags: Tags,
    /// What its datagrams are accepted over.
    pub security: SecurityRequirement,
    /// What wakes it, if that is not what wakes the devices of its customer.
    pub wake_up: Option<WakeUpMessage>,
    /// How long it may be silent before it is offline, in seconds, if that is not what its customer
    /// set for all devices.
    pub offline_after_s: Option<NonZeroU32>,
}

/// What the datagrams of a device are accepted over.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SecurityRequirement {
    /// Over DTLS and without security.
    #[default]
    Any,
    /// Over DTLS alone.
    Dtls,
}

impl Profile {
    /// The key of the device service-wide.
    pub fn key(&self) -> DeviceKey {
        DeviceKey::of(&self.customer, &self.device)
    }

    /// The PSK identity: that of its key, or the default.
    pub fn psk_identity(&self) -> &str {
        self.credentials.psk_identity(&self.endpoint)
    }
}
