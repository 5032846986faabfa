//! By what is a device listed? By some of what its actor saved of it.

use engine::action::Protocol;
use engine::device::record::DeviceRecord;
use engine::query::devices::DeviceFilter;
use minicbor::{Decode, Decoder, decode};

use super::{Unreadable, code, read};

/// What a list can ask of a device, one bit for each question. Bits never change their meaning.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Traits(u8);

/// It has a registration.
const REGISTERED: u8 = 1;

/// Every bit there is.
const ALL: u8 = 0b1111;

impl Traits {
    /// Those of a device that was never heard.
    pub(crate) const NONE: Self = Self(0);

    /// Every combination.
    pub(crate) fn every() -> impl Iterator<Item = Self> {
        (0..=ALL).map(Self)
    }

    /// Those of a device of which this is known. Devices are heard over LwM2M alone.
    pub(crate) fn of(record: &DeviceRecord) -> Self {
        Self::told_by(record.registration.is_some(), record.last_seen_at.is_some())
    }

    /// Whether it has a registration.
    pub(crate) fn is_registered(self) -> bool {
        self.0 & REGISTERED != 0
    }

    /// Whether devices with these traits are wanted.
    pub(crate) fn pass(self, filter: &DeviceFilter) -> bool {
        filter
            .registered
            .is_none_or(|wanted| self.is_registered() == wanted)
            && filter
                .heard_over
                .is_none_or(|protocol| self.0 & heard_over(protocol) != 0)
    }

    /// The number that stands for them in keys.
    pub(crate) fn code(self) -> u8 {
        self.0
    }

    fn told_by(registered: bool, heard: bool) -> Self {
        let mut traits = 0;
        if registered {
            traits |= REGISTERED;
        }
        if heard {
            traits |= heard_over(Protocol::Lwm2m);
        }
        Self(traits)
    }
}

fn heard_over(protocol: Protocol) -> u8 {
    1 << code::of_protocol(protocol)
}

/// Of a device record, what traits are made of; the rest is passed over and not read.
#[derive(Decode)]
#[cbor(array)]
struct NoticedV1 {
    #[n(1)]
    last_seen_at: Option<There>,
    #[n(3)]
    registration: Option<There>,
}

/// Something that is there, whatever it is.
struct There;

impl<'b, C> Decode<'b, C> for There {
    fn decode(decoder: &mut Decoder<'b>, _: &mut C) -> Result<Self, decode::Error> {
        decoder.skip()?;
        Ok(Self)
    }
}

/// Reads the traits of a device from its record.
pub(crate) fn read_traits(record: &[u8]) -> Result<Traits, Unreadable> {
    let noticed: NoticedV1 = read(super::device::VERSION, record)?;
    let (registered, heard) = (
        noticed.registration.is_some(),
        noticed.last_seen_at.is_some(),
    );
    Ok(Traits::told_by(registered, heard))
}

#[cfg(test)]
mod tests {
    use engine::ids::CustomerId;

    use super::*;
    use crate::conformance::given::{links, record};
    use crate::record::device::write_device;

    #[test]
    fn a_record_is_read_as_having_the_traits_it_has() {
        let heard = record(10, &links(100));
        let gone = DeviceRecord {
            registration: None,
            ..heard.clone()
        };
        let silent = DeviceRecord {
            last_seen_at: None,
            ..heard.clone()
        };
        let odd = DeviceRecord {
            first_registered_at: None,
            peer: None,
            observations: Box::default(),
            ..heard.clone()
        };
        let nothing = DeviceRecord::default();
        for record in [heard, gone, silent, odd, nothing] {
            let read = read_traits(&write_device(&record));
            assert_eq!(read, Ok(Traits::of(&record)), "{record:?}");
        }
    }

    #[test]
    fn traits_pass_what_asks_for_them() {
        let (heard, both) = (Traits::told_by(false, true), Traits::told_by(true, true));
        let passing = |registered, heard_over| {
            let filter = DeviceFilter {
                customer: CustomerId::parse("acme").unwrap(),
                registered,
                heard_over,
            };
            [Traits::NONE, heard, both].map(|traits| traits.pass(&filter))
        };
        assert_eq!(passing(None, None), [true, true, true]);
        assert_eq!(passing(Some(true), None), [false, false, true]);
        assert_eq!(passing(Some(false), None), [true, true, false]);
        assert_eq!(passing(None, Some(Protocol::Lwm2m)), [false, true, true]);
        assert_eq!(
            passing(Some(false), Some(Protocol::Lwm2m)),
            [false, true, false]
        );
        for never_yet in [Protocol::Udp, Protocol::Coap] {
            assert_eq!(passing(None, Some(never_yet)), [false, false, false]);
        }
    }
}
