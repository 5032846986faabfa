//! Which headers may a customer have sent with each event? Those that say something of the caller
//! or the message, not those by which HTTP itself works.

use super::placeholder;
use crate::event::DeviceInfo;
use crate::limits::{WEBHOOK_HEADER_BYTES_MAX, WEBHOOK_HEADERS_BYTES_MAX, WEBHOOK_HEADERS_MAX};

/// What the service or HTTP itself says, in small letters: a customer that could say it too would
/// change where a message begins and ends (RFC 9110, RFC 9112), or say that it came signed.
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
/// How those begin that are reserved whatever they end with.
const RESERVED_BEGINNINGS: [&str; 2] = ["proxy-", "webhook-"];

/// Headers of a customer, with what stands for a device in their values.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Headers(Vec<(Box<str>, Box<str>)>);

/// Why headers cannot be sent.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum HeaderFault {
    /// There are more than may be.
    #[error("must not have more than {max} headers")]
    TooMany {
        /// How many there may be.
        max: usize,
    },
    /// They are longer together than they may be.
    #[error("must not be longer than {max} bytes in total")]
    TooLarge {
        /// The longest that would do.
        max: usize,
    },
    /// A name is none.
    #[error("{0:?} is not a valid header name")]
    Name(String),
    /// A header is said by the service itself.
    #[error("{0:?} is a reserved header name")]
    Reserved(String),
    /// A header is there twice.
    #[error("{0:?} must be given only once")]
    Twice(String),
    /// A value has a character that none may have.
    #[error("the value of {0:?} must be printable ASCII")]
    Value(String),
    /// A header is longer than it may be.
    #[error("{name:?} must not be longer than {max} bytes")]
    TooLong {
        /// Which it is.
        name: String,
        /// The longest that would do.
        max: usize,
    },
}

impl Headers {
    /// Reads them, name and value; the error says what is wrong with the first that cannot be.
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

    /// Each name and value, as given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// The headers for an event of this device, or for what no device said.
    pub fn of(&self, speaker: Option<&DeviceInfo>) -> Vec<(String, String)> {
        let filled = |value| placeholder::fill(value, speaker, placeholder::in_header);
        self.iter()
            .map(|(name, value)| (name.to_owned(), filled(value)))
            .collect()
    }
}

fn check(name: &str, value: &str) -> Result<(), HeaderFault> {
    let owned = || {
        // What is no name may be anything, of any length.
        name.chars().take(64).collect::<String>()
    };
    if name.len().saturating_add(value.len()) > WEBHOOK_HEADER_BYTES_MAX {
        return Err(HeaderFault::TooLong {
            name: owned(),
            max: WEBHOOK_HEADER_BYTES_MAX,
        });
    }
    if name.is_empty() || !name.bytes().all(is_of_token) {
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
    let begins = |beginning: &&str| name.starts_with(*beginning);
    RESERVED.contains(&name.as_str()) || RESERVED_BEGINNINGS.iter().any(begins)
}

/// What a name is made of (RFC 9110 section 5.6.2).
fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{full, sparse};
    use super::*;

    #[test]
    fn a_header_may_say_what_http_does_not() {
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
        for (name, value, said) in [
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
            assert_eq!(fault.to_string(), said);
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
    fn what_stands_for_a_device_is_replaced_in_values_alone() {
        let headers = Headers::parse([("x-who", ":deviceId:/:iccid: :imsi: :ip:")]).unwrap();
        let expected = |value: &str| vec![("x-who".to_owned(), value.to_owned())];
        let said = "urn:dev:1/8988228066600000001 001010000000001 2001:db8::7";
        assert_eq!(headers.of(Some(&full())), expected(said));
        assert_eq!(headers.of(Some(&sparse())), expected("a/a none none"));
        assert_eq!(headers.of(None), expected("none/none none none"));
    }
}
