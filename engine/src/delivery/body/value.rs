//! How is the value of a resource shown? As the JSON type for it, or, if JSON has none, as text in
//! the form that callers write.

use std::collections::BTreeMap;

use protocol::lwm2m::links::discovery::DiscoveredLink;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value as Json};

/// A value as JSON. A float that JSON cannot express, such as not-a-number, is null.
pub fn shown(value: &Value) -> Json {
    match value {
        Value::Boolean(value) => Json::Bool(*value),
        Value::Float(value) => Number::from_f64(*value).map_or(Json::Null, Json::Number),
        Value::Integer(value) => Json::from(*value),
        Value::UnsignedInteger(value) => Json::from(*value),
        Value::CoreLink(_)
        | Value::ObjectLink(_)
        | Value::Opaque(_)
        | Value::String(_)
        | Value::Time(_) => Json::String(value.to_text()),
    }
}

/// Values by path, in path order.
pub fn by_path(values: &[(Path, Value)]) -> BTreeMap<String, Json> {
    let shown = |(path, value): &(Path, Value)| (path.to_string(), shown(value));
    values.iter().map(shown).collect()
}

/// The bytes as JSON, unchanged; `None` if they are not JSON, or nested deeper than common parsers
/// accept: a device must not be able to break its customer's endpoint.
pub fn json_in(bytes: &[u8]) -> Option<Box<RawValue>> {
    let text = std::str::from_utf8(bytes).ok()?;
    // With the nesting that its event adds.
    serde_json::from_str::<Json>(&format!("[[{text}]]")).ok()?;
    RawValue::from_string(text.trim_ascii().to_owned()).ok()
}

/// Values by path, as JSON text.
pub fn text_by_path(values: &[(Path, Value)]) -> String {
    Json::Object(Map::from_iter(by_path(values))).to_string()
}

/// What a device lists, as JSON text: the attributes by path, in path order. An attribute is a
/// number if it is one, and true if it has no value.
pub fn text_of_links(links: &[DiscoveredLink]) -> String {
    let attribute = |(name, value): &(Box<str>, Box<str>)| match &**name {
        // A version is text, although it looks like a number.
        "ver" => (name.to_string(), Json::from(&**value)),
        _ => (name.to_string(), typed(value)),
    };
    let attributes = |link: &DiscoveredLink| {
        let attributes = link.attributes.iter().map(attribute);
        (link.path.to_string(), Json::Object(attributes.collect()))
    };
    let by_path: BTreeMap<_, _> = links.iter().map(attributes).collect();
    Json::Object(Map::from_iter(by_path)).to_string()
}

/// The value of an attribute that is not a version.
fn typed(value: &str) -> Json {
    let integer = value.parse().ok().map(|number: i64| Json::from(number));
    let float = || {
        value
            .parse()
            .ok()
            .and_then(Number::from_f64)
            .map(Json::Number)
    };
    match value {
        "" => Json::Bool(true),
        _ => integer.or_else(float).unwrap_or_else(|| value.into()),
    }
}

#[cfg(test)]
mod tests {
    use protocol::lwm2m::value::ObjectLink;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_type_has_its_json_type() {
        let link = ObjectLink {
            object: 3,
            instance: 0,
        };
        let cases = [
            (Value::Boolean(true), json!(true)),
            (Value::CoreLink("</3/0>".into()), json!("</3/0>")),
            (Value::Float(21.5), json!(21.5)),
            (Value::Float(f64::NAN), json!(null)),
            (Value::Integer(i64::MIN), json!(i64::MIN)),
            (Value::ObjectLink(link), json!("3:0")),
            (Value::Opaque(vec![1, 2, 255]), json!("AQL/")),
            (Value::String("21.5".into()), json!("21.5")),
            (Value::Time(1_700_000_000), json!("2023-11-14T22:13:20Z")),
            (Value::UnsignedInteger(u64::MAX), json!(u64::MAX)),
        ];
        for (value, json) in cases {
            assert_eq!(shown(&value), json, "{value:?}");
        }
    }

    #[test]
    fn values_are_a_map_by_path() {
        let values = [
            (Path::resource(3, 0, 9), Value::Integer(87)),
            (Path::resource_instance(3, 0, 6, 1), Value::Integer(5)),
        ];
        assert_eq!(text_by_path(&values), r#"{"/3/0/6/1":5,"/3/0/9":87}"#);
    }
}
