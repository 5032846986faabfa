//! How many threads serve devices? One arbiter per core, each with its own registry, devices and
//! sockets on the addresses devices know.

use std::sync::Arc;

use actix::{Addr, MailboxError};
use actix_rt::Arbiter;
use engine::change::Batch;
use engine::dispatch::shard_map::ShardMap;
use tracing::warn;

use crate::devices::Devices;
use crate::kept_sessions::EarlierSessions;
use crate::logging::Logging;
use crate::registry::context::{ArbiterParts, ArbiterPlacement, StartupBarrier};
use crate::registry::{
    ConnectArbiters, FlushOutbound, KeepSessions, Quiesce, Registry, StopArbiter,
};
use crate::socket::Open;

/// The arbiters of a process.
pub struct Arbiters {
    parts: ArbiterParts,
    shard_map: ShardMap,
    arbiters: Vec<Arbiter>,
    actors: Arc<[Addr<Registry>]>,
}

impl Arbiters {
    /// Starts an arbiter for each pair of sockets; from then on devices are served and restored.
    pub fn start(mut parts: ArbiterParts, sockets: Vec<Open>, logging: &Addr<Logging>) -> Self {
        parts.limits = parts.limits.shared_among(sockets.len());
        parts.association_limits = parts.association_limits.shared_among(sockets.len());
        let shard_map = ShardMap::among(sockets.len());
        let arbiters: Vec<Arbiter> = sockets.iter().map(|_| Arbiter::new()).collect();
        let startup_barrier = Arc::new(StartupBarrier::of(sockets.len()));
        let kept = parts.kept_sessions.as_ref();
        let mut earlier = kept.map_or_else(EarlierSessions::default, |it| it.take(sockets.len()));
        let registries: Arc<[Addr<Registry>]> = shard_map
            .arbiters()
            .zip(sockets.into_iter().zip(&arbiters))
            .map(|(here, (open, arbiter))| {
                let startup_barrier = Arc::clone(&startup_barrier);
                let place = ArbiterPlacement {
                    arbiter_id: here,
                    shard_map,
                    startup_barrier,
                    sessions: earlier
                        .by_arbiter
                        .get_mut(here.index())
                        .map(std::mem::take)
                        .unwrap_or_default(),
                    cached_sessions: Arc::clone(&earlier.cached),
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

    /// The handle to all devices.
    pub fn devices(&self) -> Devices {
        Devices::new(self.shard_map, Arc::clone(&self.actors), &self.parts)
    }

    /// The threads that serve devices.
    pub fn handles(&self) -> impl Iterator<Item = &Arbiter> {
        self.arbiters.iter()
    }

    /// Ends the work of devices: from then on they receive no datagram and no wake-up, and the
    /// results of their earlier steps are durable and sent.
    ///
    /// The devices stay in memory. To unload a million of them takes longer than to restore them,
    /// and the end of the process frees them at once.
    pub async fn quiesce(&self) {
        // All stop receiving before the first one finishes: a datagram may belong to another
        // arbiter.
        for registry in &*self.actors {
            warn_if_stopped(registry.send(Quiesce).await);
        }
        // Batches are committed in order: once this one has its receipt, so have all earlier ones.
        if let Err(error) = self.parts.commits.commit(Batch::default()).await {
            warn!(%error, "the last changes may not be durable");
        }
        for registry in &*self.actors {
            warn_if_stopped(registry.send(FlushOutbound).await);
        }
    }

    /// Keeps the sessions over DTLS for the next process, once the devices are quiesced. Nothing is
    /// sent over them any more.
    pub async fn keep_sessions(&self) {
        for registry in &*self.actors {
            warn_if_stopped(registry.send(KeepSessions).await);
        }
    }

    /// Ends the work of devices, frees them and ends the threads, for a process that goes on.
    pub async fn stop(self) {
        self.quiesce().await;
        for (registry, arbiter) in self.actors.iter().zip(self.arbiters) {
            warn_if_stopped(registry.send(StopArbiter).await);
            arbiter.stop();
            if arbiter.join().is_err() {
                warn!("an arbiter did not stop cleanly");
            }
        }
    }
}

fn warn_if_stopped(sent: Result<(), MailboxError>) {
    if sent.is_err() {
        warn!("a registry has stopped");
    }
}
