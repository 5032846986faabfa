//! How do the shells serve devices without LwM2M: which device does data belong to, which port do
//! datagrams leave from, and what happens if a step cannot be saved?

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::num::NonZeroU16;

use engine::PathAndQuery;
use engine::action::{
    Action, CoapRequest, Content, ContentEncoding, Method, Request, Status, UdpRequest,
};
use engine::event::{Event, EventContent};
use engine::ids::ActionId;
use engine::query::HistoryFilter;
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use store::DirectoryReads as _;

use crate::faulty::FaultMode;
use crate::test_service::{DEADLINE, Socket, TestService, customer, wait_for};

const METER: &str = "meter";

/// As many datagrams as may wait for a device at once.
const BURST: u8 = 60;

#[test]
fn bare_datagrams_are_published_in_the_order_of_their_arrival() {
    let setup = TestService::at(home(), [METER]);
    let device = bare(home());
    for number in 0..BURST {
        device.send_to(&[number], setup.udp).unwrap();
    }
    setup.until(|| setup.received(METER).len() == usize::from(BURST));
    let published = setup.received(METER);
    assert_eq!(published, (0..BURST).map(|it| vec![it]).collect::<Vec<_>>());
    assert_eq!(setup.entries(), ["Lifecycle[DeviceFirstTimeRegistered]"]);
}

#[test]
fn a_device_is_one_whether_it_sends_bare_datagrams_or_coap() {
    let setup = TestService::at(home(), [METER]);
    bare(home()).send_to(b"on", setup.udp).unwrap();
    setup.until(|| setup.received(METER) == [b"on"]);
    let mut device = setup.device_at(home());
    assert_eq!(device.ask(&post(1, "off")).code, Code::CHANGED);
    assert_eq!(setup.received(METER), [&b"on"[..], b"off"]);
    assert_eq!(setup.entries(), ["Lifecycle[DeviceFirstTimeRegistered]"]);
}

#[test]
fn a_repeated_message_is_published_once() {
    let setup = TestService::at(home(), [METER]);
    let mut device = setup.device_at(home());
    for _ in 0..3 {
        assert_eq!(device.ask(&post(1, "off")).code, Code::CHANGED);
    }
    assert_eq!(setup.received(METER), [b"off"]);
}

#[test]
fn data_from_an_unknown_address_is_refused() {
    let setup = TestService::at(home(), [METER]);
    let mut stranger = setup.device_at(elsewhere());
    bare(elsewhere()).send_to(b"on", setup.udp).unwrap();
    assert_eq!(stranger.ask(&post(1, "off")).code, Code::UNAUTHORIZED);
    assert_eq!(setup.received(METER), [b""; 0]);
    assert_eq!(setup.entries(), [""; 0]);
}

#[test]
fn data_from_an_address_of_two_devices_is_published_for_neither() {
    let setup = TestService::at(home(), [METER, "lamp"]);
    let mut device = setup.device_at(home());
    bare(home()).send_to(b"on", setup.udp).unwrap();
    assert_eq!(device.ask(&post(1, "off")).code, Code::UNAUTHORIZED);
    assert_eq!(device.ask(&post(2, "off")).code, Code::UNAUTHORIZED);
    assert_eq!(
        (setup.received(METER), setup.received("lamp")),
        (vec![], vec![])
    );
    assert_eq!(setup.entries(), ["CoAP[UnauthorizedDevice]"]);
}

#[test]
fn data_is_deferred_while_the_store_is_full() {
    let setup = TestService::at(home(), [METER]);
    let mut device = setup.device_at(home());
    setup.commits.set(FaultMode::Full);
    let answer = device.ask(&post(1, "off"));
    assert_eq!(answer.code, Code::SERVICE_UNAVAILABLE);
    assert!(answer.max_age_s.is_some_and(|max_age_s| max_age_s > 0));
    setup.commits.set(FaultMode::Well);
    assert_eq!(device.ask(&post(2, "off")).code, Code::CHANGED);
    assert_eq!(setup.received(METER), [b"off"]);
}

#[test]
fn unsaved_data_is_acknowledged_once_the_store_is_back() {
    let setup = TestService::at(home(), [METER]);
    let mut device = setup.device_at(home());
    setup.commits.set(FaultMode::Unavailable);
    device.send(&post(1, "off"));
    setup.until(|| setup.commits.refused() > 0);
    setup.until(|| setup.commits.times_full() > 0);
    assert!(device.receives_nothing_before_a_pong());
    setup.commits.set(FaultMode::Well);
    let answer = device.ask_until_answered(&post(1, "off"));
    assert_eq!(answer.code, Code::CHANGED);
    assert_eq!(setup.received(METER), [b"off"]);
}

#[test]
fn bare_datagrams_are_sent_from_the_port_where_they_are_received() {
    let setup = TestService::at(home(), [METER]);
    let device = bare(home());
    let actions = ["1", "2", "3"].map(|text| setup.send_bare(&device, text));
    for action in actions {
        setup.until(|| !setup.status(action).is_pending());
        assert_eq!(setup.status(action), Status::Succeeded);
    }
    for text in ["1", "2", "3"] {
        assert_eq!(received(&device), (text.as_bytes().to_vec(), setup.udp));
    }
}

#[test]
fn a_datagram_that_the_socket_refuses_is_a_failure() {
    // Broadcasting needs a permission that the socket does not have.
    let setup = TestService::at([255, 255, 255, 255].into(), [METER]);
    let action = setup.submit_now(METER, datagram(4445, "on"));
    let action = action.unwrap().unwrap().id;
    setup.until(|| setup.status(action) == Status::Failed);
    let why = "the datagram could not be sent: \
               the operating system does not permit sending to the address of the device";
    let outcome = setup.action(action).outcome.unwrap();
    assert_eq!(outcome.error.as_deref(), Some(why));
}

#[test]
fn a_datagram_whose_outcome_was_not_saved_is_not_sent_again() {
    let setup = TestService::at(home(), [METER]);
    let device = bare(home());
    setup.commits.set(FaultMode::UnavailableSoon);
    let action = setup.send_bare(&device, "on");
    assert_eq!(received(&device), (b"on".to_vec(), setup.udp));
    setup.until(|| setup.commits.refused() > 0);
    assert_eq!(setup.status(action), Status::InProgress);
    setup.commits.set(FaultMode::Well);
    setup.until(|| setup.status(action) == Status::Failed);
    // The next datagram received is the one sent now.
    setup.send_bare(&device, "off");
    assert_eq!(received(&device), (b"off".to_vec(), setup.udp));
}

#[test]
fn a_request_reaches_a_device_that_never_registered_and_its_answer_counts() {
    let setup = TestService::at(home(), [METER]);
    let mut device = setup.device_at(home());
    for (number, method) in (1..).zip([Method::Get, Method::Delete]) {
        let request = coap(device.address().port(), method);
        let action = setup.submit_now(METER, request).unwrap().unwrap().id;
        let request = device.next();
        assert_eq!(request.uri_path().collect::<Vec<_>>(), ["state"]);
        device.send(&Message::response_to(
            &request,
            Code::CONTENT,
            MessageId(number),
        ));
        setup.until(|| setup.status(action) == Status::Succeeded);
    }
}

#[test]
fn a_device_that_panics_in_an_exchange_at_another_peer_is_served_there_again() {
    let setup = TestService::at(home(), [METER]);
    let mut device = setup.device_at(home());
    let first = coap(device.address().port(), Method::Get);
    let first = setup.submit_now(METER, first).unwrap().unwrap().id;
    let request = device.next();
    setup.commits.set(FaultMode::PanicOnce);
    device.send(&Message::response_to(&request, Code::CONTENT, MessageId(1)));
    setup.until(|| setup.status(first) == Status::Failed);
    assert_eq!(setup.commits.mode(), FaultMode::Well);
    let second = coap(device.address().port(), Method::Get);
    let second = setup.submit_now(METER, second).unwrap().unwrap().id;
    let request = next_after(&mut device, &request);
    device.send(&Message::response_to(&request, Code::CONTENT, MessageId(2)));
    setup.until(|| setup.status(second) == Status::Succeeded);
}

impl TestService {
    /// The data of a device, oldest first.
    fn received(&self, name: &str) -> Vec<Vec<u8>> {
        let max = u32::from(u8::MAX);
        let events = wait_for(
            self.store
                .events_of(HistoryFilter::all_of(customer(), self.key(name)), max),
        )
        .unwrap()
        .events;
        let data = |event: &Event| {
            let EventContent::Data(data) = &event.content else {
                return None;
            };
            Some(data.bytes.to_vec())
        };
        events.iter().rev().filter_map(data).collect()
    }

    fn send_bare(&self, to: &UdpSocket, text: &str) -> ActionId {
        let port = to.local_addr().unwrap().port();
        let accepted = self.submit_now(METER, datagram(port, text));
        accepted.unwrap().unwrap().id
    }

    fn status(&self, action: ActionId) -> Status {
        self.action(action).status
    }

    fn action(&self, action: ActionId) -> Action {
        wait_for(self.store.action(action)).unwrap().unwrap()
    }
}

/// The address of the device.
fn home() -> IpAddr {
    [127, 0, 0, 2].into()
}

/// An address that no device has.
fn elsewhere() -> IpAddr {
    [127, 0, 0, 3].into()
}

/// A device that sends and receives bare datagrams.
fn bare(at: IpAddr) -> UdpSocket {
    let socket = UdpSocket::bind((at, 0)).unwrap();
    let patience = Some(DEADLINE);
    socket.set_read_timeout(patience).unwrap();
    socket
}

/// The next datagram received, and its sender.
fn received(device: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = [0; 64];
    let (length, from) = device.recv_from(&mut buffer).unwrap();
    (buffer[..length].to_vec(), from)
}

/// The next message that differs from the one before.
fn next_after(device: &mut Socket, before: &Message) -> Message {
    loop {
        let message = device.next();
        if message.message_id != before.message_id {
            return message;
        }
    }
}

fn post(number: u16, data: &str) -> Message {
    let token = Token::new(&number.to_be_bytes()).unwrap();
    Message::request(
        MessageKind::Confirmable,
        Code::POST,
        MessageId(number),
        token,
    )
    .with_uri_query(["t=state"])
    .with_payload(data)
}

fn datagram(port: u16, text: &str) -> Request {
    Request::Udp(UdpRequest {
        content: Content::parse(ContentEncoding::String, text).unwrap(),
        port: NonZeroU16::new(port).unwrap(),
    })
}

fn coap(port: u16, method: Method) -> Request {
    Request::Coap(CoapRequest {
        method,
        port: NonZeroU16::new(port).unwrap(),
        target: PathAndQuery::parse("/state").unwrap(),
        content: None,
    })
}
