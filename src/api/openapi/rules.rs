//! What do all routes of a kind share? Credentials, path parameters, and their error responses.

use engine::Version;
use engine::delivery::partner::{PARTNERS, Partner};
use engine::firmware::image_key::ImageKey;
use engine::ids::{
    ActionId, CampaignId, ClientId, CustomerId, DeviceId, EntryId, EventId, Iccid, ImageId, JobId,
    NodeId, ScheduleId, SecretId, SmsId,
};
use engine::setting::SettingName;

use super::names;
use super::node::Node;
use super::operation::{ApiOperation, ParameterLocation, Presence, SecurityScheme};
use super::schema::Schema;
use crate::api::access::Access;
use crate::api::brokers::Brokers;
use crate::api::definitions::described as definitions;
use crate::api::destinations::DestinationKind;
use crate::api::integrations::Webhooks;
use crate::api::plugins::Plugins;
use crate::api::routes::Route;
use crate::api::segment::{ObjectNumber, Platform, Segment};
use crate::api::words::{NETWORK_SCOPE, Word};

/// The scheme of customers' access tokens.
pub(super) const ACCESS_TOKEN: &str = "accessToken";

/// The scheme of the operator's token.
pub(super) const OPERATOR_TOKEN: &str = "operatorToken";

/// The scheme of API client credentials.
pub(super) const CLIENT_SECRET: &str = "clientSecret";

/// The error codes of every body.
const BODY_FAULTS: [&str; 8] = [
    "MALFORMED_BODY",
    "REQUIRED",
    "WRONG_TYPE",
    "OUT_OF_RANGE",
    "INVALID_VALUE",
    "UNKNOWN_PROPERTY",
    "REPEATED",
    "MORE_FAULTS",
];

/// The operation of a route with all that routes of its kind share.
pub(super) fn complete(route: &Route, platform: &str) -> ApiOperation {
    let mut operation = (route.describe)();
    for name in names_in(route.path) {
        if operation.parameters.iter().any(|known| known.name == name) {
            continue;
        }
        let (schema, why) = segment(name, platform);
        operation = operation.parameter(
            ParameterLocation::Path,
            name,
            Presence::Required,
            schema,
            why,
        );
    }
    operation
        .parameters
        .sort_by_key(|parameter| parameter.place);
    let operation = with_requests_refused(route, operation);
    let operation = with_callers_refused(route.access, operation);
    with_failures(operation)
}

/// The credentials that a route requires.
pub(super) fn security(access: Access, operation: &ApiOperation) -> Node {
    let scheme = |name: &str, scopes: Vec<&str>| Node::object().with(name, scopes);
    match (access, operation.credentials) {
        (Access::Open, None) => Node::List(Vec::new()),
        // The body may carry them instead of the header.
        (Access::Open, Some(SecurityScheme::ClientSecret)) => {
            vec![scheme(CLIENT_SECRET, vec![]), Node::object()].into()
        }
        (Access::Operator, _) => vec![scheme(OPERATOR_TOKEN, vec![])].into(),
        (Access::Network, _) => vec![
            scheme(OPERATOR_TOKEN, vec![]),
            scheme(ACCESS_TOKEN, vec![NETWORK_SCOPE]),
        ]
        .into(),
        (Access::Customer(scope), _) => vec![scheme(ACCESS_TOKEN, vec![scope.word()])].into(),
    }
}

fn names_in(path: &'static str) -> impl Iterator<Item = &'static str> {
    let segments = path.split('/');
    segments.filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
}

fn segment(name: &str, platform: &str) -> (Schema, &'static str) {
    match name {
        ActionId::NAME => (Schema::uuid(), "The `id` of the action request."),
        ClientId::NAME => (names::client_id(), "The `clientId` of the API client."),
        CustomerId::NAME => (names::customer_id(), "The `id` of the customer."),
        Webhooks::NAME => (Schema::uuid(), "The `id` of the webhook."),
        Brokers::NAME => (Schema::uuid(), "The `id` of the MQTT broker."),
        Plugins::NAME => (Schema::uuid(), "The `id` of the plugin."),
        <&Partner>::NAME => (
            Schema::one_of_words(PARTNERS.iter().map(|partner| partner.id).collect()),
            "The id of the partner.",
        ),
        DeviceId::NAME => (names::device_segment(), "The `deviceId` of the device."),
        EntryId::NAME => (Schema::uuid(), "The `id` of the log entry."),
        EventId::NAME => (Schema::uuid(), "The `id` of the event."),
        Iccid::NAME => (names::iccid(), "The `iccid` of the device."),
        SmsId::NAME => (names::sms_id(), "The `id` of the SMS."),
        ImageId::NAME => (Schema::uuid(), "The `id` of the image."),
        CampaignId::NAME => (Schema::uuid(), "The `id` of the campaign."),
        ImageKey::NAME => (
            Schema::text().pattern("^[0-9a-f]{40}$"),
            "The key of the device, which nobody can guess.",
        ),
        NodeId::NAME => (Schema::uuid(), "The `id` of the node."),
        JobId::NAME => (Schema::uuid(), "The `id` of the job."),
        ScheduleId::NAME => (Schema::uuid(), "The `id` of the schedule."),
        SecretId::NAME => (Schema::uuid(), "The `secretId` of the secret."),
        ObjectNumber::NAME => (definitions::object_number(), "The object id."),
        Version::NAME => (definitions::version(), "The version of the object."),
        SettingName::NAME => (Schema::word::<SettingName>(), "The name of the setting."),
        Platform::NAME => (
            Schema::only(platform),
            "The platform name, from the `platform` setting of the service.",
        ),
        name => unreachable!("a path names {name}, and nobody says what that is"),
    }
}

fn with_requests_refused(route: &Route, operation: ApiOperation) -> ApiOperation {
    let reads = operation.body.is_some();
    let has_parameter_in = |place| operation.parameters.iter().any(|it| it.place == place);
    let (asks, names) = (
        has_parameter_in(ParameterLocation::Query),
        has_parameter_in(ParameterLocation::Path),
    );
    let mut operation = operation;
    if (reads || asks) && !operation.answers.contains_key(&400) {
        let mut codes = if reads {
            BODY_FAULTS.to_vec()
        } else {
            query_faults(&operation)
        };
        codes.extend(&operation.faults);
        let why = "The request is invalid. `errors` lists every fault.";
        operation = operation.refusal(400, &codes, why);
    }
    if names && !operation.answers.contains_key(&404) {
        let why = match route.access {
            Access::Customer(_) => {
                "The path names an object that does not exist or belongs to another customer."
            }
            Access::Open | Access::Operator | Access::Network => {
                "The path names an object that does not exist."
            }
        };
        operation = operation.refusal(404, &["NOT_FOUND"], why);
    }
    if reads && !operation.answers.contains_key(&413) {
        let why = "The body is too large.";
        operation = operation.refusal(413, &["BODY_TOO_LARGE"], why);
    }
    if reads && !operation.answers.contains_key(&415) {
        let why = "The media type is not supported, or the body has a `Content-Encoding`.";
        operation = operation.refusal(415, &["UNSUPPORTED_MEDIA_TYPE"], why);
    }
    operation
}

/// The error codes of the query parameters.
fn query_faults(operation: &ApiOperation) -> Vec<&'static str> {
    let query_parameters = || {
        operation
            .parameters
            .iter()
            .filter(|it| it.place == ParameterLocation::Query)
    };
    let mut codes = vec![
        "INVALID_VALUE",
        "REPEATED",
        "UNKNOWN_PARAMETER",
        "MORE_FAULTS",
    ];
    if query_parameters().any(|parameter| parameter.need == Presence::Required) {
        codes.insert(0, "REQUIRED");
    }
    if query_parameters().any(|parameter| parameter.schema.is_number()) {
        codes.extend(["WRONG_TYPE", "OUT_OF_RANGE"]);
    }
    codes
}

fn with_callers_refused(access: Access, operation: ApiOperation) -> ApiOperation {
    let unknown = |operation: ApiOperation| {
        if operation.answers.contains_key(&401) {
            return operation;
        }
        let why = "The token is missing, unknown, revoked or expired.";
        operation
            .refusal(401, &["UNAUTHORIZED"], why)
            .challenged(401)
    };
    match access {
        Access::Open => operation,
        Access::Operator | Access::Network => {
            let lacking = match access {
                Access::Network => "The token is one of a customer.",
                Access::Open | Access::Operator | Access::Customer(_) => {
                    "The token is one of the network."
                }
            };
            let often = "Too many wrong tokens from this address. See `Retry-After`.";
            unknown(operation)
                .refusal(403, &["FORBIDDEN"], lacking)
                .challenged(403)
                .refusal(429, &["TOO_MANY_REQUESTS"], often)
                .retried(429)
        }
        Access::Customer(scope) => {
            let lacking = format!("The token lacks the scope `{}`.", scope.word());
            let often = "The customer exceeds its rate limit, or too many wrong tokens came from \
                         this address. See `Retry-After`.";
            unknown(operation)
                .refusal(403, &["FORBIDDEN"], &lacking)
                .challenged(403)
                .refusal(429, &["TOO_MANY_REQUESTS"], often)
                .retried(429)
        }
    }
}

/// Adds the failures of every call that uses the store or a device.
fn with_failures(operation: ApiOperation) -> ApiOperation {
    if !operation.can_fail {
        return operation;
    }
    let mut operation = operation;
    if !operation.answers.contains_key(&500) {
        let broken = "Internal error. The operator finds the cause by the `traceId`.";
        operation = operation.refusal(500, &["INTERNAL"], broken);
    }
    if operation.answers.contains_key(&503) {
        return operation;
    }
    let busy = "The service is overloaded or its store does not respond. See `Retry-After`.";
    operation.refusal(503, &["UNAVAILABLE"], busy).retried(503)
}
