//! Who delivers to whom? The post office starts, restores and supervises one forwarder for each
//! destination, and hands it what is asked of it.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorFutureExt as _, Addr, AsyncContext as _, Context, Handler, Message, ResponseFuture,
    WrapFuture as _,
};
use engine::admin_log::entry::Entry;
use engine::change::{Batch, Change, Expect, Name};
use engine::delivery::destination::Destination;
use engine::delivery::forwarding::Forwarding;
use engine::ids::{CustomerId, DestinationId};
use engine::registry::{AfterPanic, Panics};
use store::{Board, CommitError, Pressure, Unavailable};
use tokio::sync::oneshot;
use tracing::{Span, debug, error, warn};

use crate::logging::{Logging, Record};
use crate::post::PostParts;
use crate::post::forwarder::{Asked, Forget, Forwarder, Question};
use crate::post::meters::Meters;
use engine::arbiter::input::Unserved;

/// Questions that may wait for the office; more are refused as too busy.
const QUESTIONS_MAX: usize = 1_024;

/// How soon a failing store is asked again.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// The supervisor of all forwarders.
pub(crate) struct PostOffice {
    parts: Rc<PostParts>,
    desks: BTreeMap<DestinationId, Desk>,
    panics: HashMap<DestinationId, Panics>,
    meters: Rc<Meters>,
    generation: u32,
    logging: Addr<Logging>,
    /// Who made a destination that is durable and waits until it can be asked something.
    made: HashMap<DestinationId, oneshot::Sender<Result<(), Unserved>>>,
    /// With whom the office opens.
    first: Vec<Destination>,
}

/// A destination here.
struct Desk {
    customer: CustomerId,
    forwarder: Staff,
}

/// Who delivers to a destination.
enum Staff {
    /// It is being brought back from the store.
    Coming,
    /// A forwarder, and which of those there were.
    There(Addr<Forwarder>, u32),
    /// Nobody: it panicked again and again.
    Parked,
}

impl PostOffice {
    pub(super) fn new(parts: PostParts, first: Vec<Destination>, logging: Addr<Logging>) -> Self {
        Self {
            parts: Rc::new(parts),
            desks: BTreeMap::new(),
            panics: HashMap::new(),
            meters: Rc::new(Meters::new()),
            generation: 0,
            logging,
            made: HashMap::new(),
            first,
        }
    }

    /// Brings a destination back from the store.
    fn restore(&mut self, id: DestinationId, customer: CustomerId, ctx: &mut Context<Self>) {
        let desk = Desk {
            customer: customer.clone(),
            forwarder: Staff::Coming,
        };
        self.desks.insert(id, desk);
        let parts = Rc::clone(&self.parts);
        let restored = async move { restored(&parts, id, customer).await };
        ctx.spawn(
            restored
                .into_actor(self)
                .map(move |found, office, ctx| office.restored(id, found, ctx)),
        );
    }

    fn restored(
        &mut self,
        id: DestinationId,
        found: Result<Option<(Forwarding, Arc<Board>)>, Unavailable>,
        ctx: &mut Context<Self>,
    ) {
        match found {
            Ok(Some((forwarding, board))) => self.open_desk(id, forwarding, board, ctx),
            Ok(None) => {
                self.desks.remove(&id);
            }
            Err(Unavailable) => self.restore_later(id, STORE_RETRY, ctx),
        }
        if let Some(reply) = self.made.remove(&id) {
            // A caller who went away does not miss the answer.
            let _ = reply.send(Ok(())).is_ok();
        }
    }

    fn restore_later(&mut self, id: DestinationId, pause: Duration, ctx: &mut Context<Self>) {
        if let Some(desk) = self.desks.get_mut(&id) {
            desk.forwarder = Staff::Coming;
            let customer = desk.customer.clone();
            ctx.run_later(pause, move |office, ctx| {
                if office.desks.contains_key(&id) {
                    office.restore(id, customer, ctx);
                }
            });
        }
    }

    fn open_desk(
        &mut self,
        id: DestinationId,
        forwarding: Forwarding,
        board: Arc<Board>,
        ctx: &mut Context<Self>,
    ) {
        // It may have been removed meanwhile.
        let Some(desk) = self.desks.get_mut(&id) else {
            return;
        };
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let forwarder = Forwarder::new(
            Rc::clone(&self.parts),
            forwarding,
            board,
            ctx.address(),
            (Rc::clone(&self.meters), generation),
        );
        desk.forwarder = Staff::There(forwarder.start(), generation);
    }
}

/// All that is needed to deliver to a destination, if it is still there. The board is put up
/// first, so that nothing that begins to wait is missed. While the store takes nothing nobody is
/// brought back: what was delivered could not be kept, and would be delivered again and again.
async fn restored(
    parts: &PostParts,
    id: DestinationId,
    customer: CustomerId,
) -> Result<Option<(Forwarding, Arc<Board>)>, Unavailable> {
    match parts.commits.pressure() {
        Pressure::Open => {}
        Pressure::Full => return Err(Unavailable),
    }
    let board = parts.store.attend(customer);
    let Some(destination) = parts.store.destination(id).await? else {
        return Ok(None);
    };
    let standing = parts.store.standing_of(id).await?;
    let waiting_in = parts.store.shards_waiting(id).await?;
    let rules = Arc::clone(&parts.rules);
    let forwarding = Forwarding::restore(rules, destination, standing, waiting_in);
    Ok(Some((forwarding, board)))
}

impl Actor for PostOffice {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(QUESTIONS_MAX);
        for destination in std::mem::take(&mut self.first) {
            self.restore(destination.id, destination.customer, ctx);
        }
    }
}

/// A destination is to be made.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Create {
    pub(super) destination: Box<Destination>,
    pub(super) reply: oneshot::Sender<Result<(), Unserved>>,
}

impl Handler<Create> for PostOffice {
    type Result = ();

    fn handle(&mut self, create: Create, ctx: &mut Context<Self>) {
        let Create { destination, reply } = create;
        let (id, customer) = (destination.id, destination.customer.clone());
        let batch = Batch {
            changes: vec![Change::PutDestination(destination)],
            // One of a customer that is gone would be there for whoever gets its id next.
            expects: vec![Expect::Taken(Name::Customer(customer.clone()))],
            ..Batch::default()
        };
        let receipt = self.parts.commits.commit(batch).into_actor(self);
        ctx.spawn(receipt.map(move |saved, office, ctx| match saved {
            Ok(()) => {
                office.made.insert(id, reply);
                office.restore(id, customer, ctx);
            }
            Err(error) => {
                // A caller who went away does not miss the answer.
                let _ = reply.send(Err(unserved(error))).is_ok();
            }
        }));
    }
}

/// Something is asked of a destination.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Ask {
    pub(super) id: DestinationId,
    pub(super) question: Question,
    pub(super) span: Span,
}

impl Handler<Ask> for PostOffice {
    type Result = ();

    fn handle(&mut self, ask: Ask, ctx: &mut Context<Self>) {
        let Ask { id, question, span } = ask;
        let asked = Asked { question, span };
        match self.desks.get(&id).map(|desk| &desk.forwarder) {
            Some(Staff::There(forwarder, _)) => {
                if let Err(unsent) = forwarder.try_send(asked) {
                    unsent.into_inner().question.refuse(Unserved::Busy);
                }
            }
            Some(Staff::Coming) => asked.question.refuse(Unserved::Busy),
            Some(Staff::Parked) => self.ask_parked(id, asked.question, ctx),
            None => asked.question.refuse(Unserved::Unknown),
        }
    }
}

impl PostOffice {
    /// A destination to which nobody delivers can still be removed, and nothing else.
    fn ask_parked(&mut self, id: DestinationId, question: Question, ctx: &mut Context<Self>) {
        let Question::Remove(reply) = question else {
            return question.refuse(Unserved::Busy);
        };
        let Some(desk) = self.desks.get(&id) else {
            return;
        };
        let remove = Change::RemoveDestination {
            customer: desk.customer.clone(),
            destination: id,
        };
        let batch = Batch {
            changes: vec![remove],
            ..Batch::default()
        };
        let receipt = self.parts.commits.commit(batch).into_actor(self);
        ctx.spawn(receipt.map(move |removed, office, _| {
            if removed.is_ok() {
                office.desks.remove(&id);
                office.panics.remove(&id);
            }
            // A caller who went away does not miss the answer.
            let _ = reply.send(removed.map_err(unserved)).is_ok();
        }));
    }
}

/// A customer is being removed: nothing is delivered for it any more, and nothing said of what was.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct ForgetCustomer(pub(super) CustomerId);

impl Handler<ForgetCustomer> for PostOffice {
    type Result = ResponseFuture<()>;

    fn handle(
        &mut self,
        ForgetCustomer(customer): ForgetCustomer,
        _: &mut Context<Self>,
    ) -> ResponseFuture<()> {
        let of_customer = |(_, desk): &(&DestinationId, &Desk)| desk.customer == customer;
        let desks = self.desks.iter().filter(of_customer);
        let there = desks.filter_map(|(_, desk)| match &desk.forwarder {
            Staff::There(forwarder, _) => Some(forwarder.clone()),
            Staff::Coming | Staff::Parked => None,
        });
        let there: Vec<Addr<Forwarder>> = there.collect();
        self.desks.retain(|_, desk| desk.customer != customer);
        Box::pin(async move {
            for forwarder in there {
                if forwarder.send(Forget).await.is_err() {
                    debug!("a forwarder was gone");
                }
            }
        })
    }
}

/// Why a forwarder ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Why {
    /// Nobody said why: it panics, or the arbiter ends.
    Unannounced,
    /// Its step was not saved, or the store did not answer.
    Unsaved,
    /// Its destination was removed.
    Removed,
    /// It panicked.
    Panicked,
}

/// A forwarder ended.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Ended {
    pub(crate) id: DestinationId,
    pub(crate) generation: u32,
    pub(crate) why: Why,
    pub(crate) retry_in: Duration,
}

impl Handler<Ended> for PostOffice {
    type Result = ();

    fn handle(&mut self, ended: Ended, ctx: &mut Context<Self>) {
        let Ended {
            id,
            generation,
            why,
            retry_in,
        } = ended;
        let is_here = self.desks.get(&id).is_some_and(
            |desk| matches!(desk.forwarder, Staff::There(_, there) if there == generation),
        );
        if !is_here {
            return;
        }
        match why {
            Why::Removed => {
                self.desks.remove(&id);
            }
            Why::Unannounced | Why::Unsaved => {
                warn!(destination = %id, "a destination is brought back from the store");
                self.restore_later(id, retry_in, ctx);
            }
            Why::Panicked => self.after_panic(id, retry_in, ctx),
        }
    }
}

impl PostOffice {
    fn after_panic(&mut self, id: DestinationId, retry_in: Duration, ctx: &mut Context<Self>) {
        let now = self.parts.clock.now();
        match self.panics.entry(id).or_default().note(now) {
            AfterPanic::Restore => {
                error!(destination = %id, "a forwarder panicked and is restored");
                self.restore_later(id, retry_in, ctx);
            }
            AfterPanic::Park => {
                error!(destination = %id, "a forwarder keeps panicking and is parked");
                if let Some(desk) = self.desks.get_mut(&id) {
                    desk.forwarder = Staff::Parked;
                }
                self.log_parked(id, ctx);
            }
        }
    }

    fn log_parked(&self, id: DestinationId, ctx: &mut Context<Self>) {
        let destination = self.parts.store.destination(id).into_actor(self);
        ctx.spawn(destination.map(|found, office, _| {
            if let Ok(Some(destination)) = found {
                let mut m = office.parts.clock.moment();
                let entry = Box::new(Entry::integration_parked(&mut m, &destination));
                let record = Record { entry, told: None };
                if office.logging.try_send(record).is_err() {
                    warn!("the logging actor is busy; an entry is lost");
                }
            }
        }));
    }
}

fn unserved(error: CommitError) -> Unserved {
    match error {
        CommitError::Full => Unserved::Busy,
        CommitError::Conflict => Unserved::Unknown,
        CommitError::Fenced | CommitError::Unavailable => Unserved::Failed,
    }
}
