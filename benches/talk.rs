//! Which messages do the fleet's devices send?

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::option;
use protocol::coap::token::Token;

use crate::fleet;

/// The parameters that a registration and its updates share.
const LASTING: [&str; 2] = ["lt=86400", "b=U"];

/// The host name under which devices find the service; many send it along.
const HOST: &str = "coap.acme.test";

/// The object list of a client with a dozen sensors.
pub(crate) const OBJECTS: &str = "</1/0>,</3/0>,</4/0>,</5/0>,</6/0>,</7/0>,\
    </3303>;ver=1.1,</3303/0>,</3313/0>,</3347/0>";

/// A registration.
pub(crate) fn register(number: u32, id: MessageId) -> Message {
    let endpoint = format!("ep={}", fleet::profile(number).endpoint);
    Message::request(
        MessageKind::Confirmable,
        Code::POST,
        id,
        Token::from_u64(number.into()),
    )
    .with_uri_path(["rd"])
    .with_uri_query(["lwm2m=1.1", &endpoint])
    .with_uri_query(LASTING)
    .with_content_format(ContentFormat::LINK_FORMAT)
    .with_payload(OBJECTS)
}

/// An update without changes.
pub(crate) fn update<'a>(location: impl IntoIterator<Item = &'a str>, id: MessageId) -> Message {
    Message::request(
        MessageKind::Confirmable,
        Code::POST,
        id,
        Token::from_u64(id.0.into()),
    )
    .with_option(option::URI_HOST, HOST.as_bytes())
    .with_uri_path(location)
    .with_uri_query(LASTING)
}
