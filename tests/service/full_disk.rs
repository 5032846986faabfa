//! What happens when the disk is full?
//!
//! The disk is a small file system in memory. Each test mounts one in a mount namespace of its
//! own, for which it runs itself in another process: as root, or in a user namespace.

use std::env;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use crate::test_service::{error_codes, start};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::http::Request;
use crate::vocabulary::poll::until;
use crate::vocabulary::service::Service;

const DISK: &str = "TEST_SMALL_DISK";

#[test]
#[cfg(target_os = "linux")]
fn a_disk_that_fills_up_at_once_costs_nothing_that_was_acknowledged() {
    with_a_small_disk(
        "full_disk::a_disk_that_fills_up_at_once_costs_nothing_that_was_acknowledged",
        filled_at_once,
    );
}

#[test]
#[cfg(target_os = "linux")]
fn on_a_full_disk_reading_works_and_writing_is_refused_until_there_is_room() {
    with_a_small_disk(
        "full_disk::on_a_full_disk_reading_works_and_writing_is_refused_until_there_is_room",
        full_at_the_start,
    );
}

/// Runs a test by its name in a process of its own, in which a small disk is mounted.
fn with_a_small_disk(name: &str, test: fn(&Path)) {
    if let Some(disk) = env::var_os(DISK) {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=96m", "tmpfs"]);
        assert!(mount.arg(&disk).status().unwrap().success());
        return test(Path::new(&disk));
    }
    let disk = TempDir::new().unwrap();
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let output = Command::new("unshare")
        .arg(if is_root { "-m" } else { "-Urm" })
        .arg(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(DISK, disk.path())
        .env("TMPDIR", disk.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n{error}");
    assert!(told.contains("1 passed"), "{told}\n{error}");
}

fn full_at_the_start(disk: &Path) {
    let settings = [
        ("SIGNALBOX_DISK_RESERVE_MIB", "48"),
        ("SIGNALBOX_DISK_RESERVE_FILE_MIB", "16"),
    ];
    let (mut service, mut caller) = start(&settings);
    caller.create_device("device-first", "10.1.0.1");
    let filler = fill(disk);
    let refused = |caller: &Caller| {
        let body = json!({ "deviceId": "device-second" });
        let refused = caller.post(&format!("{API}/devices"), &body).expect(503);
        assert_eq!(error_codes(&refused), ["UNAVAILABLE"], "{refused}");
        assert_eq!(count(caller), 1);
    };
    let health = |service: &Service| {
        ["/livez", "/readyz"].map(|path| Request::new("GET", path).send(service.http).status)
    };
    refused(&caller);
    assert_eq!(health(&service), [200, 503]);
    service.kill();
    service.start_again();
    caller.follow(&service);
    refused(&caller);
    assert_eq!(health(&service), [200, 503]);

    fs::remove_file(filler).unwrap();
    until("room", || (health(&service) == [200, 200]).then_some(()));
    caller.create_device("device-second", "10.1.0.2");
    assert_eq!(count(&caller), 2);
}

/// Writes a file until nothing is free.
fn fill(disk: &Path) -> PathBuf {
    let filler = disk.join("filler");
    let mut file = File::create(&filler).unwrap();
    while file.write_all(&[1; 1 << 16]).is_ok() {}
    while file.write_all(&[1]).is_ok() {}
    filler
}

fn filled_at_once(disk: &Path) {
    // Without a check of the free space, the store meets the full disk.
    let (mut service, mut caller) = start(&[
        ("SIGNALBOX_DISK_RESERVE_MIB", "0"),
        ("SIGNALBOX_DISK_RESERVE_FILE_MIB", "24"),
    ]);
    service.may_fail();
    let reserve = service.data_dir().join("store/reserve");
    caller.create_device("device-first", "10.1.0.1");
    assert_eq!(fs::metadata(&reserve).unwrap().len(), 24 << 20);

    let filler = fill(disk);
    let mut acknowledged = 1;
    for number in 0.. {
        assert!(number < 100_000, "the disk is never full");
        let body = json!({ "deviceId": format!("device-{number}") });
        let created = caller.try_send("POST", &format!("{API}/devices"), &body);
        match created.map_or(503, |response| response.status) {
            201 => acknowledged += 1,
            503 => break,
            other => panic!("answered {other}"),
        }
    }
    service.started_anew();
    assert!(!reserve.exists(), "it was given up");
    caller.follow(&service);
    let stored = count(&caller);
    // Whether the last one is stored is unknown to whoever has no answer.
    assert!(stored == acknowledged || stored == acknowledged + 1);
    let ready = Request::new("GET", "/livez").send(service.http);
    assert_eq!(ready.status, 200);

    fs::remove_file(&filler).unwrap();
    caller.create_device("device-last", "10.1.0.2");
    assert_eq!(count(&caller), stored + 1);
    until("the reserve", || reserve.exists().then_some(()));
}

fn count(caller: &Caller) -> u64 {
    let path = format!("{API}/devices?pageSize=1");
    let list = caller.request("GET", &path).expect(200);
    list["pageAmount"].as_u64().unwrap()
}
