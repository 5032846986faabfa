//! Is each operation the request that LwM2M specifies, with the right path and format?

use super::{
    ExchangeLabel, PlannedWrite, cancel_observation, discover, execute, observe, plan_write, read,
    read_composite, write, write_attributes, write_method, write_target,
};
use crate::coap::code::Code;
use crate::coap::content::ContentFormat;
use crate::coap::message::{Message, MessageId, MessageKind};
use crate::coap::token::Token;
use crate::lwm2m::attributes::Attributes;
use crate::lwm2m::model::{self, Resource};
use crate::lwm2m::path::Path;
use crate::lwm2m::payload::Unencodable;
use crate::lwm2m::payload::formats::{WriteMethod, formats_to_write};
use crate::lwm2m::value::Value;
use crate::lwm2m::version::{EnablerVersion, Version};

const RELEASES: [EnablerVersion; 3] = [
    EnablerVersion::V1_0,
    EnablerVersion::V1_1,
    EnablerVersion::V1_2,
];

#[test]
fn a_read_gets_the_path_in_the_wanted_format() {
    let message = read(
        label(),
        "",
        Path::resource(3, 0, 9),
        Some(ContentFormat::TEXT),
    );
    assert_eq!(
        (message.kind, message.code),
        (MessageKind::Confirmable, Code::GET)
    );
    assert_eq!(
        (message.message_id, message.token),
        (label().message_id, label().token)
    );
    assert_eq!(path_of(&message), ["3", "0", "9"]);
    assert_eq!(message.accept(), Some(ContentFormat::TEXT));
    assert_eq!(
        (message.content_format(), message.payload.as_slice()),
        (None, &b""[..])
    );

    let any_format = read(label(), "", Path::object(3), None);
    assert_eq!(path_of(&any_format), ["3"]);
    assert_eq!(any_format.accept(), None);
}

#[test]
fn attributes_are_written_and_discovered_at_every_level() {
    let attributes = Attributes::from_query("pmin=10&pmax&hqmax=2").unwrap();
    let levels = [
        Path::object(3),
        Path::instance(3, 0),
        Path::resource(3, 0, 7),
        Path::resource_instance(3, 0, 7, 1),
    ];
    for path in levels {
        let written = write_attributes(label(), "", path, &attributes);
        assert_eq!(written.code, Code::PUT);
        let segments = path.segments().map(|it| it.to_string());
        assert_eq!(path_of(&written), segments.collect::<Vec<_>>());
        let query: Vec<&str> = written.uri_query().collect();
        assert_eq!(query, ["pmin=10", "pmax", "hqmax=2"]);
        assert_eq!((written.content_format(), written.payload.len()), (None, 0));
        let listed = discover(label(), "", path);
        assert_eq!(
            (listed.code, path_of(&listed)),
            (Code::GET, path_of(&written))
        );
        assert_eq!(listed.accept(), Some(ContentFormat::LINK_FORMAT));
    }
}

#[test]
fn an_observation_is_a_read_with_observe() {
    let path = Path::resource(3303, 0, 5700);
    let accept = Some(ContentFormat::TEXT);
    let start = observe(label(), "/lwm2m", path, accept);
    assert_eq!(start.observe(), Some(0));
    assert_eq!(start, read(label(), "/lwm2m", path, accept).with_observe(0));
}

#[test]
fn the_end_of_an_observation_differs_from_its_start_in_observe_and_message_id() {
    let path = Path::instance(3303, 0);
    let later = ExchangeLabel {
        message_id: MessageId(8),
        ..label()
    };
    let end = cancel_observation(later, "", path, Some(ContentFormat::LWM2M_TLV));
    assert_eq!((end.kind, end.code), (MessageKind::Confirmable, Code::GET));
    assert_eq!((end.observe(), end.token), (Some(1), label().token));

    let start = observe(later, "", path, Some(ContentFormat::LWM2M_TLV));
    assert_ne!(start, end);
    assert_eq!(start.with_observe(1), end);
}

#[test]
fn a_write_puts_the_value_and_a_partial_update_posts_it() {
    let planned = |method, target| PlannedWrite {
        method,
        target,
        format: ContentFormat::TEXT,
        payload: b"300".to_vec(),
    };
    let update = planned(WriteMethod::PartialUpdate, Path::instance(1, 0));
    let message = write(label(), "lwm2m", update);
    assert_eq!(message.code, Code::POST);
    assert_eq!(path_of(&message), ["lwm2m", "1", "0"]);

    let replace = planned(WriteMethod::Replace, Path::resource(1, 0, 1));
    let message = write(label(), "", replace);
    assert_eq!(
        (message.kind, message.code),
        (MessageKind::Confirmable, Code::PUT)
    );
    assert_eq!(path_of(&message), ["1", "0", "1"]);
    assert_eq!(message.content_format(), Some(ContentFormat::TEXT));
    assert_eq!(message.payload, b"300");
}

#[test]
fn an_execute_posts_its_arguments_as_text() {
    let plain = execute(label(), "", Path::resource(3, 0, 4), "");
    assert_eq!(
        (plain.kind, plain.code),
        (MessageKind::Confirmable, Code::POST)
    );
    assert_eq!((plain.content_format(), plain.payload.len()), (None, 0));
    let with_arguments = execute(label(), "", Path::resource(3, 0, 4), "0='x',1");
    assert_eq!(with_arguments.content_format(), Some(ContentFormat::TEXT));
    assert_eq!(with_arguments.payload, b"0='x',1");
}

#[test]
fn the_alternate_root_comes_first() {
    let message = read(label(), "/a/lwm2m", Path::instance(3, 0), None);
    assert_eq!(path_of(&message), ["a", "lwm2m", "3", "0"]);
}

#[test]
fn a_write_to_a_multiple_resource_goes_to_its_first_instance() {
    let target = |path: Path| {
        let resource = path.resource_id().unwrap_or_default();
        let resource = model::resource(path.object_id(), Version::new(1, 0), resource);
        write_target(path, resource)
    };
    assert_eq!(
        target(Path::resource(11, 0, 8)),
        Path::resource_instance(11, 0, 8, 0)
    );
    let exact = Path::resource_instance(11, 0, 8, 3);
    assert_eq!(target(exact), exact);
    let single = Path::resource(3, 0, 13);
    assert_eq!(target(single), single);
    let unknown = Path::resource(65000, 0, 1);
    assert_eq!(target(unknown), unknown);
    assert_eq!(target(Path::instance(3, 0)), Path::instance(3, 0));
}

#[test]
fn one_instance_is_a_partial_update_where_the_instances_of_a_resource_have_no_path() {
    let path = Path::resource(11, 0, 8);
    let value = Value::String("a".into());
    for (path, instance) in [(path, 0), (Path::resource_instance(11, 0, 8, 3), 3)] {
        let list = PlannedWrite {
            method: WriteMethod::PartialUpdate,
            target: Path::instance(11, 0),
            format: ContentFormat::LWM2M_TLV,
            payload: vec![0x83, 8, 0x41, instance, b'a'],
        };
        assert_eq!(planned(EnablerVersion::V1_0, path, &value), list);
    }
    let one = PlannedWrite {
        method: WriteMethod::Replace,
        target: Path::resource_instance(11, 0, 8, 0),
        format: ContentFormat::TEXT,
        payload: b"a".to_vec(),
    };
    for release in [EnablerVersion::V1_1, EnablerVersion::V1_2] {
        assert_eq!(planned(release, path, &value), one);
    }
}

#[test]
fn any_other_value_is_written_as_text_or_bytes_whatever_the_release() {
    let bytes = Value::Opaque(vec![0, 1]);
    let text = Value::Integer(300);
    let cases: [(Path, &Value, ContentFormat, &[u8]); 3] = [
        (Path::resource(1, 0, 1), &text, ContentFormat::TEXT, b"300"),
        (
            Path::resource(65_000, 0, 1),
            &text,
            ContentFormat::TEXT,
            b"300",
        ),
        (
            Path::resource(5, 0, 0),
            &bytes,
            ContentFormat::OCTET_STREAM,
            &[0, 1],
        ),
    ];
    for (path, value, format, payload) in cases {
        for release in RELEASES {
            let expected = PlannedWrite {
                method: WriteMethod::Replace,
                target: path,
                format,
                payload: payload.to_vec(),
            };
            assert_eq!(planned(release, path, value), expected);
        }
    }
}

#[test]
fn a_value_is_written_in_the_format_chosen() {
    let one = Path::resource(3, 0, 14);
    let names = Path::resource(11, 0, 8);
    let text = Value::String("a".into());
    let cases: [(EnablerVersion, Path, ContentFormat, Path, &[u8]); 5] = [
        (
            EnablerVersion::V1_1,
            one,
            ContentFormat::LWM2M_TLV,
            one,
            &[0xc1, 14, b'a'],
        ),
        (
            EnablerVersion::V1_1,
            names,
            ContentFormat::LWM2M_TLV,
            Path::resource_instance(11, 0, 8, 0),
            &[0x41, 0, b'a'],
        ),
        (
            EnablerVersion::V1_0,
            names,
            ContentFormat::LWM2M_JSON,
            Path::instance(11, 0),
            br#"{"bn":"/11/0/","e":[{"n":"8/0","sv":"a"}]}"#,
        ),
        (
            EnablerVersion::V1_2,
            one,
            ContentFormat::LWM2M_CBOR,
            one,
            &[0xa1, 3, 0xa1, 0, 0xa1, 14, 0x61, b'a'],
        ),
        (
            EnablerVersion::V1_2,
            one,
            ContentFormat::CBOR,
            one,
            &[0x61, b'a'],
        ),
    ];
    for (release, path, format, target, payload) in cases {
        let expected = PlannedWrite {
            method: write_method(release, path, resource_at(path)),
            target,
            format,
            payload: payload.to_vec(),
        };
        assert_eq!(plan(release, path, &text, format), Ok(expected), "{path}");
    }
    let refused = plan(EnablerVersion::V1_0, names, &text, ContentFormat::TEXT);
    assert_eq!(refused, Err(Unencodable::OneValue(ContentFormat::TEXT)));
    let refused = plan(EnablerVersion::V1_1, one, &text, ContentFormat::XML);
    let why = Unencodable::UnsupportedFormat(ContentFormat::XML);
    assert_eq!(refused, Err(why));
}

#[test]
fn true_and_false_are_booleans_for_an_unknown_resource_where_the_format_has_types() {
    let unknown = Path::resource(65_000, 0, 1);
    let cases: [(ContentFormat, &[u8]); 7] = [
        (ContentFormat::CBOR, &[0xf5]),
        (
            ContentFormat::SENML_JSON,
            br#"[{"bn":"/65000/0/1","vb":true}]"#,
        ),
        (
            ContentFormat::SENML_CBOR,
            b"\x81\xa2\x21\x6a/65000/0/1\x04\xf5",
        ),
        (
            ContentFormat::LWM2M_CBOR,
            b"\xa1\x19\xfd\xe8\xa1\0\xa1\x01\xf5",
        ),
        (
            ContentFormat::LWM2M_JSON,
            br#"{"bn":"/65000/0/1","e":[{"bv":true}]}"#,
        ),
        (ContentFormat::TEXT, b"true"),
        (ContentFormat::LWM2M_TLV, b"\xc4\x01true"),
    ];
    let value = |text: &str| Value::String(text.into());
    for (format, payload) in cases {
        let planned = plan(EnablerVersion::V1_2, unknown, &value("true"), format).unwrap();
        assert_eq!(planned.payload, payload, "{format}");
    }
    let planned = |path, text: &str| {
        plan(
            EnablerVersion::V1_2,
            path,
            &value(text),
            ContentFormat::CBOR,
        )
        .unwrap()
        .payload
    };
    assert_eq!(planned(unknown, "false"), [0xf4]);
    assert_eq!(planned(unknown, "TRUE"), b"\x64TRUE");
    assert_eq!(
        planned(Path::resource(3, 0, 14), "true"),
        b"\x64true",
        "known to be text"
    );
}

#[test]
fn a_composite_read_carries_its_paths() {
    let paths = [Path::resource(3, 0, 9), Path::object(6)];
    let (json, cbor) = (ContentFormat::SENML_JSON, ContentFormat::LWM2M_CBOR);
    let message = read_composite(label(), "/lwm2m", &paths, json, cbor).unwrap();
    let about = (message.kind, message.code);
    assert_eq!(about, (MessageKind::Confirmable, Code::FETCH));
    assert_eq!(path_of(&message), ["lwm2m"]);
    assert_eq!(message.accept(), Some(json));
    assert_eq!(message.content_format(), Some(cbor));
    assert_eq!(message.payload, [0x82, 0x83, 3, 0, 9, 0x81, 6]);
    let refused = read_composite(label(), "", &paths, json, ContentFormat::TEXT);
    let why = Unencodable::UnsupportedFormat(ContentFormat::TEXT);
    assert_eq!(refused, Err(why));
}

fn planned(release: EnablerVersion, path: Path, value: &Value) -> PlannedWrite {
    let method = write_method(release, path, resource_at(path));
    let formats = formats_to_write(method, value, &[], release);
    plan(release, path, value, formats.first().unwrap()).unwrap()
}

fn plan(
    release: EnablerVersion,
    path: Path,
    value: &Value,
    format: ContentFormat,
) -> Result<PlannedWrite, Unencodable> {
    let method = write_method(release, path, resource_at(path));
    plan_write(method, path, resource_at(path), value, format)
}

fn resource_at(path: Path) -> Option<&'static Resource> {
    model::resource(path.object_id(), Version::new(1, 0), path.resource_id()?)
}

fn label() -> ExchangeLabel {
    let token = Token::new(&[1, 2, 3, 4]).expect("four bytes fit");
    ExchangeLabel {
        message_id: MessageId(7),
        token,
    }
}

fn path_of(message: &Message) -> Vec<&str> {
    message.uri_path().collect()
}
