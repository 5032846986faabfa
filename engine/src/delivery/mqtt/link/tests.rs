//! Does a link send what it should, and report what became of it? Against a broker of the test that
//! speaks MQTT 3.1.1, whose packets are short.

use super::*;
use crate::action::Protocol;
use crate::delivery::destination::JsonPayload;
use protocol::mqtt::MqttVersion;

const NOON: i64 = 1_795_521_600_000;

/// CONNACK: accepted, and not authorized.
const ACCEPTED: [u8; 4] = [0x20, 2, 0, 0];
const NOT_AUTHORIZED: [u8; 4] = [0x20, 2, 0, 5];

/// SUBACK of the first packet identifier, at QoS 1.
const SUBSCRIBED: [u8; 5] = [0x90, 3, 0, 1, 1];

#[test]
fn a_link_connects_when_there_is_something_to_publish() {
    let mut it = Fixture::new(BrokerCommands::Off);
    assert_eq!(it.link.next_timeout(), None);
    it.publish(1);
    assert_eq!(it.out, [MqttLinkEffect::Open]);
    it.opened();
    assert_eq!(it.kinds(), ["CONNECT"]);
    it.receive(&ACCEPTED);
    assert_eq!(it.kinds(), ["PUBLISH n=1"]);
    it.receive(&puback(1));
    assert_eq!(it.settled(), [(1, Ok(()))]);
}

#[test]
fn messages_are_published_in_order_and_settled_each_by_its_acknowledgement() {
    let mut it = Fixture::ready(BrokerCommands::Off);
    for number in 2..=4 {
        it.publish(number);
    }
    assert_eq!(it.kinds(), ["PUBLISH n=2", "PUBLISH n=3", "PUBLISH n=4"]);
    let ids = it.written().map(packet_id).collect::<Vec<_>>();
    it.receive(&[puback(ids[1]), puback(ids[0])].concat());
    assert_eq!(it.settled(), [(3, Ok(())), (2, Ok(()))]);
}

#[test]
fn what_is_not_acknowledged_is_published_again_in_order_on_the_next_connection() {
    let mut it = Fixture::ready(BrokerCommands::Off);
    it.publish(2);
    it.publish(3);
    it.out.clear();
    it.act(|link, m, out| link.handle_closed(m, out));
    assert_eq!(it.out, [MqttLinkEffect::Close]);
    assert_eq!(it.settled(), []);
    it.out.clear();
    it.publish(4);
    assert_eq!(it.out, [], "the back-off is not over");
    it.retry();
    it.receive(&ACCEPTED);
    assert_eq!(it.kinds(), ["PUBLISH n=2", "PUBLISH n=3", "PUBLISH n=4"]);
}

#[test]
fn a_refused_client_settles_what_waits_with_the_reason() {
    let mut it = Fixture::new(BrokerCommands::Off);
    it.publish(1);
    it.opened();
    it.out.clear();
    it.receive(&NOT_AUTHORIZED);
    let why = "the broker refused the connection: not authorized";
    assert_eq!(it.out[0], MqttLinkEffect::Close);
    assert_eq!(it.settled(), [(1, Err(why.into()))]);
    assert_eq!(it.link.next_timeout(), None, "nothing waits");
}

#[test]
fn a_broker_that_is_away_is_tried_again_until_the_time_is_over() {
    let mut it = Fixture::new(BrokerCommands::Off);
    it.publish(1);
    let mut waits = Vec::new();
    while it.settled().is_empty() {
        let away = ("the host does not accept connections", Unopened::Away);
        if it.out.contains(&MqttLinkEffect::Open) {
            it.out.clear();
            it.act(|link, m, out| link.handle_unopened(m, away, out));
        }
        let due = it.link.next_timeout().unwrap();
        waits.push(due.as_ms() - it.now_ms);
        it.now_ms = due.as_ms();
        it.act(|link, m, out| link.handle_timeout(m, out));
    }
    let why = "the host does not accept connections";
    assert_eq!(it.settled(), [(1, Err(why.into()))]);
    assert_eq!(waits.iter().sum::<i64>(), 20_000);
    for (wait, most) in waits.iter().zip([1_000, 2_000, 4_000, 8_000]) {
        assert!((most / 2..=most).contains(wait), "{waits:?}");
    }
}

#[test]
fn a_broker_that_acknowledges_nothing_is_connected_to_anew() {
    let mut it = Fixture::ready(BrokerCommands::Off);
    it.publish(2);
    it.out.clear();
    it.pass(20_000);
    assert_eq!(it.settled(), [(2, Err(LATE.into()))]);
    assert!(it.out.contains(&MqttLinkEffect::Close));
}

#[test]
fn a_broker_that_does_not_answer_a_ping_is_left() {
    let mut it = Fixture::ready(BrokerCommands::Off);
    it.pass(30_000);
    assert_eq!(it.kinds(), ["PINGREQ"]);
    it.pass(10_000);
    assert_eq!(it.out, [MqttLinkEffect::Close]);
}

#[test]
fn a_closed_link_takes_leave_and_settles_what_waits() {
    let mut it = Fixture::ready(BrokerCommands::Off);
    it.publish(2);
    it.out.clear();
    it.act(|link, m, out| link.close(m, out));
    assert_eq!(it.kinds(), ["DISCONNECT"]);
    assert_eq!(it.settled(), [(2, Err(CHANGED.into()))]);
    assert_eq!(it.link.next_timeout(), None);
}

#[test]
fn a_retired_link_without_commands_leaves_no_session_to_end() {
    let mut it = Fixture::ready(BrokerCommands::Off);
    it.out.clear();
    it.act(|link, m, out| link.retire(m, out));
    assert_eq!(it.kinds(), ["DISCONNECT"]);
    assert!(it.link.is_over());
    assert_eq!(it.link.next_timeout(), None);
}

#[test]
fn a_retired_link_with_commands_connects_once_more_with_a_clean_session() {
    let mut it = Fixture::ready(BrokerCommands::On);
    it.out.clear();
    it.act(|link, m, out| link.retire(m, out));
    assert_eq!(it.kinds(), ["DISCONNECT"]);
    assert_eq!(it.out.last(), Some(&MqttLinkEffect::Open));
    assert!(!it.link.is_over());
    // The broker is away for a moment.
    it.act(|link, m, out| link.handle_unopened(m, ("away", Unopened::Away), out));
    it.out.clear();
    it.retry();
    let connects: Vec<u8> = it.written().flatten().copied().collect();
    const CLEAN_SESSION: u8 = 0x02;
    assert_eq!(connects[9], CLEAN_SESSION, "the flags of CONNECT");
    it.out.clear();
    it.receive(&ACCEPTED);
    assert_eq!(it.kinds(), ["DISCONNECT"], "it does not subscribe");
    assert!(it.link.is_over());
    assert_eq!(it.link.next_timeout(), None);
}

#[test]
fn a_retired_link_gives_up_a_broker_that_stays_away_or_refuses_it() {
    for why in [Unopened::Away, Unopened::Refused] {
        let mut it = Fixture::ready(BrokerCommands::On);
        it.act(|link, m, out| link.retire(m, out));
        while !it.link.is_over() {
            if it.out.contains(&MqttLinkEffect::Open) {
                it.out.clear();
                it.act(|link, m, out| link.handle_unopened(m, ("no", why), out));
            } else {
                let due = it.link.next_timeout().unwrap();
                it.now_ms = due.as_ms();
                it.act(|link, m, out| link.handle_timeout(m, out));
            }
        }
        let waited_ms = match why {
            Unopened::Away => 20_000,
            Unopened::Refused => 0,
        };
        assert_eq!(it.now_ms, NOON + waited_ms);
        assert_eq!(it.link.next_timeout(), None);
    }
}

#[test]
fn the_status_says_why_a_connection_was_lost_until_a_message_is_acknowledged() {
    let mut it = Fixture::ready(BrokerCommands::Off);
    let status = |it: &Fixture| {
        let status = it.link.status();
        (status.is_connected, status.fault.map(String::from))
    };
    assert_eq!(status(&it), (true, None));
    it.publish(2);
    it.act(|link, m, out| link.handle_closed(m, out));
    let closed = Some(MqttReason::Closed.to_string());
    assert_eq!(status(&it), (false, closed.clone()));
    it.retry();
    assert_eq!(
        status(&it),
        (false, closed.clone()),
        "it is not accepted yet"
    );
    it.receive(&ACCEPTED);
    assert_eq!(status(&it), (true, closed));
    let id = it.written().last().map(packet_id).unwrap();
    it.receive(&puback(id));
    assert_eq!(status(&it), (true, None));
}

#[test]
fn commands_are_performed_one_by_one_and_acknowledged_behind_their_answers() {
    let mut it = Fixture::new(BrokerCommands::On);
    it.act(|link, m, out| link.handle_timeout(m, out));
    assert_eq!(
        it.out,
        [MqttLinkEffect::Open],
        "commands may come at any time"
    );
    it.opened();
    it.receive(&ACCEPTED);
    assert_eq!(it.kinds(), ["SUBSCRIBE"]);
    it.receive(&SUBSCRIBED);
    let commands = [command("a%2Bb", 7, 0), command("c", 8, 0)];
    it.receive(&commands.concat());
    let performed = it.performed();
    assert_eq!(performed.len(), 1);
    assert_eq!(&*performed[0].topic.level, "a%2Bb");
    assert_eq!(performed[0].topic.protocol, Some(Protocol::Udp));
    assert_eq!(performed[0].body, b"{}");
    it.out.clear();
    it.act(|link, m, out| link.handle_answer(m, b"1".to_vec(), out));
    assert_eq!(it.kinds(), ["PUBLISH 1", "PUBACK 7"]);
    assert_eq!(&*it.performed()[0].topic.level, "c");
}

#[test]
fn the_answer_to_a_command_of_an_earlier_connection_is_dropped() {
    let mut it = Fixture::ready(BrokerCommands::On);
    it.receive(&command("a", 7, 0));
    it.act(|link, m, out| link.handle_closed(m, out));
    it.retry();
    it.receive(&ACCEPTED);
    it.receive(&SUBSCRIBED);
    // The broker sends it again; it waits until the first one is done.
    it.out.clear();
    it.receive(&command("a", 9, 0));
    assert_eq!(it.performed(), []);
    it.act(|link, m, out| link.handle_answer(m, b"1".to_vec(), out));
    assert_eq!(it.kinds(), Vec::<String>::new());
    assert_eq!(it.performed().len(), 1);
    it.out.clear();
    it.act(|link, m, out| link.handle_answer(m, b"2".to_vec(), out));
    assert_eq!(it.kinds(), ["PUBLISH 2", "PUBACK 9"]);
}

#[test]
fn a_retained_command_is_acknowledged_and_not_performed() {
    let mut it = Fixture::ready(BrokerCommands::On);
    it.receive(&command("a", 7, 1));
    assert_eq!(it.kinds(), ["PUBACK 7"]);
    assert_eq!(it.performed(), []);
}

#[test]
fn malformed_bytes_end_the_connection() {
    let mut it = Fixture::ready(BrokerCommands::Off);
    it.receive(&[0x00, 0x00]);
    assert_eq!(it.out, [MqttLinkEffect::Close]);
    let mut it = Fixture::ready(BrokerCommands::Off);
    it.receive(&[0x30, 0xff, 0xff, 0xff, 0x7f]);
    assert_eq!(
        it.out,
        [MqttLinkEffect::Close],
        "nothing that long is received"
    );
}

#[test]
fn a_client_identifier_is_one_that_every_broker_accepts() {
    for id in [[0; 16], [5; 16], [255; 16]] {
        let id = client_id(DestinationId::from_bytes(id));
        assert_eq!(id.len(), 23);
        assert!(id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
    }
    let [one, other] = [[1; 16], [2; 16]].map(|id| client_id(DestinationId::from_bytes(id)));
    assert_ne!(one, other);
}

/// At least once and in order, whatever becomes of the connections.
#[test]
fn a_broker_has_every_settled_message_and_each_sender_in_order() {
    for seed in 0..300 {
        let mut world = World::new(seed);
        world.run();
        world.check();
    }
}

/// A link, and the effects it left.
struct Fixture {
    link: MqttLink<u32>,
    now_ms: i64,
    out: Vec<MqttLinkEffect<u32>>,
}

impl Fixture {
    fn new(commands: BrokerCommands) -> Self {
        Self {
            link: MqttLink::new(rules(commands)),
            now_ms: NOON,
            out: Vec::new(),
        }
    }

    /// A link that published message 1 if it has no subscription, or is subscribed.
    fn ready(commands: BrokerCommands) -> Self {
        let mut it = Self::new(commands);
        match commands {
            BrokerCommands::Off => it.publish(1),
            BrokerCommands::On => it.act(|link, m, out| link.handle_timeout(m, out)),
        }
        it.opened();
        it.receive(&ACCEPTED);
        match commands {
            BrokerCommands::Off => it.receive(&puback(1)),
            BrokerCommands::On => it.receive(&SUBSCRIBED),
        }
        it.out.clear();
        it
    }

    fn act(
        &mut self,
        act: impl FnOnce(&mut MqttLink<u32>, &mut Moment, &mut Vec<MqttLinkEffect<u32>>),
    ) {
        let m = &mut Moment::new(Timestamp::from_ms(self.now_ms), 7);
        act(&mut self.link, m, &mut self.out);
    }

    fn publish(&mut self, number: u32) {
        self.act(|link, m, out| link.publish(m, publication(number), number, out));
    }

    fn opened(&mut self) {
        self.out.clear();
        self.act(|link, m, out| link.handle_opened(m, out));
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.out.clear();
        self.act(|link, m, out| link.handle_bytes(m, bytes, out));
    }

    fn pass(&mut self, ms: i64) {
        self.now_ms += ms;
        self.out.clear();
        self.act(|link, m, out| link.handle_timeout(m, out));
    }

    /// Connects anew once the back-off is over; a link without messages has no reason to.
    fn retry(&mut self) {
        let due = self.link.next_timeout().unwrap();
        self.now_ms = due.as_ms();
        self.out.clear();
        self.act(|link, m, out| link.handle_timeout(m, out));
        assert_eq!(self.out, [MqttLinkEffect::Open]);
        self.opened();
    }

    /// The packets that were written.
    fn written(&self) -> impl Iterator<Item = &[u8]> {
        self.out.iter().filter_map(|effect| match effect {
            MqttLinkEffect::Write(bytes) => Some(bytes.as_slice()),
            MqttLinkEffect::Open
            | MqttLinkEffect::Close
            | MqttLinkEffect::Settle(..)
            | MqttLinkEffect::Perform(_) => None,
        })
    }

    fn kinds(&self) -> Vec<String> {
        self.written().map(kind).collect()
    }

    fn settled(&self) -> Vec<(u32, Result<(), Box<str>>)> {
        let settled = self.out.iter().filter_map(|effect| match effect {
            MqttLinkEffect::Settle(number, outcome) => Some((*number, outcome.clone())),
            MqttLinkEffect::Open
            | MqttLinkEffect::Close
            | MqttLinkEffect::Write(_)
            | MqttLinkEffect::Perform(_) => None,
        });
        settled.collect()
    }

    fn performed(&self) -> Vec<BrokerCommand> {
        let performed = self.out.iter().filter_map(|effect| match effect {
            MqttLinkEffect::Perform(command) => Some((**command).clone()),
            MqttLinkEffect::Open
            | MqttLinkEffect::Close
            | MqttLinkEffect::Write(_)
            | MqttLinkEffect::Settle(..) => None,
        });
        performed.collect()
    }
}

/// A link with senders that each publish one message after the other, and a broker whose
/// connections break at any byte.
struct World {
    fixture: Fixture,
    random: Moment,
    /// What is written to the broker and not received there yet.
    to_broker: Vec<u8>,
    /// Whether there is a connection.
    is_open: bool,
    /// The messages that the broker has, in order, repeated ones included.
    published: Vec<u32>,
    /// The next message of each sender, and whether it is in flight.
    senders: [(u32, bool); SENDERS],
    settled: Vec<u32>,
}

const SENDERS: usize = 4;

/// Messages of one sender: a message is its number and a multiple of the sender's.
const MESSAGES: u32 = 12;

impl World {
    fn new(seed: u128) -> Self {
        Self {
            fixture: Fixture::new(BrokerCommands::Off),
            random: Moment::new(Timestamp::from_ms(0), seed << 8 | 7),
            to_broker: Vec::new(),
            is_open: false,
            published: Vec::new(),
            senders: [(0, false); SENDERS],
            settled: Vec::new(),
        }
    }

    /// Acts by chance, and towards the end without faults.
    fn run(&mut self) {
        for step in 0..20_000 {
            if self.senders.iter().all(|(next, _)| *next == MESSAGES) {
                return;
            }
            let chance = self.random.next_u32() % 100;
            match chance {
                0..40 => self.send(),
                40..80 => self.receive(),
                80..85 if step < 10_000 => self.break_off(),
                _ => self.wait(),
            }
            self.perform();
        }
        panic!("not every message was settled");
    }

    fn send(&mut self) {
        let sender = self.random.next_u32() as usize % SENDERS;
        let (next, is_under_way) = self.senders[sender];
        if !is_under_way && next < MESSAGES {
            self.senders[sender].1 = true;
            self.fixture.publish(number_of(sender, next));
        }
    }

    /// The broker receives some bytes and answers the packets they complete.
    fn receive(&mut self) {
        if !self.is_open {
            return;
        }
        let Some(length) = first_length(&self.to_broker) else {
            return;
        };
        let packet: Vec<u8> = self.to_broker.drain(..length).collect();
        let answer = match kind(&packet).split_once(' ') {
            None if kind(&packet) == "CONNECT" => ACCEPTED.to_vec(),
            Some(("PUBLISH", text)) => {
                let number = text.strip_prefix("n=").unwrap();
                self.published.push(number.parse().unwrap());
                puback(packet_id(&packet)).to_vec()
            }
            _ => Vec::new(),
        };
        // The answer may be lost with the connection.
        if self.random.next_u32().is_multiple_of(8) {
            return self.break_off();
        }
        self.fixture
            .act(|link, m, out| link.handle_bytes(m, &answer, out));
    }

    fn break_off(&mut self) {
        if self.is_open {
            self.fixture.act(|link, m, out| link.handle_closed(m, out));
        }
    }

    fn wait(&mut self) {
        self.fixture.now_ms += i64::from(self.random.next_u32() % 400);
        self.fixture.act(|link, m, out| link.handle_timeout(m, out));
    }

    fn perform(&mut self) {
        while !self.fixture.out.is_empty() {
            for effect in std::mem::take(&mut self.fixture.out) {
                match effect {
                    MqttLinkEffect::Open if self.random.next_u32().is_multiple_of(4) => {
                        let away = ("away", Unopened::Away);
                        self.fixture
                            .act(|link, m, out| link.handle_unopened(m, away, out));
                    }
                    MqttLinkEffect::Open => {
                        self.is_open = true;
                        self.fixture.act(|link, m, out| link.handle_opened(m, out));
                    }
                    MqttLinkEffect::Write(bytes) => self.to_broker.extend(bytes),
                    MqttLinkEffect::Close => {
                        self.is_open = false;
                        self.to_broker.clear();
                    }
                    MqttLinkEffect::Settle(number, outcome) => self.settle(number, &outcome),
                    MqttLinkEffect::Perform(_) => unreachable!("nothing is subscribed"),
                }
            }
        }
    }

    /// A forwarder tries a failed message again, before any later one of its sender.
    fn settle(&mut self, number: u32, outcome: &Result<(), Box<str>>) {
        let sender = number as usize % SENDERS;
        self.senders[sender].1 = false;
        if outcome.is_ok() {
            self.senders[sender].0 += 1;
            self.settled.push(number);
        }
    }

    fn check(&self) {
        for number in &self.settled {
            assert!(self.published.contains(number), "{number} was acknowledged");
        }
        for sender in 0..SENDERS {
            let of_sender = |it: &&u32| **it as usize % SENDERS == sender;
            let mut first = Vec::new();
            for number in self.published.iter().filter(of_sender) {
                if !first.contains(number) {
                    first.push(*number);
                }
            }
            let expected: Vec<u32> = (0..MESSAGES).map(|next| number_of(sender, next)).collect();
            assert_eq!(first, expected);
        }
    }
}

fn number_of(sender: usize, next: u32) -> u32 {
    next * SENDERS as u32 + sender as u32
}

fn rules(commands: BrokerCommands) -> MqttLinkRules {
    let broker = Broker {
        url: "mqtts://broker.example.com".into(),
        topic_prefix: "t".into(),
        version: MqttVersion::V3,
        username: None,
        password: None,
        ca: None,
        certificate: None,
        commands,
        json: JsonPayload::AsText,
    };
    let id = DestinationId::from_bytes([5; 16]);
    MqttLinkRules::of((id, &broker), None, 20_000).unwrap()
}

fn publication(number: u32) -> Publication {
    Publication {
        topic: "t".into(),
        payload: format!("n={number}").into_bytes(),
    }
}

/// The name of a packet, with what it says or acknowledges.
fn kind(packet: &[u8]) -> String {
    let id = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    match packet[0] >> 4 {
        1 => "CONNECT".to_owned(),
        3 => {
            let topic = usize::from(id(2));
            format!("PUBLISH {}", String::from_utf8_lossy(&packet[6 + topic..]))
        }
        4 => format!("PUBACK {}", id(2)),
        8 => "SUBSCRIBE".to_owned(),
        12 => "PINGREQ".to_owned(),
        14 => "DISCONNECT".to_owned(),
        other => format!("packet {other}"),
    }
}

/// The packet identifier of a PUBLISH.
fn packet_id(packet: &[u8]) -> u16 {
    let at = 4 + usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    u16::from_be_bytes([packet[at], packet[at + 1]])
}

/// The length of the first packet, if it is there as a whole; all are short.
fn first_length(bytes: &[u8]) -> Option<usize> {
    let length = 2 + usize::from(*bytes.get(1)?);
    (bytes.len() >= length).then_some(length)
}

fn puback(id: u16) -> [u8; 4] {
    let [high, low] = id.to_be_bytes();
    [0x40, 2, high, low]
}

/// A PUBLISH at QoS 1 of a command over UDP.
fn command(device: &str, id: u16, retain: u8) -> Vec<u8> {
    let topic = format!("t/{device}/actions/UDP");
    let mut body = u16::try_from(topic.len()).unwrap().to_be_bytes().to_vec();
    body.extend(topic.as_bytes());
    body.extend(id.to_be_bytes());
    body.extend(b"{}");
    let mut packet = vec![0x32 | retain, u8::try_from(body.len()).unwrap()];
    packet.extend(body);
    packet
}
