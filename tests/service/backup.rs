//! Is a backup of a service under load a service again?

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::json;
use tempfile::TempDir;

use crate::test_service::{ID, start};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::lwm2m::read;
use crate::vocabulary::poll::until;
use crate::vocabulary::service::{Service, signalbox};
use crate::vocabulary::wire::DeviceSocket;

#[test]
fn a_backup_made_under_load_restores_everything_acknowledged_before_it() {
    let (mut service, mut caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    DeviceSocket::to(&service).register(ID, 1);
    let mut when_active = read("/3/0/0");
    when_active["requestMode"] = json!("SEND_WHEN_ACTIVE");
    let action = caller.create_action(ID, &when_active);
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("signalbox.backup");

    let (created, before) = create_during(&caller, || {
        succeeds(&backup(&service, &file));
    });
    assert!(service.stop().success());
    fs::remove_dir_all(service.data_dir().join("store")).unwrap();
    let output = restore(&service, &file);
    succeeds(&output);
    service.start_again();
    caller.follow(&service);

    let found = |number: u64| {
        let path = format!("{API}/devices/{}", name_of(number));
        caller.request("GET", &path).status == 200
    };
    let restored = (0..created).take_while(|number| found(*number)).count() as u64;
    assert!(restored >= before, "{restored} of {before}");
    assert!(
        !(restored..created).any(found),
        "a device was created after one that is missing"
    );
    let list = caller.request("GET", &format!("{API}/devices?pageSize=1"));
    assert_eq!(list.expect(200)["pageAmount"], restored + 1);
    assert_eq!(caller.action(&action)["status"], "SCHEDULED");
    assert!(service.stop().success());
    let mut check = signalbox();
    check.arg("check").arg("--data-dir").arg(service.data_dir());
    succeeds(&check.output().unwrap());
}

#[test]
fn no_file_and_no_store_is_replaced() {
    let (service, _caller) = start(&[]);
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("signalbox.backup");
    succeeds(&backup(&service, &file));
    let whole = fs::read(&file).unwrap();
    fails(&backup(&service, &file), "exists; choose another name");
    fails(&restore(&service, &file), "is not empty");
    assert_eq!(fs::read(&file).unwrap(), whole);

    let cut = folder.path().join("cut");
    fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let elsewhere = folder.path().join("elsewhere");
    let output = restore_into(&elsewhere, &cut);
    fails(&output, "it is incomplete");
    assert!(!elsewhere.join("store").exists());
    let output = restore_into(&elsewhere, &file);
    succeeds(&output);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("SIGNALBOX_MASTER_KEY"), "{printed}");
    // A new key could not decrypt what is in the store.
    let mut serve = signalbox();
    serve.args(["serve", "--http", "127.0.0.1:0"]);
    serve.args(["--coap", "127.0.0.1:0", "--coaps", "127.0.0.1:0"]);
    serve.args(["--udp", "127.0.0.1:0"]);
    let output = serve.arg("--data-dir").arg(&elsewhere).output().unwrap();
    fails(&output, "the file master-key is missing");
}

/// Creates devices one after the other while something is done; returns how many were created in
/// all, and how many before it began.
fn create_during(caller: &Caller, act: impl FnOnce()) -> (u64, u64) {
    let (enough, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let creating = scope.spawn(|| {
            let mut created = 0;
            while !ended.load(Ordering::Relaxed) {
                let body = json!({ "deviceId": name_of(created) });
                caller.post(&format!("{API}/devices"), &body).expect(201);
                created += 1;
                enough.store(created >= 100, Ordering::Relaxed);
            }
            created
        });
        until("some devices are created", || {
            enough.load(Ordering::Relaxed).then_some(())
        });
        act();
        ended.store(true, Ordering::Relaxed);
        (creating.join().unwrap(), 100)
    })
}

fn name_of(number: u64) -> String {
    format!("meter-{number:06}")
}

fn backup(service: &Service, to: &Path) -> Output {
    let mut command: Command = signalbox();
    command.arg("backup").arg("--to").arg(to);
    command.args(["--http", &service.http.to_string()]);
    let command = command.arg("--data-dir").arg(service.data_dir());
    command.output().unwrap()
}

fn restore(service: &Service, from: &Path) -> Output {
    restore_into(service.data_dir(), from)
}

fn restore_into(data_dir: &Path, from: &Path) -> Output {
    let mut command: Command = signalbox();
    command.arg("restore").arg("--from").arg(from);
    command.arg("--data-dir").arg(data_dir).output().unwrap()
}

fn succeeds(output: &Output) {
    assert!(output.status.success(), "{output:?}");
}

fn fails(output: &Output, why: &str) {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains(why), "{printed}");
}
