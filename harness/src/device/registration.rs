//! How does the device encode Register, Update and Deregister? (LwM2M Core 1.1 section 6.2)
//!
//! Written by hand, independent of the server's decoder, so that each checks the other.

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use protocol::lwm2m::version::EnablerVersion;

use super::configuration::{Configuration, Reachability};
use super::event::RegistrationLocation;

pub(super) fn register(
    device: &Configuration,
    lifetime_s: u32,
    links: String,
    message_id: MessageId,
    token: Token,
) -> Message {
    let queries = [
        format!("ep={}", device.endpoint),
        format!("lt={lifetime_s}"),
        format!("lwm2m={}", device.version),
    ];
    Message::request(MessageKind::Confirmable, Code::POST, message_id, token)
        .with_uri_path(["rd"])
        .with_uri_query(queries)
        .with_uri_query(binding(device))
        .with_content_format(ContentFormat::LINK_FORMAT)
        .with_payload(links)
}

pub(super) fn update(
    location: &RegistrationLocation,
    message_id: MessageId,
    token: Token,
) -> Message {
    Message::request(MessageKind::Confirmable, Code::POST, message_id, token)
        .with_uri_path(location.segments())
}

pub(super) fn deregister(
    location: &RegistrationLocation,
    message_id: MessageId,
    token: Token,
) -> Message {
    Message::request(MessageKind::Confirmable, Code::DELETE, message_id, token)
        .with_uri_path(location.segments())
}

/// The start of the list of links, before the object instances: with the announced formats, which
/// versions before 1.1 cannot express.
pub(super) fn first_link(device: &Configuration) -> String {
    let announced: Vec<String> = device.announced.iter().map(ToString::to_string).collect();
    match device.version {
        EnablerVersion::V1_1 | EnablerVersion::V1_2 if !announced.is_empty() => {
            format!("</>;rt=\"oma.lwm2m\";ct=\"{}\"", announced.join(" "))
        }
        EnablerVersion::V1_0 | EnablerVersion::V1_1 | EnablerVersion::V1_2 => String::new(),
    }
}

fn binding(device: &Configuration) -> &'static [&'static str] {
    match (device.version, device.reachability) {
        (_, Reachability::Always) => &["b=U"],
        (EnablerVersion::V1_0, Reachability::Queue { .. }) => &["b=UQ"],
        (EnablerVersion::V1_1 | EnablerVersion::V1_2, Reachability::Queue { .. }) => &["b=U", "Q"],
    }
}
