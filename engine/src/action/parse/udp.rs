//! Is this a valid bare datagram? Parses what a caller wrote (seed 4.2).

use std::num::NonZeroU16;

use protocol::base64_text::NotBase64;

use crate::action::{Content, ContentEncoding, UdpRequest};

/// A fault in the payload of a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum UdpFault {
    /// It is declared as base64 but is not.
    #[error(transparent)]
    NotBase64(#[from] NotBase64),
    /// It is empty.
    // Unspecified (seed 4.2): whether a payload may be empty. Most devices do not notice an empty
    // datagram, and the request would still succeed.
    #[error("must not be empty")]
    Empty,
    /// It does not fit one datagram.
    #[error("must not be longer than {max} bytes when decoded")]
    TooLong {
        /// The most allowed.
        max: usize,
    },
}

/// A datagram as a caller wrote it. Fields that are missing or unreadable are already reported; the
/// others are checked all the same.
#[derive(Clone, Copy, Debug)]
pub struct UdpDraft<'a> {
    /// The payload.
    pub payload: Option<&'a str>,
    /// The encoding of the payload.
    pub form: Option<ContentEncoding>,
    /// The port of the device.
    pub port: Option<NonZeroU16>,
}

impl UdpDraft<'_> {
    /// Parses the request, whose payload has at most `bytes_max` bytes. `None` if a field is
    /// missing or unreadable.
    pub fn read(self, bytes_max: usize) -> Result<Option<UdpRequest>, UdpFault> {
        let content = self.content(bytes_max)?;
        let parts = content.zip(self.port);
        Ok(parts.map(|(content, port)| UdpRequest { content, port }))
    }

    fn content(&self, bytes_max: usize) -> Result<Option<Content>, UdpFault> {
        if self.payload.is_some_and(str::is_empty) {
            return Err(UdpFault::Empty);
        }
        let Some((text, form)) = self.payload.zip(self.form) else {
            return Ok(None);
        };
        let content = Content::parse(form, text)?;
        if content.bytes().len() > bytes_max {
            return Err(UdpFault::TooLong { max: bytes_max });
        }
        Ok(Some(content))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ContentEncoding::{Base64, String};

    const MAX: usize = 6;

    #[test]
    fn a_payload_and_a_port_are_a_datagram() {
        for (form, text, bytes) in [
            (String, "on", "on".as_bytes()),
            (String, "ünï", "ünï".as_bytes()),
            (String, "b24=", b"b24="),
            (Base64, "b24=", b"on"),
            (Base64, "b24", b"on"),
            (Base64, "AP8=", &[0, 255]),
        ] {
            let request = draft(form, text).read(MAX).unwrap().unwrap();
            assert_eq!(request.content.bytes(), bytes, "{form:?} {text}");
            assert_eq!(request.content.text(), text);
            assert_eq!(request.port.get(), 4445);
        }
    }

    #[test]
    fn the_length_is_that_of_the_decoded_bytes() {
        let too_long = Err(UdpFault::TooLong { max: MAX });
        for (form, fits, does_not) in [
            (String, "123456", "1234567"),
            (String, "üüü", "üüüü"),
            (Base64, "MTIzNDU2", "MTIzNDU2Nw=="),
        ] {
            assert!(draft(form, fits).read(MAX).unwrap().is_some(), "{fits}");
            assert_eq!(draft(form, does_not).read(MAX), too_long, "{does_not}");
        }
    }

    #[test]
    fn an_invalid_payload_is_refused() {
        let not_base64 = UdpFault::NotBase64(NotBase64);
        for (form, text, fault) in [
            (String, "", UdpFault::Empty),
            (Base64, "", UdpFault::Empty),
            (Base64, "on!", not_base64),
            (Base64, "b2", not_base64),
            (Base64, "b24 ", not_base64),
        ] {
            assert_eq!(draft(form, text).read(MAX), Err(fault), "{form:?} {text:?}");
        }
    }

    #[test]
    fn a_field_is_checked_even_if_others_are_missing() {
        let whole = draft(Base64, "on!");
        let no_port = UdpDraft {
            port: None,
            ..whole
        };
        assert_eq!(no_port.read(MAX), Err(UdpFault::NotBase64(NotBase64)));
        let no_form = UdpDraft {
            form: None,
            ..whole
        };
        assert_eq!(no_form.read(MAX), Ok(None));
        let empty = UdpDraft {
            payload: Some(""),
            ..no_form
        };
        assert_eq!(empty.read(MAX), Err(UdpFault::Empty));
        let nothing = UdpDraft {
            payload: None,
            ..whole
        };
        assert_eq!(nothing.read(MAX), Ok(None));
    }

    fn draft(form: ContentEncoding, text: &str) -> UdpDraft<'_> {
        UdpDraft {
            payload: Some(text),
            form: Some(form),
            port: NonZeroU16::new(4445),
        }
    }
}
