//! What does a device without LwM2M send, and how does it answer? (RFC 7252 section 5)

use harness::device::configuration::Configuration;
use harness::device::event::{DeviceEvent, DeviceOutput, Uplink};
use harness::device::plain::PlainPath;
use harness::device::resource::AnswerMode;
use harness::device::sending::Unsent;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;

use super::world::{Fixture, answer, queries};

const STATE: &str = "/pump/state";

#[test]
fn a_plain_device_sends_nothing_by_itself() {
    let mut fixture = pump();
    assert_eq!(fixture.take(), []);
    assert_eq!(fixture.device.next_timeout(), None);
    fixture.order(harness::device::SimulatedDevice::update);
    assert_eq!(fixture.take(), []);
    let read = request(1, Code::GET, "/3/0/14");
    fixture.deliver(&read);
    assert_eq!(fixture.message().code, Code::NOT_FOUND);
}

#[test]
fn a_plain_request_takes_effect() {
    let mut fixture = pump();
    let cases = [
        (Code::GET, "", Code::CONTENT, "off", Some("off")),
        (Code::PUT, "on", Code::CHANGED, "", Some("on")),
        (Code::POST, "ce", Code::CHANGED, "once", Some("once")),
        (Code::PATCH, "O", Code::CHANGED, "", Some("Once")),
        (Code::DELETE, "", Code::DELETED, "", None),
        (Code::GET, "", Code::NOT_FOUND, "", None),
        (Code::PUT, "new", Code::CREATED, "", Some("new")),
        (Code::FETCH, "", Code::METHOD_NOT_ALLOWED, "", Some("new")),
    ];
    for (id, (method, given, code, answered, held)) in (1..).zip(cases) {
        let message = request(id, method, STATE).with_payload(given);
        fixture.deliver(&message.with_uri_query(["unit=1"]));
        let answer = fixture.messages().remove(0);
        assert_eq!(answer.code, code, "{method} {given}");
        if code == Code::CONTENT || !answered.is_empty() {
            assert_eq!(answer.payload, answered.as_bytes(), "{method} {given}");
            assert_eq!(answer.content_format(), Some(ContentFormat::TEXT));
        }
        let holds = fixture.device.content(STATE);
        assert_eq!(holds, held.map(str::as_bytes), "{method} {given}");
    }
    let methods: Vec<Code> = fixture
        .device
        .plain_performed()
        .map(|it| it.method)
        .collect();
    assert_eq!(
        methods,
        [
            Code::GET,
            Code::PUT,
            Code::POST,
            Code::PATCH,
            Code::DELETE,
            Code::PUT
        ]
    );
}

#[test]
fn a_duplicate_plain_request_is_performed_once() {
    let mut fixture = pump();
    let message = request(1, Code::POST, STATE).with_payload("!");
    for _ in 0..3 {
        fixture.deliver(&message);
        assert_eq!(fixture.messages().remove(0).payload, b"off!");
    }
    assert_eq!(fixture.device.plain_performed_count(), 1);
    assert_eq!(fixture.device.content(STATE), Some(b"off!".as_slice()));
}

#[test]
fn a_path_has_its_own_answer_mode() {
    let mut fixture = pump();
    let after_ms = 3_000;
    let manner = AnswerMode::SeparateConfirmable { after_ms };
    fixture.device.answer_plain_with(STATE, manner);
    fixture.deliver(&request(1, Code::GET, STATE));
    assert_eq!(fixture.message(), Message::acknowledgement(MessageId(1)));
    fixture.pass(after_ms.into());
    let separate = fixture.messages().remove(0);
    assert_eq!(
        (separate.kind, separate.code),
        (MessageKind::Confirmable, Code::CONTENT)
    );
    fixture.device.answer_plain_with(STATE, AnswerMode::Silent);
    fixture.deliver(&request(2, Code::GET, STATE));
    assert_eq!(fixture.messages(), []);
}

#[test]
fn data_is_posted_under_its_topic() {
    let mut fixture = pump();
    let message = posted(&mut fixture, b"21.5");
    assert_eq!(
        (message.kind, message.code),
        (MessageKind::Confirmable, Code::POST)
    );
    assert_eq!(message.uri_path().count(), 0);
    assert_eq!(queries(&message), ["t=flow"]);
    assert_eq!(message.payload, b"21.5");
    fixture.order(|device, now_ms, out| {
        let busy = device.tell(now_ms, MessageKind::Confirmable, ("flow", b"1"), out);
        assert_eq!(busy, Err(Unsent::Busy));
    });
    fixture.deliver(&answer(&message, Code::CHANGED));
    assert_eq!(fixture.take(), [DeviceOutput::Report(DeviceEvent::Sent)]);
    let message = posted(&mut fixture, b"22");
    fixture.deliver(&answer(&message, Code::UNAUTHORIZED));
    let (uplink, code) = (Uplink::Data, Code::UNAUTHORIZED);
    assert_eq!(
        fixture.take(),
        [DeviceOutput::Report(DeviceEvent::Refused { uplink, code })]
    );
}

#[test]
fn non_confirmable_data_is_sent_once() {
    let mut fixture = pump();
    for _ in 0..2 {
        fixture.order(|device, now_ms, out| {
            let result = device.tell(now_ms, MessageKind::NonConfirmable, ("flow", b"21.5"), out);
            assert_eq!(result, Ok(()));
        });
        assert_eq!(fixture.message().kind, MessageKind::NonConfirmable);
    }
    assert_eq!(fixture.device.next_timeout(), None);
}

#[test]
fn bare_datagrams_are_unchanged() {
    let mut fixture = pump();
    fixture.order(|device, now_ms, out| assert_eq!(device.throw(now_ms, b"\0x", out), Ok(())));
    assert_eq!(fixture.take(), [DeviceOutput::SendUdp(b"\0x".to_vec())]);
    fixture.order(|device, now_ms, out| device.handle_bare(now_ms, b"go", out));
    let bytes = b"go".to_vec();
    assert_eq!(
        fixture.take(),
        [DeviceOutput::Report(DeviceEvent::HeardBare { bytes })]
    );
    fixture.device.power_off();
    fixture.order(|device, now_ms, out| {
        device.handle_bare(now_ms, b"go", out);
        assert_eq!(device.throw(now_ms, b"x", out), Err(Unsent::Off));
    });
    assert_eq!(fixture.take(), []);
}

fn pump() -> Fixture {
    let state = PlainPath::holding(STATE, "off").in_format(ContentFormat::TEXT);
    let mut fixture = Fixture::start(Configuration::plain("pump", vec![state]));
    assert_eq!(fixture.take(), []);
    fixture
}

fn request(id: u16, method: Code, path: &str) -> Message {
    let token = Token::new(&id.to_be_bytes()).unwrap();
    Message::request(MessageKind::Confirmable, method, MessageId(id), token)
        .with_uri_path(path.split('/').skip(1))
}

/// Posts data, and returns the message.
fn posted(fixture: &mut Fixture, data: &[u8]) -> Message {
    fixture.order(|device, now_ms, out| {
        let result = device.tell(now_ms, MessageKind::Confirmable, ("flow", data), out);
        assert_eq!(result, Ok(()));
    });
    fixture.message()
}
