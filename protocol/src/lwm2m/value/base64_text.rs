//! How are bytes encoded as text? (RFC 4648 section 4, the standard alphabet)

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

/// Writes bytes as padded base64.
pub(super) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Reads base64, padded in full or not at all.
// Unspecified (seed 2.1): whether padding is required. Text without any is unambiguous, and several
// languages write it so; text with half of it was damaged on its way.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let engine = if text.ends_with('=') {
        STANDARD
    } else {
        STANDARD_NO_PAD
    };
    engine.decode(text).ok()
}
