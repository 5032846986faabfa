//! What is kept of what a device said: what was told, the last values, and whether it is there.

use std::collections::{BTreeMap, HashMap, HashSet};

use engine::action::Protocol;
use engine::event::{Cause, Event, EventContent, Lifecycle, Telemetry};
use engine::ids::ActionId;
use engine::moment::Timestamp;
use protocol::coap::content::ContentFormat;
use protocol::lwm2m::model;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{self, Measured, Reading, Sample, text, tlv};
use protocol::lwm2m::value::Value;
use protocol::lwm2m::version::EnablerVersion;

/// The formats in which plain devices say things.
const PLAIN: [ContentFormat; 3] = [
    ContentFormat::TEXT,
    ContentFormat::OCTET_STREAM,
    ContentFormat::LWM2M_TLV,
];

/// The history of a device, as far as laws ask for it.
#[derive(Default)]
pub(crate) struct History {
    /// What was told of a path, in the bytes in which devices say it.
    told: HashMap<Path, HashSet<Vec<u8>>>,
    last: BTreeMap<Path, Value>,
    /// How often a value was sent of a path, and as of when it was measured.
    sent: HashMap<(Path, Box<str>), Vec<Option<Timestamp>>>,
    /// How often data was told, over which protocol.
    data: HashMap<(Protocol, Box<[u8]>), usize>,
    /// How it came or went last.
    lifecycle: Option<Lifecycle>,
}

impl History {
    /// Whether it was told that a path is this.
    pub(crate) fn has_told(&self, path: Path, payload: &[u8]) -> bool {
        self.told
            .get(&path)
            .is_some_and(|told| told.contains(payload))
    }

    /// How often a sample was told that was sent, as measured when it was.
    pub(crate) fn times_sent(&self, sample: &Sample) -> usize {
        let told = self.sent.get(&(sample.path, sample.value.to_text().into()));
        let is_it = |at: &&Option<Timestamp>| match (sample.measured, at) {
            (None, at) => at.is_none(),
            (Some(Measured::Absolute(ms)), Some(at)) => at.as_ms() == ms,
            (Some(Measured::Relative(_)), at) => at.is_some(),
            (Some(Measured::Absolute(_)), None) => false,
        };
        told.map_or(0, |told| told.iter().filter(is_it).count())
    }

    /// How often data was told.
    pub(crate) fn times_told(&self, protocol: Protocol, bytes: &[u8]) -> usize {
        let told = self.data.get(&(protocol, bytes.into()));
        told.copied().unwrap_or(0)
    }

    /// The last value known at or below a path.
    pub(crate) fn last_in(&self, path: Path) -> Option<&Value> {
        let mut last = self.last.range(path..);
        let (at, value) = last.next()?;
        path.contains(*at).then_some(value)
    }

    /// How the device came or went last.
    pub(crate) fn lifecycle(&self) -> Option<Lifecycle> {
        self.lifecycle
    }

    pub(super) fn append(&mut self, event: &Event, asked: impl Fn(ActionId) -> Option<Path>) {
        match &event.content {
            EventContent::Lifecycle(lifecycle) => self.lifecycle = Some(*lifecycle),
            EventContent::Telemetry(telemetry) => self.tell(telemetry, asked),
            EventContent::Data(data) => {
                let told = self.data.entry((data.source, data.bytes.clone()));
                *told.or_default() += 1;
            }
            EventContent::Error(_) | EventContent::ActionResult(_) => {}
        }
    }

    fn tell(&mut self, telemetry: &Telemetry, asked: impl Fn(ActionId) -> Option<Path>) {
        match telemetry.cause {
            Cause::Observation(path) => self.tell_of(path, &telemetry.values),
            Cause::Action(id) => {
                let path = asked(id).expect("a request that was answered is kept");
                self.tell_of(path, &telemetry.values);
            }
            Cause::Send | Cause::PassiveReport => {
                for (path, value) in &telemetry.values {
                    let said = self.sent.entry((*path, value.to_text().into()));
                    if telemetry.cause == Cause::Send {
                        said.or_default().push(telemetry.measured_at);
                    }
                }
                for value in &telemetry.values {
                    self.tell_of(value.0, std::slice::from_ref(value));
                }
            }
        }
        self.last.extend(telemetry.values.iter().cloned());
    }

    fn tell_of(&mut self, path: Path, values: &[(Path, Value)]) {
        let payload = payload_of(path, values);
        self.told.entry(path).or_default().insert(payload);
    }
}

/// What a device says in a format, in the bytes in which plain devices say it.
pub(crate) fn plain(format: Option<ContentFormat>, path: Path, said: &[u8]) -> Vec<u8> {
    let is_plain = format.is_none_or(|format| PLAIN.contains(&format));
    if is_plain {
        return said.to_vec();
    }
    let type_of = |path: Path| {
        let object = path.object_id();
        let version = model::default_version(object, EnablerVersion::V1_2);
        model::resource(object, version, path.resource_id()?)?.data_type()
    };
    // What was said of several paths at once is no answer to anybody who asked for one.
    let Ok(values) = payload::decode(format, path, said, type_of) else {
        return said.to_vec();
    };
    let values: Vec<(Path, Value)> = values.into_iter().collect();
    payload_of(path, &values)
}

/// How a device says these values of a path.
pub(crate) fn payload_of(path: Path, values: &[(Path, Value)]) -> Vec<u8> {
    match values {
        [(at, value)] if *at == path => text::encode(value),
        _ => tlv::encode(path, &Reading::from_iter(values.iter().cloned())),
    }
}
