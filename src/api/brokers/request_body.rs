//! How are the bodies that create and update MQTT brokers parsed?

use actors::broker::{BrokerTls, BrokerTlsFault};
use engine::MqttVersion;
use engine::delivery::address::broker::BrokerUrl;
use engine::delivery::address::policy::AddressPolicy;
use engine::delivery::destination::{BrokerCommands, ClientCertificate};
use engine::delivery::mqtt::TopicPrefix;
use engine::directory::amending::FieldAmendment;
use engine::directory::destination::{BrokerAmendments, NewBroker, SealedField};
use engine::limits::{BROKER_LOGIN_CHARACTERS_MAX, BROKER_PEM_BYTES_MAX};
use engine::sealed::Sealed;

use crate::api::error::ApiError;
use crate::api::fields::{FieldFault, Fields, label};
use crate::api::integrations::request_body::{event_types, json_payload};

/// The read-only properties of a broker, with the message for each.
const READ_ONLY: [(&str, &str); 9] = [
    ("id", "is assigned by the service and cannot be changed"),
    (
        "state",
        "is read-only; use POST …/mqtt/{id}/restart to restart the broker",
    ),
    ("failureReason", "is set by the service"),
    ("connected", "is set by the service"),
    ("lastError", "is set by the service"),
    (
        "replaying",
        "is read-only; use POST …/mqtt/{id}/deadletters/replay to start a replay",
    ),
    ("created", "cannot be changed"),
    ("updated", "is set by the service"),
    ("backlog", "is set by the service"),
];

/// Texts in PEM.
type Pem = Box<str>;

/// The CA certificates, and the certificate of the service with its key.
type Tls = (Option<Pem>, Option<(Pem, Pem)>);

/// The broker that a body creates.
pub(super) fn new_broker(mut fields: Fields, policy: AddressPolicy) -> Result<NewBroker, ApiError> {
    let name = fields.required("name", label);
    let url = fields.required("url", |text| url(text, policy));
    let topic_prefix = fields.required("topicPrefix", prefix);
    let version = version(&mut fields);
    let username = fields.optional("username", credential);
    let password = fields.optional("password", credential);
    if password.is_some() && username.is_none() {
        fields.fault(
            "username",
            FieldFault::required("is required with password"),
        );
    }
    let (ca, certificate) = fields.object("tls", tls).flatten().unwrap_or_default();
    let commands = commands(&mut fields);
    let event_types = event_types(&mut fields);
    let json = json_payload(&mut fields);
    let new = name.zip(url).zip(topic_prefix);
    let new = new.map(|((name, url), topic_prefix)| NewBroker {
        name,
        url,
        topic_prefix,
        version: version.unwrap_or_default(),
        username,
        password,
        ca,
        certificate,
        commands: commands.unwrap_or_default(),
        event_types,
        json: json.unwrap_or_default(),
    });
    fields.finish(new)
}

/// The changes in a body that updates a broker.
pub(super) fn amendments(
    mut fields: Fields,
    policy: AddressPolicy,
    seal: impl Fn(SealedField<'_>, &str) -> Sealed,
) -> Result<BrokerAmendments, ApiError> {
    fields.never_removed(&["version", "commands", "eventTypes", "jsonPayloadEnabled"]);
    let sealed = |(chain, key): (Pem, Pem)| ClientCertificate {
        key: seal(SealedField::BrokerKey, &key),
        chain,
    };
    let amendments = BrokerAmendments {
        name: fields.replacement("name", label),
        url: fields.replacement("url", |text| url(text, policy)),
        topic_prefix: fields.replacement("topicPrefix", prefix),
        version: version(&mut fields),
        username: fields.amendment("username", credential),
        password: fields.amendment("password", |text| {
            credential(text).map(|text| seal(SealedField::BrokerPassword, &text))
        }),
        tls: match fields.object_amendment("tls", tls) {
            FieldAmendment::Keep => FieldAmendment::Keep,
            FieldAmendment::Remove => FieldAmendment::Remove,
            FieldAmendment::Put((ca, shown)) => FieldAmendment::Put((ca, shown.map(sealed))),
        },
        commands: commands(&mut fields),
        event_types: event_types(&mut fields),
        json: json_payload(&mut fields),
    };
    for (name, why) in READ_ONLY {
        fields.read_only(name, why);
    }
    fields.finish(Some(amendments))
}

fn url(text: &str, policy: AddressPolicy) -> Result<Box<str>, FieldFault> {
    BrokerUrl::parse(text, policy)?;
    Ok(text.into())
}

fn prefix(text: &str) -> Result<Box<str>, FieldFault> {
    Ok(TopicPrefix::parse(text)?.to_string().into())
}

fn version(fields: &mut Fields) -> Option<MqttVersion> {
    match fields.number("version", 3..=5)? {
        3 => Some(MqttVersion::V3),
        5 => Some(MqttVersion::V5),
        _ => {
            fields.fault("version", FieldFault::out_of_range("must be 3 or 5"));
            None
        }
    }
}

/// A user name or a password.
fn credential(text: &str) -> Result<Box<str>, String> {
    let max = BROKER_LOGIN_CHARACTERS_MAX;
    if text.is_empty() || text.chars().count() > max {
        return Err(format!("must have 1 to {max} characters"));
    }
    match text.chars().find(|c| c.is_control()) {
        Some(_) => Err("must not contain control characters".to_owned()),
        None => Ok(text.into()),
    }
}

fn commands(fields: &mut Fields) -> Option<BrokerCommands> {
    Some(match fields.truth("commands")? {
        true => BrokerCommands::On,
        false => BrokerCommands::Off,
    })
}

fn tls(fields: &mut Fields) -> Option<Tls> {
    let ca = fields.optional("ca", pem);
    let certificate = fields.optional("certificate", pem);
    let key = fields.optional("key", pem);
    let shown = match (certificate, key) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        (Some(_), None) => {
            fields.fault("key", FieldFault::required("is required with certificate"));
            return None;
        }
        (None, Some(_)) => {
            let message = "is required with key";
            fields.fault("certificate", FieldFault::required(message));
            return None;
        }
    };
    let checked = BrokerTls {
        ca: ca.as_deref().map(Into::into),
        certificate: shown
            .as_ref()
            .map(|(chain, key)| (chain.to_string(), key.to_string())),
    };
    if let Err(fault) = checked.check() {
        let field = match fault {
            BrokerTlsFault::Ca => "ca",
            BrokerTlsFault::Certificate => "certificate",
            BrokerTlsFault::Key | BrokerTlsFault::Mismatch => "key",
        };
        fields.fault(field, fault);
        return None;
    }
    Some((ca, shown))
}

fn pem(text: &str) -> Result<Pem, String> {
    match text.len() <= BROKER_PEM_BYTES_MAX {
        true => Ok(text.into()),
        false => Err(format!(
            "must not be longer than {BROKER_PEM_BYTES_MAX} bytes"
        )),
    }
}
