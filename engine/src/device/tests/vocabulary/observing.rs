//! The vocabulary of observations: how they begin, and notifications.

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageKind};
use protocol::coap::token::Token;
use protocol::lwm2m::attributes::Attributes;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload;
use protocol::lwm2m::value::Value;

use super::requests::{lwm2m, request};
use super::{DeviceFixture, HOME};
use crate::action::{Lwm2mRequest, NewAction, Operation};
use crate::device::record::Observation;

use super::rendering::Lines;

/// The observed path, unless a test uses another.
pub(in crate::device::tests) const BATTERY: &str = "/3/0/9";

impl DeviceFixture {
    /// A device that registered at the start, with an observation of its battery; the first value
    /// had the sequence number 10.
    pub(in crate::device::tests) fn observed() -> Self {
        let mut fixture = Self::registered();
        fixture.begin_observing(BATTERY);
        fixture
    }

    /// A request begins an observation, and the device accepts it.
    pub(in crate::device::tests) fn begin_observing(&mut self, path: &str) {
        self.ask(observe(path));
        self.agree(10, "87");
    }

    /// The device accepts an observation with its first value.
    pub(in crate::device::tests) fn agree(&mut self, sequence: u32, value: &str) -> Lines {
        let answer = self.piggybacked(Code::CONTENT).with_observe(sequence);
        self.receives(HOME, &answer.with_payload(value))
    }

    /// A notification of the battery.
    pub(in crate::device::tests) fn notification(
        &mut self,
        kind: MessageKind,
        sequence: u32,
        value: &str,
    ) -> Message {
        self.notification_of(BATTERY, kind, sequence)
            .with_payload(value)
    }

    /// A notification of an observed path, without its value.
    pub(in crate::device::tests) fn notification_of(
        &mut self,
        path: &str,
        kind: MessageKind,
        sequence: u32,
    ) -> Message {
        let token = self.token_observing(path);
        Message::separate(kind, Code::CONTENT, self.device_id(), token).with_observe(sequence)
    }

    /// The device sends a confirmable notification of the battery.
    pub(in crate::device::tests) fn notify(&mut self, sequence: u32, value: &str) -> Lines {
        let message = self.notification(MessageKind::Confirmable, sequence, value);
        self.receives(HOME, &message)
    }

    pub(in crate::device::tests) fn token_observing(&self, path: &str) -> Token {
        let observations = self.snapshot().observations;
        let is_it = |observed: &&Observation| observed.target.to_string() == path;
        let found = observations.iter().find(is_it);
        Token::new(&found.expect("it is observed").token).unwrap()
    }

    /// Names in later effects are counted from the first on.
    pub(in crate::device::tests) fn forget_names(&mut self) {
        self.names = super::rendering::Names::default();
    }

    /// The observations of the device, oldest first.
    pub(in crate::device::tests) fn observations(&self) -> Vec<String> {
        let observations = self.snapshot().observations;
        let line = |o: &Observation| format!("{} {:?}", o.target, o.state);
        observations.iter().map(line).collect()
    }
}

pub(in crate::device::tests) fn observe(path: &str) -> NewAction {
    request(Operation::ObserveStart, path, None)
}

/// Observes a path under conditions, given as a query.
pub(in crate::device::tests) fn observe_under(path: &str, query: &str) -> NewAction {
    let attributes = Attributes::from_query(query).unwrap();
    lwm2m(Lwm2mRequest::ObserveStart(
        path.parse().unwrap(),
        attributes,
    ))
}

/// Observes several paths at once.
pub(in crate::device::tests) fn observe_several(paths: &[&str]) -> NewAction {
    observe_several_under(paths, "")
}

/// Observes several paths at once under conditions, given as a query.
pub(in crate::device::tests) fn observe_several_under(paths: &[&str], query: &str) -> NewAction {
    let attributes = Attributes::from_query(query).unwrap();
    lwm2m(Lwm2mRequest::ObserveCompositeStart(
        all_of(paths),
        attributes,
    ))
}

/// Ends the observation of several paths.
pub(in crate::device::tests) fn end_observing_several(paths: &[&str]) -> NewAction {
    lwm2m(Lwm2mRequest::ObserveCompositeEnd(all_of(paths)))
}

/// Reads several paths at once.
pub(in crate::device::tests) fn read_several(paths: &[&str]) -> NewAction {
    lwm2m(Lwm2mRequest::ReadComposite(all_of(paths)))
}

fn all_of(paths: &[&str]) -> Box<[Path]> {
    paths.iter().map(|path| path.parse().unwrap()).collect()
}

pub(in crate::device::tests) fn end_observing(path: &str) -> NewAction {
    request(Operation::ObserveEnd, path, None)
}

/// The record of a device that registered at the start is saved, with its observations.
pub(in crate::device::tests) fn observing(seen_at_ms: i64, observations: &[&str]) -> Lines {
    let presence = format!("registered until 86400000, seen at {seen_at_ms} from {HOME}");
    let mut line = format!("save record: {presence}");
    for observed in observations {
        line.push_str(&format!(", {observed}"));
    }
    vec![line]
}

/// The end of the observation of the battery is logged.
pub(in crate::device::tests) fn observation_lost(why: &str) -> Lines {
    super::logged(&format!(
        "LwM2M[ObservationLost] Error: The observation of {BATTERY} was lost: {why}."
    ))
}

/// Puts values at and below a path into an answer.
pub(in crate::device::tests) fn tlv(
    message: Message,
    path: &str,
    values: &[(&str, Value)],
) -> Message {
    let reading = values
        .iter()
        .map(|(at, value)| (at.parse().unwrap(), value.clone()));
    let payload = payload::tlv::encode(path.parse().unwrap(), &reading.collect());
    message
        .with_content_format(ContentFormat::LWM2M_TLV)
        .with_payload(payload)
}
