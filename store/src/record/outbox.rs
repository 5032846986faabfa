//! How are pending retries, dead letters and the counts of a destination stored?

use engine::delivery::backlog::{DeadLetter, PendingRetry, QueuedEvent, Sequence};
use engine::ids::{DeviceKey, EventId};
use engine::moment::Timestamp;
use minicbor::bytes::ByteArray;
use minicbor::{Decode, Encode};

use super::{Unreadable, check_version, code, read, write};

const VERSION: u8 = 1;

const TALLY_BYTES: usize = 1 + 2 * size_of::<u64>();

/// The counts of a destination.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct DestinationCounts {
    /// The newest sequence number when it was created: its events begin behind that.
    pub(crate) since: Sequence,
    /// How many dead letters it has.
    pub(crate) dead: u64,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct ExceptionV1<'a> {
    #[n(0)]
    device: ByteArray<16>,
    #[n(1)]
    event: ByteArray<16>,
    #[n(2)]
    event_type: u8,
    #[n(3)]
    tries: u8,
    /// When it is retried, or when it became a dead letter.
    #[n(4)]
    at_ms: i64,
    /// Why it became a dead letter.
    #[b(5)]
    why: Option<&'a str>,
    /// The kind of a lifecycle event; absent of other events.
    #[n(6)]
    lifecycle: Option<u8>,
}

/// Writes the counts of a destination.
pub(crate) fn write_tally(tally: &DestinationCounts) -> [u8; TALLY_BYTES] {
    let mut value = [VERSION; TALLY_BYTES];
    let numbers = [tally.since.0, tally.dead];
    let (places, _) = value[1..].as_chunks_mut();
    for (place, number) in places.iter_mut().zip(numbers) {
        *place = number.to_be_bytes();
    }
    value
}

/// Reads the counts of a destination.
pub(crate) fn read_tally(value: &[u8]) -> Result<DestinationCounts, Unreadable> {
    let (numbers, rest) = check_version(VERSION, value)?.as_chunks();
    match (numbers, rest) {
        ([since, dead], []) => Ok(DestinationCounts {
            since: Sequence(u64::from_be_bytes(*since)),
            dead: u64::from_be_bytes(*dead),
        }),
        _ => Err(Unreadable::Damaged("a tally of another size")),
    }
}

/// Writes a pending retry.
pub(crate) fn write_retry(held: &PendingRetry) -> Vec<u8> {
    write_exception(&held.queued, held.tries, held.due_at, None)
}

/// Reads a pending retry.
pub(crate) fn read_retry(sequence: Sequence, value: &[u8]) -> Result<PendingRetry, Unreadable> {
    let record: ExceptionV1<'_> = read(VERSION, value)?;
    Ok(PendingRetry {
        queued: waiting_of(sequence, &record)?,
        tries: record.tries,
        due_at: Timestamp::from_ms(record.at_ms),
    })
}

/// Writes a dead letter.
pub(crate) fn write_dead(letter: &DeadLetter) -> Vec<u8> {
    write_exception(&letter.queued, letter.tries, letter.at, Some(&letter.why))
}

/// Reads a dead letter.
pub(crate) fn read_dead(sequence: Sequence, value: &[u8]) -> Result<DeadLetter, Unreadable> {
    let record: ExceptionV1<'_> = read(VERSION, value)?;
    Ok(DeadLetter {
        queued: waiting_of(sequence, &record)?,
        tries: record.tries,
        at: Timestamp::from_ms(record.at_ms),
        why: record.why.unwrap_or_default().into(),
    })
}

fn write_exception(waiting: &QueuedEvent, tries: u8, at: Timestamp, why: Option<&str>) -> Vec<u8> {
    let record = ExceptionV1 {
        device: ByteArray::from(*waiting.device.as_bytes()),
        event: ByteArray::from(*waiting.event.as_bytes()),
        event_type: code::of_event_type(waiting.event_type),
        tries,
        at_ms: at.as_ms(),
        why,
        lifecycle: waiting.lifecycle.map(code::of_lifecycle),
    };
    write(VERSION, &record)
}

fn waiting_of(sequence: Sequence, record: &ExceptionV1<'_>) -> Result<QueuedEvent, Unreadable> {
    Ok(QueuedEvent {
        sequence,
        device: DeviceKey::from_bytes(*record.device),
        event: EventId::from_bytes(*record.event),
        event_type: code::event_type(record.event_type)?,
        lifecycle: record.lifecycle.map(code::lifecycle).transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_back_and_other_bytes_are_refused() {
        let tally = DestinationCounts {
            since: Sequence(1),
            dead: u64::MAX,
        };
        let written = write_tally(&tally);
        assert_eq!(read_tally(&written), Ok(tally));
        for damaged in [&written[..16], &[written.as_slice(), &[0]].concat(), &[1]] {
            assert!(read_tally(damaged).is_err());
        }
    }
}
