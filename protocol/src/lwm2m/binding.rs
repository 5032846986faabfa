//! Over which transports can a device be reached, and does it sleep? (LwM2M Core 1.1 section
//! 6.2.1.2)

use std::fmt;

/// How a device can be reached: over at least one transport, with queue mode or without.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Binding(u8);

/// One transport over which a device can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// UDP, letter U.
    Udp,
    /// MQTT, letter M.
    Mqtt,
    /// HTTP, letter H.
    Http,
    /// TCP, letter T.
    Tcp,
    /// SMS, letter S.
    Sms,
    /// Non-IP, letter N.
    NonIp,
}

const TRANSPORTS: [Transport; 6] = [
    Transport::Udp,
    Transport::Mqtt,
    Transport::Http,
    Transport::Tcp,
    Transport::Sms,
    Transport::NonIp,
];

const QUEUE_MODE_BIT: u8 = 1 << 7;

impl Binding {
    /// UDP without queue mode: the default for a device without the parameter.
    pub const UDP: Self = Self(Transport::Udp.bit());

    /// Reads letters in any order; queue mode alone means queue mode over UDP.
    pub fn parse(letters: &str) -> Option<Self> {
        let mut bits = 0;
        for letter in letters.chars() {
            bits |= match letter {
                'Q' => QUEUE_MODE_BIT,
                other => TRANSPORTS
                    .into_iter()
                    .find(|known| known.letter() == other)?
                    .bit(),
            };
        }
        match bits {
            0 => None,
            QUEUE_MODE_BIT => Some(Self::UDP.with_queue_mode()),
            some => Some(Self(some)),
        }
    }

    /// Adds a transport.
    pub const fn with(self, transport: Transport) -> Self {
        Self(self.0 | transport.bit())
    }

    /// Adds queue mode.
    pub const fn with_queue_mode(self) -> Self {
        Self(self.0 | QUEUE_MODE_BIT)
    }

    /// Removes queue mode.
    pub const fn without_queue_mode(self) -> Self {
        Self(self.0 & !QUEUE_MODE_BIT)
    }

    /// Returns whether the device can be reached over a transport.
    pub const fn supports(self, transport: Transport) -> bool {
        self.0 & transport.bit() != 0
    }

    /// Returns whether the device sleeps and is sent requests only when it has just been seen.
    pub const fn queue_mode(self) -> bool {
        self.0 & QUEUE_MODE_BIT != 0
    }
}

impl Transport {
    const fn bit(self) -> u8 {
        1 << self as u8
    }

    const fn letter(self) -> char {
        match self {
            Self::Udp => 'U',
            Self::Mqtt => 'M',
            Self::Http => 'H',
            Self::Tcp => 'T',
            Self::Sms => 'S',
            Self::NonIp => 'N',
        }
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let supported = TRANSPORTS
            .into_iter()
            .filter(|transport| self.supports(*transport));
        let queue_mode = self.queue_mode().then_some('Q');
        supported
            .map(Transport::letter)
            .chain(queue_mode)
            .try_for_each(|letter| fmt::Write::write_char(f, letter))
    }
}

impl fmt::Debug for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Binding({self})")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::{Binding, Transport};

    #[test]
    fn letters_name_transports_in_any_order() {
        for (letters, shown) in [
            ("U", "U"),
            ("UQ", "UQ"),
            ("QU", "UQ"),
            ("TU", "UT"),
            ("SN", "SN"),
        ] {
            assert_eq!(Binding::parse(letters).unwrap().to_string(), shown);
        }
        let both = Binding::parse("UT").unwrap();
        assert!(both.supports(Transport::Udp) && both.supports(Transport::Tcp));
        assert!(!both.supports(Transport::Sms) && !both.queue_mode());
    }

    #[test]
    fn queue_mode_alone_is_that_over_udp() {
        assert_eq!(Binding::parse("Q"), Some(Binding::UDP.with_queue_mode()));
        assert_eq!(
            Binding::parse("UQ").unwrap().without_queue_mode(),
            Binding::UDP
        );
    }

    #[test]
    fn a_letter_that_is_no_transport_is_refused() {
        for letters in ["", "u", "X", "U Q", "U,Q"] {
            assert_eq!(Binding::parse(letters), None, "{letters:?}");
        }
    }

    proptest! {
        #[test]
        fn every_binding_survives_its_letters(letters in "[UMHTSNQ]{1,8}") {
            let binding = Binding::parse(&letters).unwrap();
            prop_assert_eq!(Binding::parse(&binding.to_string()), Some(binding));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,8}") {
            let _ = Binding::parse(&text);
        }
    }
}
