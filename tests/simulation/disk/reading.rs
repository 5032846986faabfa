//! The queries of the service and of the laws to the disk.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use engine::action::Action;
use engine::change::Counter;
use engine::device::record::{Connectivity, DeviceRecord, RestoredDevice};
use engine::dispatch::DevicesAtAddress;
use engine::ids::{ActionId, DeviceKey};
use engine::known_devices::{DeviceMark, KnownDevices};
use engine::peer::Peer;
use engine::policy::CustomerSettings;
use engine::profile::Profile;
use engine::setting::{Setting, SettingName, SettingState};

use super::Durable;
use super::history::History;
use super::outbox::Outbox;

/// Live devices of a page in a world of few devices: few, so that there are several pages.
const PAGE_MAX: usize = 2;

/// How many pages a world of many devices has, about.
const PAGES: usize = 40;

/// Live devices in the order of their keys.
#[derive(Debug)]
pub(crate) struct RestorePage {
    pub(crate) devices: Vec<(usize, RestoredDevice)>,
    /// Where the next page begins, if there is one.
    pub(crate) next: Option<DeviceKey>,
}

impl Durable {
    /// The data a machine is restored from, if the device exists.
    pub(crate) fn restored(&self, who: usize) -> Option<RestoredDevice> {
        let mut record = self.records[who].clone();
        // Of an association the store knows the address.
        record.peer = record
            .peer
            .map(|peer| Peer::at(peer.address, peer.transport));
        self.exists(who).then(|| RestoredDevice {
            profile: self.profiles[who].clone(),
            record,
            pending: self.pending(who).cloned().collect(),
            recent_events: self.histories[who].reported_before().into(),
        })
    }

    /// The service ends.
    pub(crate) fn end(&mut self) {
        self.histories.iter_mut().for_each(History::end);
    }

    /// The run of the arbiter of a device ends.
    pub(crate) fn end_for(&mut self, who: usize) {
        self.histories[who].end();
    }

    /// The first live devices in this range of keys.
    pub(crate) fn page(&self, keys: RangeInclusive<DeviceKey>) -> RestorePage {
        let mut live = self.who_by_key.range(keys);
        let mut live = live.by_ref().filter(|(_, who)| self.is_live(**who));
        let page_max = PAGE_MAX.max(self.devices() / PAGES);
        let devices = live.by_ref().take(page_max);
        let devices = devices.filter_map(|(_, who)| Some((*who, self.restored(*who)?)));
        RestorePage {
            devices: devices.collect(),
            next: live.next().map(|(key, _)| *key),
        }
    }

    pub(crate) fn pending(&self, who: usize) -> impl Iterator<Item = &Action> {
        let ids = self.pending[who].iter();
        ids.map(move |id| &self.actions[who][id])
    }

    /// Whether a device is restored when the service starts.
    pub(crate) fn is_live(&self, who: usize) -> bool {
        let record = &self.records[who];
        record.registration.is_some()
            || record.connectivity == Connectivity::Online
            || !self.pending[who].is_empty()
    }

    /// The devices that have an address.
    pub(crate) fn behind(&self, address: IpAddr) -> DevicesAtAddress {
        let has_it = |who: &usize| self.exists(*who) && self.profiles[*who].ip == Some(address);
        let mut there = (0..self.devices()).filter(has_it);
        match (there.next(), there.next()) {
            (None, _) => DevicesAtAddress::Nobody,
            (Some(one), None) => DevicesAtAddress::One(self.keys[one]),
            (Some(first), Some(_)) => DevicesAtAddress::Several(self.keys[first]),
        }
    }

    pub(crate) fn exists(&self, who: usize) -> bool {
        self.turns[who] % 2 == 1
    }

    /// How often a device was added or removed.
    pub(crate) fn turns(&self, who: usize) -> u32 {
        self.turns[who]
    }

    pub(crate) fn action(&self, who: usize, id: ActionId) -> Option<&Action> {
        self.actions[who].get(&id)
    }

    pub(crate) fn actions(&self, who: usize) -> impl Iterator<Item = &Action> {
        self.actions[who].values()
    }

    pub(crate) fn record(&self, who: usize) -> &DeviceRecord {
        &self.records[who]
    }

    pub(crate) fn records_put(&self) -> u64 {
        self.records_put
    }

    /// Whether a device was registered at a peer when so many records had been put, and is still.
    pub(crate) fn is_bound(&self, who: usize, peer: Peer, records_put: u64) -> bool {
        let record = &self.records[who];
        let is_there = record.registration.is_some() && record.peer == Some(peer);
        self.exists(who) && is_there && self.bound[who] <= records_put
    }

    pub(crate) fn profile(&self, who: usize) -> &Profile {
        &self.profiles[who]
    }

    /// Whether a bootstrap issued a key to a device, now or before.
    pub(crate) fn has_issued(&self, who: usize, key: &[u8]) -> bool {
        self.issued[who].contains(key)
    }

    /// The customer changes the address of a device.
    pub(crate) fn amend(&mut self, who: usize, ip: IpAddr) {
        self.known.add(DeviceMark::Address(ip));
        self.profiles[who].ip = Some(ip);
    }

    /// The customer changes the keys of a device.
    pub(crate) fn rekey(&mut self, who: usize, profile: Profile) {
        self.profiles[who] = profile;
    }

    /// The marks of all devices.
    pub(crate) fn known_devices(&self) -> Arc<KnownDevices> {
        Arc::clone(&self.known)
    }

    pub(crate) fn key(&self, who: usize) -> DeviceKey {
        self.keys[who]
    }

    pub(crate) fn devices(&self) -> usize {
        self.profiles.len()
    }

    /// The queued events and the destinations.
    pub(crate) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Whether passive reporting is on.
    pub(crate) fn reporting(&self) -> SettingState {
        self.reporting
    }

    /// The settings of the customer.
    pub(crate) fn chosen(&self) -> CustomerSettings {
        let customer = self.profiles[0].customer.clone();
        let setting = Setting {
            customer: customer.clone(),
            name: SettingName::Lwm2mPassiveReporting,
            state: self.reporting,
        };
        CustomerSettings {
            settings: vec![setting],
            definitions: Vec::new(),
            offline_after_s: None,
            destinations: self.outbox.chosen(&customer),
            customer,
        }
    }

    /// The device with this key.
    pub(crate) fn who(&self, key: DeviceKey) -> usize {
        self.who_by_key[&key]
    }

    /// The history of a device.
    pub(crate) fn history(&self, who: usize) -> &History {
        &self.histories[who]
    }

    pub(crate) fn first_contacts(&self, who: usize) -> u32 {
        self.first_contacts[who]
    }

    pub(crate) fn failures_logged(&self, who: usize) -> u32 {
        self.failures_logged[who]
    }

    pub(crate) fn count(&self, counter: &Counter) -> i64 {
        self.counters.get(counter).copied().unwrap_or(0)
    }
}
