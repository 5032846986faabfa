//! How the rest of the service reaches what delivers events: by the id of a destination.

mod forwarder;
mod messages;
mod meters;
mod supervisor;

use std::sync::Arc;

use actix::{Actor as _, Addr, Handler, Message};
use actix_rt::Arbiter;
use engine::delivery::address::policy::AddressPolicy;
use engine::delivery::backlog::Sequence;
use engine::delivery::command::{DestinationCommand, DestinationReply, TestOutcome};
use engine::delivery::destination::{Destination, DestinationAmendment};
use engine::delivery::forwarding::{DeliveryRules, NotActive, ReplayUnderWay};
use engine::ids::{CustomerId, DestinationId};
use engine::supervision::Unserved;
use store::sealed::MasterKey;
use store::{Commit, DeliveryReads};
use tokio::sync::oneshot;
use tracing::{Span, error};

use crate::clock::Clock;
use crate::http::HttpClient;
use crate::logging::Logging;
pub use forwarder::{header_context, secret_context};

use messages::{AskDestination, CreateDestination, ForgetCustomer, ForwarderCommand, Reply};
use supervisor::ForwarderSupervisor;

/// What deliveries are made with.
#[derive(Clone)]
pub struct DeliveryParts {
    /// The clock.
    pub clock: Clock,
    /// Makes durable how far destinations have come.
    pub commits: Arc<dyn Commit>,
    /// Reads what waits for them.
    pub store: Arc<dyn DeliveryReads>,
    /// HTTP out.
    pub http: HttpClient,
    /// What may be reached.
    pub policy: AddressPolicy,
    /// What opens the secrets of destinations.
    pub master_key: Arc<MasterKey>,
    /// How deliveries are made.
    pub rules: Arc<DeliveryRules>,
}

/// The door to all destinations.
#[derive(Clone)]
pub struct Deliveries {
    supervisor: Addr<ForwarderSupervisor>,
}

impl Deliveries {
    /// Starts the supervisor on an arbiter of its own, with a forwarder for each of these
    /// destinations: what customers' endpoints do is not to be felt where devices are heard.
    pub fn start(
        parts: DeliveryParts,
        destinations: Vec<Destination>,
        logging: &Addr<Logging>,
    ) -> Self {
        let arbiter = Arbiter::new().handle();
        let logging = logging.clone();
        let supervisor = ForwarderSupervisor::start_in_arbiter(&arbiter, move |_| {
            ForwarderSupervisor::new(parts, destinations, logging)
        });
        Self { supervisor }
    }

    /// Makes a destination; when this answers Ok it is durable and told what happens.
    pub async fn create(&self, destination: Destination) -> Result<(), Unserved> {
        let destination = Box::new(destination);
        self.send(|reply| CreateDestination { destination, reply })
            .await
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

    /// Removes a destination with all that waits for it.
    pub async fn remove(&self, id: DestinationId) -> Result<(), Unserved> {
        self.ask(id, DestinationCommand::Remove).await.map(drop)
    }

    /// Takes up deliveries again after a failure.
    pub async fn restart(&self, id: DestinationId) -> Result<Destination, Unserved> {
        let answer = self.ask(id, DestinationCommand::Restart).await?;
        let DestinationReply::Destination(destination) = answer else {
            return Err(unexpected(&answer));
        };
        Ok(*destination)
    }

    /// Delivers its dead letters again; when this answers Ok that is durable.
    pub async fn replay(&self, id: DestinationId) -> Result<Result<(), NotActive>, Unserved> {
        let answer = self.ask(id, DestinationCommand::Replay).await?;
        let DestinationReply::Replayed(replayed) = answer else {
            return Err(unexpected(&answer));
        };
        Ok(replayed)
    }

    /// Gives up dead letters of it for good; when this answers Ok that is durable.
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

    /// Tells a destination once that it is reached, and says what came of it.
    pub async fn test(&self, id: DestinationId) -> Result<TestOutcome, Unserved> {
        let answer = self.ask(id, DestinationCommand::Test).await?;
        let DestinationReply::Tested(tested) = answer else {
            return Err(unexpected(&answer));
        };
        Ok(tested)
    }

    /// Lets go of the destinations of a customer that is being removed; when this answers, nothing
    /// is written of them any more.
    pub async fn forget(&self, customer: CustomerId) -> Result<(), Unserved> {
        let told = self.supervisor.send(ForgetCustomer(customer)).await;
        told.map_err(|_| Unserved::Failed)
    }

    async fn ask(
        &self,
        id: DestinationId,
        question: DestinationCommand,
    ) -> Result<DestinationReply, Unserved> {
        let span = Span::current();
        self.send(|reply| AskDestination {
            id,
            asked: ForwarderCommand {
                command: question,
                reply,
                span,
            },
        })
        .await
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

/// A question has one kind of answer.
fn unexpected(answer: &DestinationReply) -> Unserved {
    error!(?answer, "a forwarder sent an unexpected answer");
    Unserved::Failed
}
