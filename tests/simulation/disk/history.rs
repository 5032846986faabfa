//! What is stored of a device's data: published values, last values, and lifecycle events.

use std::collections::{BTreeMap, HashMap, HashSet};

use engine::action::Protocol;
use engine::event::{Cause, Event, EventContent, EventType, Lifecycle, Telemetry};
use engine::ids::{ActionId, EventId};
use engine::moment::Timestamp;
use protocol::coap::content::ContentFormat;
use protocol::lwm2m::model;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{self, Measured, Reading, Sample, text, tlv};
use protocol::lwm2m::value::Value;
use protocol::lwm2m::version::EnablerVersion;

/// The content formats of plain devices.
const PLAIN: [ContentFormat; 3] = [
    ContentFormat::TEXT,
    ContentFormat::OCTET_STREAM,
    ContentFormat::LWM2M_TLV,
];

/// The history of a device, as far as laws need it.
#[derive(Default)]
pub(crate) struct History {
    /// The published payloads of each path, in the bytes of plain devices.
    published: HashMap<Path, HashSet<Vec<u8>>>,
    last: BTreeMap<Path, Value>,
    /// How often each value was sent for a path, with the times of measurement.
    sent: HashMap<(Path, Box<str>), Vec<Option<Timestamp>>>,
    /// How often data was published, by protocol.
    data: HashMap<(Protocol, Box<[u8]>), usize>,
    /// What lifecycle events say of the device.
    presence: ToldPresence,
    /// The events that the device reported.
    reported: Vec<EventId>,
    /// How many of them were there when the service started.
    at_start: usize,
}

/// What lifecycle events say of a device.
#[derive(Default)]
pub(crate) struct ToldPresence {
    /// Every event, oldest first.
    pub(crate) told: Vec<Lifecycle>,
    /// The first event that says what was said already, or cannot follow what was said.
    pub(crate) misplaced: Option<Lifecycle>,
    is_registered: bool,
    is_offline: bool,
    is_awake: Option<bool>,
}

impl ToldPresence {
    /// How the last registration began or ended.
    pub(crate) fn registration(&self) -> Option<Lifecycle> {
        let of_registration = |kind: &&Lifecycle| match kind {
            Lifecycle::Registered | Lifecycle::Deregistered | Lifecycle::Expired => true,
            Lifecycle::FirstContact
            | Lifecycle::Updated
            | Lifecycle::Offline
            | Lifecycle::Back
            | Lifecycle::Awake
            | Lifecycle::Asleep
            | Lifecycle::Bootstrapped => false,
        };
        self.told.iter().rfind(of_registration).copied()
    }

    fn append(&mut self, kind: Lifecycle) {
        // A bootstrap is no contact: the device is unknown to its customer until it registers.
        let mut told = self.told.iter();
        let is_first = told.all(|told| *told == Lifecycle::Bootstrapped);
        let fits = match kind {
            Lifecycle::FirstContact => is_first,
            Lifecycle::Registered => !is_first && !self.is_offline,
            Lifecycle::Updated | Lifecycle::Deregistered => self.is_registered && !self.is_offline,
            Lifecycle::Expired => self.is_registered,
            Lifecycle::Offline => !is_first && !self.is_offline,
            Lifecycle::Back => self.is_offline,
            Lifecycle::Awake => !self.is_offline && self.is_awake != Some(true),
            Lifecycle::Asleep => self.is_awake == Some(true),
            Lifecycle::Bootstrapped => true,
        };
        if !fits {
            self.misplaced = self.misplaced.or(Some(kind));
        }
        match kind {
            Lifecycle::FirstContact | Lifecycle::Updated | Lifecycle::Bootstrapped => {}
            Lifecycle::Registered => self.is_registered = true,
            Lifecycle::Deregistered | Lifecycle::Expired => {
                (self.is_registered, self.is_awake) = (false, None);
            }
            Lifecycle::Offline => self.is_offline = true,
            Lifecycle::Back => self.is_offline = false,
            Lifecycle::Awake => self.is_awake = Some(true),
            Lifecycle::Asleep => self.is_awake = Some(false),
        }
        self.told.push(kind);
    }
}

impl History {
    /// Whether this payload was published for a path.
    pub(crate) fn has_published(&self, path: Path, payload: &[u8]) -> bool {
        self.published
            .get(&path)
            .is_some_and(|payloads| payloads.contains(payload))
    }

    /// How often a sent sample was published with its time.
    pub(crate) fn times_sent(&self, sample: &Sample) -> usize {
        let times = self.sent.get(&(sample.path, sample.value.to_text().into()));
        let is_it = |at: &&Option<Timestamp>| match (sample.measured, at) {
            (None, at) => at.is_none(),
            (Some(Measured::Absolute(ms)), Some(at)) => at.as_ms() == ms,
            (Some(Measured::Relative(_)), at) => at.is_some(),
            (Some(Measured::Absolute(_)), None) => false,
        };
        times.map_or(0, |times| times.iter().filter(is_it).count())
    }

    /// How often data was published.
    pub(crate) fn times_published(&self, protocol: Protocol, bytes: &[u8]) -> usize {
        let times = self.data.get(&(protocol, bytes.into()));
        times.copied().unwrap_or(0)
    }

    /// The last known value at or below a path.
    pub(crate) fn last_in(&self, path: Path) -> Option<&Value> {
        let mut last = self.last.range(path..);
        let (at, value) = last.next()?;
        path.contains(*at).then_some(value)
    }

    /// What lifecycle events say of the device.
    pub(crate) fn presence(&self) -> &ToldPresence {
        &self.presence
    }

    /// The events that the device had reported when the service started.
    pub(super) fn reported_before(&self) -> &[EventId] {
        &self.reported[..self.at_start]
    }

    /// The service ends.
    pub(super) fn end(&mut self) {
        self.at_start = self.reported.len();
    }

    pub(super) fn append(&mut self, event: &Event, path_of: impl Fn(ActionId) -> Option<Path>) {
        if event.content.event_type() == EventType::TelemetryData {
            self.reported.push(event.id);
        }
        match &event.content {
            EventContent::Lifecycle(kind) => self.presence.append(*kind),
            EventContent::Telemetry(telemetry) => self.publish(telemetry, path_of),
            EventContent::Data(data) => {
                let times = self.data.entry((data.source, data.bytes.clone()));
                *times.or_default() += 1;
            }
            EventContent::Error(_)
            | EventContent::ActionResult(_)
            | EventContent::SmsReceived(_)
            | EventContent::SmsReport(_) => {}
        }
    }

    fn publish(&mut self, telemetry: &Telemetry, path_of: impl Fn(ActionId) -> Option<Path>) {
        match telemetry.cause {
            Cause::Observation(path) => self.publish_at(path, &telemetry.values),
            Cause::Action(id) => {
                let path = path_of(id).expect("a request that was answered is kept");
                self.publish_at(path, &telemetry.values);
            }
            Cause::Send | Cause::PassiveReport | Cause::CompositeObservation(_) => {
                for (path, value) in &telemetry.values {
                    let times = self.sent.entry((*path, value.to_text().into()));
                    if telemetry.cause == Cause::Send {
                        times.or_default().push(telemetry.measured_at);
                    }
                }
                for value in &telemetry.values {
                    self.publish_at(value.0, std::slice::from_ref(value));
                }
            }
        }
        self.last.extend(telemetry.values.iter().cloned());
    }

    fn publish_at(&mut self, path: Path, values: &[(Path, Value)]) {
        let payload = payload_of(path, values);
        self.published.entry(path).or_default().insert(payload);
    }
}

/// A payload of a device in some format, in the bytes of plain devices.
pub(crate) fn plain(format: Option<ContentFormat>, path: Path, bytes: &[u8]) -> Vec<u8> {
    let is_plain = format.is_none_or(|format| PLAIN.contains(&format));
    if is_plain {
        return bytes.to_vec();
    }
    let type_of = |path: Path| {
        let object = path.object_id();
        let version = model::default_version(object, EnablerVersion::V1_2);
        model::resource(object, version, path.resource_id()?)?.data_type()
    };
    // A payload with values of several paths answers no request for one path.
    let Ok(values) = payload::decode(format, path, bytes, type_of) else {
        return bytes.to_vec();
    };
    let values: Vec<(Path, Value)> = values.into_iter().collect();
    payload_of(path, &values)
}

/// The bytes in which a device sends these values of a path.
pub(crate) fn payload_of(path: Path, values: &[(Path, Value)]) -> Vec<u8> {
    match values {
        [(at, value)] if *at == path => text::encode(value),
        _ => tlv::encode(path, &Reading::from_iter(values.iter().cloned())),
    }
}
