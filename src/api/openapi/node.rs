//! How is a JSON document with ordered properties represented? A tree that keeps its properties in
//! insertion order.
//!
//! Ours, because `serde_json` keeps the order only with a feature that would apply to every map of
//! the build, and maps that are compared must be sorted.

use actix_web::web::Bytes;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// A value of the document.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::api) enum Node {
    /// A string, a number, a boolean or null.
    Leaf(Value),
    /// Values in their order.
    List(Vec<Node>),
    /// Properties in insertion order.
    Object(Vec<(String, Node)>),
}

impl Node {
    /// An object without properties.
    pub(in crate::api) fn object() -> Self {
        Self::Object(Vec::new())
    }

    /// The same object with a property added or replaced.
    pub(in crate::api) fn with(mut self, name: &str, value: impl Into<Self>) -> Self {
        self.set(name, value);
        self
    }

    /// The same object with a property added or replaced, if there is a value.
    pub(in crate::api) fn with_some(self, name: &str, value: Option<impl Into<Self>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds or replaces a property.
    pub(in crate::api) fn set(&mut self, name: &str, value: impl Into<Self>) {
        let Self::Object(properties) = self else {
            unreachable!("only objects are given properties");
        };
        let value = value.into();
        match properties.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => properties.push((name.to_owned(), value)),
        }
    }

    /// A property of the object.
    pub(in crate::api) fn find(&self, name: &str) -> Option<&Self> {
        let found = self.properties().iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }

    /// A property of the object, if it is a string.
    pub(in crate::api) fn text(&self, name: &str) -> Option<&str> {
        self.find(name).and_then(Self::as_text)
    }

    /// The value, if it is a string.
    pub(in crate::api) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Leaf(value) => value.as_str(),
            Self::List(_) | Self::Object(_) => None,
        }
    }

    /// The value as JSON.
    pub(in crate::api) fn to_json(&self) -> Bytes {
        let text = serde_json::to_vec(self);
        text.expect("texts, numbers and truths can be written")
            .into()
    }

    /// The properties of an object; none of any other value.
    pub(in crate::api) fn properties(&self) -> &[(String, Self)] {
        match self {
            Self::Object(properties) => properties,
            Self::Leaf(_) | Self::List(_) => &[],
        }
    }

    /// The items of a list; none of any other value.
    pub(in crate::api) fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            Self::Leaf(_) | Self::Object(_) => &[],
        }
    }
}

impl From<&str> for Node {
    fn from(text: &str) -> Self {
        Self::Leaf(Value::from(text))
    }
}

impl From<String> for Node {
    fn from(text: String) -> Self {
        Self::Leaf(Value::from(text))
    }
}

impl From<u64> for Node {
    fn from(number: u64) -> Self {
        Self::Leaf(Value::from(number))
    }
}

impl From<bool> for Node {
    fn from(truth: bool) -> Self {
        Self::Leaf(Value::from(truth))
    }
}

impl<T: Into<Self>> From<Vec<T>> for Node {
    fn from(items: Vec<T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        match value {
            Value::Array(items) => Self::from(items),
            Value::Object(properties) => {
                let properties = properties.into_iter();
                Self::Object(properties.map(|(name, it)| (name, it.into())).collect())
            }
            leaf @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                Self::Leaf(leaf)
            }
        }
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Leaf(value) => value.serialize(serializer),
            Self::List(items) => serializer.collect_seq(items),
            Self::Object(properties) => {
                serializer.collect_map(properties.iter().map(|(name, it)| (name, it)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_keep_their_insertion_order() {
        let node = Node::object()
            .with("b", 1_u64)
            .with("a", "x")
            .with("b", true);
        assert_eq!(
            serde_json::to_string(&node).unwrap(),
            r#"{"b":true,"a":"x"}"#
        );
        assert_eq!(node.text("a"), Some("x"));
        assert_eq!(node.find("c"), None);
    }
}
