//! Which CoAP request asks a device to read, write, execute or observe? (LwM2M Core 1.1 sections
//! 6.3, 6.4 and 7.3, RFC 7641 section 3)

use super::model::{Instances, Resource};
use super::path::Path;
use super::payload::formats::takes_a_list;
use super::payload::{self, Reading, Unencodable};
use super::value::Value;
use super::version::EnablerVersion;
use crate::coap::code::Code;
use crate::coap::content::ContentFormat;
use crate::coap::message::{Kind, Message, MessageId};
use crate::coap::token::Token;

/// Observe in a request that starts an observation.
const REGISTER: u32 = 0;

/// Observe in a request that ends one.
const DEREGISTER: u32 = 1;

/// Names an exchange with a device: what its answer will be known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Pairs the acknowledgement with the request.
    pub message_id: MessageId,
    /// Pairs the answer with the request.
    pub token: Token,
}

/// Says where a write goes and what it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedWrite {
    /// The path the request is about.
    pub target: Path,
    /// The format the payload is in.
    pub format: ContentFormat,
    /// The value, or a list that holds it.
    pub payload: Vec<u8>,
}

/// Asks for the value at a path, in the given format if there is one to prefer.
pub fn read(label: Label, root: &str, path: Path, accept: Option<ContentFormat>) -> Message {
    let message = request(label, Code::GET, root, path);
    match accept {
        Some(format) => message.with_accept(format),
        None => message,
    }
}

/// Asks for the value at a path and to be told whenever it changes.
///
/// Each notification carries the label's token; under a token in use, the observation is renewed.
pub fn observe(label: Label, root: &str, path: Path, accept: Option<ContentFormat>) -> Message {
    read(label, root, path, accept).with_observe(REGISTER)
}

/// Asks for the value at a path and to be told of it no more.
///
/// The label carries the observation's token and a message id of its own; path and format are
/// those the observation was started with (RFC 7641 section 3.6).
pub fn cancel_observation(
    label: Label,
    root: &str,
    path: Path,
    accept: Option<ContentFormat>,
) -> Message {
    read(label, root, path, accept).with_observe(DEREGISTER)
}

/// Replaces the value at a path.
pub fn write(
    label: Label,
    root: &str,
    path: Path,
    format: ContentFormat,
    payload: Vec<u8>,
) -> Message {
    request(label, Code::PUT, root, path)
        .with_content_format(format)
        .with_payload(payload)
}

/// Starts what an executable resource does; the arguments are text, and there may be none.
pub fn execute(label: Label, root: &str, path: Path, arguments: &str) -> Message {
    let message = request(label, Code::POST, root, path);
    if arguments.is_empty() {
        return message;
    }
    message
        .with_content_format(ContentFormat::TEXT)
        .with_payload(arguments)
}

/// Asks for the values at several paths at once (LwM2M Core 1.1 section 6.3.8). The list of paths
/// travels in one format, the answer is wanted in another or the same.
pub fn read_composite(
    label: Label,
    root: &str,
    paths: &[Path],
    accept: ContentFormat,
    content_format: ContentFormat,
) -> Result<Message, Unencodable> {
    let payload = payload::encode_paths(content_format, paths)?;
    let Label { message_id, token } = label;
    let message = Message::request(Kind::Confirmable, Code::FETCH, message_id, token)
        .with_uri_path(segments_of(root))
        .with_content_format(content_format)
        .with_accept(accept)
        .with_payload(payload);
    Ok(message)
}

/// Decides how a single value is written to a path on a device of the given release, in one of the
/// formats of [`payload::formats::formats_to_write`].
///
/// LwM2M 1.0 has no path for the instance of a multiple resource, so that there the resource as a
/// whole is replaced by a list of one. A resource instance a caller names is written as named: what
/// cannot be addressed, the device refuses, whereas a list would replace the other instances too.
pub fn plan_write(
    enabler: EnablerVersion,
    path: Path,
    resource: Option<&Resource>,
    value: &Value,
    format: ContentFormat,
) -> Result<PlannedWrite, Unencodable> {
    let holder = write_target(path, resource);
    let target = match takes_a_list(path, resource, enabler) {
        true => path,
        false => holder,
    };
    let values = Reading::from([(holder, value.clone())]);
    let payload = payload::encode(format, target, &values)?;
    Ok(PlannedWrite {
        target,
        format,
        payload,
    })
}

/// Returns the path a single value is written to: of a multiple resource that is instance 0, for
/// the resource as a whole takes only a list of instances.
fn write_target(path: Path, resource: Option<&Resource>) -> Path {
    let multiple = resource.is_some_and(|resource| resource.instances() == Instances::Multiple);
    match (path.instance_id(), path.resource_id()) {
        (Some(instance), Some(resource)) if multiple && path.is_resource() => {
            Path::resource_instance(path.object_id(), instance, resource, 0)
        }
        (_, _) => path,
    }
}

fn request(label: Label, code: Code, root: &str, path: Path) -> Message {
    let root = segments_of(root).map(str::to_owned);
    let segments = root.chain(path.segments().map(|segment| segment.to_string()));
    Message::request(Kind::Confirmable, code, label.message_id, label.token).with_uri_path(segments)
}

fn segments_of(root: &str) -> impl Iterator<Item = &str> {
    root.split('/').filter(|segment| !segment.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{
        Label, PlannedWrite, cancel_observation, execute, observe, plan_write, read,
        read_composite, write, write_target,
    };
    use crate::coap::code::Code;
    use crate::coap::content::ContentFormat;
    use crate::coap::message::{Kind, Message, MessageId};
    use crate::coap::token::Token;
    use crate::lwm2m::model::{self, Resource};
    use crate::lwm2m::path::Path;
    use crate::lwm2m::payload::Unencodable;
    use crate::lwm2m::payload::formats::formats_to_write;
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
        assert_eq!((message.kind, message.code), (Kind::Confirmable, Code::GET));
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
    fn an_observation_is_a_read_that_stays() {
        let path = Path::resource(3303, 0, 5700);
        let accept = Some(ContentFormat::TEXT);
        let start = observe(label(), "/lwm2m", path, accept);
        assert_eq!(start.observe(), Some(0));
        assert_eq!(start, read(label(), "/lwm2m", path, accept).with_observe(0));
    }

    #[test]
    fn the_end_of_an_observation_differs_from_its_start_in_observe_and_message_id() {
        let path = Path::instance(3303, 0);
        let later = Label {
            message_id: MessageId(8),
            ..label()
        };
        let end = cancel_observation(later, "", path, Some(ContentFormat::LWM2M_TLV));
        assert_eq!((end.kind, end.code), (Kind::Confirmable, Code::GET));
        assert_eq!((end.observe(), end.token), (Some(1), label().token));

        let start = observe(later, "", path, Some(ContentFormat::LWM2M_TLV));
        assert_ne!(start, end);
        assert_eq!(start.with_observe(1), end);
    }

    #[test]
    fn a_write_puts_the_value() {
        let path = Path::resource(1, 0, 1);
        let message = write(label(), "", path, ContentFormat::TEXT, b"300".to_vec());
        assert_eq!((message.kind, message.code), (Kind::Confirmable, Code::PUT));
        assert_eq!(path_of(&message), ["1", "0", "1"]);
        assert_eq!(message.content_format(), Some(ContentFormat::TEXT));
        assert_eq!(message.payload, b"300");
    }

    #[test]
    fn an_execute_posts_its_arguments_as_text() {
        let plain = execute(label(), "", Path::resource(3, 0, 4), "");
        assert_eq!((plain.kind, plain.code), (Kind::Confirmable, Code::POST));
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
    fn a_multiple_resource_is_replaced_by_a_list_where_its_instances_have_no_path() {
        let path = Path::resource(11, 0, 8);
        let value = Value::String("a".into());
        let list = PlannedWrite {
            target: path,
            format: ContentFormat::LWM2M_TLV,
            payload: vec![0x83, 8, 0x41, 0, b'a'],
        };
        assert_eq!(planned(EnablerVersion::V1_0, path, &value), list);
        let one = PlannedWrite {
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
        let cases: [(Path, &Value, ContentFormat, &[u8]); 4] = [
            (Path::resource(1, 0, 1), &text, ContentFormat::TEXT, b"300"),
            (
                Path::resource_instance(11, 0, 8, 3),
                &text,
                ContentFormat::TEXT,
                b"300",
            ),
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
                names,
                br#"{"bn":"/11/0/8/","e":[{"n":"0","sv":"a"}]}"#,
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
    fn a_composite_read_carries_its_paths() {
        let paths = [Path::resource(3, 0, 9), Path::object(6)];
        let (json, cbor) = (ContentFormat::SENML_JSON, ContentFormat::LWM2M_CBOR);
        let message = read_composite(label(), "/lwm2m", &paths, json, cbor).unwrap();
        let about = (message.kind, message.code);
        assert_eq!(about, (Kind::Confirmable, Code::FETCH));
        assert_eq!(path_of(&message), ["lwm2m"]);
        assert_eq!(message.accept(), Some(json));
        assert_eq!(message.content_format(), Some(cbor));
        assert_eq!(message.payload, [0x82, 0x83, 3, 0, 9, 0x81, 6]);
        let refused = read_composite(label(), "", &paths, json, ContentFormat::TEXT);
        let why = Unencodable::UnsupportedFormat(ContentFormat::TEXT);
        assert_eq!(refused, Err(why));
    }

    fn planned(release: EnablerVersion, path: Path, value: &Value) -> PlannedWrite {
        let formats = formats_to_write(path, resource_at(path), value, &[], release);
        plan(release, path, value, formats.first().unwrap()).unwrap()
    }

    fn plan(
        release: EnablerVersion,
        path: Path,
        value: &Value,
        format: ContentFormat,
    ) -> Result<PlannedWrite, Unencodable> {
        plan_write(release, path, resource_at(path), value, format)
    }

    fn resource_at(path: Path) -> Option<&'static Resource> {
        model::resource(path.object_id(), Version::new(1, 0), path.resource_id()?)
    }

    fn label() -> Label {
        let token = Token::new(&[1, 2, 3, 4]).expect("four bytes fit");
        Label {
            message_id: MessageId(7),
            token,
        }
    }

    fn path_of(message: &Message) -> Vec<&str> {
        message.uri_path().collect()
    }
}
