//! Which queries answer the questions of device machines?

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
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::postgres::PostgresStore;
use crate::{DeviceReads, ReadAnswer, RestoredPage};

impl DeviceReads for PostgresStore {
    fn profile(&self, _device: DeviceKey) -> ReadAnswer<Option<Profile>> {
        unimplemented!()
    }

    fn device_by_name(&self, _name: UniqueName) -> ReadAnswer<Option<DeviceKey>> {
        unimplemented!()
    }

    fn profile_by_name(&self, _name: UniqueName) -> ReadAnswer<Option<Profile>> {
        unimplemented!()
    }

    fn offered_image(&self, _campaign: CampaignId) -> ReadAnswer<Option<OfferedImage>> {
        unimplemented!()
    }

    fn device_at(&self, _prefix: [u8; 8]) -> ReadAnswer<Option<DeviceKey>> {
        unimplemented!()
    }

    fn known_devices(&self) -> Arc<KnownDevices> {
        Arc::clone(&self.state.known_devices)
    }

    fn devices_at_address(&self, _ip: IpAddr) -> ReadAnswer<DevicesAtAddress> {
        unimplemented!()
    }

    fn wake_up_facts(
        &self,
        _device: DeviceKey,
        _rules: SmsRules,
    ) -> ReadAnswer<Option<WakeUpFacts>> {
        unimplemented!()
    }

    fn bootstrap_config(&self, _scope: BootstrapScope) -> ReadAnswer<Option<BootstrapConfig>> {
        unimplemented!()
    }

    fn restored(&self, _device: DeviceKey) -> ReadAnswer<Option<RestoredDevice>> {
        unimplemented!()
    }

    fn restored_page(
        &self,
        _keys: RangeInclusive<DeviceKey>,
        _max: u32,
    ) -> ReadAnswer<RestoredPage> {
        unimplemented!()
    }

    fn all_customer_settings(&self) -> ReadAnswer<Vec<CustomerSettings>> {
        unimplemented!()
    }

    fn certificate_authorities(
        &self,
        _customer: CustomerId,
    ) -> ReadAnswer<Option<CertificateAuthorities>> {
        unimplemented!()
    }

    fn customer_settings(&self, _customer: CustomerId) -> ReadAnswer<CustomerSettings> {
        unimplemented!()
    }
}
