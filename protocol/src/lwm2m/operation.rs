//! Which CoAP request performs an operation on a device? (LwM2M Core 1.1 sections 6.3, 6.4 and 7.3,
//! RFC 7641 section 3)

#[cfg(test)]
mod tests;

use super::attributes::Attributes;
use super::model::{Instances, Resource};
use super::path::Path;
use super::payload::formats::{WriteMethod, has_types};
use super::payload::{self, Reading, Unencodable};
use super::value::Value;
use super::version::EnablerVersion;
use crate::coap::code::Code;
use crate::coap::content::ContentFormat;
use crate::coap::message::{Message, MessageId, MessageKind};
use crate::coap::token::Token;

/// Observe in a request that starts an observation.
const REGISTER: u32 = 0;

/// Observe in a request that ends one.
const DEREGISTER: u32 = 1;

/// Identifies an exchange with a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeLabel {
    /// Matches the acknowledgement to the request.
    pub message_id: MessageId,
    /// Matches the response to the request.
    pub token: Token,
}

/// The request of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedWrite {
    /// The operation, and so the method of CoAP.
    pub method: WriteMethod,
    /// The path of the request.
    pub target: Path,
    /// The format of the payload.
    pub format: ContentFormat,
    /// The value, or a list that contains it.
    pub payload: Vec<u8>,
}

/// Reads the value at a path, in the given format if one is preferred.
pub fn read(
    label: ExchangeLabel,
    root: &str,
    path: Path,
    accept: Option<ContentFormat>,
) -> Message {
    let message = request(label, Code::GET, root, path);
    match accept {
        Some(format) => message.with_accept(format),
        None => message,
    }
}

/// Reads the value at a path and starts an observation of it.
///
/// Each notification carries the label's token; with a token in use, the observation is renewed.
pub fn observe(
    label: ExchangeLabel,
    root: &str,
    path: Path,
    accept: Option<ContentFormat>,
) -> Message {
    read(label, root, path, accept).with_observe(REGISTER)
}

/// Reads the value at a path and ends the observation of it.
///
/// The label has the observation's token and a message id of its own; path and format are those the
/// observation was started with (RFC 7641 section 3.6).
pub fn cancel_observation(
    label: ExchangeLabel,
    root: &str,
    path: Path,
    accept: Option<ContentFormat>,
) -> Message {
    read(label, root, path, accept).with_observe(DEREGISTER)
}

/// Writes a value as planned.
pub fn write(label: ExchangeLabel, root: &str, planned: PlannedWrite) -> Message {
    let code = match planned.method {
        WriteMethod::Replace => Code::PUT,
        WriteMethod::PartialUpdate => Code::POST,
    };
    request(label, code, root, planned.target)
        .with_content_format(planned.format)
        .with_payload(planned.payload)
}

/// Lists what is at and below a path, with the attributes (LwM2M Core 1.1 section 6.3.2).
pub fn discover(label: ExchangeLabel, root: &str, path: Path) -> Message {
    request(label, Code::GET, root, path).with_accept(ContentFormat::LINK_FORMAT)
}

/// Creates an instance of an object from a payload, if there is one (LwM2M Core 1.1 section 6.3.6).
pub fn create(
    label: ExchangeLabel,
    root: &str,
    object: u16,
    payload: Option<(ContentFormat, Vec<u8>)>,
) -> Message {
    let message = request(label, Code::POST, root, Path::object(object));
    match payload {
        Some((format, payload)) => message.with_content_format(format).with_payload(payload),
        None => message,
    }
}

/// Deletes an object instance, or an instance of a resource (LwM2M Core 1.2 section 6.3.7).
pub fn delete(label: ExchangeLabel, root: &str, path: Path) -> Message {
    request(label, Code::DELETE, root, path)
}

/// Writes attributes of a path (LwM2M Core 1.1 section 6.3.4).
pub fn write_attributes(
    label: ExchangeLabel,
    root: &str,
    path: Path,
    attributes: &Attributes,
) -> Message {
    with_attributes(request(label, Code::PUT, root, path), attributes)
}

/// Returns the request with attributes: an Observe may have them since LwM2M 1.2 (section 6.4.1).
pub fn with_attributes(message: Message, attributes: &Attributes) -> Message {
    message.with_uri_query(attributes.iter().map(ToString::to_string))
}

/// Executes a resource; the arguments are text, and may be empty.
pub fn execute(label: ExchangeLabel, root: &str, path: Path, arguments: &str) -> Message {
    let message = request(label, Code::POST, root, path);
    if arguments.is_empty() {
        return message;
    }
    message
        .with_content_format(ContentFormat::TEXT)
        .with_payload(arguments)
}

/// Reads the values at several paths at once (LwM2M Core 1.1 section 6.3.8). The list of paths is
/// in one format, the response is wanted in another or the same.
pub fn read_composite(
    label: ExchangeLabel,
    root: &str,
    paths: &[Path],
    accept: ContentFormat,
    content_format: ContentFormat,
) -> Result<Message, Unencodable> {
    let payload = payload::encode_paths(content_format, paths)?;
    let ExchangeLabel { message_id, token } = label;
    let message = Message::request(MessageKind::Confirmable, Code::FETCH, message_id, token)
        .with_uri_path(segments_of(root))
        .with_content_format(content_format)
        .with_accept(accept)
        .with_payload(payload);
    Ok(message)
}

/// Reads the values at several paths at once and starts one observation of them all (LwM2M Core 1.1
/// section 6.4.7).
pub fn observe_composite(
    label: ExchangeLabel,
    root: &str,
    paths: &[Path],
    format: ContentFormat,
) -> Result<Message, Unencodable> {
    let message = read_composite(label, root, paths, format, format)?;
    Ok(message.with_observe(REGISTER))
}

/// Reads the values at several paths at once and ends the observation of them. Paths and formats
/// are those the observation was started with (RFC 7641 section 3.6).
pub fn cancel_composite_observation(
    label: ExchangeLabel,
    root: &str,
    paths: &[Path],
    format: ContentFormat,
) -> Result<Message, Unencodable> {
    let message = read_composite(label, root, paths, format, format)?;
    Ok(message.with_observe(DEREGISTER))
}

/// Writes values at several paths at once (LwM2M Core 1.1 section 6.3.9).
pub fn write_composite(
    label: ExchangeLabel,
    root: &str,
    values: &Reading,
    format: ContentFormat,
) -> Result<Message, Unencodable> {
    let payload = payload::encode_all(format, values)?;
    let ExchangeLabel { message_id, token } = label;
    let message = Message::request(MessageKind::Confirmable, Code::IPATCH, message_id, token)
        .with_uri_path(segments_of(root))
        .with_content_format(format)
        .with_payload(payload);
    Ok(message)
}

/// Returns how a single value is written to a path on a device of the given release at first.
///
/// LwM2M 1.0 has no path for the instance of a multiple resource, and a list that is written to the
/// resource replaces all of its instances: there an instance is written by a partial update.
pub fn write_method(
    enabler: EnablerVersion,
    path: Path,
    resource: Option<&Resource>,
) -> WriteMethod {
    match enabler == EnablerVersion::V1_0 && write_target(path, resource).is_resource_instance() {
        true => WriteMethod::PartialUpdate,
        false => WriteMethod::Replace,
    }
}

/// Decides how a single value is written to a path with a method, in one of the formats of
/// [`payload::formats::formats_to_write`]. The texts `true` and `false` are booleans for a resource
/// of unknown type if the format contains types.
pub fn plan_write(
    method: WriteMethod,
    path: Path,
    resource: Option<&Resource>,
    value: &Value,
    format: ContentFormat,
) -> Result<PlannedWrite, Unencodable> {
    let holder = write_target(path, resource);
    let target = match method {
        WriteMethod::Replace => holder,
        WriteMethod::PartialUpdate => instance_of(holder),
    };
    let values = Reading::from([(holder, value_in(format, resource, value))]);
    let payload = payload::encode(format, target, &values)?;
    Ok(PlannedWrite {
        method,
        target,
        format,
        payload,
    })
}

/// Returns the path a single value is written to: for a multiple resource that is instance 0,
/// because the whole resource accepts only a list of instances.
pub fn write_target(path: Path, resource: Option<&Resource>) -> Path {
    let multiple = resource.is_some_and(|resource| resource.instances() == Instances::Multiple);
    match (path.instance_id(), path.resource_id()) {
        (Some(instance), Some(resource)) if multiple && path.is_resource() => {
            Path::resource_instance(path.object_id(), instance, resource, 0)
        }
        (_, _) => path,
    }
}

/// Decides how several values are written to a path with a method, in a format for several values.
pub fn plan_writes<'m>(
    method: WriteMethod,
    target: Path,
    values: &Reading,
    format: ContentFormat,
    resource_of: impl Fn(Path) -> Option<&'m Resource>,
) -> Result<PlannedWrite, Unencodable> {
    let values = values_in(format, values, resource_of);
    let payload = payload::encode(format, target, &values)?;
    Ok(PlannedWrite {
        method,
        target,
        format,
        payload,
    })
}

/// Returns the values as they are written in a format.
pub fn values_in<'m>(
    format: ContentFormat,
    values: &Reading,
    resource_of: impl Fn(Path) -> Option<&'m Resource>,
) -> Reading {
    let values = values.iter();
    let written = values.map(|(at, value)| (*at, value_in(format, resource_of(*at), value)));
    written.collect()
}

fn value_in(format: ContentFormat, resource: Option<&Resource>, value: &Value) -> Value {
    let is_unknown = resource.and_then(Resource::data_type).is_none();
    match value {
        Value::String(text) if is_unknown && has_types(format) => match text.as_str() {
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            _ => value.clone(),
        },
        Value::Boolean(_)
        | Value::CoreLink(_)
        | Value::Float(_)
        | Value::Integer(_)
        | Value::ObjectLink(_)
        | Value::Opaque(_)
        | Value::String(_)
        | Value::Time(_)
        | Value::UnsignedInteger(_) => value.clone(),
    }
}

/// Returns the object instance that a path is in.
fn instance_of(path: Path) -> Path {
    let instance = path.instance_id();
    instance.map_or(path, |id| Path::instance(path.object_id(), id))
}

fn request(label: ExchangeLabel, code: Code, root: &str, path: Path) -> Message {
    let root = segments_of(root).map(str::to_owned);
    let segments = root.chain(path.segments().map(|segment| segment.to_string()));
    Message::request(
        MessageKind::Confirmable,
        code,
        label.message_id,
        label.token,
    )
    .with_uri_path(segments)
}

fn segments_of(root: &str) -> impl Iterator<Item = &str> {
    root.split('/').filter(|segment| !segment.is_empty())
}
