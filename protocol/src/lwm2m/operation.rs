//! Which CoAP request asks a device to read, write or execute? (LwM2M Core 1.1 sections 6.3, 7.3)

use super::model::{Instances, Resource};
use super::path::{Level, Path};
use crate::coap::code::Code;
use crate::coap::content::ContentFormat;
use crate::coap::message::{Kind, Message, MessageId};
use crate::coap::token::Token;

/// Names an exchange with a device: what its answer will be known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Pairs the acknowledgement with the request.
    pub message_id: MessageId,
    /// Pairs the answer with the request.
    pub token: Token,
}

/// Asks for the value at a path, in the given format if there is one to prefer.
pub fn read(label: Label, root: &str, path: Path, accept: Option<ContentFormat>) -> Message {
    let message = request(label, Code::GET, root, path);
    match accept {
        Some(format) => message.with_accept(format),
        None => message,
    }
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

/// Returns the path a single value is written to: of a multiple resource that is instance 0, for
/// the resource as a whole takes only a list of instances.
pub fn write_target(path: Path, resource: Option<&Resource>) -> Path {
    let multiple = resource.is_some_and(|resource| resource.instances() == Instances::Multiple);
    match (path.level(), path.instance_id(), path.resource_id()) {
        (Level::Resource, Some(instance), Some(resource)) if multiple => {
            Path::resource_instance(path.object_id(), instance, resource, 0)
        }
        _ => path,
    }
}

fn request(label: Label, code: Code, root: &str, path: Path) -> Message {
    let root = root
        .split('/')
        .filter(|segment| !segment.is_empty())
        .map(str::to_owned);
    let segments = root.chain(path.segments().map(|segment| segment.to_string()));
    Message::request(Kind::Confirmable, code, label.message_id, label.token).with_uri_path(segments)
}
