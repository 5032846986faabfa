//! Which operations manage MQTT brokers? The OpenAPI descriptions.

use engine::delivery::destination::DestinationState;
use engine::limits::{
    BROKER_LOGIN_CHARACTERS_MAX, BROKER_PEM_BYTES_MAX, INTEGRATIONS_MAX, TOPIC_PREFIX_BYTES_MAX,
    WEBHOOK_URL_BYTES_MAX,
};

use crate::api::destinations::MASKED;
use crate::api::destinations::described::{DescribedKind, FAILURE_REASON, with_backlog};
use crate::api::integrations::described::{
    JSON_PAYLOAD, NAME, TYPES, requested_types, tested, types_shown,
};
use crate::api::openapi::{ApiOperation, Schema, Tag, names};
use crate::api::page::described::{page_of, paged};

/// Brokers in descriptions.
const BROKER: DescribedKind = DescribedKind {
    tag: Tag::Clouds,
    noun: "broker",
    failed: "INTEGRATION_FAILED",
};

/// POST.
pub(in crate::api) fn create() -> ApiOperation {
    let text = "The service publishes each event of the customer's devices to the broker, at QoS \
                1, with the body that webhooks receive. An event is delivered when its PUBACK \
                accepts it. Delivery is at least once and in order per device. Events from before \
                the creation are not delivered.\n\nThe topics are \
                `{topicPrefix}/{deviceId}/telemetry`, `/lifecycle`, `/error` and `/action`. A `+` \
                in a device id is written `%2B`.\n\nWith `commands`, a message at \
                `{topicPrefix}/{deviceId}/actions/UDP`, `/COAP` or `/LWM2M` creates an action \
                request, as a POST of the same body does. The answer is published at \
                `{topicPrefix}/{deviceId}/action`, and then the message is acknowledged. The \
                caller needs `actions:write` for that.\n\nThe URL must use `mqtts` and must lead \
                to a public address, which is checked at each connection. The operator can allow \
                `mqtt` and private addresses.";
    ApiOperation::new("createBroker", Tag::Clouds, "Create an MQTT broker")
        .description(text)
        .json(new_broker(), "The broker to create.")
        .answer(201, broker(), "The created broker.")
        .answer_header(201, "Location", Schema::text(), "The path of the broker.")
        .leads_to(
            201,
            &[
                "getBroker",
                "amendBroker",
                "restartBroker",
                "listBrokerDeadLetters",
                "replayBrokerDeadLetters",
            ],
            &[("broker", "$response.body#/id")],
        )
        .once(
            &["TOO_MANY_DESTINATIONS"],
            &format!("the customer has {INTEGRATIONS_MAX} webhooks and brokers, the maximum."),
        )
}

/// GET all.
pub(in crate::api) fn list() -> ApiOperation {
    let operation = ApiOperation::new("listBrokers", Tag::Clouds, "List MQTT brokers")
        .description("Returns the MQTT brokers of the customer, oldest first.");
    paged(operation).answer(200, page_of(broker()), "A page of brokers.")
}

/// GET one.
pub(in crate::api) fn show() -> ApiOperation {
    let text = "Returns the broker with its backlog and the state of the connection. The password \
                and the private key are never returned.";
    ApiOperation::new("getBroker", Tag::Clouds, "Get an MQTT broker")
        .description(text)
        .answer(200, followed(), "The broker and its backlog.")
}

/// PATCH.
pub(in crate::api) fn amend() -> ApiOperation {
    let text = "Changes only the given fields. `tls` and `eventTypes` replace the previous values \
                as a whole. `null` removes `username`, `password` and `tls`. Events that wait for \
                delivery use the new values; events in flight are tried again. A broker in state \
                `INTEGRATION_FAILED` stays in that state until it is restarted. If the broker \
                sends commands, the caller needs `actions:write`.";
    ApiOperation::new("amendBroker", Tag::Clouds, "Update an MQTT broker")
        .description(text)
        .json(amended_broker(), "The fields to change.")
        .answer(200, broker(), "The updated broker.")
        .faults(&["READ_ONLY"])
}

/// DELETE.
pub(in crate::api) fn delete() -> ApiOperation {
    let text = "Also deletes its waiting events and its dead letters. A delivery in progress may \
                still arrive.";
    ApiOperation::new("deleteBroker", Tag::Clouds, "Delete an MQTT broker")
        .description(text)
        .answer_empty(204, "The broker is deleted.")
}

/// POST test.
pub(in crate::api) fn test() -> ApiOperation {
    let text = "Publishes one `TEST_MESSAGE` at `{topicPrefix}/test`, and waits for its PUBACK. \
                There is one attempt, in any state of the broker, and the state does not change.";
    ApiOperation::new("testBroker", Tag::Clouds, "Publish a test event")
        .description(text)
        .answer(200, tested(), "The result of the delivery.")
}

/// POST restart.
pub(in crate::api) fn restart() -> ApiOperation {
    let text = "Resumes delivery after `INTEGRATION_FAILED`. Dead letters stay until they are \
                replayed. In any other state this has no effect.";
    ApiOperation::new("restartBroker", Tag::Clouds, "Restart an MQTT broker")
        .description(text)
        .answer(200, broker(), "The broker.")
}

/// GET dead letters.
pub(in crate::api) fn letters() -> ApiOperation {
    BROKER.letters("listBrokerDeadLetters")
}

/// DELETE one dead letter.
pub(in crate::api) fn discard() -> ApiOperation {
    BROKER.discard("discardBrokerDeadLetter")
}

/// DELETE all dead letters.
pub(in crate::api) fn discard_all() -> ApiOperation {
    BROKER.discard_all("discardBrokerDeadLetters")
}

/// POST replay.
pub(in crate::api) fn replay() -> ApiOperation {
    BROKER.replay("replayBrokerDeadLetters", followed())
}

const URL: &str = "`mqtts://host`, with a port if it is not 8883.";

const PREFIX: &str = "What the topics begin with: one level or several.";

const VERSION: &str = "5: MQTT 5. 3: MQTT 3.1.1.";

const USERNAME: &str = "The user name at the broker.";

const COMMANDS: &str = "Whether messages of the broker create action requests.";

const CA: &str = "The CA certificates, in PEM, that are trusted instead of those of the system.";

const CERTIFICATE: &str = "The certificate that the service shows to the broker, in PEM, with the \
                           certificates between it and its CA.";

fn new_broker() -> Schema {
    Schema::closed()
        .must("name", names::label(), NAME)
        .must("url", url(), URL)
        .must("topicPrefix", prefix(), PREFIX)
        .may("version", version(), &format!("{VERSION} Default: 5."))
        .may("username", credential(), USERNAME)
        .may(
            "password",
            credential(),
            "The password. It needs a user name.",
        )
        .may("tls", tls(), TLS)
        .may(
            "commands",
            Schema::truth(),
            &format!("{COMMANDS} Default: `false`."),
        )
        .may(
            "eventTypes",
            requested_types(),
            &format!("{TYPES} Default: all, but without `commands` not `ACTION_RESULT`."),
        )
        .may(
            "jsonPayloadEnabled",
            Schema::truth(),
            &format!("{JSON_PAYLOAD} Default: `false`."),
        )
        .named("NewBroker")
}

fn amended_broker() -> Schema {
    Schema::closed()
        .may_never_null("name", names::label(), NAME)
        .may_never_null("url", url(), URL)
        .may_never_null("topicPrefix", prefix(), PREFIX)
        .may_never_null("version", version(), VERSION)
        .may("username", credential(), USERNAME)
        .may("password", credential(), "The password.")
        .may("tls", tls(), TLS)
        .may_never_null("commands", Schema::truth(), COMMANDS)
        .may_never_null("eventTypes", requested_types(), TYPES)
        .may_never_null("jsonPayloadEnabled", Schema::truth(), JSON_PAYLOAD)
        .named("AmendedBroker")
}

const CONNECTED: &str = "Whether the service is connected to the broker now. Without `commands` \
                         it connects when there is an event to publish.";

const LAST_ERROR: &str = "Why the last connection ended or was not established. Absent once a \
                          later connection was of use: the broker acknowledged an event on it, \
                          or with `commands` accepted the subscription.";

const TLS: &str = "The certificates of TLS.";

fn url() -> Schema {
    let url = Schema::text_of(1..=WEBHOOK_URL_BYTES_MAX);
    url.pattern(r"^mqtts?://[^\s/?#@\\]+/?$")
        .example("mqtts://broker.example.com:8883")
}

fn prefix() -> Schema {
    let prefix = Schema::text_of(1..=TOPIC_PREFIX_BYTES_MAX);
    prefix
        .pattern(r"^[^$+#\x00-\x1F\x7F-\x9F][^+#\x00-\x1F\x7F-\x9F]*$")
        .example("acme/meters")
}

fn version() -> Schema {
    Schema::whole(3..=5).example(5_u64)
}

fn credential() -> Schema {
    Schema::text_of(1..=BROKER_LOGIN_CHARACTERS_MAX).pattern(names::PRINTABLE)
}

fn tls() -> Schema {
    Schema::closed()
        .may("ca", pem(), CA)
        .may("certificate", pem(), CERTIFICATE)
        .may(
            "key",
            pem(),
            "The private key of the certificate, in PEM, without a passphrase.",
        )
        .named("NewBrokerTls")
}

fn pem() -> Schema {
    Schema::text_of(1..=BROKER_PEM_BYTES_MAX)
}

/// A broker in responses.
fn broker() -> Schema {
    broker_body().named("Broker")
}

fn followed() -> Schema {
    let broker = broker_body()
        .must("connected", Schema::truth(), CONNECTED)
        .may("lastError", Schema::text(), LAST_ERROR);
    with_backlog(broker).named("FollowedBroker")
}

fn broker_body() -> Schema {
    let tls = Schema::object()
        .may("ca", Schema::text(), CA)
        .may("certificate", Schema::text(), CERTIFICATE)
        .may("key", Schema::only(MASKED), "The key is not shown.")
        .named("BrokerTls");
    Schema::object()
        .must("id", Schema::uuid(), "The id of the broker.")
        .must("name", names::label(), NAME)
        .must("url", url(), URL)
        .must("topicPrefix", prefix(), PREFIX)
        .must("version", version(), VERSION)
        .may("username", Schema::text(), USERNAME)
        .may(
            "password",
            Schema::only(MASKED),
            "Present if there is a password, which is not shown.",
        )
        .may("tls", tls, TLS)
        .must("commands", Schema::truth(), COMMANDS)
        .must("eventTypes", types_shown(), TYPES)
        .must("jsonPayloadEnabled", Schema::truth(), JSON_PAYLOAD)
        .must("state", Schema::word::<DestinationState>(), STATE)
        .may("failureReason", Schema::text(), FAILURE_REASON)
        .must(
            "replaying",
            Schema::truth(),
            "Whether a replay is queueing dead letters.",
        )
        .must("created", names::instant(), "The creation time.")
        .must(
            "updated",
            names::instant(),
            "The time of the last change of the broker or its state.",
        )
}

const STATE: &str = "`ROLLOUT_DONE`: no event was delivered yet. `INTEGRATION_ACTIVE`: events are \
                     delivered or retried. `INTEGRATION_FAILED`: all attempts for an event \
                     failed; events go to the dead letters until the broker is restarted.";
