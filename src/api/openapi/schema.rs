//! How is a value described? As JSON Schema (draft 2020-12, the dialect of OpenAPI 3.1), with the
//! bounds of the parsers.
//!
//! A schema contains the named schemas that it refers to, so that none can be missing from the
//! document.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::node::Node;
use crate::api::words::Word;

/// The id in examples.
const SOME_UUID: &str = "01935c5a-0000-7000-8000-000000000001";

/// The format of a UUID.
const UUID: &str = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$";

/// A schema, with the named schemas that it refers to.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::api) struct Schema {
    node: Node,
    named: BTreeMap<&'static str, Node>,
}

impl Schema {
    /// Any string.
    pub(in crate::api) fn text() -> Self {
        Self::of_type("string")
    }

    /// A string of this length, in characters.
    pub(in crate::api) fn text_of(characters: RangeInclusive<usize>) -> Self {
        Self::text().of_characters(characters)
    }

    /// The same string with this length, in characters.
    pub(in crate::api) fn of_characters(self, characters: RangeInclusive<usize>) -> Self {
        let (min, max) = characters.into_inner();
        self.with("minLength", min as u64)
            .with("maxLength", max as u64)
    }

    /// The same string with at least this many characters.
    pub(in crate::api) fn of_at_least(self, characters: u64) -> Self {
        self.with("minLength", characters)
    }

    /// With a bound, such as `maxLength`, that is the value of a setting.
    pub(in crate::api) fn bounded_by(self, bound: &'static str, setting: &str) -> Self {
        self.with(bound, format!("{{{{{setting}}}}}"))
    }

    /// A string that does not match a regular expression.
    pub(in crate::api) fn unlike(self, pattern: &str) -> Self {
        self.with("not", Node::object().with("pattern", pattern))
    }

    /// Any value.
    pub(in crate::api) fn anything() -> Self {
        Self {
            node: Node::object(),
            named: BTreeMap::new(),
        }
    }

    /// A string that matches a regular expression.
    pub(in crate::api) fn pattern(self, pattern: &str) -> Self {
        self.with("pattern", pattern)
    }

    /// A string in a format that JSON Schema defines.
    pub(in crate::api) fn format(self, format: &'static str) -> Self {
        self.with("format", format)
    }

    /// An id that the service generates.
    pub(in crate::api) fn uuid() -> Self {
        Self::text().format("uuid").pattern(UUID).example(SOME_UUID)
    }

    /// One of the words of a type.
    pub(in crate::api) fn word<T: Word>() -> Self {
        Self::one_of_words(T::WORDS.iter().map(|(word, _)| *word).collect())
    }

    /// Exactly this word.
    pub(in crate::api) fn only(word: &str) -> Self {
        Self::text().with("const", word)
    }

    /// An integer of a range.
    pub(in crate::api) fn whole(range: RangeInclusive<u64>) -> Self {
        let (min, max) = range.into_inner();
        Self::of_type("integer")
            .with("minimum", min)
            .with("maximum", max)
    }

    /// Any number.
    pub(in crate::api) fn number() -> Self {
        Self::of_type("number")
    }

    /// A number of things.
    pub(in crate::api) fn count() -> Self {
        Self::of_type("integer")
            .format("int64")
            .with("minimum", 0_u64)
    }

    /// A boolean.
    pub(in crate::api) fn truth() -> Self {
        Self::of_type("boolean")
    }

    /// The same words without these.
    pub(in crate::api) fn but(self, words: &[&str]) -> Self {
        let words = Node::object().with("enum", words.to_vec());
        self.with("not", words)
    }

    /// A list of these values.
    pub(in crate::api) fn list(item: Self) -> Self {
        let mut list = Self::of_type("array");
        list.put("items", item);
        list
    }

    /// A list of this length.
    pub(in crate::api) fn many(self, items: RangeInclusive<u64>) -> Self {
        let (min, max) = items.into_inner();
        self.with("minItems", min).with("maxItems", max)
    }

    /// A list without duplicates.
    pub(in crate::api) fn unique(self) -> Self {
        self.with("uniqueItems", true)
    }

    /// A non-empty list.
    pub(in crate::api) fn at_least_one(self) -> Self {
        self.with("minItems", 1_u64)
    }

    /// A number above a bound.
    pub(in crate::api) fn above(self, bound: u64) -> Self {
        self.with("exclusiveMinimum", bound)
    }

    /// An object with a property at least.
    pub(in crate::api) fn with_some_property(self) -> Self {
        self.with("minProperties", 1_u64)
    }

    /// One of these words.
    pub(in crate::api) fn one_of_words(words: Vec<&'static str>) -> Self {
        Self::text().with("enum", words)
    }

    /// An object. Later versions may add properties.
    pub(in crate::api) fn object() -> Self {
        Self::of_type("object").with("properties", Node::object())
    }

    /// An object without further properties: a request body.
    pub(in crate::api) fn closed() -> Self {
        Self::object().with("additionalProperties", false)
    }

    /// The object may have any further properties, which are ignored.
    pub(in crate::api) fn open(self) -> Self {
        self.with("additionalProperties", true)
    }

    /// A map of names to these values.
    pub(in crate::api) fn map(value: Self) -> Self {
        let mut map = Self::of_type("object");
        map.put("additionalProperties", value);
        map
    }

    /// A map with at most this many names, each of them such a value.
    pub(in crate::api) fn of_names(self, name: Self, max: u64) -> Self {
        let mut map = self.with("maxProperties", max);
        map.put("propertyNames", name);
        map
    }

    /// With a required property.
    pub(in crate::api) fn must(mut self, name: &str, value: Self, why: &str) -> Self {
        let mut required = match self.node.find("required") {
            Some(required) => required.items().to_vec(),
            None => Vec::new(),
        };
        required.push(name.into());
        self.node.set("required", required);
        self.with_property(name, value, why)
    }

    /// With an optional property.
    pub(in crate::api) fn may(self, name: &str, value: Self, why: &str) -> Self {
        // In a request body, `null` is the same as absent.
        let is_sent = self.node.find("additionalProperties") == Some(&false.into());
        let value = if is_sent { value.or_null() } else { value };
        self.with_property(name, value, why)
    }

    /// With an optional property that cannot be `null`.
    pub(in crate::api) fn may_never_null(self, name: &str, value: Self, why: &str) -> Self {
        self.with_property(name, value, why)
    }

    /// With a string in at least one of these optional properties.
    pub(in crate::api) fn text_in_one_of(self, names: &[&str]) -> Self {
        let text = Node::object().with("type", "string");
        let case = |name: &&str| {
            Node::object()
                .with("required", vec![*name])
                .with("properties", Node::object().with(name, text.clone()))
        };
        let cases: Vec<_> = names.iter().map(case).collect();
        self.with("anyOf", cases)
    }

    /// With the properties of another object.
    pub(in crate::api) fn including(mut self, other: Self) -> Self {
        self.named.extend(other.named);
        for part in ["properties", "required"] {
            let Some(more) = other.node.find(part) else {
                continue;
            };
            let known = self.node.find(part).cloned();
            let both = match (known, more) {
                (Some(Node::Object(mut known)), Node::Object(more)) => {
                    known.extend(more.iter().cloned());
                    Node::Object(known)
                }
                (Some(Node::List(mut known)), Node::List(more)) => {
                    known.extend(more.iter().cloned());
                    Node::List(known)
                }
                (_, more) => more.clone(),
            };
            self.node.set(part, both);
        }
        self
    }

    /// The same value or `null`.
    pub(in crate::api) fn or_null(mut self) -> Self {
        match self.node.find("type").cloned() {
            Some(Node::Leaf(kind)) => {
                self.node.set("type", vec![Node::Leaf(kind), "null".into()]);
                if let Some(Node::List(words)) = self.node.find("enum").cloned() {
                    let mut words = words;
                    words.push(Node::Leaf(serde_json::Value::Null));
                    self.node.set("enum", words);
                }
                self
            }
            Some(Node::List(_) | Node::Object(_)) => self,
            None => Self::any_of([self, Self::of_type("null")]),
        }
    }

    /// Exactly one of these.
    pub(in crate::api) fn one_of(cases: impl IntoIterator<Item = Self>) -> Self {
        Self::choice("oneOf", cases)
    }

    /// One or more of these.
    pub(in crate::api) fn any_of(cases: impl IntoIterator<Item = Self>) -> Self {
        Self::choice("anyOf", cases)
    }

    /// All of these.
    pub(in crate::api) fn all_of(parts: impl IntoIterator<Item = Self>) -> Self {
        Self::choice("allOf", parts)
    }

    /// A condition on one property of an object.
    pub(in crate::api) fn of_property(name: &str, value: Self) -> Self {
        Self {
            node: Node::object().with("properties", Node::object().with(name, value.node)),
            named: value.named,
        }
    }

    /// A condition on each item of a list.
    pub(in crate::api) fn of_items(item: Self) -> Self {
        Self {
            node: Node::object().with("items", item.node),
            named: item.named,
        }
    }

    /// The same schema as a named component; equal names are equal schemas.
    pub(in crate::api) fn named(self, name: &'static str) -> Self {
        let mut named = self.named;
        named.insert(name, self.node);
        let to = format!("#/components/schemas/{name}");
        Self {
            node: Node::object().with("$ref", to),
            named,
        }
    }

    /// With a title.
    pub(in crate::api) fn titled(self, title: &str) -> Self {
        self.with("title", title)
    }

    /// With an example.
    pub(in crate::api) fn example(self, example: impl Into<Node>) -> Self {
        self.examples(vec![example])
    }

    /// With several examples.
    pub(in crate::api) fn examples(self, examples: Vec<impl Into<Node>>) -> Self {
        self.with("examples", examples)
    }

    /// With a default value.
    pub(in crate::api) fn default(self, value: impl Into<Node>) -> Self {
        self.with("default", value)
    }

    /// Whether the value is an integer.
    pub(super) fn is_number(&self) -> bool {
        self.node.text("type") == Some("integer")
    }

    /// The schema itself; the named schemas that it refers to are added to `named`.
    pub(super) fn into_node(self, named: &mut BTreeMap<&'static str, Node>) -> Node {
        for (name, schema) in self.named {
            let known = named.insert(name, schema.clone());
            assert!(
                known.is_none_or(|known| known == schema),
                "two schemas are called {name}"
            );
        }
        self.node
    }

    /// The property names of the object with this name.
    #[cfg(test)]
    pub(in crate::api) fn property_names(&self, name: &str) -> Vec<&str> {
        let properties = self.named.get(name).and_then(|it| it.find("properties"));
        let properties = properties.map(Node::properties).unwrap_or_default();
        properties.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn of_type(kind: &str) -> Self {
        Self {
            node: Node::object().with("type", kind),
            named: BTreeMap::new(),
        }
    }

    fn choice(kind: &str, cases: impl IntoIterator<Item = Self>) -> Self {
        let mut named = BTreeMap::new();
        let cases = cases.into_iter().map(|case| case.into_node(&mut named));
        let cases: Vec<_> = cases.collect();
        Self {
            node: Node::object().with(kind, cases),
            named,
        }
    }

    fn with_property(mut self, name: &str, value: Self, why: &str) -> Self {
        self.named.extend(value.named);
        let value = value.node.with("description", why);
        let properties = self.node.find("properties").cloned();
        let properties = properties.expect("only objects are given properties");
        self.node.set("properties", properties.with(name, value));
        self
    }

    fn put(&mut self, name: &str, part: Self) {
        self.named.extend(part.named);
        self.node.set(name, part.node);
    }

    fn with(mut self, name: &str, value: impl Into<Node>) -> Self {
        self.node.set(name, value);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_optional_property_of_a_request_may_be_null() {
        let sent = Schema::closed().must("a", Schema::text(), "One.").may(
            "b",
            Schema::whole(1..=5),
            "Two.",
        );
        assert_eq!(
            shown(sent),
            json!({
                "type": "object",
                "properties": {
                    "a": {"type": "string", "description": "One."},
                    "b": {
                        "type": ["integer", "null"], "minimum": 1, "maximum": 5,
                        "description": "Two.",
                    },
                },
                "additionalProperties": false,
                "required": ["a"],
            })
        );
    }

    #[test]
    fn a_schema_contains_the_named_schemas_it_refers_to() {
        let inner = Schema::text().named("Inner");
        let outer = Schema::object().must("inner", inner, "It.").named("Outer");
        let mut named = BTreeMap::new();
        let list = Schema::list(outer).into_node(&mut named);
        assert_eq!(
            serde_json::to_value(list).unwrap()["items"],
            json!({"$ref": "#/components/schemas/Outer"})
        );
        assert_eq!(
            named.keys().copied().collect::<Vec<_>>(),
            ["Inner", "Outer"]
        );
    }

    #[test]
    fn an_object_may_include_another() {
        let one = Schema::object().must("a", Schema::text(), "A.");
        let two = Schema::object()
            .must("b", Schema::text(), "B.")
            .including(one);
        let two = shown(two);
        assert_eq!(two["required"], json!(["b", "a"]));
        assert_eq!(two["properties"].as_object().unwrap().len(), 2);
    }

    fn shown(schema: Schema) -> serde_json::Value {
        serde_json::to_value(schema.into_node(&mut BTreeMap::new())).unwrap()
    }
}
