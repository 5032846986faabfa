//! The link to an SMS centre: the shell of `engine::smpp::link::SmppLink`.
//!
//! One actor has the connection. Messages, receipts and SMS go through `SmsNetwork`, as those of
//! the API do. A link that panicked is started again; what was under way then counts as lost with
//! its session.

mod connection;
mod meters;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix::{
    Actor, ActorFutureExt as _, AsyncContext as _, Context, Handler, MailboxError, Message,
    Recipient, ResponseFuture, WrapFuture as _,
};
use engine::limits::STORE_RETRY_MS;
use engine::moment::Moment;
use engine::smpp::effect::{ConnectionId, HandedIn, LinkEffect, LinkEvent, Sender, SmsTask};
use engine::smpp::link::{LinkRules, SmppLink};
use engine::smpp_pdu::pdu::Pdu;
use engine::sms::Sms;
use rustls::ClientConfig;
use store::CommitError;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::{debug, error, info, warn};

use crate::clock::Clock;
use crate::deadline_timer::DeadlineTimer;
use crate::http::HttpError;
use crate::http::trust;
use crate::sms::network::{NetworkError, SmsNetwork};

pub use connection::SmppServer;
use connection::{Outgoing, connect};
use meters::LinkMeters;

/// The pause before a change that the store did not accept is tried again.
const STORE_RETRY: Duration = Duration::from_millis(STORE_RETRY_MS.cast_unsigned());

/// How long a stop may take: longer than the link waits for responses, and well below the ten
/// seconds that operators are promised.
const STOP_MAX: Duration = Duration::from_secs(5);

/// The pause before a link that panicked is started again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// How a link is configured.
pub struct LinkOptions {
    /// The SMS centres, in the order of preference.
    pub servers: Vec<SmppServer>,
    /// The rules of the sessions.
    pub rules: LinkRules,
    /// CA certificates (PEM) that are trusted in addition to those of the system.
    pub authorities: Option<Vec<u8>>,
}

/// The running link; clones share it.
#[derive(Clone)]
pub struct Smpp {
    is_bound: Arc<AtomicBool>,
    stop: Recipient<StopLink>,
}

impl Smpp {
    /// Starts the link; to be called in a running system.
    pub fn start(
        clock: Clock,
        network: SmsNetwork,
        options: LinkOptions,
    ) -> Result<Self, HttpError> {
        let tls = Arc::new(trust::client_config(options.authorities.as_deref())?);
        let is_bound = Arc::new(AtomicBool::new(false));
        let parts = Arc::new(LinkParts {
            clock,
            network,
            servers: options.servers,
            rules: options.rules,
            tls,
            is_bound: Arc::clone(&is_bound),
        });
        let supervisor = LinkSupervisor { parts, link: None };
        Ok(Self {
            is_bound,
            stop: supervisor.start().recipient(),
        })
    }

    /// Whether SMS can be sent and received.
    pub fn is_bound(&self) -> bool {
        self.is_bound.load(Ordering::Relaxed)
    }

    /// Unbinds; returns once that is done.
    pub fn quiesce(&self) -> impl Future<Output = Result<(), MailboxError>> + use<> {
        self.stop.send(StopLink)
    }
}

/// What a link is started from.
struct LinkParts {
    clock: Clock,
    network: SmsNetwork,
    servers: Vec<SmppServer>,
    rules: LinkRules,
    tls: Arc<ClientConfig>,
    is_bound: Arc<AtomicBool>,
}

/// Starts the link, and again if it panicked.
struct LinkSupervisor {
    parts: Arc<LinkParts>,
    link: Option<actix::Addr<LinkActor>>,
}

impl LinkSupervisor {
    fn spawn(&mut self, ctx: &mut Context<Self>) {
        let supervisor = ctx.address().recipient();
        self.link = Some(LinkActor::new(Arc::clone(&self.parts), supervisor).start());
    }
}

impl Actor for LinkSupervisor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.spawn(ctx);
    }
}

impl Handler<LinkPanicked> for LinkSupervisor {
    type Result = ();

    fn handle(&mut self, _: LinkPanicked, ctx: &mut Context<Self>) {
        error!("the link to the SMS centre panicked and is started again");
        ctx.run_later(RESTART_PAUSE, Self::spawn);
    }
}

impl Handler<StopLink> for LinkSupervisor {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, stop: StopLink, _: &mut Context<Self>) -> ResponseFuture<()> {
        let stopped = self.link.as_ref().map(|link| link.send(stop));
        Box::pin(async move {
            let Some(stopped) = stopped else { return };
            match timeout(STOP_MAX, stopped).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => warn!(%error, "the link to the SMS centre has stopped"),
                Err(_elapsed) => warn!("the store does not take what the SMS centre answered"),
            }
        })
    }
}

/// The actor of the link panicked.
#[derive(Message)]
#[rtype(result = "()")]
struct LinkPanicked;

/// Unbinds, and answers once that is done.
#[derive(Message)]
#[rtype(result = "()")]
struct StopLink;

/// What the reader of a connection tells the link: a PDU, or that the connection has ended.
#[derive(Message)]
#[rtype(result = "()")]
struct Read(ConnectionId, Option<Pdu>);

/// The actor of the link.
struct LinkActor {
    parts: Arc<LinkParts>,
    supervisor: Recipient<LinkPanicked>,
    machine: SmppLink,
    outgoing: Option<Outgoing>,
    timer: DeadlineTimer,
    /// Changes of the store under way.
    tasks: usize,
    /// Who waits for the end.
    stopping: Vec<oneshot::Sender<()>>,
    meters: LinkMeters,
}

impl LinkActor {
    fn new(parts: Arc<LinkParts>, supervisor: Recipient<LinkPanicked>) -> Self {
        Self {
            machine: SmppLink::new(parts.rules.clone()),
            parts,
            supervisor,
            outgoing: None,
            timer: DeadlineTimer::default(),
            tasks: 0,
            stopping: Vec::new(),
            meters: LinkMeters::new(),
        }
    }

    /// Has the machine take a step, and performs its effects.
    fn step(
        &mut self,
        ctx: &mut Context<Self>,
        input: impl FnOnce(&mut SmppLink, &mut Moment, &mut Vec<LinkEffect>),
    ) {
        let mut out = Vec::new();
        input(&mut self.machine, &mut self.parts.clock.moment(), &mut out);
        for effect in out {
            match effect {
                LinkEffect::Connect(id, place) => self.connect(id, place, ctx),
                LinkEffect::Send(pdu) => self.send(&pdu),
                LinkEffect::Close => self.outgoing = None,
                LinkEffect::Store(task) => self.store(task, ctx),
                LinkEffect::Report(event) => self.report(event),
            }
        }
        let is_bound = self.machine.is_bound();
        self.parts.is_bound.store(is_bound, Ordering::Relaxed);
        self.meters.show(is_bound, self.machine.unanswered());
        self.arm(ctx);
        if self.machine.is_stopped() && self.tasks == 0 {
            for waiting in self.stopping.drain(..) {
                // The service may have given up waiting.
                let _gone = waiting.send(());
            }
        }
    }

    fn connect(&mut self, id: ConnectionId, place: usize, ctx: &mut Context<Self>) {
        let parts = Arc::clone(&self.parts);
        let within = parts.response_timeout();
        let connected = async move {
            match parts.servers.get(place) {
                Some(server) => connect(server, Arc::clone(&parts.tls), within).await,
                None => Err(std::io::ErrorKind::NotFound.into()),
            }
        };
        let connected = connected.into_actor(self);
        ctx.spawn(connected.map(move |connected, link, ctx| match connected {
            Ok(stream) => {
                let address = ctx.address();
                link.outgoing = Some(Outgoing::open(stream, within, |mut incoming| async move {
                    loop {
                        let pdu = incoming.next().await;
                        let has_ended = pdu.is_none();
                        // The next PDU is read once this one is handled.
                        if address.send(Read(id, pdu)).await.is_err() || has_ended {
                            return;
                        }
                    }
                }));
                link.step(ctx, |machine, m, out| machine.connected(m, id, out));
            }
            Err(error) => {
                debug!(%error, "the SMS centre cannot be reached");
                link.step(ctx, |machine, m, out| machine.closed(m, id, out));
            }
        }));
    }

    fn send(&mut self, pdu: &Pdu) {
        match pdu.encode() {
            Ok(octets) => {
                let outgoing = self.outgoing.as_ref();
                if !outgoing.is_none_or(|outgoing| outgoing.send(octets)) {
                    warn!("the SMS centre reads too slowly");
                    self.outgoing = None;
                }
            }
            Err(error) => error!(%error, "a PDU cannot be written"),
        }
    }

    /// Changes the store, and reports the outcome to the machine.
    fn store(&mut self, task: SmsTask, ctx: &mut Context<Self>) {
        self.tasks += 1;
        let network = self.parts.network.clone();
        let done = async move { perform(&network, task).await };
        let done = done.into_actor(self);
        ctx.spawn(done.map(|done, link, ctx| {
            link.tasks -= 1;
            link.step(ctx, |machine, m, out| match done {
                Done::Taken(taken) => machine.taken(m, taken, out),
                Done::HandedIn(sender, outcome) => machine.handed_in(m, &sender, outcome, out),
                Done::PartStored(id, is_open) => machine.part_stored(m, id, is_open, out),
                Done::Settled => {}
            });
        }));
    }

    fn report(&self, event: LinkEvent) {
        self.meters.count(event);
        let server = |place: usize| self.parts.servers.get(place).map(ToString::to_string);
        match event {
            LinkEvent::Bound(place) => {
                info!(server = server(place), "bound to the SMS centre");
            }
            LinkEvent::NotBound(place, status) => {
                warn!(
                    server = server(place),
                    status, "not bound to the SMS centre"
                );
            }
            LinkEvent::Lost(reason) => {
                warn!(?reason, "the session with the SMS centre ended");
            }
            LinkEvent::Submitted(outcome) => debug!(?outcome, "a part of an SMS was submitted"),
            LinkEvent::Answered(kind, outcome) => {
                debug!(?kind, ?outcome, "the SMS centre was answered");
            }
        }
    }

    /// Arms the timer for the machine's deadline.
    fn arm(&mut self, ctx: &mut Context<Self>) {
        let Some(at) = self.machine.next_timeout() else {
            return;
        };
        let (clock, timer) = (&self.parts.clock, &mut self.timer);
        timer.arm(ctx, clock, at, |link, ctx| {
            link.timer.note_fired();
            link.step(ctx, SmppLink::handle_timeout);
        });
    }
}

impl LinkParts {
    fn response_timeout(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.rules.response_timeout_ms).unwrap_or(0))
    }
}

impl Actor for LinkActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.arm(ctx);
    }
}

impl Drop for LinkActor {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.parts.is_bound.store(false, Ordering::Relaxed);
            self.supervisor.do_send(LinkPanicked);
        }
    }
}

impl Handler<Read> for LinkActor {
    type Result = ();

    fn handle(&mut self, Read(id, pdu): Read, ctx: &mut Context<Self>) {
        self.step(ctx, |machine, m, out| match pdu {
            Some(pdu) => machine.received(m, id, pdu, out),
            None => machine.closed(m, id, out),
        });
    }
}

impl Handler<StopLink> for LinkActor {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: StopLink, ctx: &mut Context<Self>) -> ResponseFuture<()> {
        let (sender, stopped) = oneshot::channel();
        self.stopping.push(sender);
        self.step(ctx, SmppLink::stop);
        Box::pin(async {
            // The sender is dropped if the link panics: it has stopped, too.
            let _stopped = stopped.await;
        })
    }
}

/// What became of a task.
enum Done {
    Taken(Vec<(engine::sms::NetworkTask, Sms)>),
    HandedIn(Sender, HandedIn),
    PartStored(engine::ids::SmsId, bool),
    Settled,
}

/// Reads or changes the store. What the SMS centre said is not said again: it is tried until the
/// store accepts it.
async fn perform(network: &SmsNetwork, task: SmsTask) -> Done {
    match task {
        SmsTask::Take(max) => Done::Taken(network.poll(max).await.unwrap_or_else(|error| {
            debug!(%error, "no SMS were taken");
            Vec::new()
        })),
        SmsTask::Receive(sender, new) => {
            let stored = match &sender {
                Some(device) => network.receive(device, &new, Ok::<_, NetworkError>).await,
                None => Err(NetworkError::UnknownDevice),
            };
            Done::HandedIn(sender, handed_in(stored.map(drop)))
        }
        SmsTask::Apply(sender, receipt) => {
            let applied = network.apply(sender.as_ref(), &receipt).await;
            Done::HandedIn(sender, handed_in(applied))
        }
        SmsTask::AcceptPart(id, number, message_id) => {
            let stored = insisting(async || network.accept_part(id, number, &message_id).await);
            Done::PartStored(id, stored.await.unwrap_or(false))
        }
        SmsTask::Refuse(id, reason) => {
            insisting(async || network.refuse(id, &reason).await).await;
            Done::Settled
        }
        SmsTask::Release(id) => {
            insisting(async || network.release(id).await).await;
            Done::Settled
        }
    }
}

fn handed_in(stored: Result<(), NetworkError>) -> HandedIn {
    match stored {
        Ok(()) => HandedIn::Stored,
        Err(NetworkError::UnknownDevice | NetworkError::UnknownSms) => HandedIn::Unknown,
        Err(NetworkError::Store(error)) => {
            debug!(%error, "the store does not accept what the SMS centre delivered");
            HandedIn::Refused
        }
    }
}

/// Tries a change until the store accepts it; none if there is no such SMS any more.
async fn insisting<T>(change: impl AsyncFn() -> Result<T, NetworkError>) -> Option<T> {
    loop {
        match change().await {
            Ok(done) => return Some(done),
            Err(NetworkError::UnknownDevice | NetworkError::UnknownSms) => return None,
            Err(NetworkError::Store(CommitError::Conflict)) => {}
            Err(NetworkError::Store(
                error @ (CommitError::Fenced | CommitError::Full | CommitError::Unavailable),
            )) => {
                warn!(%error, "what the SMS centre answered waits for the store");
                tokio::time::sleep(STORE_RETRY).await;
            }
        }
    }
}
