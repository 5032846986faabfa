//! How does a device encode and decode several values at once? (LwM2M Core 1.1 section 7.4.3)

use harness::device::configuration::Configuration;
use harness::device::event::Operation;
use harness::device::resource::Resource;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageKind};
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{Reading, tlv};
use protocol::lwm2m::value::{DataType, Value};

use super::world::{Fixture, answer, at};

const TLV: ContentFormat = ContentFormat::LWM2M_TLV;

#[test]
fn a_read_of_an_instance_leaves_out_unreadable_resources() {
    for accept in [None, Some(TLV)] {
        let mut fixture = Fixture::registered(Configuration::new("lamp"));
        let response = read(&mut fixture, "/1/0", accept);
        assert_eq!(response.content_format(), Some(TLV));
        // Resource 0 holds 1, resource 1 holds 300 in two bytes; 4 and 8 can only be executed.
        assert_eq!(response.payload, [0xC1, 0, 1, 0xC2, 1, 1, 44]);
    }
}

#[test]
fn a_read_of_an_object_has_its_instances() {
    let mut fixture = Fixture::registered(sensors());
    let response = read(&mut fixture, "/3303", Some(TLV));
    let of_type = |_: Path| Some(DataType::Float);
    let decoded = tlv::decode(at("/3303"), &response.payload, &of_type).unwrap();
    let expected = [("/3303/2/5700", 2.5), ("/3303/7/5700", 7.5)];
    assert_eq!(
        decoded,
        reading(expected.map(|(at, it)| (at, Value::Float(it))))
    );
}

#[test]
fn an_instance_of_executable_resources_is_empty() {
    let mut configuration = Configuration::new("lamp");
    configuration.resources = vec![Resource::executable(at("/3/0/4"))];
    let mut fixture = Fixture::registered(configuration);
    let response = read(&mut fixture, "/3/0", None);
    let header = (response.code, response.content_format());
    assert_eq!(header, (Code::CONTENT, Some(TLV)));
    assert_eq!(response.payload, b"");
}

#[test]
fn a_single_value_is_encoded_as_tlv_on_request() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let response = read(&mut fixture, "/3/0/9", Some(TLV));
    assert_eq!(response.content_format(), Some(TLV));
    assert_eq!(response.payload, [0xC1, 9, 87]);
}

#[test]
fn a_multiple_resource_is_read_whole_and_by_instance() {
    let mut fixture = Fixture::registered(multiple());
    let response = read(&mut fixture, "/3/0/6", None);
    assert_eq!(response.payload, [0x86, 6, 0x41, 0, 1, 0x41, 1, 5]);
    assert_eq!(read(&mut fixture, "/3/0/6/1", None).payload, b"5");
    let as_text = read(&mut fixture, "/3/0/6", Some(ContentFormat::TEXT));
    assert_eq!(as_text.code, Code::NOT_ACCEPTABLE);
}

#[test]
fn a_multiple_resource_that_cannot_be_read_is_refused() {
    let mut configuration = Configuration::new("lamp");
    configuration.resources = vec![Resource::executable(at("/3/0/4/0"))];
    let mut fixture = Fixture::registered(configuration);
    let response = read(&mut fixture, "/3/0/4", None);
    assert_eq!(response.code, Code::METHOD_NOT_ALLOWED);
}

#[test]
fn a_written_list_replaces_all_instances() {
    let mut fixture = Fixture::registered(multiple());
    let list = [("/11/0/8/1", "new"), ("/11/0/8/4", "more")];
    let list = reading(list.map(|(at, it)| (at, Value::String(it.to_owned()))));
    let write = write(&mut fixture, "/11/0/8", tlv::encode(at("/11/0/8"), &list));
    assert_eq!(fixture.messages(), [answer(&write, Code::CHANGED)]);
    for (path, value) in &list {
        assert_eq!(fixture.device.value(*path), Some(value));
        assert_eq!(fixture.device.executed(*path), 1);
    }
    assert_eq!(fixture.device.value(at("/11/0/8/0")), None);
    assert_eq!(fixture.device.executed(at("/11/0/8")), 1);
    let performed = fixture.device.performed().next_back().unwrap();
    assert_eq!(performed.path, at("/11/0/8"));
}

#[test]
fn an_instance_is_written_as_text_or_as_a_list_of_one() {
    let mut fixture = Fixture::registered(multiple());
    let as_text = fixture.write("/11/0/8/0", "as text");
    fixture.deliver(&as_text);
    assert_eq!(fixture.messages(), [answer(&as_text, Code::CHANGED)]);
    let as_list = reading([("/11/0/8/1", Value::String("as list".to_owned()))]);
    let as_list = tlv::encode(at("/11/0/8/1"), &as_list);
    let as_list = write(&mut fixture, "/11/0/8/1", as_list);
    assert_eq!(fixture.messages(), [answer(&as_list, Code::CHANGED)]);
    for (path, value) in [("/11/0/8/0", "as text"), ("/11/0/8/1", "as list")] {
        assert_eq!(
            fixture.device.value(at(path)),
            Some(&Value::String(value.into()))
        );
    }
}

#[test]
fn a_list_that_does_not_fit_is_refused_and_nothing_changes() {
    let cases: [(&str, &[u8], Code); 6] = [
        // A resource with a value, where instances are required.
        ("/11/0/8", &[0xC1, 8, b'x'], Code::BAD_REQUEST),
        // No instance at all.
        ("/11/0/8", &[0x80, 8], Code::BAD_REQUEST),
        ("/11/0/8", b"\x83", Code::BAD_REQUEST),
        // Instances, where a resource with a value is required.
        ("/3/0/14", &[0x83, 14, 0x41, 0, b'x'], Code::BAD_REQUEST),
        ("/3/0/6", &[0x83, 6, 0x41, 0, 7], Code::METHOD_NOT_ALLOWED),
        ("/3/0/99", &[0xC1, 99, 7], Code::NOT_FOUND),
    ];
    for (path, list, code) in cases {
        let mut fixture = Fixture::registered(multiple());
        let before = read(&mut fixture, "/11/0", None).payload;
        let write = write(&mut fixture, path, list.to_vec());
        assert_eq!(
            fixture.messages(),
            [answer(&write, code)],
            "{path} {list:?}"
        );
        assert_eq!(read(&mut fixture, "/11/0", None).payload, before);
        assert_eq!(fixture.device.executed(at(path)), 0);
    }
}

#[test]
fn a_multiple_resource_cannot_be_written_as_text() {
    let mut fixture = Fixture::registered(multiple());
    let write = fixture.write("/11/0/8", "text");
    fixture.deliver(&write);
    let refused = answer(&write, Code::UNSUPPORTED_CONTENT_FORMAT);
    assert_eq!(fixture.messages(), [refused]);
}

fn read(fixture: &mut Fixture, path: &str, accept: Option<ContentFormat>) -> Message {
    let read = fixture.read(path);
    fixture.deliver(&accept.into_iter().fold(read, Message::with_accept));
    fixture.messages().remove(0)
}

fn write(fixture: &mut Fixture, path: &str, list: Vec<u8>) -> Message {
    let request = fixture.request(MessageKind::Confirmable, Operation::Write, path);
    let request = request.with_content_format(TLV).with_payload(list);
    fixture.deliver(&request);
    request
}

fn reading<const N: usize>(values: [(&str, Value); N]) -> Reading {
    values.map(|(path, value)| (at(path), value)).into()
}

/// A device whose power sources can be read, and whose profile names (11/0/8) can be written.
fn multiple() -> Configuration {
    let mut configuration = Configuration::new("lamp");
    for (path, source) in [("/3/0/6/0", 1), ("/3/0/6/1", 5)] {
        let source = Resource::holding(at(path), Value::Integer(source));
        configuration.resources.push(source);
    }
    for (path, name) in [("/11/0/8/0", "one"), ("/11/0/8/1", "two")] {
        let name = Resource::holding(at(path), Value::String(name.to_owned()));
        configuration.resources.push(name);
    }
    configuration
}

fn sensors() -> Configuration {
    let mut configuration = Configuration::new("lamp");
    let sensor = |(path, degrees)| Resource::holding(at(path), Value::Float(degrees));
    configuration.resources = [("/3303/7/5700", 7.5), ("/3303/2/5700", 2.5)]
        .map(sensor)
        .into();
    configuration
}
