//! What does a page of devices cost in a store with a million of them? `cargo bench --bench
//! devices -- [devices]`.
//!
//! Every device has two tags, one of a hundred sites and one that all have; nine of ten are
//! registered, half of them with LwM2M 1.1. The first page and the total are read for one site
//! after the other, so that most rows are not those of the call before.

mod fleet;

use std::ops::Range;
use std::time::{Duration, Instant};

use engine::EnablerVersion;
use engine::action::Protocol;
use engine::change::{Batch, Change, Counter, CounterDelta};
use engine::device::record::{DeviceRecord, ProtocolsSeen, Registration};
use engine::moment::Timestamp;
use engine::peer::Peer;
use engine::profile::Profile;
use engine::query::PageRequest;
use engine::query::devices::{DeviceFilter, DevicePage, DevicePageRequest};
use engine::tags::{Tag, Tags};
use store::{Commit as _, DirectoryReads as _, Options, SledStore};
use tokio::runtime::{Builder, Runtime};

/// Devices, unless the command line names another number.
const DEVICES: u32 = 1_000_000;

/// Devices created and registered in one batch.
const DEVICES_PER_BATCH: u32 = 100;

/// Sites that devices are distributed among.
const SITES: u32 = 100;

/// The objects of each device.
const LINKS: &str = "</>;rt=\"oma.lwm2m\";ct=11543,</1/0>,</3/0>,</4/0>,</5/0>,</3303/0>,</3304/0>";

const NOW: Timestamp = Timestamp::from_ms(1_795_219_200_000);

/// A page, as the API asks for it by default.
const PAGE: PageRequest = PageRequest {
    number: 1,
    size: 10,
};

fn main() {
    let devices = std::env::args().find_map(|text| text.parse().ok());
    let devices = devices.unwrap_or(DEVICES);
    let measured = FilledStore::with(devices);
    println!("{devices} devices, page 1 with total");
    println!("| filter | total | p50, ms | p99, ms | longest, ms |");
    println!("|---|---|---|---|---|");
    measured.time("none", |_| all());
    measured.time("registered", |_| DeviceFilter {
        registered: Some(true),
        ..all()
    });
    measured.time("one tag", |site| tagged(&[site_of(site)]));
    measured.time("tag, registered, version", |site| DeviceFilter {
        registered: Some(true),
        version: Some(EnablerVersion::V1_1),
        ..tagged(&[site_of(site)])
    });
    measured.time("two tags", |site| tagged(&[kind(), site_of(site)]));
    measured.time("tag of all, version", |_| DeviceFilter {
        version: Some(EnablerVersion::V1_1),
        ..tagged(&[kind()])
    });
    measured.time("tag, firmware that none has", |site| DeviceFilter {
        firmware: Some("none".into()),
        ..tagged(&[site_of(site)])
    });
}

/// A store with devices, and a runtime to wait on.
struct FilledStore {
    store: SledStore,
    runtime: Runtime,
    _directory: tempfile::TempDir,
}

impl FilledStore {
    fn with(devices: u32) -> Self {
        // On the disk of the build, because the system's temporary directory may be in memory.
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"));
        let directory = directory.expect("the build's directory takes another");
        let store = SledStore::open(Options::at(directory.path().join("store")));
        let filled = Self {
            store: store.expect("a new directory takes a store"),
            runtime: Builder::new_current_thread()
                .build()
                .expect("a runtime can be had"),
            _directory: directory,
        };
        for first in (0..devices).step_by(DEVICES_PER_BATCH as usize) {
            let end = devices.min(first + DEVICES_PER_BATCH);
            let receipt = filled.store.commit(registered(first..end));
            filled
                .runtime
                .block_on(receipt)
                .expect("the batch is committed");
        }
        filled
    }

    /// Times the first page of a filter for each site, twice.
    fn time(&self, name: &str, filter: impl Fn(u32) -> DeviceFilter) {
        let mut total = None;
        let mut times: Vec<Duration> = (0..2 * SITES)
            .map(|call| {
                let begun_at = Instant::now();
                let page = self.page(filter(call % SITES));
                total = Some(page.total);
                begun_at.elapsed()
            })
            .collect();
        times.sort();
        let ms = |place: usize| {
            let time = times.get(place).copied().unwrap_or_default();
            time.as_secs_f64() * 1_000.0
        };
        let (last, middle) = (times.len() - 1, times.len() / 2);
        let (p50, p99, longest) = (ms(middle), ms(last * 99 / 100), ms(last));
        let total = total.expect("a filter is timed at least once");
        println!("| {name} | {total:?} | {p50:.2} | {p99:.2} | {longest:.2} |");
    }

    fn page(&self, filter: DeviceFilter) -> DevicePage {
        let page = self.store.devices_of(filter, DevicePageRequest::of(PAGE));
        let page = self.runtime.block_on(page).expect("the store answers");
        page.expect("there is no prefix")
    }
}

/// The batch that creates and registers devices.
fn registered(numbers: Range<u32>) -> Batch {
    let delta = i64::from(numbers.end - numbers.start);
    let counter = Counter::Devices(fleet::customer());
    let changes = numbers.flat_map(|number| {
        let profile = Profile {
            tags: Tags::of([site_of(number % SITES), kind()]).expect("two tags"),
            ..fleet::profile(number)
        };
        let device = profile.key();
        let put = Change::PutDevice {
            was: None,
            profile: Box::new(profile),
        };
        let record = Change::PutRecord {
            device,
            record: Box::new(record(number)),
        };
        [put, record]
    });
    Batch {
        changes: changes.collect(),
        adds: vec![CounterDelta { counter, delta }],
        ..Batch::default()
    }
}

/// The record of a device. Its number in its site says whether it is registered.
fn record(number: u32) -> DeviceRecord {
    let place = number / SITES;
    let version = if place.is_multiple_of(2) {
        "1.1"
    } else {
        "1.0"
    };
    let registration = Registration {
        salt: 7,
        lifetime_asked_s: Some(86_400),
        expires_at: NOW.plus_s(86_400),
        registered_at: NOW,
        version: Registration::parse_version(version).expect("a version"),
        binding: Registration::parse_binding("UQ").expect("a binding"),
        sms: None,
        links: Registration::parse_links(LINKS).expect("links"),
    };
    DeviceRecord {
        first_contact_at: Some(NOW),
        last_seen_at: Some(NOW),
        protocols_seen: ProtocolsSeen::restored([Protocol::Lwm2m], Some(Protocol::Lwm2m)),
        peer: Some(Peer::plain(([127, 1, 0, 1], 5_683).into())),
        registration: (place % 10 != 9).then_some(registration),
        ..DeviceRecord::default()
    }
}

fn all() -> DeviceFilter {
    DeviceFilter::all_of(fleet::customer())
}

fn tagged(tags: &[Tag]) -> DeviceFilter {
    DeviceFilter {
        tags: tags.into(),
        ..all()
    }
}

fn site_of(site: u32) -> Tag {
    Tag::parse(&format!("site:{site}")).expect("a tag")
}

fn kind() -> Tag {
    Tag::parse("kind:meter").expect("a tag")
}
