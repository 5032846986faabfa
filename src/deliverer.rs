//! What does a node do that delivers beside the active one? It has the store open, delivers to the
//! destinations of the partitions that it has the leases of, and carries out the commands for them
//! that the active node passes on. What the active node stores it learns from a stream.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor as _, Addr};
use actix_web::{HttpResponse, web};
use actors::clock::Clock;
use actors::delivery::{Deliveries, DeliveryShare, command_queue};
use actors::logging::Logging;
use actors::relay::datagrams::ActiveNode;
use actors::relay::deliveries::{
    CUSTOMERS, DESTINATIONS, DestinationCall, read_numbers, write_outcome,
};
use actors::relay::news;
use actors::web::{Routes, Web};
use engine::delivery::destination::DestinationAmendment;
use engine::ids::{CustomerId, DestinationId, Partition};
use engine::node::lease::LeaseId;
use engine::supervision::Unserved;
use store::{Store, Unavailable, destination_of_bytes};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tracing::error;

use crate::config::Config;
use crate::deliveries::{self, DeliveryError};
use crate::listeners::{ListenError, NodeListener, stopped};
use crate::node::NodeTransport;
use crate::storage::{self, StorageError};

/// How often the destinations are read again: the active node may not have been able to say that it
/// created one.
const REFRESH: Duration = Duration::from_secs(10);

/// Why a node cannot deliver beside the active one.
#[derive(Debug, thiserror::Error)]
pub enum DelivererError {
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StorageError),
    /// Nothing could be delivered.
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
    /// The active node could not pass on commands.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The store has failed: only a new process can help.
    #[error("the store has failed")]
    StoreFailed,
}

/// The deliveries of a node that is not active.
pub(crate) struct Deliverer {
    store: Arc<dyn Store>,
    deliveries: Deliveries,
    leases: BTreeMap<LeaseId, u64>,
    web: Addr<Web>,
    tasks: [JoinHandle<()>; 2],
}

impl Deliverer {
    /// Begins to deliver, for now without a lease.
    pub(crate) async fn start(
        config: &Config,
        transport: &NodeTransport,
        active: ActiveNode,
    ) -> Result<Self, DelivererError> {
        let storage = storage::open(config, None).await?;
        let (clock, store) = (Clock::new(), Arc::clone(&storage.store));
        let logging = Logging::without_sweeps(clock.clone(), store.clone(), store.clone()).start();
        // Brokers are the active node's.
        let (commands, _) = command_queue();
        let parts = deliveries::parts(config, &storage, &clock, commands)?;
        let share = DeliveryShare::Leased(BTreeMap::new(), None);
        let deliveries = Deliveries::start(parts, share, Vec::new(), &logging);
        let listener = NodeListener::open(config, transport)?;
        let web = listener.start(routes(deliveries.clone(), Arc::clone(&store)))?;
        let following = news::follow(transport.identity.clone(), active, store.clone());
        let following = actix_rt::spawn(async move {
            let Err(error) = following.await;
            error!(%error, "new events are found only when events are looked for");
        });
        let (refreshed, read) = (deliveries.clone(), Arc::clone(&store));
        let refreshing = actix_rt::spawn(async move {
            loop {
                sleep(REFRESH).await;
                let destinations = deliveries::all_destinations(&*read).await;
                refreshed.take(Vec::new(), destinations).await;
            }
        });
        Ok(Self {
            store,
            deliveries,
            leases: BTreeMap::new(),
            web,
            tasks: [following, refreshing],
        })
    }

    /// Delivers under these leases, too.
    pub(crate) async fn take(&mut self, leases: Vec<(LeaseId, u64)>) {
        self.leases.extend(leases.iter().copied());
        let destinations = deliveries::all_destinations(&*self.store).await;
        self.deliveries.take(leases, destinations).await;
    }

    /// Delivers to the destinations of a partition no longer.
    pub(crate) async fn give(&mut self, partition: Partition) {
        self.deliveries.give(partition).await;
        self.leases.remove(&LeaseId::Deliveries(partition));
    }

    /// Returns when the store has failed.
    pub(crate) async fn failed(&self) {
        storage::failed(&*self.store).await;
    }

    /// Stops; nothing more is delivered or saved when this returns. Its leases are still held.
    pub(crate) async fn stop(mut self) -> BTreeMap<LeaseId, u64> {
        self.tasks.iter().for_each(JoinHandle::abort);
        stopped(vec![self.web]).await;
        let leases = std::mem::take(&mut self.leases);
        for lease in leases.keys() {
            if let LeaseId::Deliveries(partition) = lease {
                self.deliveries.give(*partition).await;
            }
        }
        leases
    }
}

/// What the deliveries of a node are asked for.
#[derive(Clone)]
struct DelivererState {
    deliveries: Deliveries,
    store: Arc<dyn Store>,
}

fn routes(deliveries: Deliveries, store: Arc<dyn Store>) -> Routes {
    let state = web::Data::new(DelivererState { deliveries, store });
    Arc::new(move |app| {
        app.app_data(state.clone());
        app.route(
            &format!("{DESTINATIONS}/{{id}}/{{call}}"),
            web::post().to(carry_out),
        );
        app.route(
            &format!("{CUSTOMERS}/{{id}}/forget"),
            web::post().to(forget),
        );
    })
}

/// POST: carries out a command for a destination.
async fn carry_out(
    path: web::Path<(String, String)>,
    body: web::Bytes,
    state: web::Data<DelivererState>,
) -> HttpResponse {
    let (id, call) = path.into_inner();
    let (Ok(id), Some(call)) = (DestinationId::parse(&id), DestinationCall::parse(&call)) else {
        return HttpResponse::NotFound().finish();
    };
    let carried_out = carry_out_call((id, call), &body, &state).await;
    carried_out.unwrap_or_else(refused)
}

async fn carry_out_call(
    (id, call): (DestinationId, DestinationCall),
    body: &[u8],
    state: &DelivererState,
) -> Result<HttpResponse, Unserved> {
    let deliveries = &state.deliveries;
    match call {
        DestinationCall::Begin => {
            let created = state.store.destination(id).await;
            let created = created.map_err(|Unavailable| Unserved::Failed)?;
            let created = created.ok_or(Unserved::Unknown)?;
            if !deliveries.begin(created).await? {
                return Err(Unserved::Unknown);
            }
        }
        DestinationCall::Amend => {
            let amended = destination_of_bytes(body).ok_or(Unserved::Failed)?;
            let amendment = DestinationAmendment {
                name: Some(amended.name),
                target: Some(amended.target),
                event_types: Some(amended.event_types),
            };
            deliveries.amend(id, amendment).await?;
        }
        DestinationCall::Restart => drop(deliveries.restart(id).await?),
        DestinationCall::Replay => deliveries.replay(id).await?,
        DestinationCall::Discard => {
            let letters = str::from_utf8(body).ok().and_then(read_numbers);
            let letters = letters.ok_or(Unserved::Failed)?;
            if deliveries.discard(id, letters).await?.is_err() {
                return Ok(HttpResponse::Conflict().finish());
            }
        }
        DestinationCall::Test => {
            let tested = deliveries.test(id).await?;
            return Ok(HttpResponse::Ok().body(write_outcome(&tested)));
        }
        DestinationCall::Remove => deliveries.remove(id).await?,
    }
    Ok(HttpResponse::NoContent().finish())
}

/// POST: forgets the destinations of a customer that is being removed.
async fn forget(id: web::Path<String>, state: web::Data<DelivererState>) -> HttpResponse {
    let Ok(customer) = CustomerId::parse(&id) else {
        return HttpResponse::NotFound().finish();
    };
    match state.deliveries.forget(customer).await {
        Ok(()) => HttpResponse::NoContent().finish(),
        Err(unserved) => refused(unserved),
    }
}

fn refused(unserved: Unserved) -> HttpResponse {
    match unserved {
        Unserved::Unknown => HttpResponse::NotFound().finish(),
        Unserved::Busy => HttpResponse::ServiceUnavailable().finish(),
        Unserved::Failed => HttpResponse::InternalServerError().finish(),
    }
}
