//! Is a device one device, whichever socket receives its datagrams? Four arbiters share the
//! address, and the kernel chooses among their sockets by the port of the device, so every new port
//! may reach another arbiter.

use harness::device::configuration::Configuration;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use serde_json::Value;
use tempfile::TempDir;

use crate::test_service::{PATIENT, TestService, start};
use crate::vocabulary::caller::Caller;
use crate::vocabulary::device::{DEVICE_IP, Device};
use crate::vocabulary::lwm2m::{outcome, read, when_active};
use crate::vocabulary::service::{Service, signalbox};
use crate::vocabulary::wire::{DeviceSocket, update};

const FOUR: (&str, &str) = ("SIGNALBOX_ARBITERS", "4");

/// How many ports a device uses. If the kernel chose sockets at random, all ports would reach one
/// arbiter in one run of a million.
const PORTS: usize = 11;

#[test]
fn a_device_that_changes_its_port_is_one_device_at_every_socket() {
    let mut setup = TestService::with(&[FOUR], Configuration::new("roamer"));
    for _ in 0..PORTS {
        setup.device.move_to_another_port();
        setup.device.update();
        let action = setup.caller.perform("roamer", &read("/3/0/15"));
        assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
        assert_eq!(attempts_made(&action), 1, "{action}");
    }
    assert_eq!(setup.device.performed().len(), PORTS);
    assert_eq!(first_contacts(&setup.caller), 1);
}

#[test]
fn a_device_that_registers_again_from_every_port_is_one_device() {
    let mut setup = TestService::with(&[FOUR], Configuration::new("rebooter"));
    for number in 0..PORTS {
        let waiting = setup
            .caller
            .create_action("rebooter", &when_active(read("/3/0/15")));
        setup.device.move_to_another_port();
        setup.device.reboot();
        let action = setup.caller.final_action(&waiting);
        assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
        assert_eq!(setup.device.performed().len(), number + 1);
    }
    assert_eq!(first_contacts(&setup.caller), 1);
}

#[test]
fn an_exchange_continues_at_the_new_port_of_its_device() {
    let quick = ("SIGNALBOX_COAP_ACK_TIMEOUT_MS", "100");
    let often = ("SIGNALBOX_COAP_MAX_RETRANSMIT", "9");
    let (service, caller) = start(&[FOUR, quick, often]);
    caller.create_device("roamer", DEVICE_IP);
    let mut wire = DeviceSocket::to(&service);
    let location = wire.register("roamer", 0);
    let mut met = Vec::new();
    for number in 1..=u16::try_from(PORTS).unwrap() {
        let id = caller.create_action("roamer", &read("/3/0/15"));
        let request = wire.receive_new_request(&mut met);
        // The request to the old port was lost.
        let moved = DeviceSocket::to(&service);
        let answer = moved.ask_among_others(&update(&location, number));
        assert_eq!(answer.code, Code::CHANGED);
        let repeated = moved.receive_request();
        assert_eq!(repeated.message_id, request.message_id, "one exchange");
        assert_eq!(repeated.token, request.token, "one exchange");
        let zone = Message::response_to(&repeated, Code::CONTENT, MessageId(0));
        let zone = zone.with_content_format(ContentFormat::TEXT);
        moved.send(&zone.with_payload("Etc/UTC").encode());
        let action = caller.final_action(&id);
        assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
        assert_eq!(attempts_made(&action), 1, "a repetition is none: {action}");
        wire = moved;
    }
}

#[test]
fn a_separate_response_is_received_at_the_new_port_of_its_device() {
    let (service, caller) = start(&[FOUR, PATIENT]);
    caller.create_device("roamer", DEVICE_IP);
    let mut wire = DeviceSocket::to(&service);
    let location = wire.register("roamer", 0);
    for number in 1..=u16::try_from(PORTS).unwrap() {
        let id = caller.create_action("roamer", &read("/3/0/15"));
        let request = wire.receive_request();
        wire.send(&Message::acknowledgement(request.message_id).encode());
        let moved = DeviceSocket::to(&service);
        let updated = moved.ask(&update(&location, number));
        assert_eq!(updated.code, Code::CHANGED);
        let late = MessageId(1_000 + number);
        let zone = Message::separate(MessageKind::Confirmable, Code::CONTENT, late, request.token);
        let zone = zone.with_content_format(ContentFormat::TEXT);
        moved.send(&zone.with_payload("Etc/UTC").encode());
        assert_eq!(moved.receive(), Message::acknowledgement(late));
        let action = caller.final_action(&id);
        assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
        wire = moved;
    }
}

#[test]
fn devices_of_all_arbiters_are_reachable_after_a_restart_before_their_next_uplink() {
    let (mut service, mut caller) = start(&[FOUR]);
    let names: Vec<String> = (0..PORTS).map(|number| format!("meter-{number}")).collect();
    let devices: Vec<Device> = names
        .iter()
        .map(|name| awake(&service, &caller, name))
        .collect();
    service.kill();
    service.start_again();
    caller.follow(&service);
    for (name, device) in names.iter().zip(&devices) {
        let action = caller.perform(name, &read("/3/0/15"));
        assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
        assert_eq!(device.performed().len(), 1);
    }
    assert_eq!(first_contacts(&caller), PORTS);
}

#[test]
fn a_second_service_on_the_address_is_refused() {
    let (service, _) = start(&[FOUR]);
    let (coap, udp) = (service.coap.to_string(), service.udp.to_string());
    let any = "127.0.0.1:0";
    for (what, address, coap, udp) in [("CoAP", &coap, &*coap, any), ("UDP", &udp, any, &*udp)] {
        let folder = TempDir::new().unwrap();
        let second = signalbox()
            .args(["serve", "--http", any, "--arbiters", "4"])
            .args(["--coap", coap, "--coaps", any, "--udp", udp])
            .arg("--data-dir")
            .arg(folder.path())
            .output()
            .unwrap();
        assert_eq!(second.status.code(), Some(1));
        let error = String::from_utf8(second.stderr).unwrap();
        let expected = format!("cannot listen for {what} on {address}");
        assert!(error.contains(&expected), "{error}");
    }
}

fn attempts_made(action: &Value) -> u64 {
    let number = |name: &str| action[name].as_u64().unwrap();
    number("sendAttempts") - number("sendAttemptsLeft")
}

fn awake(service: &Service, caller: &Caller, name: &str) -> Device {
    caller.create_device(name, DEVICE_IP);
    Device::registered(service, Configuration::new(name))
}

fn first_contacts(caller: &Caller) -> usize {
    let messages = caller.log_messages();
    let first = |message: &&String| *message == "Lifecycle[DeviceFirstTimeRegistered]";
    messages.iter().filter(first).count()
}
