//! Do block-wise transfers coexist with other messages, other bodies and retransmission?

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;

use super::super::{ID, IP, PlainService};
use super::{blocks, size};
use crate::vocabulary::blockwise::block_of;
use crate::vocabulary::lwm2m::read;
use crate::vocabulary::plain::coap;
use crate::vocabulary::wire::{DeviceSocket, request};

const TEXT: Option<ContentFormat> = Some(ContentFormat::TEXT);

#[test]
fn an_answer_that_is_one_block_is_whole() {
    let setup = PlainService::new();
    for text in ["", "short", "0123456789abcdef"] {
        let id = setup.create_coap(&coap("GET", "/short", setup.coap.port()));
        let request = setup.coap.receive_request();
        let post = block_of(&request, text.as_bytes(), TEXT, size(16));
        setup.coap.send(&post.encode());
        let action = setup.caller.final_action(&id);
        let payload = action["resultData"]["payload"].as_str();
        assert_eq!(payload.unwrap_or_default(), text, "{action}");
    }
}

#[test]
fn bodies_go_both_ways_at_once() {
    let setup = PlainService::new();
    let wire = DeviceSocket::from(IP, &setup.service);
    wire.register(ID, 1);
    let text = "abcdefgh".repeat(20);
    let id = setup.caller.create_action(ID, &read("/3/0/0"));
    let senml = format!(r#"[{{"n":"/3/0/15","vs":"{}"}}]"#, "UTC".repeat(45));
    let mut parts = blocks(senml.as_bytes(), size(16));
    for number in 0..10 {
        let incoming = wire.receive_request();
        let given = block_of(&incoming, text.as_bytes(), TEXT, size(16));
        assert_eq!(given.block2().unwrap().number(), number);
        let (block, part) = parts.next().unwrap();
        let post = request(Code::POST, 10 + u16::try_from(number).unwrap())
            .with_uri_path(["dp"])
            .with_content_format(ContentFormat::SENML_JSON)
            .with_block1(block)
            .with_payload(part);
        let expected = if block.has_more() {
            Code::CONTINUE
        } else {
            Code::CHANGED
        };
        assert_eq!(wire.ask(&post).code, expected);
        wire.send(&given.encode());
    }
    assert_eq!(parts.next(), None, "both are over");
    let action = setup.caller.final_action(&id);
    assert_eq!(action["resultData"]["payload"], text, "{action}");
    let known = setup.caller.known_value(ID, "/3/0/15").unwrap();
    assert_eq!(known["value"], "UTC".repeat(45), "{known}");
}
