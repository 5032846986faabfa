//! What is the JSON of an MQTT broker? Its configuration without the secrets.

use serde::Serialize;

use engine::MqttVersion;
use engine::delivery::destination::{Broker, BrokerCommands, Destination, JsonPayload, Replay};

use crate::api::destinations::MASKED;
use crate::api::integrations::{TypeBody, types_of};
use crate::api::words::Word as _;

/// A broker.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct BrokerBody {
    id: String,
    name: String,
    url: String,
    topic_prefix: String,
    version: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    username: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls: Option<TlsBody>,
    commands: bool,
    event_types: Vec<TypeBody>,
    json_payload_enabled: bool,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_reason: Option<String>,
    replaying: bool,
    created: String,
    updated: String,
}

/// What TLS uses: certificates are public, the key is not.
#[derive(Serialize)]
struct TlsBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    ca: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'static str>,
}

impl BrokerBody {
    /// The broker.
    pub(in crate::api) fn of(destination: &Destination, broker: &Broker) -> Self {
        Self {
            id: destination.id.to_string(),
            name: destination.name.to_string(),
            url: broker.url.to_string(),
            topic_prefix: broker.topic_prefix.to_string(),
            version: match broker.version {
                MqttVersion::V3 => 3,
                MqttVersion::V5 => 5,
            },
            username: broker.username.as_deref().map(Into::into),
            password: broker.password.as_ref().map(|_| MASKED),
            tls: TlsBody::of(broker),
            commands: broker.commands == BrokerCommands::On,
            event_types: types_of(destination.event_types),
            json_payload_enabled: broker.json == JsonPayload::Parsed,
            state: destination.state.word(),
            failure_reason: destination.failure.as_deref().map(Into::into),
            replaying: destination.replay == Replay::UnderWay,
            created: destination.created_at.iso().to_string(),
            updated: destination.updated_at.iso().to_string(),
        }
    }
}

impl TlsBody {
    fn of(broker: &Broker) -> Option<Self> {
        let body = Self {
            ca: broker.ca.as_deref().map(Into::into),
            certificate: broker.certificate.as_ref().map(|it| it.chain.to_string()),
            key: broker.certificate.as_ref().map(|_| MASKED),
        };
        (body.ca.is_some() || body.key.is_some()).then_some(body)
    }
}
