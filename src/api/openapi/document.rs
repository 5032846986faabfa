//! How are the routes turned into the OpenAPI 3.1 document?

use std::collections::BTreeMap;

use super::names;
use super::node::Node;
use super::operation::{
    ApiOperation, JSON, Link, Parameter, ParameterLocation, Presence, Response, Tag,
};
use super::rules::{self, ACCESS_TOKEN, CLIENT_SECRET, OPERATOR_TOKEN};
use super::schema::Schema;
use super::shown_settings::ShownSettings;
use crate::api::integrations::webhook_events;
use crate::api::routes::Route;
use crate::api::sms::described::forwarder as forwarded;

/// The OpenAPI version of the document.
const OPENAPI: &str = "3.1.1";

/// The header of every response; header names are case-insensitive.
const TRACE_ID: &str = "X-Trace-Id";

/// The description of the API.
const INTRODUCTION: &str = include_str!("introduction.md");

/// Schemas by their names.
type Named = BTreeMap<&'static str, Node>;

/// The document of these routes, as this platform serves them with these settings.
pub(in crate::api) fn document(routes: &[Route], platform: &str, settings: &ShownSettings) -> Node {
    let mut named = Named::new();
    let mut paths = Node::object();
    for route in routes {
        let operation = rules::complete(route, platform);
        let security = rules::security(route.access, &operation);
        let shown = shown(operation, security, &mut named);
        let path = paths.find(route.path).cloned();
        let path = path.unwrap_or_else(Node::object);
        let method = route.method.as_str().to_ascii_lowercase();
        paths.set(route.path, path.with(&method, shown));
    }
    let webhooks = webhooks(&mut named);
    let schemas = named.into_iter().fold(Node::object(), |schemas, it| {
        let (name, schema) = it;
        schemas.with(name, schema)
    });
    let components = Node::object()
        .with("schemas", schemas)
        .with("headers", Node::object().with(TRACE_ID, trace_header()))
        .with("securitySchemes", schemes());
    let document = Node::object()
        .with("openapi", OPENAPI)
        .with("info", info())
        .with("servers", vec![Node::object().with("url", "/")])
        .with("tags", tags())
        .with("paths", paths)
        .with("webhooks", webhooks)
        .with("components", components);
    settings.fill_node(document)
}

/// The calls that the service makes to the endpoints of customers.
fn webhooks(named: &mut Named) -> Node {
    let mut webhooks = Node::object();
    for event in webhook_events::all().into_iter().chain(forwarded::events()) {
        let node = event.node().with("tags", vec![event.tag.name()]);
        let headers = event.headers.into_iter();
        let headers = headers.map(|(name, schema, why)| Parameter {
            place: ParameterLocation::Header,
            name,
            need: Presence::Optional,
            schema,
            why: why.to_owned(),
        });
        let headers: Vec<_> = headers.map(|it| parameter(it, named)).collect();
        let body = Node::object()
            .with("required", true)
            .with("content", content(vec![(JSON, event.body)], named));
        let taken = "Any 2xx acknowledges the event. Any other response causes a retry.";
        let answers = Node::object().with("2XX", Node::object().with("description", taken));
        let call = node
            .with("parameters", headers)
            .with("requestBody", body)
            .with("responses", answers);
        webhooks.set(event.id, Node::object().with(event.method, call));
    }
    webhooks
}

fn info() -> Node {
    let licence = Node::object()
        .with("name", "Apache 2.0")
        .with("identifier", env!("CARGO_PKG_LICENSE"));
    Node::object()
        .with("title", "signalbox")
        .with("version", env!("CARGO_PKG_VERSION"))
        .with("description", INTRODUCTION)
        .with("license", licence)
}

fn tags() -> Vec<Node> {
    let shown = |tag: Tag| {
        Node::object()
            .with("name", tag.name())
            .with("description", tag.description())
    };
    Tag::ALL.into_iter().map(shown).collect()
}

fn trace_header() -> Node {
    Node::object()
        .with(
            "description",
            "The trace id of the call, by which the operator finds it in the log.",
        )
        .with("required", true)
        .with("schema", names::trace().into_node(&mut Named::new()))
}

fn schemes() -> Node {
    let scheme = |scheme: &str, why: &str| {
        Node::object()
            .with("type", "http")
            .with("scheme", scheme)
            .with("description", why)
    };
    let access = "An access token from `POST /oauth/token`. The scopes of the API client limit \
                  which operations it may call; one of the network may call those with `network`.";
    let operator = "The operator token: the value of `SIGNALBOX_OPERATOR_TOKEN`, or the content \
                    of the file `operator-token` in the data directory.";
    let client = "The `clientId` and `clientSecret` of an API client.";
    Node::object()
        .with(ACCESS_TOKEN, scheme("bearer", access))
        .with(OPERATOR_TOKEN, scheme("bearer", operator))
        .with(CLIENT_SECRET, scheme("basic", client))
}

fn shown(operation: ApiOperation, security: Node, named: &mut Named) -> Node {
    let parameters = operation.parameters.into_iter();
    let parameters: Vec<_> = parameters.map(|it| parameter(it, named)).collect();
    let body = operation.body.map(|body| {
        Node::object()
            .with("description", body.why)
            .with("required", true)
            .with("content", content(body.media, named))
    });
    let mut answers = Node::object();
    for (status, it) in operation.answers {
        answers.set(&status.to_string(), answer(it, named));
    }
    let description = Some(operation.description).filter(|text| !text.is_empty());
    let node = Node::object()
        .with("operationId", operation.id)
        .with("tags", vec![operation.tag.name()])
        .with("summary", operation.summary)
        .with_some("description", description)
        .with("security", security);
    let node = match parameters.is_empty() {
        true => node,
        false => node.with("parameters", parameters),
    };
    node.with_some("requestBody", body)
        .with("responses", answers)
}

fn parameter(parameter: Parameter, named: &mut Named) -> Node {
    let place = match parameter.place {
        ParameterLocation::Path => "path",
        ParameterLocation::Query => "query",
        ParameterLocation::Header => "header",
    };
    Node::object()
        .with("name", parameter.name)
        .with("in", place)
        .with("required", parameter.need == Presence::Required)
        .with("description", parameter.why)
        .with("schema", parameter.schema.into_node(named))
}

fn answer(answer: Response, named: &mut Named) -> Node {
    let everywhere = format!("#/components/headers/{TRACE_ID}");
    let everywhere = Node::object().with("$ref", everywhere);
    let mut headers = Node::object();
    for header in answer.headers {
        let shown = Node::object()
            .with("description", header.why)
            .with("required", header.need == Presence::Required)
            .with("schema", header.schema.into_node(named));
        headers.set(header.name, shown);
    }
    let headers = headers.with(TRACE_ID, everywhere);
    let media = Some(answer.media).filter(|media| !media.is_empty());
    let media = media.map(|media| content(media, named));
    Node::object()
        .with("description", answer.why)
        .with("headers", headers)
        .with_some("content", media)
        .with_some("links", links(answer.links))
}

fn links(links: Vec<Link>) -> Option<Node> {
    let mut shown = Node::object();
    for link in links {
        let mut parameters = Node::object();
        for (name, place) in link.parameters {
            parameters.set(name, place);
        }
        let to = Node::object().with("operationId", link.operation);
        shown.set(link.operation, to.with("parameters", parameters));
    }
    Some(shown).filter(|links| !links.properties().is_empty())
}

fn content(media: Vec<(&'static str, Schema)>, named: &mut Named) -> Node {
    media.into_iter().fold(Node::object(), |content, it| {
        let (media, schema) = it;
        content.with(
            media,
            Node::object().with("schema", schema.into_node(named)),
        )
    })
}
