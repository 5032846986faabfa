//! Which queries answer the questions of deliveries and streams?

use engine::delivery::backlog::{Backlog, DeadLetter, DestinationProgress, QueuedEvent, Sequence};
use engine::delivery::destination::Destination;
use engine::event::Event;
use engine::ids::{CustomerId, DestinationId, Partition};
use std::sync::Arc;

use crate::postgres::PostgresStore;
use crate::{DeliveryReads, PartitionNotifier, ReadAnswer};

impl DeliveryReads for PostgresStore {
    fn destination(&self, _id: DestinationId) -> ReadAnswer<Option<Destination>> {
        unimplemented!()
    }

    fn progress_of(&self, _destination: DestinationId) -> ReadAnswer<DestinationProgress> {
        unimplemented!()
    }

    fn partitions_waiting(&self, _destination: DestinationId) -> ReadAnswer<Vec<Partition>> {
        unimplemented!()
    }

    fn waiting(
        &self,
        _customer: CustomerId,
        _partition: Partition,
        _after: Sequence,
        _max: u32,
    ) -> ReadAnswer<Vec<QueuedEvent>> {
        unimplemented!()
    }

    fn backlog(&self, _destination: DestinationId) -> ReadAnswer<Backlog> {
        unimplemented!()
    }

    fn dead_letters(
        &self,
        _destination: DestinationId,
        _after: Option<Sequence>,
        _max: u32,
    ) -> ReadAnswer<Vec<DeadLetter>> {
        unimplemented!()
    }

    fn events(&self, _customer: CustomerId, _queued: Vec<QueuedEvent>) -> ReadAnswer<Vec<Event>> {
        unimplemented!()
    }

    fn streamed_rows(
        &self,
        _customer: CustomerId,
        _partition: Partition,
        _after: Sequence,
        _max: u32,
    ) -> ReadAnswer<Vec<QueuedEvent>> {
        unimplemented!()
    }

    fn streamed_events(
        &self,
        _customer: CustomerId,
        _queued: Vec<QueuedEvent>,
    ) -> ReadAnswer<Vec<Event>> {
        unimplemented!()
    }

    fn newest_durable(&self) -> Sequence {
        self.state.reached()
    }

    fn subscribe(&self, customer: CustomerId) -> Arc<PartitionNotifier> {
        self.state.notifiers.subscribe(customer)
    }
}
