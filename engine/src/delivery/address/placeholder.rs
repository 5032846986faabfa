//! Which placeholders may a URL or a header have, and what replaces them for an event?

use std::fmt::Write;

use crate::event::DeviceInfo;

/// Reads the value of a placeholder, if it is known.
type ReadField = fn(&DeviceInfo) -> Option<String>;

const PLACEHOLDERS: [(&str, ReadField); 4] = [
    (":deviceId:", |device| Some(device.device.to_string())),
    (":iccid:", |device| Some(device.iccid.to_string())),
    (":imsi:", |device| {
        device.imsi.as_ref().map(ToString::to_string)
    }),
    (":ip:", |device| device.ip.map(|ip| ip.to_string())),
];

/// Replaces a placeholder whose value is not known.
const UNKNOWN: &str = "none";

/// The text with all placeholders replaced; the values themselves are not searched for
/// placeholders.
pub(super) fn fill(text: &str, device: Option<&DeviceInfo>, write: fn(&str) -> String) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(':') {
        let (before, behind) = rest.split_at(at);
        filled.push_str(before);
        let found = PLACEHOLDERS
            .iter()
            .find_map(|(word, read)| Some((behind.strip_prefix(word)?, read)));
        rest = match found {
            Some((behind, read)) => {
                let known = device.and_then(read);
                filled.push_str(&write(known.as_deref().unwrap_or(UNKNOWN)));
                behind
            }
            None => {
                filled.push(':');
                behind.strip_prefix(':').unwrap_or(behind)
            }
        };
    }
    filled.push_str(rest);
    filled
}

/// Percent-encodes a value for a URL, all but unreserved characters (RFC 3986 section 2.3).
pub(super) fn in_url(known: &str) -> String {
    let mut written = String::with_capacity(known.len());
    for byte in known.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            written.push(char::from(byte));
        } else {
            write!(written, "%{byte:02X}").expect("a string takes all that is written");
        }
    }
    written
}

/// A value for a header: unchanged, because the identifiers of a device are ASCII without spaces.
pub(super) fn in_header(known: &str) -> String {
    known.to_owned()
}
