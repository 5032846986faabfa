//! How are the DTLS session of a device and the list of strangers encoded for another node?
//!
//! Neither is stored: both nodes of the cluster have about the same version.

use std::net::SocketAddr;

use engine::Code;
use engine::associations::{AssociationSnapshot, ClaimedIdentity};
use engine::ids::CustomerId;
use engine::moment::Timestamp;
use engine::strangers::Stranger;
use minicbor::{Decode, Encode};

use super::customer::customer_id;
use super::profile::{PublicKeyV1, endpoint_name, public_key_record, read_public_key};
use super::{Unreadable, code, damaged, read, write};

const VERSION: u8 = 1;

#[derive(Decode, Encode)]
#[cbor(array)]
struct AssociationV1<'a> {
    #[b(0)]
    identity: IdentityV1<'a>,
    #[b(1)]
    suite: &'a str,
    #[n(2)]
    has_connection_id: bool,
    #[n(3)]
    is_resumed: bool,
    #[n(4)]
    established_at_ms: i64,
    #[n(5)]
    authenticated_at_ms: i64,
    /// As text, because an IPv6 address may have a scope.
    #[n(6)]
    address: String,
    #[n(7)]
    address_changes: u32,
}

#[derive(Decode, Encode)]
enum IdentityV1<'a> {
    #[n(0)]
    #[cbor(array)]
    Psk(#[b(0)] &'a str),
    #[n(1)]
    #[cbor(array)]
    PublicKey(#[b(0)] PublicKeyV1<'a>),
    #[n(2)]
    #[cbor(array)]
    Certificate {
        #[b(0)]
        endpoint: &'a str,
        #[b(1)]
        customer: Option<&'a str>,
    },
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct StrangerV1<'a> {
    #[b(0)]
    endpoint: Option<&'a str>,
    /// As text, because an IPv6 address may have a scope.
    #[n(1)]
    address: String,
    #[n(2)]
    protocol: u8,
    #[n(3)]
    operation: u8,
    #[n(4)]
    answer: Option<u8>,
    #[n(5)]
    first_at_ms: i64,
    #[n(6)]
    last_at_ms: i64,
    #[n(7)]
    count: u64,
}

/// The association with a device, if there is one, as bytes for another node.
pub fn association_to_bytes(association: Option<&AssociationSnapshot>) -> Vec<u8> {
    write(VERSION, &association.map(association_record))
}

/// The association of such bytes; none, if they are not of a node of this version.
pub fn association_of_bytes(bytes: &[u8]) -> Option<Option<AssociationSnapshot>> {
    let record: Option<AssociationV1<'_>> = read(VERSION, bytes).ok()?;
    record.map(read_association).transpose().ok()
}

/// Strangers as bytes, for another node.
pub fn strangers_to_bytes(strangers: &[Stranger]) -> Vec<u8> {
    let records: Vec<StrangerV1<'_>> = strangers.iter().map(stranger_record).collect();
    write(VERSION, &records)
}

/// The strangers of such bytes; none, if they are not of a node of this version.
pub fn strangers_of_bytes(bytes: &[u8]) -> Option<Vec<Stranger>> {
    let records: Vec<StrangerV1<'_>> = read(VERSION, bytes).ok()?;
    let strangers = records.into_iter().map(read_stranger);
    strangers.collect::<Result<Vec<_>, _>>().ok()
}

fn association_record(association: &AssociationSnapshot) -> AssociationV1<'_> {
    AssociationV1 {
        identity: identity_record(&association.identity),
        suite: association.suite,
        has_connection_id: association.has_connection_id,
        is_resumed: association.is_resumed,
        established_at_ms: association.established_at.as_ms(),
        authenticated_at_ms: association.authenticated_at.as_ms(),
        address: association.address.to_string(),
        address_changes: association.address_changes,
    }
}

fn read_association(record: AssociationV1<'_>) -> Result<AssociationSnapshot, Unreadable> {
    let suite = AssociationSnapshot::suite_named(record.suite);
    Ok(AssociationSnapshot {
        identity: read_identity(record.identity)?,
        suite: suite.ok_or(Unreadable::Damaged("an unknown cipher suite"))?,
        has_connection_id: record.has_connection_id,
        is_resumed: record.is_resumed,
        established_at: Timestamp::from_ms(record.established_at_ms),
        authenticated_at: Timestamp::from_ms(record.authenticated_at_ms),
        address: read_address(&record.address)?,
        address_changes: record.address_changes,
    })
}

fn identity_record(identity: &ClaimedIdentity) -> IdentityV1<'_> {
    match identity {
        ClaimedIdentity::Psk(name) => IdentityV1::Psk(name),
        ClaimedIdentity::PublicKey(key) => IdentityV1::PublicKey(public_key_record(key)),
        ClaimedIdentity::Certificate { endpoint, customer } => IdentityV1::Certificate {
            endpoint: endpoint.as_str(),
            customer: customer.as_ref().map(CustomerId::as_str),
        },
    }
}

fn read_identity(record: IdentityV1<'_>) -> Result<ClaimedIdentity, Unreadable> {
    Ok(match record {
        IdentityV1::Psk(name) => ClaimedIdentity::Psk(name.into()),
        IdentityV1::PublicKey(key) => ClaimedIdentity::PublicKey(read_public_key(key)?),
        IdentityV1::Certificate { endpoint, customer } => ClaimedIdentity::Certificate {
            endpoint: endpoint_name(endpoint)?,
            customer: customer.map(customer_id).transpose()?,
        },
    })
}

fn stranger_record(stranger: &Stranger) -> StrangerV1<'_> {
    StrangerV1 {
        endpoint: stranger.endpoint.as_deref(),
        address: stranger.address.to_string(),
        protocol: code::of_protocol(stranger.protocol),
        operation: code::of_device_operation(stranger.operation),
        answer: stranger.answer.map(Code::as_byte),
        first_at_ms: stranger.first_at.as_ms(),
        last_at_ms: stranger.last_at.as_ms(),
        count: stranger.count,
    }
}

fn read_stranger(record: StrangerV1<'_>) -> Result<Stranger, Unreadable> {
    Ok(Stranger {
        endpoint: record.endpoint.map(Into::into),
        address: read_address(&record.address)?,
        protocol: code::protocol(record.protocol)?,
        operation: code::device_operation(record.operation)?,
        answer: record.answer.map(Code::from_byte),
        first_at: Timestamp::from_ms(record.first_at_ms),
        last_at: Timestamp::from_ms(record.last_at_ms),
        count: record.count,
    })
}

fn read_address(text: &str) -> Result<SocketAddr, Unreadable> {
    text.parse().map_err(damaged("no address"))
}

#[cfg(test)]
mod tests {
    use engine::action::Protocol;
    use engine::credentials::RawPublicKey;
    use engine::ids::Endpoint;
    use engine::route::DeviceOperation;

    use super::*;
    use crate::conformance::samples::{acme, at};
    use crate::record::tests::changes;

    #[test]
    fn an_association_is_read_as_it_was_written() {
        for association in associations() {
            let bytes = association_to_bytes(association.as_ref());
            assert_eq!(association_of_bytes(&bytes), Some(association));
        }
    }

    #[test]
    fn strangers_are_read_as_they_were_written() {
        for list in [strangers(), Vec::new()] {
            assert_eq!(strangers_of_bytes(&strangers_to_bytes(&list)), Some(list));
        }
    }

    #[test]
    fn an_association_with_an_unknown_cipher_suite_is_unreadable() {
        let association = AssociationSnapshot {
            suite: "TLS_NULL_WITH_NULL_NULL",
            ..association()
        };
        let bytes = association_to_bytes(Some(&association));
        assert_eq!(association_of_bytes(&bytes), None);
    }

    #[test]
    fn bytes_that_are_cut_off_are_neither_an_association_nor_strangers() {
        for association in associations() {
            let bytes = association_to_bytes(association.as_ref());
            for end in 0..bytes.len() {
                let read = association_of_bytes(&bytes[..end]);
                assert_eq!(read, None, "{end} bytes of {association:?}");
            }
        }
        for list in [strangers(), Vec::new()] {
            let bytes = strangers_to_bytes(&list);
            for end in 0..bytes.len() {
                let read = strangers_of_bytes(&bytes[..end]);
                assert_eq!(read, None, "{end} bytes of {list:?}");
            }
        }
    }

    #[test]
    fn changed_bytes_never_panic() {
        for association in associations() {
            for changed in changes(&association_to_bytes(association.as_ref())) {
                let _ = association_of_bytes(&changed);
            }
        }
        for changed in changes(&strangers_to_bytes(&strangers())) {
            let _ = strangers_of_bytes(&changed);
        }
    }

    /// None, and an association of each identity.
    fn associations() -> Vec<Option<AssociationSnapshot>> {
        let mut associations = vec![None];
        associations.extend(identities().map(|identity| {
            Some(AssociationSnapshot {
                identity,
                ..association()
            })
        }));
        associations.push(Some(AssociationSnapshot {
            suite: "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
            has_connection_id: false,
            is_resumed: true,
            address: "[fe80::1%7]:5684".parse().unwrap(),
            address_changes: 0,
            ..association()
        }));
        associations
    }

    fn association() -> AssociationSnapshot {
        AssociationSnapshot {
            identity: ClaimedIdentity::Psk("größe".into()),
            suite: "TLS_PSK_WITH_AES_128_CCM_8",
            has_connection_id: true,
            is_resumed: false,
            established_at: at(2),
            authenticated_at: at(1),
            address: "192.0.2.7:5684".parse().unwrap(),
            address_changes: 3,
        }
    }

    /// Every kind of identity.
    fn identities() -> [ClaimedIdentity; 4] {
        let key = RawPublicKey::from_point(&[4; RawPublicKey::POINT_BYTES]).unwrap();
        let certificate = |customer| ClaimedIdentity::Certificate {
            endpoint: Endpoint::parse("urn:dev:1").unwrap(),
            customer,
        };
        [
            ClaimedIdentity::Psk("meter-1".into()),
            ClaimedIdentity::PublicKey(key),
            certificate(None),
            certificate(Some(acme())),
        ]
    }

    /// Strangers with each operation, and one without a name and an answer.
    fn strangers() -> Vec<Stranger> {
        let operations = [
            DeviceOperation::Register,
            DeviceOperation::Update,
            DeviceOperation::Deregister,
            DeviceOperation::Send,
            DeviceOperation::Notify,
            DeviceOperation::Data,
            DeviceOperation::Bootstrap,
            DeviceOperation::Handshake,
            DeviceOperation::Unknown,
        ];
        let named = operations.map(|operation| Stranger {
            endpoint: Some("urn:dev:1".into()),
            address: "192.0.2.7:5683".parse().unwrap(),
            protocol: Protocol::Lwm2m,
            operation,
            answer: Some(Code::FORBIDDEN),
            first_at: at(1),
            last_at: at(2),
            count: u64::MAX,
        });
        let bare = Stranger {
            endpoint: None,
            address: "[fe80::1%7]:4445".parse().unwrap(),
            protocol: Protocol::Udp,
            operation: DeviceOperation::Data,
            answer: None,
            first_at: at(3),
            last_at: at(3),
            count: 1,
        };
        named.into_iter().chain([bare]).collect()
    }
}
