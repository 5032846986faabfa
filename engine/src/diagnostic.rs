//! Which diagnostic text does an error response to a device carry? RFC 7252 section 5.5.2.
//!
//! A text names the fault of the message that it answers, and nothing of any device. It has no
//! Content-Format.

use protocol::coap::message::Message;

/// The longest text: a sentence. A longer one is cut off.
const TEXT_BYTES_MAX: usize = 96;

/// To a registration that is forbidden: the same whether or not a device has the endpoint name, so
/// that a stranger does not learn which names exist.
pub(crate) const NAME_NOT_ACCEPTED: &str = "endpoint name not accepted from this address";

/// To a registration without an endpoint name, or with one that no device can have.
pub(crate) const NO_NAME: &str = "the endpoint name is missing or malformed";

/// To an update or deregistration of a registration that is not the sender's.
pub(crate) const REGISTER_AGAIN: &str = "register again";

/// To a Send from a peer that no device is registered at.
pub(crate) const NOT_REGISTERED_HERE: &str = "not registered at this address and port";

/// To data from an address that is not exactly one device's.
pub(crate) const UNKNOWN_ADDRESS: &str = "unknown address";

/// To a request for a resource that does not exist.
pub(crate) const NO_RESOURCE: &str = "no such resource";

/// To a request with a method that the resource does not have.
pub(crate) const NO_METHOD: &str = "no such method";

/// To a request for another server.
pub(crate) const NO_PROXY: &str = "not a proxy";

/// While the service is overloaded.
pub(crate) const OVERLOADED: &str = "overloaded";

/// To a device that sends more than is accepted from one.
pub(crate) const TOO_OFTEN: &str = "too many messages in a minute";

/// To a message that was refused before: its text is not remembered.
pub(crate) const REFUSED_BEFORE: &str = "refused when it was first received";

/// Who an error response goes to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Recipient {
    /// A device, at its address or peer.
    Device,
    /// Anyone else. The source of the request may be forged, so the response must not be longer:
    /// the service would amplify an attack on the owner of that address.
    Stranger,
}

/// Adds a text to the response to a request, unless that makes it too long for a stranger.
pub(crate) fn with_text(
    response: Message,
    text: &str,
    (request, recipient): (&Message, Recipient),
) -> Message {
    let text = cut(text);
    // The payload marker is one more byte.
    let bytes = response.encoded_bytes().saturating_add(text.len() + 1);
    match recipient {
        Recipient::Stranger if bytes > request.encoded_bytes() => response,
        Recipient::Stranger | Recipient::Device => response.with_payload(text),
    }
}

fn cut(text: &str) -> &str {
    let is_end = |end: &usize| text.is_char_boundary(*end);
    let end = (0..=TEXT_BYTES_MAX.min(text.len())).rev().find(is_end);
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use protocol::coap::code::Code;
    use protocol::coap::message::{MessageId, MessageKind};
    use protocol::coap::token::Token;

    use super::*;

    #[test]
    fn a_response_to_a_stranger_is_not_longer_than_the_request() {
        let text = "0123456789";
        for (payload, is_fitting) in [("0123456789", true), ("012345678", false), ("", false)] {
            let request = request(payload);
            let response = Message::response_to(&request, Code::FORBIDDEN, MessageId(0));
            let to_stranger = with_text(response.clone(), text, (&request, Recipient::Stranger));
            assert_eq!(
                to_stranger.payload == text.as_bytes(),
                is_fitting,
                "{payload}"
            );
            assert_eq!(to_stranger.payload.is_empty(), !is_fitting, "{payload}");
            let to_device = with_text(response, text, (&request, Recipient::Device));
            assert_eq!(to_device.payload, text.as_bytes());
        }
    }

    #[test]
    fn a_long_text_is_cut_off_between_characters() {
        let request = request("");
        let response = Message::response_to(&request, Code::BAD_REQUEST, MessageId(0));
        let text = format!("x{}", "é".repeat(TEXT_BYTES_MAX));
        let response = with_text(response, &text, (&request, Recipient::Device));
        assert_eq!(response.payload.len(), TEXT_BYTES_MAX - 1);
        assert!(std::str::from_utf8(&response.payload).is_ok());
        assert_eq!(response.content_format(), None);
    }

    fn request(payload: &str) -> Message {
        let (id, token) = (MessageId(7), Token::new(&[1, 2]).unwrap());
        Message::request(MessageKind::Confirmable, Code::POST, id, token).with_payload(payload)
    }
}
