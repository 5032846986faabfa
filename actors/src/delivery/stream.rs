//! The shell of streams of events: performs what the machine of each decides, in a task of its own.
//!
//! A task reads further only once the reader has taken what was sent: it holds a few events at
//! most, however slow the reader is. The web actor closes the connection of a reader that takes
//! nothing (`web/connections.rs`), which ends the task. While nobody reads there is no task and no
//! notifier.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::delivery::stream::position::StreamPosition;
use engine::delivery::stream::{
    EventStream, StreamEffect, StreamFilter, StreamInput, StreamMessage,
};
use engine::ids::{CustomerId, DeviceKey};
use engine::tags::Tags;
use metrics::{counter, describe_counter, describe_gauge, gauge};
use store::{DeliveryReads, DeviceReads, PartitionNotifier, Unavailable};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use tracing::{Instrument as _, Span, debug};

use crate::clock::Clock;
use crate::lease;

const OPEN: &str = "signalbox_event_streams";
const EVENTS: &str = "signalbox_event_stream_events_total";

/// Messages that wait for the reader; the next one is read only then.
const MESSAGES_MAX: usize = 1;

/// What streams may do.
#[derive(Clone, Copy, Debug)]
pub struct StreamRules {
    /// Streams of one customer, of programs and of the console each; one more is refused.
    pub streams_max: u32,
    /// How long a stream is silent before a heartbeat, in milliseconds.
    pub heartbeat_ms: u32,
}

/// What streams need.
pub struct StreamParts {
    /// The clock.
    pub clock: Clock,
    /// Reads events.
    pub events: Arc<dyn DeliveryReads>,
    /// Reads the tags of devices.
    pub devices: Arc<dyn DeviceReads>,
    /// What streams may do.
    pub rules: StreamRules,
}

/// Who reads streams. Each kind has a maximum of its own: people who look at the console take no
/// stream from a program.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ReaderKind {
    /// A program of the customer.
    Program,
    /// A page of the console.
    ConsolePage,
}

/// Which stream is to be opened.
pub struct StreamOpening {
    /// Who reads it.
    pub reader_kind: ReaderKind,
    /// The customer whose events it has.
    pub customer: CustomerId,
    /// Which of them.
    pub filter: StreamFilter,
    /// From where an earlier stream is resumed; a stream without it begins now.
    pub resumed_at: Option<StreamPosition>,
}

/// Asks whether the reader of a stream may still read.
pub type AuthorityCheck = Box<dyn Fn() -> Pin<Box<dyn Future<Output = bool>>>>;

/// What a stream has to know of its reader.
pub struct StreamReader {
    /// Whether it may still read.
    pub is_authorised: AuthorityCheck,
    /// Returns once it has left.
    pub left: Pin<Box<dyn Future<Output = ()>>>,
}

/// Why a stream is not opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StreamRefusal {
    /// The customer has as many as it may have.
    #[error("the customer has {max} streams, which is the maximum")]
    TooMany {
        /// The maximum.
        max: u32,
    },
    /// The position is behind events that there are not.
    #[error("must be the id of a message of a stream of this service")]
    PositionUnknown,
    /// The store does not respond.
    #[error("the store does not respond")]
    StoreSilent,
    /// The service stops.
    #[error("the service is stopping")]
    Stopping,
}

/// All streams.
#[derive(Clone)]
pub struct EventStreams(Arc<StreamsInner>);

/// The readers of one kind of a customer.
type StreamReaders = (CustomerId, ReaderKind);

struct StreamsInner {
    parts: StreamParts,
    open_by_readers: Mutex<BTreeMap<StreamReaders, u32>>,
    /// Whether all streams are to end.
    stopping: watch::Sender<bool>,
}

impl EventStreams {
    /// No stream is open.
    pub fn new(parts: StreamParts) -> Self {
        describe_gauge!(OPEN, "Streams of events that are open.");
        describe_counter!(EVENTS, "Events that were sent to readers of streams.");
        gauge!(OPEN).increment(0.0);
        counter!(EVENTS).increment(0);
        Self(Arc::new(StreamsInner {
            parts,
            open_by_readers: Mutex::default(),
            stopping: watch::Sender::new(false),
        }))
    }

    /// Opens a stream, which ends when the reader has left or may no longer read, when its messages
    /// are no longer received, when the store does not answer, and when the service stops. Must be
    /// called in an actix system.
    pub async fn open(
        &self,
        opening: StreamOpening,
        reader: StreamReader,
    ) -> Result<mpsc::Receiver<StreamMessage>, StreamRefusal> {
        let mut stopping = self.0.stopping.subscribe();
        if *stopping.borrow() {
            return Err(StreamRefusal::Stopping);
        }
        let slot = self.enter((opening.customer.clone(), opening.reader_kind))?;
        let (sender, messages) = mpsc::channel(MESSAGES_MAX);
        let mut left = reader.left;
        let running = self.running(opening, reader.is_authorised, sender.clone());
        let mut running = running.await?;
        let task = async move {
            let end = tokio::select! {
                end = running.run() => end,
                () = sender.closed() => StreamEnd::Left,
                () = &mut left => StreamEnd::Left,
                _ = stopping.wait_for(|is_stopping| *is_stopping) => StreamEnd::Stopped,
            };
            debug!(customer = %running.customer, ?end, "a stream has ended");
            drop(slot);
        };
        actix_rt::spawn(task.instrument(Span::current()));
        Ok(messages)
    }

    /// Ends every stream, because the service stops; no further one is opened.
    pub fn end_all(&self) {
        self.0.stopping.send_replace(true);
    }

    async fn running(
        &self,
        opening: StreamOpening,
        is_authorised: AuthorityCheck,
        sender: mpsc::Sender<StreamMessage>,
    ) -> Result<RunningStream, StreamRefusal> {
        let StreamParts { events, rules, .. } = &self.0.parts;
        // What is stored from here on is noted, what was stored before has no greater number.
        let notifier = events.subscribe(opening.customer.clone());
        let newest = events.newest_durable().await;
        let newest = newest.map_err(|Unavailable| StreamRefusal::StoreSilent)?;
        let heartbeat_ms = i64::from(rules.heartbeat_ms);
        let machine = match opening.resumed_at {
            Some(position) if position.greatest() > newest => {
                return Err(StreamRefusal::PositionUnknown);
            }
            Some(position) => EventStream::resumed(opening.filter, position, heartbeat_ms),
            None => {
                let position = StreamPosition::behind(newest);
                EventStream::behind(opening.filter, position, heartbeat_ms)
            }
        };
        Ok(RunningStream {
            streams: self.clone(),
            customer: opening.customer,
            machine,
            notifier,
            is_authorised,
            sender,
        })
    }

    fn enter(&self, readers: StreamReaders) -> Result<StreamSlot, StreamRefusal> {
        let max = self.0.parts.rules.streams_max;
        let mut open_by_readers = self.open_by_readers();
        let open = open_by_readers.entry(readers.clone()).or_default();
        if *open >= max {
            return Err(StreamRefusal::TooMany { max });
        }
        *open += 1;
        gauge!(OPEN).increment(1.0);
        Ok(StreamSlot {
            streams: self.clone(),
            readers,
        })
    }

    /// The lock may be poisoned: a map of counts is always consistent.
    fn open_by_readers(&self) -> MutexGuard<'_, BTreeMap<StreamReaders, u32>> {
        let open = self.0.open_by_readers.lock();
        open.unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot of a stream; released on drop.
struct StreamSlot {
    streams: EventStreams,
    readers: StreamReaders,
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        gauge!(OPEN).decrement(1.0);
        let mut open_by_readers = self.streams.open_by_readers();
        if let Some(open) = open_by_readers.get_mut(&self.readers) {
            *open = open.saturating_sub(1);
            if *open == 0 {
                open_by_readers.remove(&self.readers);
            }
        }
    }
}

/// Why a stream ends.
#[derive(Clone, Copy, Debug)]
enum StreamEnd {
    /// The reader has gone.
    Left,
    /// The reader may no longer read.
    Unauthorised,
    /// The store does not answer.
    StoreUnavailable,
    /// The node does not hold the lease: the reader is to connect to the one that does.
    NotHeld,
    /// The service stops.
    Stopped,
}

impl From<Unavailable> for StreamEnd {
    fn from(_: Unavailable) -> Self {
        Self::StoreUnavailable
    }
}

/// A stream in its task.
struct RunningStream {
    streams: EventStreams,
    customer: CustomerId,
    machine: EventStream,
    notifier: Arc<PartitionNotifier>,
    is_authorised: AuthorityCheck,
    sender: mpsc::Sender<StreamMessage>,
}

impl RunningStream {
    async fn run(&mut self) -> StreamEnd {
        let mut input = StreamInput::Timeout;
        loop {
            input = match self.step(input).await {
                Ok(Some(result)) => result,
                Ok(None) => self.next_input().await,
                Err(end) => return end,
            };
        }
    }

    /// Performs what follows from an input, and returns the result that the machine waits for.
    async fn step(&mut self, input: StreamInput) -> Result<Option<StreamInput>, StreamEnd> {
        let (now, mut out) = (self.parts().clock.now(), Vec::new());
        // A busy stream has to learn of other partitions, too.
        let noted = self.notifier.take();
        if !noted.is_empty() {
            let noted = StreamInput::PartitionsReady(noted);
            self.machine.handle(now, noted, &mut out);
        }
        self.machine.handle(now, input, &mut out);
        let mut result = None;
        for effect in out {
            result = self.perform(effect).await?.or(result);
        }
        Ok(result)
    }

    async fn perform(&self, effect: StreamEffect) -> Result<Option<StreamInput>, StreamEnd> {
        let StreamParts { events, .. } = self.parts();
        let customer = || self.customer.clone();
        let result = match effect {
            StreamEffect::Authorise => match (self.is_authorised)().await {
                true => StreamInput::Authorised,
                false => return Err(StreamEnd::Unauthorised),
            },
            StreamEffect::ReadRows {
                partition,
                after,
                max,
            } => {
                let rows = events.streamed_rows(customer(), partition, after, max);
                StreamInput::RowsRead(rows.await?)
            }
            StreamEffect::ReadTags(devices) => StreamInput::TagsRead(self.tags_of(devices).await?),
            StreamEffect::ReadEvents(rows) => {
                StreamInput::EventsRead(events.streamed_events(customer(), rows).await?)
            }
            StreamEffect::Send(message) => {
                if !lease::is_held() {
                    return Err(StreamEnd::NotHeld);
                }
                if let StreamMessage::Event(..) = &message {
                    counter!(EVENTS).increment(1);
                }
                let sent = self.sender.send(message).await;
                return sent.map(|()| None).map_err(|_| StreamEnd::Left);
            }
        };
        Ok(Some(result))
    }

    async fn tags_of(
        &self,
        devices: Vec<DeviceKey>,
    ) -> Result<Vec<(DeviceKey, Tags)>, Unavailable> {
        let mut tags = Vec::with_capacity(devices.len());
        for device in devices {
            let profile = self.parts().devices.profile(device).await?;
            tags.push((
                device,
                profile.map(|profile| profile.tags).unwrap_or_default(),
            ));
        }
        Ok(tags)
    }

    /// Waits until something happens.
    async fn next_input(&self) -> StreamInput {
        let due = self.machine.next_timeout();
        let wait = due.map(|at| self.parts().clock.until(at));
        tokio::select! {
            partitions = self.notifier.read() => StreamInput::PartitionsReady(partitions),
            () = sleep(wait.unwrap_or_default()), if wait.is_some() => StreamInput::Timeout,
        }
    }

    fn parts(&self) -> &StreamParts {
        &self.streams.0.parts
    }
}
