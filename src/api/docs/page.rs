//! How is the documentation page made? A guide, every operation and every schema.

use super::markup::Html;
use super::operation::DocumentedOperation;
use super::schema::show;
use crate::api::openapi::{Node, ShownSettings};

/// The guide: from the operator token to the first value of a device.
const GUIDE: &str = include_str!("guide.html");

/// The page of this document, as it is with these settings.
pub(super) fn page(document: &Node, settings: &ShownSettings) -> String {
    let info = document.find("info");
    let info_text = |name: &str| info.and_then(|info| info.text(name)).unwrap_or_default();
    let tags = document.find("tags").map(Node::items).unwrap_or_default();
    let mut html = Html::default();
    head(&mut html, info_text("title"));
    navigation(&mut html, document, tags, info_text("version"));
    html.raw("<main>");
    html.raw(&settings.fill(GUIDE));
    for tag in tags {
        section(&mut html, document, tag);
    }
    schemas(&mut html, document);
    html.raw("</main></body></html>\n");
    html.into_text()
}

fn head(html: &mut Html, title: &str) {
    html.raw("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    html.element("title", "", &format!("{title} API"));
    html.raw("<link rel=\"stylesheet\" href=\"/docs/style.css\">");
    html.raw("<script src=\"/docs/script.js\" defer></script></head><body>");
}

fn navigation(html: &mut Html, document: &Node, tags: &[Node], version: &str) {
    html.raw("<nav><p class=\"product\"><a href=\"#top\">signalbox</a> ");
    html.element("span", "version", version);
    html.raw("</p><input type=\"search\" id=\"search\" placeholder=\"Search\" ");
    html.raw("aria-label=\"Search\" autocomplete=\"off\">");
    html.raw("<p class=\"document\"><a href=\"/openapi.json\">openapi.json</a></p>");
    html.raw("<ul class=\"guide\"><li><a href=\"#begin\">Getting started</a></li>");
    html.raw("<li><a href=\"#asking\">LwM2M operations</a></li>");
    html.raw("<li><a href=\"#plain\">Devices without LwM2M</a></li>");
    html.raw("<li><a href=\"#requests\">Status of a request</a></li>");
    html.raw("<li><a href=\"#sleeping\">Queue mode</a></li>");
    html.raw("<li><a href=\"#webhooks\">Webhooks</a></li>");
    html.raw("<li><a href=\"#entries\">Log entries</a></li>");
    html.raw("<li><a href=\"#rules\">Conventions</a></li></ul>");
    for tag in tags {
        let name = tag.text("name").unwrap_or_default();
        html.element("h2", "", name);
        html.open("ul", "");
        for operation in operations(document, name) {
            html.raw(&format!(
                "<li data-of=\"{0}\"><a href=\"#{0}\">",
                operation.id()
            ));
            html.text(operation.summary());
            html.raw("</a></li>");
        }
        html.close("ul");
    }
    html.raw("<ul><li><a href=\"#schemas\">Schemas</a></li></ul></nav>");
}

fn section(html: &mut Html, document: &Node, tag: &Node) {
    let name = tag.text("name").unwrap_or_default();
    html.raw(&format!("<section id=\"{}\" class=\"tag\">", anchor(name)));
    html.element("h2", "", name);
    html.prose(tag.text("description").unwrap_or_default());
    for operation in operations(document, name) {
        operation.show(html);
    }
    html.close("section");
}

fn schemas(html: &mut Html, document: &Node) {
    html.raw("<section id=\"schemas\" class=\"tag\"><h2>Schemas</h2>");
    let components = document.find("components");
    let schemas = components.and_then(|it| it.find("schemas"));
    for (name, schema) in schemas.map(Node::properties).unwrap_or_default() {
        html.raw(&format!(
            "<article id=\"schema-{name}\" class=\"operation\">"
        ));
        html.element("h3", "", name);
        show(html, schema);
        html.close("article");
    }
    html.close("section");
}

fn operations<'a>(document: &'a Node, tag: &str) -> Vec<DocumentedOperation<'a>> {
    let paths = document
        .find("paths")
        .map(Node::properties)
        .unwrap_or_default();
    let mut found: Vec<DocumentedOperation<'_>> = Vec::new();
    for (path, methods) in paths {
        for (method, node) in methods.properties() {
            let tags = node.find("tags").map(Node::items).unwrap_or_default();
            if !tags.iter().any(|it| it.as_text() == Some(tag)) {
                continue;
            }
            let summary = node.text("summary").unwrap_or_default();
            match found.iter_mut().find(|it| it.summary() == summary) {
                // One operation at two paths.
                Some(known) => known.paths.push(path),
                None => found.push(DocumentedOperation {
                    document,
                    method: method.to_ascii_uppercase(),
                    paths: vec![path],
                    node,
                }),
            }
        }
    }
    // A new user creates an object first.
    found.sort_by_key(|operation| rank(&operation.method));
    found
}

/// The position of a method within a tag.
fn rank(method: &str) -> u8 {
    match method {
        "POST" => 0,
        "GET" => 1,
        "PATCH" | "PUT" => 2,
        _ => 3,
    }
}

/// The anchor of a tag.
fn anchor(name: &str) -> String {
    name.to_ascii_lowercase().replace(' ', "-")
}
