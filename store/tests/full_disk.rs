//! What happens while less of the disk is free than the reserve?

#![allow(clippy::unwrap_used)]

use std::path::Path;

use engine::action::Action;
use store::conformance::samples::{acme, action, created, device};
use store::conformance::wait;
use store::{
    Commit, CommitError, DirectoryReads, Maintenance, Options, Pressure, SledStore, Unavailable,
};

#[test]
fn a_full_disk_refuses_commits_and_loses_nothing() {
    let home = tempfile::tempdir().unwrap();
    let kept = request(1);
    let store = SledStore::open(Options::at(home.path())).unwrap();
    assert_eq!(wait(store.commit(created(&kept))), Ok(()));
    assert_eq!(store.pressure(), Pressure::Open);
    drop(store);

    // No disk has this much free.
    let store = open_with_reserve(home.path(), u64::MAX);
    assert_eq!(
        wait(store.commit(created(&request(2)))),
        Err(CommitError::Full)
    );
    assert_eq!(store.pressure(), Pressure::DiskFull);
    assert_eq!(wait(store.take_over()), Err(Unavailable));
    assert_eq!(wait(store.action(kept.id)), Ok(Some(kept.clone())));
    assert_eq!(wait(store.action(request(2).id)), Ok(None));
    drop(store);

    let store = open_with_reserve(home.path(), 0);
    assert_eq!(wait(store.commit(created(&request(2)))), Ok(()));
    assert_eq!(store.pressure(), Pressure::Open);
    assert_eq!(wait(store.action(kept.id)), Ok(Some(kept)));
    assert_eq!(wait(store.action(request(2).id)), Ok(Some(request(2))));
}

fn open_with_reserve(path: &Path, disk_reserve_bytes: u64) -> SledStore {
    SledStore::open(Options {
        disk_reserve_bytes,
        ..Options::at(path)
    })
    .unwrap()
}

fn request(rng: u64) -> Action {
    action(&device(&acme(), 1), 10, rng)
}
