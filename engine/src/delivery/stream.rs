//! Which events does a reader of a stream receive next, and from where does a later stream resume?
//!
//! A stream has a cursor in each partition. It reads one partition at a time, in turn:
//!
//! ```text
//!   idle --partitions noted, heartbeat due--> authorising --+--nothing to read--> idle
//!    ^                                                      v
//!    |                                             reading numbers of events
//!    |                                                      |
//!    |                                   +--tags unknown----+----------+
//!    |                                   v                  v          |
//!    |                             reading tags --> reading events --+ |
//!    |                                                  ^     sent   | |
//!    |                                                  +--more------+ |
//!    +------------------no event of the page is left--------------+----+
//! ```
//!
//! Each event is sent with the position behind it. The numbers of the events that a filter refuses
//! are passed, too, so that a heartbeat moves the position on. Whoever performs the effects sends
//! one message after the other and waits while the reader does not take them: nothing is read
//! meanwhile.

pub mod position;
mod tag_cache;

use std::collections::{BTreeSet, VecDeque};

use crate::delivery::backlog::{QueuedEvent, Sequence};
use crate::delivery::destination::EventTypes;
use crate::event::Event;
use crate::ids::{DeviceKey, Partition};
use crate::limits::{STREAM_EVENTS_AT_ONCE, STREAM_ROWS_AT_ONCE};
use crate::moment::Timestamp;
use crate::tags::{Tag, Tags};

use position::StreamPosition;
use tag_cache::TagCache;

/// Which events of a customer a stream has.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StreamFilter {
    /// Their types.
    pub event_types: EventTypes,
    /// Only those of this device.
    pub device: Option<DeviceKey>,
    /// Only those of devices that have all of these tags.
    pub tags: Box<[Tag]>,
}

/// A stream of events.
#[derive(Debug)]
pub struct EventStream {
    filter: StreamFilter,
    /// Up to where the events of each partition were sent, or refused by the filter.
    position: StreamPosition,
    /// The partitions that may have further events, in turn.
    to_read: VecDeque<Partition>,
    /// What is read at present.
    page: PageInProgress,
    tags: TagCache,
    phase: StreamPhase,
    heartbeat_ms: i64,
    heartbeat_at: Timestamp,
}

/// The numbers of events that were read and are not done.
#[derive(Debug, Default)]
struct PageInProgress {
    partition: Partition,
    rows: VecDeque<QueuedEvent>,
    /// The number of its last event.
    end: Sequence,
    /// The events that are being read.
    requested: Vec<QueuedEvent>,
    /// When it was read: the tags that were known then count for all of it.
    read_at: Timestamp,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum StreamPhase {
    Idle,
    Authorising,
    ReadingRows,
    ReadingTags,
    ReadingEvents,
}

/// What happens to a stream.
#[derive(Clone, Debug)]
pub enum StreamInput {
    /// The stream begins, or a timeout is due.
    Timeout,
    /// These partitions have new events.
    PartitionsReady(Vec<Partition>),
    /// The reader may still read.
    Authorised,
    /// The numbers of events that were asked for.
    RowsRead(Vec<QueuedEvent>),
    /// The tags of the devices that were asked for; those of a removed device are none.
    TagsRead(Vec<(DeviceKey, Tags)>),
    /// Those of the events that were asked for that are stored, in their order.
    EventsRead(Vec<Event>),
}

/// What is to be done for a stream. Of those that have a result, an input has one at most, and it
/// is the last effect.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEffect {
    /// Ask whether the reader may still read; if not, the stream ends.
    Authorise,
    /// Read the numbers of the events of a partition after a number.
    ReadRows {
        /// The partition.
        partition: Partition,
        /// Only events after this number.
        after: Sequence,
        /// How many at most.
        max: u32,
    },
    /// Read the tags of these devices.
    ReadTags(Vec<DeviceKey>),
    /// Read these events.
    ReadEvents(Vec<QueuedEvent>),
    /// Send a message to the reader, and wait until it is taken.
    Send(StreamMessage),
}

/// What a reader is sent, with the position from which it may resume.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamMessage {
    /// An event.
    Event(Box<Event>, StreamPosition),
    /// The stream is alive, and there is nothing else to say.
    Heartbeat(StreamPosition),
}

impl EventStream {
    /// A stream from a position on, with a heartbeat after so many milliseconds without an event.
    /// The first input sends one. Events behind the position may be stored already.
    pub fn resumed(filter: StreamFilter, position: StreamPosition, heartbeat_ms: i64) -> Self {
        let mut stream = Self::behind(filter, position, heartbeat_ms);
        stream.note(Partition::all().collect());
        stream
    }

    /// A stream from a position on behind which no event is stored.
    pub fn behind(filter: StreamFilter, position: StreamPosition, heartbeat_ms: i64) -> Self {
        Self {
            filter,
            position,
            to_read: VecDeque::new(),
            page: PageInProgress::default(),
            tags: TagCache::default(),
            phase: StreamPhase::Idle,
            heartbeat_ms,
            heartbeat_at: Timestamp::from_ms(i64::MIN),
        }
    }

    /// Handles an input.
    pub fn handle(&mut self, now: Timestamp, input: StreamInput, out: &mut Vec<StreamEffect>) {
        match input {
            StreamInput::Timeout => self.go_on(now, out),
            StreamInput::PartitionsReady(partitions) => {
                self.note(partitions);
                self.go_on(now, out);
            }
            StreamInput::Authorised => self.read(now, out),
            StreamInput::RowsRead(rows) => {
                self.take_rows(now, rows);
                self.take_page(now, out);
            }
            StreamInput::TagsRead(read) => {
                for (device, tags) in read {
                    let passes = self.filter.tags.iter().all(|tag| tags.has(tag));
                    self.tags.learn(device, passes, self.page.read_at);
                }
                self.take_page(now, out);
            }
            StreamInput::EventsRead(events) => {
                self.send(now, events, out);
                self.take_page(now, out);
            }
        }
    }

    /// When something is to be done although nothing happens.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        (self.phase == StreamPhase::Idle).then_some(self.heartbeat_at)
    }

    /// From where a stream may resume.
    pub fn position(&self) -> &StreamPosition {
        &self.position
    }

    /// Queues the partitions that may have events of the filter.
    fn note(&mut self, partitions: Vec<Partition>) {
        let of_device = self.filter.device.map(|device| device.partition());
        for partition in partitions {
            let is_wanted = of_device.is_none_or(|it| it == partition);
            if is_wanted && !self.to_read.contains(&partition) {
                self.to_read.push_back(partition);
            }
        }
    }

    /// Begins the next round, if there is something to do.
    fn go_on(&mut self, now: Timestamp, out: &mut Vec<StreamEffect>) {
        let is_due = !self.to_read.is_empty() || now >= self.heartbeat_at;
        if self.phase == StreamPhase::Idle && is_due {
            self.phase = StreamPhase::Authorising;
            out.push(StreamEffect::Authorise);
        }
    }

    fn read(&mut self, now: Timestamp, out: &mut Vec<StreamEffect>) {
        if now >= self.heartbeat_at {
            self.heartbeat_at = now.plus_ms(self.heartbeat_ms);
            let heartbeat = StreamMessage::Heartbeat(self.position.clone());
            out.push(StreamEffect::Send(heartbeat));
        }
        let Some(partition) = self.to_read.pop_front() else {
            self.phase = StreamPhase::Idle;
            return;
        };
        self.phase = StreamPhase::ReadingRows;
        self.page.partition = partition;
        out.push(StreamEffect::ReadRows {
            partition,
            after: self.position.of(partition),
            max: STREAM_ROWS_AT_ONCE,
        });
    }

    fn take_rows(&mut self, now: Timestamp, rows: Vec<QueuedEvent>) {
        let partition = self.page.partition;
        if rows.len() >= STREAM_ROWS_AT_ONCE as usize {
            self.note(vec![partition]);
        }
        let before = self.position.of(partition);
        self.page = PageInProgress {
            partition,
            end: rows.last().map_or(before, |last| last.sequence),
            rows: rows.into(),
            requested: Vec::new(),
            read_at: now,
        };
    }

    /// Reads what is needed for the next events of the page, or ends the page.
    fn take_page(&mut self, now: Timestamp, out: &mut Vec<StreamEffect>) {
        let unknown = self.devices_with_unknown_tags();
        if !unknown.is_empty() {
            self.phase = StreamPhase::ReadingTags;
            out.push(StreamEffect::ReadTags(unknown));
            return;
        }
        while self.page.requested.len() < STREAM_EVENTS_AT_ONCE
            && let Some(row) = self.page.rows.pop_front()
        {
            if self.passes(&row) {
                self.page.requested.push(row);
            }
        }
        if !self.page.requested.is_empty() {
            self.phase = StreamPhase::ReadingEvents;
            let events = self.page.requested.clone();
            out.push(StreamEffect::ReadEvents(events));
            return;
        }
        self.position.advance(self.page.partition, self.page.end);
        self.phase = StreamPhase::Idle;
        self.go_on(now, out);
    }

    /// Sends events. One that is no longer stored is passed.
    fn send(&mut self, now: Timestamp, events: Vec<Event>, out: &mut Vec<StreamEffect>) {
        let mut events = events.into_iter().peekable();
        for requested in std::mem::take(&mut self.page.requested) {
            self.position
                .advance(self.page.partition, requested.sequence);
            if let Some(event) = events.next_if(|event| event.id == requested.event) {
                self.heartbeat_at = now.plus_ms(self.heartbeat_ms);
                let message = StreamMessage::Event(Box::new(event), self.position.clone());
                out.push(StreamEffect::Send(message));
            }
        }
    }

    fn passes(&self, row: &QueuedEvent) -> bool {
        let has_tags = || {
            let known = self.tags.passes(row.device, self.page.read_at);
            self.filter.tags.is_empty() || known == Some(true)
        };
        self.may_pass(row) && has_tags()
    }

    /// Whether an event passes, as far as tags do not matter.
    fn may_pass(&self, row: &QueuedEvent) -> bool {
        let of_device = self.filter.device;
        self.filter.event_types.wants(row) && of_device.is_none_or(|device| device == row.device)
    }

    /// The devices on the page whose tags have to be read.
    fn devices_with_unknown_tags(&self) -> Vec<DeviceKey> {
        if self.filter.tags.is_empty() {
            return Vec::new();
        }
        let is_unknown =
            |row: &&QueuedEvent| self.tags.passes(row.device, self.page.read_at).is_none();
        let rows = self.page.rows.iter().filter(|row| self.may_pass(row));
        let devices: BTreeSet<_> = rows.filter(is_unknown).map(|row| row.device).collect();
        devices.into_iter().collect()
    }
}

#[cfg(test)]
mod tests;
