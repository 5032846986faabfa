//! How are queued events, pending retries, dead letters and the counts of a destination stored?

use engine::delivery::backlog::{DeadLetter, PendingRetry, QueuedEvent, Sequence};
use engine::ids::{DeviceKey, EventId};
use engine::moment::Timestamp;
use minicbor::bytes::ByteArray;
use minicbor::{Decode, Encode};

use super::{Unreadable, check_version, code, read, write};

const VERSION: u8 = 1;

/// Written for every queued event, so it is as short as possible.
const WAITING_BYTES: usize = 1 + 1 + 16 + 16;

const TALLY_BYTES: usize = 1 + 4 * size_of::<u64>();

/// The counts of a destination.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct DestinationCounts {
    /// The newest sequence number when it was created: its events begin behind that.
    pub(crate) since: Sequence,
    /// How many events of its customer had got a sequence number by then.
    pub(crate) numbered: u64,
    /// How many events it is done with.
    pub(crate) passed: u64,
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
}

/// Writes a queued event.
pub(crate) fn write_waiting(waiting: &QueuedEvent) -> [u8; WAITING_BYTES] {
    let mut value = [VERSION; WAITING_BYTES];
    value[1] = code::of_event_type(waiting.event_type);
    value[2..18].copy_from_slice(waiting.device.as_bytes());
    value[18..].copy_from_slice(waiting.event.as_bytes());
    value
}

/// Reads the queued event with a sequence number.
pub(crate) fn read_waiting(sequence: Sequence, value: &[u8]) -> Result<QueuedEvent, Unreadable> {
    let parts = check_version(VERSION, value)?
        .split_first()
        .and_then(|(event_type, ids)| {
            let (device, event) = ids.split_first_chunk()?;
            Some((*event_type, *device, event.try_into().ok()?))
        });
    let (event_type, device, event) = parts.ok_or(Unreadable::Damaged("no event that waits"))?;
    Ok(QueuedEvent {
        sequence,
        device: DeviceKey::from_bytes(device),
        event: EventId::from_bytes(event),
        event_type: code::event_type(event_type)?,
    })
}

/// Writes the counts of a destination.
pub(crate) fn write_tally(tally: &DestinationCounts) -> [u8; TALLY_BYTES] {
    let mut value = [VERSION; TALLY_BYTES];
    let numbers = [tally.since.0, tally.numbered, tally.passed, tally.dead];
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
        ([since, numbered, passed, dead], []) => Ok(DestinationCounts {
            since: Sequence(u64::from_be_bytes(*since)),
            numbered: u64::from_be_bytes(*numbered),
            passed: u64::from_be_bytes(*passed),
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
    };
    write(VERSION, &record)
}

fn waiting_of(sequence: Sequence, record: &ExceptionV1<'_>) -> Result<QueuedEvent, Unreadable> {
    Ok(QueuedEvent {
        sequence,
        device: DeviceKey::from_bytes(*record.device),
        event: EventId::from_bytes(*record.event),
        event_type: code::event_type(record.event_type)?,
    })
}

#[cfg(test)]
mod tests {
    use engine::event::EventType;

    use super::*;

    #[test]
    fn queued_events_and_counts_are_read_back_and_other_bytes_are_refused() {
        let waiting = QueuedEvent {
            sequence: Sequence(7),
            device: DeviceKey::from_bytes([1; 16]),
            event: EventId::from_bytes([2; 16]),
            event_type: EventType::Error,
        };
        let written = write_waiting(&waiting);
        assert_eq!(read_waiting(Sequence(7), &written), Ok(waiting));
        for damaged in [
            &written[..33],
            &[written.as_slice(), &[0]].concat(),
            &[1, 9],
        ] {
            assert!(read_waiting(Sequence(7), damaged).is_err());
        }
        let tally = DestinationCounts {
            since: Sequence(1),
            numbered: 2,
            passed: 3,
            dead: u64::MAX,
        };
        let written = write_tally(&tally);
        assert_eq!(read_tally(&written), Ok(tally));
        for damaged in [&written[..32], &[written.as_slice(), &[0]].concat(), &[1]] {
            assert!(read_tally(damaged).is_err());
        }
    }
}
