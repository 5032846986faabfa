//! What prevents a store from being opened, and is it reported without changing anything?

#![allow(clippy::unwrap_used)]

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use engine::change::Change;
use engine::query::PageRequest;
use store::conformance::samples::{acme, at, batch, customer};
use store::conformance::wait;
use store::{Commit, DirectoryReads, OpenError, Options, SledStore};

const HOLDER: &str = "a_store_held_by_another_process_is_refused_until_that_ends";
const DIRECTORY: &str = "STORE_HOLDER_DIRECTORY";

/// The key of the row with the format of the whole store, and the version byte of its value: what a
/// version that knows nothing else of a newer store must be able to read.
const FORMAT_KEY: [u8; 1] = [1];
const FORMAT_ROW: [u8; 9] = [1, 0, 0, 0, 0, 0, 0, 0, 13];

#[test]
fn a_store_held_by_another_process_is_refused_until_that_ends() {
    if let Ok(directory) = env::var(DIRECTORY) {
        return hold(Path::new(&directory));
    }
    let home = tempfile::tempdir().unwrap();
    let mut holder = start_holder(home.path());
    let refused = SledStore::open(Options::at(home.path())).err().unwrap();
    assert!(matches!(&refused, OpenError::Held { path } if path == home.path()));
    assert!(refused.to_string().contains("in use by another process"));
    holder.kill().unwrap();
    holder.wait().unwrap();
    let store = SledStore::open(Options::at(home.path())).unwrap();
    assert_eq!(wait(store.customer(acme())), Ok(Some(customer("acme"))));
}

#[test]
fn a_store_held_by_this_process_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let store = SledStore::open(Options::at(home.path())).unwrap();
    let refused = SledStore::open(Options::at(home.path())).err().unwrap();
    assert!(matches!(refused, OpenError::Held { .. }));
    drop(store);
    assert!(SledStore::open(Options::at(home.path())).is_ok());
}

#[test]
fn a_store_of_a_newer_version_is_refused_and_left_alone() {
    let home = tempfile::tempdir().unwrap();
    drop(filled(home.path()));
    let mut newer = FORMAT_ROW;
    newer[8] += 1;
    write_row(home.path(), &FORMAT_KEY, &newer);
    let refused = SledStore::open(Options::at(home.path())).err().unwrap();
    assert!(matches!(
        refused,
        OpenError::Newer {
            found: 14,
            known: 13,
            ..
        }
    ));
    assert!(refused.to_string().contains("newer version of signalbox"));

    write_row(home.path(), &FORMAT_KEY, &FORMAT_ROW);
    let store = SledStore::open(Options::at(home.path())).unwrap();
    assert_eq!(wait(store.customer(acme())), Ok(Some(customer("acme"))));
}

#[test]
fn a_store_from_before_the_first_release_is_refused_and_left_alone() {
    let home = tempfile::tempdir().unwrap();
    drop(filled(home.path()));
    let mut older = FORMAT_ROW;
    older[8] = 5;
    write_row(home.path(), &FORMAT_KEY, &older);
    let refused = SledStore::open(Options::at(home.path())).err().unwrap();
    assert!(matches!(refused, OpenError::Older { found: 5, .. }));
    assert!(
        refused
            .to_string()
            .contains("begin with an empty directory")
    );

    write_row(home.path(), &FORMAT_KEY, &FORMAT_ROW);
    let store = SledStore::open(Options::at(home.path())).unwrap();
    assert_eq!(wait(store.customer(acme())), Ok(Some(customer("acme"))));
}

#[test]
fn rows_without_a_format_are_no_store() {
    let home = tempfile::tempdir().unwrap();
    write_row(home.path(), b"something", b"else");
    let refused = SledStore::open(Options::at(home.path())).err().unwrap();
    assert!(matches!(refused, OpenError::Damaged { .. }));
}

#[test]
fn a_damaged_store_is_refused() {
    let home = tempfile::tempdir().unwrap();
    drop(filled(home.path()));
    fs::write(home.path().join("rows/conf"), "not what sled wrote").unwrap();
    let refused = SledStore::open(Options::at(home.path())).err().unwrap();
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
}

#[test]
fn a_snapshot_that_was_cut_off_does_not_keep_the_store_closed() {
    let home = tempfile::tempdir().unwrap();
    drop(filled(home.path()));
    fs::write(
        home.path().join("rows/snap.FFFFFFFFFFFFFFFF.generating"),
        "half",
    )
    .unwrap();
    let store = SledStore::open(Options::at(home.path())).unwrap();
    assert_eq!(wait(store.customer(acme())), Ok(Some(customer("acme"))));
}

#[test]
fn a_store_that_was_cut_off_while_it_was_made_is_made_again() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir_all(home.path().join("rows/blobs")).unwrap();
    for log in [None, Some("")] {
        fs::write(home.path().join("rows/conf"), "segment_s").unwrap();
        if let Some(log) = log {
            fs::write(home.path().join("rows/db"), log).unwrap();
        }
        let store = SledStore::open(Options::at(home.path())).unwrap();
        assert_eq!(wait(store.customer(acme())), Ok(None));
        drop(store);
        fs::remove_file(home.path().join("rows/db")).unwrap();
        for snapshot in snapshots(home.path()) {
            fs::remove_file(snapshot).unwrap();
        }
    }
}

#[test]
fn a_file_is_no_directory() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("store");
    fs::write(&file, "a file").unwrap();
    for path in [file.clone(), file.join("below")] {
        let refused = SledStore::open(Options::at(&path)).err().unwrap();
        assert!(
            matches!(refused, OpenError::NotADirectory { .. }),
            "{refused}"
        );
    }
}

fn snapshots(path: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(path.join("rows"))
        .unwrap()
        .map(|file| file.unwrap().path());
    files
        .filter(|file| file.to_string_lossy().contains("snap."))
        .collect()
}

fn filled(path: &Path) -> SledStore {
    let store = SledStore::open(Options::at(path)).unwrap();
    let put = batch(vec![Change::PutCustomer(customer("acme"))]);
    assert_eq!(wait(store.commit(put)), Ok(()));
    store
}

fn write_row(path: &Path, key: &[u8], row: &[u8]) {
    let config = sled::Config::new()
        .path(path.join("rows"))
        .flush_every_ms(None);
    let deadline = Instant::now() + Duration::from_secs(60);
    // sled's threads may hold the file for a moment after it was closed.
    let rows = loop {
        match config.open() {
            Ok(rows) => break rows,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
    };
    rows.insert(key, row).unwrap();
    rows.flush().unwrap();
}

/// Runs this test as another process, which holds the store until it is killed.
fn start_holder(path: &Path) -> Child {
    let mut holder = Command::new(env::current_exe().unwrap())
        .args(["--exact", HOLDER, "--nocapture"])
        .env(DIRECTORY, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    assert!(
        lines.any(|line| line.unwrap() == "holding"),
        "the holder got the store"
    );
    holder
}

fn hold(path: &Path) {
    let _store = filled(path);
    println!("\nholding");
    // Until the other end of the pipe is closed.
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

#[test]
fn a_store_that_lost_its_end_is_refused_until_that_is_accepted() {
    for lost_bytes in [64, 4_096] {
        let home = tempfile::tempdir().unwrap();
        let options = |accept_loss| Options {
            accept_loss,
            now: || at(10),
            ..Options::at(home.path())
        };
        let store = SledStore::open(options(false)).unwrap();
        for number in 0..200 {
            let made = Change::PutCustomer(customer(&format!("customer-{number}")));
            assert_eq!(wait(store.commit(batch(vec![made]))), Ok(()));
        }
        drop(store);
        damage_end(home.path(), lost_bytes);

        let refused = SledStore::open(options(false)).err().unwrap();
        let OpenError::EndLost { loss, .. } = &refused else {
            panic!("{refused}");
        };
        assert!(loss.groups > 0 && (loss.from, loss.until) == (at(10), at(10)));
        assert!(refused.to_string().contains("--accept-loss"), "{refused}");

        let store = SledStore::open(options(true)).unwrap();
        assert_eq!(store.accepted_loss().as_ref(), Some(loss));
        let left = wait(store.customers(PageRequest { number: 1, size: 1 })).unwrap();
        assert_eq!(left.total + loss.groups, 200);
        drop(store);
        assert_eq!(
            SledStore::open(options(false)).unwrap().accepted_loss(),
            None
        );
    }
}

#[test]
fn a_store_damaged_before_its_last_start_is_refused_with_one_sentence() {
    let home = tempfile::tempdir().unwrap();
    drop(filled(home.path()));
    // A start notes how far the log is whole.
    drop(SledStore::open(Options::at(home.path())).unwrap());
    damage_end(home.path(), 64);
    let refused = SledStore::open(Options::at(home.path())).err().unwrap();
    assert!(matches!(refused, OpenError::Damaged { .. }));
    assert!(
        refused.to_string().contains("restore a backup"),
        "{refused}"
    );
}

/// Changes the last bytes that were written to the log.
fn damage_end(home: &Path, count: usize) {
    let log = home.join("rows/db");
    let mut bytes = fs::read(&log).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    for byte in &mut bytes[end - count..=end] {
        *byte ^= 0x55;
    }
    fs::write(&log, bytes).unwrap();
}
