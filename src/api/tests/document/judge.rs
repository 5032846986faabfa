//! Does a body match its schema exactly? Validates the keywords of JSON Schema that the document
//! uses.
//!
//! A property that is not described is a fault, although callers should ignore unknown ones.
//! Patterns and formats are left to a third-party validator.

use serde_json::Value;

/// Every fault of a value.
pub(in crate::api::tests) fn faults(
    document: &Value,
    schema: &Value,
    value: &Value,
) -> Vec<String> {
    let judge = SchemaValidator { document };
    judge.faults(schema, value, "")
}

struct SchemaValidator<'a> {
    document: &'a Value,
}

impl SchemaValidator<'_> {
    fn faults(&self, schema: &Value, value: &Value, at: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut expect = |holds: bool, what: &Value| {
            if !holds {
                found.push(format!("{at}: {value} is not {what}"));
            }
        };
        expect(is_of_type(&schema["type"], value), &schema["type"]);
        if let Some(only) = schema.get("const") {
            expect(only == value, only);
        }
        if let Some(words) = schema["enum"].as_array() {
            expect(words.contains(value), &schema["enum"]);
        }
        if let Some(others) = schema["not"]["enum"].as_array() {
            expect(!others.contains(value), &schema["not"]);
        }
        if let Some(number) = value.as_f64() {
            let (min, max) = (schema["minimum"].as_f64(), schema["maximum"].as_f64());
            expect(min.is_none_or(|min| number >= min), &schema["minimum"]);
            expect(max.is_none_or(|max| number <= max), &schema["maximum"]);
        }
        if let Some(text) = value.as_str() {
            let length = text.chars().count() as u64;
            let (min, max) = (schema["minLength"].as_u64(), schema["maxLength"].as_u64());
            expect(min.is_none_or(|min| length >= min), &schema["minLength"]);
            expect(max.is_none_or(|max| length <= max), &schema["maxLength"]);
        }
        for kind in ["oneOf", "anyOf"] {
            if let Some(cases) = schema[kind].as_array() {
                let fits = |case: &&Value| self.faults(case, value, at).is_empty();
                let fitting = cases.iter().filter(fits).count();
                expect(
                    fitting == 1 || fitting > 1 && kind == "anyOf",
                    &schema[kind],
                );
            }
        }
        if let Some(to) = schema["$ref"].as_str() {
            let named = self.document.pointer(to.strip_prefix('#').unwrap());
            found.extend(self.faults(named.unwrap(), value, at));
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            found.extend(self.faults(part, value, at));
        }
        found.extend(self.faults_of_items(schema, value, at));
        found.extend(self.faults_of_properties(schema, value, at));
        found
    }

    fn faults_of_items(&self, schema: &Value, value: &Value, at: &str) -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        let Some(of_each) = schema.get("items") else {
            return Vec::new();
        };
        let faults = |(place, item)| self.faults(of_each, item, &format!("{at}/{place}"));
        items.enumerate().flat_map(faults).collect()
    }

    fn faults_of_properties(&self, schema: &Value, value: &Value, at: &str) -> Vec<String> {
        let Some(given) = value.as_object() else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for name in schema["required"].as_array().into_iter().flatten() {
            if !given.contains_key(name.as_str().unwrap()) {
                found.push(format!("{at}: {name} is missing"));
            }
        }
        let others = schema.get("additionalProperties");
        for (name, value) in given {
            let place = format!("{at}/{name}");
            match (schema["properties"].get(name), others) {
                (Some(schema), _) => found.extend(self.faults(schema, value, &place)),
                (None, Some(others)) if others.is_object() => {
                    found.extend(self.faults(others, value, &place));
                }
                (None, _) if schema["properties"].is_object() && schema["type"] == "object" => {
                    found.push(format!("{place} is not described"));
                }
                (None, _) => {}
            }
        }
        found
    }
}

fn is_of_type(wanted: &Value, value: &Value) -> bool {
    if let Some(kinds) = wanted.as_array() {
        return kinds.iter().any(|kind| is_of_type(kind, value));
    }
    match wanted.as_str() {
        None => true,
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some("null") => value.is_null(),
        Some(other) => panic!("no body has the type {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::faults;
    use serde_json::{Value, json};

    #[test]
    fn only_described_values_pass() {
        let schema = json!({
            "type": "object",
            "required": ["a"],
            "properties": {
                "a": {"type": "integer", "minimum": 1},
                "b": {"type": ["string", "null"], "maxLength": 2},
                "c": {"type": "array", "items": {"enum": ["x", "y"]}},
                "d": {"oneOf": [{"const": 1}, {"type": "boolean"}]},
                "f": {"not": {"enum": ["import"]}},
            },
        });
        let good = json!({"a": 1, "b": null, "c": ["x"], "d": true});
        assert_eq!(faults(&Value::Null, &schema, &good), [""; 0]);
        for bad in [
            json!({}),
            json!({"a": 0}),
            json!({"a": "1"}),
            json!({"a": 1, "b": "xyz"}),
            json!({"a": 1, "c": ["z"]}),
            json!({"a": 1, "d": 2}),
            json!({"a": 1, "e": 1}),
            json!({"a": 1, "f": "import"}),
        ] {
            assert_eq!(faults(&Value::Null, &schema, &bad).len(), 1, "{bad}");
        }
    }
}
