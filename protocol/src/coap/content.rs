//! Which format is a payload in? The Content-Format numbers of the CoAP registry (RFC 7252 section
//! 12.3) that LwM2M uses.

use std::fmt;

/// A Content-Format number, as carried by the Content-Format and Accept options.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ContentFormat(pub u16);

impl ContentFormat {
    /// `text/plain; charset=utf-8`.
    pub const TEXT: ContentFormat = ContentFormat(0);
    /// `application/link-format` (RFC 6690).
    pub const LINK_FORMAT: ContentFormat = ContentFormat(40);
    /// `application/xml`.
    pub const XML: ContentFormat = ContentFormat(41);
    /// `application/octet-stream`.
    pub const OCTET_STREAM: ContentFormat = ContentFormat(42);
    /// `application/json`.
    pub const JSON: ContentFormat = ContentFormat(50);
    /// `application/cbor`.
    pub const CBOR: ContentFormat = ContentFormat(60);
    /// `application/senml+json` (RFC 8428).
    pub const SENML_JSON: ContentFormat = ContentFormat(110);
    /// `application/senml+cbor` (RFC 8428).
    pub const SENML_CBOR: ContentFormat = ContentFormat(112);
    /// LwM2M text as numbered by drafts of LwM2M 1.0.
    pub const LEGACY_TEXT: ContentFormat = ContentFormat(1541);
    /// LwM2M TLV as numbered by drafts of LwM2M 1.0.
    pub const LEGACY_TLV: ContentFormat = ContentFormat(1542);
    /// LwM2M JSON as numbered by drafts of LwM2M 1.0.
    pub const LEGACY_JSON: ContentFormat = ContentFormat(1543);
    /// `application/vnd.oma.lwm2m+tlv`.
    pub const LWM2M_TLV: ContentFormat = ContentFormat(11542);
    /// `application/vnd.oma.lwm2m+json`.
    pub const LWM2M_JSON: ContentFormat = ContentFormat(11543);
    /// `application/vnd.oma.lwm2m+cbor`.
    pub const LWM2M_CBOR: ContentFormat = ContentFormat(11544);

    /// Returns whether a payload in the format is text: a media type of text, of JSON or of XML.
    pub fn is_printable(self) -> bool {
        PRINTABLE.contains(&self.0)
    }
}

/// The formats of the registry that are text, or end in `+json` or `+xml`, with the numbers that
/// drafts of LwM2M used. Compressed formats are not among them.
const PRINTABLE: [u16; 19] = [
    0, 40, 41, 50, 51, 52, 110, 111, 256, 310, 311, 320, 432, 433, 1541, 1543, 11543, 20000, 30000,
];

impl fmt::Display for ContentFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
