//! How does a test say a datagram to the service, byte by byte, and hear what comes back?

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

/// The longest datagram a test hears.
const DATAGRAM_BYTES_MAX: usize = 2_048;

/// A device repeats what is not answered.
const REPEATED_AFTER: Duration = Duration::from_millis(300);

/// How long a device that serves listens before it looks up.
const LOOKED_UP_AFTER: Duration = Duration::from_millis(20);

/// What the pings of [`DeviceSocket::heard_before_ping`] are known by; tests use smaller ids.
const PING_ID: MessageId = MessageId(0xFFF0);

/// A socket that speaks to the service.
pub(crate) struct DeviceSocket {
    socket: UdpSocket,
}

impl DeviceSocket {
    /// A socket where devices of the tests are.
    pub(crate) fn to(service: &Service) -> Self {
        Self::from(DEVICE_IP, service)
    }

    /// A socket at an address.
    pub(crate) fn from(ip: &str, service: &Service) -> Self {
        let socket = UdpSocket::bind((ip, 0)).unwrap();
        socket.connect(service.coap).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket }
    }

    /// Where requests reach it.
    pub(crate) fn port(&self) -> u16 {
        self.socket.local_addr().unwrap().port()
    }

    /// Says a datagram.
    pub(crate) fn say(&self, datagram: &[u8]) {
        // A service that was killed refuses an earlier datagram on this call; this one leaves.
        if self.socket.send(datagram).is_err() {
            self.socket.send(datagram).unwrap();
        }
    }

    /// The next datagram that comes.
    pub(crate) fn hear(&self) -> Message {
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        loop {
            match self.socket.recv(&mut buffer) {
                Ok(length) => return Message::decode(&buffer[..length]).unwrap(),
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => panic!("nothing was heard: {error}"),
            }
        }
    }

    /// Asks and hears the answer, which has to come in the acknowledgement.
    pub(crate) fn ask(&self, request: &Message) -> Message {
        self.say(&request.encode());
        let answer = self.hear();
        assert_eq!(answer.kind, MessageKind::Acknowledgement, "{answer:?}");
        assert_eq!(answer.message_id, request.message_id, "{answer:?}");
        assert_eq!(answer.token, request.token, "{answer:?}");
        answer
    }

    /// Asks and hears the answer among whatever else comes.
    pub(crate) fn ask_among_others(&self, request: &Message) -> Message {
        self.say(&request.encode());
        let mut heard = std::iter::from_fn(|| Some(self.hear()));
        let answer = heard.find(|message| message.message_id == request.message_id);
        answer.expect("hearing ends with what is looked for")
    }

    /// Asks as often as a device repeats itself, and hears the answer among whatever else comes.
    pub(crate) fn ask_until_answered(&self, request: &Message) -> Message {
        let deadline = Instant::now() + PATIENCE;
        self.socket.set_read_timeout(Some(REPEATED_AFTER)).unwrap();
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        self.say(&request.encode());
        let answer = loop {
            assert!(Instant::now() < deadline, "not answered: {request:?}");
            match self.socket.recv(&mut buffer) {
                Ok(length) => {
                    let message = Message::decode(&buffer[..length]).unwrap();
                    if message.message_id == request.message_id {
                        break message;
                    }
                }
                Err(_) => self.say(&request.encode()),
            }
        };
        self.socket.set_read_timeout(Some(PATIENCE)).unwrap();
        answer
    }

    /// The next request that comes.
    pub(crate) fn hear_request(&self) -> Message {
        let mut heard = std::iter::from_fn(|| Some(self.hear()));
        let request = heard.find(|message| message.code.is_request());
        request.expect("hearing ends with what is looked for")
    }

    /// The next request that is no repetition of one that was met; it counts as met.
    pub(crate) fn hear_new_request(&self, met: &mut Vec<MessageId>) -> Message {
        let mut heard = std::iter::from_fn(|| Some(self.hear_request()));
        let request = heard.find(|request| !met.contains(&request.message_id));
        let request = request.expect("hearing ends with what is looked for");
        met.push(request.message_id);
        request
    }

    /// Whatever came until now.
    pub(crate) fn heard(&self) -> Vec<Message> {
        self.socket.set_nonblocking(true).unwrap();
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        let next = || {
            let length = self.socket.recv(&mut buffer).ok()?;
            Some(Message::decode(&buffer[..length]).unwrap())
        };
        let heard = std::iter::from_fn(next).collect();
        self.socket.set_nonblocking(false).unwrap();
        heard
    }

    /// Says what it is given for each request that comes, until it is told to end; now and then it
    /// asks although none came.
    pub(crate) fn serve(
        &self,
        mut answer: impl FnMut(Option<Message>) -> ControlFlow<(), Option<Message>>,
    ) {
        self.socket.set_read_timeout(Some(LOOKED_UP_AFTER)).unwrap();
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        loop {
            let heard = self.socket.recv(&mut buffer).ok();
            let message = heard.map(|length| Message::decode(&buffer[..length]).unwrap());
            match answer(message.filter(|message| message.code.is_request())) {
                ControlFlow::Continue(Some(said)) => self.say(&said.encode()),
                ControlFlow::Continue(None) => {}
                ControlFlow::Break(()) => return,
            }
        }
    }

    /// Registers and gives the location.
    pub(crate) fn register(&self, endpoint: &str, id: u16) -> Vec<String> {
        let answer = self.ask(&register(endpoint, id));
        assert_eq!(answer.code, Code::CREATED, "{answer:?}");
        location_of(&answer)
    }

    /// Everything that comes before the Reset a ping is met with.
    ///
    /// What the service need not look up it meets in its order: what was not said by then is not
    /// said.
    pub(crate) fn heard_before_ping(&self) -> Vec<Message> {
        self.say(&Message::ping(PING_ID).encode());
        let is_pong = |it: &Message| it.kind == MessageKind::Reset && it.message_id == PING_ID;
        let heard = std::iter::from_fn(|| Some(self.hear()));
        heard.take_while(|message| !is_pong(message)).collect()
    }
}

/// A request that is to be acknowledged.
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

/// The end of a registration.
pub(crate) fn deregister(location: &[String], id: u16) -> Message {
    request(Code::DELETE, id).with_uri_path(location)
}

/// Where a registration is kept.
pub(crate) fn location_of(answer: &Message) -> Vec<String> {
    answer.location_path().map(str::to_owned).collect()
}

/// The bytes of hexadecimal digits.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}
