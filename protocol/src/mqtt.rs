//! What do a client and a broker say over one connection? MQTT 5 and MQTT 3.1.1 (OASIS), of which a
//! client needs a part here: it publishes at QoS 1 and has one subscription at most.
//!
//! The packets of both versions and the rules of a connection are those of `mqtt-protocol-core`.
//! Bytes from a broker are untrusted: it is the customer's.
//!
//! ```text
//!            CONNECT written         CONNACK accepted
//!   (open) -----------------> Waiting ---------------> Connected --> PUBLISH, PUBACK, PINGREQ
//!                                |                         |
//!                                | CONNACK refused         | DISCONNECT, malformed, no PINGRESP
//!                                v                         v
//!                              Ended                     Ended
//! ```

mod reason;

use std::fmt;

use mqtt_protocol_core::mqtt::common::Cursor;
use mqtt_protocol_core::mqtt::connection::{ConnectionOptions, Event, TimerKind};
use mqtt_protocol_core::mqtt::packet::{
    ContentType, CorrelationData, Packet, PayloadFormat, PayloadFormatIndicator, Properties,
    Property, Qos, RetainHandling, SessionExpiryInterval, SubEntry, SubOpts, UserProperty, v3_1_1,
    v5_0,
};
use mqtt_protocol_core::mqtt::prelude::GenericPacketTrait as _;
use mqtt_protocol_core::mqtt::result_code::MqttError;
use mqtt_protocol_core::mqtt::{Connection, Version, role};

pub use reason::{MqttReason, Overload};

/// The bytes of the longest packet that a broker may send. A client here receives requests, and
/// acknowledgements.
const RECEIVED_BYTES_MAX: u32 = 2_200_000;

/// The messages that a broker may send before the first of them is acknowledged (MQTT 5).
const RECEIVED_MAX: u16 = 64;

/// How long a PINGRESP may take.
const PINGRESP_MS: u64 = 10_000;

/// How long a broker keeps the session of a client that is not connected (MQTT 5).
const SESSION_EXPIRY_S: u32 = 86_400;

/// The version of MQTT.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum MqttVersion {
    /// MQTT 5.
    #[default]
    V5,
    /// MQTT 3.1.1.
    V3,
}

/// What a client connects with. Neither printing nor logging shows the password.
#[derive(Clone)]
pub struct MqttLogin {
    /// The version.
    pub version: MqttVersion,
    /// The client identifier.
    pub client_id: String,
    /// The user name.
    pub username: Option<String>,
    /// The password.
    pub password: Option<String>,
    /// After how many seconds without another packet a PINGREQ is sent.
    pub keep_alive_s: u16,
    /// The topic filter of the one subscription; the broker then keeps messages for the client
    /// while it is not connected.
    pub subscription: Option<String>,
}

impl fmt::Debug for MqttLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MqttLogin")
            .field("version", &self.version)
            .field("client_id", &self.client_id)
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

/// A message.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct MqttMessage {
    /// Its topic.
    pub topic: String,
    /// What it says, in JSON.
    pub payload: Vec<u8>,
    /// The correlation data (MQTT 5).
    pub correlation: Option<Vec<u8>>,
}

/// A message from the broker.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReceivedMessage {
    /// The message.
    pub message: MqttMessage,
    /// Its packet identifier; none at QoS 0, which is not acknowledged.
    pub packet_id: Option<u16>,
    /// Whether it is older than the subscription.
    pub retained: Retained,
    /// The user properties, name and value (MQTT 5).
    pub properties: Vec<(String, String)>,
}

/// Whether the broker kept a message for later subscribers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Retained {
    /// It did not.
    No,
    /// It did.
    Yes,
}

/// What happens on a connection, in order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum MqttEvent {
    /// These bytes are to be written.
    Write(Vec<u8>),
    /// The broker accepted the client, and its subscription if it has one.
    Ready,
    /// The broker has the message with this packet identifier, or refuses it.
    Acknowledged(u16, Result<(), MqttReason>),
    /// The broker sent a message.
    Received(ReceivedMessage),
    /// The connection is to be closed; the reason says why.
    Ended(MqttReason),
}

/// Why a message cannot be sent now.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Unsendable {
    /// As many messages as the broker allows are not acknowledged yet.
    #[error("the window of the broker is used up")]
    Window,
    /// It can never be sent.
    #[error("{0}")]
    Never(MqttReason),
}

/// One connection to a broker.
pub struct MqttConnection {
    connection: Connection<role::Client>,
    version: MqttVersion,
    subscription: Option<String>,
    /// When a PINGREQ is sent, and when its PINGRESP is missing.
    ping_at_ms: Option<i64>,
    silent_at_ms: Option<i64>,
}

impl MqttConnection {
    /// A connection that was just established, and its CONNECT.
    pub fn open(login: &MqttLogin, now_ms: i64, out: &mut Vec<MqttEvent>) -> Self {
        let options = ConnectionOptions::new().maximum_packet_size_recv(RECEIVED_BYTES_MAX);
        let (version, options) = match login.version {
            MqttVersion::V5 => (Version::V5_0, options.receive_maximum(RECEIVED_MAX)),
            MqttVersion::V3 => (Version::V3_1_1, options),
        };
        let mut connection = Connection::with_options(version, options);
        connection.set_pingresp_recv_timeout(PINGRESP_MS);
        let mut it = Self {
            connection,
            version: login.version,
            subscription: login.subscription.clone(),
            ping_at_ms: None,
            silent_at_ms: None,
        };
        match connect(login) {
            Ok(connect) => it.send(connect, now_ms, out),
            Err(error) => out.push(MqttEvent::Ended(MqttReason::of_error(error))),
        }
        it
    }

    /// Handles bytes from the broker.
    pub fn handle_bytes(&mut self, bytes: &[u8], now_ms: i64, out: &mut Vec<MqttEvent>) {
        let mut cursor = Cursor::new(bytes);
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        while cursor.position() < length && !has_ended(out) {
            let events = self.connection.recv(&mut cursor);
            self.settle(events, now_ms, out);
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now_ms: i64, out: &mut Vec<MqttEvent>) {
        if self.silent_at_ms.is_some_and(|at| at <= now_ms) {
            self.silent_at_ms = None;
            out.push(MqttEvent::Ended(MqttReason::Silent));
        } else if self.ping_at_ms.is_some_and(|at| at <= now_ms) {
            self.ping_at_ms = None;
            let events = self.connection.notify_timer_fired(TimerKind::PingreqSend);
            self.settle(events, now_ms, out);
        }
    }

    /// When [`MqttConnection::handle_timeout`] is due, in milliseconds.
    pub fn next_timeout_ms(&self) -> Option<i64> {
        let due = [self.ping_at_ms, self.silent_at_ms];
        due.into_iter().flatten().min()
    }

    /// Publishes a message at QoS 1, and returns its packet identifier.
    pub fn publish(
        &mut self,
        message: &MqttMessage,
        now_ms: i64,
        out: &mut Vec<MqttEvent>,
    ) -> Result<u16, Unsendable> {
        let vacancy = self.connection.get_receive_maximum_vacancy_for_send();
        if vacancy == Some(0) {
            return Err(Unsendable::Window);
        }
        let never = |error| Unsendable::Never(MqttReason::of_error(error));
        let packet_id = self.connection.acquire_packet_id();
        let packet_id = packet_id.map_err(|_| Unsendable::Window)?;
        let packet = publish(self.version, message, packet_id);
        let events = packet.map(|packet| self.connection.send(packet));
        let refused = match events {
            Ok(events) => {
                let error = events.iter().find_map(error_of);
                self.settle_sent(events, now_ms, out);
                error
            }
            Err(error) => Some(error),
        };
        match refused {
            None => Ok(packet_id),
            Some(error) => {
                // It may have been released already.
                let _ = self.connection.release_packet_id(packet_id);
                Err(never(error))
            }
        }
    }

    /// Acknowledges a message of the broker.
    pub fn acknowledge(&mut self, packet_id: u16, now_ms: i64, out: &mut Vec<MqttEvent>) {
        let packet = match self.version {
            MqttVersion::V5 => {
                let puback = v5_0::Puback::builder().packet_id(packet_id).build();
                puback.map(Into::into)
            }
            MqttVersion::V3 => {
                let puback = v3_1_1::Puback::builder().packet_id(packet_id).build();
                puback.map(Into::into)
            }
        };
        if let Ok(packet) = packet {
            self.send(packet, now_ms, out);
        }
    }

    /// Takes leave of the broker.
    pub fn disconnect(&mut self, now_ms: i64, out: &mut Vec<MqttEvent>) {
        let packet = match self.version {
            MqttVersion::V5 => v5_0::Disconnect::builder().build().map(Into::into),
            MqttVersion::V3 => v3_1_1::Disconnect::builder().build().map(Into::into),
        };
        if let Ok(packet) = packet {
            let events = self.connection.send(packet);
            self.settle_sent(events, now_ms, out);
        }
    }

    fn send(&mut self, packet: Packet, now_ms: i64, out: &mut Vec<MqttEvent>) {
        let events = self.connection.send(packet);
        self.settle(events, now_ms, out);
    }

    /// Passes on what a packet of ours causes; an error is one of that packet alone.
    fn settle_sent(&mut self, events: Vec<Event>, now_ms: i64, out: &mut Vec<MqttEvent>) {
        let events = events.into_iter().filter(|it| error_of(it).is_none());
        self.settle(events.collect(), now_ms, out);
    }

    fn settle(&mut self, events: Vec<Event>, now_ms: i64, out: &mut Vec<MqttEvent>) {
        let mut ended = None;
        for event in events {
            match event {
                Event::RequestSendPacket { packet, .. } => {
                    out.push(MqttEvent::Write(packet.to_continuous_buffer()));
                }
                Event::NotifyPacketReceived(packet) => {
                    if let Err(reason) = self.receive(packet, now_ms, out) {
                        ended.get_or_insert(reason);
                    }
                }
                Event::RequestTimerReset { kind, duration_ms } => {
                    let at_ms = now_ms.saturating_add_unsigned(duration_ms);
                    self.set_timer(kind, Some(at_ms));
                }
                Event::RequestTimerCancel(kind) => self.set_timer(kind, None),
                Event::NotifyError(error) => ended = Some(MqttReason::of_error(error)),
                Event::RequestClose => {
                    ended.get_or_insert(MqttReason::Closed);
                }
                Event::NotifyPacketIdReleased(_) => {}
            }
        }
        out.extend(ended.map(MqttEvent::Ended));
    }

    fn set_timer(&mut self, kind: TimerKind, at_ms: Option<i64>) {
        match kind {
            TimerKind::PingreqSend => self.ping_at_ms = at_ms,
            TimerKind::PingrespRecv => self.silent_at_ms = at_ms,
            // Brokers wait for it.
            TimerKind::PingreqRecv => {}
        }
    }

    /// Handles a packet of the broker; the error says why the connection ends.
    fn receive(
        &mut self,
        packet: Packet,
        now_ms: i64,
        out: &mut Vec<MqttEvent>,
    ) -> Result<(), MqttReason> {
        if let Packet::V5_0Connack(connack) = &packet {
            MqttReason::of_connack(connack.reason_code())?;
            self.accepted(now_ms, out);
        } else if let Packet::V3_1_1Connack(connack) = &packet {
            MqttReason::of_connack_3(connack.return_code())?;
            self.accepted(now_ms, out);
        } else if let Packet::V5_0Suback(suback) = &packet {
            MqttReason::of_suback(&suback.reason_codes())?;
            out.push(MqttEvent::Ready);
        } else if let Packet::V3_1_1Suback(suback) = &packet {
            MqttReason::of_suback_3(&suback.return_codes())?;
            out.push(MqttEvent::Ready);
        } else if let Packet::V5_0Puback(puback) = &packet {
            let outcome = MqttReason::of_puback(puback.reason_code());
            out.push(MqttEvent::Acknowledged(puback.packet_id(), outcome));
        } else if let Packet::V3_1_1Puback(puback) = &packet {
            out.push(MqttEvent::Acknowledged(puback.packet_id(), Ok(())));
        } else if let Packet::V5_0Publish(publish) = &packet {
            out.push(MqttEvent::Received(received(publish)));
        } else if let Packet::V3_1_1Publish(publish) = &packet {
            out.push(MqttEvent::Received(received_3(publish)));
        } else if let Packet::V5_0Disconnect(disconnect) = &packet {
            return Err(MqttReason::of_disconnect(disconnect.reason_code()));
        }
        Ok(())
    }

    /// Subscribes after a CONNACK, or is ready at once.
    fn accepted(&mut self, now_ms: i64, out: &mut Vec<MqttEvent>) {
        let Some(filter) = self.subscription.clone() else {
            return out.push(MqttEvent::Ready);
        };
        let packet = self
            .connection
            .acquire_packet_id()
            .and_then(|id| subscribe(self.version, &filter, id));
        match packet {
            Ok(packet) => self.send(packet, now_ms, out),
            Err(error) => out.push(MqttEvent::Ended(MqttReason::of_error(error))),
        }
    }
}

fn has_ended(out: &[MqttEvent]) -> bool {
    matches!(out.last(), Some(MqttEvent::Ended(_)))
}

fn error_of(event: &Event) -> Option<MqttError> {
    match event {
        Event::NotifyError(error) => Some(*error),
        Event::NotifyPacketReceived(_)
        | Event::RequestSendPacket { .. }
        | Event::NotifyPacketIdReleased(_)
        | Event::RequestTimerReset { .. }
        | Event::RequestTimerCancel(_)
        | Event::RequestClose => None,
    }
}

fn connect(login: &MqttLogin) -> Result<Packet, MqttError> {
    let id = login.client_id.as_str();
    match login.version {
        MqttVersion::V5 => {
            let mut builder = v5_0::Connect::builder()
                .client_id(id)?
                .clean_start(login.subscription.is_none())
                .keep_alive(login.keep_alive_s);
            if login.subscription.is_some() {
                let expiry = SessionExpiryInterval::new(SESSION_EXPIRY_S)?;
                builder = builder.props(vec![expiry.into()]);
            }
            if let Some(name) = &login.username {
                builder = builder.user_name(name.as_str())?;
            }
            if let Some(password) = &login.password {
                builder = builder.password(password.as_str())?;
            }
            builder.build().map(Into::into)
        }
        MqttVersion::V3 => {
            let mut builder = v3_1_1::Connect::builder()
                .client_id(id)?
                .clean_session(login.subscription.is_none())
                .keep_alive(login.keep_alive_s);
            if let Some(name) = &login.username {
                builder = builder.user_name(name.as_str())?;
            }
            if let Some(password) = &login.password {
                builder = builder.password(password.as_str())?;
            }
            builder.build().map(Into::into)
        }
    }
}

fn publish(
    version: MqttVersion,
    message: &MqttMessage,
    packet_id: u16,
) -> Result<Packet, MqttError> {
    match version {
        MqttVersion::V5 => {
            let mut properties: Properties = vec![
                PayloadFormatIndicator::new(PayloadFormat::String)?.into(),
                ContentType::new("application/json")?.into(),
            ];
            if let Some(correlation) = &message.correlation {
                properties.push(CorrelationData::new(correlation)?.into());
            }
            let builder = v5_0::Publish::builder()
                .topic_name(message.topic.as_str())?
                .qos(Qos::AtLeastOnce)
                .packet_id(packet_id)
                .props(properties)
                .payload(message.payload.as_slice());
            builder.build().map(Into::into)
        }
        MqttVersion::V3 => {
            let builder = v3_1_1::Publish::builder()
                .topic_name(message.topic.as_str())?
                .qos(Qos::AtLeastOnce)
                .packet_id(packet_id)
                .payload(message.payload.as_slice());
            builder.build().map(Into::into)
        }
    }
}

fn subscribe(version: MqttVersion, filter: &str, packet_id: u16) -> Result<Packet, MqttError> {
    let at_least_once = SubOpts::new().set_qos(Qos::AtLeastOnce);
    match version {
        MqttVersion::V5 => {
            let without_retained = at_least_once.set_rh(RetainHandling::DoNotSendRetained);
            let entry = SubEntry::new(filter, without_retained)?;
            let builder = v5_0::Subscribe::builder().packet_id(packet_id);
            builder.entries(vec![entry]).build().map(Into::into)
        }
        MqttVersion::V3 => {
            let entry = SubEntry::new(filter, at_least_once)?;
            let builder = v3_1_1::Subscribe::builder().packet_id(packet_id);
            builder.entries(vec![entry]).build().map(Into::into)
        }
    }
}

fn received(publish: &v5_0::Publish) -> ReceivedMessage {
    let (mut correlation, mut properties) = (None, Vec::new());
    for property in publish.props() {
        if let Property::CorrelationData(data) = property {
            correlation = Some(data.val().to_vec());
        } else if let Property::UserProperty(pair) = property {
            properties.push(pair_of(pair));
        }
    }
    ReceivedMessage {
        message: MqttMessage {
            topic: publish.topic_name().to_owned(),
            payload: publish.payload().as_slice().to_vec(),
            correlation,
        },
        packet_id: publish.packet_id(),
        retained: retained(publish.retain()),
        properties,
    }
}

fn received_3(publish: &v3_1_1::Publish) -> ReceivedMessage {
    ReceivedMessage {
        message: MqttMessage {
            topic: publish.topic_name().to_owned(),
            payload: publish.payload().as_slice().to_vec(),
            correlation: None,
        },
        packet_id: publish.packet_id(),
        retained: retained(publish.retain()),
        properties: Vec::new(),
    }
}

fn pair_of(pair: &UserProperty) -> (String, String) {
    (pair.key().to_owned(), pair.val().to_owned())
}

fn retained(flag: impl Into<bool>) -> Retained {
    match flag.into() {
        true => Retained::Yes,
        false => Retained::No,
    }
}
