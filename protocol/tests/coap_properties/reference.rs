//! Do we and coap-lite read and write the same messages, and do our names have the same numbers?
//!
//! coap-lite is the independent reader and writer: it reads our messages like we do, we read its
//! messages like it does, and we refuse what it refuses for the same reason.

use coap_lite::error::MessageError;
use coap_lite::{CoapOption, MessageClass, MessageType, Packet, RequestType, ResponseType};
use proptest::prelude::proptest;
use proptest::test_runner::TestCaseError;
use proptest::{prop_assert, prop_assert_eq};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::malformed::{MalformedMessage, MessageFault};
use protocol::coap::message::{Message, MessageKind};
use protocol::coap::option;

use crate::given::{datagrams, parts};

proptest! {
    #[test]
    fn what_we_write_the_reference_writes_and_reads_alike(parts in parts()) {
        let bytes = parts.message().encode();
        let packet = parts.packet();
        prop_assert_eq!(&packet.to_bytes_unlimited(), &Ok(bytes.clone()));
        prop_assert_eq!(Packet::from_bytes(&bytes), Ok(packet));
    }

    #[test]
    fn what_the_reference_writes_we_read_alike(parts in parts()) {
        let bytes = parts.packet().to_bytes_unlimited().expect("it has no limit");
        prop_assert_eq!(Message::decode(&bytes), Ok(parts.message()));
    }

    #[test]
    fn what_we_read_of_any_datagram_the_reference_reads_alike(bytes in datagrams()) {
        let packet = Packet::from_bytes(&bytes);
        match Message::decode(&bytes) {
            Ok(message) => {
                let packet = packet.expect("what we accept the reference accepts");
                check_alike(&message, &packet)?;
            }
            Err(MalformedMessage { reason, .. }) => check_refusal(reason, &packet)?,
        }
    }
}

fn check_alike(message: &Message, packet: &Packet) -> Result<(), TestCaseError> {
    let header = &packet.header;
    prop_assert_eq!(header.get_version(), 1);
    prop_assert_eq!(header.get_type(), type_of(message.kind));
    prop_assert_eq!(header.code, MessageClass::from(message.code.as_byte()));
    prop_assert_eq!(header.message_id, message.message_id.0);
    prop_assert_eq!(packet.get_token(), message.token.as_bytes());
    prop_assert_eq!(&packet.payload, &message.payload);
    // Misused options are left out; the others keep their order.
    let mut theirs = packet
        .options()
        .flat_map(|(number, values)| values.iter().map(|value| (*number, value.as_slice())));
    for ours in message.options() {
        prop_assert!(theirs.any(|option| option == ours), "{ours:?}");
    }
    Ok(())
}

fn check_refusal(
    reason: MessageFault,
    packet: &Result<Packet, MessageError>,
) -> Result<(), TestCaseError> {
    let theirs = packet.as_ref().err();
    match reason {
        MessageFault::TooShort => prop_assert_eq!(theirs, Some(&MessageError::InvalidHeader)),
        MessageFault::ReservedTokenLength(_) | MessageFault::TokenCutOff => {
            prop_assert_eq!(theirs, Some(&MessageError::InvalidTokenLength));
        }
        MessageFault::OptionDelta => {
            prop_assert_eq!(theirs, Some(&MessageError::InvalidOptionDelta))
        }
        MessageFault::OptionLength => {
            prop_assert_eq!(theirs, Some(&MessageError::InvalidOptionLength))
        }
        MessageFault::PayloadMissing => {
            let payload = packet.as_ref().map(|packet| packet.payload.len());
            prop_assert_eq!(payload, Ok(0));
        }
        // Here the reference is lenient, and may find a later fault.
        MessageFault::UnknownVersion(_)
        | MessageFault::ReservedClass(_)
        | MessageFault::EmptyWithContent
        | MessageFault::EmptyNonConfirmable
        | MessageFault::ResetNotEmpty
        | MessageFault::RequestInAcknowledgement => {}
    }
    Ok(())
}

fn type_of(kind: MessageKind) -> MessageType {
    match kind {
        MessageKind::Confirmable => MessageType::Confirmable,
        MessageKind::NonConfirmable => MessageType::NonConfirmable,
        MessageKind::Acknowledgement => MessageType::Acknowledgement,
        MessageKind::Reset => MessageType::Reset,
    }
}

#[test]
fn our_options_have_the_numbers_of_the_reference() {
    let names = [
        (option::IF_MATCH, CoapOption::IfMatch),
        (option::URI_HOST, CoapOption::UriHost),
        (option::ETAG, CoapOption::ETag),
        (option::IF_NONE_MATCH, CoapOption::IfNoneMatch),
        (option::OBSERVE, CoapOption::Observe),
        (option::URI_PORT, CoapOption::UriPort),
        (option::LOCATION_PATH, CoapOption::LocationPath),
        (option::OSCORE, CoapOption::Oscore),
        (option::URI_PATH, CoapOption::UriPath),
        (option::CONTENT_FORMAT, CoapOption::ContentFormat),
        (option::MAX_AGE, CoapOption::MaxAge),
        (option::URI_QUERY, CoapOption::UriQuery),
        (option::ACCEPT, CoapOption::Accept),
        (option::LOCATION_QUERY, CoapOption::LocationQuery),
        (option::BLOCK2, CoapOption::Block2),
        (option::BLOCK1, CoapOption::Block1),
        (option::PROXY_URI, CoapOption::ProxyUri),
        (option::PROXY_SCHEME, CoapOption::ProxyScheme),
        (option::SIZE1, CoapOption::Size1),
        (option::SIZE2, CoapOption::Size2),
        (option::NO_RESPONSE, CoapOption::NoResponse),
    ];
    for (number, name) in names {
        assert_eq!(CoapOption::from(number), name);
    }
}

#[test]
fn our_formats_have_the_numbers_of_the_reference() {
    use coap_lite::ContentFormat as Reference;
    let names = [
        (ContentFormat::TEXT, Reference::TextPlain),
        (ContentFormat::LINK_FORMAT, Reference::ApplicationLinkFormat),
        (ContentFormat::XML, Reference::ApplicationXML),
        (
            ContentFormat::OCTET_STREAM,
            Reference::ApplicationOctetStream,
        ),
        (ContentFormat::JSON, Reference::ApplicationJSON),
        (ContentFormat::CBOR, Reference::ApplicationCBOR),
        (ContentFormat::SENML_JSON, Reference::ApplicationSenmlJSON),
        (ContentFormat::SENML_CBOR, Reference::ApplicationSenmlCBOR),
        (
            ContentFormat::LWM2M_TLV,
            Reference::ApplicationVndOmaLwm2mTlv,
        ),
        (
            ContentFormat::LWM2M_JSON,
            Reference::ApplicationVndOmaLwm2mJson,
        ),
        (
            ContentFormat::LWM2M_CBOR,
            Reference::ApplicationVndOmaLwm2mCbor,
        ),
    ];
    for (format, name) in names {
        assert_eq!(usize::from(format.0), usize::from(name));
    }
}

#[test]
fn our_codes_have_the_numbers_of_the_reference() {
    let methods = [
        (Code::GET, RequestType::Get),
        (Code::POST, RequestType::Post),
        (Code::PUT, RequestType::Put),
        (Code::DELETE, RequestType::Delete),
        (Code::FETCH, RequestType::Fetch),
        (Code::PATCH, RequestType::Patch),
        (Code::IPATCH, RequestType::IPatch),
    ];
    let answers = [
        (Code::CREATED, ResponseType::Created),
        (Code::DELETED, ResponseType::Deleted),
        (Code::VALID, ResponseType::Valid),
        (Code::CHANGED, ResponseType::Changed),
        (Code::CONTENT, ResponseType::Content),
        (Code::CONTINUE, ResponseType::Continue),
        (Code::BAD_REQUEST, ResponseType::BadRequest),
        (Code::UNAUTHORIZED, ResponseType::Unauthorized),
        (Code::BAD_OPTION, ResponseType::BadOption),
        (Code::FORBIDDEN, ResponseType::Forbidden),
        (Code::NOT_FOUND, ResponseType::NotFound),
        (Code::METHOD_NOT_ALLOWED, ResponseType::MethodNotAllowed),
        (Code::NOT_ACCEPTABLE, ResponseType::NotAcceptable),
        (
            Code::REQUEST_ENTITY_INCOMPLETE,
            ResponseType::RequestEntityIncomplete,
        ),
        (Code::CONFLICT, ResponseType::Conflict),
        (Code::PRECONDITION_FAILED, ResponseType::PreconditionFailed),
        (
            Code::REQUEST_ENTITY_TOO_LARGE,
            ResponseType::RequestEntityTooLarge,
        ),
        (
            Code::UNSUPPORTED_CONTENT_FORMAT,
            ResponseType::UnsupportedContentFormat,
        ),
        (
            Code::UNPROCESSABLE_ENTITY,
            ResponseType::UnprocessableEntity,
        ),
        (Code::TOO_MANY_REQUESTS, ResponseType::TooManyRequests),
        (
            Code::INTERNAL_SERVER_ERROR,
            ResponseType::InternalServerError,
        ),
        (Code::NOT_IMPLEMENTED, ResponseType::NotImplemented),
        (Code::BAD_GATEWAY, ResponseType::BadGateway),
        (Code::SERVICE_UNAVAILABLE, ResponseType::ServiceUnavailable),
        (Code::GATEWAY_TIMEOUT, ResponseType::GatewayTimeout),
        (
            Code::PROXYING_NOT_SUPPORTED,
            ResponseType::ProxyingNotSupported,
        ),
    ];
    let methods = methods.map(|(code, name)| (code, MessageClass::Request(name)));
    let answers = answers.map(|(code, name)| (code, MessageClass::Response(name)));
    for (code, name) in methods.into_iter().chain(answers) {
        assert_eq!(code.as_byte(), u8::from(name));
    }
}
