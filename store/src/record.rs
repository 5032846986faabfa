//! How is a value encoded in the bytes of a row, and decoded again?
//!
//! Each kind of row has a file here with its format: a type named for the format, written as a CBOR
//! array (RFC 8949) by field number, so that a field can be added at the end without a new version.
//! The first byte of a value is the version of its format. Rows that only mark that something
//! exists have an empty value.

pub(crate) mod action;
pub(crate) mod block;
pub(crate) mod bootstrap;
pub(crate) mod code;
pub(crate) mod counts;
pub(crate) mod customer;
pub(crate) mod definition;
pub(crate) mod destination;
pub(crate) mod device;
pub(crate) mod device_call;
pub(crate) mod device_flags;
pub(crate) mod device_view;
pub(crate) mod entry;
pub(crate) mod entry_place;
pub(crate) mod event;
pub(crate) mod firmware;
pub(crate) mod group;
pub(crate) mod heads;
pub(crate) mod idempotency;
pub(crate) mod job;
pub(crate) mod known;
pub(crate) mod last_entries;
pub(crate) mod migration;
pub(crate) mod number;
pub(crate) mod outbox;
mod outcome;
mod packed;
pub(crate) mod profile;
pub(crate) mod schedule;
pub(crate) mod server_key;
pub(crate) mod sms;
mod timeline;
pub(crate) mod value;
mod wake_up;

use minicbor::{Decode, Encode};

/// The bytes that most records fit in: a writer that begins with less grows several times.
const RECORD_BYTES: usize = 256;

/// Why the bytes of a row cannot be decoded.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum Unreadable {
    /// A newer version of signalbox wrote them.
    #[error("written in format {found} by a newer version; this one reads up to {known}")]
    Newer {
        /// The version of the format found.
        found: u8,
        /// The newest version known.
        known: u8,
    },
    /// They are not what was written.
    #[error("damaged: {0}")]
    Damaged(&'static str),
}

/// Writes a value: the version of its format, then the record.
pub(crate) fn write<T: Encode<()>>(version: u8, record: &T) -> Vec<u8> {
    write_behind(vec![version], record)
}

/// Writes a record after what its value begins with.
pub(crate) fn write_behind<T: Encode<()>>(mut value: Vec<u8>, record: &T) -> Vec<u8> {
    value.reserve(RECORD_BYTES);
    minicbor::encode(record, &mut value).expect("writing to memory cannot fail");
    value
}

/// Reads a value of a format with a single version.
pub(crate) fn read<'b, T: Decode<'b, ()>>(version: u8, value: &'b [u8]) -> Result<T, Unreadable> {
    read_record(check_version(version, value)?)
}

/// The bytes after the version, if this version is known.
pub(crate) fn check_version(known: u8, value: &[u8]) -> Result<&[u8], Unreadable> {
    match value.split_first() {
        Some((found, rest)) if *found == known => Ok(rest),
        Some((found, _)) if *found > known => Err(Unreadable::Newer {
            found: *found,
            known,
        }),
        Some(_) => Err(Unreadable::Damaged("a format that never was")),
        None => Err(Unreadable::Damaged("an empty value")),
    }
}

/// Reads a record.
pub(crate) fn read_record<'b, T: Decode<'b, ()>>(bytes: &'b [u8]) -> Result<T, Unreadable> {
    minicbor::decode(bytes).map_err(|_| Unreadable::Damaged("not the record expected"))
}

/// The error of a field whose value its kind does not allow.
pub(crate) fn damaged<E>(what: &'static str) -> impl FnOnce(E) -> Unreadable {
    move |_| Unreadable::Damaged(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits that change the kind, the length and the value of an item of CBOR.
    const CHANGES: [u8; 4] = [0x01, 0x20, 0x80, 0xff];

    #[derive(Debug, Decode, Encode, Eq, PartialEq)]
    #[cbor(array)]
    struct Small {
        #[n(0)]
        first: u8,
    }

    #[derive(Debug, Decode, Encode, Eq, PartialEq)]
    #[cbor(array)]
    struct Grown {
        #[n(0)]
        first: u8,
        #[n(1)]
        second: Option<u8>,
    }

    #[test]
    fn a_value_of_a_newer_version_is_refused_by_name() {
        let value = write(3, &Small { first: 1 });
        assert_eq!(read(3, &value), Ok(Small { first: 1 }));
        let refused = read::<Small>(2, &value);
        assert_eq!(refused, Err(Unreadable::Newer { found: 3, known: 2 }));
    }

    #[test]
    fn an_appended_field_needs_no_new_version() {
        let small = write(1, &Small { first: 1 });
        let grown = write(
            1,
            &Grown {
                first: 1,
                second: Some(2),
            },
        );
        assert_eq!(
            read(1, &small),
            Ok(Grown {
                first: 1,
                second: None
            })
        );
        assert_eq!(read(1, &grown), Ok(Small { first: 1 }));
    }

    #[test]
    fn bytes_that_were_not_written_are_damage() {
        for value in [&[][..], &[1], &[1, 0xff], &[0, 0x81, 0x01], b"\x01not cbor"] {
            assert!(
                matches!(read::<Small>(1, value), Err(Unreadable::Damaged(_))),
                "{value:?}"
            );
        }
    }

    /// The bytes, each time with another one changed.
    pub(super) fn changes(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        (0..bytes.len()).flat_map(move |place| {
            CHANGES.map(|change| {
                let mut changed = bytes.to_vec();
                changed[place] ^= change;
                changed
            })
        })
    }
}
