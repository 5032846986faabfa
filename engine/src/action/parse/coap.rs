//! Is this a valid CoAP request to a device? Parses what a caller wrote (seed 4.2; RFC 7252 section
//! 5).

use std::num::NonZeroU16;

use protocol::base64_text::NotBase64;
use protocol::coap::uri::{InvalidPathAndQuery, PathAndQuery};

use super::RawField;
use crate::action::{CoapRequest, Content, ContentEncoding, Method};
use crate::limits::COAP_PATH_BYTES_MAX;

/// A fault in a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CoapFault {
    /// The path is invalid.
    #[error(transparent)]
    Path(#[from] InvalidPathAndQuery),
    /// The path is too long.
    #[error("must not be longer than {COAP_PATH_BYTES_MAX} bytes")]
    PathTooLong,
    /// The payload is declared as base64 but is not.
    #[error(transparent)]
    NotBase64(#[from] NotBase64),
    /// The payload is too long.
    #[error("must not be longer than {max} bytes")]
    PayloadTooLong {
        /// The longest payload, as it is written.
        max: usize,
    },
    /// There is a payload without an encoding.
    #[error("is required if there is a payload")]
    EncodingMissing,
    /// There is an encoding without a payload.
    #[error("is only allowed if there is a payload")]
    EncodingUnwanted,
}

/// The field that a fault is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CoapField {
    /// The path.
    Path,
    /// The payload.
    Payload,
    /// The encoding of the payload.
    Encoding,
}

impl CoapFault {
    /// The field that must change.
    pub fn part(self) -> CoapField {
        match self {
            Self::Path(_) | Self::PathTooLong => CoapField::Path,
            Self::NotBase64(_) | Self::PayloadTooLong { .. } => CoapField::Payload,
            Self::EncodingMissing | Self::EncodingUnwanted => CoapField::Encoding,
        }
    }
}

/// A request as a caller wrote it. Missing fields are already reported; the others are checked all
/// the same.
#[derive(Clone, Copy, Debug)]
pub struct CoapDraft<'a> {
    /// The method.
    pub method: Option<Method>,
    /// The port of the device.
    pub port: Option<NonZeroU16>,
    /// The path and query.
    pub path: Option<&'a str>,
    /// The payload.
    pub payload: RawField<&'a str>,
    /// The encoding of the payload.
    pub form: RawField<ContentEncoding>,
}

impl CoapDraft<'_> {
    /// Parses the request; the error has every fault of the fields that are there. `None` if a
    /// field is missing or unreadable. The payload has at most `payload_max` bytes, as it is
    /// written.
    pub fn read(self, payload_max: usize) -> Result<Option<CoapRequest>, Vec<CoapFault>> {
        match (self.target(), self.content(payload_max)) {
            (Ok(target), Ok(content)) => Ok(self.request(target, content)),
            (target, content) => Err(target.err().into_iter().chain(content.err()).collect()),
        }
    }

    fn request(
        &self,
        target: Option<PathAndQuery>,
        content: RawField<Content>,
    ) -> Option<CoapRequest> {
        let content = match content {
            RawField::Nothing => None,
            RawField::Value(content) => Some(content),
            RawField::Unreadable => return None,
        };
        Some(CoapRequest {
            method: self.method?,
            port: self.port?,
            target: target?,
            content,
        })
    }

    fn target(&self) -> Result<Option<PathAndQuery>, CoapFault> {
        match self.path {
            None => Ok(None),
            Some(path) if path.len() > COAP_PATH_BYTES_MAX => Err(CoapFault::PathTooLong),
            Some(path) => Ok(Some(PathAndQuery::parse(path)?)),
        }
    }

    fn content(&self, max: usize) -> Result<RawField<Content>, CoapFault> {
        match (self.payload, self.form) {
            (RawField::Value(text), _) if text.len() > max => {
                Err(CoapFault::PayloadTooLong { max })
            }
            (RawField::Value(text), RawField::Value(form)) => {
                Ok(RawField::Value(Content::parse(form, text)?))
            }
            (RawField::Value(_) | RawField::Unreadable, RawField::Nothing) => {
                Err(CoapFault::EncodingMissing)
            }
            (RawField::Nothing, RawField::Value(_)) => Err(CoapFault::EncodingUnwanted),
            (RawField::Nothing, RawField::Nothing) => Ok(RawField::Nothing),
            (RawField::Unreadable, _) | (_, RawField::Unreadable) => Ok(RawField::Unreadable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ContentEncoding::{Base64, String};

    const MAX: usize = 1_000;

    #[test]
    fn a_request_needs_no_payload() {
        for method in Method::ALL {
            let request = bare(method, "/a/b?c=d").read(MAX).unwrap().unwrap();
            assert_eq!(request.method, method);
            assert_eq!(request.target.as_str(), "/a/b?c=d");
            assert_eq!(request.port.get(), 5683);
            assert_eq!(request.content, None);
        }
    }

    #[test]
    fn a_request_of_any_method_may_have_a_payload() {
        for method in Method::ALL {
            for (form, text, bytes) in [
                (String, "on", "on".as_bytes()),
                (Base64, "AP8=", &[0, 255]),
                (String, "", &[]),
                (Base64, "", &[]),
            ] {
                let draft = with(RawField::Value(text), RawField::Value(form));
                let request = CoapDraft {
                    method: Some(method),
                    ..draft
                };
                let content = request.read(MAX).unwrap().unwrap().content.unwrap();
                assert_eq!(content.bytes(), bytes, "{method:?} {form:?} {text}");
            }
        }
    }

    #[test]
    fn a_path_is_absolute_and_of_at_most_255_bytes() {
        // Two arguments, each of which fits an option.
        let longest = format!("/a?{}&{}", "x".repeat(125), "y".repeat(126));
        assert_eq!(longest.len(), COAP_PATH_BYTES_MAX);
        let too_long = format!("{longest}y");
        assert!(bare(Method::Get, &longest).read(MAX).unwrap().is_some());
        assert!(bare(Method::Get, "/").read(MAX).unwrap().is_some());
        let cases = [
            ("", CoapFault::Path(InvalidPathAndQuery::NotAbsolute)),
            ("a", CoapFault::Path(InvalidPathAndQuery::NotAbsolute)),
            ("/a#b", CoapFault::Path(InvalidPathAndQuery::Fragment)),
            ("/%f", CoapFault::Path(InvalidPathAndQuery::PercentEncoding)),
            (&too_long, CoapFault::PathTooLong),
        ];
        for (path, fault) in cases {
            assert_eq!(
                bare(Method::Get, path).read(MAX),
                Err(vec![fault]),
                "{path}"
            );
            assert_eq!(fault.part(), CoapField::Path);
        }
    }

    #[test]
    fn a_payload_and_its_encoding_need_each_other() {
        let long = "x".repeat(MAX + 1);
        let not_base64 = CoapFault::NotBase64(NotBase64);
        let cases = [
            (
                RawField::Value("on!"),
                RawField::Value(Base64),
                not_base64,
                CoapField::Payload,
            ),
            (
                RawField::Value(long.as_str()),
                RawField::Value(String),
                CoapFault::PayloadTooLong { max: MAX },
                CoapField::Payload,
            ),
            (
                RawField::Value(long.as_str()),
                RawField::Unreadable,
                CoapFault::PayloadTooLong { max: MAX },
                CoapField::Payload,
            ),
            (
                RawField::Value("on"),
                RawField::Nothing,
                CoapFault::EncodingMissing,
                CoapField::Encoding,
            ),
            (
                RawField::Unreadable,
                RawField::Nothing,
                CoapFault::EncodingMissing,
                CoapField::Encoding,
            ),
            (
                RawField::Nothing,
                RawField::Value(String),
                CoapFault::EncodingUnwanted,
                CoapField::Encoding,
            ),
        ];
        for (payload, form, fault, part) in cases {
            assert_eq!(with(payload, form).read(MAX), Err(vec![fault]), "{form:?}");
            assert_eq!(fault.part(), part);
        }
        let fits = with(RawField::Value(&long[1..]), RawField::Value(String));
        assert!(fits.read(MAX).unwrap().is_some());
    }

    #[test]
    fn every_fault_is_reported_even_if_fields_are_missing() {
        let draft = CoapDraft {
            method: None,
            port: None,
            path: Some("a"),
            payload: RawField::Value("on"),
            form: RawField::Nothing,
        };
        let both = vec![
            CoapFault::Path(InvalidPathAndQuery::NotAbsolute),
            CoapFault::EncodingMissing,
        ];
        assert_eq!(draft.read(MAX), Err(both));
    }

    #[test]
    fn a_request_with_a_missing_or_unreadable_field_is_none() {
        let whole = with(RawField::Value("on"), RawField::Value(String));
        let parts = [
            CoapDraft {
                method: None,
                ..whole
            },
            CoapDraft {
                port: None,
                ..whole
            },
            CoapDraft {
                path: None,
                ..whole
            },
            with(RawField::Unreadable, RawField::Value(String)),
            with(RawField::Value("on"), RawField::Unreadable),
            with(RawField::Nothing, RawField::Unreadable),
        ];
        for draft in parts {
            assert_eq!(draft.read(MAX), Ok(None), "{draft:?}");
        }
    }

    fn bare(method: Method, path: &str) -> CoapDraft<'_> {
        CoapDraft {
            method: Some(method),
            port: NonZeroU16::new(5683),
            path: Some(path),
            payload: RawField::Nothing,
            form: RawField::Nothing,
        }
    }

    fn with<'a>(payload: RawField<&'a str>, form: RawField<ContentEncoding>) -> CoapDraft<'a> {
        CoapDraft {
            payload,
            form,
            ..bare(Method::Put, "/led")
        }
    }
}
