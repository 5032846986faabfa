//! What do the device machines read? The device of a datagram, the state to restore, and the
//! settings of its customer.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use engine::bootstrap::{BootstrapConfig, BootstrapScope};
use engine::certificate_authorities::CertificateAuthorities;
use engine::change::UniqueName;
use engine::device::record::RestoredDevice;
use engine::directory::sms::waking::WakeUpFacts;
use engine::dispatch::DevicesAtAddress;
use engine::firmware::download::OfferedImage;
use engine::ids::{CampaignId, CustomerId, DeviceKey};
use engine::known_devices::KnownDevices;
use engine::limits::SmsRules;
use engine::policy::CustomerSettings;
use engine::profile::Profile;

use crate::ReadAnswer;

/// The queries of device machines.
pub trait DeviceReads: Send + Sync {
    /// A device.
    fn profile(&self, device: DeviceKey) -> ReadAnswer<Option<Profile>>;

    /// The device that has a name, if the name is one of a device.
    fn device_by_name(&self, name: UniqueName) -> ReadAnswer<Option<DeviceKey>>;

    /// The profile of the device that has a name: its keys, if the name is the identity that it
    /// claims in a handshake.
    fn profile_by_name(&self, name: UniqueName) -> ReadAnswer<Option<Profile>>;

    /// The stored image of a campaign that has not ended.
    fn offered_image(&self, campaign: CampaignId) -> ReadAnswer<Option<OfferedImage>>;

    /// The device that a registration's location names by the first half of its key.
    fn device_at(&self, prefix: [u8; 8]) -> ReadAnswer<Option<DeviceKey>>;

    /// The names, addresses and keys of devices: of all of them, once it was read after a start.
    fn known_devices(&self) -> Arc<KnownDevices>;

    /// Which devices have an address, of any customer; if several have it, the first by key.
    fn devices_at_address(&self, ip: IpAddr) -> ReadAnswer<DevicesAtAddress>;

    /// What is stored of a device that a request may wake.
    fn wake_up_facts(&self, device: DeviceKey, rules: SmsRules) -> ReadAnswer<Option<WakeUpFacts>>;

    /// What devices are given when they are bootstrapped.
    fn bootstrap_config(&self, scope: BootstrapScope) -> ReadAnswer<Option<BootstrapConfig>>;

    /// Everything needed to restore a device.
    fn restored(&self, device: DeviceKey) -> ReadAnswer<Option<RestoredDevice>>;

    /// The live devices in a range of keys, that is, those with a registration, a pending request,
    /// or a silence after which they are offline: at most `max` of them, and at most as many as an
    /// engine can hold in memory safely.
    ///
    /// This is what a start reads in the background; it never delays another query. Rows are read
    /// while commits go on, so the state of a device is right only if no commit changed it since
    /// the page was requested. The caller skips devices that got an actor since then.
    fn restored_page(&self, keys: RangeInclusive<DeviceKey>, max: u32) -> ReadAnswer<RestoredPage>;

    /// The settings of each customer that has changed any; read at the start.
    fn all_customer_settings(&self) -> ReadAnswer<Vec<CustomerSettings>>;

    /// Who certifies the devices of a customer; none if it set nobody.
    fn certificate_authorities(
        &self,
        customer: CustomerId,
    ) -> ReadAnswer<Option<CertificateAuthorities>>;

    /// The settings of a customer.
    fn customer_settings(&self, customer: CustomerId) -> ReadAnswer<CustomerSettings>;
}

/// Live devices in the order of their keys, each with everything needed to restore it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RestoredPage {
    /// The devices, without those whose rows cannot be read.
    pub devices: Vec<(DeviceKey, RestoredDevice)>,
    /// The live device the next page begins with; nothing if this is the last page. A page may be
    /// empty and not be the last.
    pub next: Option<DeviceKey>,
}
