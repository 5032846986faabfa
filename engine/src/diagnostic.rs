//! Which diagnostic text does an error response carry, to a device or of a device? RFC 7252 section
//! 5.5.2.
//!
//! A text to a device names the fault of the message that it answers, and nothing of any device. It
//! has no Content-Format.

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

/// To a bootstrap request without DTLS, where that is needed.
pub(crate) const BOOTSTRAP_NEEDS_DTLS: &str = "bootstrap needs DTLS";

/// To any other request over a session that was made with a key for bootstrap alone.
pub(crate) const BOOTSTRAP_KEY: &str = "this key is for bootstrap alone";

/// To a Bootstrap-Pack-Request for a format that packs do not have.
pub(crate) const PACK_FORMATS: &str = "a pack is SenML CBOR, SenML JSON or LwM2M CBOR";

/// To a request for a further block of a Bootstrap-Pack that was not begun, or long ago.
pub(crate) const NO_PACK: &str = "begin with the first block";

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

/// The longest text of a device that is shown, in characters: a few sentences. A longer one is cut
/// off.
const SHOWN_CHARS_MAX: usize = 200;

/// Returns the text of an error response of a device: its payload, if that has no Content-Format
/// and is UTF-8, without control characters and cut off at a bound.
pub(crate) fn text_of(response: &Message) -> Option<Box<str>> {
    if response.code.is_success() || response.content_format().is_some() {
        return None;
    }
    let text = std::str::from_utf8(&response.payload).ok()?;
    let mut printable = text.trim().chars().filter(|c| !c.is_control());
    let mut shown: String = printable.by_ref().take(SHOWN_CHARS_MAX).collect();
    if printable.next().is_some() {
        shown.push('…');
    }
    (!shown.is_empty()).then_some(shown.into())
}

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
    let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    // The payload marker is one more byte.
    let bytes = response.encoded_bytes().saturating_add(text.len() + 1);
    match recipient {
        Recipient::Stranger if bytes > request.encoded_bytes() => response,
        Recipient::Stranger | Recipient::Device => response.with_payload(text),
    }
}

#[cfg(test)]
mod tests {
    use protocol::coap::code::Code;
    use protocol::coap::content::ContentFormat;
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
    fn the_text_of_a_device_is_bounded_and_has_no_control_characters() {
        let long = "é".repeat(SHOWN_CHARS_MAX + 1);
        let cut = format!("{}…", "é".repeat(SHOWN_CHARS_MAX));
        let fitting = "é".repeat(SHOWN_CHARS_MAX);
        let cases: [(&[u8], Option<&str>); 8] = [
            (b"no such instance", Some("no such instance")),
            (b" no\x1b[31m \0instance\r\n", Some("no[31m instance")),
            (fitting.as_bytes(), Some(&fitting)),
            (long.as_bytes(), Some(&cut)),
            (b"", None),
            (b"\0\n", None),
            (b"\xff", None),
            (b"caf\xc3", None),
        ];
        for (payload, text) in cases {
            let response = Message::response_to(&request(""), Code::NOT_FOUND, MessageId(0));
            let response = response.with_payload(payload);
            assert_eq!(text_of(&response).as_deref(), text, "{payload:?}");
            let with_format = response.clone().with_content_format(ContentFormat::TEXT);
            assert_eq!(text_of(&with_format), None, "not a diagnostic payload");
        }
        let success = Message::response_to(&request(""), Code::CONTENT, MessageId(0));
        assert_eq!(text_of(&success.with_payload("21.5")), None);
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
