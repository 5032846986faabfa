//! Which operations set what devices are given when they are bootstrapped? The OpenAPI
//! descriptions.

use engine::bootstrap::{
    AccountSecurity, BootstrapOperation, BootstrapSecurity, BootstrapState, SHORT_ID,
};
use engine::limits::{
    BOOTSTRAP_SERVERS_MAX, BOOTSTRAP_URI_CHARS_MAX, BOOTSTRAP_VALUES_MAX, LIFETIME_S_MAX,
};

use crate::api::destinations::MASKED;
use crate::api::openapi::{ApiOperation, Schema, Tag, names};

/// GET, of the customer.
pub(in crate::api) fn show() -> ApiOperation {
    shown(
        "getBootstrapConfiguration",
        "Get the bootstrap configuration of the customer",
    )
}

/// PUT, of the customer.
pub(in crate::api) fn put() -> ApiOperation {
    let text = format!(
        "Sets what devices are given when they ask for their bootstrap (`POST /bs`) and have no \
         configuration of their own. Without any configuration, devices get this service alone, \
         with the short id {SHORT_ID}, a lifetime of {LIFETIME_S_MAX} seconds and the security \
         that the bootstrap came with."
    );
    set(
        "setBootstrapConfiguration",
        "Set the bootstrap configuration of the customer",
        &text,
    )
}

/// DELETE, of the customer.
pub(in crate::api) fn delete() -> ApiOperation {
    deleted(
        "deleteBootstrapConfiguration",
        "Delete the bootstrap configuration of the customer",
        "Devices with a configuration of their own keep it.",
    )
}

/// GET, of a device.
pub(in crate::api) fn show_of_device() -> ApiOperation {
    shown(
        "getDeviceBootstrapConfiguration",
        "Get the bootstrap configuration of a device",
    )
}

/// PUT, of a device.
pub(in crate::api) fn put_of_device() -> ApiOperation {
    set(
        "setDeviceBootstrapConfiguration",
        "Set the bootstrap configuration of a device",
        "Sets what a device is given at its next bootstrap. It takes the place of the \
         configuration of the customer.",
    )
}

/// DELETE, of a device.
pub(in crate::api) fn delete_of_device() -> ApiOperation {
    deleted(
        "deleteDeviceBootstrapConfiguration",
        "Delete the bootstrap configuration of a device",
        "From now on the device is given what the customer configured.",
    )
}

/// The last bootstrap of a device, in the inspector.
pub(in crate::api) fn bootstrap() -> Schema {
    let step = Schema::object()
        .must(
            "operation",
            Schema::word::<BootstrapOperation>(),
            "What was requested of the device; `PACK`: the device requested everything in one \
             response (Bootstrap-Pack).",
        )
        .may(
            "path",
            Schema::text().example("/0/1"),
            "The path of the request; `/` is everything.",
        )
        .may(
            "format",
            Schema::count().example(11_542_u64),
            "The Content-Format of what was written.",
        )
        .must("time", names::instant(), "When the request was sent.")
        .may(
            "code",
            Schema::text().example("204"),
            "The response code of the device, or to it for `PACK`; absent if it did not respond.",
        );
    Schema::object()
        .must(
            "state",
            Schema::word::<BootstrapState>().example("SUCCEEDED"),
            "`RUNNING`; `SUCCEEDED`: the device accepted everything; `FAILED`: it refused a \
             request or did not respond, see `error`; `INTERRUPTED`: the service was stopped \
             meanwhile.",
        )
        .must(
            "security",
            Schema::word::<BootstrapSecurity>().example("DTLS"),
            "What the bootstrap was protected by.",
        )
        .must("started", names::instant(), "When the device asked for it.")
        .may("ended", names::instant(), "When it ended.")
        .may("error", Schema::text(), "Why it failed.")
        .must(
            "steps",
            Schema::list(step),
            "The requests to the device, in order.",
        )
        .named("Bootstrap")
}

fn shown(id: &'static str, summary: &'static str) -> ApiOperation {
    let operation = ApiOperation::new(id, Tag::Devices, summary)
        .description("Returns the configuration as it was set.")
        .answer(
            200,
            config(Schema::object(), masked_key).named("BootstrapConfiguration"),
            CONFIG,
        );
    unless_unset(operation)
}

fn set(id: &'static str, summary: &'static str, text: &str) -> ApiOperation {
    let new = config(Schema::closed(), given_key).named("NewBootstrapConfiguration");
    let text = format!(
        "{text}\n\nEach server becomes an account (object 0) and a server (object 1) of the \
         device, from `/0/1` and `/1/0` on; the account of the bootstrap server stays. For `PSK` \
         and `RPK` the service makes a new key or key pair at each bootstrap. The one before it \
         stays valid until the device uses the new one."
    );
    ApiOperation::new(id, Tag::Devices, summary)
        .description(text)
        .json(new, CONFIG)
        .answer(
            200,
            config(Schema::object(), masked_key).named("BootstrapConfiguration"),
            CONFIG,
        )
}

fn deleted(id: &'static str, summary: &'static str, text: &str) -> ApiOperation {
    let operation = ApiOperation::new(id, Tag::Devices, summary)
        .description(text)
        .answer_empty(204, "The configuration is deleted.");
    unless_unset(operation)
}

fn unless_unset(operation: ApiOperation) -> ApiOperation {
    let why = "There is no such device, or no bootstrap configuration is set.";
    operation.refusal(404, &["NOT_FOUND"], why)
}

const CONFIG: &str = "The configuration.";

/// The private key as a caller gives it.
fn given_key(server: Schema) -> Schema {
    server.may(
        "key",
        Schema::text(),
        &format!(
            "For `X509`: the private key of the certificate, on P-256, in PEM, without a \
             passphrase. `{MASKED}`, as it is shown, keeps the key that is stored with the same \
             certificate."
        ),
    )
}

/// The private key as it is shown.
fn masked_key(server: Schema) -> Schema {
    server.may("key", Schema::only(MASKED), "The key is not shown.")
}

fn config(body: Schema, key: fn(Schema) -> Schema) -> Schema {
    let server = Schema::closed()
        .must(
            "shortId",
            Schema::whole(1..=65_534).example(u64::from(SHORT_ID)),
            "The short server id.",
        )
        .may(
            "uri",
            Schema::text_of(1..=BOOTSTRAP_URI_CHARS_MAX).example("coaps://lwm2m.example:5684"),
            "Where the server is: `coap://` for `NOSEC`, `coaps://` for the others. Default: this \
             service.",
        )
        .must(
            "lifetime",
            Schema::whole(1..=u64::from(LIFETIME_S_MAX)).example(86_400_u64),
            "The lifetime of registrations, in seconds.",
        )
        .must(
            "binding",
            Schema::text().pattern("^[UMHTSNQ]+$").example("U"),
            "How the device is reached; `UQ` is queue mode over UDP.",
        )
        .must(
            "security",
            Schema::word::<AccountSecurity>().example("PSK"),
            "The security of the account. `X509` is for the configuration of a device alone.",
        )
        .may(
            "certificate",
            Schema::text(),
            "For `X509`: the certificate of the device, in PEM. It has to be valid at this time, \
             and without `uri` to have the endpoint name of the device.",
        );
    let server = key(server);
    let servers = u64::try_from(BOOTSTRAP_SERVERS_MAX).unwrap_or(u64::MAX);
    let values = u64::try_from(BOOTSTRAP_VALUES_MAX).unwrap_or(u64::MAX);
    let path = Schema::text().pattern("^/[0-9]+/[0-9]+/[0-9]+(/[0-9]+)?$");
    body.must(
        "servers",
        Schema::list(server).many(1..=servers),
        "The servers.",
    )
    .may(
        "objects",
        Schema::map(Schema::anything())
            .of_names(path, values)
            .example(crate::api::openapi::Node::object().with("/3/0/15", "Europe/Berlin")),
        "Further values by path, of the types in the object model. `/0/n` and `/1/n` are the \
         account and the instance of the server at place n; the resources 0, 1, 2, 3, 5 and 10 of \
         the former and 0, 1 and 7 of the latter are written from `servers`.",
    )
}
