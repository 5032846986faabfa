//! Which laws hold for messages and for lists of links? (RFC 7252, RFC 6690)

use protocol::coap::message::Message;
use protocol::lwm2m::links::ObjectLinks;
use protocol::lwm2m::registration::{Register, Update};

use crate::FuzzOutcome;

/// A decoded datagram has one encoding, without options that violate their definition.
pub(crate) fn message(bytes: &[u8]) -> FuzzOutcome {
    let Ok(message) = Message::decode(bytes) else {
        return FuzzOutcome::Refused;
    };
    let written = message.encode();
    let again = Message::decode(&written).expect("what was written can be read");
    assert_eq!(again.encode(), written);
    assert!(again.options().eq(message.options()));
    assert_eq!(again.payload, message.payload);
    assert_eq!(Message::decode(&again.encode()), Ok(again));
    let _ = (message.observe(), message.max_age(), message.accept());
    let _ = (message.block1(), message.block2(), message.content_format());
    let _ = Register::decode(message.uri_query(), &message.payload);
    let _ = Update::decode(message.uri_query(), &message.payload);
    FuzzOutcome::Read
}

/// A decoded list of links has one encoding with the same meaning.
pub(crate) fn links(bytes: &[u8]) -> FuzzOutcome {
    let decoded = ObjectLinks::decode(bytes);
    if let Ok(links) = &decoded {
        let written = links.encode();
        assert_eq!(ObjectLinks::decode(written.as_bytes()).as_ref(), Ok(links));
    }
    FuzzOutcome::of(&decoded)
}
