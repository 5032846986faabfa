//! Which tags does a device have? Pairs of a key and a value that its customer chose, at most one
//! for each key.

use std::collections::BTreeMap;
use std::fmt;

use crate::ids::{InvalidId, check};
use crate::limits::TAGS_MAX;

/// A key or a value of a tag.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TagText(Box<str>);

/// A tag: a key with its value.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Tag {
    /// The key.
    pub key: TagText,
    /// The value.
    pub value: TagText,
}

/// The tags of a device, sorted by key.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tags(Box<[Tag]>);

/// A change of the tags of a device, as a JSON merge patch (RFC 7396).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum TagsAmendment {
    /// All tags stay.
    #[default]
    Keep,
    /// All tags are removed.
    Clear,
    /// The tags with these keys get a value or are removed; the others stay.
    Merge(Vec<(TagText, Option<TagText>)>),
}

/// Why a text is not a tag.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidTag {
    /// It has no colon.
    #[error("must be key:value")]
    NoColon,
    /// Its key is invalid.
    #[error("the key {0}")]
    Key(InvalidId),
    /// Its value is invalid.
    #[error("the value {0}")]
    Value(InvalidId),
}

/// A device would have more tags than allowed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a device must not have more than {TAGS_MAX} tags")]
pub struct TooManyTags;

impl TagText {
    /// The longest text, so that a tag fits in a line and in a key of the store.
    pub const LENGTH_MAX: usize = 64;

    /// Parses a key or a value.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        check(text, Self::LENGTH_MAX, allowed)?;
        Ok(Self(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TagText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Tag {
    /// Parses `key:value`.
    pub fn parse(text: &str) -> Result<Self, InvalidTag> {
        let (key, value) = text.split_once(':').ok_or(InvalidTag::NoColon)?;
        Self::of(key, value)
    }

    /// Parses a key and a value.
    pub fn of(key: &str, value: &str) -> Result<Self, InvalidTag> {
        Ok(Self {
            key: TagText::parse(key).map_err(InvalidTag::Key)?,
            value: TagText::parse(value).map_err(InvalidTag::Value)?,
        })
    }
}

impl Tags {
    /// These tags; of several with the same key the last one.
    pub fn of(tags: impl IntoIterator<Item = Tag>) -> Result<Self, TooManyTags> {
        let tags = tags.into_iter().map(|Tag { key, value }| (key, value));
        Self::of_map(tags.collect())
    }

    /// The tags after a change.
    pub fn amended(self, amendment: TagsAmendment) -> Result<Self, TooManyTags> {
        let changes = match amendment {
            TagsAmendment::Keep => return Ok(self),
            TagsAmendment::Clear => return Ok(Self::default()),
            TagsAmendment::Merge(changes) => changes,
        };
        let tags = self.0.into_iter().map(|Tag { key, value }| (key, value));
        let mut value_by_key: BTreeMap<_, _> = tags.collect();
        for (key, value) in changes {
            match value {
                Some(value) => value_by_key.insert(key, value),
                None => value_by_key.remove(&key),
            };
        }
        Self::of_map(value_by_key)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a tag is among them.
    pub fn has(&self, tag: &Tag) -> bool {
        self.0.contains(tag)
    }

    /// The tags, sorted by key.
    pub fn as_slice(&self) -> &[Tag] {
        &self.0
    }

    fn of_map(value_by_key: BTreeMap<TagText, TagText>) -> Result<Self, TooManyTags> {
        if value_by_key.len() > TAGS_MAX {
            return Err(TooManyTags);
        }
        let tags = value_by_key
            .into_iter()
            .map(|(key, value)| Tag { key, value });
        Ok(Self(tags.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_a_key_and_a_value_of_plain_characters() {
        let tag = Tag::parse("site:berlin").unwrap();
        assert_eq!((tag.key.as_str(), tag.value.as_str()), ("site", "berlin"));
        let longest = "x".repeat(TagText::LENGTH_MAX);
        assert!(Tag::parse(&format!("{longest}:A.b_c-9")).is_ok());
        let too_long = InvalidId::TooLong {
            max: TagText::LENGTH_MAX,
        };
        let cases = [
            ("site".to_owned(), InvalidTag::NoColon),
            (":berlin".to_owned(), InvalidTag::Key(InvalidId::Empty)),
            ("site:".to_owned(), InvalidTag::Value(InvalidId::Empty)),
            (
                "a:b:c".to_owned(),
                InvalidTag::Value(InvalidId::Character(':')),
            ),
            (
                "a b:c".to_owned(),
                InvalidTag::Key(InvalidId::Character(' ')),
            ),
            (format!("{longest}x:a"), InvalidTag::Key(too_long)),
        ];
        for (text, why) in cases {
            assert_eq!(Tag::parse(&text), Err(why), "{text}");
        }
    }

    #[test]
    fn a_merge_puts_and_removes_single_tags_and_keeps_the_others() {
        let was = tags(&["site:berlin", "floor:2", "kind:meter"]);
        let changes = [("site", Some("paris")), ("floor", None), ("gone", None)];
        let merged = was.clone().amended(merge(&changes));
        assert_eq!(merged, Ok(tags(&["kind:meter", "site:paris"])));
        assert_eq!(was.clone().amended(TagsAmendment::Keep), Ok(was.clone()));
        assert_eq!(was.amended(TagsAmendment::Clear), Ok(Tags::default()));
    }

    #[test]
    fn a_device_has_at_most_so_many_tags() {
        let many: Vec<String> = (0..TAGS_MAX).map(|key| format!("{key}:a")).collect();
        let full = Tags::of(many.iter().map(|text| Tag::parse(text).unwrap())).unwrap();
        assert_eq!(
            full.clone().amended(merge(&[("new", Some("a"))])),
            Err(TooManyTags)
        );
        let swapped = full.amended(merge(&[("new", Some("a")), ("0", None)]));
        assert_eq!(swapped.map(|tags| tags.as_slice().len()), Ok(TAGS_MAX));
    }

    #[test]
    fn a_device_has_a_tag_if_key_and_value_are_equal() {
        let tags = tags(&["site:berlin"]);
        assert!(tags.has(&Tag::parse("site:berlin").unwrap()));
        assert!(!tags.has(&Tag::parse("site:Berlin").unwrap()));
        assert!(!tags.has(&Tag::parse("berlin:site").unwrap()));
    }

    fn tags(texts: &[&str]) -> Tags {
        Tags::of(texts.iter().map(|text| Tag::parse(text).unwrap())).unwrap()
    }

    fn merge(changes: &[(&str, Option<&str>)]) -> TagsAmendment {
        let parse = |text: &str| TagText::parse(text).unwrap();
        let changes = changes.iter();
        let changes = changes.map(|(key, value)| (parse(key), value.map(parse)));
        TagsAmendment::Merge(changes.collect())
    }
}
