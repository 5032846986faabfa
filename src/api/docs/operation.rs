//! How is an operation rendered as HTML? Parameters, body, responses, and a `curl` call to copy.

use super::markup::Html;
use super::sample::{curl, lines, resolved, sample};
use super::schema::{default, kind, show};
use crate::api::openapi::Node;

/// One operation of the document.
pub(super) struct DocumentedOperation<'a> {
    pub(super) document: &'a Node,
    pub(super) method: String,
    /// The paths it is served at, the first one in its sample.
    pub(super) paths: Vec<&'a str>,
    pub(super) node: &'a Node,
}

impl DocumentedOperation<'_> {
    /// The operation id.
    pub(super) fn id(&self) -> &str {
        self.node.text("operationId").unwrap_or_default()
    }

    /// The summary.
    pub(super) fn summary(&self) -> &str {
        self.node.text("summary").unwrap_or_default()
    }

    /// Renders it.
    pub(super) fn show(&self, html: &mut Html) {
        html.raw(&format!(
            "<article id=\"{}\" class=\"operation\">",
            self.id()
        ));
        html.element("h3", "", self.summary());
        html.open("p", "call");
        let class = format!("method {}", self.method.to_ascii_lowercase());
        html.element("span", &class, &self.method);
        html.raw(" ");
        for (place, path) in self.paths.iter().enumerate() {
            if place > 0 {
                html.raw(" or ");
            }
            html.element("code", "path", path);
        }
        html.close("p");
        self.show_credentials(html);
        html.prose(self.node.text("description").unwrap_or_default());
        let call = curl(self.document, &self.method, self.paths[0], self.node);
        html.sample("Request", &call);
        self.show_parameters(html);
        self.show_body(html);
        self.show_answers(html);
        html.close("article");
    }

    fn show_credentials(&self, html: &mut Html) {
        let security = self.node.find("security").map(Node::items);
        let scheme = security.unwrap_or_default().first();
        let scheme = scheme.and_then(|it| it.properties().first());
        let Some((scheme, scopes)) = scheme else {
            html.element("p", "needs", "No credentials are required.");
            return;
        };
        html.open("p", "needs");
        match (
            scheme.as_str(),
            scopes.items().first().and_then(Node::as_text),
        ) {
            ("accessToken", Some(scope)) => {
                html.line(&format!(
                    "Requires an access token with the scope `{scope}`."
                ));
            }
            ("operatorToken", _) => html.text("Requires the operator token."),
            _ => html.text("Requires the id and the secret of an API client."),
        }
        html.close("p");
    }

    fn show_parameters(&self, html: &mut Html) {
        let parameters = self.node.find("parameters").map(Node::items);
        let parameters = parameters.unwrap_or_default();
        if parameters.is_empty() {
            return;
        }
        html.element("h4", "", "Parameters");
        html.open("table", "properties");
        for parameter in parameters {
            let place = parameter.text("in").unwrap_or_default();
            html.raw("<tr><td>");
            html.element("code", "name", parameter.text("name").unwrap_or_default());
            if parameter.find("required") == Some(&false.into()) {
                html.element("span", "optional", "optional");
            }
            html.raw("</td><td class=\"kind\">");
            let schema = parameter.find("schema");
            schema.inspect(|schema| kind(html, schema));
            html.element("span", "bounds", &format!(", in the {place}"));
            html.raw("</td><td>");
            html.line(parameter.text("description").unwrap_or_default());
            schema.inspect(|schema| default(html, schema));
            html.raw("</td></tr>");
        }
        html.close("table");
    }

    fn show_body(&self, html: &mut Html) {
        let Some(body) = self.node.find("requestBody") else {
            return;
        };
        html.element("h4", "", "Body");
        html.prose(body.text("description").unwrap_or_default());
        let media = body
            .find("content")
            .map(Node::properties)
            .unwrap_or_default();
        let names: Vec<_> = media.iter().map(|(name, _)| format!("`{name}`")).collect();
        html.open("p", "media");
        html.line(&names.join(", "));
        html.close("p");
        if let Some(schema) = media.first().and_then(|(_, it)| it.find("schema")) {
            show(html, resolved(self.document, schema));
        }
    }

    fn show_answers(&self, html: &mut Html) {
        html.element("h4", "", "Responses");
        let answers = self.node.find("responses").map(Node::properties);
        for (status, answer) in answers.unwrap_or_default() {
            let is_success = status.starts_with('2');
            html.open("div", if is_success { "answer good" } else { "answer" });
            html.element("span", "status", status);
            html.raw(" ");
            html.line(answer.text("description").unwrap_or_default());
            if is_success {
                self.show_success(html, answer);
            }
            html.close("div");
        }
    }

    fn show_success(&self, html: &mut Html, answer: &Node) {
        for (name, header) in answer
            .find("headers")
            .map(Node::properties)
            .unwrap_or_default()
        {
            let Some(why) = header.text("description") else {
                // Every answer has it.
                continue;
            };
            html.open("p", "header");
            html.line(&format!("Header `{name}`: {why}"));
            html.close("p");
        }
        for (media, body) in answer
            .find("content")
            .map(Node::properties)
            .unwrap_or_default()
        {
            let Some(schema) = body.find("schema") else {
                continue;
            };
            show(html, schema);
            let shown = sample(self.document, schema);
            match shown.as_text() {
                Some(text) => html.sample(media, text),
                None => html.sample(media, &lines(&shown)),
            }
        }
    }
}
