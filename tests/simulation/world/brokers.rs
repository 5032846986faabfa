//! How events reach the brokers of customers: the link of each forwarder, its connection, and a
//! broker that acknowledges, refuses, is silent, or ends the connection at any point.
//!
//! A crash takes the links with the forwarders, the receipts and the rest of the service. What was
//! written before may still reach the broker.

use engine::delivery::destination::{Broker, BrokerCommands, JsonPayload};
use engine::delivery::forwarding::{DeliveryOutcome, FailedDelivery};
use engine::delivery::mqtt::link::{
    MqttLink, MqttLinkEffect, MqttLinkRules, Publication, Unopened,
};
use engine::ids::DestinationId;
use engine::moment::Timestamp;
use engine::{MqttVersion, delivery::backlog::Sequence};

use super::World;
use crate::endpoints::TIMEOUT_MS;
use crate::event::{BrokerConnection, Event, EventsInTransit};
use crate::laws::delivering;
use crate::trace::TraceEvent;

/// How long bytes take in either direction; they keep their order.
const WIRE_MS: i64 = 5;

/// CONNACK: accepted, without properties.
const ACCEPTED: [u8; 5] = [0x20, 3, 0, 0, 0];

/// The reason code of a PUBACK that refuses a message: not authorized.
const NOT_AUTHORIZED: u8 = 0x87;

/// The link of a running forwarder.
pub(super) struct RunningLink {
    machine: MqttLink<EventsInTransit>,
    /// The number of its forwarder.
    number: u64,
    /// The number of the connection that is open or wanted.
    connection: u64,
    is_open: bool,
    armed_at: Option<Timestamp>,
}

impl World {
    /// A forwarder of a broker starts, with a link of its own.
    pub(super) fn start_link(&mut self, id: DestinationId, number: u64) {
        if !self.endpoints.is_broker(id) {
            return;
        }
        let link = RunningLink {
            machine: MqttLink::new(rules(id)),
            number,
            connection: 0,
            is_open: false,
            armed_at: None,
        };
        self.links.insert(id, link);
    }

    /// An event is published.
    pub(super) fn publish(&mut self, parcel: EventsInTransit, who: usize) {
        let mut payload = parcel.waiting[0].sequence.0.to_be_bytes().to_vec();
        payload.extend(u64::try_from(who).unwrap().to_be_bytes());
        let publication = Publication {
            topic: "t".into(),
            payload,
        };
        let (id, generation) = (parcel.id, parcel.generation);
        self.step_link(id, generation, |link, m, out| {
            link.publish(m, publication, parcel, out);
        });
    }

    pub(super) fn link_connects(&mut self, at: BrokerConnection) {
        let now_ms = self.now_ms;
        let reception = self.endpoints.receive(at.id, now_ms, None, &mut self.rng);
        let Some(link) = self.link_of(at) else {
            return;
        };
        if reception.is_taken {
            link.is_open = true;
            self.step_link(at.id, at.number, MqttLink::handle_opened);
        } else {
            let why = (reception.answer.unwrap_or("away"), Unopened::Away);
            self.step_link(at.id, at.number, |link, m, out| {
                link.handle_unopened(m, why, out);
            });
        }
    }

    /// A packet of the service reaches its broker.
    pub(super) fn broker_reads(&mut self, at: BrokerConnection, packet: &[u8]) {
        let is_there = self.link_of(at).is_some();
        // What was written before a connection ended may still arrive.
        if !is_there && self.rng.below(2) == 0 {
            return;
        }
        match packet[0] >> 4 {
            CONNECT => self.broker_writes(at, WIRE_MS, ACCEPTED.to_vec()),
            PUBLISH => self.broker_receives(at, packet),
            // The broker ends connections on which nothing happens.
            PINGREQ => self.broker_writes(at, WIRE_MS, Vec::new()),
            _ => {}
        }
    }

    fn broker_receives(&mut self, at: BrokerConnection, packet: &[u8]) {
        // Each ends a connection with all that is on it: rarer than the loss of a datagram.
        if self.rng.below(2_000) < u32::from(self.faults.lost_percent) {
            self.census.broken_before_a_message += 1;
            return self.broker_writes(at, WIRE_MS, Vec::new());
        }
        let (packet_id, sequence, who) = published(packet);
        let (id, now_ms) = (at.id, self.now_ms);
        let reception = self.endpoints.receive(id, now_ms, Some(who), &mut self.rng);
        self.census.count_reception(&reception);
        let how = reception.answer.unwrap_or("does not acknowledge");
        self.note(TraceEvent::Tried {
            id,
            sequence: sequence.0,
            how,
        });
        if reception.is_taken {
            self.census.broker_received += 1;
            let device = self.disk.durable.key(who);
            let (ledgers, durable) = (&mut self.laws.ledgers, &self.disk.durable);
            let verdict = delivering::a_broker_receives_events_in_order(
                ledgers,
                id,
                (device, sequence),
                durable,
            );
            self.check(verdict);
        }
        let [high, low] = packet_id.to_be_bytes();
        let acknowledgement = match (reception.answer, reception.is_taken) {
            (Some(_), true) => vec![0x40, 2, high, low],
            (Some(_), false) => vec![0x40, 4, high, low, NOT_AUTHORIZED, 0],
            // It is lost with the connection.
            (None, _) => Vec::new(),
        };
        self.broker_writes(at, reception.after_ms.max(WIRE_MS), acknowledgement);
    }

    fn broker_writes(&mut self, at: BrokerConnection, after_ms: i64, bytes: Vec<u8>) {
        let event = Event::LinkReads { at, bytes };
        self.queue.push(self.now_ms + after_ms, event);
    }

    /// Bytes of the broker reach the link; none if it ends the connection.
    pub(super) fn link_reads(&mut self, at: BrokerConnection, bytes: &[u8]) {
        if self.link_of(at).is_none() {
            return;
        }
        match bytes {
            [] => self.step_link(at.id, at.number, MqttLink::handle_closed),
            bytes => self.step_link(at.id, at.number, |link, m, out| {
                link.handle_bytes(m, bytes, out);
            }),
        }
    }

    pub(super) fn link_due(&mut self, id: DestinationId, number: u64) {
        let now = Timestamp::from_ms(self.now_ms);
        if let Some(link) = self.links.get_mut(&id).filter(|it| it.number == number) {
            link.armed_at.take_if(|armed_at| *armed_at <= now);
            self.step_link(id, number, MqttLink::handle_timeout);
        }
    }

    fn link_of(&mut self, at: BrokerConnection) -> Option<&mut RunningLink> {
        let link = self.links.get_mut(&at.id)?;
        (link.number == at.number && link.connection == at.connection).then_some(link)
    }

    /// The link of a forwarder takes a step, if it is still this one.
    fn step_link(
        &mut self,
        id: DestinationId,
        number: u64,
        act: impl FnOnce(
            &mut MqttLink<EventsInTransit>,
            &mut engine::moment::Moment,
            &mut Vec<MqttLinkEffect<EventsInTransit>>,
        ),
    ) {
        let mut m = self.moment();
        let Some(link) = self.links.get_mut(&id).filter(|it| it.number == number) else {
            return;
        };
        let mut out = Vec::new();
        act(&mut link.machine, &mut m, &mut out);
        for effect in out {
            self.perform_for_link(id, number, effect);
        }
        self.arm_link(id, number);
    }

    fn perform_for_link(
        &mut self,
        id: DestinationId,
        number: u64,
        effect: MqttLinkEffect<EventsInTransit>,
    ) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        match effect {
            MqttLinkEffect::Open => {
                link.connection += 1;
                let at = BrokerConnection {
                    id,
                    number,
                    connection: link.connection,
                };
                let at_ms = self.now_ms + 1 + i64::from(self.rng.below(40));
                self.queue.push(at_ms, Event::LinkConnects { at });
            }
            MqttLinkEffect::Write(packet) if link.is_open => {
                let at = BrokerConnection {
                    id,
                    number,
                    connection: link.connection,
                };
                let event = Event::BrokerReads { at, packet };
                self.queue.push(self.now_ms + WIRE_MS, event);
            }
            MqttLinkEffect::Write(_) => {}
            MqttLinkEffect::Close => {
                link.is_open = false;
                link.connection += 1;
            }
            MqttLinkEffect::Settle(parcel, Ok(())) => {
                let ledgers = &self.laws.ledgers;
                let sequence = parcel.waiting[0].sequence;
                let verdict = delivering::a_settled_event_was_received(ledgers, id, sequence);
                self.check(verdict);
                self.answered_in(1, parcel, DeliveryOutcome::Delivered);
            }
            MqttLinkEffect::Settle(parcel, Err(why)) => {
                let failed = DeliveryOutcome::Failed(FailedDelivery {
                    why,
                    pause_ms: 0,
                    about: None,
                });
                self.answered_in(1, parcel, failed);
            }
            MqttLinkEffect::Perform(_) => panic!("no broker here sends commands"),
        }
    }

    fn arm_link(&mut self, id: DestinationId, number: u64) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let Some(at) = link.machine.next_timeout() else {
            return;
        };
        if link.armed_at.is_none_or(|armed_at| at < armed_at) {
            link.armed_at = Some(at);
            let at_ms = at.as_ms().max(self.now_ms + 1);
            self.queue.push(at_ms, Event::LinkDue { id, number });
        }
    }
}

/// The types of packets.
const CONNECT: u8 = 1;
const PUBLISH: u8 = 3;
const PINGREQ: u8 = 12;

/// The packet identifier of a PUBLISH of MQTT 5, and its event and device.
fn published(packet: &[u8]) -> (u16, Sequence, usize) {
    let number = |bytes: &[u8]| u16::from_be_bytes(bytes.try_into().unwrap());
    // The length of the packet has one byte, for no event here is long.
    let id_at = 4 + usize::from(number(&packet[2..4]));
    let payload = packet.last_chunk::<16>().unwrap();
    let [sequence, who] =
        [&payload[..8], &payload[8..]].map(|bytes| u64::from_be_bytes(bytes.try_into().unwrap()));
    let packet_id = number(&packet[id_at..id_at + 2]);
    (packet_id, Sequence(sequence), usize::try_from(who).unwrap())
}

fn rules(id: DestinationId) -> MqttLinkRules {
    let broker = Broker {
        url: "mqtts://broker.example.com".into(),
        topic_prefix: "t".into(),
        version: MqttVersion::V5,
        username: None,
        password: None,
        ca: None,
        certificate: None,
        commands: BrokerCommands::Off,
        json: JsonPayload::AsText,
    };
    MqttLinkRules::of((id, &broker), None, TIMEOUT_MS).unwrap()
}
