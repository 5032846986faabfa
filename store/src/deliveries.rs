//! What do forwarders and streams read? The queued events of a customer, and the progress of each
//! destination.

use std::sync::Arc;

use engine::delivery::backlog::{Backlog, DeadLetter, DestinationProgress, QueuedEvent, Sequence};
use engine::delivery::destination::Destination;
use engine::event::Event;
use engine::ids::{CustomerId, DestinationId, Partition};

use crate::{EventNews, PartitionNotifier, ReadAnswer};

/// The queries of deliveries.
pub trait DeliveryReads: Send + Sync {
    /// A destination.
    fn destination(&self, id: DestinationId) -> ReadAnswer<Option<Destination>>;

    /// The progress of a destination; the default for one that does not exist.
    fn progress_of(&self, destination: DestinationId) -> ReadAnswer<DestinationProgress>;

    /// The partitions in which events wait behind the cursor of a destination; retries do not
    /// count.
    fn partitions_waiting(&self, destination: DestinationId) -> ReadAnswer<Vec<Partition>>;

    /// The events of a partition of a customer after a number, in order, at most `max`.
    fn waiting(
        &self,
        customer: CustomerId,
        partition: Partition,
        after: Sequence,
        max: u32,
    ) -> ReadAnswer<Vec<QueuedEvent>>;

    /// How much waits for a destination, and how many dead letters it has.
    fn backlog(&self, destination: DestinationId) -> ReadAnswer<Backlog>;

    /// The dead letters of a destination after a sequence number, in order, at most `max`.
    fn dead_letters(
        &self,
        destination: DestinationId,
        after: Option<Sequence>,
        max: u32,
    ) -> ReadAnswer<Vec<DeadLetter>>;

    /// Those of these events of a customer that are stored, in their order; also of a removed
    /// device. A sweep may remove an event for its age while it waits for delivery: then there is
    /// nothing left to deliver. The caller knows the events from [`DeliveryReads::waiting`],
    /// retries or dead letters, so they are durable, and this query waits for no commit.
    fn events(&self, customer: CustomerId, queued: Vec<QueuedEvent>) -> ReadAnswer<Vec<Event>>;

    /// One event, if it is stored.
    fn event(&self, customer: CustomerId, queued: QueuedEvent) -> ReadAnswer<Option<Event>> {
        let events = self.events(customer, vec![queued]);
        Box::pin(async move { Ok(events.await?.pop()) })
    }

    /// As [`DeliveryReads::waiting`], for a stream: it delays no delivery, however much streams
    /// read.
    fn streamed_rows(
        &self,
        customer: CustomerId,
        partition: Partition,
        after: Sequence,
        max: u32,
    ) -> ReadAnswer<Vec<QueuedEvent>>;

    /// As [`DeliveryReads::events`], for a stream.
    fn streamed_events(
        &self,
        customer: CustomerId,
        queued: Vec<QueuedEvent>,
    ) -> ReadAnswer<Vec<Event>>;

    /// The greatest number of a durable event, of any customer: those that become durable later
    /// have greater ones.
    fn newest_durable(&self) -> ReadAnswer<Sequence>;

    /// Returns a notifier that learns of every partition in which an event of a customer is stored,
    /// once that is durable and as long as the notifier is held. Events that were stored before are
    /// not reported: the caller asks for those after it has subscribed.
    fn subscribe(&self, customer: CustomerId) -> Arc<PartitionNotifier>;

    /// Returns what learns of the events of all customers that this process stores, as long as it
    /// is held.
    fn subscribe_to_all(&self) -> Arc<EventNews>;

    /// Notifies the subscribers of events that another process has stored, once they are durable;
    /// of all that it may have stored, if it is not known which.
    fn note_stored_elsewhere(&self, events: Option<Vec<(CustomerId, Partition)>>);
}
