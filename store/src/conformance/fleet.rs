//! Which devices are found? Compared with a naive model over random devices, records and queries.

use std::collections::BTreeMap;
use std::net::IpAddr;

use engine::action::Protocol;
use engine::change::{Batch, Change, Counter, CounterDelta, Expect, UniqueName};
use engine::device::record::{Connectivity, DeviceRecord, ProtocolsSeen, Registration};
use engine::event::{Cause, Event, EventContent, Telemetry};
use engine::ids::{CustomerId, DeviceId, Endpoint, Iccid, Imsi};
use engine::limits::{DEVICES_EXAMINED_MAX, NAMES_SEARCHED_MAX, RECORDS_EXAMINED_MAX};
use engine::profile::Profile;
use engine::query::devices::{
    DeviceFilter, DevicePage, DevicePageRequest, DeviceTotal, FIRMWARE_VERSION, ListedDevice,
    SearchTooBroad,
};
use engine::query::{Page, PageRequest};
use engine::tags::{Tag, Tags};
use engine::{EnablerVersion, Value};

use super::addresses::behind;
use super::rng::Rng;
use super::samples::{acme, at, batch, customer, device, event, forgotten, known, record};
use super::{TestBed, commit, wait};
use crate::{CommitError, Store};

const STEPS: u64 = 500;
const QUESTIONS: u64 = 400;

/// Few enough that devices are removed and added again under the same names.
const NUMBERS: u64 = 40;

const FIRST: PageRequest = PageRequest {
    number: 1,
    size: 100,
};

pub(super) fn agrees_with_model(ground: &TestBed<'_>) {
    let mut rng = Rng::from_seed_asked_for();
    let mut fleet = Fleet::default();
    let store = ground.open();
    let receipts: Vec<_> = (0..STEPS)
        .map(|step| store.commit(fleet.take_step(step, &mut rng)))
        .collect();
    for receipt in receipts {
        assert_eq!(wait(receipt), Ok(()));
    }
    compare(&*store, &fleet, &mut rng);
    drop(store);
    compare(&*ground.open(), &fleet, &mut rng);
}

pub(super) fn search_is_bounded(ground: &TestBed<'_>) {
    let store = ground.open();
    let globex = customer("globex").id;
    let count = u64::try_from(NAMES_SEARCHED_MAX).expect("a small bound");
    for first in (1..=count).step_by(1_000) {
        let made = (first..first + 1_000).map(|number| Change::PutDevice {
            was: None,
            profile: Box::new(device(&globex, number)),
        });
        assert_eq!(commit(&*store, batch(made.collect())), Ok(()));
    }
    // Names of other customers with the same prefix do not count, for a customer of few devices or
    // of many.
    let meter = device(&acme(), count + 1);
    assert_eq!(commit(&*store, known(&meter)), Ok(()));
    let every = |customer: &CustomerId| DeviceFilter::all_of(customer.clone());
    let found = |beginning: &str| search(&*store, beginning, every(&acme()));
    for beginning in ["urn:dev:", "8988303", "90140", "88", "meter-"] {
        assert_eq!(found(beginning), Ok(vec![meter.clone()]), "{beginning}");
    }
    assert_eq!(found(meter.endpoint.as_str()), Ok(vec![meter.clone()]));
    assert_eq!(found("urn:imei:"), Ok(vec![]));
    let all = search(&*store, "urn:dev:", every(&globex)).map(|some| some.len());
    assert_eq!(all, Ok(100));
    let last = device(&globex, count + 2);
    assert_eq!(commit(&*store, known(&last)), Ok(()));
    assert_eq!(
        search(&*store, "urn:dev:", every(&globex)),
        Err(SearchTooBroad)
    );
    assert_eq!(found("urn:dev:"), Ok(vec![meter]));
    let seen = DeviceFilter {
        protocols_seen: Some(Protocol::Lwm2m),
        ..every(&globex)
    };
    assert_eq!(search(&*store, "urn:dev:", seen.clone()), Ok(vec![]));
    let recorded = Change::PutRecord {
        device: last.key(),
        record: Box::new(record(10, "</3/0>")),
    };
    assert_eq!(commit(&*store, batch(vec![recorded])), Ok(()));
    assert_eq!(search(&*store, "urn:dev:", seen), Ok(vec![last]));
}

pub(super) fn list_is_bounded(ground: &TestBed<'_>) {
    let store = ground.open();
    let [tag, other] = ["site:berlin", "floor:2"].map(|it| Tag::parse(it).expect("a tag"));
    let half = u64::from(DEVICES_EXAMINED_MAX) + 250;
    let count = 2 * half;
    // All but the last device have one of the tags.
    let tags_of = |number: u64| match number {
        _ if number == count => vec![tag.clone(), other.clone()],
        _ if number > half => vec![other.clone()],
        _ => vec![tag.clone()],
    };
    for first in (1..=count).step_by(500) {
        let made = (first..first + 500).map(|number| tagged(number, tags_of(number)));
        let counter = Counter::Devices(acme());
        let batch = Batch {
            adds: vec![CounterDelta {
                counter,
                delta: 500,
            }],
            ..batch(made.collect())
        };
        assert_eq!(commit(&*store, batch), Ok(()));
    }
    let last = device(&acme(), count);
    let changes = vec![
        Change::PutRecord {
            device: last.key(),
            record: Box::new(record(10, "</3/0>")),
        },
        Change::AppendEvent(Box::new(firmware(&last, "1.4.2"))),
    ];
    assert_eq!(commit(&*store, batch(changes)), Ok(()));

    let every = DeviceFilter::all_of(acme());
    let tagged = DeviceFilter {
        tags: [other.clone()].into(),
        ..every.clone()
    };
    let exactly = |page: DevicePage| (page.total, page.next.is_some());
    for (filter, count) in [(&every, count), (&tagged, half)] {
        let page = page_of(&*store, filter, None);
        assert_eq!(exactly(page), (DeviceTotal::Exactly(count), true));
    }
    // An index of one device is read rather than that of a tag.
    let both = DeviceFilter {
        registered: Some(true),
        ..tagged.clone()
    };
    let page = page_of(&*store, &both, None);
    assert_eq!(exactly(page), (DeviceTotal::Exactly(1), false));
    // What no count tells is examined up to a bound, and the list continues behind it.
    let twice = DeviceFilter {
        tags: [tag.clone(), other.clone()].into(),
        ..every.clone()
    };
    let object = DeviceFilter {
        object: Some(3),
        ..tagged.clone()
    };
    let version = DeviceFilter {
        firmware: Some("1.4.2".into()),
        ..every
    };
    for (filter, bound) in [
        (twice, half + u64::from(DEVICES_EXAMINED_MAX)),
        (object, half + u64::from(RECORDS_EXAMINED_MAX)),
        (version, u64::from(RECORDS_EXAMINED_MAX)),
    ] {
        let mut page = page_of(&*store, &filter, None);
        assert_eq!(page.total, DeviceTotal::AtLeast(0), "{filter:?}");
        let bound = device(&acme(), bound).device;
        assert_eq!(page.next, Some(bound), "{filter:?}");
        let mut found = Vec::new();
        while page.next.is_some() {
            page = page_of(&*store, &filter, page.next);
            found.extend(page.items.drain(..).map(|it| it.profile.device));
        }
        assert_eq!(found, vec![last.device.clone()], "{filter:?}");
    }
    // A device that is removed is no longer counted with its tag.
    assert_eq!(commit(&*store, forgotten(&last)), Ok(()));
    let page = page_of(&*store, &tagged, None);
    assert_eq!(page.total, DeviceTotal::Exactly(half - 1));
}

/// The first page of a list behind a device id.
fn page_of(store: &dyn Store, filter: &DeviceFilter, after: Option<DeviceId>) -> DevicePage {
    let wanted = DevicePageRequest { after, page: FIRST };
    let listed = wait(store.devices_of(filter.clone(), wanted)).expect("an answer");
    listed.expect("no prefix is too short")
}

fn tagged(number: u64, tags: Vec<Tag>) -> Change {
    let profile = Profile {
        tags: Tags::of(tags).expect("few tags"),
        ..device(&acme(), number)
    };
    Change::PutDevice {
        was: None,
        profile: Box::new(profile),
    }
}

/// The event of a device that reports its firmware version.
fn firmware(of: &Profile, version: &str) -> Event {
    let telemetry = Telemetry {
        source: Protocol::Lwm2m,
        cause: Cause::Send,
        measured_at: None,
        values: [(FIRMWARE_VERSION, Value::String(version.into()))].into(),
    };
    Event {
        content: EventContent::Telemetry(telemetry),
        ..event(of, 10, 1)
    }
}

pub(super) fn profiles_are_compared_and_set(ground: &TestBed<'_>) {
    let store = ground.open();
    let was = device(&acme(), 1);
    let is = Profile {
        name: Some("in the attic".into()),
        ..was.clone()
    };
    let change = || amended(&was, &is);
    assert_eq!(commit(&*store, change()), Err(CommitError::Conflict));
    assert_eq!(commit(&*store, known(&was)), Ok(()));
    assert_eq!(commit(&*store, change()), Ok(()));
    assert_eq!(commit(&*store, change()), Err(CommitError::Conflict));
    assert_eq!(wait(store.profile(was.key())), Ok(Some(is.clone())));
    assert_eq!(commit(&*store, amended(&is, &was)), Ok(()));
}

/// Everything that was put and not removed.
#[derive(Default)]
struct Fleet {
    devices: BTreeMap<(CustomerId, DeviceId), (Profile, DeviceRecord)>,
}

impl Fleet {
    /// Takes a random step and returns its batch.
    fn take_step(&mut self, step: u64, rng: &mut Rng) -> Batch {
        let there: Vec<_> = self.devices.values().cloned().collect();
        let number = rng.below(NUMBERS);
        let is_free = there.iter().all(|(it, _)| it.number != number);
        if is_free || there.is_empty() {
            let new = device(&rng.one_of(&[acme(), customer("globex").id]), number);
            self.put(new.clone(), DeviceRecord::default());
            return known(&new);
        }
        let (profile, record) = rng.one_of(&there);
        match rng.below(8) {
            0 => {
                self.devices.remove(&id_of(&profile));
                forgotten(&profile)
            }
            1..3 => {
                let is = renamed(&profile, step, rng);
                self.put(is.clone(), record);
                amended(&profile, &is)
            }
            _ => {
                let record = one_of_records(rng);
                self.put(profile.clone(), record.clone());
                batch(vec![Change::PutRecord {
                    device: profile.key(),
                    record: Box::new(record),
                }])
            }
        }
    }

    fn put(&mut self, profile: Profile, record: DeviceRecord) {
        self.devices.insert(id_of(&profile), (profile, record));
    }

    fn found(&self, filter: &DeviceFilter) -> Vec<ListedDevice> {
        let passes = |(profile, record): &&(Profile, DeviceRecord)| {
            let heard_over = |protocol| record.protocols_seen.has(protocol);
            let seen = filter.protocols_seen.is_none_or(heard_over);
            let registration = record.registration.as_ref();
            let version = registration.map(|it| it.version);
            let links = registration
                .map(Registration::links_text)
                .unwrap_or_default();
            let offers = |object| links.contains(&format!("</{object}/"));
            let prefix = filter.name_prefix.as_deref().unwrap_or_default();
            profile.customer == filter.customer
                && seen
                && filter
                    .registered
                    .is_none_or(|it| registration.is_some() == it)
                && filter
                    .tags
                    .iter()
                    .all(|tag| profile.tags.as_slice().contains(tag))
                && (filter.version.is_none() || version == filter.version)
                && filter.object.is_none_or(offers)
                && (filter.last_seen_before.is_none()
                    || record.last_seen_at.is_some()
                        && record.last_seen_at < filter.last_seen_before)
                && (filter.last_seen_after.is_none()
                    || record.last_seen_at > filter.last_seen_after)
                && filter
                    .online
                    .is_none_or(|online| match record.connectivity {
                        Connectivity::Offline => !online,
                        Connectivity::Online => online,
                        Connectivity::Unknown => online && registration.is_some(),
                    })
                && names_of(profile)
                    .iter()
                    .any(|name| name.starts_with(prefix))
        };
        let found = self.devices.values().filter(passes).cloned();
        found
            .map(|(profile, record)| ListedDevice { profile, record })
            .collect()
    }

    /// The devices that have an address, by key.
    fn at(&self, ip: IpAddr) -> Vec<Profile> {
        let there = |ip: IpAddr| move |it: &Profile| it.ip.map(|it| it.to_canonical()) == Some(ip);
        let profiles = self.devices.values().map(|(profile, _)| profile.clone());
        let mut found: Vec<_> = profiles.filter(there(ip.to_canonical())).collect();
        found.sort_by_key(Profile::key);
        found
    }
}

/// Addresses that devices have, one written in two ways.
fn addresses() -> [IpAddr; 4] {
    ["10.0.0.1", "10.0.0.2", "::ffff:10.0.0.2", "2001:db8::1"]
        .map(|text| text.parse().expect("an address"))
}

fn compare(store: &dyn Store, fleet: &Fleet, rng: &mut Rng) {
    for _ in 0..QUESTIONS {
        let filter = filter(rng);
        let named = DeviceFilter {
            name_prefix: Some(prefix(fleet, rng)),
            ..filter.clone()
        };
        let wanted = DevicePageRequest {
            after: rng
                .maybe(&[0, 7, 20, 99])
                .map(|it| device(&acme(), it).device),
            page: PageRequest {
                number: 1 + u32::try_from(rng.below(4)).expect("small"),
                size: 1 + u32::try_from(rng.below(20)).expect("small"),
            },
        };
        for filter in [filter, named] {
            let listed = wait(store.devices_of(filter.clone(), wanted.clone()));
            let expected = cut(fleet.found(&filter), &wanted);
            assert_eq!(listed, Ok(Ok(expected)), "{filter:?} {wanted:?}");
        }
    }
    for ip in addresses() {
        let expected = behind(&fleet.at(ip));
        assert_eq!(wait(store.devices_at_address(ip)), Ok(expected), "{ip}");
    }
}

fn search(
    store: &dyn Store,
    beginning: &str,
    filter: DeviceFilter,
) -> Result<Vec<Profile>, SearchTooBroad> {
    let filter = DeviceFilter {
        name_prefix: Some(beginning.into()),
        ..filter
    };
    let found = wait(store.devices_of(filter, DevicePageRequest::of(FIRST))).expect("an answer");
    found.map(|page| profiles(page).items)
}

/// A filter of which each part is there or not.
fn filter(rng: &mut Rng) -> DeviceFilter {
    let tags = [rng.maybe(&tags()), rng.maybe(&tags()), rng.maybe(&tags())];
    DeviceFilter {
        registered: rng.maybe(&[true, false]),
        protocols_seen: rng.maybe(&Protocol::ALL),
        tags: match rng.below(2) {
            0 => tags.into_iter().flatten().collect(),
            _ => Box::default(),
        },
        version: rng.rarely(&[EnablerVersion::V1_0, EnablerVersion::V1_1]),
        object: rng.rarely(&[3, 5]),
        last_seen_before: rng.rarely(&[at(10), at(11), at(20)]),
        last_seen_after: rng.rarely(&[at(9), at(10), at(20)]),
        online: rng.rarely(&[true, false]),
        ..DeviceFilter::all_of(rng.one_of(&[acme(), customer("globex").id]))
    }
}

/// Tags that devices have.
fn tags() -> [Tag; 4] {
    ["site:berlin", "site:paris", "site:par", "floor:2"]
        .map(|text| Tag::parse(text).expect("a tag"))
}

/// The profiles on a page whose total is exact.
pub(super) fn profiles(page: DevicePage) -> Page<Profile> {
    let total = page.total.count();
    assert_eq!(page.total, DeviceTotal::Exactly(total));
    let items = page.items.into_iter().map(|it| it.profile).collect();
    Page { items, total }
}

/// A prefix of a name that some device has or had.
fn prefix(fleet: &Fleet, rng: &mut Rng) -> Box<str> {
    let devices: Vec<_> = fleet.devices.values().map(|(it, _)| it.clone()).collect();
    let some = if devices.is_empty() {
        device(&acme(), 1)
    } else {
        rng.one_of(&devices)
    };
    let name = rng.one_of(&names_of(&some));
    let length = u64::try_from(name.len()).expect("a short name");
    let shown = usize::try_from(1 + rng.below(length)).expect("a short name");
    name[..shown].into()
}

/// The names a device is found by.
fn names_of(profile: &Profile) -> Vec<String> {
    let names = [
        Some(profile.device.to_string()),
        Some(profile.iccid.to_string()),
        profile.imsi.as_ref().map(ToString::to_string),
        profile.msisdn.as_ref().map(ToString::to_string),
        Some(profile.endpoint.to_string()),
    ];
    names.into_iter().flatten().collect()
}

fn id_of(profile: &Profile) -> (CustomerId, DeviceId) {
    (profile.customer.clone(), profile.device.clone())
}

fn one_of_records(rng: &mut Rng) -> DeviceRecord {
    let registered = record(10, "</3/0>");
    let gone = DeviceRecord {
        registration: None,
        connectivity: Connectivity::Offline,
        ..registered.clone()
    };
    let restored = DeviceRecord {
        connectivity: Connectivity::Unknown,
        ..registered.clone()
    };
    let plain = DeviceRecord {
        protocols_seen: ProtocolsSeen::restored(
            [Protocol::Udp, Protocol::Coap],
            Some(Protocol::Udp),
        ),
        ..gone.clone()
    };
    rng.one_of(&[registered, restored, gone, plain, DeviceRecord::default()])
}

fn renamed(was: &Profile, step: u64, rng: &mut Rng) -> Profile {
    let mut is = was.clone();
    match rng.below(9) {
        0 => is.endpoint = Endpoint::parse(&format!("urn:imei:{step}")).expect("an endpoint"),
        1 => is.iccid = Iccid::parse(&format!("8949{step:015}")).expect("an ICCID"),
        2 => is.imsi = Some(Imsi::parse(&format!("26201{step:010}")).expect("an IMSI")),
        3 => is.msisdn = None,
        4..7 => {
            let tags = [rng.maybe(&tags()), rng.maybe(&tags())];
            is.tags = Tags::of(tags.into_iter().flatten()).expect("few tags");
        }
        _ => is.ip = rng.maybe(&addresses()),
    }
    is
}

fn amended(was: &Profile, is: &Profile) -> Batch {
    let borne = UniqueName::all_of(was);
    let gained = UniqueName::all_of(is)
        .into_iter()
        .filter(|name| !borne.contains(name));
    let mut expects = vec![Expect::Profile(Box::new(was.clone()))];
    expects.extend(gained.map(Expect::Free));
    Batch {
        expects,
        ..batch(vec![Change::PutDevice {
            was: Some(Box::new(was.clone())),
            profile: Box::new(is.clone()),
        }])
    }
}

fn cut(mut all: Vec<ListedDevice>, wanted: &DevicePageRequest) -> DevicePage {
    all.retain(|it| {
        wanted
            .after
            .as_ref()
            .is_none_or(|after| it.profile.device > *after)
    });
    let total = u64::try_from(all.len()).expect("a count");
    let skip = usize::try_from(wanted.page.skip()).expect("a small page");
    let size = usize::try_from(wanted.page.size).expect("a small page");
    let follows = all.len() > skip + size;
    let items: Vec<_> = all.into_iter().skip(skip).take(size).collect();
    let last = items.last().map(|it| it.profile.device.clone());
    DevicePage {
        next: last.filter(|_| follows),
        total: DeviceTotal::Exactly(total),
        items,
    }
}
