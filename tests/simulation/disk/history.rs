//! What is kept of what a device said: what was told, the last values, and whether it is there.

use std::collections::{BTreeMap, HashMap, HashSet};

use engine::event::{Cause, Event, Happening, Lifecycle, Telemetry};
use engine::ids::ActionId;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{Reading, text, tlv};
use protocol::lwm2m::value::Value;

/// The history of a device, as far as laws ask for it.
#[derive(Default)]
pub(crate) struct History {
    /// What was told of a path, in the bytes in which devices say it.
    told: HashMap<Path, HashSet<Vec<u8>>>,
    last: BTreeMap<Path, Value>,
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
        match &event.happening {
            Happening::Lifecycle(lifecycle) => self.lifecycle = Some(*lifecycle),
            Happening::Telemetry(telemetry) => self.tell(telemetry, asked),
            Happening::Failure(_) | Happening::Concluded(_) => {}
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

/// How a device says these values of a path.
pub(crate) fn payload_of(path: Path, values: &[(Path, Value)]) -> Vec<u8> {
    match values {
        [(at, value)] if *at == path => text::encode(value),
        _ => tlv::encode(path, &Reading::from_iter(values.iter().cloned())),
    }
}
