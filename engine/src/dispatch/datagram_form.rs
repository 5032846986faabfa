//! How are datagrams counted in metrics? By message type and class of the code (RFC 7252 section
//! 3).

use protocol::coap::code::Code;

use super::{Classified, DropReason};

/// The types of messages, as the header numbers them.
const KINDS: [&str; 4] = ["CON", "NON", "ACK", "RST"];

/// The classes of codes.
const CODES: [&str; 9] = [
    "GET", "POST", "PUT", "DELETE", "2.xx", "4.xx", "5.xx", "empty", "other",
];

const GET: usize = 0;
const POST: usize = 1;
const PUT: usize = 2;
const DELETE: usize = 3;
const SUCCESS: usize = 4;
const CLIENT_ERROR: usize = 5;
const SERVER_ERROR: usize = 6;
const EMPTY: usize = 7;
const OTHER: usize = 8;

/// The form of a datagram: its type and the class of its code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DatagramForm(u8);

impl DatagramForm {
    /// How many forms there are.
    pub const COUNT: usize = KINDS.len() * CODES.len() + 4;

    /// A bare datagram, received or sent.
    pub const BARE: Self = Self((Self::COUNT - 1) as u8);

    /// Records of DTLS, received or sent.
    pub const DTLS: Self = Self((Self::COUNT - 4) as u8);

    /// Not a CoAP message.
    const MALFORMED: Self = Self((Self::COUNT - 2) as u8);

    /// Dropped before it was decoded.
    pub const UNREAD: Self = Self((Self::COUNT - 3) as u8);

    /// The form of a datagram that the service sends.
    pub fn of(datagram: &[u8]) -> Self {
        let [first, code, ..] = datagram else {
            return Self::MALFORMED;
        };
        let kind = usize::from(first >> 4 & 0b11);
        let place = kind * CODES.len() + class_of(Code::from_byte(*code));
        u8::try_from(place).map_or(Self::MALFORMED, Self)
    }

    /// The form of a datagram that was received and classified.
    pub fn received(datagram: &[u8], classified: &Classified) -> Self {
        match classified {
            Classified::Ignored(reason) | Classified::Answered { reason, .. }
                if reason.is_malformed() =>
            {
                Self::MALFORMED
            }
            Classified::ToEndpoint(..)
            | Classified::ToLocation(..)
            | Classified::ToPeer(_)
            | Classified::ToAddress(_)
            | Classified::ToImage(_)
            | Classified::ToDevice(..)
            | Classified::Answered { .. }
            | Classified::Ignored(_) => Self::of(datagram),
        }
    }

    /// Every form that a well-formed message can have (RFC 7252 section 4.3, table 1), and those of
    /// datagrams that are not messages.
    pub fn all() -> impl Iterator<Item = Self> {
        let can_be = |form: &Self| match form.parts() {
            None => true,
            Some((0, _)) => true,
            Some((1, code)) => code != EMPTY,
            Some((2, code)) => code >= SUCCESS,
            Some((_, code)) => code == EMPTY,
        };
        (0..Self::COUNT as u8).map(Self).filter(can_be)
    }

    /// Its index among all forms.
    pub fn index(self) -> usize {
        self.0.into()
    }

    /// The name of its type.
    pub fn kind(self) -> &'static str {
        let kind = self.parts().and_then(|(kind, _)| KINDS.get(kind));
        kind.copied().unwrap_or("none")
    }

    /// The name of the class of its code.
    pub fn code(self) -> &'static str {
        if self == Self::BARE {
            return "bare";
        }
        if self == Self::UNREAD {
            return "unread";
        }
        if self == Self::DTLS {
            return "dtls";
        }
        let code = self.parts().and_then(|(_, code)| CODES.get(code));
        code.copied().unwrap_or("malformed")
    }

    /// Whether a datagram that the service sends can have it.
    pub fn can_be_ours(self) -> bool {
        ![Self::MALFORMED, Self::UNREAD].contains(&self)
    }

    /// Whether it is the form of a CoAP message.
    fn is_message(self) -> bool {
        self.index() < KINDS.len() * CODES.len()
    }

    /// Type and class of code; `None` if it is not a CoAP message.
    fn parts(self) -> Option<(usize, usize)> {
        let place = self.index();
        self.is_message()
            .then_some((place / CODES.len(), place % CODES.len()))
    }
}

impl DropReason {
    fn is_malformed(self) -> bool {
        match self {
            Self::Malformed(_) => true,
            Self::UnknownOption
            | Self::UnknownEndpoint
            | Self::UnknownLocation
            | Self::UnknownPeer
            | Self::NotRestored
            | Self::UnknownAddress
            | Self::Proxied
            | Self::Unanswerable
            | Self::Overloaded
            | Self::ArbiterBusy
            | Self::MailboxFull
            | Self::OverRate(_) => false,
        }
    }
}

fn class_of(code: Code) -> usize {
    match code {
        Code::GET => GET,
        Code::POST => POST,
        Code::PUT => PUT,
        Code::DELETE => DELETE,
        Code::EMPTY => EMPTY,
        code => match code.class() {
            2 => SUCCESS,
            4 => CLIENT_ERROR,
            5 => SERVER_ERROR,
            _ => OTHER,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use protocol::coap::message::{Message, MessageId, MessageKind};
    use protocol::coap::token::Token;

    use super::*;
    use crate::dispatch::classify;
    use crate::peer::Peer;

    #[test]
    fn a_datagram_is_known_by_its_type_and_code() {
        let kinds = [
            (MessageKind::Confirmable, "CON"),
            (MessageKind::NonConfirmable, "NON"),
            (MessageKind::Acknowledgement, "ACK"),
        ];
        let codes = [
            (Code::GET, "GET"),
            (Code::DELETE, "DELETE"),
            (Code::FETCH, "other"),
            (Code::CREATED, "2.xx"),
            (Code::NOT_FOUND, "4.xx"),
            (Code::SERVICE_UNAVAILABLE, "5.xx"),
        ];
        for (kind, type_word) in kinds {
            for (code, code_word) in codes {
                let message = Message::request(kind, code, MessageId(1), Token::EMPTY);
                let form = DatagramForm::of(&message.encode());
                assert_eq!((form.kind(), form.code()), (type_word, code_word));
            }
        }
        let reset = DatagramForm::of(&Message::reset(MessageId(1)).encode());
        assert_eq!((reset.kind(), reset.code()), ("RST", "empty"));
    }

    #[test]
    fn a_datagram_that_is_not_a_message_has_no_type() {
        for bytes in [&b""[..], b"\xff", b"\xffnot CoAP", b"\x70\x01\x00\x01"] {
            let classified = classify(0, Peer::plain("10.0.0.1:5683".parse().unwrap()), bytes);
            let form = DatagramForm::received(bytes, &classified);
            assert_eq!((form.kind(), form.code()), ("none", "malformed"));
        }
    }

    #[test]
    fn bare_datagrams_have_a_form_of_their_own() {
        assert_eq!(
            (DatagramForm::BARE.kind(), DatagramForm::BARE.code()),
            ("none", "bare")
        );
        let places: BTreeSet<usize> = DatagramForm::all().map(DatagramForm::index).collect();
        assert_eq!(places.len(), DatagramForm::all().count());
        assert!(places.contains(&DatagramForm::BARE.index()));
        assert!(places.iter().all(|place| *place < DatagramForm::COUNT));
        assert!(DatagramForm::BARE.can_be_ours() && !DatagramForm::MALFORMED.can_be_ours());
        assert_eq!(DatagramForm::UNREAD.code(), "unread");
        assert!(!DatagramForm::UNREAD.can_be_ours());
    }

    #[test]
    fn every_possible_message_is_among_all_forms() {
        let all: Vec<DatagramForm> = DatagramForm::all().collect();
        let peer = Peer::plain("10.0.0.1:5683".parse().unwrap());
        for first in [0x40, 0x50, 0x60, 0x70] {
            for code in 0..=u8::MAX {
                let bytes = [first, code, 0, 1];
                let form = DatagramForm::received(&bytes, &classify(0, peer, &bytes));
                assert!(all.contains(&form), "{first:x} {code:x}");
            }
        }
    }
}
