//! The shell of the supervisor of forwarders: performs what [`Forwarders`] decides, and hands
//! commands for a destination to its forwarder.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use actix::{
    Actor, ActorFutureExt as _, Addr, AsyncContext as _, Context, Handler, ResponseFuture,
    WrapFuture as _,
};
use engine::admin_log::entry::Entry;
use engine::change::Owner;
use engine::delivery::command::DestinationReply;
use engine::delivery::destination::Destination;
use engine::delivery::forwarders::{
    CommandRoute, DestinationUnreadable, Forwarders, SupervisorEffect,
};
use engine::delivery::forwarding::Forwarding;
use engine::ids::{CustomerId, DestinationId};
use engine::node::lease::LeaseId;
use engine::supervision::Unserved;
use engine::supervision::{ActorFailure, Generation};
use store::{PartitionNotifier, Pressure, Unavailable};
use tracing::{debug, error, warn};

use crate::delivery::DeliveryParts;
use crate::delivery::forwarder::ForwarderActor;
use crate::delivery::messages::{
    AskDestination, BeginDelivery, CreateDestination, ForgetCustomer, ForwarderEnded,
    GivePartition, Reply, StopForwarder, TakeLeases,
};
use crate::delivery::meters::DeliveryMeters;
use crate::logging::{Logging, WriteEntry};
use crate::reply::{answer, refusal};

/// Commands that may wait for the supervisor; more are refused as too busy.
const QUESTIONS_MAX: usize = 1_024;

/// What a forwarder is started with. It subscribes to its notifier before the store is read, so
/// that no event that begins to wait is missed.
type FoundDestination = (Forwarding, Arc<PartitionNotifier>);

type Effects = Vec<SupervisorEffect<FoundDestination>>;

/// The supervisor of all forwarders.
pub(crate) struct ForwarderSupervisor {
    parts: Rc<DeliveryParts>,
    forwarders: Forwarders<Addr<ForwarderActor>>,
    meters: Rc<DeliveryMeters>,
    logging: Addr<Logging>,
    /// The leases under which it delivers; none, if it delivers to all destinations without.
    leases: Option<BTreeMap<LeaseId, u64>>,
    /// The destinations that exist at the start.
    first: Vec<Destination>,
}

impl ForwarderSupervisor {
    pub(super) fn new(
        parts: DeliveryParts,
        leases: Option<BTreeMap<LeaseId, u64>>,
        first: Vec<Destination>,
        logging: Addr<Logging>,
    ) -> Self {
        Self {
            parts: Rc::new(parts),
            forwarders: Forwarders::default(),
            meters: Rc::new(DeliveryMeters::new()),
            logging,
            leases,
            first,
        }
    }

    /// Under which lease the steps of a destination are saved; none, if another node delivers to
    /// it.
    fn owner_of(&self, destination: &Destination) -> Option<Owner> {
        let Some(leases) = &self.leases else {
            return Some(Owner::Nobody);
        };
        let lease = destination.lease();
        let epoch = *leases.get(&lease)?;
        Some(match lease {
            LeaseId::Active => Owner::Nobody,
            LeaseId::Partition(partition) => Owner::Deliveries { partition, epoch },
        })
    }

    /// Restores the forwarder of a destination, unless it has one or another node delivers; answers
    /// whether it has one here.
    fn begin(
        &mut self,
        destination: &Destination,
        creator: Option<Reply<bool>>,
        ctx: &mut Context<Self>,
    ) {
        let (id, is_here) = (destination.id, self.owner_of(destination).is_some());
        if is_here && !self.forwarders.has(id) {
            let customer = destination.customer.clone();
            self.forwarders.restore(id, customer.clone());
            self.restore(id, customer, creator, ctx);
        } else if let Some(creator) = creator {
            answer(creator, Ok(is_here));
        }
    }

    /// Ends forwarders; nothing is delivered or saved by them any more when this returns.
    fn stop(running: Vec<Addr<ForwarderActor>>) -> ResponseFuture<()> {
        Box::pin(async move {
            for forwarder in running {
                if forwarder.send(StopForwarder).await.is_err() {
                    debug!("a forwarder has stopped");
                }
            }
        })
    }

    fn perform(&mut self, id: DestinationId, effects: Effects, ctx: &mut Context<Self>) {
        for effect in effects {
            match effect {
                SupervisorEffect::Spawn(generation, found) => {
                    self.spawn(id, generation, found, ctx);
                }
                SupervisorEffect::RestoreAt(at) => {
                    let wait = self.parts.clock.until(at);
                    ctx.run_later(wait, move |supervisor, ctx| {
                        if let Some(customer) = supervisor.forwarders.handle_timeout(id) {
                            supervisor.restore(id, customer, None, ctx);
                        }
                    });
                }
                SupervisorEffect::LogRestore(ActorFailure::Unsaved) => {
                    warn!(destination = %id, "restoring a forwarder from the store");
                }
                SupervisorEffect::LogRestore(ActorFailure::Panicked) => {
                    error!(destination = %id, "a forwarder panicked and is restored");
                }
                SupervisorEffect::LogParked => {
                    error!(destination = %id, "a forwarder keeps panicking and is parked");
                    self.log_parked(id, ctx);
                }
            }
        }
    }

    /// Restores a forwarder; the creator of its destination is answered after the attempt.
    fn restore(
        &self,
        id: DestinationId,
        customer: CustomerId,
        creator: Option<Reply<bool>>,
        ctx: &mut Context<Self>,
    ) {
        let parts = Rc::clone(&self.parts);
        let found = async move { found(&parts, id, customer).await };
        ctx.spawn(found.into_actor(self).map(move |found, supervisor, ctx| {
            let now = supervisor.parts.clock.now();
            let found = found.map_err(|Unavailable| DestinationUnreadable);
            let effect = supervisor.forwarders.handle_restored(now, id, found);
            supervisor.perform(id, effect.into_iter().collect(), ctx);
            if let Some(creator) = creator {
                answer(creator, Ok(true));
            }
        }));
    }

    fn spawn(
        &mut self,
        id: DestinationId,
        generation: Generation,
        (forwarding, notifier): FoundDestination,
        ctx: &Context<Self>,
    ) {
        // Its lease may have been given up in the meantime.
        let Some(owner) = self.owner_of(forwarding.destination()) else {
            return self.forwarders.handle_removed(id);
        };
        let forwarder = ForwarderActor::new(
            Rc::clone(&self.parts),
            forwarding,
            notifier,
            ctx.address().recipient(),
            (Rc::clone(&self.meters), generation, owner),
        );
        let handle = forwarder.start();
        self.forwarders.handle_spawned(id, generation, handle);
    }

    fn log_parked(&self, id: DestinationId, ctx: &mut Context<Self>) {
        let destination = self.parts.store.destination(id).into_actor(self);
        ctx.spawn(destination.map(|found, supervisor, _| {
            if let Ok(Some(destination)) = found {
                let mut m = supervisor.parts.clock.moment();
                let entry = Box::new(Entry::integration_parked(&mut m, &destination));
                let record = WriteEntry { entry, event: None };
                if supervisor.logging.try_send(record).is_err() {
                    warn!("the logging actor is busy; a log entry was dropped");
                }
            }
        }));
    }
}

/// Reads everything needed to deliver to a destination, if it still exists. While the store accepts
/// no commits, nothing is restored: progress could not be saved, and the same events would be
/// delivered again and again.
async fn found(
    parts: &DeliveryParts,
    id: DestinationId,
    customer: CustomerId,
) -> Result<Option<FoundDestination>, Unavailable> {
    match parts.commits.pressure() {
        Pressure::Open => {}
        Pressure::Full | Pressure::DiskFull | Pressure::Unreachable | Pressure::Failed => {
            return Err(Unavailable);
        }
    }
    let notifier = parts.store.subscribe(customer);
    let Some(destination) = parts.store.destination(id).await? else {
        return Ok(None);
    };
    let progress = parts.store.progress_of(id).await?;
    let waiting_in = parts.store.partitions_waiting(id).await?;
    let rules = Arc::clone(&parts.rules);
    let forwarding = Forwarding::restore(rules, destination, progress, waiting_in);
    Ok(Some((forwarding, notifier)))
}

impl Actor for ForwarderSupervisor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(QUESTIONS_MAX);
        for destination in std::mem::take(&mut self.first) {
            self.begin(&destination, None, ctx);
        }
    }
}

impl Handler<CreateDestination> for ForwarderSupervisor {
    type Result = ();

    fn handle(&mut self, create: CreateDestination, ctx: &mut Context<Self>) {
        let CreateDestination {
            creation,
            destination,
            reply,
        } = create;
        let receipt = self.parts.commits.commit(creation);
        let receipt = receipt.into_actor(self);
        ctx.spawn(receipt.map(move |saved, supervisor, ctx| match saved {
            Ok(()) => supervisor.begin(&destination, Some(reply), ctx),
            Err(error) => answer(reply, Err(refusal(error))),
        }));
    }
}

impl Handler<AskDestination> for ForwarderSupervisor {
    type Result = ();

    fn handle(&mut self, AskDestination { id, request }: AskDestination, ctx: &mut Context<Self>) {
        match self.forwarders.route(id, &request.command) {
            CommandRoute::Deliver(forwarder) => {
                if let Err(unsent) = forwarder.try_send(request) {
                    answer(unsent.into_inner().reply, Err(Unserved::Busy));
                }
            }
            CommandRoute::Refuse(why) => answer(request.reply, Err(why)),
            CommandRoute::Remove(batch) => {
                let receipt = self.parts.commits.commit(batch).into_actor(self);
                ctx.spawn(receipt.map(move |removed, supervisor, _| {
                    if removed.is_ok() {
                        supervisor.forwarders.handle_removed(id);
                    }
                    let removed = removed.map(|()| DestinationReply::Removed);
                    answer(request.reply, removed.map_err(refusal));
                }));
            }
        }
    }
}

impl Handler<ForgetCustomer> for ForwarderSupervisor {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, forget: ForgetCustomer, _: &mut Context<Self>) -> ResponseFuture<()> {
        Self::stop(self.forwarders.forget_customer(&forget.0))
    }
}

impl Handler<BeginDelivery> for ForwarderSupervisor {
    type Result = ();

    fn handle(&mut self, begin: BeginDelivery, ctx: &mut Context<Self>) {
        let BeginDelivery(destination, reply) = begin;
        self.begin(&destination, Some(reply), ctx);
    }
}

impl Handler<TakeLeases> for ForwarderSupervisor {
    type Result = ();

    fn handle(&mut self, take: TakeLeases, ctx: &mut Context<Self>) {
        let TakeLeases(leases, destinations) = take;
        if let Some(held) = &mut self.leases {
            held.extend(leases);
        }
        for destination in &destinations {
            self.begin(destination, None, ctx);
        }
    }
}

impl Handler<GivePartition> for ForwarderSupervisor {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, give: GivePartition, _: &mut Context<Self>) -> ResponseFuture<()> {
        let GivePartition(partition) = give;
        if let Some(held) = &mut self.leases {
            held.remove(&LeaseId::Partition(partition));
        }
        Self::stop(self.forwarders.forget_partition(partition))
    }
}

impl Handler<ForwarderEnded> for ForwarderSupervisor {
    type Result = ();

    fn handle(&mut self, ended: ForwarderEnded, ctx: &mut Context<Self>) {
        let ForwarderEnded {
            id,
            generation,
            end,
        } = ended;
        let now = self.parts.clock.now();
        let effects = self.forwarders.handle_ended(now, (id, generation), end);
        self.perform(id, effects, ctx);
    }
}
