//! What do forwarders read? The queued events of a destination, and its progress.

use std::sync::Arc;

use engine::delivery::backlog::{Backlog, DeadLetter, DestinationProgress, QueuedEvent, Sequence};
use engine::delivery::destination::Destination;
use engine::event::Event;
use engine::ids::{CustomerId, DestinationId, DeviceKey, EventId, Shard};

use crate::{ReadAnswer, ShardNotifier};

/// The queries of deliveries.
pub trait DeliveryReads: Send + Sync {
    /// A destination.
    fn destination(&self, id: DestinationId) -> ReadAnswer<Option<Destination>>;

    /// The progress of a destination; the default for one that does not exist.
    fn progress_of(&self, destination: DestinationId) -> ReadAnswer<DestinationProgress>;

    /// The shards in which events wait behind the cursor of a destination; retries do not count.
    fn shards_waiting(&self, destination: DestinationId) -> ReadAnswer<Vec<Shard>>;

    /// The queued events of a shard for the destinations of a customer after a sequence number, in
    /// order, at most `max`.
    fn waiting(
        &self,
        customer: CustomerId,
        shard: Shard,
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

    /// An event, also one of a removed device while its row exists. A sweep may remove it for its
    /// age while it waits for delivery: then there is nothing left to deliver. The caller knows the
    /// event from a queued event or a dead letter, so it is durable, and this query waits for no
    /// commit.
    fn event(&self, device: DeviceKey, event: EventId) -> ReadAnswer<Option<Event>>;

    /// Returns a notifier that learns of every shard in which an event begins to wait for the
    /// destinations of a customer, once that is durable and as long as the notifier is held. Events
    /// that waited before are not reported: the caller asks for those after it has subscribed.
    fn subscribe(&self, customer: CustomerId) -> Arc<ShardNotifier>;
}
