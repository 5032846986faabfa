//! How is the place stored that a migration into an embedded store has reached?

use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};

use super::{Unreadable, read, write};

const VERSION: u8 = 1;

/// The place that a migration has reached.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct MigrationPlace {
    /// What tells its source, as it is, from every other.
    pub(crate) source: String,
    /// The place in the source; empty at the beginning.
    pub(crate) reached: Vec<u8>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct MigrationV1 {
    #[n(0)]
    source: String,
    #[n(1)]
    reached: ByteVec,
}

/// Writes the place.
pub(crate) fn write_place(place: &MigrationPlace) -> Vec<u8> {
    let record = MigrationV1 {
        source: place.source.clone(),
        reached: place.reached.clone().into(),
    };
    write(VERSION, &record)
}

/// Reads the place.
pub(crate) fn read_place(value: &[u8]) -> Result<MigrationPlace, Unreadable> {
    let record: MigrationV1 = read(VERSION, value)?;
    Ok(MigrationPlace {
        source: record.source,
        reached: record.reached.into(),
    })
}
