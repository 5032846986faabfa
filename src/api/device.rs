//! What is the JSON of a device, in a list and in the device inspector?

pub(super) mod described;

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::Serialize;
use serde_json::Value as Json;

use engine::associations::{AssociationSnapshot, ClaimedIdentity};
use engine::base64_text;
use engine::bootstrap::BootstrapRecord;
use engine::delivery::body::value;
use engine::device::record::{Connectivity, Observation, ObservationTarget, Registration};
use engine::device::snapshot::{CurrentExchange, PendingAction, Presence, Snapshot};
use engine::event::Event;
use engine::moment::Timestamp;
use engine::profile::Profile;
use engine::query::KnownValue;
use engine::query::devices::ListedDevice;
use engine::sms::Sms;

use super::action::ActionBody;
use super::action::{addresses, by_name};
use super::bootstrap::BootstrapBody;
use super::messages::MessageBody;
use super::sms::SmsBody;
use super::words::{Word, online_word};

/// The identity of a device.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeviceBody {
    device_id: String,
    number: u64,
    iccid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    imsi: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    msisdn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<String>,
    endpoint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    psk: PskBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    public_key: Option<PublicKeyBody>,
    security: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    offline_after: Option<NonZeroU32>,
    created: String,
    tags: BTreeMap<String, String>,
}

/// The public part of a pre-shared key.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PskBody {
    identity: String,
    configured: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    /// Whether the previous key is still valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_valid: Option<bool>,
}

/// A raw public key.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PublicKeyBody {
    key: String,
    created: String,
    previous_valid: bool,
}

/// A device in a list.
#[derive(Serialize)]
pub(super) struct ListedDeviceBody {
    #[serde(flatten)]
    device: DeviceBody,
    presence: PresenceBody,
}

/// A device in the inspector.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InspectorBody {
    #[serde(flatten)]
    device: DeviceBody,
    presence: PresenceBody,
    association: Option<AssociationBody>,
    registration: Option<RegistrationBody>,
    pending_actions: Vec<PendingActionBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exchange: Option<ExchangeBody>,
    observations: Vec<ObservationBody>,
    values: Vec<KnownValueBody>,
    recent_messages: Vec<MessageBody>,
    recent_sms: Vec<SmsBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bootstrap: Option<BootstrapBody>,
}

/// The DTLS session of a device.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AssociationBody {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    cipher_suite: &'static str,
    connection_id: bool,
    resumed: bool,
    last_handshake: String,
    authenticated: String,
    address: String,
    address_changes: u32,
}

/// A request that is not final.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PendingActionBody {
    #[serde(flatten)]
    action: ActionBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<&'static str>,
}

/// The exchange in flight.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExchangeBody {
    purpose: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    since: String,
}

/// An observation.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ObservationBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paths: Option<Vec<String>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<&'static str, Option<String>>,
    state: &'static str,
    since: String,
    request_id: String,
}

/// The last known value of a resource.
#[derive(Serialize)]
struct KnownValueBody {
    path: String,
    value: Json,
    #[serde(rename = "type")]
    data_type: &'static str,
    time: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PresenceBody {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    connectivity: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_registered: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seen: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RegistrationBody {
    registered: String,
    expires: String,
    /// The effective lifetime in seconds.
    lifetime: u32,
    /// The requested lifetime in seconds; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    lifetime_asked: Option<u32>,
    binding: String,
    queue_mode: bool,
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sms_number: Option<String>,
    objects: Vec<ObjectBody>,
}

#[derive(Serialize)]
struct ObjectBody {
    id: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    instances: Vec<u16>,
}

impl DeviceBody {
    /// The device.
    pub(super) fn of(profile: &Profile) -> Self {
        Self {
            device_id: profile.device.to_string(),
            number: profile.number,
            iccid: profile.iccid.to_string(),
            imsi: profile.imsi.as_ref().map(ToString::to_string),
            msisdn: profile.msisdn.as_ref().map(ToString::to_string),
            ip: profile.ip.as_ref().map(ToString::to_string),
            endpoint: profile.endpoint.to_string(),
            name: profile.name.as_ref().map(ToString::to_string),
            psk: PskBody::of(profile),
            public_key: PublicKeyBody::of(profile),
            security: profile.security.word(),
            offline_after: profile.offline_after_s,
            created: profile.created_at.iso().to_string(),
            tags: tags_of(profile),
        }
    }
}

impl PskBody {
    fn of(profile: &Profile) -> Self {
        let credentials = &profile.credentials;
        let keys = credentials.psk.iter().chain(&credentials.issued);
        let psk = keys.max_by_key(|key| key.created_at);
        Self {
            identity: profile.psk_identity().to_owned(),
            configured: psk.is_some(),
            created: psk.map(|psk| shown(psk.created_at)),
            previous_valid: psk.map(|psk| psk.previous.is_some()),
        }
    }
}

impl PublicKeyBody {
    fn of(profile: &Profile) -> Option<Self> {
        let credentials = &profile.credentials;
        let set = credentials.public_key.iter();
        let keys = set.chain(&credentials.issued_public_key);
        let newest = keys.max_by_key(|key| key.created_at)?;
        Some(Self {
            key: base64_text::encode(&newest.key.spki()),
            created: shown(newest.created_at),
            previous_valid: newest.previous.is_some(),
        })
    }
}

impl ListedDeviceBody {
    /// The device with its presence.
    pub(super) fn of(listed: &ListedDevice, presence: Presence) -> Self {
        let record = &listed.record;
        Self {
            device: DeviceBody::of(&listed.profile),
            presence: PresenceBody {
                state: presence.word(),
                connectivity: connectivity_word(record.connectivity, presence),
                first_registered: record.first_contact_at.map(shown),
                last_seen: record.last_seen_at.map(shown),
                protocol: record.protocols_seen.last().map(Word::word),
                address: record.peer.map(|peer| peer.to_string()),
            },
        }
    }
}

impl InspectorBody {
    /// The device with its state, last values and recent messages.
    pub(super) fn of(
        profile: &Profile,
        (snapshot, association): (&Snapshot, Option<&AssociationSnapshot>),
        values: &[KnownValue],
        recent: &[Event],
        (recent_sms, bootstrap): (&[Sms], Option<&BootstrapRecord>),
    ) -> Self {
        Self {
            device: DeviceBody::of(profile),
            presence: PresenceBody {
                state: snapshot.presence.word(),
                connectivity: connectivity_word(snapshot.connectivity, snapshot.presence),
                first_registered: snapshot.first_contact_at.map(shown),
                last_seen: snapshot.last_seen_at.map(shown),
                protocol: snapshot.protocols_seen.map(Word::word),
                address: snapshot.peer.map(|peer| peer.to_string()),
            },
            association: association.map(AssociationBody::of),
            registration: snapshot.registration.as_ref().map(RegistrationBody::of),
            pending_actions: snapshot.pending.iter().map(PendingActionBody::of).collect(),
            exchange: snapshot.exchange.as_ref().map(ExchangeBody::of),
            observations: snapshot
                .observations
                .iter()
                .map(ObservationBody::of)
                .collect(),
            values: values.iter().map(KnownValueBody::of).collect(),
            recent_messages: recent.iter().map(MessageBody::of).collect(),
            recent_sms: recent_sms.iter().map(SmsBody::of).collect(),
            bootstrap: bootstrap.map(BootstrapBody::of),
        }
    }
}

impl AssociationBody {
    fn of(association: &AssociationSnapshot) -> Self {
        let (kind, identity) = match &association.identity {
            ClaimedIdentity::Psk(identity) => ("PSK", Some(identity.to_string())),
            ClaimedIdentity::PublicKey(_) => ("RPK", None),
            ClaimedIdentity::Certificate { endpoint, .. } => ("X509", Some(endpoint.to_string())),
        };
        Self {
            kind,
            identity,
            cipher_suite: association.suite,
            connection_id: association.has_connection_id,
            resumed: association.is_resumed,
            last_handshake: shown(association.established_at),
            authenticated: shown(association.authenticated_at),
            address: association.address.to_string(),
            address_changes: association.address_changes,
        }
    }
}

impl PendingActionBody {
    fn of(pending: &PendingAction) -> Self {
        Self {
            action: ActionBody::of(&pending.action),
            waits_for: pending.waits_for.map(Word::word),
        }
    }
}

impl ExchangeBody {
    fn of(exchange: &CurrentExchange) -> Self {
        Self {
            purpose: exchange.purpose.word(),
            request_id: exchange.action.map(|id| id.to_string()),
            path: exchange.path.map(|path| path.to_string()),
            since: exchange.begun_at.iso().to_string(),
        }
    }
}

impl ObservationBody {
    fn of(observation: &Observation) -> Self {
        Self {
            path: observation.target.path().map(|path| path.to_string()),
            paths: match &observation.target {
                ObservationTarget::Path(_) => None,
                ObservationTarget::Paths(paths) => Some(addresses(paths)),
            },
            attributes: by_name(&observation.attributes),
            state: observation.state.word(),
            since: observation.begun_at.iso().to_string(),
            request_id: observation.action.to_string(),
        }
    }
}

impl KnownValueBody {
    fn of(known: &KnownValue) -> Self {
        Self {
            path: known.path.to_string(),
            value: value::shown(&known.value),
            data_type: known.value.data_type().as_str(),
            time: known.at.iso().to_string(),
        }
    }
}

impl RegistrationBody {
    fn of(registration: &Registration) -> Self {
        Self {
            registered: registration.registered_at.iso().to_string(),
            expires: registration.expires_at.iso().to_string(),
            lifetime: registration.lifetime_s(),
            lifetime_asked: registration.lifetime_asked_s,
            binding: registration.binding.to_string(),
            queue_mode: registration.binding.queue_mode(),
            version: registration.version.to_string(),
            sms_number: registration.sms.as_ref().map(ToString::to_string),
            objects: objects_of(registration),
        }
    }
}

/// The word for whether a device is online, if that is known.
fn connectivity_word(stored: Connectivity, presence: Presence) -> Option<&'static str> {
    let is_registered = presence != Presence::Unregistered;
    stored.is_online(is_registered).map(online_word)
}

fn shown(at: Timestamp) -> String {
    at.iso().to_string()
}

fn tags_of(profile: &Profile) -> BTreeMap<String, String> {
    let tags = profile.tags.as_slice().iter();
    tags.map(|tag| (tag.key.to_string(), tag.value.to_string()))
        .collect()
}

fn objects_of(registration: &Registration) -> Vec<ObjectBody> {
    let objects = registration.links.objects();
    let shown = objects.map(|object| ObjectBody {
        id: object.id,
        version: object.version.map(|version| version.to_string()),
        instances: object.instances.to_vec(),
    });
    shown.collect()
}
