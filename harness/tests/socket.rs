//! Does a simulated device reach a server over a real network?

#![allow(clippy::unwrap_used, clippy::panic)]

use std::net::SocketAddr;
use std::time::Duration;

use harness::device::configuration::Configuration;
use harness::device::event::{DeviceEvent, Operation, Uplink};
use harness::socket::{DeviceLink, DeviceStopped, EVENTS_MAX, PacketLoss, RunningDevice, run};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{Measured, Sample};
use protocol::lwm2m::value::Value;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(60);
const TEMPERATURE: Path = Path::resource(3303, 0, 5700);

#[tokio::test]
async fn a_device_registers_from_its_own_address_and_answers_a_read() {
    let server = Server::start().await;
    let (device, mut events) = server.device("127.0.1.7:0", PacketLoss::default()).await;
    let (register, from) = server.receive().await;
    assert_eq!(from, device.address());
    assert_eq!(from.ip().to_string(), "127.0.1.7");
    server.send(&created(&register), from).await;
    let registered = next(&mut events).await;
    let DeviceEvent::Registered { location } = registered else {
        panic!("{registered}");
    };
    assert_eq!(location.to_string(), "/rd/7");

    server.send(&read(1), from).await;
    let (response, _) = server.receive().await;
    assert_eq!(response.kind, MessageKind::Acknowledgement);
    assert_eq!(
        (response.code, response.token),
        (Code::CONTENT, read(1).token)
    );
    assert_eq!(response.payload, b"21.5");
    let (path, operation, code) = (TEMPERATURE, Operation::Read, Code::CONTENT);
    assert_eq!(
        next(&mut events).await,
        DeviceEvent::Answered {
            path,
            operation,
            code
        }
    );

    let device = device.stop().await.unwrap();
    assert_eq!(device.performed_count(), 1);
    assert_eq!(events.recv().await, None);
    UdpSocket::bind(from)
        .await
        .expect("the address is free again");
}

#[tokio::test]
async fn orders_reach_a_running_device() {
    let server = Server::start().await;
    let (device, mut events) = server.registered("127.0.1.8:0").await;
    assert_eq!(
        device.press(TEMPERATURE).await,
        Ok(Some(Value::Float(22.5)))
    );
    assert_eq!(device.with(|device| device.is_asleep()).await, Ok(false));

    device.update().await.unwrap();
    let (update, from) = server.receive().await;
    assert_eq!(update.uri_path().collect::<Vec<_>>(), ["rd", "7"]);
    server.send(&answer(&update, Code::CHANGED), from).await;
    assert_eq!(next(&mut events).await, DeviceEvent::Updated);

    device.sleep().await.unwrap();
    assert!(matches!(
        next(&mut events).await,
        DeviceEvent::Asleep { .. }
    ));
    device.wake().await.unwrap();
    assert_eq!(next(&mut events).await, DeviceEvent::Awake);
    let (update, from) = server.receive().await;
    server.send(&answer(&update, Code::CHANGED), from).await;
    assert_eq!(next(&mut events).await, DeviceEvent::Updated);

    device.reboot().await.unwrap();
    assert_eq!(next(&mut events).await, DeviceEvent::Rebooted);
    let (register, from) = server.receive().await;
    server.send(&created(&register), from).await;
    assert!(matches!(
        next(&mut events).await,
        DeviceEvent::Registered { .. }
    ));

    device.deregister().await.unwrap();
    let (leave, from) = server.receive().await;
    assert_eq!(leave.code, Code::DELETE);
    server.send(&answer(&leave, Code::DELETED), from).await;
    assert_eq!(next(&mut events).await, DeviceEvent::Deregistered);
}

#[tokio::test]
async fn a_running_device_sends_what_it_is_given() {
    let server = Server::start().await;
    let (device, mut events) = server.registered("127.0.1.19:0").await;
    let warm = Sample {
        path: TEMPERATURE,
        value: Value::Float(30.5),
        measured: Some(Measured::Relative(-2_000)),
    };
    let sent = device.send(ContentFormat::SENML_JSON, vec![warm]).await;
    assert_eq!(sent, Ok(Ok(())));
    let (message, from) = server.receive().await;
    assert_eq!(
        message.payload,
        br#"[{"n":"/3303/0/5700","t":-2.000,"v":30.5}]"#
    );
    server.send(&answer(&message, Code::CHANGED), from).await;
    assert_eq!(next(&mut events).await, DeviceEvent::Sent);
}

#[tokio::test]
async fn a_changed_value_is_notified_to_its_observer() {
    let server = Server::start().await;
    let (device, mut events) = server.registered("127.0.1.18:0").await;
    let observe = read(1).with_observe(0);
    server.send(&observe, device.address()).await;
    let (begun, _) = server.receive().await;
    assert_eq!(begun.observe(), Some(1));
    assert!(matches!(
        next(&mut events).await,
        DeviceEvent::Answered { .. }
    ));

    let before = device.set(TEMPERATURE, Value::Float(22.25)).await;
    assert_eq!(before, Ok(Some(Value::Float(21.5))));
    let (notification, from) = server.receive().await;
    assert_eq!(from, device.address());
    assert_eq!(notification.token, observe.token);
    assert_eq!(notification.payload, b"22.25");
    let path = TEMPERATURE;
    assert_eq!(next(&mut events).await, DeviceEvent::Notified { path });

    let reset = Message::reset(notification.message_id);
    server.send(&reset, from).await;
    assert_eq!(
        next(&mut events).await,
        DeviceEvent::ObservationEnded { path }
    );
}

#[tokio::test]
async fn a_device_that_moves_sends_from_its_new_address() {
    let server = Server::start().await;
    let (mut device, _events) = server.registered("127.0.1.9:0").await;
    device
        .move_to("127.0.1.10:0".parse().unwrap())
        .await
        .unwrap();
    device.update().await.unwrap();
    let (_, from) = server.receive().await;
    assert_eq!(from, device.address());
    assert_eq!(from.ip().to_string(), "127.0.1.10");
    let taken = server.socket.local_addr().unwrap();
    device
        .move_to(taken)
        .await
        .expect_err("the address is taken");
    assert_eq!(device.address(), from);
    assert_eq!(device.with(|device| device.is_listening()).await, Ok(true));
}

#[tokio::test]
async fn a_lossy_network_delays_a_registration_and_does_not_prevent_it() {
    let server = Server::start().await;
    let loss = PacketLoss {
        to_server_percent: 50,
        to_device_percent: 50,
    };
    let (_device, mut events) = server.run(hasty(), "127.0.1.11:0", loss).await;
    loop {
        tokio::select! {
            (register, from) = server.receive() => server.send(&created(&register), from).await,
            event = next(&mut events) => {
                if matches!(event, DeviceEvent::Registered { .. }) {
                    break;
                }
                assert_eq!(event, DeviceEvent::GaveUp(Uplink::Register));
            }
        }
    }
}

#[tokio::test]
async fn a_response_lost_on_the_way_to_the_device_is_requested_again() {
    let server = Server::start().await;
    let loss = PacketLoss {
        to_server_percent: 0,
        to_device_percent: 100,
    };
    let (device, mut events) = server.run(hasty(), "127.0.1.16:0", loss).await;
    let (first, _) = server.receive().await;
    for _ in 0..4 {
        server.send(&created(&first), device.address()).await;
        assert_eq!(server.receive().await.0, first);
    }
    assert_eq!(
        next(&mut events).await,
        DeviceEvent::GaveUp(Uplink::Register)
    );
}

#[tokio::test]
async fn a_datagram_lost_on_the_way_to_the_server_never_arrives() {
    let server = Server::start().await;
    let loss = PacketLoss {
        to_server_percent: 100,
        to_device_percent: 0,
    };
    let (_device, mut events) = server.run(hasty(), "127.0.1.17:0", loss).await;
    assert_eq!(
        next(&mut events).await,
        DeviceEvent::GaveUp(Uplink::Register)
    );
    server
        .socket
        .try_recv(&mut [0])
        .expect_err("something arrived");
}

#[tokio::test]
async fn datagrams_of_strangers_are_dropped() {
    let server = Server::start().await;
    let (device, _events) = server.registered("127.0.1.12:0").await;
    let stranger = Server::start().await;
    stranger.send(&read(1), device.address()).await;
    server.send(&read(2), device.address()).await;
    let (response, _) = server.receive().await;
    assert_eq!(response.token, read(2).token);
    assert_eq!(device.with(|device| device.performed_count()).await, Ok(1));
}

#[tokio::test]
async fn unread_events_do_not_stop_a_device() {
    let server = Server::start().await;
    let (device, events) = server.registered("127.0.1.13:0").await;
    let count = u16::try_from(EVENTS_MAX).unwrap() + 10;
    for id in 0..count {
        server.send(&read(id), device.address()).await;
        server.receive().await;
    }
    assert_eq!(events.len(), EVENTS_MAX);
    assert_eq!(
        device.with(|device| device.performed_count()).await,
        Ok(u64::from(count))
    );
}

#[tokio::test]
async fn a_device_ends_when_its_handle_is_dropped() {
    let server = Server::start().await;
    let (device, mut events) = server.registered("127.0.1.14:0").await;
    drop(device);
    assert_eq!(timeout(DEADLINE, events.recv()).await.unwrap(), None);
}

#[tokio::test]
async fn a_device_that_failed_says_that_it_has_stopped() {
    let server = Server::start().await;
    let (device, _events) = server.registered("127.0.1.15:0").await;
    let looked = device.with(|_| panic!("a look that fails")).await;
    assert_eq!(looked, Err::<(), _>(DeviceStopped));
    assert_eq!(device.update().await, Err(DeviceStopped));
    assert!(device.stop().await.is_err());
}

/// A server that sends and receives on behalf of a test.
struct Server {
    socket: UdpSocket,
}

impl Server {
    async fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        Self { socket }
    }

    async fn device(
        &self,
        local: &str,
        loss: PacketLoss,
    ) -> (RunningDevice, Receiver<DeviceEvent>) {
        self.run(Configuration::new("lamp"), local, loss).await
    }

    async fn registered(&self, local: &str) -> (RunningDevice, Receiver<DeviceEvent>) {
        let (device, mut events) = self.device(local, PacketLoss::default()).await;
        let (register, from) = self.receive().await;
        self.send(&created(&register), from).await;
        assert!(matches!(
            next(&mut events).await,
            DeviceEvent::Registered { .. }
        ));
        (device, events)
    }

    async fn run(
        &self,
        configuration: Configuration,
        local: &str,
        loss: PacketLoss,
    ) -> (RunningDevice, Receiver<DeviceEvent>) {
        let (local, server) = (local.parse().unwrap(), self.socket.local_addr().unwrap());
        run(
            configuration,
            DeviceLink {
                local,
                server,
                bare: None,
                loss,
                seed: 7,
            },
        )
        .await
        .unwrap()
    }

    async fn receive(&self) -> (Message, SocketAddr) {
        let mut buffer = [0; 2_048];
        let received = timeout(DEADLINE, self.socket.recv_from(&mut buffer)).await;
        let (length, from) = received.expect("the device is silent").unwrap();
        (Message::decode(&buffer[..length]).unwrap(), from)
    }

    async fn send(&self, message: &Message, to: SocketAddr) {
        self.socket.send_to(&message.encode(), to).await.unwrap();
    }
}

/// A device with short ACK timeouts.
fn hasty() -> Configuration {
    let mut configuration = Configuration::new("lamp");
    configuration.transmission.ack_timeout_ms = 20;
    configuration.retry.first_ms = 10;
    configuration
}

async fn next(events: &mut Receiver<DeviceEvent>) -> DeviceEvent {
    timeout(DEADLINE, events.recv())
        .await
        .expect("no news")
        .expect("no device")
}

fn created(register: &Message) -> Message {
    answer(register, Code::CREATED).with_location_path(["rd", "7"])
}

fn answer(request: &Message, code: Code) -> Message {
    Message::response_to(request, code, MessageId(0))
}

fn read(id: u16) -> Message {
    let token = Token::new(&id.to_be_bytes()).unwrap();
    Message::request(MessageKind::Confirmable, Code::GET, MessageId(id), token)
        .with_uri_path(TEMPERATURE.segments().map(|segment| segment.to_string()))
}
