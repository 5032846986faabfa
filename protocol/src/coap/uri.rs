//! Which resource of a peer does a request address, and with which arguments? The path and the
//! query of a URI, and the options they become (RFC 7252 sections 6.1 and 6.4).

use std::fmt;

use super::message::Message;

/// The longest value of a Uri-Path or Uri-Query option.
const OPTION_BYTES_MAX: usize = 255;

/// An absolute path with its query, such as `/a/b?c=d`, as it was written.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct PathAndQuery(Box<str>);

/// The text is no absolute path with a query.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidPathAndQuery {
    /// It does not begin with a slash.
    #[error("must begin with /")]
    NotAbsolute,
    /// A fragment has a meaning only where the URI was written.
    #[error("must not have a fragment")]
    Fragment,
    /// The character is only allowed percent-encoded.
    #[error("must not contain {0:?}; percent-encode it")]
    Character(char),
    /// A percent sign is not followed by two hexadecimal digits.
    #[error("must have two hexadecimal digits after each percent sign")]
    PercentEncoding,
    /// The percent-encoded bytes are not UTF-8.
    #[error("must be UTF-8 when percent-decoded")]
    NotUtf8,
    /// A segment of one or two dots refers to another path (section 5.10.1).
    #[error("must not have a segment . or ..")]
    DotSegment,
    /// A segment or an argument is longer than an option can be.
    #[error("must not have a segment or query argument longer than 255 bytes")]
    TooLong,
}

impl PathAndQuery {
    /// Reads a path and its query.
    pub fn parse(text: &str) -> Result<Self, InvalidPathAndQuery> {
        if !text.starts_with('/') {
            return Err(InvalidPathAndQuery::NotAbsolute);
        }
        if text.contains('#') {
            return Err(InvalidPathAndQuery::Fragment);
        }
        if let Some(c) = text.chars().find(|c| !may_stand(*c)) {
            return Err(InvalidPathAndQuery::Character(c));
        }
        let read = Self(text.into());
        if read
            .raw_segments()
            .map(decoded)
            .any(|it| it.is_ok_and(|it| is_dots(&it)))
        {
            return Err(InvalidPathAndQuery::DotSegment);
        }
        for part in read.raw_segments().chain(read.raw_arguments()) {
            if decoded(part)?.len() > OPTION_BYTES_MAX {
                return Err(InvalidPathAndQuery::TooLong);
            }
        }
        Ok(read)
    }

    /// Returns the text as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Adds the path and the query to a request.
    pub fn address(&self, request: Message) -> Message {
        let read = |part| decoded(part).expect("it was read when it was made");
        request
            .with_uri_path(self.raw_segments().map(read))
            .with_uri_query(self.raw_arguments().map(read))
    }

    /// The segments of the path; a path of one slash has none (section 6.4, step 7).
    fn raw_segments(&self) -> impl Iterator<Item = &str> {
        let (path, _) = self.parts();
        let path = path.strip_prefix('/').unwrap_or(path);
        let has_some = !path.is_empty();
        path.split('/').filter(move |_| has_some)
    }

    /// The arguments of the query (section 6.4, step 8).
    fn raw_arguments(&self) -> impl Iterator<Item = &str> {
        let (_, query) = self.parts();
        query.into_iter().flat_map(|query| query.split('&'))
    }

    fn parts(&self) -> (&str, Option<&str>) {
        match self.0.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (&self.0, None),
        }
    }
}

impl fmt::Display for PathAndQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether a character is allowed in a path or a query (RFC 3986 sections 3.3 and 3.4). Letters
/// beyond ASCII are allowed as well: they are encoded in UTF-8 (RFC 3987 section 3.1).
fn may_stand(c: char) -> bool {
    !c.is_control() && !c.is_whitespace() && !"\"<>\\^`{|}".contains(c)
}

fn is_dots(segment: &str) -> bool {
    segment == "." || segment == ".."
}

/// Our own, because `percent-encoding` accepts an escape without two digits.
fn decoded(part: &str) -> Result<String, InvalidPathAndQuery> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || rest.next().and_then(|it| char::from(it).to_digit(16));
                let value = digit().zip(digit()).map(|(high, low)| high << 4 | low);
                value
                    .and_then(|value| u8::try_from(value).ok())
                    .ok_or(InvalidPathAndQuery::PercentEncoding)?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| InvalidPathAndQuery::NotUtf8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coap::code::Code;
    use crate::coap::message::{MessageId, MessageKind};
    use crate::coap::token::Token;

    #[test]
    fn a_path_and_its_query_become_options() {
        check("/", &[], &[]);
        check("/a", &["a"], &[]);
        check("/a/b?c=d&e", &["a", "b"], &["c=d", "e"]);
        check("/?t=x", &[], &["t=x"]);
        check("/a/", &["a", ""], &[]);
        check("//a", &["", "a"], &[]);
        check("/a%2Fb?c%26d=%C3%BC", &["a/b"], &["c&d=ü"]);
        check("/ü?a?b", &["ü"], &["a?b"]);
        check("/a?", &["a"], &[""]);
        check("/.well-known/core?..", &[".well-known", "core"], &[".."]);
    }

    #[test]
    fn an_invalid_path_is_refused_with_its_fault() {
        let long = format!("/{}", "x".repeat(256));
        let cases = [
            ("", InvalidPathAndQuery::NotAbsolute),
            ("a/b", InvalidPathAndQuery::NotAbsolute),
            ("coap://h/a", InvalidPathAndQuery::NotAbsolute),
            ("/a#b", InvalidPathAndQuery::Fragment),
            ("/a b", InvalidPathAndQuery::Character(' ')),
            ("/a\n", InvalidPathAndQuery::Character('\n')),
            ("/%", InvalidPathAndQuery::PercentEncoding),
            ("/%2", InvalidPathAndQuery::PercentEncoding),
            ("/%+1", InvalidPathAndQuery::PercentEncoding),
            ("/?%zz", InvalidPathAndQuery::PercentEncoding),
            ("/%ff", InvalidPathAndQuery::NotUtf8),
            ("/a/../b", InvalidPathAndQuery::DotSegment),
            ("/%2e", InvalidPathAndQuery::DotSegment),
            (&long, InvalidPathAndQuery::TooLong),
        ];
        for (text, why) in cases {
            assert_eq!(PathAndQuery::parse(text), Err(why), "{text:?}");
        }
    }

    fn check(text: &str, segments: &[&str], arguments: &[&str]) {
        let target = PathAndQuery::parse(text).unwrap();
        assert_eq!(target.to_string(), text);
        let request = Message::request(
            MessageKind::Confirmable,
            Code::GET,
            MessageId(1),
            Token::EMPTY,
        );
        let request = target.address(request);
        assert!(request.uri_path().eq(segments.iter().copied()), "{text}");
        assert!(request.uri_query().eq(arguments.iter().copied()), "{text}");
    }
}
