//! What does a device refuse, and with which code?

use harness::device::configuration::Configuration;
use harness::device::event::{DeviceOutput, Operation};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::lwm2m::value::Value;

use super::world::{Fixture, answer, at, sent};

#[test]
fn an_operation_that_is_not_allowed_is_refused_and_not_performed() {
    use Operation::{CancelObservation, Create, Delete, Discover};
    use Operation::{Execute, Observe, Read, Write};
    let cases = [
        (Read, "/3/0/99", Code::NOT_FOUND),
        (Read, "/3/1/0", Code::NOT_FOUND),
        (Read, "/3/0/0/0", Code::NOT_FOUND),
        (Read, "/4", Code::NOT_FOUND),
        (Write, "/3/0/99", Code::NOT_FOUND),
        (Execute, "/3/0/99", Code::NOT_FOUND),
        (Read, "/rd", Code::NOT_FOUND),
        (Read, "/03/0/0", Code::NOT_FOUND),
        (Read, "/3/0/0/0/0", Code::NOT_FOUND),
        (Read, "/70000", Code::NOT_FOUND),
        (Read, "/3/0/4", Code::METHOD_NOT_ALLOWED),
        (Write, "/3/0/4", Code::METHOD_NOT_ALLOWED),
        (Write, "/3/0/0", Code::METHOD_NOT_ALLOWED),
        (Execute, "/3/0/0", Code::METHOD_NOT_ALLOWED),
        (Execute, "/3/0/13", Code::METHOD_NOT_ALLOWED),
        (Write, "/3", Code::METHOD_NOT_ALLOWED),
        (Observe, "/3/0/99", Code::NOT_FOUND),
        (Observe, "/3/0/4", Code::METHOD_NOT_ALLOWED),
        (CancelObservation, "/3/0/99", Code::NOT_FOUND),
        // A POST to an object instance is a partial update, whose payload has a format.
        (Execute, "/3/0", Code::UNSUPPORTED_CONTENT_FORMAT),
        // A PUT to one replaces its values.
        (Write, "/3/0", Code::UNSUPPORTED_CONTENT_FORMAT),
        // A POST to an object creates an instance, of which this object has one.
        (Execute, "/3", Code::BAD_REQUEST),
        (Discover, "/4", Code::NOT_FOUND),
        (Create, "/4", Code::UNSUPPORTED_CONTENT_FORMAT),
        (Delete, "/3/0", Code::METHOD_NOT_ALLOWED),
        (Delete, "/3/0/0", Code::METHOD_NOT_ALLOWED),
        (Delete, "/6/1", Code::NOT_FOUND),
    ];
    for (operation, path, code) in cases {
        let mut fixture = Fixture::registered(Configuration::new("lamp"));
        let request = fixture
            .request(MessageKind::Confirmable, operation, path)
            .with_payload("1");
        fixture.deliver(&request);
        assert_eq!(
            fixture.messages(),
            [answer(&request, code)],
            "{operation} {path}"
        );
        assert_eq!(fixture.device.performed_count(), 0);
        if let Ok(path) = path.parse() {
            assert_eq!(fixture.device.executed(path), 0);
        }
    }
}

#[test]
fn a_format_the_device_does_not_have_is_refused() {
    for format in [
        ContentFormat::CBOR,
        ContentFormat::LWM2M_JSON,
        ContentFormat::OCTET_STREAM,
    ] {
        let mut fixture = Fixture::registered(Configuration::new("lamp"));
        for path in ["/3/0/0", "/3/0", "/3"] {
            let read = fixture.read(path).with_accept(format);
            fixture.deliver(&read);
            let refused = answer(&read, Code::NOT_ACCEPTABLE);
            assert_eq!(fixture.messages(), [refused], "{path} as {format}");
        }
        for request in [
            fixture.write("/3/0/14", "+02:00"),
            fixture.execute("/1/0/8"),
        ] {
            let request = request.with_content_format(format);
            fixture.deliver(&request);
            let refused = answer(&request, Code::UNSUPPORTED_CONTENT_FORMAT);
            assert_eq!(fixture.messages(), [refused], "{format}");
        }
        assert_eq!(fixture.device.performed_count(), 0);
    }
}

#[test]
fn a_text_that_does_not_fit_the_type_is_refused() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let before = fixture.device.value(at("/3/0/13")).cloned();
    let write = fixture.write("/3/0/13", "noon");
    fixture.deliver(&write);
    assert_eq!(fixture.messages(), [answer(&write, Code::BAD_REQUEST)]);
    assert_eq!(fixture.device.value(at("/3/0/13")).cloned(), before);
}

#[test]
fn a_write_without_format_is_text() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let write = fixture
        .request(MessageKind::Confirmable, Operation::Write, "/3/0/13")
        .with_payload("77");
    fixture.deliver(&write);
    assert_eq!(fixture.messages(), [answer(&write, Code::CHANGED)]);
    assert_eq!(fixture.device.value(at("/3/0/13")), Some(&Value::Time(77)));
}

#[test]
fn attributes_are_kept_and_not_written_as_a_value() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let request = fixture.request(MessageKind::Confirmable, Operation::Write, "/3/0/14");
    let request = request.with_uri_query(["pmin=10"]);
    fixture.deliver(&request);
    assert_eq!(fixture.messages(), [answer(&request, Code::CHANGED)]);
    let discover = fixture.request(MessageKind::Confirmable, Operation::Discover, "/3/0/14");
    let discover = discover.with_accept(ContentFormat::LINK_FORMAT);
    fixture.deliver(&discover);
    assert_eq!(fixture.messages()[0].payload, b"</3/0/14>;pmin=10");
    assert_eq!(
        fixture.device.value(at("/3/0/14")),
        Some(&Value::String("+00:00".into()))
    );
}

#[test]
fn other_methods_are_refused() {
    for method in [Code::FETCH, Code::PATCH, Code::IPATCH, Code::new(0, 31)] {
        let mut fixture = Fixture::registered(Configuration::new("lamp"));
        let mut request = fixture.read("/3/0/0");
        request.code = method;
        fixture.deliver(&request);
        assert_eq!(
            fixture.take(),
            [sent(&answer(&request, Code::METHOD_NOT_ALLOWED))]
        );
    }
}

#[test]
fn an_unknown_critical_option_refuses_the_request() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let request = fixture.execute("/1/0/8").with_option(65_001, b"?");
    fixture.deliver(&request);
    assert_eq!(fixture.take(), [sent(&answer(&request, Code::BAD_OPTION))]);
    let request = fixture.request(MessageKind::NonConfirmable, Operation::Execute, "/1/0/8");
    let request = request.with_option(65_001, b"?");
    fixture.deliver(&request);
    assert_eq!(fixture.take(), [sent(&Message::reset(request.message_id))]);
    assert_eq!(fixture.device.performed_count(), 0);
}

#[test]
fn an_unknown_elective_option_is_ignored() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let read = fixture
        .read("/3/0/0")
        .with_observe(2)
        .with_option(65_000, b"?");
    fixture.deliver(&read);
    let response = &fixture.messages()[0];
    assert_eq!((response.code, response.observe()), (Code::CONTENT, None));
}

#[test]
fn a_ping_is_answered_with_a_reset() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    fixture.deliver(&Message::ping(MessageId(77)));
    assert_eq!(fixture.take(), [sent(&Message::reset(MessageId(77)))]);
}

#[test]
fn a_meaningless_message_is_rejected_only_if_it_is_confirmable() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let token = fixture.read("/3/0/0").token;
    let stray = |kind| Message::separate(kind, Code::CONTENT, MessageId(77), token);
    fixture.deliver(&stray(MessageKind::NonConfirmable));
    fixture.deliver(&stray(MessageKind::Acknowledgement));
    fixture.deliver(&Message::reset(MessageId(77)));
    fixture.deliver(&Message::acknowledgement(MessageId(77)));
    assert_eq!(fixture.take(), []);
    fixture.deliver(&stray(MessageKind::Confirmable));
    assert_eq!(fixture.take(), [sent(&Message::reset(MessageId(77)))]);
}

#[test]
fn noise_is_rejected_only_if_it_is_confirmable() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    fixture.deliver_bytes(b"");
    fixture.deliver_bytes(b"\x50\x01\x00\x07\xff");
    assert_eq!(fixture.take(), []);
    fixture.deliver_bytes(b"\x40\x01\x00\x07\xff");
    assert_eq!(
        fixture.take(),
        [DeviceOutput::Send(b"\x70\x00\x00\x07".to_vec())]
    );
}
