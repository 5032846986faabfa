//! How many threads serve devices? One arbiter per core, each with a registry, devices and
//! sockets of its own on the addresses devices know.

use std::sync::Arc;

use actix::{Addr, MailboxError};
use actix_rt::Arbiter;
use engine::change::Batch;
use engine::dispatch::shard_map::ShardMap;
use tracing::warn;

use crate::devices::Devices;
use crate::logging::Logging;
use crate::registry::context::{ArbiterParts, ArbiterPlacement, StartupBarrier};
use crate::registry::{ConnectArbiters, FlushOutbound, Quiesce, Registry, StopArbiter};
use crate::socket::Open;

/// The arbiters of a process.
pub struct Arbiters {
    parts: ArbiterParts,
    shard_map: ShardMap,
    arbiters: Vec<Arbiter>,
    actors: Arc<[Addr<Registry>]>,
}

impl Arbiters {
    /// Starts an arbiter for each pair of sockets; from then on devices are served and come back.
    pub fn start(parts: ArbiterParts, sockets: Vec<Open>, logging: &Addr<Logging>) -> Self {
        let shard_map = ShardMap::among(sockets.len());
        let arbiters: Vec<Arbiter> = sockets.iter().map(|_| Arbiter::new()).collect();
        let startup_barrier = Arc::new(StartupBarrier::of(sockets.len()));
        let registries: Arc<[Addr<Registry>]> = shard_map
            .arbiters()
            .zip(sockets.into_iter().zip(&arbiters))
            .map(|(here, (open, arbiter))| {
                let startup_barrier = Arc::clone(&startup_barrier);
                let place = ArbiterPlacement {
                    arbiter_id: here,
                    shard_map,
                    startup_barrier,
                };
                Registry::start_on(arbiter, place, parts.clone(), open, logging.clone())
            })
            .collect();
        for registry in &*registries {
            registry.do_send(ConnectArbiters(Arc::clone(&registries)));
        }
        Self {
            parts,
            shard_map,
            arbiters,
            actors: registries,
        }
    }

    /// The door to all devices.
    pub fn devices(&self) -> Devices {
        Devices::new(self.shard_map, Arc::clone(&self.actors), &self.parts)
    }

    /// The threads that serve devices.
    pub fn handles(&self) -> impl Iterator<Item = &Arbiter> {
        self.arbiters.iter()
    }

    /// Ends what devices are at: from then on none is heard or woken, and what they decided
    /// before is durable and said.
    ///
    /// The devices stay in memory. To take a million of them down takes longer than to bring them
    /// back, and the end of the process frees them at once.
    pub async fn rest(&self) {
        // All are deaf before the first finishes: what one heard may be another's.
        for registry in &*self.actors {
            told_or_gone(registry.send(Quiesce).await);
        }
        // The store is asked in turn: what was committed before has its receipt now.
        if let Err(error) = self.parts.commits.commit(Batch::default()).await {
            warn!(%error, "the last changes may not be durable");
        }
        for registry in &*self.actors {
            told_or_gone(registry.send(FlushOutbound).await);
        }
    }

    /// Rests, frees the devices and ends the threads, for a process that goes on.
    pub async fn stop(self) {
        self.rest().await;
        for (registry, arbiter) in self.actors.iter().zip(self.arbiters) {
            told_or_gone(registry.send(StopArbiter).await);
            arbiter.stop();
            if arbiter.join().is_err() {
                warn!("an arbiter did not stop cleanly");
            }
        }
    }
}

fn told_or_gone(told: Result<(), MailboxError>) {
    if told.is_err() {
        warn!("a registry has stopped");
    }
}
