//! How is it kept what a device's actor knows of it?

use std::net::SocketAddr;

use engine::device::record::{DeviceRecord, Registration};
use engine::moment::Timestamp;
use engine::peer::{Peer, Via};
use minicbor::{Decode, Encode};

use super::{Unreadable, damaged, read, write};

const VERSION: u8 = 1;

#[derive(Decode, Encode)]
#[cbor(array)]
struct DeviceV1<'a> {
    #[n(0)]
    first_registered_at_ms: Option<i64>,
    #[n(1)]
    last_seen_at_ms: Option<i64>,
    #[n(2)]
    peer: Option<PeerV1>,
    #[b(3)]
    registration: Option<RegistrationV1<'a>>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct PeerV1 {
    #[n(0)]
    via: u8,
    /// As text, because an IPv6 address may carry a scope.
    #[n(1)]
    address: String,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct RegistrationV1<'a> {
    #[n(0)]
    salt: u32,
    #[n(1)]
    lifetime_asked_s: Option<u32>,
    #[n(2)]
    expires_at_ms: i64,
    #[n(3)]
    registered_at_ms: i64,
    #[n(4)]
    version: String,
    #[n(5)]
    binding: String,
    #[b(6)]
    sms: Option<&'a str>,
    #[n(7)]
    links: String,
}

/// Writes a device record.
pub(crate) fn write_device(record: &DeviceRecord) -> Vec<u8> {
    let kept = DeviceV1 {
        first_registered_at_ms: record.first_registered_at.map(Timestamp::as_ms),
        last_seen_at_ms: record.last_seen_at.map(Timestamp::as_ms),
        peer: record.peer.map(peer_record),
        registration: record.registration.as_ref().map(registration_record),
    };
    write(VERSION, &kept)
}

/// Reads a device record.
pub(crate) fn read_device(value: &[u8]) -> Result<DeviceRecord, Unreadable> {
    let kept: DeviceV1<'_> = read(VERSION, value)?;
    Ok(DeviceRecord {
        first_registered_at: kept.first_registered_at_ms.map(Timestamp::from_ms),
        last_seen_at: kept.last_seen_at_ms.map(Timestamp::from_ms),
        peer: kept.peer.as_ref().map(read_peer).transpose()?,
        registration: kept.registration.map(read_registration).transpose()?,
    })
}

fn peer_record(peer: Peer) -> PeerV1 {
    let via = match peer.via {
        Via::Plain => 1,
    };
    PeerV1 {
        via,
        address: peer.address.to_string(),
    }
}

fn read_peer(kept: &PeerV1) -> Result<Peer, Unreadable> {
    let address: SocketAddr = kept.address.parse().map_err(damaged("no peer address"))?;
    let via = match kept.via {
        1 => Via::Plain,
        _ => return Err(Unreadable::Damaged("an unknown carrier")),
    };
    Ok(Peer { address, via })
}

fn registration_record(registration: &Registration) -> RegistrationV1<'_> {
    RegistrationV1 {
        salt: registration.salt,
        lifetime_asked_s: registration.lifetime_asked_s,
        expires_at_ms: registration.expires_at.as_ms(),
        registered_at_ms: registration.registered_at.as_ms(),
        version: registration.version_text(),
        binding: registration.binding_text(),
        sms: registration.sms.as_deref(),
        links: registration.links_text(),
    }
}

fn read_registration(kept: RegistrationV1<'_>) -> Result<Registration, Unreadable> {
    Ok(Registration {
        salt: kept.salt,
        lifetime_asked_s: kept.lifetime_asked_s,
        expires_at: Timestamp::from_ms(kept.expires_at_ms),
        registered_at: Timestamp::from_ms(kept.registered_at_ms),
        version: Registration::parse_version(&kept.version)
            .ok_or(Unreadable::Damaged("no enabler version"))?,
        binding: Registration::parse_binding(&kept.binding)
            .ok_or(Unreadable::Damaged("no binding"))?,
        sms: kept.sms.map(Into::into),
        links: Registration::parse_links(&kept.links)
            .ok_or(Unreadable::Damaged("no object links"))?,
    })
}
