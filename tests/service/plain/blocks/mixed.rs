//! Do blocks go along with all else: other kinds of messages, other bodies, repetition?

use protocol::coap::block::{Block, More};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Kind, Message, MessageId};
use serde_json::json;

use super::super::{ID, IP, Scene};
use super::{blocks, body, post, size, upload};
use crate::vocabulary::blockwise::block_of;
use crate::vocabulary::caller::API;
use crate::vocabulary::lwm2m::{outcome, read, when_active};
use crate::vocabulary::plain::{Told, carrying_bytes, coap, datagram, path_of};
use crate::vocabulary::poll::until;
use crate::vocabulary::wire::{Wire, location_of, register_with, request, update};

const TEXT: Option<ContentFormat> = Some(ContentFormat::TEXT);

#[test]
fn blocks_that_need_no_acknowledgement_are_put_together_too() {
    let scene = Scene::new();
    let whole = body(100);
    for (id, (block, part)) in (1..).zip(blocks(&whole, size(32))) {
        let mut said = post(block, id).with_payload(part);
        said.kind = Kind::NonConfirmable;
        scene.coap.say(&said.encode());
        let answer = scene.coap.hear();
        let expected = if block.has_more() {
            Code::CONTINUE
        } else {
            Code::CHANGED
        };
        assert_eq!((answer.kind, answer.code), (Kind::NonConfirmable, expected));
        assert_eq!(answer.token, said.token);
        assert_eq!(answer.block1(), Some(block));
    }
    assert_eq!(scene.caller.told(ID), [Told::over_coap("t", whole)]);
}

#[test]
fn a_device_may_take_its_time_over_each_block() {
    let scene = Scene::new();
    let whole = body(2_500);
    let id = scene.ask(&carrying_bytes(
        coap("PUT", "/slow", scene.coap.port()),
        &whole,
    ));
    for number in 0..3 {
        let asked = scene.coap.hear_request();
        let block = asked.block1().unwrap();
        assert_eq!(block.number(), number);
        let code = if block.has_more() {
            Code::CONTINUE
        } else {
            Code::CHANGED
        };
        let own = MessageId(100 + u16::try_from(number).unwrap());
        let said = Message::separate(Kind::Confirmable, code, own, asked.token);
        say_apart(&scene, &asked, &said.with_block1(block));
    }
    assert_eq!(
        outcome(&scene.caller.final_action(&id)),
        ("SUCCEEDED", "204")
    );

    let text = "0123456789".repeat(5);
    let id = scene.ask(&coap("GET", "/slow", scene.coap.port()));
    for number in 0..4 {
        let asked = scene.coap.hear_request();
        let given = block_of(&asked, text.as_bytes(), TEXT, size(16));
        assert_eq!(given.block2().unwrap().number(), number);
        let own = MessageId(200 + u16::try_from(number).unwrap());
        let said = Message::separate(Kind::Confirmable, given.code, own, asked.token)
            .with_content_format(ContentFormat::TEXT)
            .with_block2(given.block2().unwrap())
            .with_payload(given.payload);
        say_apart(&scene, &asked, &said);
    }
    let action = scene.caller.final_action(&id);
    assert_eq!(action["resultData"]["payload"], text, "{action}");
}

#[test]
fn an_answer_that_is_one_block_is_whole() {
    let scene = Scene::new();
    for text in ["", "short", "0123456789abcdef"] {
        let id = scene.ask(&coap("GET", "/short", scene.coap.port()));
        let asked = scene.coap.hear_request();
        let said = block_of(&asked, text.as_bytes(), TEXT, size(16));
        scene.coap.say(&said.encode());
        let action = scene.caller.final_action(&id);
        let payload = action["resultData"]["payload"].as_str();
        assert_eq!(payload.unwrap_or_default(), text, "{action}");
    }
}

#[test]
fn bodies_go_both_ways_at_once() {
    let scene = Scene::new();
    let wire = Wire::from(IP, &scene.service);
    wire.register(ID, 1);
    let text = "abcdefgh".repeat(20);
    let id = scene.caller.create_action(ID, &read("/3/0/0"));
    let senml = format!(r#"[{{"n":"/3/0/15","vs":"{}"}}]"#, "UTC".repeat(45));
    let mut parts = blocks(senml.as_bytes(), size(16));
    for number in 0..10 {
        let asked = wire.hear_request();
        let given = block_of(&asked, text.as_bytes(), TEXT, size(16));
        assert_eq!(given.block2().unwrap().number(), number);
        let (block, part) = parts.next().unwrap();
        let said = request(Code::POST, 10 + u16::try_from(number).unwrap())
            .with_uri_path(["dp"])
            .with_content_format(ContentFormat::SENML_JSON)
            .with_block1(block)
            .with_payload(part);
        let expected = if block.has_more() {
            Code::CONTINUE
        } else {
            Code::CHANGED
        };
        assert_eq!(wire.ask(&said).code, expected);
        wire.say(&given.encode());
    }
    assert_eq!(parts.next(), None, "both are over");
    let action = scene.caller.final_action(&id);
    assert_eq!(action["resultData"]["payload"], text, "{action}");
    let known = scene.caller.known_value(ID, "/3/0/15").unwrap();
    assert_eq!(known["value"], "UTC".repeat(45), "{known}");
}

#[test]
fn a_body_lets_out_what_waits_once_it_is_whole() {
    let scene = Scene::new();
    let id = scene.tell(&when_active(datagram("waits", scene.udp.port())));
    let whole = body(100);
    let mut number = 0;
    let answered = upload(&scene.coap, &whole, size(32), |block| {
        number += 1;
        post(block, number)
    });
    assert_eq!(answered.code, Code::CHANGED);
    assert_eq!(scene.udp.hear(), b"waits");
    assert_eq!(scene.caller.final_action(&id)["status"], "SUCCEEDED");
}

#[test]
fn the_end_of_a_registration_in_blocks_may_be_repeated() {
    let scene = Scene::with(&[("SIGNALBOX_DATA_BYTES_MAX", "2048")]);
    let wire = Wire::from(IP, &scene.service);
    let endpoint = format!("ep={ID}");
    let links = "</1/0>,</3/0>,</6/0>";
    let register = |block, id| {
        let queries = [&endpoint, "lt=300", "lwm2m=1.1"];
        register_with(&queries, "", id).with_block1(block)
    };
    let mut last = None;
    for (id, (block, part)) in (1..).zip(blocks(links.as_bytes(), size(16))) {
        let said = register(block, id).with_payload(part);
        let answer = wire.ask(&said);
        assert_eq!(wire.ask(&said), answer, "one message, one answer");
        last = Some(answer);
    }
    let created = last.unwrap();
    assert_eq!(created.code, Code::CREATED);
    let location = location_of(&created);
    assert_eq!(wire.ask(&update(&location, 10)).code, Code::CHANGED);

    let long = "</3303/0>,".repeat(300);
    let mut id = 20;
    let refused = upload(&wire, long.as_bytes(), size(256), |block| {
        id += 1;
        register(block, id)
    });
    assert_eq!(refused.code, Code::REQUEST_ENTITY_TOO_LARGE);
    assert_eq!(wire.ask(&update(&location, 11)).code, Code::CHANGED);
}

#[test]
fn passive_reporting_reads_what_takes_several_blocks() {
    let scene = Scene::new();
    let setting = format!("{API}/settings/signalbox/LWM2M_PASSIVE_REPORTING");
    let enabled = json!({ "state": "ENABLED" });
    let set = scene.caller.try_send("PATCH", &setting, &enabled);
    set.unwrap().expect(200);
    let wire = Wire::from(IP, &scene.service);
    let endpoint = format!("ep={ID}");
    let queries = [&endpoint, "lt=300", "lwm2m=1.0"];
    let created = wire.ask(&register_with(&queries, "</3303/0>", 1));
    assert_eq!(created.code, Code::CREATED);
    let json = r#"{"bn":"/3303/0/","e":[{"n":"5700","v":21.5},{"n":"5701","sv":"Cel"}]}"#;
    let format = Some(ContentFormat::LWM2M_JSON);
    for number in 0..json.len().div_ceil(16) {
        let asked = wire.hear_request();
        assert!(path_of(&asked).starts_with("/3303"), "{asked:?}");
        let given = block_of(&asked, json.as_bytes(), format, size(16));
        let block = given.block2().unwrap();
        assert_eq!(usize::try_from(block.number()).unwrap(), number);
        wire.say(&given.encode());
    }
    let known = until("a value", || scene.caller.known_value(ID, "/3303/0/5700"));
    assert_eq!(known["value"], 21.5, "{known}");
    let told = scene.caller.messages(ID).remove(0);
    assert_eq!(told["cause"]["type"], "PASSIVE_REPORT", "{told}");
}

#[test]
fn a_block_alone_is_all_that_is_kept_of_a_body_that_never_goes_on() {
    let scene = Scene::new();
    // Beginnings from many ports: of one device one body is under way, that of the last.
    let wires: Vec<Wire> = (0..20).map(|_| Wire::from(IP, &scene.service)).collect();
    let begun = Block::new(0, More::Yes, size(64));
    for wire in &wires {
        let said = post(begun, 1).with_payload([1; 64]);
        assert_eq!(wire.ask(&said).code, Code::CONTINUE);
    }
    let next = |wire: &Wire| {
        let said = post(Block::new(1, More::No, size(64)), 2).with_payload([2; 64]);
        wire.ask(&said).code
    };
    assert_eq!(next(&wires[0]), Code::REQUEST_ENTITY_INCOMPLETE);
    let whole = [[1; 64], [2; 64]].concat();
    let mut number = 10;
    let answered = upload(&wires[0], &whole, size(64), |block| {
        number += 1;
        post(block, number)
    });
    assert_eq!(answered.code, Code::CHANGED);
    assert_eq!(scene.caller.told(ID), [Told::over_coap("t", whole)]);
}

/// Has the device acknowledge a request, and answer it in a message of its own.
fn say_apart(scene: &Scene, asked: &Message, said: &Message) {
    let taken = Message::acknowledgement(asked.message_id);
    scene.coap.say(&taken.encode());
    scene.coap.say(&said.encode());
    let heard = scene.coap.hear();
    assert_eq!(heard, Message::acknowledgement(said.message_id));
}
