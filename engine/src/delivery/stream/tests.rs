//! Does a stream send each event of its filter once, wherever it is resumed?

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof, proptest};

use super::*;
use crate::event::{DeviceInfo, EventContent, EventType, Lifecycle};
use crate::ids::{CustomerId, DeviceId, EventId, Iccid};
use crate::limits::STREAM_TAGS_MS;

const HEARTBEAT_MS: i64 = 15_000;

#[test]
fn a_stream_begins_with_its_position_and_sends_each_event_with_the_position_behind_it() {
    let mut ledger = Ledger::default();
    ledger.append(1, EventType::Lifecycle);
    let mut reader = Reader::at_the_end(&ledger, everything());
    assert_eq!(reader.step(), [StreamEffect::Authorise]);
    let position = StreamPosition::behind(Sequence(1));
    let heartbeat = StreamMessage::Heartbeat(position.clone());
    reader.give(StreamInput::Authorised);
    assert_eq!(reader.step(), [StreamEffect::Send(heartbeat)]);
    assert_eq!(reader.stream.next_timeout(), Some(at(HEARTBEAT_MS)));

    let row = ledger.append(2, EventType::Error);
    let partition = row.partition();
    reader.give(StreamInput::PartitionsReady(vec![partition]));
    assert_eq!(reader.step(), [StreamEffect::Authorise]);
    reader.give(StreamInput::Authorised);
    let read = StreamEffect::ReadRows {
        partition,
        after: Sequence(1),
        max: STREAM_ROWS_AT_ONCE,
    };
    assert_eq!(reader.step(), [read]);
    reader.give(StreamInput::RowsRead(vec![row]));
    assert_eq!(reader.step(), [StreamEffect::ReadEvents(vec![row])]);
    let event = event_of(&row);
    reader.give(StreamInput::EventsRead(vec![event.clone()]));
    let mut behind = position;
    behind.advance(partition, Sequence(2));
    let sent = StreamMessage::Event(Box::new(event), behind);
    assert_eq!(reader.step(), [StreamEffect::Send(sent)]);
    assert_eq!(reader.step(), [], "it is idle");
}

#[test]
fn a_heartbeat_comes_after_silence_with_the_position_behind_what_the_filter_refused() {
    let mut ledger = Ledger::default();
    let mut reader = Reader::at_the_end(&ledger, only(EventType::Error));
    reader.run(&ledger);
    let row = ledger.append(3, EventType::Lifecycle);
    reader.give(StreamInput::PartitionsReady(vec![row.partition()]));
    reader.run(&ledger);
    assert_eq!(reader.received, []);
    reader.now = at(HEARTBEAT_MS);
    reader.give(StreamInput::Timeout);
    reader.run(&ledger);
    let position = reader.heartbeats.last().expect("a heartbeat");
    assert_eq!(position.of(row.partition()), row.sequence);
    assert_eq!(reader.heartbeats.len(), 2);
}

#[test]
fn that_a_device_is_awake_or_asleep_is_not_streamed() {
    let mut ledger = Ledger::default();
    for kind in [Lifecycle::Awake, Lifecycle::Registered, Lifecycle::Asleep] {
        ledger.append(5, EventType::Lifecycle);
        ledger.rows.last_mut().unwrap().lifecycle = Some(kind);
    }
    let start = StreamPosition::behind(Sequence::default());
    let mut reader = Reader::resumed(start, everything());
    reader.run(&ledger);
    assert_eq!(reader.numbers(), [2]);
}

#[test]
fn an_event_that_is_no_longer_stored_is_passed() {
    let mut ledger = Ledger::default();
    let rows: Vec<_> = (0..3).map(|_| ledger.append(5, EventType::Error)).collect();
    ledger.removed.push(rows[1].event);
    let start = StreamPosition::behind(Sequence::default());
    let mut reader = Reader::resumed(start, everything());
    reader.run(&ledger);
    assert_eq!(reader.numbers(), [1, 3]);
    assert_eq!(
        reader.stream.position().of(rows[2].partition()),
        Sequence(3)
    );
}

#[test]
fn of_one_device_only_its_partition_is_read() {
    let mut ledger = Ledger::default();
    let rows: Vec<_> = (0..16)
        .map(|device| ledger.append(device, EventType::Error))
        .collect();
    let filter = StreamFilter {
        device: Some(rows[7].device),
        ..everything()
    };
    let mut reader = Reader::resumed(StreamPosition::behind(Sequence::default()), filter);
    reader.run(&ledger);
    assert_eq!(reader.numbers(), [8]);
    assert_eq!(reader.partitions_read, [rows[7].partition()]);
}

#[test]
fn changed_tags_count_once_what_was_read_of_them_is_old() {
    let mut ledger = Ledger::default();
    let filter = StreamFilter {
        tags: [berlin()].into(),
        ..everything()
    };
    let mut reader = Reader::at_the_end(&ledger, filter);
    let read = |reader: &mut Reader, ledger: &Ledger, row: QueuedEvent, ms| {
        reader.now = at(ms);
        reader.give(StreamInput::PartitionsReady(vec![row.partition()]));
        reader.run(ledger);
        (reader.numbers(), reader.tags_read)
    };
    let row = ledger.append(2, EventType::Error);
    assert_eq!(read(&mut reader, &ledger, row, 1), (vec![1], 1));
    ledger.without_tags = true;
    let row = ledger.append(2, EventType::Error);
    assert_eq!(
        read(&mut reader, &ledger, row, STREAM_TAGS_MS),
        (vec![1, 2], 1)
    );
    let row = ledger.append(2, EventType::Error);
    assert_eq!(
        read(&mut reader, &ledger, row, STREAM_TAGS_MS + 1),
        (vec![1, 2], 2)
    );
}

proptest! {
    #[test]
    fn a_stream_that_resumes_anywhere_loses_nothing_and_repeats_nothing(
        filter in filter(),
        acts in vec(act(), 1..40),
    ) {
        let mut ledger = Ledger::default();
        let mut reader = Reader::at_the_end(&ledger, filter.clone());
        for act in acts {
            match act {
                Act::Append { device, event_type, times } => {
                    for _ in 0..times {
                        let row = ledger.append(device, event_type);
                        reader.give(StreamInput::PartitionsReady(vec![row.partition()]));
                    }
                }
                Act::Run => reader.run(&ledger),
                Act::Wait => {
                    reader.now = reader.now.plus_ms(HEARTBEAT_MS);
                    reader.give(StreamInput::Timeout);
                }
                // The reader lost what it was sent behind a message.
                Act::ResumeBehind(kept) => {
                    let kept = kept % (reader.received.len() + 1);
                    let position = match kept.checked_sub(1) {
                        Some(last) => reader.received[last].1.clone(),
                        None => StreamPosition::behind(Sequence::default()),
                    };
                    let received = reader.received[..kept].to_vec();
                    reader = Reader::resumed(position, filter.clone());
                    reader.received = received;
                }
                Act::ResumeAtHeartbeat => {
                    let position = reader.stream.position().clone();
                    let received = std::mem::take(&mut reader.received);
                    reader = Reader::resumed(position, filter.clone());
                    reader.received = received;
                }
            }
        }
        reader.run(&ledger);
        let mut expected = BTreeMap::<Partition, Vec<u64>>::new();
        for row in ledger.rows.iter().filter(|row| ledger.is_wanted(&filter, row)) {
            expected.entry(row.partition()).or_default().push(row.sequence.0);
        }
        let mut received = BTreeMap::<Partition, Vec<u64>>::new();
        for (row, position) in &reader.received {
            received.entry(row.device.partition()).or_default().push(number_of(row));
            assert_eq!(position.of(row.device.partition()).0, number_of(row));
        }
        assert_eq!(received, expected);
    }
}

#[derive(Clone, Debug)]
enum Act {
    Append {
        device: u8,
        event_type: EventType,
        times: usize,
    },
    Run,
    Wait,
    ResumeBehind(usize),
    ResumeAtHeartbeat,
}

fn act() -> impl Strategy<Value = Act> {
    let event_type = || (0..EventType::ALL.len()).prop_map(|it| EventType::ALL[it]);
    prop_oneof![
        4 => (0_u8..20, event_type(), 1_usize..40).prop_map(|(device, event_type, times)| {
            Act::Append { device, event_type, times }
        }),
        // More than a page.
        1 => (0_u8..3, event_type()).prop_map(|(device, event_type)| Act::Append {
            device,
            event_type,
            times: STREAM_ROWS_AT_ONCE as usize * 2,
        }),
        4 => (0_u8..1).prop_map(|_| Act::Run),
        1 => (0_u8..1).prop_map(|_| Act::Wait),
        2 => any::<usize>().prop_map(Act::ResumeBehind),
        1 => (0_u8..1).prop_map(|_| Act::ResumeAtHeartbeat),
    ]
}

fn filter() -> impl Strategy<Value = StreamFilter> {
    let tags = prop_oneof![
        (0_u8..1).prop_map(|_| Box::default()),
        (0_u8..1).prop_map(|_| [berlin()].into())
    ];
    (0_u8..4, tags).prop_map(|(kind, tags)| StreamFilter {
        tags,
        ..match kind {
            0 => only(EventType::TelemetryData),
            1 => StreamFilter {
                device: Some(key(2)),
                ..everything()
            },
            _ => everything(),
        }
    })
}

/// The events of a customer. The devices with even numbers are in Berlin.
#[derive(Default)]
struct Ledger {
    rows: Vec<QueuedEvent>,
    removed: Vec<EventId>,
    without_tags: bool,
}

impl Ledger {
    fn append(&mut self, device: u8, event_type: EventType) -> QueuedEvent {
        let number = self.rows.len() as u64 + 1;
        let row = QueuedEvent {
            sequence: Sequence(number),
            device: key(device),
            event: EventId::from_bytes((u128::from(number)).to_be_bytes()),
            event_type,
            lifecycle: None,
        };
        self.rows.push(row);
        row
    }

    fn rows_after(&self, partition: Partition, after: Sequence, max: u32) -> Vec<QueuedEvent> {
        let rows = self.rows.iter().copied();
        let rows = rows.filter(|row| row.partition() == partition && row.sequence > after);
        rows.take(max as usize).collect()
    }

    fn tags_of(&self, device: DeviceKey) -> Tags {
        let in_berlin = (0..20).step_by(2).any(|even| key(even) == device);
        let tags = (in_berlin && !self.without_tags).then(berlin);
        Tags::of(tags).unwrap()
    }

    fn is_wanted(&self, filter: &StreamFilter, row: &QueuedEvent) -> bool {
        let tags = self.tags_of(row.device);
        filter.event_types.has(row.event_type)
            && filter.device.is_none_or(|device| device == row.device)
            && filter.tags.iter().all(|tag| tags.has(tag))
    }
}

/// A reader with its stream.
struct Reader {
    stream: EventStream,
    now: Timestamp,
    effects: Vec<StreamEffect>,
    received: Vec<(Event, StreamPosition)>,
    heartbeats: Vec<StreamPosition>,
    partitions_read: Vec<Partition>,
    tags_read: usize,
}

impl Reader {
    fn at_the_end(ledger: &Ledger, filter: StreamFilter) -> Self {
        let newest = ledger.rows.last().map(|row| row.sequence);
        let position = StreamPosition::behind(newest.unwrap_or_default());
        Self::of(EventStream::behind(filter, position, HEARTBEAT_MS))
    }

    fn resumed(position: StreamPosition, filter: StreamFilter) -> Self {
        Self::of(EventStream::resumed(filter, position, HEARTBEAT_MS))
    }

    fn of(stream: EventStream) -> Self {
        let mut reader = Self {
            stream,
            now: at(0),
            effects: Vec::new(),
            received: Vec::new(),
            heartbeats: Vec::new(),
            partitions_read: Vec::new(),
            tags_read: 0,
        };
        reader.give(StreamInput::Timeout);
        reader
    }

    fn give(&mut self, input: StreamInput) {
        self.stream.handle(self.now, input, &mut self.effects);
    }

    fn step(&mut self) -> Vec<StreamEffect> {
        std::mem::take(&mut self.effects)
    }

    /// Performs effects until the stream is idle.
    fn run(&mut self, ledger: &Ledger) {
        loop {
            let mut effects = self.step().into_iter().peekable();
            if effects.peek().is_none() {
                return;
            }
            while let Some(effect) = effects.next() {
                let is_last = effects.peek().is_none();
                if let Some(result) = self.perform(effect, ledger) {
                    assert!(is_last, "the effect with a result is the last one");
                    self.give(result);
                }
            }
        }
    }

    fn perform(&mut self, effect: StreamEffect, ledger: &Ledger) -> Option<StreamInput> {
        match effect {
            StreamEffect::Authorise => Some(StreamInput::Authorised),
            StreamEffect::ReadRows {
                partition,
                after,
                max,
            } => {
                self.partitions_read.push(partition);
                let rows = ledger.rows_after(partition, after, max);
                Some(StreamInput::RowsRead(rows))
            }
            StreamEffect::ReadTags(devices) => {
                self.tags_read += devices.len();
                let tags = devices.into_iter();
                let tags = tags.map(|device| (device, ledger.tags_of(device)));
                Some(StreamInput::TagsRead(tags.collect()))
            }
            StreamEffect::ReadEvents(rows) => {
                assert!(rows.len() <= STREAM_EVENTS_AT_ONCE);
                let stored = rows
                    .iter()
                    .filter(|row| !ledger.removed.contains(&row.event));
                Some(StreamInput::EventsRead(stored.map(event_of).collect()))
            }
            StreamEffect::Send(StreamMessage::Event(event, position)) => {
                self.received.push((*event, position));
                None
            }
            StreamEffect::Send(StreamMessage::Heartbeat(position)) => {
                self.heartbeats.push(position);
                None
            }
        }
    }

    fn numbers(&self) -> Vec<u64> {
        self.received
            .iter()
            .map(|(event, _)| number_of(event))
            .collect()
    }
}

fn number_of(event: &Event) -> u64 {
    u64::try_from(u128::from_be_bytes(*event.id.as_bytes())).unwrap()
}

fn event_of(row: &QueuedEvent) -> Event {
    Event {
        id: row.event,
        customer: CustomerId::parse("acme").unwrap(),
        device: row.device,
        device_info: DeviceInfo {
            device: DeviceId::parse("meter").unwrap(),
            iccid: Iccid::parse("meter").unwrap(),
            imsi: None,
            ip: None,
        },
        at: at(0),
        content: EventContent::Lifecycle(Lifecycle::Registered),
    }
}

/// The key of a device; those of neighbours are in different partitions.
fn key(device: u8) -> DeviceKey {
    let mut key = [device; 16];
    key[0] = device.wrapping_mul(16);
    DeviceKey::from_bytes(key)
}

fn everything() -> StreamFilter {
    StreamFilter {
        event_types: EventTypes::all(),
        device: None,
        tags: Box::default(),
    }
}

fn only(event_type: EventType) -> StreamFilter {
    StreamFilter {
        event_types: [event_type].into_iter().collect(),
        ..everything()
    }
}

fn berlin() -> Tag {
    Tag::parse("site:berlin").unwrap()
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_ms(1_795_521_600_000 + ms)
}
