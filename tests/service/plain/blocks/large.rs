//! Is a mebibyte transferred in both directions while every tenth datagram is lost?

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use protocol::coap::block::BlockSize;
use protocol::coap::code::Code;
use serde_json::Value;

use super::super::{ID, IP, PRIVATE};
use super::{body, size};
use crate::test_service::start;
use crate::vocabulary::blockwise::{BlockwiseDevice, Loss};
use crate::vocabulary::caller::{Caller, text};
use crate::vocabulary::lwm2m::{outcome, read, write};
use crate::vocabulary::plain::{carrying_bytes, coap};
use crate::vocabulary::poll::until;
use crate::vocabulary::wire::{DeviceSocket, register_with};

/// A lost message is retransmitted at once, because the link is slow enough. There are enough
/// retransmissions that the first exchange does not give up on a machine where the device is late.
const QUICK: [(&str, &str); 3] = [
    PRIVATE,
    ("SIGNALBOX_COAP_ACK_TIMEOUT_MS", "10"),
    ("SIGNALBOX_COAP_MAX_RETRANSMIT", "9"),
];

const MEBIBYTE: usize = 1_024 * 1_024;

/// How many of a hundred datagrams are lost in each direction.
const LOST: u64 = 10;

/// How long the device receives nothing before the status of the request is checked.
const PAUSE: Duration = Duration::from_millis(200);

/// How many pauses in a row may pass without a final status.
const PAUSES_MAX: u32 = 300;

#[test]
fn a_mebibyte_is_put_and_fetched_over_coap() {
    let (service, caller) = start(&QUICK);
    caller.create_device(ID, IP);
    let wire = DeviceSocket::from(IP, &service);
    let (port, whole) = (wire.port(), body(MEBIBYTE));
    let device = BlockwiseDevice::behind(wire, BlockSize::MAX, Loss::percent(LOST, 1));
    let put = carrying_bytes(coap("PUT", "/firmware", port), &whole);
    let action = transferred(&caller, &device, &caller.create_over("COAP", ID, &put));
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"));
    assert!(device.stored() == whole, "what arrived is what was sent");
    let got = caller.create_over("COAP", ID, &coap("GET", "/firmware", port));
    let action = transferred(&caller, &device, &got);
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"));
    assert!(payload(&action) == whole, "what came back is what was sent");
    assert_eq!(action["sendAttempts"], 1);
    let timeline = action["timeline"].as_array().unwrap();
    assert!(timeline.len() <= 128, "{} steps", timeline.len());
    let steps = [&timeline[0], timeline.last().unwrap()].map(|it| text(&it["event"]));
    assert_eq!(steps, ["ATTEMPT_BEGUN", "ANSWERED"]);
}

#[test]
fn a_mebibyte_is_written_and_read_over_lwm2m() {
    let (service, caller) = start(&QUICK);
    caller.create_device(ID, IP);
    let wire = DeviceSocket::from(IP, &service);
    let endpoint = format!("ep={ID}");
    let queries = [&endpoint, "lt=3600", "lwm2m=1.1", "b=U"];
    let registered = wire.ask(&register_with(&queries, "</1/0>,</3/0>,</5/0>", 1));
    assert_eq!(registered.code, Code::CREATED);
    let whole = body(MEBIBYTE);
    let device = BlockwiseDevice::behind(wire, BlockSize::MAX, Loss::percent(LOST, 2));
    let body = write("/5/0/0", &BASE64_STANDARD.encode(&whole));
    let action = transferred(&caller, &device, &caller.create_action(ID, &body));
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"));
    assert!(device.stored() == whole, "what arrived is what was sent");
    let action = transferred(&caller, &device, &caller.create_action(ID, &read("/5/0/0")));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"));
    assert!(payload(&action) == whole, "what came back is what was sent");
}

#[test]
fn a_body_is_transferred_in_small_blocks_over_a_bad_link() {
    let (service, caller) = start(&QUICK);
    caller.create_device(ID, IP);
    let wire = DeviceSocket::from(IP, &service);
    let (port, whole) = (wire.port(), body(3_000));
    let device = BlockwiseDevice::behind(wire, size(64), Loss::percent(30, 3));
    let put = carrying_bytes(coap("POST", "/log", port), &whole);
    let action = transferred(&caller, &device, &caller.create_over("COAP", ID, &put));
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
    assert!(device.stored() == whole, "what arrived is what was sent");
    let got = caller.create_over("COAP", ID, &coap("GET", "/log", port));
    let action = transferred(&caller, &device, &got);
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    assert!(payload(&action) == whole, "what came back is what was sent");
}

/// A request once it is final; there is no deadline while datagrams arrive.
///
/// The record contains the whole payload, so it is read only when the device receives nothing.
fn transferred(caller: &Caller, device: &BlockwiseDevice, id: &str) -> Value {
    let mut pauses = 0;
    while pauses < PAUSES_MAX {
        let (taken, begun) = (device.taken(), Instant::now());
        until("a datagram or a pause", || {
            (device.taken() != taken || begun.elapsed() > PAUSE).then_some(())
        });
        if device.taken() != taken {
            pauses = 0;
            continue;
        }
        pauses += 1;
        let action = caller.action(id);
        if action["status"] != "IN_PROGRESS" {
            return action;
        }
    }
    panic!("it does not get on: {} datagrams", device.taken())
}

/// The bytes of a result.
fn payload(action: &Value) -> Vec<u8> {
    let payload = text(&action["resultData"]["payload"]);
    BASE64_STANDARD.decode(payload).unwrap()
}
