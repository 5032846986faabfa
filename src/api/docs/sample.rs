//! What do a sample body and a sample `curl` call look like? Made from the examples of the schemas.

use crate::api::openapi::Node;

/// The sample of a string without an example.
const SOME_TEXT: &str = "text";

/// The maximum depth of nested objects in a sample; no schema is deeper.
const DEPTH_MAX: u8 = 12;

/// A sample value of a schema.
pub(super) fn sample(document: &Node, schema: &Node) -> Node {
    sampled(document, schema, DEPTH_MAX)
}

/// The schema that a `$ref` refers to, or the schema itself.
pub(super) fn resolved<'a>(document: &'a Node, schema: &'a Node) -> &'a Node {
    let Some(name) = name_of(schema) else {
        return schema;
    };
    let schemas = document
        .find("components")
        .and_then(|it| it.find("schemas"));
    let found = schemas.and_then(|schemas| schemas.find(name));
    found.unwrap_or(schema)
}

/// The name of the schema that this one refers to.
pub(super) fn name_of(schema: &Node) -> Option<&str> {
    let to = schema.text("$ref")?;
    to.rsplit('/').next()
}

/// The value as indented JSON.
pub(super) fn lines(value: &Node) -> String {
    let text = serde_json::to_string_pretty(value);
    text.expect("texts, numbers and truths can be written")
}

/// The `curl` command that calls an operation.
pub(super) fn curl(document: &Node, method: &str, path: &str, operation: &Node) -> String {
    let mut parts = vec!["curl".to_owned()];
    if !matches!(method, "GET" | "POST") {
        parts.push(format!("-X {method}"));
    }
    parts.push(format!("\"$BASE{}\"", target(document, path, operation)));
    let mut call = vec![parts.join(" ")];
    call.extend(credentials(operation));
    call.extend(sent(document, operation, method));
    call.join(" \\\n  ")
}

fn sampled(document: &Node, schema: &Node, depth: u8) -> Node {
    if let Some(example) = schema.find("examples").and_then(|it| it.items().first()) {
        return example.clone();
    }
    let given = schema.find("default").or_else(|| schema.find("const"));
    let given = given.or_else(|| schema.find("enum")?.items().first());
    if let Some(given) = given {
        return given.clone();
    }
    let cases = schema.find("oneOf").or_else(|| schema.find("anyOf"));
    let case = cases.and_then(|cases| cases.items().first());
    if let Some(case) = case.filter(|_| schema.find("properties").is_none()) {
        return sampled(document, case, depth);
    }
    if name_of(schema).is_some() {
        let depth = depth.saturating_sub(1);
        return match depth {
            0 => Node::object(),
            depth => sampled(document, resolved(document, schema), depth),
        };
    }
    of_kind(document, schema, depth)
}

fn of_kind(document: &Node, schema: &Node, depth: u8) -> Node {
    let kind = schema.find("type");
    let kinds = kind.map(Node::items).unwrap_or_default();
    let first = kinds.first().or(kind).and_then(Node::as_text);
    match first {
        Some("object") => object(document, schema, depth),
        Some("array") => {
            let item = schema.find("items").map(|it| sampled(document, it, depth));
            Node::List(item.into_iter().collect())
        }
        Some("integer" | "number") => schema.find("minimum").cloned().unwrap_or(0_u64.into()),
        Some("boolean") => true.into(),
        _ => SOME_TEXT.into(),
    }
}

fn object(document: &Node, schema: &Node, depth: u8) -> Node {
    let required = schema.find("required").map(Node::items).unwrap_or_default();
    let properties = schema.find("properties").map(Node::properties);
    let mut sample = Node::object();
    for (name, property) in properties.unwrap_or_default() {
        let is_required = required.iter().any(|it| it.as_text() == Some(name));
        if is_required || is_worth_showing(property) {
            sample.set(name, sampled(document, property, depth));
        }
    }
    sample
}

/// Whether a sample includes an optional property.
fn is_worth_showing(property: &Node) -> bool {
    let shown = ["examples", "$ref", "properties"];
    shown.iter().any(|part| property.find(part).is_some())
}

fn target(document: &Node, path: &str, operation: &Node) -> String {
    let mut path = path.to_owned();
    let mut query = Vec::new();
    for parameter in operation
        .find("parameters")
        .map(Node::items)
        .unwrap_or_default()
    {
        let (Some(name), Some(schema)) = (parameter.text("name"), parameter.find("schema")) else {
            continue;
        };
        let value = escaped(sample(document, schema).as_text().unwrap_or_default());
        match parameter.text("in") {
            Some("path") => path = path.replace(&format!("{{{name}}}"), &value),
            Some("query") if parameter.find("required") == Some(&true.into()) => {
                query.push(format!("{name}={value}"));
            }
            _ => {}
        }
    }
    match query.is_empty() {
        true => path,
        false => format!("{path}?{}", query.join("&")),
    }
}

/// A value with percent-encoding.
fn escaped(value: &str) -> String {
    let escaped = value.bytes().map(|byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    });
    escaped.collect()
}

fn credentials(operation: &Node) -> Option<String> {
    let first = operation.find("security")?.items().first()?;
    let (scheme, _) = first.properties().first()?;
    let header = match scheme.as_str() {
        "accessToken" => "-H \"authorization: Bearer $TOKEN\"",
        "operatorToken" => "-H \"authorization: Bearer $OPERATOR_TOKEN\"",
        _ => "-u \"$CLIENT_ID:$CLIENT_SECRET\"",
    };
    Some(header.to_owned())
}

fn sent(document: &Node, operation: &Node, method: &str) -> Vec<String> {
    let content = operation
        .find("requestBody")
        .and_then(|it| it.find("content"));
    let Some((media, body)) = content.and_then(|content| content.properties().first()) else {
        return match method {
            "POST" => vec!["-X POST".to_owned()],
            _ => Vec::new(),
        };
    };
    let body = body.find("schema").map(|schema| sample(document, schema));
    let body = body.unwrap_or_else(Node::object);
    let sent = match body.as_text() {
        Some(text) => format!("--data-binary '{}'", in_quotes(text)),
        None => {
            let json = serde_json::to_string(&body);
            let json = json.expect("texts, numbers and truths can be written");
            format!("-d '{}'", in_quotes(&json))
        }
    };
    vec![format!("-H \"content-type: {media}\""), sent]
}

/// A text for a shell, to be put between single quotes.
fn in_quotes(text: &str) -> String {
    text.replace('\'', "'\\''")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_sample_has_required_properties_and_those_with_an_example() {
        let schema = Node::from(json!({
            "type": "object",
            "required": ["a", "d"],
            "properties": {
                "a": {"type": "integer", "minimum": 1},
                "b": {"type": "string"},
                "c": {"type": ["string", "null"], "examples": ["x"]},
                "d": {"type": "array", "items": {"enum": ["y", "z"]}},
            },
        }));
        let shown = serde_json::to_value(sample(&Node::object(), &schema)).unwrap();
        assert_eq!(shown, json!({"a": 1, "c": "x", "d": ["y"]}));
    }

    #[test]
    fn a_sample_call_has_path_parameters_and_credentials() {
        let operation = Node::from(json!({
            "parameters": [
                {"name": "zone", "in": "query", "required": true,
                 "schema": {"const": "Europe/Berlin"}},
                {"name": "device", "in": "path", "required": true, "schema": {"const": "m"}},
            ],
            "security": [{"accessToken": ["devices:read"]}],
        }));
        assert_eq!(
            curl(&Node::object(), "DELETE", "/devices/{device}", &operation),
            "curl -X DELETE \"$BASE/devices/m?zone=Europe%2FBerlin\" \\\n  \
             -H \"authorization: Bearer $TOKEN\""
        );
    }
}
