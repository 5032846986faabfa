//! By which flags is a device listed? They are derived from its record.

use engine::action::Protocol;
use engine::device::record::{Connectivity, DeviceRecord, ProtocolsSeen};
use engine::query::devices::DeviceFilter;
use minicbor::{Decode, Decoder, decode};

use super::{Unreadable, code, last_entries, read};

/// The version of the format of a device record, which is read in part here.
pub(super) const DEVICE_VERSION: u8 = 1;

/// What a list can filter devices by, one bit for each property. Bits never change their meaning.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct DeviceFlags(u8);

/// It has a registration.
const REGISTERED: u8 = 1;

/// Every bit there is.
const ALL: u8 = 0b1111;

impl DeviceFlags {
    /// The flags of a device that was never seen.
    pub(crate) const NONE: Self = Self(0);

    /// Every combination.
    pub(crate) fn every() -> impl Iterator<Item = Self> {
        (0..=ALL).map(Self)
    }

    /// The flags of a device with this record.
    pub(crate) fn of(record: &DeviceRecord) -> Self {
        Self::from_fields(
            record.registration.is_some(),
            bits_of(record.protocols_seen),
        )
    }

    /// Whether it has a registration.
    pub(crate) fn is_registered(self) -> bool {
        self.0 & REGISTERED != 0
    }

    /// Whether devices with these flags pass a filter.
    pub(crate) fn pass(self, filter: &DeviceFilter) -> bool {
        filter
            .registered
            .is_none_or(|wanted| self.is_registered() == wanted)
            && filter
                .protocols_seen
                .is_none_or(|protocol| self.0 & bit_of(protocol) != 0)
    }

    /// The number that encodes them in keys.
    pub(crate) fn code(self) -> u8 {
        self.0
    }

    fn from_fields(registered: bool, heard_over: u8) -> Self {
        let registered = if registered { REGISTERED } else { 0 };
        Self(registered | heard_over)
    }
}

/// A bit for each protocol a device ever used.
pub(super) fn bits_of(heard_over: ProtocolsSeen) -> u8 {
    let ever = |protocol: &Protocol| heard_over.has(*protocol);
    Protocol::ALL
        .into_iter()
        .filter(ever)
        .fold(0, |bits, protocol| bits | bit_of(protocol))
}

/// The protocols of these bits.
pub(super) fn protocols_of(bits: u8) -> Result<impl Iterator<Item = Protocol>, Unreadable> {
    let bits = checked(bits)?;
    let is_there = move |protocol: &Protocol| bits & bit_of(*protocol) != 0;
    Ok(Protocol::ALL.into_iter().filter(is_there))
}

/// Accepts bits of protocols and nothing else.
fn checked(bits: u8) -> Result<u8, Unreadable> {
    match bits & !(ALL ^ REGISTERED) {
        0 => Ok(bits),
        _ => Err(Unreadable::Damaged("a bit of no protocol")),
    }
}

fn bit_of(protocol: Protocol) -> u8 {
    1 << code::of_protocol(protocol)
}

/// The fields of a device record that determine its flags; the others are skipped.
#[derive(Decode)]
#[cbor(array)]
struct FlagFieldsV1 {
    #[n(3)]
    registration: Option<Present>,
    #[n(6)]
    heard_over: Option<u8>,
    #[n(10)]
    connectivity: Option<u8>,
}

/// A field that is present, whatever its value is.
struct Present;

impl<'b, C> Decode<'b, C> for Present {
    fn decode(decoder: &mut Decoder<'b>, _: &mut C) -> Result<Self, decode::Error> {
        decoder.skip()?;
        Ok(Self)
    }
}

/// Reads the flags of a device from its record.
pub(crate) fn read_device_flags(value: &[u8]) -> Result<DeviceFlags, Unreadable> {
    let noticed = read_flag_fields(value)?;
    let heard_over = checked(noticed.heard_over.unwrap_or(0))?;
    Ok(DeviceFlags::from_fields(
        noticed.registration.is_some(),
        heard_over,
    ))
}

/// Reads from the record of a device whether the device has to be restored at a start: it is
/// registered, or goes offline unless it is heard.
pub(crate) fn read_is_live(value: &[u8]) -> Result<bool, Unreadable> {
    let noticed = read_flag_fields(value)?;
    let online = Some(code::of_connectivity(Connectivity::Online));
    Ok(noticed.registration.is_some() || noticed.connectivity == online)
}

fn read_flag_fields(value: &[u8]) -> Result<FlagFieldsV1, Unreadable> {
    let (_, record) = last_entries::read_before(value)?;
    read(DEVICE_VERSION, record)
}

#[cfg(test)]
mod tests {
    use engine::device::record::Logged;
    use engine::ids::CustomerId;

    use super::*;
    use crate::conformance::samples::{links, record};
    use crate::record::device::row_of;

    #[test]
    fn flags_are_read_from_a_record() {
        let seen = record(10, &links(100));
        let gone = DeviceRecord {
            registration: None,
            ..seen.clone()
        };
        let silent = DeviceRecord {
            protocols_seen: ProtocolsSeen::default(),
            ..seen.clone()
        };
        let plain = DeviceRecord {
            registration: None,
            protocols_seen: ProtocolsSeen::restored([Protocol::Udp, Protocol::Coap], None),
            ..seen.clone()
        };
        let odd = DeviceRecord {
            first_contact_at: None,
            last_seen_at: None,
            peer: None,
            observations: Box::default(),
            unknown_object: Logged::No,
            ..seen.clone()
        };
        let nothing = DeviceRecord::default();
        for record in [seen, gone, silent, plain, odd, nothing] {
            let read = read_device_flags(&row_of(&record));
            assert_eq!(read, Ok(DeviceFlags::of(&record)), "{record:?}");
        }
    }

    #[test]
    fn flags_pass_the_filters_that_match_them() {
        let lwm2m = bit_of(Protocol::Lwm2m);
        let seen = DeviceFlags::from_fields(false, lwm2m);
        let both = DeviceFlags::from_fields(true, lwm2m | bit_of(Protocol::Udp));
        let passing = |registered, heard_over| {
            let filter = DeviceFilter {
                registered,
                protocols_seen: heard_over,
                ..DeviceFilter::all_of(CustomerId::parse("acme").unwrap())
            };
            [DeviceFlags::NONE, seen, both].map(|flags| flags.pass(&filter))
        };
        assert_eq!(passing(None, None), [true, true, true]);
        assert_eq!(passing(Some(true), None), [false, false, true]);
        assert_eq!(passing(Some(false), None), [true, true, false]);
        assert_eq!(passing(None, Some(Protocol::Lwm2m)), [false, true, true]);
        assert_eq!(
            passing(Some(false), Some(Protocol::Lwm2m)),
            [false, true, false]
        );
        assert_eq!(passing(None, Some(Protocol::Udp)), [false, false, true]);
        assert_eq!(passing(None, Some(Protocol::Coap)), [false, false, false]);
    }

    #[test]
    fn a_bit_of_no_protocol_is_damage() {
        for bits in [REGISTERED, 16, 0xff] {
            assert!(protocols_of(bits).is_err(), "{bits}");
        }
        let every = protocols_of(ALL ^ REGISTERED).map(Iterator::collect);
        assert_eq!(every, Ok(Protocol::ALL.to_vec()));
    }
}
