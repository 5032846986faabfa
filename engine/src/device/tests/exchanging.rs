//! Requests of the device other than registrations, and duplicate messages.

use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;

use super::vocabulary::{DeviceFixture, HOME, Lines, S, answers, read, refused, sent};

#[test]
fn a_ping_is_answered_with_a_reset() {
    let mut fixture = DeviceFixture::registered();
    let ping = Message::ping(MessageId(500));
    assert_eq!(fixture.receives(HOME, &ping), sent("RST to 500"));
    assert_eq!(fixture.receives(HOME, &ping), sent("RST to 500"));
}

#[test]
fn a_request_for_an_unknown_resource_is_answered_with_an_error() {
    let (resource, method) = ("no such resource", "no such method");
    let cases: [(Code, &[&str], &str, &str); 9] = [
        (Code::GET, &["rd"], "4.05", method),
        (Code::PUT, &["rd", "5a3f"], "4.05", method),
        (Code::POST, &["rd", "5a3f"], "4.04", "register again"),
        (Code::POST, &["rd", "a", "b"], "4.04", resource),
        (Code::GET, &["elsewhere"], "4.04", resource),
        (Code::POST, &["elsewhere"], "4.04", resource),
        (Code::GET, &["bs"], "4.05", method),
        (Code::POST, &["bspack"], "4.05", method),
        (Code::GET, &[], "4.05", method),
    ];
    for (code, path, answer, text) in cases {
        let mut fixture = DeviceFixture::registered();
        let request = fixture.request(code, path);
        let effects = fixture.receives(HOME, &request);
        assert_eq!(answers(&effects), refused(answer, text, 102));
        assert!(effects[0].starts_with("log "), "{effects:?}");
        let again = "refused when it was first received";
        assert_eq!(
            fixture.receives(HOME, &request),
            refused(answer, again, 102)
        );
    }
}

#[test]
fn a_non_confirmable_request_is_answered_once_in_a_new_message() {
    let mut fixture = DeviceFixture::registered();
    let token = Token::new(&[1]).unwrap();
    let request = Message::request(MessageKind::NonConfirmable, Code::GET, MessageId(9), token)
        .with_uri_path(["elsewhere"]);
    let effects = fixture.receives(HOME, &request);
    let [answer] = answers(&effects).try_into().expect("it is answered once");
    let expected = "send 10.0.0.1:5683: NON 4.04 \"no such resource\" to ";
    assert!(answer.starts_with(expected), "{answer}");
    assert_eq!(fixture.at(S).receives(HOME, &request), Lines::new());
}

#[test]
fn a_different_message_with_a_used_message_id_is_no_duplicate() {
    let mut fixture = DeviceFixture::registered();
    let first = fixture.updating(&[], "");
    fixture.receives(HOME, &first);
    let mut second = fixture.updating(&["lt=60"], "");
    second.message_id = first.message_id;
    let effects = fixture.at(S).receives(HOME, &second);
    assert!(
        effects[0].starts_with("save record: registered until 61000"),
        "{effects:?}"
    );
}

#[test]
fn a_message_repeated_after_its_lifetime_is_no_duplicate() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").when_active());
    let update = fixture.updating(&[], "");
    fixture.receives(HOME, &update);
    let repeated = sent("ACK 2.04 to 102");
    assert_eq!(fixture.at(246 * S).receives(HOME, &update), repeated);
    fixture.answer(Code::CONTENT, "87");
    fixture.ask(read("/3/0/9").when_active());
    let effects = fixture.at(248 * S).receives(HOME, &update);
    assert!(
        effects.iter().any(|line| line.contains("CON GET")),
        "{effects:?}"
    );
}
