//! The shell of the link to one broker: connects, reads, writes and waits as
//! [`engine::delivery::mqtt::link`] decides.
//!
//! The link is a task of its own beside the actor of its destination, and ends with its handle.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use engine::delivery::mqtt::link::{
    BrokerCommand, MqttLink, MqttLinkEffect, MqttLinkRules, MqttLinkStatus, Publication, Unopened,
};
use engine::ids::{CustomerId, DestinationId};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf, copy, sink, split};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tracing::debug;

use crate::broker::{BrokerAddress, BrokerConnector, BrokerStream, of_io};
use crate::clock::Clock;
use crate::delivery::DeliveryParts;
use crate::delivery::connections::{BrokerConnections, ReportedStatus};
use crate::delivery::messages::CommandCall;
use crate::http::UnreachableReason;
use crate::lease;

/// Publications that wait for the task: as many as deliveries are in flight at most.
const PUBLICATIONS_MAX: usize = 1_024;

/// The bytes that are read at once.
const READ_BYTES: usize = 16_384;

/// How long the last bytes of a connection may take.
const CLOSE_FOR: Duration = Duration::from_secs(1);

/// Why a publication was not made: the link was closed.
const CLOSED: &str = "the integration was changed during the delivery";

/// What becomes of a publication.
type Outcome = Result<(), Box<str>>;

/// A publication, and what takes its outcome.
type Publishing = (Publication, oneshot::Sender<Outcome>);

/// What the link waits for.
type Waiting<T> = Pin<Box<dyn Future<Output = T>>>;

type Effects = Vec<MqttLinkEffect<oneshot::Sender<Outcome>>>;

/// The link to a broker.
pub(super) struct BrokerLink {
    publications: RefCell<Option<mpsc::Sender<Publishing>>>,
    farewell: Rc<Cell<Farewell>>,
    id: DestinationId,
    connections: BrokerConnections,
    status: ReportedStatus,
}

/// What becomes of the session at the broker when the link ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Farewell {
    /// A later link may continue it.
    Close,
    /// The broker is to forget it.
    Retire,
}

impl BrokerLink {
    /// Starts a link.
    pub(super) fn start(
        parts: &DeliveryParts,
        (id, customer): (DestinationId, CustomerId),
        rules: MqttLinkRules,
        address: BrokerAddress,
    ) -> Self {
        let (publications, received) = mpsc::channel(PUBLICATIONS_MAX);
        let farewell = Rc::new(Cell::new(Farewell::Close));
        let status = parts.connections.enter(id);
        let task = LinkTask {
            clock: parts.clock.clone(),
            connector: parts.brokers.clone(),
            commands: parts.commands.clone(),
            customer,
            address: Arc::new(address),
            farewell: Rc::clone(&farewell),
            status: status.clone(),
            reported: MqttLinkStatus::default(),
            machine: MqttLink::new(rules),
            opening: None,
            performing: None,
            connection: None,
        };
        tokio::task::spawn_local(task.run(received));
        Self {
            publications: RefCell::new(Some(publications)),
            farewell,
            id,
            connections: parts.connections.clone(),
            status,
        }
    }

    /// Publishes a message; the error says why the broker does not have it, as far as is known.
    pub(super) async fn publish(&self, publication: Publication) -> Outcome {
        let publications = self.publications.borrow().clone();
        let Some(publications) = publications else {
            return Err(CLOSED.into());
        };
        let (reply, outcome) = oneshot::channel();
        let sent = publications.send((publication, reply)).await;
        drop(publications);
        // A panic of the task is a panic of its destination.
        assert!(sent.is_ok(), "the link runs as long as its handle");
        outcome.await.expect("the link settles every message")
    }

    /// Ends the link, also if deliveries still hold it.
    pub(super) fn close(&self) {
        self.publications.borrow_mut().take();
    }

    /// Ends the link, and the session at the broker.
    pub(super) fn retire(&self) {
        self.farewell.set(Farewell::Retire);
        self.close();
    }
}

impl Drop for BrokerLink {
    fn drop(&mut self) {
        self.connections.leave(self.id, &self.status);
    }
}

/// The link as it runs.
struct LinkTask {
    clock: Clock,
    connector: BrokerConnector,
    commands: mpsc::Sender<CommandCall>,
    customer: CustomerId,
    address: Arc<BrokerAddress>,
    farewell: Rc<Cell<Farewell>>,
    status: ReportedStatus,
    /// The status that was reported last.
    reported: MqttLinkStatus,
    machine: MqttLink<oneshot::Sender<Outcome>>,
    opening: Option<Waiting<Result<BrokerStream, UnreachableReason>>>,
    performing: Option<Waiting<Option<Vec<u8>>>>,
    connection: Option<OpenConnection>,
}

struct OpenConnection {
    reader: ReadHalf<BrokerStream>,
    writer: WriteHalf<BrokerStream>,
    /// What is not written yet.
    unwritten: Vec<u8>,
    flush: FlushState,
}

/// Whether what was written may lie in a buffer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum FlushState {
    Clean,
    Dirty,
}

/// What happens next.
enum Happened {
    Publish(Publication, oneshot::Sender<Outcome>),
    Dropped,
    Opened(Result<BrokerStream, UnreachableReason>),
    Performed(Option<Vec<u8>>),
    Read(usize),
    Broken(Option<UnreachableReason>),
    Written,
    Timeout,
}

impl LinkTask {
    async fn run(mut self, publications: mpsc::Receiver<Publishing>) {
        let mut publications = Some(publications);
        let mut buffer = vec![0; READ_BYTES];
        let mut out = Vec::new();
        self.machine
            .handle_timeout(&mut self.clock.moment(), &mut out);
        self.perform(out);
        loop {
            let happened = self.next(&mut publications, &mut buffer).await;
            let mut out = Vec::new();
            let m = &mut self.clock.moment();
            let it = &mut self.machine;
            match happened {
                Happened::Publish(publication, reply) => {
                    it.publish(m, publication, reply, &mut out);
                }
                Happened::Dropped => {
                    publications = None;
                    match self.farewell.get() {
                        Farewell::Close => it.close(m, &mut out),
                        Farewell::Retire => it.retire(m, &mut out),
                    }
                }
                Happened::Opened(Ok(stream)) => {
                    self.connection = Some(OpenConnection::of(stream));
                    it.handle_opened(m, &mut out);
                }
                Happened::Opened(Err(why)) => {
                    debug!(%why, "no connection to a broker");
                    it.handle_unopened(m, (&why.to_string(), unopened(why)), &mut out);
                }
                Happened::Performed(Some(answer)) => it.handle_answer(m, answer, &mut out),
                // The service stops; the broker sends the command again.
                Happened::Performed(None) => {}
                Happened::Read(bytes) => {
                    it.handle_bytes(m, buffer.get(..bytes).unwrap_or_default(), &mut out);
                }
                Happened::Broken(None) => it.handle_closed(m, &mut out),
                Happened::Broken(Some(why)) => {
                    it.handle_unopened(m, (&why.to_string(), unopened(why)), &mut out);
                }
                Happened::Written => {}
                Happened::Timeout => it.handle_timeout(m, &mut out),
            }
            self.perform(out);
            self.report();
            if publications.is_none() && self.machine.is_over() {
                return;
            }
        }
    }

    fn report(&mut self) {
        let status = self.machine.status();
        if status != self.reported {
            self.status.report(status.clone());
            self.reported = status;
        }
    }

    async fn next(
        &mut self,
        publications: &mut Option<mpsc::Receiver<Publishing>>,
        buffer: &mut [u8],
    ) -> Happened {
        let due = self.machine.next_timeout();
        let wait = due.map_or(Duration::MAX, |at| self.clock.until(at));
        let happened = tokio::select! {
            publication = received(publications) => match publication {
                Some((publication, reply)) => Happened::Publish(publication, reply),
                None => Happened::Dropped,
            },
            opened = ready(&mut self.opening) => Happened::Opened(opened),
            answer = ready(&mut self.performing) => Happened::Performed(answer),
            moved = moved(&mut self.connection, buffer) => moved,
            () = sleep(wait), if due.is_some() => Happened::Timeout,
        };
        match happened {
            Happened::Opened(_) => self.opening = None,
            Happened::Performed(_) => self.performing = None,
            Happened::Publish(..)
            | Happened::Dropped
            | Happened::Read(_)
            | Happened::Broken(_)
            | Happened::Written
            | Happened::Timeout => {}
        }
        happened
    }

    fn perform(&mut self, out: Effects) {
        for effect in out {
            match effect {
                MqttLinkEffect::Open => {
                    let (connector, address) = (self.connector.clone(), Arc::clone(&self.address));
                    let opening = async move { connector.connect(&address).await };
                    self.opening = Some(Box::pin(opening));
                }
                MqttLinkEffect::Write(bytes) => {
                    if let Some(connection) = &mut self.connection {
                        connection.unwritten.extend_from_slice(&bytes);
                    }
                }
                MqttLinkEffect::Close => {
                    if let Some(connection) = self.connection.take() {
                        tokio::task::spawn_local(connection.close());
                    }
                }
                // A delivery that is gone needs no outcome.
                MqttLinkEffect::Settle(reply, outcome) => drop(reply.send(outcome)),
                MqttLinkEffect::Perform(command) => {
                    self.performing = Some(self.performed(*command))
                }
            }
        }
    }

    fn performed(&self, command: BrokerCommand) -> Waiting<Option<Vec<u8>>> {
        let (commands, customer) = (self.commands.clone(), self.customer.clone());
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let call = CommandCall {
                customer,
                command,
                reply,
            };
            commands.send(call).await.ok()?;
            answer.await.ok()
        })
    }
}

impl OpenConnection {
    fn of(stream: BrokerStream) -> Self {
        let (reader, writer) = split(stream);
        Self {
            reader,
            writer,
            unwritten: Vec::new(),
            flush: FlushState::Clean,
        }
    }

    /// Writes what is left, such as a DISCONNECT, and closes the connection. What the broker still
    /// sends is read: otherwise it would be reset, and the last bytes might be lost.
    async fn close(self) {
        let Self {
            mut reader,
            mut writer,
            unwritten,
            ..
        } = self;
        let closing = async {
            writer.write_all(&unwritten).await?;
            writer.shutdown().await?;
            copy(&mut reader, &mut sink()).await
        };
        let _ = timeout(CLOSE_FOR, closing).await;
    }
}

/// The next publication; nothing ever if their channel is closed.
async fn received(publications: &mut Option<mpsc::Receiver<Publishing>>) -> Option<Publishing> {
    match publications {
        Some(publications) => publications.recv().await,
        None => std::future::pending().await,
    }
}

/// The output of a future, if there is one.
async fn ready<T>(future: &mut Option<Waiting<T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// Reads, or writes what is to be written.
async fn moved(connection: &mut Option<OpenConnection>, buffer: &mut [u8]) -> Happened {
    let Some(connection) = connection else {
        return std::future::pending().await;
    };
    let OpenConnection {
        reader,
        writer,
        unwritten,
        flush,
    } = connection;
    if !lease::is_held() {
        return Happened::Broken(None);
    }
    let has_output = !unwritten.is_empty() || *flush == FlushState::Dirty;
    tokio::select! {
        read = reader.read(buffer) => match read {
            Ok(0) => Happened::Broken(None),
            Ok(bytes) => Happened::Read(bytes),
            Err(error) => broken(&error),
        },
        written = write_some(writer, unwritten, flush), if has_output => match written {
            Ok(()) => Happened::Written,
            Err(error) => broken(&error),
        },
    }
}

/// Writes some of the bytes, or flushes what was written. Nothing is lost if it is not awaited to
/// its end.
async fn write_some(
    writer: &mut WriteHalf<BrokerStream>,
    unwritten: &mut Vec<u8>,
    flush: &mut FlushState,
) -> std::io::Result<()> {
    if unwritten.is_empty() {
        writer.flush().await?;
        *flush = FlushState::Clean;
        return Ok(());
    }
    let bytes = writer.write(unwritten).await?;
    *flush = FlushState::Dirty;
    unwritten.drain(..bytes);
    match bytes {
        0 => Err(std::io::ErrorKind::WriteZero.into()),
        _ => Ok(()),
    }
}

fn broken(error: &std::io::Error) -> Happened {
    Happened::Broken(match of_io(error) {
        // It was closed in some way.
        UnreachableReason::NoAnswer => None,
        why @ (UnreachableReason::Forbidden
        | UnreachableReason::NotHttps
        | UnreachableReason::NotSendable
        | UnreachableReason::NameUnknown
        | UnreachableReason::NoConnection
        | UnreachableReason::CertificateExpired
        | UnreachableReason::CertificateOfAnother
        | UnreachableReason::CertificateUntrusted
        | UnreachableReason::NoTls
        | UnreachableReason::Timeout) => Some(why),
    })
}

/// Whether another connection may succeed soon.
fn unopened(why: UnreachableReason) -> Unopened {
    match why {
        UnreachableReason::NameUnknown
        | UnreachableReason::NoConnection
        | UnreachableReason::Timeout
        | UnreachableReason::NoAnswer => Unopened::Away,
        UnreachableReason::Forbidden
        | UnreachableReason::NotHttps
        | UnreachableReason::NotSendable
        | UnreachableReason::CertificateExpired
        | UnreachableReason::CertificateOfAnother
        | UnreachableReason::CertificateUntrusted
        | UnreachableReason::NoTls => Unopened::Refused,
    }
}
