//! How does the rest of the service reach deliveries? By the id of a destination.

mod connections;
mod forwarder;
mod messages;
mod meters;
pub mod stream;
mod supervisor;

use std::collections::BTreeMap;
use std::sync::Arc;

use actix::{Actor as _, Addr, Handler, Message};
use actix_rt::Arbiter;
use engine::delivery::address::policy::AddressPolicy;
use engine::delivery::backlog::Sequence;
use engine::delivery::command::{DestinationCommand, DestinationReply, TestOutcome};
use engine::delivery::destination::{Destination, DestinationAmendment};
use engine::delivery::forwarders::creation;
use engine::delivery::forwarding::{DeliveryRules, ReplayUnderWay};
use engine::delivery::mqtt::link::MqttLinkStatus;
use engine::idempotency::IdempotencyRecord;
use engine::ids::{CustomerId, DestinationId, Partition};
use engine::node::lease::LeaseId;
use engine::supervision::Unserved;
use store::sealed::MasterKey;
use store::{Commit, DeliveryReads};
use tokio::sync::{mpsc, oneshot};
use tracing::{Span, error, warn};

use crate::broker::BrokerConnector;
use crate::clock::Clock;
use crate::http::HttpClient;
use crate::logging::Logging;
use crate::relay::deliveries::DeliveringNodes;
pub use connections::BrokerConnections;
pub use messages::CommandCall;

use messages::{
    AskDestination, BeginDelivery, CreateDestination, ForgetCustomer, ForwarderCommand,
    GivePartition, Reply, TakeLeases,
};
use supervisor::ForwarderSupervisor;

/// What deliveries need.
#[derive(Clone)]
pub struct DeliveryParts {
    /// The clock.
    pub clock: Clock,
    /// Commits the progress of destinations.
    pub commits: Arc<dyn Commit>,
    /// Reads queued events and progress.
    pub store: Arc<dyn DeliveryReads>,
    /// HTTP out.
    pub http: HttpClient,
    /// Connections to brokers.
    pub brokers: BrokerConnector,
    /// Which of them are open.
    pub connections: BrokerConnections,
    /// Takes the commands that come from brokers.
    pub commands: mpsc::Sender<CommandCall>,
    /// Which addresses may be called.
    pub policy: AddressPolicy,
    /// Opens the secrets of destinations.
    pub master_key: Arc<MasterKey>,
    /// The rules of deliveries.
    pub rules: Arc<DeliveryRules>,
}

/// Commands of all brokers that wait for the API: each broker has one in progress at a time.
const COMMANDS_MAX: usize = 64;

/// The queue of the commands that come from brokers.
pub fn command_queue() -> (mpsc::Sender<CommandCall>, mpsc::Receiver<CommandCall>) {
    mpsc::channel(COMMANDS_MAX)
}

/// For which destinations a process delivers.
#[derive(Clone)]
pub enum DeliveryShare {
    /// For all.
    All,
    /// For those that these leases are of; other nodes deliver to the others, which the active node
    /// can reach.
    Leased(BTreeMap<LeaseId, u64>, Option<DeliveringNodes>),
}

/// The handle to all destinations.
#[derive(Clone)]
pub struct Deliveries {
    supervisor: Addr<ForwarderSupervisor>,
    connections: BrokerConnections,
    store: Arc<dyn DeliveryReads>,
    /// The nodes that deliver beside this one.
    others: Option<DeliveringNodes>,
}

impl Deliveries {
    /// Starts the supervisor on an arbiter of its own, with a forwarder for each of these
    /// destinations that the process delivers to: slow endpoints of customers must not affect the
    /// threads that serve devices.
    pub fn start(
        parts: DeliveryParts,
        share: DeliveryShare,
        destinations: Vec<Destination>,
        logging: &Addr<Logging>,
    ) -> Self {
        let arbiter = Arbiter::new().handle();
        let logging = logging.clone();
        let (connections, store) = (parts.connections.clone(), Arc::clone(&parts.store));
        let (leases, others) = match share {
            DeliveryShare::All => (None, None),
            DeliveryShare::Leased(leases, others) => (Some(leases), others),
        };
        let supervisor = ForwarderSupervisor::start_in_arbiter(&arbiter, move |_| {
            ForwarderSupervisor::new(parts, leases, destinations, logging)
        });
        Self {
            supervisor,
            connections,
            store,
            others,
        }
    }

    /// Delivers under these leases, too, to those of these destinations that they are of. Called
    /// without new ones it finds destinations that were missed.
    pub async fn take(&self, leases: Vec<(LeaseId, u64)>, destinations: Vec<Destination>) {
        let taken = self.supervisor.send(TakeLeases(leases, destinations)).await;
        if taken.is_err() {
            error!("the supervisor of forwarders has stopped");
        }
    }

    /// Delivers to the destinations of a partition no longer; when this returns, nothing more is
    /// delivered or saved for them.
    pub async fn give(&self, partition: Partition) {
        if self
            .supervisor
            .send(GivePartition(partition))
            .await
            .is_err()
        {
            error!("the supervisor of forwarders has stopped");
        }
    }

    /// Delivers to a destination that the active node has created, if this process does.
    pub async fn begin(&self, destination: Destination) -> Result<bool, Unserved> {
        self.send(|reply| BeginDelivery(Box::new(destination), reply))
            .await
    }

    /// The handle to the destinations of this process alone.
    pub fn of_this_node(&self) -> Self {
        Self {
            others: None,
            ..self.clone()
        }
    }

    /// The connection of a destination to its broker.
    pub fn connection(&self, id: DestinationId) -> MqttLinkStatus {
        self.connections.of(id)
    }

    /// Creates a destination, and the idempotency record of its call with it; when this answers Ok
    /// it is durable and receives events.
    pub async fn create(
        &self,
        destination: Destination,
        record: Option<IdempotencyRecord>,
    ) -> Result<(), Unserved> {
        let id = destination.id;
        let mut creation = creation(Box::new(destination.clone()));
        if let Some(record) = record {
            creation.add_record(record);
        }
        let created = self.send(|reply| CreateDestination {
            creation,
            destination: Box::new(destination),
            reply,
        });
        if let (false, Some(others)) = (created.await?, &self.others)
            && let Err(error) = others.begin(id).await
        {
            // The node that is to deliver to it looks for what it missed.
            warn!(%error, destination = %id, "a destination is not delivered to yet");
        }
        Ok(())
    }

    /// Changes a destination.
    pub async fn amend(
        &self,
        id: DestinationId,
        amended: DestinationAmendment,
    ) -> Result<Destination, Unserved> {
        let amend = DestinationCommand::Amend(Box::new(amended));
        let answer = self.ask(id, amend).await?;
        let DestinationReply::Destination(destination) = answer else {
            return Err(unexpected(&answer));
        };
        Ok(*destination)
    }

    /// Removes a destination with all its queued events.
    pub async fn remove(&self, id: DestinationId) -> Result<(), Unserved> {
        self.ask(id, DestinationCommand::Remove).await.map(drop)
    }

    /// Resumes deliveries after a failure.
    pub async fn restart(&self, id: DestinationId) -> Result<Destination, Unserved> {
        let answer = self.ask(id, DestinationCommand::Restart).await?;
        let DestinationReply::Destination(destination) = answer else {
            return Err(unexpected(&answer));
        };
        Ok(*destination)
    }

    /// Delivers its dead letters again; when this answers Ok that is durable.
    pub async fn replay(&self, id: DestinationId) -> Result<(), Unserved> {
        let answer = self.ask(id, DestinationCommand::Replay).await?;
        let DestinationReply::Replayed = answer else {
            return Err(unexpected(&answer));
        };
        Ok(())
    }

    /// Discards dead letters of it for good; when this answers Ok that is durable.
    pub async fn discard(
        &self,
        id: DestinationId,
        letters: Box<[Sequence]>,
    ) -> Result<Result<(), ReplayUnderWay>, Unserved> {
        let answer = self.ask(id, DestinationCommand::Discard(letters)).await?;
        let DestinationReply::Discarded(discarded) = answer else {
            return Err(unexpected(&answer));
        };
        Ok(discarded)
    }

    /// Sends a test event to a destination, and returns the outcome.
    pub async fn test(&self, id: DestinationId) -> Result<TestOutcome, Unserved> {
        let answer = self.ask(id, DestinationCommand::Test).await?;
        let DestinationReply::Tested(tested) = answer else {
            return Err(unexpected(&answer));
        };
        Ok(tested)
    }

    /// Stops the forwarders of a customer that is being removed; when this answers, nothing is
    /// written for them any more.
    pub async fn forget(&self, customer: CustomerId) -> Result<(), Unserved> {
        let answer = self.supervisor.send(ForgetCustomer(customer.clone())).await;
        answer.map_err(|_| Unserved::Failed)?;
        match &self.others {
            Some(others) => others.forget(&customer).await,
            None => Ok(()),
        }
    }

    async fn ask(
        &self,
        id: DestinationId,
        question: DestinationCommand,
    ) -> Result<DestinationReply, Unserved> {
        let span = Span::current();
        let command = question.clone();
        let asked = self.send(|reply| AskDestination {
            id,
            request: ForwarderCommand {
                command,
                reply,
                span,
            },
        });
        match (asked.await, &self.others) {
            (Err(Unserved::Unknown), Some(others)) => self.ask_another(others, id, question).await,
            (answer, _) => answer,
        }
    }

    /// Has another node carry out a command, which delivers to the destination.
    async fn ask_another(
        &self,
        others: &DeliveringNodes,
        id: DestinationId,
        question: DestinationCommand,
    ) -> Result<DestinationReply, Unserved> {
        let stored = || self.store.destination(id);
        let known = stored().await.map_err(|_| Unserved::Failed)?;
        let known = known.filter(|it| it.lease() != LeaseId::Active);
        let answer = others
            .ask(known.ok_or(Unserved::Unknown)?, question)
            .await?;
        let DestinationReply::Destination(_) = answer else {
            return Ok(answer);
        };
        let changed = stored().await.map_err(|_| Unserved::Failed)?;
        let changed = changed.ok_or(Unserved::Unknown)?;
        Ok(DestinationReply::Destination(Box::new(changed)))
    }

    async fn send<M, T>(&self, message: impl FnOnce(Reply<T>) -> M) -> Result<T, Unserved>
    where
        M: Message<Result = ()> + Send + 'static,
        ForwarderSupervisor: Handler<M>,
    {
        let (reply, answer) = oneshot::channel();
        let sent = self.supervisor.try_send(message(reply));
        sent.map_err(|_| Unserved::Busy)?;
        answer.await.unwrap_or(Err(Unserved::Failed))
    }
}

/// The error of an answer of the wrong kind.
fn unexpected(answer: &DestinationReply) -> Unserved {
    error!(?answer, "a forwarder sent an unexpected answer");
    Unserved::Failed
}
