//! What does a start restore?

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use engine::action::Status;
use engine::change::Change;
use engine::device::record::{Connectivity, DeviceRecord, RestoredDevice};
use engine::ids::DeviceKey;
use engine::profile::Profile;

use super::samples::{acme, action, created, device, known, links, moved, record, saved};
use super::{TestBed, commit, put, wait};
use crate::Store;

pub(super) fn live(ground: &TestBed<'_>) {
    let store = ground.open();
    assert_eq!(all_live(&*store, 10), []);
    let meters = meters(&*store, 40);
    for (meter, number) in meters.iter().zip(0..) {
        if number % 2 == 0 {
            keep(&*store, meter, &record(10, "</3/0>"));
        }
        if number % 3 == 0 {
            assert_eq!(commit(&*store, created(&action(meter, 10, number))), Ok(()));
            assert_eq!(commit(&*store, created(&action(meter, 11, number))), Ok(()));
        }
    }
    // One device loses its registration, another its last request.
    keep(
        &*store,
        &meters[2],
        &DeviceRecord {
            registration: None,
            connectivity: Connectivity::Offline,
            ..record(10, "</3/0>")
        },
    );
    // One without registration goes offline unless it is heard.
    keep(
        &*store,
        &meters[5],
        &DeviceRecord {
            registration: None,
            ..record(10, "</3/0>")
        },
    );
    for second in [10, 11] {
        let request = action(&meters[3], second, 3);
        let step = saved(Some(&request), &moved(&request, Status::Succeeded));
        assert_eq!(commit(&*store, step), Ok(()));
    }

    let mut expected: Vec<DeviceKey> = meters
        .iter()
        .zip(0..)
        .filter(|(_, number)| {
            (number % 2 == 0 || number % 3 == 0 || *number == 5) && ![2, 3].contains(number)
        })
        .map(|(meter, _)| meter.key())
        .collect();
    expected.sort();
    for size in [1, 3, 5, 100] {
        assert_eq!(all_live(&*store, size), expected);
    }
}

pub(super) fn pages_agree(ground: &TestBed<'_>) {
    let store = ground.open();
    // Few of many devices are live, so those in between must be skipped.
    let mut keys = Vec::new();
    for (meter, number) in meters(&*store, 300).iter().zip(0_u64..) {
        let known = record(10, "</3/0>,</3303>;ver=1.1,</3303/0>");
        match number % 30 {
            0 | 1 => keep(&*store, meter, &known),
            // Seen, but no longer registered: it is not live.
            2 => {
                let farewell = DeviceRecord {
                    registration: None,
                    connectivity: Connectivity::Unknown,
                    ..known
                };
                keep(&*store, meter, &farewell);
                continue;
            }
            3 => {}
            _ => continue,
        }
        if number % 30 != 0 {
            for second in [12, 11] {
                let request = action(meter, second, number);
                assert_eq!(commit(&*store, created(&request)), Ok(()));
            }
        }
        keys.push(meter.key());
    }
    keys.sort();

    let (first, last) = (keys[0], keys[keys.len() - 1]);
    let stretches = [
        every_key(),
        first..=last,
        keys[4]..=keys[4],
        keys[3]..=keys[20],
        DeviceKey::from_bytes([0; 16])..=first,
        last..=DeviceKey::from_bytes([0xff; 16]),
    ];
    for stretch in stretches {
        let within = keys.iter().filter(|key| stretch.contains(key));
        let expected: Vec<_> = within.map(|key| (*key, one(&*store, *key))).collect();
        for size in [1, 4, 1_000] {
            assert_eq!(all_within(&*store, stretch.clone(), size), expected);
        }
    }
}

pub(super) fn large_devices(ground: &TestBed<'_>) {
    let store = ground.open();
    let large = record(20, &links(1_000));
    let meters = meters(&*store, 200);
    for meter in &meters {
        keep(&*store, meter, &large);
    }
    let mut keys: Vec<DeviceKey> = meters.iter().map(Profile::key).collect();
    keys.sort();
    let first = wait(store.restored_page(every_key(), 1_000)).expect("an answer");
    assert!(!first.devices.is_empty() && first.devices.len() < 200);
    let all = all_within(&*store, every_key(), 1_000);
    assert!(all.iter().all(|(_, restored)| restored.record == large));
    assert_eq!(
        all.into_iter().map(|(key, _)| key).collect::<Vec<_>>(),
        keys
    );
}

pub(super) fn right_about_those_left_alone(ground: &TestBed<'_>) {
    let store = ground.open();
    let meters = meters(&*store, 60);
    for meter in &meters {
        keep(&*store, meter, &record(10, "</3/0>"));
    }
    let (busy, alone): (Vec<_>, Vec<_>) = meters
        .iter()
        .map(Profile::key)
        .partition(|key| key.as_bytes()[15].is_multiple_of(2));
    let mut expected: Vec<_> = alone.iter().map(|key| (*key, one(&*store, *key))).collect();
    expected.sort_by_key(|(key, _)| *key);

    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for meter in meters.iter().filter(|meter| busy.contains(&meter.key())) {
                    keep(&*store, meter, &record(20, &links(1_000)));
                    keep(&*store, meter, &DeviceRecord::default());
                }
            }
        });
        for _ in 0..50 {
            let mut found = all_within(&*store, every_key(), 7);
            found.retain(|(key, _)| alone.contains(key));
            assert_eq!(found, expected);
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// Saves a device record.
pub(super) fn keep(store: &dyn Store, device: &Profile, record: &DeviceRecord) {
    let record = Box::new(record.clone());
    put(
        store,
        vec![Change::PutRecord {
            device: device.key(),
            record,
        }],
    );
}

/// Every live device, read in pages of a given size.
pub(super) fn all_live(store: &dyn Store, size: u32) -> Vec<DeviceKey> {
    let all = all_within(store, every_key(), size);
    all.into_iter().map(|(key, _)| key).collect()
}

fn all_within(
    store: &dyn Store,
    keys: RangeInclusive<DeviceKey>,
    size: u32,
) -> Vec<(DeviceKey, RestoredDevice)> {
    let (mut from, last) = keys.into_inner();
    let mut all = Vec::new();
    loop {
        let page = wait(store.restored_page(from..=last, size)).expect("an answer");
        assert!(page.devices.len() <= usize::try_from(size).expect("a small page"));
        all.extend(page.devices);
        match page.next {
            Some(next) => {
                assert!(all.last().is_none_or(|(key, _)| *key < next));
                from = next;
            }
            None => return all,
        }
    }
}

/// The range of all device keys.
fn every_key() -> RangeInclusive<DeviceKey> {
    DeviceKey::from_bytes([0; 16])..=DeviceKey::from_bytes([0xff; 16])
}

pub(super) fn one(store: &dyn Store, device: DeviceKey) -> RestoredDevice {
    let restored = wait(store.restored(device)).expect("an answer");
    restored.expect("it is there")
}

fn meters(store: &dyn Store, count: u64) -> Vec<Profile> {
    let meters: Vec<Profile> = (0..count).map(|number| device(&acme(), number)).collect();
    for meter in &meters {
        assert_eq!(commit(store, known(meter)), Ok(()));
    }
    meters
}
