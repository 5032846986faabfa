//! How is a schema rendered as HTML? A table of its properties, with links to named schemas.

use super::markup::Html;
use super::sample::name_of;
use crate::api::openapi::Node;

/// Renders a schema in full: its properties or its cases.
pub(super) fn show(html: &mut Html, schema: &Node) {
    let properties = schema.find("properties");
    let cases = schema.find("oneOf").or_else(|| schema.find("anyOf"));
    if let Some(cases) = cases.filter(|_| properties.is_none()) {
        return show_cases(html, cases.items());
    }
    if properties.is_some_and(|it| !it.properties().is_empty()) {
        html.open("table", "properties");
        rows(html, schema, "");
        html.close("table");
        return;
    }
    html.open("p", "kind");
    kind(html, schema);
    html.close("p");
}

/// Renders the type of a value in a few words.
pub(super) fn kind(html: &mut Html, schema: &Node) {
    if let Some(name) = name_of(schema) {
        html.raw(&format!("<a href=\"#schema-{name}\">{name}</a>"));
        return;
    }
    if let Some(only) = schema.text("const") {
        html.element("code", "", only);
        return;
    }
    if let Some(words) = schema.find("enum") {
        let words = words.items().iter().filter_map(Node::as_text);
        for (place, word) in words.enumerate() {
            if place > 0 {
                html.raw(" | ");
            }
            html.element("code", "", word);
        }
        return;
    }
    let cases = schema.find("oneOf").or_else(|| schema.find("anyOf"));
    if let Some(cases) = cases.filter(|_| schema.find("type").is_none()) {
        for (place, case) in cases.items().iter().enumerate() {
            if place > 0 {
                html.raw(" or ");
            }
            kind(html, case);
        }
        return;
    }
    plain_kind(html, schema);
}

fn plain_kind(html: &mut Html, schema: &Node) {
    let kinds = schema.find("type");
    let named = kinds.map(Node::items).unwrap_or_default();
    let kind_name = named.first().or(kinds).and_then(Node::as_text);
    match kind_name {
        Some("array") => {
            html.raw("array of ");
            if let Some(items) = schema.find("items") {
                kind(html, items);
            }
        }
        Some("object") => html.raw("object"),
        Some("integer") => html.raw("integer"),
        Some("number") => html.raw("number"),
        Some("string") => html.raw("string"),
        Some("boolean") => html.raw("boolean"),
        Some("null") => html.raw("null"),
        _ => html.raw("any value"),
    }
    if let Some(bounds) = bounds(schema) {
        html.element("span", "bounds", &format!(", {bounds}"));
    }
}

fn bounds(schema: &Node) -> Option<String> {
    let number = |name: &str| match schema.find(name) {
        Some(Node::Leaf(value)) => value.as_u64(),
        _ => None,
    };
    let range = |min: &str, max: &str, of: &str| match (number(min), number(max)) {
        (Some(min), Some(max)) if min == max => Some(format!("{min}{of}")),
        (Some(0), Some(max)) => Some(format!("at most {max}{of}")),
        (Some(min), Some(max)) => Some(format!("{min} to {max}{of}")),
        (None | Some(0), None) => None,
        (Some(min), None) => Some(format!("at least {min}{of}")),
        (None, Some(max)) => Some(format!("at most {max}{of}")),
    };
    let format = match schema.text("format") {
        Some("uuid") => Some("UUID".to_owned()),
        Some("date-time") => Some("ISO 8601".to_owned()),
        Some("ipv4") => Some("IPv4".to_owned()),
        Some("ipv6") => Some("IPv6".to_owned()),
        _ => None,
    };
    let plain = format
        .or_else(|| range("minimum", "maximum", ""))
        .or_else(|| range("minLength", "maxLength", " characters"))
        .or_else(|| range("minItems", "maxItems", " items"));
    let others = schema.find("not").and_then(|it| it.find("enum"));
    let others: Vec<_> = others.map(Node::items).unwrap_or_default().iter().collect();
    let others = others.into_iter().filter_map(Node::as_text);
    let others = others.collect::<Vec<_>>().join(" or ");
    match (plain, others.is_empty()) {
        (plain, true) => plain,
        (None, false) => Some(format!("not {others}")),
        (Some(plain), false) => Some(format!("{plain}, not {others}")),
    }
}

fn rows(html: &mut Html, schema: &Node, before: &str) {
    let required = schema.find("required").map(Node::items).unwrap_or_default();
    let properties = schema.find("properties").map(Node::properties);
    for (name, property) in properties.unwrap_or_default() {
        let needed = required.iter().any(|it| it.as_text() == Some(name));
        let name = format!("{before}{name}");
        row(html, &name, property, needed);
        rows(html, property, &format!("{name}."));
        if let Some(items) = property.find("items") {
            rows(html, items, &format!("{name}[]."));
        }
    }
}

fn row(html: &mut Html, name: &str, property: &Node, needed: bool) {
    html.raw("<tr><td>");
    html.element("code", "name", name);
    if !needed {
        html.element("span", "optional", "optional");
    }
    html.raw("</td><td class=\"kind\">");
    kind(html, property);
    html.raw("</td><td>");
    html.line(property.text("description").unwrap_or_default());
    default(html, property);
    html.raw("</td></tr>");
}

/// Renders the default value, if there is one.
pub(super) fn default(html: &mut Html, schema: &Node) {
    let Some(Node::Leaf(default)) = schema.find("default") else {
        return;
    };
    let default = default
        .as_str()
        .map_or_else(|| default.to_string(), str::to_owned);
    html.raw(" Default: ");
    html.element("code", "", &default);
    html.raw(".");
}

fn show_cases(html: &mut Html, cases: &[Node]) {
    for case in cases {
        if let Some(title) = case.text("title") {
            html.element("h5", "", title);
        }
        show(html, case);
    }
}
