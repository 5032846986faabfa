//! Which operations manage the plugins of partners? The OpenAPI descriptions.

use engine::delivery::partner::PARTNERS;
use engine::limits::{SERVER_DOMAIN_BYTES_MAX, WEBHOOK_KEY_CHARACTERS_MAX};

use super::response_body::{RESTARTED, UNCHANGED};
use crate::api::destinations::MASKED;
use crate::api::destinations::described::{DescribedKind, FAILURE_REASON, with_backlog};
use crate::api::openapi::{ApiOperation, Schema, Tag, names};
use crate::api::page::described::{page_of, paged};
use crate::api::words::PluginStatus;

/// Plugins in descriptions.
const PLUGIN: DescribedKind = DescribedKind {
    tag: Tag::Plugins,
    noun: "plugin",
    failed: "FAILED",
};

/// POST.
pub(in crate::api) fn install() -> ApiOperation {
    let text = "Shares the data of all devices of the customer with the partner: the service \
                POSTs every event to `https://<serverDomain>/webhook/<webhookKey>`, with the \
                body, the order and the retries of webhooks. Data that is JSON is delivered as \
                JSON. Events from before the installation are not delivered. The server must \
                have a public address, which is checked at each connection; the operator can \
                allow `http` and private addresses.";
    ApiOperation::new("installPlugin", Tag::Plugins, "Install a plugin")
        .description(text)
        .json(new_plugin(), "The plugin to install.")
        .answer(201, plugin(), "The installed plugin.")
        .answer_header(201, "Location", Schema::text(), "The path of the plugin.")
        .leads_to(
            201,
            &[
                "getPlugin",
                "restartPlugin",
                "listPluginDeadLetters",
                "replayPluginDeadLetters",
            ],
            &[("plugin", "$response.body#/id")],
        )
        .once(
            &["PLUGIN_EXISTS"],
            "the customer has a plugin of this partner.",
        )
}

/// GET all.
pub(in crate::api) fn list() -> ApiOperation {
    let operation = ApiOperation::new("listPlugins", Tag::Plugins, "List plugins")
        .description("Returns the plugins of the customer, oldest first.");
    paged(operation).answer(200, page_of(plugin()), "A page of plugins.")
}

/// GET those of a partner.
pub(in crate::api) fn list_of_partner() -> ApiOperation {
    let summary = "List the plugins of a partner";
    let operation = ApiOperation::new("listPluginsOfPartner", Tag::Plugins, summary)
        .description("Returns the plugin of this partner, if the customer has one.");
    paged(operation).answer(200, page_of(plugin()), "A page of plugins.")
}

/// GET one.
pub(in crate::api) fn show() -> ApiOperation {
    ApiOperation::new("getPlugin", Tag::Plugins, "Get a plugin")
        .description("Returns the plugin with its backlog. The key is never returned.")
        .answer(200, followed(), "The plugin and its backlog.")
}

/// DELETE.
pub(in crate::api) fn uninstall() -> ApiOperation {
    let text = "Ends the deliveries to the partner, and deletes the waiting events and the dead \
                letters. A delivery in progress may still arrive. To use another server or key, \
                uninstall the plugin and install it again.";
    ApiOperation::new("uninstallPlugin", Tag::Plugins, "Uninstall a plugin")
        .description(text)
        .answer_empty(204, "The plugin is uninstalled.")
}

/// POST restart.
pub(in crate::api) fn restart() -> ApiOperation {
    let text = "Resumes delivery after `FAILED`. Dead letters stay until they are replayed. In \
                any other status this has no effect.";
    ApiOperation::new("restartPlugin", Tag::Plugins, "Restart a plugin")
        .description(text)
        .answer(200, restarted(), "The plugin and what was done.")
}

/// GET dead letters.
pub(in crate::api) fn letters() -> ApiOperation {
    PLUGIN.letters("listPluginDeadLetters")
}

/// DELETE one dead letter.
pub(in crate::api) fn discard() -> ApiOperation {
    PLUGIN.discard("discardPluginDeadLetter")
}

/// DELETE all dead letters.
pub(in crate::api) fn discard_all() -> ApiOperation {
    PLUGIN.discard_all("discardPluginDeadLetters")
}

/// POST replay.
pub(in crate::api) fn replay() -> ApiOperation {
    PLUGIN.replay("replayPluginDeadLetters", followed())
}

const SERVER: &str = "The server of the partner: a host with an optional port. Where the operator \
                      allows private addresses, `http://` before it selects plain HTTP.";

fn new_plugin() -> Schema {
    let key = Schema::text_of(1..=WEBHOOK_KEY_CHARACTERS_MAX).pattern(names::PRINTABLE);
    let key = key.but(&[".", ".."]).example("7b0cf");
    Schema::closed()
        .must("serverDomain", server(), SERVER)
        .must(
            "webhookKey",
            key,
            "The webhook secret that the partner created. It is percent-encoded in the URL, \
             encrypted at rest and never returned.",
        )
        .named("NewPlugin")
}

fn server() -> Schema {
    let server = Schema::text_of(1..=SERVER_DOMAIN_BYTES_MAX);
    let server = server.pattern(r"^(http://)?[^\s/?#@\\]+$");
    server.example("gateway.example.com:8443")
}

/// A plugin in responses.
fn plugin() -> Schema {
    plugin_body().named("Plugin")
}

fn followed() -> Schema {
    with_backlog(plugin_body()).named("FollowedPlugin")
}

fn plugin_body() -> Schema {
    Schema::object()
        .must("id", Schema::uuid(), "The id of the plugin.")
        .must(
            "partner",
            Schema::text().example(PARTNERS[0].id),
            "The id of the partner.",
        )
        .must("serverDomain", server(), SERVER)
        .must("webhookKey", Schema::only(MASKED), "The key is not shown.")
        .must("status", Schema::word::<PluginStatus>(), STATUS)
        .may("failureReason", Schema::text(), FAILURE_REASON)
        .must(
            "replaying",
            Schema::truth(),
            "Whether a replay is queueing dead letters.",
        )
        .must("created", names::instant(), "The time of the installation.")
        .must(
            "updated",
            names::instant(),
            "The time of the last change of its status.",
        )
}

const STATUS: &str = "`INSTALLED`: no event was delivered yet. `ACTIVE`: events are delivered or \
                      retried. `FAILED`: all attempts for an event failed; events go to the dead \
                      letters until the plugin is restarted.";

fn restarted() -> Schema {
    let done = format!(
        "`{RESTARTED}`: the plugin had failed and is active again. `{UNCHANGED}`: it had not \
         failed."
    );
    Schema::object()
        .must("plugin", plugin(), "The plugin.")
        .must(
            "restartStatus",
            Schema::one_of_words(vec![RESTARTED, UNCHANGED]),
            &done,
        )
        .must("message", Schema::text(), "The result, for people.")
        .named("RestartedPlugin")
}
