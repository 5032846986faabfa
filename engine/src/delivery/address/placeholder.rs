//! What stands for a device in a URL or in a header, and what is it replaced with for an event?

use std::fmt::Write;

use crate::event::DeviceInfo;

/// What is known of a device that may be stood for.
type KnownFields = fn(&DeviceInfo) -> Option<String>;

const PLACEHOLDERS: [(&str, KnownFields); 4] = [
    (":deviceId:", |speaker| Some(speaker.device.to_string())),
    (":iccid:", |speaker| Some(speaker.iccid.to_string())),
    (":imsi:", |speaker| {
        speaker.imsi.as_ref().map(ToString::to_string)
    }),
    (":ip:", |speaker| speaker.ip.map(|ip| ip.to_string())),
];

/// Stands where nothing is known.
const UNKNOWN: &str = "none";

/// The text with all that stands for a device replaced; what a device is called is not looked
/// through again.
pub(super) fn fill(text: &str, speaker: Option<&DeviceInfo>, write: fn(&str) -> String) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(':') {
        let (before, behind) = rest.split_at(at);
        filled.push_str(before);
        let found = PLACEHOLDERS
            .iter()
            .find_map(|(word, known)| Some((behind.strip_prefix(word)?, known)));
        rest = match found {
            Some((behind, known)) => {
                let known = speaker.and_then(known);
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

/// How it is written in a URL: nothing in it means anything there (RFC 3986 section 2.3).
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

/// How it is written in a header: as it is, for what names a device is ASCII without spaces.
pub(super) fn in_header(known: &str) -> String {
    known.to_owned()
}
