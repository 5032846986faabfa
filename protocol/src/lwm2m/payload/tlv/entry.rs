//! How is one entry of a TLV payload encoded? (LwM2M Core 1.1 section 7.4.3)
//!
//! ```text
//! type: kind (2 bits) | id of 16 bits (1) | bytes of length (2) | length, if none (3)
//! id: 1 or 2 bytes | length: 0 to 3 bytes | value
//! ```

use super::MalformedTlv;

const WIDE_ID: u8 = 0b0010_0000;
const LENGTH_BYTES_SHIFT: u32 = 3;
const LENGTH_BYTES_MASK: u8 = 0b11;
const SHORT_LENGTH_MASK: u8 = 0b111;

/// The kinds of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TlvKind {
    /// The resources of one object instance.
    ObjectInstance = 0b0000_0000,
    /// The value of one instance of a multiple resource.
    ResourceInstance = 0b0100_0000,
    /// The instances of a multiple resource.
    MultipleResource = 0b1000_0000,
    /// The value of a single resource.
    Resource = 0b1100_0000,
}

/// One entry of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TlvEntry<'a> {
    /// The kind of the value.
    pub(super) kind: TlvKind,
    /// The number of the object instance, the resource or the resource instance.
    pub(super) id: u16,
    /// The bytes of a value, or child entries.
    pub(super) value: &'a [u8],
}

/// Iterates over consecutive entries; ends after the first one that is cut off.
pub(super) fn entries(payload: &[u8]) -> impl Iterator<Item = Result<TlvEntry<'_>, MalformedTlv>> {
    let mut rest = payload;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let read = TlvEntry::read(rest);
        rest = read.map_or(&[], |(_, rest)| rest);
        Some(read.map(|(entry, _)| entry).ok_or(MalformedTlv::CutOff))
    })
}

impl<'a> TlvEntry<'a> {
    fn read(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (&first, rest) = bytes.split_first()?;
        let (id, rest) = match first & WIDE_ID {
            0 => rest
                .split_first()
                .map(|(id, rest)| (u16::from(*id), rest))?,
            _ => {
                let (id, rest) = rest.split_first_chunk::<2>()?;
                (u16::from_be_bytes(*id), rest)
            }
        };
        let (length, rest) = match first >> LENGTH_BYTES_SHIFT & LENGTH_BYTES_MASK {
            0 => (usize::from(first & SHORT_LENGTH_MASK), rest),
            count => read_length(rest, count)?,
        };
        let (value, rest) = rest.split_at_checked(length)?;
        let kind = TlvKind::of(first);
        Some((Self { kind, id, value }, rest))
    }

    /// Writes the entry with its shortest header.
    ///
    /// # Panics
    ///
    /// If the value is longer than 16 MiB.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let length = self.value.len().to_be_bytes();
        let zeros = length.iter().take_while(|byte| **byte == 0).count();
        let (short_length, length) = match length.get(zeros..).unwrap_or_default() {
            [low] if *low <= SHORT_LENGTH_MASK => (*low, &[][..]),
            significant => (0, significant),
        };
        let length_bytes = u8::try_from(length.len()).ok();
        let length_bytes = length_bytes
            .filter(|count| *count <= LENGTH_BYTES_MASK)
            .expect("no request holds a value of 16 MiB");
        let first = self.kind as u8 | length_bytes << LENGTH_BYTES_SHIFT | short_length;
        match u8::try_from(self.id) {
            Ok(id) => out.extend([first, id]),
            Err(_) => {
                let [high, low] = self.id.to_be_bytes();
                out.extend([first | WIDE_ID, high, low]);
            }
        }
        out.extend_from_slice(length);
        out.extend_from_slice(self.value);
    }
}

impl TlvKind {
    fn of(first: u8) -> Self {
        match first >> 6 {
            0b00 => Self::ObjectInstance,
            0b01 => Self::ResourceInstance,
            0b10 => Self::MultipleResource,
            _ => Self::Resource,
        }
    }
}

fn read_length(bytes: &[u8], count: u8) -> Option<(usize, &[u8])> {
    let (length, rest) = bytes.split_at_checked(usize::from(count))?;
    let join = |length: usize, byte: &u8| length << 8 | usize::from(*byte);
    Some((length.iter().fold(0, join), rest))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};

    use super::{TlvEntry, TlvKind, entries};
    use crate::lwm2m::payload::tlv::MalformedTlv;

    type Parts = (TlvKind, u16, Vec<u8>);

    const KINDS: [TlvKind; 4] = [
        TlvKind::ObjectInstance,
        TlvKind::ResourceInstance,
        TlvKind::MultipleResource,
        TlvKind::Resource,
    ];

    #[test]
    fn each_header_is_the_shortest() {
        let cases: [(u16, usize, &[u8]); 9] = [
            (0, 0, &[0xc0, 0]),
            (9, 7, &[0xc7, 9]),
            (9, 8, &[0xc8, 9, 8]),
            (255, 255, &[0xc8, 255, 255]),
            (256, 0, &[0xe0, 1, 0]),
            (5700, 4, &[0xe4, 0x16, 0x44]),
            (1, 256, &[0xd0, 1, 1, 0]),
            (65535, 65535, &[0xf0, 255, 255, 255, 255]),
            (1, 65536, &[0xd8, 1, 1, 0, 0]),
        ];
        for (id, length, header) in cases {
            let value = vec![0xaa; length];
            let written = written(TlvKind::Resource, id, &value);
            assert_eq!(written.get(..header.len()), Some(header));
            assert_eq!(written.get(header.len()..), Some(value.as_slice()));
        }
    }

    #[test]
    fn a_header_longer_than_needed_is_read() {
        let longest = [0x78, 0, 3, 0, 0, 1, 0xff];
        assert_eq!(
            read(&longest),
            [Ok((TlvKind::ResourceInstance, 3, vec![0xff]))]
        );
        // With length bytes present, the short length has no meaning.
        assert_eq!(
            read(&[0xcf, 1, 1, 5]),
            [Ok((TlvKind::Resource, 1, vec![5]))]
        );
    }

    #[test]
    fn an_entry_that_is_cut_off_ends_the_walk() {
        let cut: [&[u8]; 8] = [
            &[0xc1],
            &[0xc1, 0],
            &[0xe0, 1],
            &[0xc8, 0],
            &[0xd0, 0, 0],
            &[0xd8, 0, 0, 0],
            &[0xc8, 0, 2, 1],
            &[0xd8, 0, 0xff, 0xff, 0xff, 1],
        ];
        for bytes in cut {
            assert_eq!(read(bytes), [Err(MalformedTlv::CutOff)], "{bytes:?}");
        }
        let behind_another = [0xc1, 9, 100, 0xc1];
        let first = Ok((TlvKind::Resource, 9, vec![100]));
        assert_eq!(read(&behind_another), [first, Err(MalformedTlv::CutOff)]);
    }

    proptest! {
        #[test]
        fn every_entry_is_read_as_it_was_written(written_entries in vec(any_entry(), 0..5)) {
            let bytes: Vec<u8> = written_entries
                .iter()
                .flat_map(|(kind, id, value)| written(*kind, *id, value))
                .collect();
            let expected: Vec<_> = written_entries.into_iter().map(Ok).collect();
            prop_assert_eq!(read(&bytes), expected);
        }
    }

    fn any_entry() -> impl Strategy<Value = Parts> {
        let kind = proptest::sample::select(KINDS.to_vec());
        let length = prop_oneof![0..=9_usize, 250..260_usize, Just(65535), Just(65536)];
        let value = (any::<u8>(), length).prop_map(|(byte, length)| vec![byte; length]);
        (kind, any::<u16>(), value)
    }

    fn written(kind: TlvKind, id: u16, value: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        TlvEntry { kind, id, value }.write(&mut out);
        out
    }

    fn read(bytes: &[u8]) -> Vec<Result<Parts, MalformedTlv>> {
        let own = |entry: TlvEntry<'_>| (entry.kind, entry.id, entry.value.to_vec());
        entries(bytes).map(|entry| entry.map(own)).collect()
    }
}
