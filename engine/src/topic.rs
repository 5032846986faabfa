//! Which topics may the data of a device have?
//!
//! A topic is a valid topic name of MQTT 5 (section 4.7.1): text without wildcards and control
//! characters.

use std::fmt;

use crate::limits::TOPIC_BYTES_MAX;

/// A topic.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Topic(Box<str>);

/// Why a topic is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidTopic {
    /// The request has none.
    #[error("the topic is missing; use POST /?t=topic")]
    Missing,
    /// It is empty.
    #[error("the topic is empty")]
    Empty,
    /// It is longer than an option.
    #[error("the topic is longer than {TOPIC_BYTES_MAX} bytes")]
    TooLong,
    /// There is more than one.
    #[error("there is more than one topic")]
    Several,
    /// It has a wildcard or a control character.
    #[error("the topic must not contain {0:?}")]
    Character(char),
}

impl Topic {
    /// Parses a topic.
    pub fn parse(text: &str) -> Result<Self, InvalidTopic> {
        if text.is_empty() {
            return Err(InvalidTopic::Empty);
        }
        if text.len() > TOPIC_BYTES_MAX {
            return Err(InvalidTopic::TooLong);
        }
        match text
            .chars()
            .find(|c| c.is_control() || ['+', '#'].contains(c))
        {
            Some(c) => Err(InvalidTopic::Character(c)),
            None => Ok(Self(text.into())),
        }
    }

    /// The topic among the query arguments of a request.
    pub fn among<'q>(queries: impl Iterator<Item = &'q str>) -> Result<Self, InvalidTopic> {
        let mut topics = queries.filter_map(|query| query.strip_prefix("t="));
        let topic = topics.next().ok_or(InvalidTopic::Missing)?;
        match topics.next() {
            Some(_) => Err(InvalidTopic::Several),
            None => Self::parse(topic),
        }
    }

    /// The topic as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_text_without_wildcards() {
        for text in ["temperature", "a/b", "/", "$SYS", "ü", &"x".repeat(253)] {
            assert_eq!(Topic::parse(text).map(|it| it.to_string()), Ok(text.into()));
        }
        let cases = [
            ("", InvalidTopic::Empty),
            ("a+b", InvalidTopic::Character('+')),
            ("a/#", InvalidTopic::Character('#')),
            ("a\0", InvalidTopic::Character('\0')),
            ("a\u{9f}", InvalidTopic::Character('\u{9f}')),
            (&"x".repeat(254), InvalidTopic::TooLong),
        ];
        for (text, why) in cases {
            assert_eq!(Topic::parse(text), Err(why), "{text:?}");
        }
    }

    #[test]
    fn a_request_names_one_topic() {
        let among = |queries: &[&str]| Topic::among(queries.iter().copied());
        assert_eq!(among(&["a=1", "t=x", "t"]), Topic::parse("x"));
        assert_eq!(among(&["a=1"]), Err(InvalidTopic::Missing));
        assert_eq!(among(&["t=x", "t=y"]), Err(InvalidTopic::Several));
    }
}
