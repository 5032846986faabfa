//! How are bytes encoded as text? (RFC 4648 section 4, the standard alphabet)

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use thiserror::Error;

/// The text is not base64.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("is not valid base64")]
pub struct NotBase64;

/// Writes bytes as padded base64.
pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Reads base64, padded in full or not at all.
// Unspecified (seed 2.1): whether padding is required. Text without any is unambiguous, and several
// languages write it so; text with half of it was damaged on its way.
pub fn decode(text: &str) -> Result<Vec<u8>, NotBase64> {
    let engine = if text.ends_with('=') {
        STANDARD
    } else {
        STANDARD_NO_PAD
    };
    engine.decode(text).map_err(|_| NotBase64)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{NotBase64, decode, encode};

    #[test]
    fn padding_is_optional() {
        for (text, bytes) in [
            ("", &[][..]),
            ("AQ==", &[1]),
            ("AQ", &[1]),
            ("AQI=", &[1, 2]),
            ("AQI", &[1, 2]),
            ("+/8=", &[0xfb, 0xff]),
        ] {
            assert_eq!(decode(text), Ok(bytes.to_vec()), "{text}");
        }
    }

    #[test]
    fn a_text_that_is_not_base64_is_refused() {
        for text in [
            "A", "AQ=", "AQI==", "-_8=", "A Q=", "AQ==\n", "AR==", "=", "====",
        ] {
            assert_eq!(decode(text), Err(NotBase64), "{text}");
        }
        assert_eq!(NotBase64.to_string(), "is not valid base64");
    }

    proptest! {
        #[test]
        fn any_bytes_survive_with_and_without_padding(bytes in vec(any::<u8>(), 0..64)) {
            let text = encode(&bytes);
            prop_assert_eq!(decode(text.trim_end_matches('=')), Ok(bytes.clone()));
            prop_assert_eq!(decode(&text), Ok(bytes));
        }
    }
}
