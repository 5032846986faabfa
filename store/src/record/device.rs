//! How is the record of a device's actor stored?

use std::net::SocketAddr;
use std::num::NonZeroU32;

use engine::Attributes;
use engine::device::log_quota::LogQuota;
use engine::device::record::{
    Connectivity, DeviceRecord, Logged, OBSERVATION_TOKEN_BYTES, Observation, ObservationTarget,
    ProtocolsSeen, Registration, Wakefulness,
};
use engine::ids::ActionId;
use engine::moment::Timestamp;
use engine::peer::Peer;
use minicbor::bytes::{ByteArray, ByteVec};
use minicbor::{Decode, Encode};

use super::device_flags::{self, DEVICE_VERSION};
use super::firmware::{FirmwareUpdateV1, read_update, update_record};
use super::last_entries::{self, LastEntries};
use super::value::{path_record, read_path};
use super::{Unreadable, code, damaged, read, write};

#[derive(Decode, Encode)]
#[cbor(array)]
struct DeviceV1<'a> {
    #[n(0)]
    first_heard_at_ms: Option<i64>,
    #[n(1)]
    last_seen_at_ms: Option<i64>,
    #[b(2)]
    peer: Option<PeerV1<'a>>,
    #[b(3)]
    registration: Option<RegistrationV1<'a>>,
    #[n(4)]
    observations: Option<Vec<ObservationV1>>,
    /// Absent while the log has no entry about it, which is nearly always.
    #[n(5)]
    unknown_object: Option<u8>,
    /// A bit for each protocol the device ever used; absent for a device never seen.
    #[n(6)]
    heard_over: Option<u8>,
    #[n(7)]
    heard_over_last: Option<u8>,
    /// Absent unless the device left a Read-Composite unanswered.
    #[n(8)]
    composite_unanswered: Option<NonZeroU32>,
    /// The day and the use of it; absent unless a payload of the device was ever rejected.
    #[n(9)]
    log_quota: Option<(u16, u16)>,
    /// Absent if it is unknown.
    #[n(10)]
    connectivity: Option<u8>,
    /// Absent unless somebody wants to know when the device awakes and falls asleep.
    #[n(11)]
    wakefulness: Option<u8>,
    #[n(12)]
    expired_lifetime_s: Option<NonZeroU32>,
    /// Absent unless a campaign updates the device.
    #[b(13)]
    update: Option<FirmwareUpdateV1<'a>>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct ObservationV1 {
    #[n(0)]
    path: ByteVec,
    #[n(1)]
    token: ByteArray<OBSERVATION_TOKEN_BYTES>,
    #[n(2)]
    action: ByteArray<16>,
    #[n(3)]
    begun_at_ms: i64,
    #[n(4)]
    state: u8,
    /// Absent without attributes.
    #[n(5)]
    attributes: Option<String>,
    /// The paths of a composite observation; absent for one of a path, which is in `path`.
    #[n(6)]
    paths: Option<Vec<ByteVec>>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct PeerV1<'a> {
    #[n(0)]
    via: u8,
    /// As text, because an IPv6 address may have a scope.
    #[b(1)]
    address: &'a str,
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
    #[b(4)]
    version: &'a str,
    #[b(5)]
    binding: &'a str,
    #[b(6)]
    sms: Option<&'a str>,
    #[b(7)]
    links: &'a str,
}

/// The fields that are text in a record and parsed in memory.
struct ParsedTexts {
    address: Option<String>,
    version: String,
    binding: String,
    links: String,
}

impl ParsedTexts {
    fn of(record: &DeviceRecord) -> Self {
        let of_registration =
            |text: fn(&Registration) -> String| record.registration.as_ref().map(text);
        Self {
            address: record.peer.map(|peer| peer.address.to_string()),
            version: of_registration(Registration::version_text).unwrap_or_default(),
            binding: of_registration(Registration::binding_text).unwrap_or_default(),
            links: of_registration(Registration::links_text).unwrap_or_default(),
        }
    }
}

/// Writes a device record, which follows the last entries of the log about the device.
pub(crate) fn write_device(record: &DeviceRecord) -> Vec<u8> {
    let texts = ParsedTexts::of(record);
    let registration = record.registration.as_ref();
    let record = DeviceV1 {
        first_heard_at_ms: record.first_contact_at.map(Timestamp::as_ms),
        last_seen_at_ms: record.last_seen_at.map(Timestamp::as_ms),
        peer: record.peer.map(|peer| peer_record(peer, &texts)),
        registration: registration.map(|record| registration_record(record, &texts)),
        observations: (!record.observations.is_empty())
            .then(|| record.observations.iter().map(observation_record).collect()),
        unknown_object: (record.unknown_object != Logged::default())
            .then(|| code::of_logged(record.unknown_object)),
        heard_over: Some(device_flags::bits_of(record.protocols_seen)).filter(|bits| *bits != 0),
        heard_over_last: record.protocols_seen.last().map(code::of_protocol),
        composite_unanswered: record.composite_unanswered,
        log_quota: record.log_quota.used(),
        connectivity: (record.connectivity != Connectivity::default())
            .then(|| code::of_connectivity(record.connectivity)),
        wakefulness: (record.wakefulness != Wakefulness::default())
            .then(|| code::of_wakefulness(record.wakefulness)),
        expired_lifetime_s: record.expired_lifetime_s,
        update: record.update.as_deref().map(update_record),
    };
    write(DEVICE_VERSION, &record)
}

/// Replaces the last entries of the log in the row of a device record.
pub(crate) fn with_last_entries(value: &[u8], last: &LastEntries) -> Result<Vec<u8>, Unreadable> {
    let (_, record) = last_entries::read_before(value)?;
    Ok(last_entries::write_before(last, record))
}

/// The row of a device that the log has no entry about.
pub(crate) fn row_of(record: &DeviceRecord) -> Vec<u8> {
    last_entries::write_before(&LastEntries::default(), &write_device(record))
}

/// Reads a device record.
pub(crate) fn read_device(value: &[u8]) -> Result<DeviceRecord, Unreadable> {
    read_one_of_many(value, &mut ObjectListCache::default())
}

/// Reads a device record that may share its object list with others.
pub(crate) fn read_one_of_many(
    value: &[u8],
    others: &mut ObjectListCache,
) -> Result<DeviceRecord, Unreadable> {
    let (_, record) = last_entries::read_before(value)?;
    let record: DeviceV1<'_> = read(DEVICE_VERSION, record)?;
    Ok(DeviceRecord {
        first_contact_at: record.first_heard_at_ms.map(Timestamp::from_ms),
        last_seen_at: record.last_seen_at_ms.map(Timestamp::from_ms),
        peer: record.peer.as_ref().map(read_peer).transpose()?,
        registration: record
            .registration
            .map(|record| read_registration(record, others))
            .transpose()?,
        observations: record
            .observations
            .into_iter()
            .flatten()
            .map(read_observation)
            .collect::<Result<_, _>>()?,
        unknown_object: record
            .unknown_object
            .map_or(Ok(Logged::default()), code::logged)?,
        composite_unanswered: record.composite_unanswered,
        log_quota: record.log_quota.map_or(LogQuota::default(), |(day, used)| {
            LogQuota::restored(day, used)
        }),
        update: record
            .update
            .map(|update| read_update(&update).map(Box::new))
            .transpose()?,
        protocols_seen: read_heard_over(record.heard_over, record.heard_over_last)?,
        connectivity: record
            .connectivity
            .map_or(Ok(Connectivity::default()), code::connectivity)?,
        wakefulness: record
            .wakefulness
            .map_or(Ok(Wakefulness::default()), code::wakefulness)?,
        expired_lifetime_s: record.expired_lifetime_s,
    })
}

/// The object lists of devices read before. Most devices of a fleet offer one of a few lists, and
/// to read a list costs more than all the rest of a record.
#[derive(Default)]
pub(crate) struct ObjectListCache {
    /// The text of a list, and a registration that has it.
    known: Vec<(Box<str>, Registration)>,
    /// Which of them the next one replaces.
    oldest: usize,
}

/// How many object lists are remembered: the kinds of one fleet, and few enough for a linear
/// search.
const LISTS_MAX: usize = 8;

impl ObjectListCache {
    fn with_links(&self, text: &str) -> Option<&Registration> {
        let mut known = self.known.iter();
        known
            .find(|(links, _)| **links == *text)
            .map(|(_, registration)| registration)
    }

    fn remember(&mut self, text: &str, registration: &Registration) {
        let known = (text.into(), registration.clone());
        match self.known.get_mut(self.oldest) {
            Some(place) => *place = known,
            None => self.known.push(known),
        }
        self.oldest = (self.oldest + 1) % LISTS_MAX;
    }
}

fn peer_record(peer: Peer, texts: &ParsedTexts) -> PeerV1<'_> {
    PeerV1 {
        via: code::of_transport(peer.transport),
        address: texts.address.as_deref().unwrap_or_default(),
    }
}

fn read_peer(record: &PeerV1<'_>) -> Result<Peer, Unreadable> {
    let address: SocketAddr = record.address.parse().map_err(damaged("no peer address"))?;
    Ok(Peer::at(address, code::transport(record.via)?))
}

fn read_heard_over(ever: Option<u8>, last: Option<u8>) -> Result<ProtocolsSeen, Unreadable> {
    let ever = device_flags::protocols_of(ever.unwrap_or(0))?;
    let last = last.map(code::protocol).transpose()?;
    Ok(ProtocolsSeen::restored(ever, last))
}

fn observation_record(observation: &Observation) -> ObservationV1 {
    ObservationV1 {
        path: observation
            .target
            .path()
            .map_or(Vec::new().into(), path_record),
        attributes: (!observation.attributes.is_empty()).then(|| observation.attributes.query()),
        paths: match &observation.target {
            ObservationTarget::Path(_) => None,
            ObservationTarget::Paths(paths) => {
                Some(paths.iter().copied().map(path_record).collect())
            }
        },
        token: ByteArray::from(observation.token),
        action: ByteArray::from(*observation.action.as_bytes()),
        begun_at_ms: observation.begun_at.as_ms(),
        state: code::of_observation_state(observation.state),
    }
}

fn read_observation(record: ObservationV1) -> Result<Observation, Unreadable> {
    let attributes = record.attributes.as_deref().unwrap_or_default();
    let paths = record
        .paths
        .map(|paths| paths.iter().map(|path| read_path(path)).collect());
    Ok(Observation {
        target: match paths.transpose()? {
            Some(paths) => ObservationTarget::Paths(paths),
            None => ObservationTarget::Path(read_path(&record.path)?),
        },
        attributes: Attributes::from_query(attributes)
            .map_err(|_| Unreadable::Damaged("no attributes"))?,
        token: record.token.into(),
        action: ActionId::from_bytes(record.action.into()),
        begun_at: Timestamp::from_ms(record.begun_at_ms),
        state: code::observation_state(record.state)?,
        newest: None,
    })
}

fn registration_record<'a>(
    registration: &'a Registration,
    texts: &'a ParsedTexts,
) -> RegistrationV1<'a> {
    RegistrationV1 {
        salt: registration.salt,
        lifetime_asked_s: registration.lifetime_asked_s,
        expires_at_ms: registration.expires_at.as_ms(),
        registered_at_ms: registration.registered_at.as_ms(),
        version: &texts.version,
        binding: &texts.binding,
        sms: registration.sms.as_deref(),
        links: &texts.links,
    }
}

fn read_registration(
    record: RegistrationV1<'_>,
    others: &mut ObjectListCache,
) -> Result<Registration, Unreadable> {
    let like = others.with_links(record.links);
    let is_new = like.is_none();
    let links = match like {
        Some(other) => Some(other.links.clone()),
        None => Registration::parse_links(record.links),
    };
    let registration = Registration {
        salt: record.salt,
        lifetime_asked_s: record.lifetime_asked_s,
        expires_at: Timestamp::from_ms(record.expires_at_ms),
        registered_at: Timestamp::from_ms(record.registered_at_ms),
        version: Registration::parse_version(record.version)
            .ok_or(Unreadable::Damaged("no enabler version"))?,
        binding: Registration::parse_binding(record.binding)
            .ok_or(Unreadable::Damaged("no binding"))?,
        sms: record.sms.map(Into::into),
        links: links.ok_or(Unreadable::Damaged("no object links"))?,
    };
    if is_new {
        others.remember(record.links, &registration);
    }
    Ok(registration)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::conformance::samples::{links, record};

    #[test]
    fn devices_with_the_same_objects_share_one_list() {
        let mut others = ObjectListCache::default();
        let mut read = |record: &DeviceRecord| {
            let read = read_one_of_many(&row_of(record), &mut others).unwrap();
            assert_eq!(read, *record);
            read.registration.unwrap().links
        };
        let first = read(&record(10, "</3/0>"));
        let other = read(&record(10, "</3/0>,</3303/0>"));
        assert!(Arc::ptr_eq(&first, &read(&record(20, "</3/0>"))));
        assert!(!Arc::ptr_eq(&first, &other));
    }

    #[test]
    fn a_fleet_of_many_kinds_is_read_right_and_remembered_in_part() {
        let mut others = ObjectListCache::default();
        for round in 0..3 {
            for kind in 1..=3 * LISTS_MAX as u64 {
                let record = record(round, &links(kind));
                let read = read_one_of_many(&row_of(&record), &mut others);
                assert_eq!(read, Ok(record));
                assert!(others.known.len() <= LISTS_MAX);
            }
        }
    }
}
