//! How the rest of the service reaches what delivers events: by the id of a destination.

pub(crate) mod forwarder;
pub(crate) mod meters;
pub(crate) mod supervisor;

use std::sync::Arc;

use actix::{Actor as _, Addr};
use actix_rt::Arbiter;
use engine::delivery::address::policy::Policy;
use engine::delivery::destination::{Destination, EventTypes, Target};
use engine::delivery::forwarding::{DeliveryRules, NotActive, ReplayUnderWay};
use engine::delivery::letter::Sequence;
use engine::ids::{CustomerId, DestinationId};
use store::sealed::MasterKey;
use store::{Commit, DeliveryReads};
use tokio::sync::oneshot;
use tracing::Span;

use crate::clock::Clock;
use crate::http::Http;
use crate::logging::Logging;
use crate::post::forwarder::Question;
pub use crate::post::forwarder::{Tested, header_context, secret_context};

use supervisor::{Ask, Create, ForgetCustomer, PostOffice};

/// What deliveries are made with.
#[derive(Clone)]
pub struct PostParts {
    /// The clock.
    pub clock: Clock,
    /// Makes durable how far destinations have come.
    pub commits: Arc<dyn Commit>,
    /// Reads what waits for them.
    pub store: Arc<dyn DeliveryReads>,
    /// HTTP out.
    pub http: Http,
    /// What may be reached.
    pub policy: Policy,
    /// What opens the secrets of destinations.
    pub master_key: Arc<MasterKey>,
    /// How deliveries are made.
    pub rules: Arc<DeliveryRules>,
}

/// What a customer changes of a destination; what is missing stays.
#[derive(Clone, Debug, Default)]
pub struct Amended {
    /// What people call it.
    pub name: Option<Box<str>>,
    /// How it is reached.
    pub target: Option<Target>,
    /// What it is told.
    pub wants: Option<EventTypes>,
}

impl Amended {
    pub(crate) fn apply_to(self, destination: &Destination) -> Destination {
        let before = destination.clone();
        Destination {
            name: self.name.unwrap_or(before.name),
            target: self.target.unwrap_or(before.target),
            wants: self.wants.unwrap_or(before.wants),
            ..before
        }
    }
}

/// The door to all destinations.
#[derive(Clone)]
pub struct Post {
    office: Addr<PostOffice>,
}

impl Post {
    /// Starts the post office on an arbiter of its own, with a forwarder for each of these
    /// destinations: what customers' endpoints do is not to be felt where devices are heard.
    pub fn start(
        parts: PostParts,
        destinations: Vec<Destination>,
        logging: &Addr<Logging>,
    ) -> Self {
        let arbiter = Arbiter::new().handle();
        let logging = logging.clone();
        let office = PostOffice::start_in_arbiter(&arbiter, move |_| {
            PostOffice::new(parts, destinations, logging)
        });
        Self { office }
    }

    /// Makes a destination; when this answers Ok it is durable and told what happens.
    pub async fn create(&self, destination: Destination) -> Result<(), Unserved> {
        let (reply, created) = oneshot::channel();
        let destination = Box::new(destination);
        let create = Create { destination, reply };
        self.office.try_send(create).map_err(|_| Unserved::Busy)?;
        created.await.unwrap_or(Err(Unserved::Failed))
    }

    /// Changes a destination.
    pub async fn amend(
        &self,
        id: DestinationId,
        amended: Amended,
    ) -> Result<Destination, Unserved> {
        let amended = Box::new(amended);
        self.ask(id, |reply| Question::Amend(amended, reply)).await
    }

    /// Removes a destination with all that waits for it.
    pub async fn remove(&self, id: DestinationId) -> Result<(), Unserved> {
        self.ask(id, Question::Remove).await
    }

    /// Takes up deliveries again after a failure.
    pub async fn restart(&self, id: DestinationId) -> Result<Destination, Unserved> {
        self.ask(id, Question::Restart).await
    }

    /// Delivers its dead letters again; when this answers Ok that is durable.
    pub async fn replay(&self, id: DestinationId) -> Result<Result<(), NotActive>, Unserved> {
        self.ask(id, Question::Replay).await
    }

    /// Gives up dead letters of it for good; when this answers Ok that is durable.
    pub async fn discard(
        &self,
        id: DestinationId,
        letters: Box<[Sequence]>,
    ) -> Result<Result<(), ReplayUnderWay>, Unserved> {
        self.ask(id, |reply| Question::Discard(letters, reply))
            .await
    }

    /// Tells a destination once that it is reached, and says what came of it.
    pub async fn test(&self, id: DestinationId) -> Result<Tested, Unserved> {
        self.ask(id, Question::Test).await
    }

    /// Lets go of the destinations of a customer that is being removed; when this answers, nothing
    /// is written of them any more.
    pub async fn forget(&self, customer: CustomerId) -> Result<(), Unserved> {
        let told = self.office.send(ForgetCustomer(customer)).await;
        told.map_err(|_| Unserved::Failed)
    }

    async fn ask<T>(
        &self,
        id: DestinationId,
        question: impl FnOnce(oneshot::Sender<Result<T, Unserved>>) -> Question,
    ) -> Result<T, Unserved> {
        let (reply, answer) = oneshot::channel();
        let question = question(reply);
        let span = Span::current();
        let ask = Ask { id, question, span };
        self.office.try_send(ask).map_err(|_| Unserved::Busy)?;
        answer.await.unwrap_or(Err(Unserved::Failed))
    }
}
