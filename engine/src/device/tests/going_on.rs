//! What happens to an exchange when the device leaves or is slow.

use protocol::coap::block::More::Yes;
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageKind};
use protocol::coap::token::Token;

use super::vocabulary::{DeviceFixture, HOME, Lines, S, coap, port, sent, small_blocks};
use crate::action::{Method, Request, Status};

#[test]
fn an_answer_over_coap_is_accepted_after_the_device_deregistered_from_that_peer() {
    let mut fixture = requested_at_registered_peer();
    let effects = fixture.at(S).deregister();
    check_still_reached(&effects);
    let answer = fixture.piggybacked(Code::CONTENT);
    let effects = fixture.receives(HOME, &answer);
    let closed = format!("rebind {HOME} -> nowhere");
    assert!(effects.contains(&closed), "{effects:?}");
}

#[test]
fn an_answer_over_coap_is_accepted_after_the_registration_at_that_peer_expired() {
    let mut fixture = requested_at_registered_peer();
    let acknowledgement = Message::acknowledgement(fixture.last_request().message_id);
    fixture.at(86_399 * S).receives(HOME, &acknowledgement);
    check_still_reached(&fixture.at(86_400 * S).timeout());
}

#[test]
fn an_unsolicited_notification_from_the_peer_of_an_exchange_is_not_rejected() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(coap(Method::Get, "/a", ""));
    let id = fixture.device_id();
    let token = Token::new(&[5]).unwrap();
    let notification = Message::separate(MessageKind::Confirmable, Code::CONTENT, id, token);
    assert_eq!(fixture.receives(SERVER, &notification), Lines::new());
    assert_eq!(fixture.receives(HOME, &notification), sent("RST to 102"));
}

#[test]
fn a_transfer_ends_when_its_request_expires() {
    let mut fixture = DeviceFixture::within(small_blocks());
    let id = fixture.ask(coap(Method::Get, "/a", "").expiring_in_s(600));
    for number in 0..20 {
        if fixture.saved(id).status == Status::Failed {
            assert!(number >= 6, "not before it expired");
            return;
        }
        fixture.at(i64::from(number + 1) * 100 * S);
        let next = fixture.answer_in_block(number, Yes, "0123456789abcdef");
        fixture.receives(SERVER, &next);
    }
    panic!("it never ends");
}

#[test]
fn a_transfer_whose_request_expired_while_a_block_was_lost_is_not_continued() {
    let mut fixture = DeviceFixture::within(small_blocks());
    let id = fixture.ask(coap(Method::Get, "/a", "").expiring_in_s(60));
    let first = fixture.answer_in_block(0, Yes, "0123456789abcdef");
    fixture.receives(SERVER, &first);
    let mut effects = Lines::new();
    while fixture.saved(id).status == Status::InProgress {
        effects = fixture.next_deadline();
    }
    assert_eq!(fixture.now_s(), 62);
    assert!(
        effects.iter().all(|line| !line.contains("GET")),
        "{effects:?}"
    );
}

/// The address at which the device serves CoAP.
const SERVER: &str = "10.0.0.1:5685";

/// A request over CoAP to the peer that the device registered from.
fn requested_at_registered_peer() -> DeviceFixture {
    let mut fixture = DeviceFixture::registered();
    let new = coap(Method::Get, "/a", "");
    let Request::Coap(mut request) = new.request.clone() else {
        unreachable!("it is a request over CoAP")
    };
    request.port = port(5683);
    fixture.at(86_390 * S).ask(crate::action::NewAction {
        request: Request::Coap(request),
        ..new
    });
    fixture
}

fn check_still_reached(effects: &[String]) {
    let left = format!("rebind {HOME} -> nowhere");
    let reached = format!("rebind nowhere -> {HOME}");
    let place = |wanted: &String| effects.iter().position(|line| line == wanted);
    assert!(place(&left) < place(&reached), "{effects:?}");
}
