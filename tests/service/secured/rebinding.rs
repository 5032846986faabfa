//! Do transfers and observations over DTLS go on when a NAT gives the device another port in the
//! middle?

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use serde_json::json;

use super::{HERE, ID, KEY, with_text};
use crate::test_service::{PATIENT, start};
use crate::vocabulary::blockwise::{block_of, blocks, body, size};
use crate::vocabulary::caller::Caller;
use crate::vocabulary::lwm2m::{observe_end, observe_start, outcome, read, write};
use crate::vocabulary::plain::{ReportedData, answer, data};
use crate::vocabulary::secured::SecuredDevice;
use crate::vocabulary::service::Service;
use crate::vocabulary::wire::register;

const TEMPERATURE: &str = "/3303/0/5700";

#[test]
fn a_body_that_a_device_sends_in_blocks_is_whole() {
    let (service, caller, mut device) = registered();
    let whole = body(700);
    for (id, (block, part)) in (2..).zip(blocks(&whole, size(256))) {
        device.move_to_another_port(&service);
        let answered = device.ask(&data("log", part, id).with_block1(block));
        let expected = match block.has_more() {
            true => Code::CONTINUE,
            false => Code::CHANGED,
        };
        assert_eq!(answered.code, expected, "{block:?}");
    }
    let reported = caller.once_reported(ID, 1);
    assert_eq!(reported, [ReportedData::over_coap("log", whole)]);
    assert_eq!(address_changes(&caller), 3);
}

#[test]
fn a_body_that_a_device_is_sent_in_blocks_is_whole() {
    let (service, caller, mut device) = registered();
    let whole = "0123456789abcdef".repeat(200);
    let action = caller.create_action(ID, &write("/3/0/15", &whole));
    let (mut taken, mut count) = (Vec::new(), 0);
    loop {
        let asked = device.receive_request();
        let block = asked.block1().expect("a block");
        taken.extend_from_slice(&asked.payload);
        count += 1;
        device.move_to_another_port(&service);
        let code = match block.has_more() {
            true => Code::CONTINUE,
            false => Code::CHANGED,
        };
        device.send(&answer(&asked, code).with_block1(block));
        if !block.has_more() {
            break;
        }
    }
    let action = caller.final_action(&action);
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
    assert!(taken.ends_with(whole.as_bytes()), "of {count} blocks");
    assert!(count > 1);
    assert_eq!(address_changes(&caller), count);
}

#[test]
fn a_body_that_is_read_of_a_device_in_blocks_is_whole() {
    let (service, caller, mut device) = registered();
    let whole = "0123456789abcdef".repeat(40);
    let action = caller.create_action(ID, &read("/3/0/0"));
    for _ in 0..3 {
        let asked = device.receive_request();
        device.move_to_another_port(&service);
        let text = Some(ContentFormat::TEXT);
        device.send(&block_of(&asked, whole.as_bytes(), text, size(256)));
    }
    let action = caller.final_action(&action);
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    assert_eq!(action["resultData"]["payload"], whole);
    assert_eq!(address_changes(&caller), 3);
}

#[test]
fn an_observation_is_notified_from_and_cancelled_at_the_new_address() {
    let (service, caller, mut device) = registered();
    let begin = caller.create_action(ID, &observe_start(TEMPERATURE));
    let observe = device.receive_request();
    assert_eq!(observe.observe(), Some(0), "{observe:?}");
    device.move_to_another_port(&service);
    let first = answer(&observe, Code::CONTENT).with_observe(1);
    device.send(&with_text(first, "20.5"));
    let begun = caller.final_action(&begin);
    assert_eq!(outcome(&begun), ("SUCCEEDED", "205"), "{begun}");
    for (id, text) in [(2, "21.5"), (3, "22.5")] {
        device.move_to_another_port(&service);
        let (kind, message_id) = (MessageKind::Confirmable, MessageId(id));
        let value = Message::separate(kind, Code::CONTENT, message_id, observe.token);
        let value = with_text(value.with_observe(u32::from(id)), text);
        assert_eq!(device.ask(&value).code, Code::EMPTY);
    }
    let notified = caller.once_notified(ID, TEMPERATURE, 2);
    let expected = [21.5, 22.5].map(|degrees| json!({ TEMPERATURE: degrees }));
    assert_eq!(notified, expected);

    let end = caller.create_action(ID, &observe_end(TEMPERATURE));
    let cancel = device.receive_request();
    assert_eq!(cancel.observe(), Some(1), "{cancel:?}");
    assert_eq!(cancel.token, observe.token);
    device.send(&with_text(answer(&cancel, Code::CONTENT), "23.5"));
    let ended = caller.final_action(&end);
    assert_eq!(outcome(&ended), ("SUCCEEDED", "205"), "{ended}");
    assert_eq!(caller.observation(ID, TEMPERATURE), None);
    assert_eq!(address_changes(&caller), 3);
}

/// A device that is registered over DTLS. With several arbiters its records arrive at others than
/// that of its session, too.
fn registered() -> (Service, Caller, SecuredDevice) {
    let (service, caller) = start(&[PATIENT, ("SIGNALBOX_ARBITERS", "2")]);
    caller.create_secured_device(ID, KEY);
    let mut device = SecuredDevice::connected(HERE, &service, ID, KEY);
    device.register(&register(ID, 1));
    (service, caller, device)
}

fn address_changes(caller: &Caller) -> u64 {
    let changes = &caller.inspect(ID)["association"]["addressChanges"];
    changes.as_u64().expect("a number")
}
