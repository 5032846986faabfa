//! Is a backup of a store that is written meanwhile the store after one group of commits?

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use engine::change::Change;
use engine::ids::DeviceKey;
use engine::profile::Profile;
use engine::query::devices::{DeviceFilter, DevicePageRequest, DeviceTotal};
use engine::query::{HistoryFilter, PageRequest};
use store::conformance::samples::{acme, batch, device, entry, event, forgotten, known};
use store::conformance::wait;
use store::{
    Backup as _, BackupFault, BackupRefused, BackupStream, Commit as _, DirectoryReads as _,
    OfflineStore, Options, RestoreError, SledStore,
};

/// Devices before the backup; with their events and entries, more than waits for a reader.
const BEFORE: u64 = 2_000;

/// Devices added while the backup is made.
const MEANWHILE: u64 = 600;

#[test]
fn a_backup_is_the_store_after_the_last_group_of_the_time_it_took() {
    let home = tempfile::tempdir().unwrap();
    let store = filled(&home.path().join("store"), BEFORE);
    let backup = store.backup().unwrap();
    // The backup waits for its reader, so it is somewhere at the beginning of the tree.
    for number in BEFORE..BEFORE + MEANWHILE {
        add(&store, number);
        let removed = device(&acme(), number - BEFORE);
        assert_eq!(wait(store.commit(forgotten(&removed))), Ok(()));
    }
    let bytes = all(backup);

    let restored = home.path().join("restored");
    SledStore::restore(&restored, bytes.as_slice()).unwrap();
    let restored = SledStore::open(Options::at(&restored)).unwrap();
    assert_eq!(fleet(&restored), fleet(&store));
    assert_eq!(fleet(&store).len() as u64, BEFORE);
    for number in [MEANWHILE, BEFORE, BEFORE + MEANWHILE - 1] {
        let key = device(&acme(), number).key();
        assert_eq!(history(&restored, key), history(&store, key));
        assert_eq!(history(&restored, key), 1);
    }
}

#[test]
fn a_store_and_its_restored_backup_are_the_same_rows() {
    let home = tempfile::tempdir().unwrap();
    let store = filled(&home.path().join("store"), 100);
    let first = all(store.backup().unwrap());
    assert!(SledStore::check_backup(first.as_slice()).unwrap() > 100);
    let restored = home.path().join("restored");
    SledStore::restore(&restored, first.as_slice()).unwrap();
    let checked = OfflineStore::open(&restored).unwrap().check();
    assert!(checked.findings.is_empty(), "{:?}", checked.findings);
    let restored = SledStore::open(Options::at(&restored)).unwrap();
    assert!(all(restored.backup().unwrap()) == first);
    add(&restored, 100);
    assert_eq!(fleet(&restored).len(), 101);
}

#[test]
fn one_backup_is_made_at_a_time_and_one_that_nobody_takes_ends() {
    let home = tempfile::tempdir().unwrap();
    let store = filled(home.path(), BEFORE);
    let backup = store.backup().unwrap();
    assert_eq!(store.backup().unwrap_err(), BackupRefused::UnderWay);
    drop(backup);
    let deadline = Instant::now() + Duration::from_secs(30);
    let backup = loop {
        match store.backup() {
            Ok(backup) => break backup,
            Err(refused) => assert_eq!(refused, BackupRefused::UnderWay),
        }
        assert!(Instant::now() < deadline, "the first backup does not end");
    };
    SledStore::check_backup(all(backup).as_slice()).unwrap();
    let names = fs::read_dir(home.path()).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.contains(&"backup".into()), "{names:?}");
}

#[test]
fn a_backup_that_is_not_whole_restores_nothing() {
    let home = tempfile::tempdir().unwrap();
    let bytes = all(filled(&home.path().join("store"), 100).backup().unwrap());
    let place = home.path().join("restored");
    let cut = &bytes[..bytes.len() - 1];
    let fault = SledStore::restore(&place, cut).unwrap_err();
    assert!(matches!(
        fault,
        RestoreError::Backup(BackupFault::Truncated)
    ));
    let mut changed = bytes.clone();
    changed[bytes.len() / 2] ^= 1;
    assert!(SledStore::restore(&place, changed.as_slice()).is_err());
    assert_eq!(names_in(home.path()), ["store"]);

    // What an interrupted restore left does not disturb the next one.
    fs::create_dir(home.path().join("restored.restoring")).unwrap();
    fs::write(home.path().join("restored.restoring/db"), "half").unwrap();
    SledStore::restore(&place, bytes.as_slice()).unwrap();
    assert_eq!(names_in(home.path()), ["restored", "store"]);
}

#[test]
fn no_store_is_replaced() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("store");
    let bytes = all(filled(&place, 10).backup().unwrap());
    let refused = SledStore::restore(&place, bytes.as_slice()).unwrap_err();
    assert!(
        matches!(refused, RestoreError::Occupied { .. }),
        "{refused}"
    );
    assert_eq!(
        fleet(&SledStore::open(Options::at(&place)).unwrap()).len(),
        10
    );
}

fn filled(path: &Path, devices: u64) -> SledStore {
    let store = SledStore::open(Options::at(path)).unwrap();
    for number in 0..devices {
        add(&store, number);
    }
    store
}

/// Adds a device with an event and an entry.
fn add(store: &SledStore, number: u64) {
    let meter = device(&acme(), number);
    let mut all = known(&meter);
    all.changes.extend(
        batch(vec![
            Change::AppendEvent(Box::new(event(&meter, 10, number))),
            Change::AppendEntry(Box::new(entry(&meter, 10, number))),
        ])
        .changes,
    );
    assert_eq!(wait(store.commit(all)), Ok(()));
}

fn all(mut backup: BackupStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(piece) = backup.blocking_recv() {
        bytes.extend(piece.unwrap());
    }
    bytes
}

/// The devices of the store, as many as it counts.
fn fleet(store: &SledStore) -> Vec<Profile> {
    let filter = DeviceFilter::all_of(acme());
    let wanted = PageRequest {
        number: 1,
        size: u32::MAX,
    };
    let page = wait(store.devices_of(filter, DevicePageRequest::of(wanted)));
    let page = page.unwrap().unwrap();
    assert_eq!(page.total, DeviceTotal::Exactly(page.items.len() as u64));
    page.items.into_iter().map(|it| it.profile).collect()
}

fn history(store: &SledStore, device: DeviceKey) -> usize {
    let filter = HistoryFilter::all_of(acme(), device);
    wait(store.events_of(filter, u32::MAX))
        .unwrap()
        .events
        .len()
}

fn names_in(path: &Path) -> Vec<String> {
    let names = fs::read_dir(path).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}
