//! Where is each device's registration? The path that the server gave, in as many bytes as it
//! needs.
//!
//! A location is stored as the options of a request to it, one behind the other in one block of
//! memory: an allocation per device would cost more than the location.

/// Where a location is stored; the default is that of a device without one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct LocationRef {
    offset: u32,
    length: u16,
}

/// The locations of all devices.
#[derive(Clone, Debug, Default)]
pub(super) struct Locations {
    bytes: Vec<u8>,
}

impl LocationRef {
    /// Whether the device has a location.
    pub(super) fn is_known(self) -> bool {
        self.length > 0
    }
}

impl Locations {
    /// Stores a location in place of the device's previous one; None if there is no more room.
    pub(super) fn keep(&mut self, last: LocationRef, options: &[u8]) -> Option<LocationRef> {
        let length = u16::try_from(options.len()).ok()?;
        // A device that registers again usually gets a path of the same length.
        if length <= last.length {
            let begin = last.offset as usize;
            let place = self.bytes.get_mut(begin..begin + options.len())?;
            place.copy_from_slice(options);
            return Some(LocationRef { length, ..last });
        }
        let offset = u32::try_from(self.bytes.len()).ok()?;
        self.bytes.extend_from_slice(options);
        Some(LocationRef { offset, length })
    }

    /// The options of a location.
    pub(super) fn options(&self, location: LocationRef) -> &[u8] {
        let begin = location.offset as usize;
        let options = self.bytes.get(begin..begin + usize::from(location.length));
        options.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_of_every_length_are_stored_unchanged() {
        let mut locations = Locations::default();
        let given: Vec<Vec<u8>> = (1..300_u16)
            .map(|length| vec![length as u8; length.into()])
            .collect();
        let stored: Vec<LocationRef> = given
            .iter()
            .map(|options| locations.keep(LocationRef::default(), options).unwrap())
            .collect();
        for (options, location) in given.iter().zip(stored) {
            assert!(location.is_known());
            assert_eq!(locations.options(location), options);
        }
    }

    #[test]
    fn a_new_location_replaces_the_previous_one() {
        let mut locations = Locations::default();
        let other = locations.keep(LocationRef::default(), b"other").unwrap();
        let mut location = locations.keep(LocationRef::default(), b"first").unwrap();
        for text in [&b"again"[..], b"less", b"a longer one", b"shorter"] {
            location = locations.keep(location, text).unwrap();
            assert_eq!(locations.options(location), text);
        }
        assert_eq!(locations.options(other), b"other");
        assert_eq!(locations.bytes.len(), 5 + 5 + 12);
    }

    #[test]
    fn a_device_without_a_location_has_none() {
        assert!(!LocationRef::default().is_known());
        assert_eq!(Locations::default().options(LocationRef::default()), b"");
        assert_eq!(size_of::<LocationRef>(), 8);
    }
}
