//! How far is an attempt, and what did the device refuse in it? A set of formats with a bit for
//! each, the way a value is written, and whether attributes were.

use protocol::coap::content::ContentFormat;
use protocol::lwm2m::payload::formats::{FORMATS, WriteMethod};

const _: () = assert!(
    FORMATS.len() <= u16::BITS as usize,
    "each format has a bit of a set"
);

/// How far an attempt is, so that its next request goes on from there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AttemptState {
    /// What the device refused.
    pub(super) refused: Refused,
    /// Whether the device has the attributes of an observation that begins.
    pub(super) attributes: WrittenAttributes,
}

/// Whether attributes were written in an attempt.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum WrittenAttributes {
    /// They were not.
    #[default]
    No,
    /// They were.
    Yes,
}

/// What the device refused in an attempt, so that its next request avoids it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Refused {
    /// The formats that were requested or written.
    pub(super) formats: FormatSet,
    /// How a value is written. A device without the resource instance refuses to replace it.
    pub(super) write: WriteMethod,
}

/// A set of formats in two bytes, because each device has one. The bit of a format is its index in
/// `FORMATS`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct FormatSet(u16);

impl FormatSet {
    /// The union of both.
    pub(super) fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Adds a format.
    pub(super) fn add(&mut self, format: ContentFormat) {
        self.0 |= mask_of(format);
    }

    /// Whether the set has the format.
    pub(super) fn has(self, format: ContentFormat) -> bool {
        self.0 & mask_of(format) != 0
    }

    /// Whether the format can be in a set; one that cannot would be requested again without end.
    pub(super) fn has_place_for(format: ContentFormat) -> bool {
        mask_of(format) != 0
    }
}

/// The bit of a format; none for one that is never requested.
fn mask_of(format: ContentFormat) -> u16 {
    let place = FORMATS.iter().position(|known| *known == format);
    place.map_or(0, |place| 1 << place)
}
