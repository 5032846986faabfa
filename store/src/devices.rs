//! What do the devices' machines ask? Whose a datagram is, what brings a device back, and by what
//! its customer has it go.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use engine::change::UniqueName;
use engine::device::record::RestoredDevice;
use engine::dispatch::DevicesAtAddress;
use engine::ids::{CustomerId, DeviceKey};
use engine::policy::CustomerSettings;
use engine::profile::Profile;

use crate::ReadAnswer;

/// What is asked where devices are served.
pub trait DeviceReads: Send + Sync {
    /// A device.
    fn profile(&self, device: DeviceKey) -> ReadAnswer<Option<Profile>>;

    /// The device that bears a name, if the name is one of a device.
    fn device_by_name(&self, name: UniqueName) -> ReadAnswer<Option<DeviceKey>>;

    /// The device a registration's location names by the first half of its key.
    fn device_at(&self, prefix: [u8; 8]) -> ReadAnswer<Option<DeviceKey>>;

    /// Which devices have an address, whoever's they are; of several, the first by key.
    fn devices_at_address(&self, ip: IpAddr) -> ReadAnswer<DevicesAtAddress>;

    /// Everything needed to bring a device back.
    fn restored(&self, device: DeviceKey) -> ReadAnswer<Option<RestoredDevice>>;

    /// The live devices of a stretch of keys, those with a registration or a pending request: at
    /// most `max` of them, and at most as many as an engine can hold in memory without worry.
    ///
    /// This is what a start asks in the background: it never keeps another question waiting. Rows
    /// are read while commits go on, so what is said of a device is true only if nothing of it
    /// was committed since the page was asked for. Whoever restores from a page passes over the
    /// devices that have or had an actor meanwhile.
    fn restored_page(&self, keys: RangeInclusive<DeviceKey>, max: u32) -> ReadAnswer<RestoredPage>;

    /// What each customer chose that chose anything: what a start asks.
    fn all_customer_settings(&self) -> ReadAnswer<Vec<CustomerSettings>>;

    /// What a customer chose.
    fn customer_settings(&self, customer: CustomerId) -> ReadAnswer<CustomerSettings>;
}

/// Live devices in the order of their keys, each with everything needed to bring it back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RestoredPage {
    /// The devices; one whose rows cannot be read is missing.
    pub devices: Vec<(DeviceKey, RestoredDevice)>,
    /// The live device the next page begins with; nothing if this is the last page. A page may
    /// be empty and not the last.
    pub next: Option<DeviceKey>,
}
