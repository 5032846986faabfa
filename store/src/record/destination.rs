//! How is a destination stored?

use engine::delivery::destination::{
    Broker, ClientCertificate, Destination, EventBatching, EventTypes, Header, LifecycleKinds,
    Plugin, SmsForwarder, Target, Webhook,
};
use engine::ids::DestinationId;
use engine::moment::Timestamp;
use engine::sealed::Sealed;
use minicbor::bytes::ByteArray;
use minicbor::{Decode, Encode};

use super::customer::customer_id;
use super::{Unreadable, code, read, write};

const VERSION: u8 = 1;

#[derive(Decode, Encode)]
#[cbor(array)]
struct DestinationV1<'a> {
    #[n(0)]
    id: ByteArray<16>,
    #[b(1)]
    customer: &'a str,
    #[b(2)]
    name: &'a str,
    #[b(3)]
    target: TargetV1<'a>,
    #[n(4)]
    wants: u8,
    #[n(5)]
    state: u8,
    #[n(6)]
    created_at_ms: i64,
    #[n(7)]
    updated_at_ms: i64,
    #[n(8)]
    replay: u8,
    #[b(9)]
    failure: Option<&'a str>,
    /// The kinds of lifecycle events; absent unless they are named.
    #[n(10)]
    kinds: Option<u16>,
}

#[derive(Decode, Encode)]
enum TargetV1<'a> {
    #[n(0)]
    #[cbor(array)]
    Webhook {
        #[b(0)]
        url: &'a str,
        #[b(1)]
        headers: Vec<HeaderV1<'a>>,
        #[cbor(b(2), with = "minicbor::bytes")]
        secret: Option<&'a [u8]>,
        #[n(3)]
        json: u8,
        #[n(4)]
        batching: Option<BatchingV1>,
    },
    #[n(1)]
    #[cbor(array)]
    Plugin {
        #[b(0)]
        partner: &'a str,
        #[b(1)]
        server_domain: &'a str,
        #[cbor(b(2), with = "minicbor::bytes")]
        webhook_key: &'a [u8],
    },
    #[n(2)]
    #[cbor(array)]
    SmsForwarder {
        #[b(0)]
        url: &'a str,
        #[n(1)]
        organisation: u64,
    },
    #[n(3)]
    #[cbor(array)]
    Broker {
        #[b(0)]
        url: &'a str,
        #[b(1)]
        topic_prefix: &'a str,
        #[n(2)]
        version: u8,
        #[b(3)]
        username: Option<&'a str>,
        #[cbor(b(4), with = "minicbor::bytes")]
        password: Option<&'a [u8]>,
        #[b(5)]
        ca: Option<&'a str>,
        #[b(6)]
        chain: Option<&'a str>,
        #[cbor(b(7), with = "minicbor::bytes")]
        key: Option<&'a [u8]>,
        #[n(8)]
        commands: u8,
        #[n(9)]
        json: u8,
    },
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct BatchingV1 {
    #[n(0)]
    events_max: u8,
    #[n(1)]
    wait_ms_max: u32,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct HeaderV1<'a> {
    #[b(0)]
    name: &'a str,
    #[cbor(b(1), with = "minicbor::bytes")]
    value: &'a [u8],
}

/// A destination as bytes, for another node.
pub fn destination_to_bytes(destination: &Destination) -> Vec<u8> {
    write_destination(destination)
}

/// The destination of such bytes; none, if they are not of a node of this version.
pub fn destination_of_bytes(bytes: &[u8]) -> Option<Destination> {
    read_destination(bytes).ok()
}

/// Writes a destination.
pub(crate) fn write_destination(destination: &Destination) -> Vec<u8> {
    let record = DestinationV1 {
        id: ByteArray::from(*destination.id.as_bytes()),
        customer: destination.customer.as_str(),
        name: &destination.name,
        target: target_record(&destination.target),
        wants: destination.event_types.bits(),
        state: code::of_destination_state(destination.state),
        created_at_ms: destination.created_at.as_ms(),
        updated_at_ms: destination.updated_at.as_ms(),
        replay: code::of_replay(destination.replay),
        failure: destination.failure.as_deref(),
        kinds: destination.event_types.kinds().map(LifecycleKinds::bits),
    };
    write(VERSION, &record)
}

/// Reads a destination.
pub(crate) fn read_destination(value: &[u8]) -> Result<Destination, Unreadable> {
    let record: DestinationV1<'_> = read(VERSION, value)?;
    Ok(Destination {
        id: DestinationId::from_bytes(record.id.into()),
        customer: customer_id(record.customer)?,
        name: record.name.into(),
        target: read_target(record.target)?,
        event_types: EventTypes::from_bits(record.wants)
            .with_kinds(record.kinds.map(LifecycleKinds::from_bits)),
        state: code::destination_state(record.state)?,
        replay: code::replay(record.replay)?,
        failure: record.failure.map(Into::into),
        created_at: Timestamp::from_ms(record.created_at_ms),
        updated_at: Timestamp::from_ms(record.updated_at_ms),
    })
}

fn target_record(target: &Target) -> TargetV1<'_> {
    match target {
        Target::Webhook(webhook) => TargetV1::Webhook {
            url: &webhook.url,
            headers: webhook.headers.iter().map(header_record).collect(),
            secret: webhook.secret.as_ref().map(Sealed::as_bytes),
            json: code::of_json_payload(webhook.json),
            batching: webhook.batching.map(|it| BatchingV1 {
                events_max: it.events_max,
                wait_ms_max: it.wait_ms_max,
            }),
        },
        Target::Plugin(plugin) => TargetV1::Plugin {
            partner: &plugin.partner,
            server_domain: &plugin.server_domain,
            webhook_key: plugin.webhook_key.as_bytes(),
        },
        Target::SmsForwarder(forwarder) => TargetV1::SmsForwarder {
            url: &forwarder.url,
            organisation: forwarder.organisation,
        },
        Target::Broker(broker) => broker_record(broker),
    }
}

fn broker_record(broker: &Broker) -> TargetV1<'_> {
    let certificate = broker.certificate.as_ref();
    TargetV1::Broker {
        url: &broker.url,
        topic_prefix: &broker.topic_prefix,
        version: code::of_mqtt_version(broker.version),
        username: broker.username.as_deref(),
        password: broker.password.as_ref().map(Sealed::as_bytes),
        ca: broker.ca.as_deref(),
        chain: certificate.map(|it| &*it.chain),
        key: certificate.map(|it| it.key.as_bytes()),
        commands: code::of_broker_commands(broker.commands),
        json: code::of_json_payload(broker.json),
    }
}

fn header_record(header: &Header) -> HeaderV1<'_> {
    HeaderV1 {
        name: &header.name,
        value: header.value.as_bytes(),
    }
}

fn read_target(record: TargetV1<'_>) -> Result<Target, Unreadable> {
    let header = |header: HeaderV1<'_>| Header {
        name: header.name.into(),
        value: Sealed::from_bytes(header.value.into()),
    };
    match record {
        TargetV1::Webhook {
            url,
            headers,
            secret,
            json,
            batching,
        } => Ok(Target::Webhook(Webhook {
            url: url.into(),
            headers: headers.into_iter().map(header).collect(),
            secret: secret.map(|secret| Sealed::from_bytes(secret.into())),
            json: code::json_payload(json)?,
            batching: batching.map(|it| EventBatching {
                events_max: it.events_max,
                wait_ms_max: it.wait_ms_max,
            }),
        })),
        TargetV1::Plugin {
            partner,
            server_domain,
            webhook_key,
        } => Ok(Target::Plugin(Plugin {
            partner: partner.into(),
            server_domain: server_domain.into(),
            webhook_key: Sealed::from_bytes(webhook_key.into()),
        })),
        TargetV1::SmsForwarder { url, organisation } => Ok(Target::SmsForwarder(SmsForwarder {
            url: url.into(),
            organisation,
        })),
        TargetV1::Broker {
            url,
            topic_prefix,
            version,
            username,
            password,
            ca,
            chain,
            key,
            commands,
            json,
        } => {
            let sealed = |bytes: &[u8]| Sealed::from_bytes(bytes.into());
            let certificate = chain.zip(key).map(|(chain, key)| ClientCertificate {
                chain: chain.into(),
                key: sealed(key),
            });
            Ok(Target::Broker(Box::new(Broker {
                url: url.into(),
                topic_prefix: topic_prefix.into(),
                version: code::mqtt_version(version)?,
                username: username.map(Into::into),
                password: password.map(sealed),
                ca: ca.map(Into::into),
                certificate,
                commands: code::broker_commands(commands)?,
                json: code::json_payload(json)?,
            })))
        }
    }
}
