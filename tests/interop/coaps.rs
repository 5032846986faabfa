//! Do devices by others register, send and answer over DTLS? libcoap's clients, aiocoap on
//! tinydtls, and Eclipse Leshan on Scandium, with Connection ID. And what do attacks on DTLS
//! achieve?

mod attacked;
mod bootstrapped;
mod certified;
mod scanned;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::dtls::nat::Nat;
use crate::leshan::QUICK_START;
use crate::vocabulary::caller::Caller;
use crate::vocabulary::lwm2m::{outcome, read};
use crate::vocabulary::plain::ReportedData;
use crate::vocabulary::program::Program;
use crate::vocabulary::service::Service;

const ID: &str = "lamp-7";
const KEY: &str = "a key of 16 byte";

/// How long Californium may take to notice that its session is gone.
const GIVEN_UP_WITHIN: Duration = Duration::from_secs(240);

#[test]
fn libcoap_posts_data_over_dtls() {
    let (service, caller) = start();
    for (number, library) in ["openssl", "gnutls"].into_iter().enumerate() {
        let mut command = Command::new(format!("coap-client-{library}"));
        command.args(["-B", "20", "-m", "post", "-u", ID, "-k", KEY]);
        command.args(["-e", &format!("2{number}.5")]);
        command.arg(format!("coaps://{}/?t=flow", service.coaps));
        Program::start(&mut command).finish();
        let reported = caller.once_reported(ID, number + 1);
        let expected = ReportedData::over_coap("flow", format!("2{number}.5"));
        assert!(reported.contains(&expected), "{library}: {reported:?}");
    }
}

#[test]
fn libcoap_with_a_wrong_key_posts_nothing() {
    let (service, caller) = start();
    let mut command = Command::new("coap-client-openssl");
    command.args(["-B", "3", "-m", "post", "-u", ID, "-k", "another key of 1"]);
    command.args(["-e", "1"]);
    command.arg(format!("coaps://{}/?t=flow", service.coaps));
    let mut client = Program::start(&mut command);
    client.ended();
    assert_eq!(caller.messages(ID), [] as [Value; 0]);
}

#[test]
fn aiocoap_on_tinydtls_posts_data_of_any_length() {
    let (service, caller) = start();
    let lengths = [2, 1_024, 5_000];
    let printed = aiocoap(&service, KEY, &lengths).finish();
    let accepted = |line: &&String| line.contains(r#""code": "2.04""#);
    assert_eq!(printed.iter().filter(accepted).count(), 3, "{printed:?}");
    let reported = caller.once_reported(ID, lengths.len());
    for length in lengths {
        let expected = ReportedData::over_coap("flow", "7".repeat(length));
        assert!(reported.contains(&expected), "{length}: {reported:?}");
    }
}

#[test]
fn aiocoap_on_tinydtls_with_a_wrong_key_posts_nothing() {
    let (service, caller) = start();
    let mut client = aiocoap(&service, "another key of 1", &[2]);
    // decrypt_error is 51.
    client.wait_for("an alert", |line| {
        line.contains("FatalDTLSError: 51").then_some(())
    });
    assert_eq!(caller.messages(ID), [] as [Value; 0]);
}

#[test]
fn leshan_registers_sends_and_answers_over_dtls() {
    // Its own Connection IDs: none, and of six bytes.
    for connection_id in ["0", "6"] {
        let (service, caller) = start();
        let nat = Nat::start(service.coaps);
        let mut device = leshan(&nat, connection_id);
        wait_for(&mut device, "registered");
        for _ in 0..2 {
            device.write_line("send");
            assert_eq!(wait_for(&mut device, "sent"), "204");
            let action = caller.perform(ID, &read("/3/0/0"));
            assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
            assert_eq!(action["resultData"]["payload"], "Lamp Works", "{action}");
            nat.rebind();
        }
        let association = caller.inspect(ID)["association"].take();
        assert_eq!(association["connectionId"], true, "{association}");
        assert_eq!(association["addressChanges"], 1, "{association}");
    }
}

#[test]
fn leshan_without_a_connection_id_resumes_its_session_after_nat_restart_and_crash() {
    // The kernel chooses the arbiter by the address of the device: each can resume every session.
    let (mut service, mut caller) = start_with(&[("SIGNALBOX_ARBITERS", "4")]);
    let nat = Nat::start(service.coaps);
    let mut device = leshan(&nat, "-1");
    wait_for(&mut device, "registered");
    let association = caller.inspect(ID)["association"].take();
    assert_eq!(association["connectionId"], false, "{association}");
    assert_eq!(association["resumed"], false, "{association}");
    for ended in [None, None, Some("stop"), Some("SIGKILL"), Some("SIGKILL")] {
        match ended {
            Some("stop") => assert!(service.stop().success()),
            Some(_) => service.kill(),
            None => {}
        }
        if ended.is_some() {
            service.start_again();
            caller.follow(&service);
        }
        nat.rebind();
        device.write_line("update");
        wait_for(&mut device, "updated");
        let action = caller.perform(ID, &read("/3/0/0"));
        assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
        let association = caller.inspect(ID)["association"].take();
        assert_eq!(association["connectionId"], false, "{association}");
        assert_eq!(association["resumed"], true, "{ended:?}: {association}");
    }
}

#[test]
fn leshan_keeps_its_registration_after_a_crash() {
    let (mut service, mut caller) = start();
    let nat = Nat::start(service.coaps);
    let mut device = leshan(&nat, "0");
    wait_for(&mut device, "registered");
    service.kill();
    service.start_again();
    caller.follow(&service);
    // The update is lost with the session. Once Californium has given up, after 62 seconds by its
    // defaults, the device resumes its session and sends it again.
    device.write_line("update");
    let is_update = |line: &str| (line == "updated").then_some(());
    device.wait_for_within(GIVEN_UP_WITHIN, "an update", is_update);
    let action = caller.perform(ID, &read("/3/0/0"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    let association = caller.inspect(ID)["association"].take();
    assert_eq!(association["resumed"], true, "{association}");
}

fn start() -> (Service, Caller) {
    start_with(&[])
}

fn start_with(settings: &[(&str, &str)]) -> (Service, Caller) {
    let service = Service::start_with(settings);
    let caller = Caller::of_new_customer(&service, "Lamp Works");
    caller.create_secured_device(ID, KEY);
    (service, caller)
}

/// A device on aiocoap that posts texts of these lengths.
fn aiocoap(service: &Service, key: &str, lengths: &[usize]) -> Program {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("target/interop/venv/bin/python");
    let what = python.display();
    assert!(python.exists(), "`cargo xtask prepare` makes {what}");
    let mut command = Command::new(python);
    command.arg(root.join("tests/interop/aiocoap_secured_device.py"));
    command.arg(format!("coaps://{}", service.coaps));
    command.args([ID, key]);
    Program::start(command.args(lengths.iter().map(usize::to_string)))
}

/// A device on Leshan behind an address translation, with a pre-shared key.
fn leshan(nat: &Nat, connection_id: &str) -> Program {
    leshan_with(nat, connection_id, &["psk", KEY])
}

/// The same with these keys.
fn leshan_with(nat: &Nat, connection_id: &str, keys: &[&str]) -> Program {
    let server = nat.address.to_string();
    let mut command = leshan_command("SecuredLeshanDevice.java");
    Program::start(command.args([&server, ID, connection_id]).args(keys))
}

/// Runs one of the devices on Leshan.
fn leshan_command(program: &str) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("target/interop/leshan/lib");
    let what = folder.display();
    assert!(folder.exists(), "`cargo xtask prepare` makes {what}");
    let mut command = Command::new("java");
    command
        .args(QUICK_START)
        .args(["-cp", &format!("{what}/*")]);
    command.arg(root.join("tests/interop/coaps").join(program));
    command
}

/// The details of the next event of this name.
fn wait_for(device: &mut Program, event: &str) -> String {
    device.wait_for(event, |line| {
        let (name, details) = line.split_once(' ').unwrap_or((line, ""));
        (name == event).then(|| details.to_owned())
    })
}
