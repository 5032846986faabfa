//! Which store does the fleet live in? One that generates registered devices when they are read.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::bootstrap::{BootstrapConfig, BootstrapScope};
use engine::certificate_authorities::CertificateAuthorities;
use engine::change::{Batch, UniqueName};
use engine::device::record::RestoredDevice;
use engine::directory::sms::waking::WakeUpFacts;
use engine::dispatch::DevicesAtAddress;
use engine::firmware::download::OfferedImage;
use engine::ids::{CampaignId, CustomerId, DeviceKey};
use engine::known_devices::KnownDevices;
use engine::limits::SmsRules;
use engine::moment::Timestamp;
use engine::policy::CustomerSettings;
use engine::profile::Profile;
use engine::sealed::Sealed;
use store::{
    Commit, DeviceReads, Maintenance, Pressure, ReadAnswer, Receipt, RestoredPage, Retention,
    SweepReport, Unavailable,
};

use crate::{fleet, kept};

/// A store that has the fleet and nothing else, and writes nothing, so that the measurement
/// contains no cache.
pub(crate) struct SyntheticStore {
    /// The devices by key.
    numbers: Vec<(DeviceKey, u32)>,
    now: Timestamp,
    /// Whether the last page was read.
    all_read: AtomicBool,
}

impl SyntheticStore {
    /// A fleet of this size.
    pub(crate) fn new(devices: u32, now: Timestamp) -> Self {
        let key = |number| (fleet::profile(number).key(), number);
        let mut numbers: Vec<_> = (0..devices).map(key).collect();
        numbers.sort_unstable();
        Self {
            numbers,
            now,
            all_read: AtomicBool::new(false),
        }
    }

    /// Whether all devices were read.
    pub(crate) fn all_read(&self) -> bool {
        self.all_read.load(Ordering::Relaxed)
    }

    fn find(&self, key: DeviceKey) -> Option<u32> {
        let place = self.numbers.binary_search_by_key(&key, |(key, _)| *key);
        place.ok().map(|place| self.numbers[place].1)
    }
}

impl Commit for SyntheticStore {
    fn commit(&self, _: Batch) -> Receipt {
        Box::pin(std::future::ready(Ok(())))
    }

    fn pressure(&self) -> Pressure {
        Pressure::Open
    }
}

impl Maintenance for SyntheticStore {
    fn take_over(&self) -> ReadAnswer<u64> {
        answer_later(1)
    }

    fn server_key(&self, new: Sealed) -> ReadAnswer<Sealed> {
        answer_later(new)
    }

    fn sweep(&self, _: Retention, _: u32) -> ReadAnswer<SweepReport> {
        answer_later(SweepReport::default())
    }
}

impl DeviceReads for SyntheticStore {
    fn profile(&self, _: DeviceKey) -> ReadAnswer<Option<Profile>> {
        unknown()
    }

    fn device_by_name(&self, _: UniqueName) -> ReadAnswer<Option<DeviceKey>> {
        unknown()
    }

    fn profile_by_name(&self, _: UniqueName) -> ReadAnswer<Option<Profile>> {
        unknown()
    }

    fn offered_image(&self, _: CampaignId) -> ReadAnswer<Option<OfferedImage>> {
        unknown()
    }

    fn device_at(&self, _: [u8; 8]) -> ReadAnswer<Option<DeviceKey>> {
        unknown()
    }

    fn known_devices(&self) -> Arc<KnownDevices> {
        Arc::default()
    }

    fn devices_at_address(&self, _: IpAddr) -> ReadAnswer<DevicesAtAddress> {
        unknown()
    }

    fn wake_up_facts(&self, _: DeviceKey, _: SmsRules) -> ReadAnswer<Option<WakeUpFacts>> {
        unknown()
    }

    fn bootstrap_config(&self, _: BootstrapScope) -> ReadAnswer<Option<BootstrapConfig>> {
        unknown()
    }

    fn restored(&self, device: DeviceKey) -> ReadAnswer<Option<RestoredDevice>> {
        answer_later(
            self.find(device)
                .map(|number| kept::restored(number, self.now)),
        )
    }

    fn restored_page(&self, keys: RangeInclusive<DeviceKey>, max: u32) -> ReadAnswer<RestoredPage> {
        let first = self.numbers.partition_point(|(key, _)| key < keys.start());
        let mut remaining = self.numbers[first..]
            .iter()
            .filter(|(key, _)| key <= keys.end());
        let taken = remaining.by_ref().take(max as usize);
        let devices = taken
            .map(|(key, number)| (*key, kept::restored(*number, self.now)))
            .collect();
        let next = remaining.next().map(|(key, _)| *key);
        self.all_read.fetch_or(next.is_none(), Ordering::Relaxed);
        answer_later(RestoredPage { devices, next })
    }

    fn all_customer_settings(&self) -> ReadAnswer<Vec<CustomerSettings>> {
        unknown()
    }

    fn certificate_authorities(&self, _: CustomerId) -> ReadAnswer<Option<CertificateAuthorities>> {
        unknown()
    }

    fn customer_settings(&self, _: CustomerId) -> ReadAnswer<CustomerSettings> {
        unknown()
    }
}

/// Answers after other tasks had their turn, as a store that reads from disk does.
fn answer_later<T: Send + 'static>(answer: T) -> ReadAnswer<T> {
    Box::pin(async {
        tokio::task::yield_now().await;
        Ok(answer)
    })
}

fn unknown<T: Send + 'static>() -> ReadAnswer<T> {
    Box::pin(std::future::ready(Err(Unavailable)))
}
