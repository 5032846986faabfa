//! What do forwarders ask? What waits for a destination, and how far it has come with it.

use std::sync::Arc;

use engine::delivery::backlog::{Backlog, DeadLetter, DestinationProgress, QueuedEvent, Sequence};
use engine::delivery::destination::Destination;
use engine::event::Event;
use engine::ids::{CustomerId, DestinationId, DeviceKey, EventId, Shard};

use crate::{ReadAnswer, ShardNotifier};

/// What is asked where events are delivered.
pub trait DeliveryReads: Send + Sync {
    /// A destination.
    fn destination(&self, id: DestinationId) -> ReadAnswer<Option<Destination>>;

    /// How far a destination has come; nothing for one that is not there.
    fn progress_of(&self, destination: DestinationId) -> ReadAnswer<DestinationProgress>;

    /// The shards in which something waits for a destination, exceptions apart.
    fn shards_waiting(&self, destination: DestinationId) -> ReadAnswer<Vec<Shard>>;

    /// What waits in a shard for the destinations of a customer behind a number, in order, at most
    /// so much.
    fn waiting(
        &self,
        customer: CustomerId,
        shard: Shard,
        after: Sequence,
        max: u32,
    ) -> ReadAnswer<Vec<QueuedEvent>>;

    /// How much waits for a destination, and how many dead letters it has.
    fn backlog(&self, destination: DestinationId) -> ReadAnswer<Backlog>;

    /// The dead letters of a destination behind a number, in order, at most so many.
    fn dead_letters(
        &self,
        destination: DestinationId,
        after: Option<Sequence>,
        max: u32,
    ) -> ReadAnswer<Vec<DeadLetter>>;

    /// An event, also one of a removed device while it is still there. It may be removed for its
    /// age while it waits to be delivered: then there is nothing left to deliver. Whoever knows of
    /// it has been told what waits or is set aside, so it is durable, and this waits for nothing.
    fn event(&self, device: DeviceKey, event: EventId) -> ReadAnswer<Option<Event>>;

    /// Has the board told of every shard in which something begins to wait for the destinations of
    /// a customer, once that is durable, as long as the board is held. What waited before is not
    /// told: whoever attends asks for that afterwards.
    fn subscribe(&self, customer: CustomerId) -> Arc<ShardNotifier>;
}
