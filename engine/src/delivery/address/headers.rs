//! Which headers may a customer add to each event? Those about the sender or the message, not those
//! that HTTP itself relies on.

use super::placeholder;
use crate::event::DeviceInfo;
use crate::limits::{WEBHOOK_HEADER_BYTES_MAX, WEBHOOK_HEADERS_BYTES_MAX, WEBHOOK_HEADERS_MAX};

/// Headers that the service or HTTP itself sets, in lower case. A customer that could set them
/// would change where a message begins and ends (RFC 9110, RFC 9112), or fake a signature.
const RESERVED: [&str; 10] = [
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Prefixes of reserved headers.
const RESERVED_PREFIXES: [&str; 2] = ["proxy-", "webhook-"];

/// Headers of a customer, with placeholders for a device in their values.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Headers(Vec<(Box<str>, Box<str>)>);

/// Why headers are refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum HeaderFault {
    /// There are too many.
    #[error("must not have more than {max} headers")]
    TooMany {
        /// The most allowed.
        max: usize,
    },
    /// They are too long in total.
    #[error("must not be longer than {max} bytes in total")]
    TooLarge {
        /// The longest allowed.
        max: usize,
    },
    /// A name is invalid.
    #[error("{0:?} is not a valid header name")]
    Name(String),
    /// A header is reserved.
    #[error("{0:?} is a reserved header name")]
    Reserved(String),
    /// A header occurs twice.
    #[error("{0:?} must be given only once")]
    Twice(String),
    /// A value has a character that is not allowed.
    #[error("the value of {0:?} must be printable ASCII")]
    Value(String),
    /// A header is too long.
    #[error("{name:?} must not be longer than {max} bytes")]
    TooLong {
        /// Its name.
        name: String,
        /// The longest allowed.
        max: usize,
    },
}

impl Headers {
    /// Parses pairs of name and value; the error is about the first invalid one.
    pub fn parse<'a>(
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, HeaderFault> {
        let mut headers = Self::default();
        let mut bytes = 0_usize;
        for (name, value) in given {
            check(name, value)?;
            bytes = bytes.saturating_add(name.len() + value.len());
            if headers
                .iter()
                .any(|(other, _)| other.eq_ignore_ascii_case(name))
            {
                return Err(HeaderFault::Twice(name.to_owned()));
            }
            if headers.0.len() == WEBHOOK_HEADERS_MAX {
                let max = WEBHOOK_HEADERS_MAX;
                return Err(HeaderFault::TooMany { max });
            }
            if bytes > WEBHOOK_HEADERS_BYTES_MAX {
                let max = WEBHOOK_HEADERS_BYTES_MAX;
                return Err(HeaderFault::TooLarge { max });
            }
            headers.0.push((name.into(), value.into()));
        }
        Ok(headers)
    }

    /// Each name and value, with its placeholders.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// The headers for an event of this device, or for an event without a device.
    pub fn of(&self, device: Option<&DeviceInfo>) -> Vec<(String, String)> {
        let filled = |value| placeholder::fill(value, device, placeholder::in_header);
        self.iter()
            .map(|(name, value)| (name.to_owned(), filled(value)))
            .collect()
    }
}

fn check(name: &str, value: &str) -> Result<(), HeaderFault> {
    let owned = || {
        // An invalid name may have any length.
        name.chars().take(64).collect::<String>()
    };
    if name.len().saturating_add(value.len()) > WEBHOOK_HEADER_BYTES_MAX {
        return Err(HeaderFault::TooLong {
            name: owned(),
            max: WEBHOOK_HEADER_BYTES_MAX,
        });
    }
    if name.is_empty() || !name.bytes().all(is_token_character) {
        return Err(HeaderFault::Name(owned()));
    }
    if is_reserved(name) {
        return Err(HeaderFault::Reserved(owned()));
    }
    if !value
        .bytes()
        .all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
    {
        return Err(HeaderFault::Value(owned()));
    }
    Ok(())
}

fn is_reserved(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let has_prefix = |prefix: &&str| name.starts_with(*prefix);
    RESERVED.contains(&name.as_str()) || RESERVED_PREFIXES.iter().any(has_prefix)
}

/// The characters of a name (RFC 9110 section 5.6.2).
fn is_token_character(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{full, sparse};
    use super::*;

    #[test]
    fn a_header_that_http_does_not_rely_on_is_allowed() {
        for (name, value) in [
            ("authorization", "Bearer abc.def"),
            ("X-Device", ":iccid:"),
            ("content-type", "application/cloudevents+json"),
            ("user-agent", "mine"),
            ("x-empty", ""),
            ("x-tab", "a\tb"),
            ("webhook", "x"),
        ] {
            assert!(Headers::parse([(name, value)]).is_ok(), "{name}: {value:?}");
        }
    }

    #[test]
    fn a_header_that_cannot_be_sent_is_refused_with_its_reason() {
        let long = "x".repeat(WEBHOOK_HEADER_BYTES_MAX);
        for (name, value, expected_text) in [
            ("", "x", r#""" is not a valid header name"#),
            ("x y", "x", r#""x y" is not a valid header name"#),
            ("x:", "x", r#""x:" is not a valid header name"#),
            ("x\r\ny", "x", r#""x\r\ny" is not a valid header name"#),
            ("ü", "x", r#""ü" is not a valid header name"#),
            ("Host", "x", r#""Host" is a reserved header name"#),
            (
                "Content-Length",
                "9",
                r#""Content-Length" is a reserved header name"#,
            ),
            (
                "webhook-id",
                "x",
                r#""webhook-id" is a reserved header name"#,
            ),
            (
                "Proxy-Authorization",
                "x",
                r#""Proxy-Authorization" is a reserved header name"#,
            ),
            (
                "x",
                "a\r\nhost: b",
                r#"the value of "x" must be printable ASCII"#,
            ),
            ("x", "a\0", r#"the value of "x" must be printable ASCII"#),
            ("x", "ü", r#"the value of "x" must be printable ASCII"#),
            ("x", &long, r#""x" must not be longer than 4096 bytes"#),
        ] {
            let fault = Headers::parse([(name, value)]).unwrap_err();
            assert_eq!(fault.to_string(), expected_text);
        }
        for name in RESERVED {
            let fault = Headers::parse([(name, "x")]).unwrap_err();
            assert_eq!(fault, HeaderFault::Reserved(name.to_owned()));
        }
    }

    #[test]
    fn headers_have_their_bounds() {
        let names: Vec<String> = (0..=WEBHOOK_HEADERS_MAX)
            .map(|n| format!("x-{n}"))
            .collect();
        let pairs = |count| names.iter().take(count).map(|name| (name.as_str(), "x"));
        assert!(Headers::parse(pairs(WEBHOOK_HEADERS_MAX)).is_ok());
        assert_eq!(
            Headers::parse(pairs(WEBHOOK_HEADERS_MAX + 1)),
            Err(HeaderFault::TooMany { max: 20 })
        );
        assert_eq!(
            Headers::parse([("X-A", "1"), ("x-a", "2")]),
            Err(HeaderFault::Twice("x-a".to_owned()))
        );
        let long = "x".repeat(4_000);
        assert_eq!(
            Headers::parse([("a", &*long), ("b", &long), ("c", &long)]),
            Err(HeaderFault::TooLarge { max: 8_192 })
        );
    }

    #[test]
    fn placeholders_are_replaced_in_values_alone() {
        let headers = Headers::parse([("x-who", ":deviceId:/:iccid: :imsi: :ip:")]).unwrap();
        let expected = |value: &str| vec![("x-who".to_owned(), value.to_owned())];
        let expected_text = "urn:dev:1/8988228066600000001 001010000000001 2001:db8::7";
        assert_eq!(headers.of(Some(&full())), expected(expected_text));
        assert_eq!(headers.of(Some(&sparse())), expected("a/a none none"));
        assert_eq!(headers.of(None), expected("none/none none none"));
    }
}
