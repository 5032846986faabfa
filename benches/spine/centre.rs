//! Which SMS centre carries the SMS? One in the process of the bench that accepts every submission
//! and delivers as many messages at a time as its window has; and the yardstick: a session on the
//! same codec that stores nothing.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use protocol::smpp::message::{Address, ShortMessage};
use protocol::smpp::pdu::{Credentials, LENGTH_OCTETS, Pdu, SmppCommand};
use protocol::smpp::status::ESME_ROK;

/// Requests without a response, in either direction: the default of the service.
pub(crate) const WINDOW: usize = 32;

/// The text of every message.
pub(crate) const TEXT: &str = "open the gate";

/// An SMS centre that waits for a session.
pub(crate) struct Centre {
    listener: TcpListener,
    /// Its address.
    pub(crate) address: SocketAddr,
}

/// A session, seen from either side.
pub(crate) struct Session {
    stream: TcpStream,
    unread: Vec<u8>,
    last_sequence: u32,
}

impl Centre {
    /// An SMS centre on a free port.
    pub(crate) fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("a listener has an address");
        Self { listener, address }
    }

    /// Accepts a session and its bind.
    pub(crate) fn bound(&self) -> Session {
        let (stream, _) = self.listener.accept().expect("somebody connects");
        let mut session = Session::over(stream);
        let bind = session.receive().remove(0);
        session.send(&[Pdu {
            command: SmppCommand::BindTransceiverResp,
            ..bind
        }]);
        session
    }
}

impl Session {
    fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("a socket need not wait");
        Self {
            stream,
            unread: Vec::new(),
            last_sequence: 0,
        }
    }

    /// A session of nobody else than the codec.
    pub(crate) fn bare(to: SocketAddr) -> Self {
        let mut session = Self::over(TcpStream::connect(to).expect("the SMS centre listens"));
        let bind = SmppCommand::BindTransceiver(Credentials {
            system_id: "bench".into(),
            password: "bench".into(),
            system_type: "".into(),
        });
        let bind = session.request(bind);
        session.send(&[bind]);
        session.receive();
        session
    }

    /// Has messages of these numbers delivered for this long; returns how many were acknowledged
    /// per second.
    pub(crate) fn deliver(&mut self, numbers: &[String], time: Duration) -> f64 {
        let message = |number: usize| {
            let source = numbers[number % numbers.len()].clone();
            SmppCommand::DeliverSm(Box::new(message(&source, "1234")))
        };
        self.exchange(message, |begun_at, _| begun_at.elapsed() < time)
    }

    /// Submits so many messages; returns how many were accepted per second.
    pub(crate) fn submit(&mut self, count: usize) -> f64 {
        let submitted = message("1234", "882285100000000");
        let message = |_: usize| SmppCommand::SubmitSm(Box::new(submitted.clone()));
        self.exchange(message, |_, begun| begun < count)
    }

    /// Accepts so many submissions; returns how many came per second.
    pub(crate) fn accept(&mut self, count: usize) -> f64 {
        let (mut accepted, mut begun_at) = (0, Instant::now());
        while accepted < count {
            let mut responses = Vec::new();
            for pdu in self.receive() {
                if let SmppCommand::SubmitSm(_) = pdu.command {
                    if accepted == 0 {
                        begun_at = Instant::now();
                    }
                    accepted += 1;
                    responses.push(Pdu {
                        command: SmppCommand::SubmitSmResp(format!("{accepted:08}").into()),
                        ..pdu
                    });
                } else {
                    responses.extend(response_to(pdu));
                }
            }
            self.send(&responses);
        }
        accepted as f64 / begun_at.elapsed().as_secs_f64()
    }

    /// Responds to what comes until the other side closes the connection.
    pub(crate) fn respond(mut self) {
        loop {
            let received = self.receive();
            if received.is_empty() {
                return;
            }
            let responses: Vec<Pdu> = received.into_iter().filter_map(response_to).collect();
            self.send(&responses);
        }
    }

    /// Has as many requests open as the window has; returns the responses per second.
    fn exchange(
        &mut self,
        message: impl Fn(usize) -> SmppCommand,
        goes_on: impl Fn(Instant, usize) -> bool,
    ) -> f64 {
        let (begun_at, mut begun, mut done) = (Instant::now(), 0_usize, 0_usize);
        loop {
            let mut requests = Vec::new();
            while begun - done < WINDOW && goes_on(begun_at, begun) {
                requests.push(self.request(message(begun)));
                begun += 1;
            }
            if begun == done {
                return done as f64 / begun_at.elapsed().as_secs_f64();
            }
            self.send(&requests);
            let mut responses = Vec::new();
            for pdu in self.receive() {
                if let SmppCommand::DeliverSmResp | SmppCommand::SubmitSmResp(_) = pdu.command {
                    assert_eq!(pdu.status, ESME_ROK, "every message is accepted");
                    done += 1;
                } else {
                    responses.extend(response_to(pdu));
                }
            }
            self.send(&responses);
        }
    }

    fn request(&mut self, command: SmppCommand) -> Pdu {
        self.last_sequence += 1;
        Pdu::request(self.last_sequence, command)
    }

    fn send(&mut self, pdus: &[Pdu]) {
        let encode = |pdu: &Pdu| pdu.encode().expect("it can be encoded");
        let octets: Vec<u8> = pdus.iter().flat_map(encode).collect();
        self.stream
            .write_all(&octets)
            .expect("the other side reads");
    }

    /// The next PDUs; none if the connection is closed.
    fn receive(&mut self) -> Vec<Pdu> {
        let mut pdus = Vec::new();
        while pdus.is_empty() {
            let mut octets = [0; 65_536];
            let count = self.stream.read(&mut octets).unwrap_or_default();
            if count == 0 {
                break;
            }
            self.unread.extend_from_slice(&octets[..count]);
            while let Some(pdu) = self.next() {
                pdus.push(pdu);
            }
        }
        pdus
    }

    fn next(&mut self) -> Option<Pdu> {
        let length = self.unread.first_chunk::<LENGTH_OCTETS>()?;
        let rest = Pdu::rest_of(*length).expect("its length is one of a PDU");
        let end = LENGTH_OCTETS + rest;
        let pdu = Pdu::decode(self.unread.get(LENGTH_OCTETS..end)?).expect("it is a PDU");
        self.unread.drain(..end);
        Some(pdu)
    }
}

fn message(source: &str, dest: &str) -> ShortMessage {
    let address = |text: &str| Address {
        ton: 1,
        npi: 1,
        text: text.into(),
    };
    ShortMessage {
        source: address(source),
        dest: address(dest),
        octets: TEXT.as_bytes().into(),
        ..ShortMessage::default()
    }
}

fn response_to(pdu: Pdu) -> Option<Pdu> {
    let command = if let SmppCommand::DeliverSm(_) = pdu.command {
        SmppCommand::DeliverSmResp
    } else if pdu.command == SmppCommand::EnquireLink {
        SmppCommand::EnquireLinkResp
    } else if pdu.command == SmppCommand::Unbind {
        SmppCommand::UnbindResp
    } else {
        return None;
    };
    Some(Pdu { command, ..pdu })
}
