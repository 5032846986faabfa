//! What do both sides tell each other about errors? Alerts: RFC 5246 section 7.2.

use std::fmt;

use crate::presentation::Malformed;

const WARNING: u8 = 1;
const FATAL: u8 = 2;

/// The kind of an alert, as IANA numbers it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct AlertDescription(pub u8);

impl AlertDescription {
    /// The peer ends the session in order.
    pub const CLOSE_NOTIFY: Self = Self(0);
    /// A message came that is out of place.
    pub const UNEXPECTED_MESSAGE: Self = Self(10);
    /// No parameters that both sides accept.
    pub const HANDSHAKE_FAILURE: Self = Self(40);
    /// A certificate is not acceptable for a reason without a number of its own.
    pub const BAD_CERTIFICATE: Self = Self(42);
    /// A kind of certificate that is not supported (RFC 7250 section 4.2).
    pub const UNSUPPORTED_CERTIFICATE: Self = Self(43);
    /// A field is inconsistent with others.
    pub const ILLEGAL_PARAMETER: Self = Self(47);
    /// The peer is authenticated, and not admitted.
    pub const ACCESS_DENIED: Self = Self(49);
    /// A message does not have the form that the standard describes.
    pub const DECODE_ERROR: Self = Self(50);
    /// A signature or a Finished is wrong: the keys of both sides differ.
    pub const DECRYPT_ERROR: Self = Self(51);
    /// The version is too old.
    pub const PROTOCOL_VERSION: Self = Self(70);
    /// The parameters are less secure than required.
    pub const INSUFFICIENT_SECURITY: Self = Self(71);
    /// A fault of the sender itself.
    pub const INTERNAL_ERROR: Self = Self(80);
    /// A handshake is given up for a reason that is no error.
    pub const USER_CANCELED: Self = Self(90);
    /// A renegotiation is refused; the session goes on.
    pub const NO_RENEGOTIATION: Self = Self(100);
    /// An extension that was not offered (RFC 5246 section 7.2.2).
    pub const UNSUPPORTED_EXTENSION: Self = Self(110);
    /// Nobody has this identity of a pre-shared key (RFC 4279 section 2).
    pub const UNKNOWN_PSK_IDENTITY: Self = Self(115);
}

/// An alert as it is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Alert {
    level: u8,
    pub(crate) description: AlertDescription,
}

impl Alert {
    pub(crate) const fn fatal(description: AlertDescription) -> Self {
        Self {
            level: FATAL,
            description,
        }
    }

    pub(crate) const fn warning(description: AlertDescription) -> Self {
        Self {
            level: WARNING,
            description,
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        match bytes {
            [level @ (WARNING | FATAL), description] => Ok(Self {
                level: *level,
                description: AlertDescription(*description),
            }),
            _ => Err(Malformed),
        }
    }

    pub(crate) fn encode(self) -> [u8; 2] {
        [self.level, self.description.0]
    }

    /// Whether the session ends with it.
    pub(crate) fn ends_session(self) -> bool {
        self.level == FATAL || self.description == AlertDescription::CLOSE_NOTIFY
    }
}

impl fmt::Display for AlertDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match *self {
            Self::CLOSE_NOTIFY => "close_notify",
            Self::UNEXPECTED_MESSAGE => "unexpected_message",
            Self::HANDSHAKE_FAILURE => "handshake_failure",
            Self::BAD_CERTIFICATE => "bad_certificate",
            Self::UNSUPPORTED_CERTIFICATE => "unsupported_certificate",
            Self::ILLEGAL_PARAMETER => "illegal_parameter",
            Self::ACCESS_DENIED => "access_denied",
            Self::DECODE_ERROR => "decode_error",
            Self::DECRYPT_ERROR => "decrypt_error",
            Self::PROTOCOL_VERSION => "protocol_version",
            Self::INSUFFICIENT_SECURITY => "insufficient_security",
            Self::INTERNAL_ERROR => "internal_error",
            Self::USER_CANCELED => "user_canceled",
            Self::NO_RENEGOTIATION => "no_renegotiation",
            Self::UNSUPPORTED_EXTENSION => "unsupported_extension",
            Self::UNKNOWN_PSK_IDENTITY => "unknown_psk_identity",
            Self(number) => return write!(f, "alert {number}"),
        };
        f.write_str(name)
    }
}
