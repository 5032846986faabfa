//! Does a device use the formats that it is configured with, and no others? (LwM2M Core 1.2 section
//! 7.4)

use harness::device::configuration::{CompositeRead, Configuration};
use harness::device::event::{DeviceEvent, Operation};
use harness::device::resource::Resource;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageKind};
use protocol::lwm2m::model;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{self, Reading, Scope};
use protocol::lwm2m::value::{DataType, Value};
use protocol::lwm2m::version::{EnablerVersion, Version};

use super::world::{Fixture, answer, at, queries};

const ONE_VALUE: [ContentFormat; 3] = [
    ContentFormat::TEXT,
    ContentFormat::OCTET_STREAM,
    ContentFormat::CBOR,
];

const SEVERAL: [ContentFormat; 5] = [
    ContentFormat::LWM2M_TLV,
    ContentFormat::SENML_JSON,
    ContentFormat::SENML_CBOR,
    ContentFormat::LWM2M_JSON,
    ContentFormat::LWM2M_CBOR,
];

const COMPOSITE: [ContentFormat; 3] = [
    ContentFormat::SENML_JSON,
    ContentFormat::SENML_CBOR,
    ContentFormat::LWM2M_CBOR,
];

#[test]
fn each_requested_format_is_used_in_the_response() {
    let mut fixture = Fixture::registered(polyglot());
    for format in SEVERAL {
        for path in ["/3/0", "/3", "/3/0/9", "/3/0/6", "/3/0/6/1"] {
            let response = read(&mut fixture, path, format);
            assert_eq!(response.content_format(), Some(format), "{path}");
            let values = read_back(&response, path);
            assert_eq!(values, stored_values(&fixture, path), "{path} in {format}");
        }
    }
    for (format, path) in [
        (ContentFormat::TEXT, "/3/0/9"),
        (ContentFormat::CBOR, "/3/0/9"),
        (ContentFormat::CBOR, "/3/0/13"),
        (ContentFormat::OCTET_STREAM, "/19/0/0/0"),
        (ContentFormat::CBOR, "/19/0/0/0"),
    ] {
        let response = read(&mut fixture, path, format);
        assert_eq!(response.content_format(), Some(format), "{path}");
        let values = read_back(&response, path);
        assert_eq!(values, stored_values(&fixture, path), "{path} in {format}");
    }
}

#[test]
fn formats_of_one_value_cannot_hold_several() {
    let mut fixture = Fixture::registered(polyglot());
    for format in ONE_VALUE {
        for path in ["/3/0", "/3", "/3/0/6"] {
            let response = read(&mut fixture, path, format);
            assert_eq!(response.code, Code::NOT_ACCEPTABLE, "{path} in {format}");
        }
    }
}

#[test]
fn a_format_the_device_lacks_is_refused_even_if_announced() {
    let mut configuration = polyglot();
    configuration.formats = vec![ContentFormat::TEXT, ContentFormat::SENML_CBOR];
    let mut fixture = Fixture::registered(configuration);
    for format in [ContentFormat::LWM2M_TLV, ContentFormat::SENML_JSON] {
        for path in ["/3/0", "/3/0/9"] {
            let response = read(&mut fixture, path, format);
            assert_eq!(response.code, Code::NOT_ACCEPTABLE, "{path} in {format}");
        }
        let write = fixture.write("/3/0/14", "x").with_content_format(format);
        fixture.deliver(&write);
        let refused = answer(&write, Code::UNSUPPORTED_CONTENT_FORMAT);
        assert_eq!(fixture.messages(), [refused]);
    }
    let request = fixture.read("/3/0");
    fixture.deliver(&request);
    let response = fixture.messages().remove(0);
    let unasked = response.content_format();
    assert_eq!(unasked, Some(ContentFormat::SENML_CBOR));
}

#[test]
fn a_value_is_written_in_any_format_the_device_has() {
    let text = |path, text: &str| Reading::from([(at(path), Value::String(text.to_owned()))]);
    let formats = SEVERAL.into_iter().chain([ContentFormat::CBOR]);
    for format in formats.chain([ContentFormat::TEXT]) {
        let mut fixture = Fixture::registered(polyglot());
        let value = format!("+{format}");
        let values = text("/3/0/14", &value);
        let written = payload::encode(format, at("/3/0/14"), &values).unwrap();
        let write = write(&mut fixture, "/3/0/14", format, written);
        assert_eq!(
            fixture.messages(),
            [answer(&write, Code::CHANGED)],
            "{format}"
        );
        let now = fixture.device.value(at("/3/0/14"));
        assert_eq!(now, Some(&Value::String(value)));
    }
    for format in SEVERAL {
        let mut fixture = Fixture::registered(polyglot());
        let values = text("/11/0/8/3", "name");
        let written = payload::encode(format, at("/11/0/8"), &values).unwrap();
        let write = write(&mut fixture, "/11/0/8", format, written);
        assert_eq!(
            fixture.messages(),
            [answer(&write, Code::CHANGED)],
            "{format}"
        );
        let name = Value::String("name".to_owned());
        assert_eq!(fixture.device.value(at("/11/0/8/3")), Some(&name));
        assert_eq!(fixture.device.value(at("/11/0/8/0")), None);
    }
}

#[test]
fn a_partial_update_leaves_what_is_not_in_it() {
    for format in SEVERAL {
        let mut fixture = Fixture::registered(polyglot());
        let post = |fixture: &mut Fixture, path: &str, text: &str| {
            let values = Reading::from([(at(path), Value::String(text.to_owned()))]);
            let payload = payload::encode(format, at("/11/0"), &values).unwrap();
            let post = fixture
                .request(MessageKind::Confirmable, Operation::Execute, "/11/0")
                .with_content_format(format)
                .with_payload(payload);
            fixture.deliver(&post);
            assert_eq!(
                fixture.messages(),
                [answer(&post, Code::CHANGED)],
                "{format}"
            );
        };
        let before = fixture.device.value(at("/11/0/8/0")).cloned();
        assert!(before.is_some());
        post(&mut fixture, "/11/0/8/3", "name");
        post(&mut fixture, "/11/0/8/3", "other");
        let other = Value::String("other".to_owned());
        assert_eq!(fixture.device.value(at("/11/0/8/3")), Some(&other));
        assert_eq!(fixture.device.value(at("/11/0/8/0")), before.as_ref());
    }
}

#[test]
fn announced_formats_are_in_the_registration() {
    let links = |configuration: Configuration| {
        let register = Fixture::start(configuration).message();
        assert!(queries(&register).contains(&"ep=lamp"));
        String::from_utf8(register.payload).unwrap()
    };
    let configuration = Configuration::new("lamp").speaking(&[ContentFormat::SENML_CBOR]);
    assert!(links(configuration).starts_with("</>;rt=\"oma.lwm2m\";ct=\"112\",</1/0>"));
    let silent = Configuration {
        announced: vec![],
        ..Configuration::new("lamp")
    };
    assert!(links(silent).starts_with("</1/0>"));
    let old = Configuration {
        version: EnablerVersion::V1_0,
        ..polyglot()
    };
    assert!(links(old).starts_with("</1/0>"));
}

#[test]
fn a_read_composite_is_answered_with_the_paths_that_exist() {
    let mut fixture = Fixture::registered(polyglot());
    let paths = [
        at("/3/0/9"),
        at("/3/0/6"),
        at("/6"),
        at("/9/0"),
        at("/3/0/4"),
    ];
    for list in COMPOSITE {
        for accept in COMPOSITE {
            let response = compose(&mut fixture, &paths, list, accept);
            assert_eq!(response.code, Code::CONTENT);
            assert_eq!(response.content_format(), Some(accept));
            let type_of = |path: Path| Some(fixture.device.value(path)?.data_type());
            let format = response.content_format();
            let values = payload::decode_samples(format, Scope::All, &response.payload, &type_of);
            let values = values.unwrap().into_iter();
            let values: Reading = values.map(|sample| (sample.path, sample.value)).collect();
            let mut expected = stored_values(&fixture, "/3/0/9");
            expected.extend(stored_values(&fixture, "/3/0/6"));
            expected.extend(stored_values(&fixture, "/6"));
            assert_eq!(values, expected, "{list} {accept}");
        }
    }
}

#[test]
fn an_answer_for_several_paths_is_reported_and_logged() {
    let mut fixture = Fixture::registered(polyglot());
    let paths = [at("/3/0/9"), at("/6")];
    let format = ContentFormat::SENML_CBOR;
    let request = composite(&mut fixture, &paths, format, format);
    fixture.deliver(&request);
    let code = Code::CONTENT;
    assert_eq!(fixture.events(), [DeviceEvent::AnsweredSeveral { code }]);
    let done: Vec<(Path, Operation)> = fixture
        .device
        .performed()
        .map(|done| (done.path, done.operation))
        .collect();
    assert_eq!(done, paths.map(|path| (path, Operation::Read)));
}

#[test]
fn several_paths_are_refused_without_any_value_or_without_the_format() {
    let mut fixture = Fixture::registered(polyglot());
    let cbor = ContentFormat::SENML_CBOR;
    let nowhere = compose(&mut fixture, &[at("/9")], cbor, cbor);
    assert_eq!(nowhere.code, Code::NOT_FOUND);
    let as_text = compose(&mut fixture, &[at("/3")], cbor, ContentFormat::TEXT);
    assert_eq!(as_text.code, Code::NOT_ACCEPTABLE);
    let mut noise = composite(&mut fixture, &[], cbor, cbor);
    noise.payload = b"?".to_vec();
    fixture.deliver(&noise);
    assert_eq!(fixture.messages(), [answer(&noise, Code::BAD_REQUEST)]);
    let few = Configuration::new("lamp").speaking(&[ContentFormat::TEXT]);
    let mut fixture = Fixture::registered(few);
    let unknown = compose(&mut fixture, &[at("/3")], cbor, cbor);
    assert_eq!(unknown.code, Code::UNSUPPORTED_CONTENT_FORMAT);
    assert_eq!(fixture.device.performed_count(), 0);
}

#[test]
fn a_device_may_leave_a_request_for_several_paths_unanswered() {
    let mut configuration = polyglot();
    configuration.composite = CompositeRead::AcknowledgedOnly;
    let mut fixture = Fixture::registered(configuration);
    let cbor = ContentFormat::SENML_CBOR;
    let request = composite(&mut fixture, &[at("/3")], cbor, cbor);
    fixture.deliver(&request);
    let acknowledgement = Message::acknowledgement(request.message_id);
    assert_eq!(fixture.messages(), [acknowledgement]);
    fixture.pass(100_000);
    assert_eq!(fixture.messages(), []);
}

fn read(fixture: &mut Fixture, path: &str, accept: ContentFormat) -> Message {
    let read = fixture.read(path).with_accept(accept);
    fixture.deliver(&read);
    fixture.messages().remove(0)
}

fn write(fixture: &mut Fixture, path: &str, format: ContentFormat, payload: Vec<u8>) -> Message {
    let request = fixture.request(MessageKind::Confirmable, Operation::Write, path);
    let request = request.with_content_format(format).with_payload(payload);
    fixture.deliver(&request);
    request
}

fn compose(
    fixture: &mut Fixture,
    paths: &[Path],
    list: ContentFormat,
    accept: ContentFormat,
) -> Message {
    let request = composite(fixture, paths, list, accept);
    fixture.deliver(&request);
    fixture.messages().remove(0)
}

fn composite(
    fixture: &mut Fixture,
    paths: &[Path],
    list: ContentFormat,
    accept: ContentFormat,
) -> Message {
    let named = fixture.read("/");
    Message::request(
        MessageKind::Confirmable,
        Code::FETCH,
        named.message_id,
        named.token,
    )
    .with_content_format(list)
    .with_accept(accept)
    .with_payload(payload::encode_paths(list, paths).unwrap())
}

fn read_back(response: &Message, path: &str) -> Reading {
    let format = response.content_format();
    payload::decode(format, at(path), &response.payload, type_of).unwrap()
}

/// The values at and below a path of the device.
fn stored_values(fixture: &Fixture, path: &str) -> Reading {
    let within = polyglot().resources.into_iter();
    let within = within.filter(|resource| at(path).contains(resource.path));
    let value = |path: Path| Some((path, fixture.device.value(path)?.clone()));
    within.filter_map(|resource| value(resource.path)).collect()
}

fn type_of(path: Path) -> Option<DataType> {
    let version = Version::new(1, 1);
    model::resource(path.object_id(), version, path.resource_id()?)?.data_type()
}

/// A device with every format, and with values of every level.
fn polyglot() -> Configuration {
    let all: Vec<ContentFormat> = ONE_VALUE.into_iter().chain(SEVERAL).collect();
    let mut configuration = Configuration::new("lamp").speaking(&all);
    let text = |text: &str| Value::String(text.to_owned());
    let more = [
        ("/3/0/6/0", Value::Integer(1)),
        ("/3/0/6/1", Value::Integer(5)),
        ("/11/0/8/0", text("one")),
        ("/19/0/0/0", Value::Opaque(vec![0, 255])),
    ];
    let more = more.map(|(path, value)| Resource::holding(at(path), value));
    configuration.resources.extend(more);
    configuration
}
