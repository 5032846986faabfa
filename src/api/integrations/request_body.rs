//! How are the bodies that create and update webhooks parsed?

use engine::delivery::address::DestinationUrl;
use engine::delivery::address::headers::Headers;
use engine::delivery::address::policy::AddressPolicy;
use engine::delivery::destination::{
    BATCH_EVENTS_MAX, BATCH_WAIT_MS_DEFAULT, BATCH_WAIT_MS_MAX, EventBatching, EventTypes, Header,
    JsonPayload, LifecycleKinds,
};
use engine::delivery::signature::SigningSecret;
use engine::directory::destination::{NewWebhook, SealedField, WebhookAmendments};
use engine::event::{EventType, Lifecycle};
use engine::sealed::Sealed;

use crate::api::error::ApiError;
use crate::api::fields::{FieldFault, Fields, label};
use crate::api::words::Word;

/// The read-only properties of a webhook, with the message for each.
const READ_ONLY: [(&str, &str); 8] = [
    ("id", "is assigned by the service and cannot be changed"),
    (
        "state",
        "is read-only; use POST …/webhooks/{id}/restart to restart the webhook",
    ),
    ("failureReason", "is set by the service"),
    (
        "replaying",
        "is read-only; use POST …/webhooks/{id}/deadletters/replay to start a replay",
    ),
    (
        "secretSet",
        "is read-only; set the property secret, or null to remove the secret",
    ),
    ("created", "cannot be changed"),
    ("updated", "is set by the service"),
    ("backlog", "is set by the service"),
];

/// The name and the value of a header.
type Plain = (Box<str>, Box<str>);

/// The webhook that a body creates.
pub(super) fn new_webhook(
    mut fields: Fields,
    policy: AddressPolicy,
) -> Result<NewWebhook, ApiError> {
    let name = fields.required("name", label);
    let url = fields.required("url", |text| url(text, policy));
    let headers = headers(&mut fields);
    let wants = event_types(&mut fields);
    let json = json_payload(&mut fields);
    let batching = fields.object("batch", batching);
    let secret = fields.optional("secret", secret);
    let new = name.zip(url).map(|(name, url)| NewWebhook {
        name,
        url,
        headers: headers.unwrap_or_default(),
        event_types: wants.unwrap_or_else(EventTypes::usual),
        json: json.unwrap_or_default(),
        batching,
        secret,
    });
    fields.finish(new)
}

/// The changes in a body that updates a webhook.
pub(super) fn amendments(
    mut fields: Fields,
    policy: AddressPolicy,
    seal: impl Fn(SealedField<'_>, &str) -> Sealed,
) -> Result<WebhookAmendments, ApiError> {
    fields.never_removed(&["headers", "eventTypes", "jsonPayloadEnabled"]);
    let sealed = |(name, value): Plain| Header {
        value: seal(SealedField::Header(&name), &value),
        name,
    };
    let sealed = |headers: Vec<Plain>| headers.into_iter().map(sealed).collect();
    let amendments = WebhookAmendments {
        name: fields.replacement("name", label),
        url: fields.replacement("url", |text| url(text, policy)),
        headers: headers(&mut fields).map(sealed),
        event_types: event_types(&mut fields),
        json: json_payload(&mut fields),
        batching: fields.object_amendment("batch", |batch| Some(batching(batch))),
        secret: fields.amendment("secret", |text| {
            secret(text).map(|text| seal(SealedField::Secret, &text))
        }),
    };
    for (name, why) in READ_ONLY {
        fields.read_only(name, why);
    }
    fields.finish(Some(amendments))
}

fn url(text: &str, policy: AddressPolicy) -> Result<Box<str>, FieldFault> {
    Ok(DestinationUrl::parse(text, policy)?.as_str().into())
}

/// Checks each header on its own, so that each fault is reported, and then all of them together.
fn headers(fields: &mut Fields) -> Option<Vec<Plain>> {
    let alone = |name: &str, value: &str| {
        Headers::parse([(name, value)]).map(|_| (Box::from(name), Box::from(value)))
    };
    let given: Vec<Plain> = fields.texts_by_name("headers", alone)?;
    let pairs = given.iter().map(|(name, value)| (&**name, &**value));
    match Headers::parse(pairs) {
        Ok(_) => Some(given),
        Err(fault) => {
            fields.fault("headers", fault);
            None
        }
    }
}

/// The types of events that a webhook or a broker receives.
pub(in crate::api) fn event_types(fields: &mut Fields) -> Option<EventTypes> {
    let types = fields.objects("eventTypes", wanted_type)?;
    if types.is_empty() {
        let message = "must have at least one item; use DELETE to delete the integration";
        fields.fault("eventTypes", message);
        return None;
    }
    let kinds = of_lifecycle(&types);
    let types: EventTypes = types.iter().map(|(event_type, _)| *event_type).collect();
    Some(types.with_kinds(kinds))
}

/// A type of events, with the kinds of it if they are named.
type WantedType = (EventType, Option<Vec<Lifecycle>>);

fn wanted_type(fields: &mut Fields) -> Option<WantedType> {
    let event_type = fields.required("type", |text| {
        let known = EventType::known(text).filter(|it| it.is_for_integrations());
        known.ok_or_else(|| format!("must be one of {}", type_words().join(", ")))
    });
    let kinds = fields.texts("kinds", |words| match words {
        [] => Err("must have at least one item".to_owned()),
        words => words.iter().map(|word| Lifecycle::read(word)).collect(),
    });
    if kinds.is_some() && event_type.is_some_and(|it| it != EventType::Lifecycle) {
        fields.fault("kinds", "only LIFECYCLE has kinds");
    }
    event_type.map(|event_type| (event_type, kinds))
}

/// The kinds that the entries for lifecycle events name. If none does, the usual ones are meant.
fn of_lifecycle(types: &[WantedType]) -> Option<LifecycleKinds> {
    let entries = types.iter().filter(|(it, _)| *it == EventType::Lifecycle);
    if entries.clone().all(|(_, kinds)| kinds.is_none()) {
        return None;
    }
    let usual = || {
        Lifecycle::ALL
            .into_iter()
            .filter(|it| it.is_usual())
            .collect()
    };
    let kinds = entries.map(|(_, kinds)| kinds.clone().unwrap_or_else(usual));
    Some(kinds.flatten().collect())
}

/// The words of the types that a webhook or a stream may have.
pub(in crate::api) fn type_words() -> Vec<&'static str> {
    let types = EventType::ALL.into_iter();
    let types = types.filter(|it| it.is_for_integrations());
    types.map(EventType::word).collect()
}

/// How JSON of devices is sent.
pub(in crate::api) fn json_payload(fields: &mut Fields) -> Option<JsonPayload> {
    let is_enabled = fields.truth("jsonPayloadEnabled")?;
    Some(match is_enabled {
        true => JsonPayload::Parsed,
        false => JsonPayload::AsText,
    })
}

fn batching(fields: &mut Fields) -> EventBatching {
    let events_max = fields.number("maxEvents", 1..=BATCH_EVENTS_MAX.into());
    let wait_ms_max = fields.number("maxWaitMs", 0..=BATCH_WAIT_MS_MAX);
    EventBatching {
        events_max: events_max
            .and_then(|max| max.try_into().ok())
            .unwrap_or(BATCH_EVENTS_MAX),
        wait_ms_max: wait_ms_max.unwrap_or(BATCH_WAIT_MS_DEFAULT),
    }
}

/// The secret as given: it is stored so, and parsed again for each signature.
fn secret(text: &str) -> Result<Box<str>, FieldFault> {
    SigningSecret::parse(text)?;
    Ok(text.into())
}
