//! Who sends to the service and is no known device? A bounded table for the operator.
//!
//! A sender is a stranger if its message names no device and no device has its source address, or
//! several have that of a bare datagram. The table has one row for each endpoint name and IP
//! address; beyond its bound, the row that was noted least recently is dropped. Names are cut off,
//! so the memory is bounded whatever strangers send.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};

use protocol::coap::code::Code;
use protocol::coap::message::Message;

use crate::action::Protocol;
use crate::datagram::Inbound;
use crate::limits::{STRANGER_NAME_BYTES_MAX, STRANGERS_MAX};
use crate::moment::Timestamp;
use crate::peer::Transport;
use crate::route::DeviceOperation;

/// A sender that is no known device.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stranger {
    /// The beginning of the endpoint name that it registers with, if it does.
    pub endpoint: Option<Box<str>>,
    /// Where its last message came from.
    pub address: SocketAddr,
    /// The protocol of its last message.
    pub protocol: Protocol,
    /// What it wanted with its last message.
    pub operation: DeviceOperation,
    /// How its last message was answered; none if it was dropped.
    pub answer: Option<Code>,
    /// When its first message was received.
    pub first_at: Timestamp,
    /// When its last message was received.
    pub last_at: Timestamp,
    /// How many messages were received from it.
    pub count: u64,
}

/// The strangers that an arbiter noted last.
#[derive(Debug, Default)]
pub struct Strangers {
    row_by_key: HashMap<StrangerKey, Row>,
    /// The keys in the order in which they were noted last.
    key_by_turn: BTreeMap<u64, StrangerKey>,
    turns: u64,
    unreported: u64,
}

/// What is reported to the operator's log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StrangerReport {
    /// How many messages of strangers were received since the report before.
    pub count: u64,
    /// The sender of the last one.
    pub example: Stranger,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct StrangerKey {
    endpoint: Option<Box<str>>,
    ip: IpAddr,
}

#[derive(Debug)]
struct Row {
    turn: u64,
    stranger: Stranger,
}

impl Stranger {
    /// The sender of a message that was just received, with its answer.
    pub fn of(arrival: &Inbound, answer: Option<Code>, now: Timestamp) -> Self {
        let peer = arrival.peer();
        let (endpoint, operation) = match arrival {
            Inbound::Message(datagram)
            | Inbound::Ambiguous(datagram)
            | Inbound::BootstrapOnly(datagram) => {
                let operation = DeviceOperation::of(&datagram.message);
                let name = name_in(&datagram.message);
                (
                    name.filter(|_| {
                        [DeviceOperation::Register, DeviceOperation::Bootstrap].contains(&operation)
                    }),
                    operation,
                )
            }
            Inbound::Udp(_) | Inbound::UdpBurst(..) => (None, DeviceOperation::Data),
            Inbound::RefusedHandshake(_) => (None, DeviceOperation::Handshake),
        };
        let protocol = match (peer.transport, operation) {
            (Transport::Udp, _) => Protocol::Udp,
            (
                Transport::Coap | Transport::Coaps,
                DeviceOperation::Data | DeviceOperation::Unknown | DeviceOperation::Handshake,
            ) => Protocol::Coap,
            (
                Transport::Coap | Transport::Coaps,
                DeviceOperation::Register
                | DeviceOperation::Update
                | DeviceOperation::Deregister
                | DeviceOperation::Send
                | DeviceOperation::Notify
                | DeviceOperation::Bootstrap,
            ) => Protocol::Lwm2m,
        };
        Self {
            endpoint,
            address: peer.address,
            protocol,
            operation,
            answer,
            first_at: now,
            last_at: now,
            count: u64::try_from(arrival.datagrams()).unwrap_or(u64::MAX),
        }
    }

    fn key(&self) -> StrangerKey {
        StrangerKey {
            endpoint: self.endpoint.clone(),
            ip: self.address.ip(),
        }
    }

    /// The same stranger with what is known of it from elsewhere.
    fn joined(self, other: Self) -> Self {
        let first_at = self.first_at.min(other.first_at);
        let count = self.count.saturating_add(other.count);
        let latest = match self.last_at > other.last_at {
            true => self,
            false => other,
        };
        Self {
            first_at,
            count,
            ..latest
        }
    }
}

impl Strangers {
    /// Notes a stranger.
    pub fn note(&mut self, seen: Stranger) {
        self.turns += 1;
        self.unreported = self.unreported.saturating_add(seen.count);
        let (turn, key) = (self.turns, seen.key());
        let before = self.row_by_key.remove(&key);
        if let Some(before) = &before {
            self.key_by_turn.remove(&before.turn);
        }
        let stranger = match before {
            Some(before) => before.stranger.joined(seen),
            None => seen,
        };
        self.key_by_turn.insert(turn, key.clone());
        self.row_by_key.insert(key, Row { turn, stranger });
        if self.row_by_key.len() > STRANGERS_MAX
            && let Some((_, oldest)) = self.key_by_turn.pop_first()
        {
            self.row_by_key.remove(&oldest);
        }
    }

    /// The strangers, the latest first.
    pub fn list(&self) -> Vec<Stranger> {
        let keys = self.key_by_turn.values().rev();
        let rows = keys.filter_map(|key| self.row_by_key.get(key));
        rows.map(|row| row.stranger.clone()).collect()
    }

    /// Takes what was not reported yet, if there is anything.
    pub fn take_report(&mut self) -> Option<StrangerReport> {
        let count = std::mem::take(&mut self.unreported);
        let (_, key) = self.key_by_turn.last_key_value()?;
        let example = self.row_by_key.get(key)?.stranger.clone();
        (count > 0).then_some(StrangerReport { count, example })
    }
}

/// The strangers of several arbiters, the latest first, within the bound of one.
pub fn merged(lists: impl IntoIterator<Item = Vec<Stranger>>) -> Vec<Stranger> {
    let mut stranger_by_key: HashMap<StrangerKey, Stranger> = HashMap::new();
    for stranger in lists.into_iter().flatten() {
        let key = stranger.key();
        let joined = match stranger_by_key.remove(&key) {
            Some(before) => before.joined(stranger),
            None => stranger,
        };
        stranger_by_key.insert(key, joined);
    }
    let mut strangers: Vec<Stranger> = stranger_by_key.into_values().collect();
    let place = |it: &Stranger| {
        (
            std::cmp::Reverse(it.last_at),
            it.endpoint.clone(),
            it.address,
        )
    };
    strangers.sort_by_key(place);
    strangers.truncate(STRANGERS_MAX);
    strangers
}

/// The beginning of the endpoint name in a registration.
fn name_in(message: &Message) -> Option<Box<str>> {
    let mut queries = message.uri_query();
    let name = queries.find_map(|query| query.strip_prefix("ep="))?;
    Some(name[..name.floor_char_boundary(STRANGER_NAME_BYTES_MAX)].into())
}

#[cfg(test)]
mod tests {
    use protocol::coap::message::{MessageId, MessageKind};
    use protocol::coap::token::Token;

    use super::*;
    use crate::datagram::{Datagram, UdpDatagram};
    use crate::peer::Peer;

    #[test]
    fn messages_of_a_stranger_are_one_row() {
        let mut strangers = Strangers::default();
        strangers.note(registration("metre", "10.0.0.1:5683", 1));
        strangers.note(registration("other", "10.0.0.1:5683", 2));
        strangers.note(registration("metre", "10.0.0.1:7777", 3));
        let [metre, other] = strangers.list().try_into().unwrap();
        assert_eq!(other.endpoint.as_deref(), Some("other"));
        let expected = Stranger {
            endpoint: Some("metre".into()),
            address: "10.0.0.1:7777".parse().unwrap(),
            protocol: Protocol::Lwm2m,
            operation: DeviceOperation::Register,
            answer: Some(Code::FORBIDDEN),
            first_at: at(1),
            last_at: at(3),
            count: 2,
        };
        assert_eq!(metre, expected);
    }

    #[test]
    fn the_table_is_bounded_and_drops_the_row_that_was_noted_least_recently() {
        let mut strangers = Strangers::default();
        let name = |n: usize| format!("{n}-{}", "é".repeat(200));
        for n in 0..STRANGERS_MAX {
            strangers.note(registration(&name(n), "10.0.0.1:5683", 1));
        }
        strangers.note(registration(&name(0), "10.0.0.1:5683", 2));
        strangers.note(registration("one more", "10.0.0.1:5683", 3));
        let list = strangers.list();
        assert_eq!(list.len(), STRANGERS_MAX);
        assert_eq!(strangers.row_by_key.len(), strangers.key_by_turn.len());
        let names: Vec<&str> = list
            .iter()
            .filter_map(|it| it.endpoint.as_deref())
            .collect();
        assert!(
            names
                .iter()
                .all(|name| name.len() <= STRANGER_NAME_BYTES_MAX)
        );
        assert_eq!(names[0], "one more");
        assert!(names[1].starts_with("0-é"), "{}", names[1]);
        assert!(!names.iter().any(|name| name.starts_with("1-")));
    }

    #[test]
    fn a_bare_datagram_and_other_requests_have_no_name() {
        let peer = Peer::bare("10.0.0.1:4445".parse().unwrap());
        let bare = |number| UdpDatagram {
            number,
            peer,
            bytes: b"on".to_vec(),
        };
        let burst = Inbound::UdpBurst(bare(1), vec![bare(2)]);
        let stranger = Stranger::of(&burst, None, at(0));
        assert_eq!((stranger.endpoint, stranger.count), (None, 2));
        assert_eq!(stranger.protocol, Protocol::Udp);
        let data = request(&[], "ep=metre", "10.0.0.1:5683");
        let stranger = Stranger::of(&data, Some(Code::UNAUTHORIZED), at(0));
        assert_eq!(
            (stranger.endpoint, stranger.protocol),
            (None, Protocol::Coap)
        );
        assert_eq!(stranger.operation, DeviceOperation::Data);
    }

    #[test]
    fn a_report_has_the_count_since_the_one_before_and_the_latest_stranger() {
        let mut strangers = Strangers::default();
        assert_eq!(strangers.take_report(), None);
        strangers.note(registration("first", "10.0.0.1:5683", 1));
        strangers.note(registration("second", "10.0.0.1:5683", 2));
        let report = strangers.take_report().unwrap();
        assert_eq!(report.count, 2);
        assert_eq!(report.example.endpoint.as_deref(), Some("second"));
        assert_eq!(strangers.take_report(), None);
        assert_eq!(strangers.list().len(), 2);
    }

    #[test]
    fn the_rows_of_a_stranger_at_two_arbiters_are_joined() {
        let [mut here, mut there] = [Strangers::default(), Strangers::default()];
        here.note(registration("metre", "10.0.0.1:1", 1));
        there.note(registration("metre", "10.0.0.1:2", 4));
        there.note(registration("other", "10.0.0.1:2", 5));
        here.note(registration("metre", "10.0.0.1:3", 3));
        let [other, metre] = merged([here.list(), there.list()]).try_into().unwrap();
        assert_eq!(other.endpoint.as_deref(), Some("other"));
        let address = "10.0.0.1:2".parse().unwrap();
        assert_eq!((metre.count, metre.address), (3, address));
        assert_eq!((metre.first_at, metre.last_at), (at(1), at(4)));
    }

    fn registration(name: &str, from: &str, s: i64) -> Stranger {
        let arrival = request(&["rd"], &format!("ep={name}"), from);
        Stranger::of(&arrival, Some(Code::FORBIDDEN), at(s))
    }

    fn request(path: &[&str], query: &str, from: &str) -> Inbound {
        let (id, token) = (MessageId(7), Token::EMPTY);
        let message = Message::request(MessageKind::Confirmable, Code::POST, id, token);
        Inbound::Message(Datagram::new(
            0,
            Peer::plain(from.parse().unwrap()),
            message.with_uri_path(path).with_uri_query([query]),
        ))
    }

    fn at(s: i64) -> Timestamp {
        Timestamp::default().plus_s(s)
    }
}
