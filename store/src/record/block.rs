//! How are the events of a partition stored together?
//!
//! Events that were committed together are packed into one value: first what is asked about the
//! block as a whole, then its events, compressed where that makes them smaller.

use std::borrow::Cow;

use engine::delivery::backlog::{QueuedEvent, Sequence};
use engine::event::Event;
use engine::ids::{CustomerId, DeviceKey, EventId};
use engine::moment::Timestamp;
use minicbor::bytes::{ByteArray, ByteSlice};
use minicbor::{Decode, Decoder, Encode};

use super::event::read_event;
use super::packed::{pack, unpack};
use super::{Unreadable, check_version, code, damaged, write};

const VERSION: u8 = 1;

/// What a block has, known without decompressing it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct BlockHead {
    /// How many events of the partition were stored before it.
    pub(crate) ordinal: u64,
    /// How many events it has.
    pub(crate) count: u64,
    /// The number of its last event.
    pub(crate) last: Sequence,
    /// The time of its newest event.
    pub(crate) newest_at: Timestamp,
}

/// An event in a block.
#[derive(Debug, PartialEq)]
pub(crate) struct BlockEntry<'a> {
    /// What deliveries need to know of it.
    pub(crate) queued: QueuedEvent,
    /// The number of the event of the device before it; zero if there is none.
    pub(crate) previous: Sequence,
    /// The event, as [`super::event::write_event`] wrote it.
    pub(crate) event: Cow<'a, [u8]>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct HeadV1 {
    #[n(0)]
    ordinal: u64,
    #[n(1)]
    count: u64,
    #[n(2)]
    last: u64,
    #[n(3)]
    newest_at_ms: i64,
    /// The size of the events before compression; zero if they are not compressed.
    #[n(4)]
    size: u32,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct EntryV1<'a> {
    /// The distance to the number of the entry before it in the block, or to zero.
    #[n(0)]
    gap: u64,
    /// The distance to the number of the previous event of the device; zero if there is none.
    #[n(1)]
    back: u64,
    #[n(2)]
    event_type: u8,
    #[n(3)]
    device: ByteArray<16>,
    #[n(4)]
    id: ByteArray<16>,
    #[b(5)]
    event: &'a ByteSlice,
    /// The kind of a lifecycle event; absent of other events.
    #[n(6)]
    lifecycle: Option<u8>,
}

/// A block under construction.
pub(crate) struct BlockWriter {
    head: BlockHead,
    events: Vec<u8>,
}

impl BlockWriter {
    /// An empty block behind this many events of its partition.
    pub(crate) fn behind(ordinal: u64) -> Self {
        Self {
            head: BlockHead {
                ordinal,
                count: 0,
                last: Sequence::default(),
                newest_at: Timestamp::from_ms(i64::MIN),
            },
            events: Vec::new(),
        }
    }

    /// Adds an event. Its number is greater than those before.
    pub(crate) fn push(&mut self, at: Timestamp, entry: &BlockEntry<'_>) {
        let BlockEntry {
            queued,
            previous,
            event,
        } = entry;
        let number = queued.sequence.0;
        let record = EntryV1 {
            gap: number.saturating_sub(self.head.last.0),
            back: match previous.0 {
                0 => 0,
                previous => number.saturating_sub(previous),
            },
            event_type: code::of_event_type(queued.event_type),
            device: ByteArray::from(*queued.device.as_bytes()),
            id: ByteArray::from(*queued.event.as_bytes()),
            event: (&**event).into(),
            lifecycle: queued.lifecycle.map(code::of_lifecycle),
        };
        minicbor::encode(&record, &mut self.events).expect("writing to memory cannot fail");
        self.head.count += 1;
        self.head.last = queued.sequence;
        self.head.newest_at = self.head.newest_at.max(at);
    }

    /// What it has.
    pub(crate) fn head(&self) -> BlockHead {
        self.head
    }

    /// The size of its events before compression.
    pub(crate) fn bytes(&self) -> usize {
        self.events.len()
    }

    /// The value to store.
    pub(crate) fn finish(self) -> Vec<u8> {
        let BlockHead {
            ordinal,
            count,
            last,
            newest_at,
        } = self.head;
        let (size, events) = pack(self.events);
        let record = HeadV1 {
            ordinal,
            count,
            last: last.0,
            newest_at_ms: newest_at.as_ms(),
            size,
        };
        let mut value = write(VERSION, &record);
        value.extend_from_slice(&events);
        value
    }
}

/// Reads what a block has, from the value or its beginning.
pub(crate) fn read_head(value: &[u8]) -> Result<BlockHead, Unreadable> {
    split(value).map(|(head, _, _)| head)
}

/// A block that was read.
pub(crate) struct Block<'a> {
    pub(crate) head: BlockHead,
    events: Cow<'a, [u8]>,
}

impl<'a> Block<'a> {
    /// Reads a block.
    pub(crate) fn read(value: &'a [u8]) -> Result<Self, Unreadable> {
        let (head, size, events) = split(value)?;
        let events = unpack(size, events)?;
        Ok(Self { head, events })
    }

    /// The size of its events before compression.
    pub(crate) fn bytes(&self) -> usize {
        self.events.len()
    }

    /// The block, apart from what it was read from.
    pub(crate) fn into_owned(self) -> Block<'static> {
        Block {
            head: self.head,
            events: Cow::Owned(self.events.into_owned()),
        }
    }

    /// Its events, in the order of their numbers.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Result<BlockEntry<'_>, Unreadable>> {
        let mut decoder = Decoder::new(&self.events);
        let mut last = 0_u64;
        std::iter::from_fn(move || {
            if decoder.position() >= decoder.input().len() {
                return None;
            }
            let record = decoder.decode::<EntryV1<'_>>();
            if record.is_err() {
                decoder.set_position(decoder.input().len());
            }
            let entry = record
                .map_err(damaged("an event of a block"))
                .and_then(|record| {
                    last = last.saturating_add(record.gap);
                    read_entry(Sequence(last), &record)
                });
            Some(entry)
        })
    }

    /// The event with a number, if it has it.
    pub(crate) fn entry(&self, number: Sequence) -> Result<Option<BlockEntry<'_>>, Unreadable> {
        for entry in self.entries() {
            let entry = entry?;
            if entry.queued.sequence >= number {
                return Ok((entry.queued.sequence == number).then_some(entry));
            }
        }
        Ok(None)
    }
}

impl BlockEntry<'_> {
    /// The event, of this customer.
    pub(crate) fn event(&self, customer: &CustomerId) -> Result<Event, Unreadable> {
        read_event(customer, &self.queued, &self.event)
    }
}

fn split(value: &[u8]) -> Result<(BlockHead, u32, &[u8]), Unreadable> {
    let rest = check_version(VERSION, value)?;
    let mut decoder = Decoder::new(rest);
    let head: HeadV1 = decoder
        .decode()
        .map_err(damaged("the beginning of a block"))?;
    let events = rest.get(decoder.position()..).unwrap_or_default();
    let read = BlockHead {
        ordinal: head.ordinal,
        count: head.count,
        last: Sequence(head.last),
        newest_at: Timestamp::from_ms(head.newest_at_ms),
    };
    Ok((read, head.size, events))
}

fn read_entry<'a>(number: Sequence, record: &EntryV1<'a>) -> Result<BlockEntry<'a>, Unreadable> {
    Ok(BlockEntry {
        queued: QueuedEvent {
            sequence: number,
            device: DeviceKey::from_bytes(*record.device),
            event: EventId::from_bytes(*record.id),
            event_type: code::event_type(record.event_type)?,
            lifecycle: record.lifecycle.map(code::lifecycle).transpose()?,
        },
        previous: match record.back {
            0 => Sequence::default(),
            back => Sequence(number.0.saturating_sub(back)),
        },
        event: Cow::Borrowed(record.event),
    })
}

#[cfg(test)]
mod tests {
    use engine::event::{EventType, Lifecycle};

    use super::*;

    fn entry(number: u64, previous: u64, event: &[u8]) -> BlockEntry<'_> {
        BlockEntry {
            queued: QueuedEvent {
                sequence: Sequence(number),
                device: DeviceKey::from_bytes([number as u8; 16]),
                event: EventId::from_bytes([7; 16]),
                event_type: EventType::Lifecycle,
                lifecycle: number.is_multiple_of(2).then_some(Lifecycle::Asleep),
            },
            previous: Sequence(previous),
            event: Cow::Borrowed(event),
        }
    }

    #[test]
    fn a_block_is_read_as_it_was_written_compressed_or_not() {
        let long = [1; 3_000];
        for event in [&[][..], &[1, 2, 3], &long] {
            let entries = [entry(9, 0, event), entry(10, 3, event), entry(70, 9, event)];
            let mut writer = BlockWriter::behind(5);
            for (entry, ms) in entries.iter().zip([20, 30, 10]) {
                writer.push(Timestamp::from_ms(ms), entry);
            }
            let head = BlockHead {
                ordinal: 5,
                count: 3,
                last: Sequence(70),
                newest_at: Timestamp::from_ms(30),
            };
            assert_eq!(writer.head(), head);
            let value = writer.finish();
            assert_eq!(read_head(&value), Ok(head));
            let block = Block::read(&value).unwrap();
            let read: Vec<_> = block.entries().collect::<Result<_, _>>().unwrap();
            assert_eq!(read, entries);
            assert_eq!(
                block.entry(Sequence(10)).unwrap().as_ref(),
                Some(&entries[1])
            );
            for absent in [1, 11, 71] {
                assert_eq!(block.entry(Sequence(absent)), Ok(None));
            }
        }
    }

    #[test]
    fn a_damaged_block_is_an_error_and_ends() {
        let mut writer = BlockWriter::behind(0);
        for number in 1..50 {
            writer.push(Timestamp::from_ms(1), &entry(number, 0, b"event"));
        }
        let value = writer.finish();
        for length in 0..value.len() {
            assert!(Block::read(&value[..length]).is_err());
        }
        for place in 0..value.len() {
            let mut damaged = value.clone();
            damaged[place] ^= 0x55;
            if let Ok(block) = Block::read(&damaged) {
                assert!(block.entries().count() < 200);
            }
        }
    }
}
