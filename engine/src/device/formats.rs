//! Which formats does a device refuse? Each format has a bit of a set.

use protocol::coap::content::ContentFormat;
use protocol::lwm2m::payload::formats::FORMATS;

const _: () = assert!(
    FORMATS.len() <= u16::BITS as usize,
    "each format has a bit of a set"
);

/// A set of formats, each with the bit of its place among all, in two bytes: each device has one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct FormatSet(u16);

impl FormatSet {
    /// The formats of both.
    pub(super) fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Puts a format among the others.
    pub(super) fn add(&mut self, format: ContentFormat) {
        self.0 |= mask_of(format);
    }

    /// Whether the format is among them.
    pub(super) fn has(self, format: ContentFormat) -> bool {
        self.0 & mask_of(format) != 0
    }

    /// Whether it could be put among others; one that could not would be asked for for ever.
    pub(super) fn has_place_for(format: ContentFormat) -> bool {
        mask_of(format) != 0
    }
}

/// The bit of a format; none for one that is never asked for.
fn mask_of(format: ContentFormat) -> u16 {
    let place = FORMATS.iter().position(|known| *known == format);
    place.map_or(0, |place| 1 << place)
}
