//! Does every message survive its encoding, does the decoder accept or refuse every datagram, and
//! does another codec read and write the same?

#[path = "coap_properties/given.rs"]
mod given;
#[path = "coap_properties/reference.rs"]
mod reference;

use proptest::prelude::proptest;
use proptest::{prop_assert, prop_assert_eq};
use protocol::coap::message::Message;
use protocol::coap::message::malformed::MalformedMessage;

use given::{datagrams, messages};

proptest! {
    #[test]
    fn every_message_is_read_as_it_was_written(message in messages()) {
        let bytes = message.encode();
        prop_assert_eq!(Message::decode(&bytes), Ok(message));
    }

    #[test]
    fn any_datagram_is_decoded_or_refused(bytes in datagrams()) {
        match Message::decode(&bytes) {
            Ok(message) => {
                let written = message.encode();
                prop_assert!(written.len() <= bytes.len());
                let again = Message::decode(&written).expect("what we write is well-formed");
                prop_assert_eq!(again.encode(), written);
            }
            Err(MalformedMessage { reason, reset }) => {
                let is_confirmable = bytes.len() >= 4 && bytes[0] >> 4 == 0b0100;
                prop_assert_eq!(reset.is_some(), is_confirmable, "{}", reason);
            }
        }
    }
}
