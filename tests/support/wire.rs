//! How does a test exchange single datagrams with the service?

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;

use super::device::DEVICE_IP;
use super::poll::PATIENCE;
use super::service::Service;

/// The longest datagram a test receives.
const DATAGRAM_BYTES_MAX: usize = 2_048;

/// After this time a device repeats an unanswered message.
pub(crate) const REPEATED_AFTER: Duration = Duration::from_millis(300);

/// How long a serving device waits for a datagram before it checks whether to stop.
const LOOKED_UP_AFTER: Duration = Duration::from_millis(20);

/// The message id of the pings of [`DeviceSocket::received_before_ping`]; tests use smaller ids.
const PING_ID: MessageId = MessageId(0xFFF0);

/// A socket connected to the service.
pub(crate) struct DeviceSocket {
    socket: UdpSocket,
}

impl DeviceSocket {
    /// A socket at the default address of the tests' devices.
    pub(crate) fn to(service: &Service) -> Self {
        Self::from(DEVICE_IP, service)
    }

    /// A socket at this address.
    pub(crate) fn from(ip: &str, service: &Service) -> Self {
        let socket = UdpSocket::bind((ip, 0)).unwrap();
        socket.connect(service.coap).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket }
    }

    /// The port at which requests reach it.
    pub(crate) fn port(&self) -> u16 {
        self.socket.local_addr().unwrap().port()
    }

    /// Sends to another node from now on, from the same port, as behind a load balancer.
    pub(crate) fn turn_to(&self, service: &Service) {
        self.socket.connect(service.coap).unwrap();
    }

    /// Sends a datagram.
    pub(crate) fn send(&self, datagram: &[u8]) {
        // This call may report the ICMP error of an earlier datagram to a killed service.
        if self.socket.send(datagram).is_err() {
            self.socket.send(datagram).unwrap();
        }
    }

    /// The next message received.
    pub(crate) fn receive(&self) -> Message {
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        loop {
            match self.socket.recv(&mut buffer) {
                Ok(length) => return Message::decode(&buffer[..length]).unwrap(),
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => panic!("nothing was received: {error}"),
            }
        }
    }

    /// Sends a request and receives the answer, which must come in the acknowledgement. A request
    /// that was repeated before may be acknowledged once more meanwhile.
    pub(crate) fn ask(&self, request: &Message) -> Message {
        self.send(&request.encode());
        let is_for_another = |it: &Message| {
            it.kind == MessageKind::Acknowledgement && it.message_id != request.message_id
        };
        let mut received = std::iter::from_fn(|| Some(self.receive()));
        let answer = received.find(|it| !is_for_another(it));
        let answer = answer.expect("receiving ends with a message");
        assert_eq!(answer.kind, MessageKind::Acknowledgement, "{answer:?}");
        assert_eq!(answer.message_id, request.message_id, "{answer:?}");
        assert_eq!(answer.token, request.token, "{answer:?}");
        answer
    }

    /// Sends a request and receives its answer, skipping other messages.
    pub(crate) fn ask_among_others(&self, request: &Message) -> Message {
        self.send(&request.encode());
        let mut received = std::iter::from_fn(|| Some(self.receive()));
        let answer = received.find(|message| message.message_id == request.message_id);
        answer.expect("receiving ends with a message")
    }

    /// Sends a request, repeats it as a device does, and receives its answer, skipping other
    /// messages.
    pub(crate) fn ask_until_answered(&self, request: &Message) -> Message {
        let deadline = Instant::now() + PATIENCE;
        self.socket.set_read_timeout(Some(REPEATED_AFTER)).unwrap();
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        self.send(&request.encode());
        let answer = loop {
            assert!(Instant::now() < deadline, "not answered: {request:?}");
            match self.socket.recv(&mut buffer) {
                Ok(length) => {
                    let message = Message::decode(&buffer[..length]).unwrap();
                    if message.message_id == request.message_id {
                        break message;
                    }
                }
                Err(_) => self.send(&request.encode()),
            }
        };
        self.socket.set_read_timeout(Some(PATIENCE)).unwrap();
        answer
    }

    /// The next request received.
    pub(crate) fn receive_request(&self) -> Message {
        let mut received = std::iter::from_fn(|| Some(self.receive()));
        let request = received.find(|message| message.code.is_request());
        request.expect("receiving ends with a message")
    }

    /// The next request whose message id is not in `met`, to which it is added.
    pub(crate) fn receive_new_request(&self, met: &mut Vec<MessageId>) -> Message {
        let mut received = std::iter::from_fn(|| Some(self.receive_request()));
        let request = received.find(|request| !met.contains(&request.message_id));
        let request = request.expect("receiving ends with a message");
        met.push(request.message_id);
        request
    }

    /// Everything received so far.
    pub(crate) fn received(&self) -> Vec<Message> {
        self.socket.set_nonblocking(true).unwrap();
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        let next = || {
            let length = self.socket.recv(&mut buffer).ok()?;
            Some(Message::decode(&buffer[..length]).unwrap())
        };
        let received = std::iter::from_fn(next).collect();
        self.socket.set_nonblocking(false).unwrap();
        received
    }

    /// Sends the answers to received requests until `answer` breaks. Calls `answer` also when no
    /// request arrived for a while.
    pub(crate) fn serve(
        &self,
        mut answer: impl FnMut(Option<Message>) -> ControlFlow<(), Option<Message>>,
    ) {
        self.socket.set_read_timeout(Some(LOOKED_UP_AFTER)).unwrap();
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        loop {
            let received = self.socket.recv(&mut buffer).ok();
            let message = received.map(|length| Message::decode(&buffer[..length]).unwrap());
            match answer(message.filter(|message| message.code.is_request())) {
                ControlFlow::Continue(Some(response)) => self.send(&response.encode()),
                ControlFlow::Continue(None) => {}
                ControlFlow::Break(()) => return,
            }
        }
    }

    /// Registers and returns the location.
    pub(crate) fn register(&self, endpoint: &str, id: u16) -> Vec<String> {
        let answer = self.ask(&register(endpoint, id));
        assert_eq!(answer.code, Code::CREATED, "{answer:?}");
        location_of(&answer)
    }

    /// Everything received before the Reset that answers a ping.
    ///
    /// The service handles datagrams that need no look-up in order, so an answer not received by
    /// then will not follow.
    pub(crate) fn received_before_ping(&self) -> Vec<Message> {
        self.send(&Message::ping(PING_ID).encode());
        let is_pong = |it: &Message| it.kind == MessageKind::Reset && it.message_id == PING_ID;
        let received = std::iter::from_fn(|| Some(self.receive()));
        received.take_while(|message| !is_pong(message)).collect()
    }
}

/// A confirmable request.
pub(crate) fn request(code: Code, id: u16) -> Message {
    let token = Token::from_u64(0x5167_0000 + u64::from(id));
    Message::request(MessageKind::Confirmable, code, MessageId(id), token)
}

/// A registration as a plain device sends it.
pub(crate) fn register(endpoint: &str, id: u16) -> Message {
    let endpoint = format!("ep={endpoint}");
    register_with(
        &[&endpoint, "lt=300", "lwm2m=1.1", "b=U"],
        "</1/0>,</3/0>",
        id,
    )
}

/// A registration with these parameters and links.
pub(crate) fn register_with(queries: &[&str], links: &str, id: u16) -> Message {
    request(Code::POST, id)
        .with_uri_path(["rd"])
        .with_uri_query(queries)
        .with_content_format(ContentFormat::LINK_FORMAT)
        .with_payload(links)
}

/// An update of a registration.
pub(crate) fn update(location: &[String], id: u16) -> Message {
    request(Code::POST, id).with_uri_path(location)
}

/// A deregistration.
pub(crate) fn deregister(location: &[String], id: u16) -> Message {
    request(Code::DELETE, id).with_uri_path(location)
}

/// The location of a registration.
pub(crate) fn location_of(answer: &Message) -> Vec<String> {
    answer.location_path().map(str::to_owned).collect()
}

/// Decodes hexadecimal digits.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}
