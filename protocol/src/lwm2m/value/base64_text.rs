//! How are bytes written as text? (RFC 4648 section 4, the standard alphabet)

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

// Unspecified (seed 2.1): whether padding is required. Text without it is unambiguous, and several
// languages write it so; what we write is always padded.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Writes bytes as padded base64.
pub(super) fn encode(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Reads base64, padded or not.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}
