//! Where are events delivered? To the one destination of the fleet's customer, commonly a webhook.

use std::net::SocketAddr;

use engine::change::{Batch, Change};
use engine::delivery::destination::{
    Destination, DestinationState, EventBatching, EventTypes, JsonPayload, Replay, Target, Webhook,
};
use engine::ids::DestinationId;

use crate::fleet;
use crate::shelf::TempStore;

/// Creates the customer of the fleet, with a webhook at this address.
pub(crate) fn destination(
    shelf: &TempStore,
    at: SocketAddr,
    batching: Option<EventBatching>,
) -> Batch {
    let webhook = Webhook {
        url: format!("http://{at}/hook").into(),
        headers: Box::default(),
        secret: None,
        json: JsonPayload::AsText,
        batching,
    };
    destination_of(shelf, Target::Webhook(webhook))
}

/// Creates the customer of the fleet, with a destination.
pub(crate) fn destination_of(shelf: &TempStore, target: Target) -> Batch {
    let now = shelf.clock.now();
    let destination = Destination {
        id: DestinationId::from_bytes([7; 16]),
        customer: fleet::customer(),
        name: "bench".into(),
        target,
        event_types: EventTypes::usual(),
        state: DestinationState::RolledOut,
        failure: None,
        replay: Replay::None,
        created_at: now,
        updated_at: now,
    };
    let mut batch = crate::creates::credentials(shelf);
    batch
        .changes
        .push(Change::PutDestination(Box::new(destination)));
    batch
}
