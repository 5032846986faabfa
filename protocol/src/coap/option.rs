//! Which options are there, and how are they used? RFC 7252 sections 5.4 and 5.10, with the options
//! of RFC 7641, 7959, 7967, 8613, 8768, 9175, 9177 and 9668.

/// If-Match.
pub const IF_MATCH: u16 = 1;
/// Uri-Host.
pub const URI_HOST: u16 = 3;
/// ETag.
pub const ETAG: u16 = 4;
/// If-None-Match.
pub const IF_NONE_MATCH: u16 = 5;
/// Observe.
pub const OBSERVE: u16 = 6;
/// Uri-Port.
pub const URI_PORT: u16 = 7;
/// Location-Path.
pub const LOCATION_PATH: u16 = 8;
/// OSCORE.
pub const OSCORE: u16 = 9;
/// Uri-Path.
pub const URI_PATH: u16 = 11;
/// Content-Format.
pub const CONTENT_FORMAT: u16 = 12;
/// Max-Age.
pub const MAX_AGE: u16 = 14;
/// Uri-Query.
pub const URI_QUERY: u16 = 15;
/// Hop-Limit.
pub const HOP_LIMIT: u16 = 16;
/// Accept.
pub const ACCEPT: u16 = 17;
/// Q-Block1.
pub const Q_BLOCK1: u16 = 19;
/// Location-Query.
pub const LOCATION_QUERY: u16 = 20;
/// EDHOC.
pub const EDHOC: u16 = 21;
/// Block2.
pub const BLOCK2: u16 = 23;
/// Block1.
pub const BLOCK1: u16 = 27;
/// Size2.
pub const SIZE2: u16 = 28;
/// Q-Block2.
pub const Q_BLOCK2: u16 = 31;
/// Proxy-Uri.
pub const PROXY_URI: u16 = 35;
/// Proxy-Scheme.
pub const PROXY_SCHEME: u16 = 39;
/// Size1.
pub const SIZE1: u16 = 60;
/// Echo.
pub const ECHO: u16 = 252;
/// No-Response.
pub const NO_RESPONSE: u16 = 258;
/// Request-Tag.
pub const REQUEST_TAG: u16 = 292;

/// Returns whether a receiver that does not understand the option must refuse the message.
pub const fn is_critical(number: u16) -> bool {
    number & 1 == 1
}

/// Reads a value of up to 4 bytes as a number (RFC 7252 section 3.2).
pub(super) fn number_from(value: &[u8]) -> u32 {
    value
        .iter()
        .fold(0, |number, byte| number << 8 | u32::from(*byte))
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Format {
    Bytes,
    Text,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Repeats {
    Freely,
    Never,
}

/// How RFC 7252 section 5.10 and its successors define an option.
pub(super) struct OptionDefinition {
    bytes_min: usize,
    bytes_max: usize,
    format: Format,
    repeats: Repeats,
}

impl OptionDefinition {
    /// Returns the definition of an option. Options that are not defined here may have any value,
    /// any number of times.
    pub(super) fn of(number: u16) -> Option<OptionDefinition> {
        use Format::{Bytes, Text};
        use Repeats::{Freely, Never};
        let (bytes_min, bytes_max, format, repeats) = match number {
            IF_MATCH | REQUEST_TAG => (0, 8, Bytes, Freely),
            ETAG => (1, 8, Bytes, Freely),
            LOCATION_PATH | URI_PATH | URI_QUERY | LOCATION_QUERY => (0, 255, Text, Freely),
            URI_HOST | PROXY_SCHEME => (1, 255, Text, Never),
            PROXY_URI => (1, 1034, Text, Never),
            IF_NONE_MATCH | EDHOC => (0, 0, Bytes, Never),
            NO_RESPONSE => (0, 1, Bytes, Never),
            HOP_LIMIT => (1, 1, Bytes, Never),
            URI_PORT | CONTENT_FORMAT | ACCEPT => (0, 2, Bytes, Never),
            OBSERVE | BLOCK1 | BLOCK2 | Q_BLOCK1 => (0, 3, Bytes, Never),
            Q_BLOCK2 => (0, 3, Bytes, Freely),
            MAX_AGE | SIZE1 | SIZE2 => (0, 4, Bytes, Never),
            ECHO => (1, 40, Bytes, Never),
            OSCORE => (0, 255, Bytes, Never),
            _ => return None,
        };
        Some(OptionDefinition {
            bytes_min,
            bytes_max,
            format,
            repeats,
        })
    }

    /// Returns whether an option may have the value.
    pub(super) fn allows(&self, value: &[u8]) -> bool {
        (self.bytes_min..=self.bytes_max).contains(&value.len())
            && (self.format == Format::Bytes || is_text(value))
    }

    /// Returns whether a message may carry the option more than once.
    pub(super) fn may_repeat(&self) -> bool {
        self.repeats == Repeats::Freely
    }
}

// Nearly all text is ASCII, which is checked in a fraction of the time.
fn is_text(value: &[u8]) -> bool {
    value.is_ascii() || std::str::from_utf8(value).is_ok()
}
