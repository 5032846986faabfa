//! How does an SMS centre behave? A server of SMPP in the test that answers submissions as the test
//! says, and delivers messages and receipts.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use protocol::smpp::message::{Address, ShortMessage};
use protocol::smpp::pdu::{Pdu, SmppCommand};
use protocol::smpp::status::ESME_ROK;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::poll::{PATIENCE, until};

/// The name that binds.
pub(crate) const SYSTEM_ID: &str = "signalbox";

/// Its password.
pub(crate) const PASSWORD: &str = "secret08";

/// An SMS centre on a port of its own. It closes when this value is dropped.
pub(crate) struct Smsc {
    /// Its address, which stays the same after it was closed.
    pub(crate) address: SocketAddr,
    shared: Arc<SharedSmsc>,
    is_closed: Arc<AtomicBool>,
}

/// How a submission is answered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum SubmitReply {
    /// It is accepted under this id.
    Accept(String),
    /// It is refused with this `command_status`.
    Refuse(u32),
    /// A receipt comes first, and the acceptance under this id after it was answered.
    AcceptAfter(Box<ShortMessage>, String),
    /// Nothing.
    Silence,
    /// The connection is closed.
    Break,
}

/// Chooses the reply to each submission; they are numbered from 0.
type SubmitPlan = Box<dyn Fn(&ShortMessage, usize) -> SubmitReply + Send>;

struct SharedSmsc {
    tls: Option<Arc<ServerConfig>>,
    plan: Mutex<SubmitPlan>,
    submitted: Mutex<Vec<ShortMessage>>,
    others: Mutex<Vec<SmppCommand>>,
    /// The connection that is bound.
    session: Mutex<Option<SmscSession>>,
}

/// A bound connection.
#[derive(Clone)]
struct SmscSession {
    outgoing: Sender<Pdu>,
    stream: Arc<TcpStream>,
    last_sequence: Arc<Mutex<u32>>,
    /// The responses to what was delivered, as they come.
    responses: Arc<Mutex<Vec<(u32, u32)>>>,
}

impl Smsc {
    /// One that accepts every submission under its number as the id.
    pub(crate) fn new() -> Self {
        Self::replying(|_, number| SubmitReply::Accept(format!("id{number}")))
    }

    /// One that answers submissions as the plan says.
    pub(crate) fn replying(
        plan: impl Fn(&ShortMessage, usize) -> SubmitReply + Send + 'static,
    ) -> Self {
        Self::made(None, Box::new(plan))
    }

    /// One that accepts every submission, over TLS.
    pub(crate) fn secure(tls: ServerConfig) -> Self {
        let plan = |_: &ShortMessage, number| SubmitReply::Accept(format!("id{number}"));
        Self::made(Some(Arc::new(tls)), Box::new(plan))
    }

    fn made(tls: Option<Arc<ServerConfig>>, plan: SubmitPlan) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(SharedSmsc {
            tls,
            plan: Mutex::new(plan),
            submitted: Mutex::default(),
            others: Mutex::default(),
            session: Mutex::default(),
        });
        let mut it = Self {
            address,
            shared,
            is_closed: Arc::default(),
        };
        it.listen(listener);
        it
    }

    fn listen(&mut self, listener: TcpListener) {
        self.is_closed = Arc::default();
        let (shared, is_closed) = (Arc::clone(&self.shared), Arc::clone(&self.is_closed));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if is_closed.load(Ordering::Acquire) {
                    return;
                }
                let shared = Arc::clone(&shared);
                thread::spawn(move || serve(&shared, stream));
            }
        });
    }

    /// The URL of its setting.
    pub(crate) fn url(&self) -> String {
        match self.shared.tls {
            Some(_) => format!("smpps://localhost:{}", self.address.port()),
            None => format!("smpp://{}", self.address),
        }
    }

    /// Closes the port and the session.
    pub(crate) fn close(&mut self) {
        self.is_closed.store(true, Ordering::Release);
        // The listener notices at its next connection.
        TcpStream::connect(self.address).ok();
        self.break_session();
    }

    /// Opens the port again after it was closed.
    pub(crate) fn open_again(&mut self) {
        let listener = until("the port", || TcpListener::bind(self.address).ok());
        self.listen(listener);
    }

    /// Breaks the connection of the session.
    pub(crate) fn break_session(&self) {
        if let Some(session) = self.shared.session.lock().unwrap().take() {
            session.stream.shutdown(Shutdown::Both).ok();
        }
    }

    /// Changes the plan from now on.
    pub(crate) fn reply(
        &self,
        plan: impl Fn(&ShortMessage, usize) -> SubmitReply + Send + 'static,
    ) {
        *self.shared.plan.lock().unwrap() = Box::new(plan);
    }

    /// Waits for a bound session.
    pub(crate) fn bound(&self) {
        self.session();
    }

    /// Whether a session is bound.
    pub(crate) fn is_bound(&self) -> bool {
        self.shared.session.lock().unwrap().is_some()
    }

    /// What was submitted so far.
    pub(crate) fn submitted(&self) -> Vec<ShortMessage> {
        self.shared.submitted.lock().unwrap().clone()
    }

    /// Waits until so many were submitted, and returns them.
    pub(crate) fn submitted_once(&self, count: usize) -> Vec<ShortMessage> {
        until("submissions", || {
            let submitted = self.submitted();
            (submitted.len() >= count).then_some(submitted)
        })
    }

    /// Other requests and responses so far.
    pub(crate) fn others(&self) -> Vec<SmppCommand> {
        self.shared.others.lock().unwrap().clone()
    }

    /// Sends a request without waiting for its response, and returns its sequence number.
    pub(crate) fn send(&self, command: SmppCommand) -> u32 {
        self.session().send(command)
    }

    /// Delivers a message or a receipt, and returns the status of its response.
    pub(crate) fn deliver(&self, message: ShortMessage) -> u32 {
        let session = self.session();
        let sequence = session.send(SmppCommand::DeliverSm(Box::new(message)));
        until("the response to a delivery", || session.response(sequence))
    }

    /// The status of the response to a delivery, if it came.
    pub(crate) fn response(&self, sequence: u32) -> Option<u32> {
        self.session().response(sequence)
    }

    fn session(&self) -> SmscSession {
        until("a session", || self.shared.session.lock().unwrap().clone())
    }
}

impl Drop for Smsc {
    fn drop(&mut self) {
        self.close();
    }
}

impl SmscSession {
    fn send(&self, command: SmppCommand) -> u32 {
        let mut last = self.last_sequence.lock().unwrap();
        *last += 1;
        // The session may have ended.
        self.outgoing.send(Pdu::request(*last, command)).ok();
        *last
    }

    fn response(&self, sequence: u32) -> Option<u32> {
        let responses = self.responses.lock().unwrap();
        let mut all = responses.iter();
        all.find(|(of, _)| *of == sequence)
            .map(|(_, status)| *status)
    }
}

/// A message of a device.
pub(crate) fn message_of(msisdn: &str, text: &str) -> ShortMessage {
    ShortMessage {
        source: address(msisdn),
        dest: address("1234"),
        octets: text.as_bytes().into(),
        ..ShortMessage::default()
    }
}

/// A receipt of the text that is usual, about a message that was submitted.
pub(crate) fn receipt_of(submitted: &ShortMessage, id: &str, stat: &str) -> ShortMessage {
    let text = format!(
        "id:{id} sub:001 dlvrd:001 submit date:2611241200 done date:2611241201 stat:{stat} \
         err:000 text:"
    );
    ShortMessage {
        source: submitted.dest.clone(),
        dest: submitted.source.clone(),
        esm_class: 0x04,
        octets: text.as_bytes().into(),
        ..ShortMessage::default()
    }
}

fn address(text: &str) -> Address {
    Address {
        ton: 1,
        npi: 1,
        text: text.into(),
    }
}

trait Wire: Read + Write + Send {}

impl<W: Read + Write + Send> Wire for W {}

/// Serves a connection until it ends. Reading and writing take turns, because a connection of TLS
/// cannot be divided.
fn serve(shared: &SharedSmsc, stream: TcpStream) {
    const TURN: std::time::Duration = std::time::Duration::from_millis(2);
    stream.set_nodelay(true).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    let handle = Arc::new(stream.try_clone().unwrap());
    let mut wire: Box<dyn Wire> = match &shared.tls {
        None => Box::new(stream),
        Some(tls) => {
            let secured = ServerConnection::new(Arc::clone(tls)).unwrap();
            Box::new(StreamOwned::new(secured, stream))
        }
    };
    handle.set_read_timeout(Some(TURN)).unwrap();
    let (outgoing, waiting) = channel();
    let session = SmscSession {
        outgoing,
        stream: handle,
        last_sequence: Arc::default(),
        responses: Arc::default(),
    };
    let mut octets = Vec::new();
    loop {
        if write_waiting(&mut *wire, &waiting).is_err() {
            break;
        }
        let mut read = [0; 16_384];
        match wire.read(&mut read) {
            Ok(0) => break,
            Ok(count) => octets.extend_from_slice(&read[..count]),
            Err(error) if is_pause(&error) => {}
            Err(_) => break,
        }
        while let Some(pdu) = next(&mut octets) {
            answer(shared, &session, pdu);
        }
    }
    let mut bound = shared.session.lock().unwrap();
    if bound
        .as_ref()
        .is_some_and(|it| Arc::ptr_eq(&it.stream, &session.stream))
    {
        *bound = None;
    }
}

fn is_pause(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn write_waiting(wire: &mut dyn Wire, waiting: &Receiver<Pdu>) -> std::io::Result<()> {
    let octets: Vec<u8> = waiting
        .try_iter()
        .flat_map(|pdu| pdu.encode().unwrap())
        .collect();
    if octets.is_empty() {
        return Ok(());
    }
    wire.write_all(&octets)?;
    wire.flush()
}

fn next(octets: &mut Vec<u8>) -> Option<Pdu> {
    let length = octets.first_chunk::<4>()?;
    let end = 4 + Pdu::rest_of(*length).unwrap();
    let pdu = Pdu::decode(octets.get(4..end)?).unwrap();
    octets.drain(..end);
    Some(pdu)
}

fn answer(shared: &SharedSmsc, session: &SmscSession, pdu: Pdu) {
    let Pdu {
        sequence,
        status,
        command,
    } = pdu;
    let respond = |status, command| {
        let response = Pdu {
            sequence,
            status,
            command,
        };
        // The test may be over.
        session.outgoing.send(response).ok();
    };
    let accept = |id: &str| respond(ESME_ROK, SmppCommand::SubmitSmResp(id.into()));
    if let SmppCommand::BindTransceiver(credentials) = command {
        let is_known = (&*credentials.system_id, &*credentials.password) == (SYSTEM_ID, PASSWORD);
        // ESME_RINVPASWD
        let status = if is_known { ESME_ROK } else { 0x0e };
        respond(status, SmppCommand::BindTransceiverResp);
        if is_known {
            *shared.session.lock().unwrap() = Some(session.clone());
        }
    } else if let SmppCommand::SubmitSm(message) = command {
        let number = {
            let mut submitted = shared.submitted.lock().unwrap();
            submitted.push((*message).clone());
            submitted.len() - 1
        };
        let reply = (shared.plan.lock().unwrap())(&message, number);
        match reply {
            SubmitReply::Accept(id) => accept(&id),
            SubmitReply::Refuse(status) => {
                respond(status, SmppCommand::SubmitSmResp("".into()));
            }
            SubmitReply::AcceptAfter(receipt, id) => {
                session.send(SmppCommand::DeliverSm(receipt));
                accept(&id);
            }
            SubmitReply::Silence => {}
            SubmitReply::Break => {
                session.stream.shutdown(Shutdown::Both).ok();
            }
        }
    } else if command == SmppCommand::DeliverSmResp {
        session.responses.lock().unwrap().push((sequence, status));
    } else {
        if command == SmppCommand::EnquireLink {
            respond(ESME_ROK, SmppCommand::EnquireLinkResp);
        } else if let SmppCommand::CancelSm(_) = command {
            respond(ESME_ROK, SmppCommand::CancelSmResp);
        } else if command == SmppCommand::Unbind {
            respond(ESME_ROK, SmppCommand::UnbindResp);
        }
        shared.others.lock().unwrap().push(command);
    }
}
