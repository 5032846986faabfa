//! What do writes and reads of the store cost?

mod fleet;
mod known;

use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput};
use criterion::{criterion_group, criterion_main};
use engine::action::timeline::Timeline;
use engine::action::{Action, Addressee, Lwm2mRequest, Mode, Protocol, Request, Status};
use engine::change::{Batch, Change, Counter, CounterDelta, UniqueName};
use engine::device::record::{DeviceRecord, ProtocolsSeen, Registration};
use engine::dispatch::DevicesAtAddress;
use engine::ids::{ActionId, DeviceKey, TraceId};
use engine::moment::{Moment, Timestamp};
use engine::peer::Peer;
use engine::query::{ActionFilter, PageRequest};
use store::{Commit as _, DeviceReads as _, DirectoryReads as _, Options, SledStore};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// Records that exist before the measurement.
const RECORDS: [u32; 2] = [0, 100_000];

/// Writers that each wait for their receipt before they write again.
const WRITERS: [u64; 2] = [1, 64];

/// Registered devices that a start restores.
const FLEET: u32 = 200_000;

/// The objects of each of them.
const LINKS: &str = "</>;rt=\"oma.lwm2m\";ct=11543,</1/0>,</3/0>,</4/0>,</5/0>,</3303/0>,</3304/0>";

/// Action requests of the customer whose first page is read.
const ACTIONS: u64 = 10_000;

const NOW: Timestamp = Timestamp::from_ms(1_795_219_200_000);

criterion_group! {
    name = store;
    config = Criterion::default().sample_size(10).measurement_time(Duration::from_secs(3));
    targets = commit, found, restored, restored_pages, page
}
criterion_main!(store);

fn commit(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("durable commit of one row");
    group.throughput(Throughput::Elements(1));
    for records in RECORDS {
        let shelf = TempStore::with_devices(records);
        for writers in WRITERS {
            commit_with(&mut group, &shelf, writers, records);
        }
    }
}

fn commit_with(
    group: &mut BenchmarkGroup<'_, WallTime>,
    shelf: &TempStore,
    writers: u64,
    records: u32,
) {
    let id = BenchmarkId::new(format!("writers {writers}"), format!("records {records}"));
    let mut next = 0;
    group.bench_function(id, |bench| {
        bench.iter_custom(|commits| {
            let begun_at = Instant::now();
            shelf.write(next, commits, writers);
            next += commits;
            begun_at.elapsed()
        });
    });
}

fn found(criterion: &mut Criterion) {
    let shelf = TempStore::with_devices(100_000);
    let mut group = criterion.benchmark_group("whose a datagram is, of 100,000 devices");
    let mut number = 0;
    group.bench_function("by endpoint name", |bench| {
        bench.iter(|| {
            number = (number + 7_919) % 100_000;
            let profile = fleet::profile(number);
            let bearer = shelf
                .store
                .device_by_name(UniqueName::Endpoint(profile.endpoint));
            let bearer = shelf.runtime.block_on(bearer).expect("the store answers");
            bearer.expect("a device bears it")
        });
    });
    group.bench_function("by address", |bench| {
        bench.iter(|| {
            number = (number + 7_919) % 100_000;
            let behind = shelf
                .store
                .devices_at_address(fleet::address(number).into());
            let behind = shelf.runtime.block_on(behind).expect("the store answers");
            assert!(
                matches!(behind, DevicesAtAddress::One(_)),
                "each has its own"
            );
        });
    });
}

fn restored(criterion: &mut Criterion) {
    let shelf = TempStore::with_devices(100_000);
    let mut number = 0;
    criterion.bench_function("restored, of 100,000 devices", |bench| {
        bench.iter(|| {
            number = (number + 7_919) % 100_000;
            let restored = shelf.store.restored(fleet::profile(number).key());
            shelf
                .runtime
                .block_on(restored)
                .expect("the store answers")
                .expect("it is there")
        });
    });
}

fn restored_pages(criterion: &mut Criterion) {
    let shelf = TempStore::with_devices(FLEET);
    shelf.register(FLEET);
    let mut group = criterion.benchmark_group("all registered devices in pages");
    group.throughput(Throughput::Elements(FLEET.into()));
    group.bench_function(BenchmarkId::from_parameter(FLEET), |bench| {
        bench.iter(|| assert_eq!(shelf.bring_back_all(), FLEET as usize));
    });
}

fn page(criterion: &mut Criterion) {
    let shelf = TempStore::with_devices(100);
    shelf.add_actions();
    let filter = ActionFilter::all_of(fleet::customer());
    criterion.bench_function("page 1 of 10,000 action requests, 25 on it", |bench| {
        bench.iter(|| {
            let wanted = PageRequest {
                number: 1,
                size: 25,
            };
            let page = shelf.store.actions(filter.clone(), wanted);
            let page = shelf.runtime.block_on(page).expect("the store answers");
            assert_eq!((page.items.len(), page.total), (25, ACTIONS));
            page
        });
    });
}

/// A store in a directory of its own, and a runtime to wait on.
struct TempStore {
    store: Arc<SledStore>,
    runtime: Runtime,
    _directory: tempfile::TempDir,
}

impl TempStore {
    fn with_devices(devices: u32) -> Self {
        // On the disk of the build, because the system's temporary directory may be in memory.
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"));
        let directory = directory.expect("the build's directory takes another");
        let store = SledStore::open(Options::at(directory.path().join("store")));
        let shelf = Self {
            store: Arc::new(store.expect("a new directory takes a store")),
            runtime: Builder::new_current_thread()
                .build()
                .expect("a runtime can be had"),
            _directory: directory,
        };
        for batch in known::batches(devices) {
            shelf.commit(batch);
        }
        shelf
    }

    fn register(&self, devices: u32) {
        for first in (0..devices).step_by(100) {
            let put = |number| Change::PutRecord {
                device: fleet::profile(number).key(),
                record: Box::new(registered()),
            };
            self.commit(Batch {
                changes: (first..first + 100).map(put).collect(),
                ..Batch::default()
            });
        }
    }

    /// Reads every device that is restored, as a start does.
    fn bring_back_all(&self) -> usize {
        let last = DeviceKey::from_bytes([0xff; 16]);
        let mut next = Some(DeviceKey::from_bytes([0; 16]));
        let mut devices = 0;
        while let Some(first) = next {
            let page = self.store.restored_page(first..=last, 256);
            let page = self.runtime.block_on(page).expect("the store answers");
            devices += page.devices.len();
            next = page.next;
        }
        devices
    }

    fn add_actions(&self) {
        for second in 0..ACTIONS / 100 {
            let mut m = Moment::new(NOW.plus_s(second.cast_signed()), second.into());
            let actions = (0..100).map(|number| action(&mut m, number));
            let put = |action| Change::PutAction {
                was: None,
                action: Box::new(action),
            };
            let counter = Counter::CustomerActions {
                customer: fleet::customer(),
                protocol: Protocol::Lwm2m,
                status: Status::Scheduled,
            };
            self.commit(Batch {
                changes: actions.map(put).collect(),
                adds: vec![CounterDelta {
                    counter,
                    delta: 100,
                }],
                ..Batch::default()
            });
        }
    }

    fn commit(&self, batch: Batch) {
        let receipt = self.store.commit(batch);
        self.runtime
            .block_on(receipt)
            .expect("the batch is committed");
    }

    /// Writes this many records, new ones from the given number on.
    fn write(&self, first: u64, commits: u64, writers: u64) {
        let mut tasks = JoinSet::new();
        for writer in 0..writers {
            let numbers = (first + writer..first + commits).step_by(writers as usize);
            tasks.spawn_on(
                write(Arc::clone(&self.store), numbers),
                self.runtime.handle(),
            );
        }
        self.runtime.block_on(async {
            while let Some(ended) = tasks.join_next().await {
                ended.expect("a writer ends well");
            }
        });
    }
}

async fn write(store: Arc<SledStore>, numbers: impl Iterator<Item = u64>) {
    for number in numbers {
        store
            .commit(record(number))
            .await
            .expect("the record is committed");
    }
}

/// One row: the record that a device's actor keeps.
fn record(number: u64) -> Batch {
    let mut key = [0xBE; 16];
    // Spread over the tree, as digests are.
    key[..8].copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    let record = DeviceRecord {
        first_contact_at: Some(NOW),
        last_seen_at: Some(NOW),
        protocols_seen: ProtocolsSeen::restored([Protocol::Lwm2m], Some(Protocol::Lwm2m)),
        ..DeviceRecord::default()
    };
    Batch {
        changes: vec![Change::PutRecord {
            device: DeviceKey::from_bytes(key),
            record: Box::new(record),
        }],
        ..Batch::default()
    }
}

/// The record of a registered device.
fn registered() -> DeviceRecord {
    let registration = Registration {
        salt: 7,
        lifetime_asked_s: Some(86_400),
        expires_at: NOW.plus_s(86_400),
        registered_at: NOW,
        version: Registration::parse_version("1.1").expect("a version"),
        binding: Registration::parse_binding("UQ").expect("a binding"),
        sms: None,
        links: Registration::parse_links(LINKS).expect("links"),
    };
    DeviceRecord {
        first_contact_at: Some(NOW),
        last_seen_at: Some(NOW),
        protocols_seen: ProtocolsSeen::restored([Protocol::Lwm2m], Some(Protocol::Lwm2m)),
        peer: Some(Peer::plain(([127, 1, 0, 1], 5_683).into())),
        registration: Some(registration),
        ..DeviceRecord::default()
    }
}

fn action(m: &mut Moment, device: u32) -> Action {
    let profile = fleet::profile(device);
    Action {
        id: ActionId::new(m.uuid()),
        customer: profile.customer.clone(),
        device: profile.key(),
        request: Request::Lwm2m(Lwm2mRequest::Read(
            "/3303/0/5700".parse().expect("three numbers are a path"),
        )),
        mode: Mode::SendWhenActive,
        status: Status::Scheduled,
        attempts_permitted: 1,
        attempts_made: 0,
        created_at: m.now(),
        updated_at: m.now(),
        expires_at: m.now().plus_s(172_800),
        expires_in_s: None,
        not_before: None,
        wake_up: None,
        woken_by: None,
        addressee: Addressee {
            device: profile.device,
            iccid: profile.iccid,
            imsi: profile.imsi,
            ip: profile.ip,
        },
        trace: TraceId::new(m.uuid()),
        outcome: None,
        timeline: Timeline::default(),
    }
}
