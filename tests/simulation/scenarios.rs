//! Each law in a scenario of its own: a still world in which nothing happens unless a test causes
//! it, with all laws checked.

mod attempts;
mod books;
mod bootstrapping;
mod campaigns;
mod delivering;
mod nodes;
mod observing;
mod ownership;
mod plain;
mod presence;
mod promises;
mod rest;
mod routing;
mod secrecy;
mod sending;
mod speech;

use engine::action::{Lwm2mRequest, Mode, NewAction, Operation, Request, ResultPayload, Status};
use engine::arbiter::input::DeviceCommand;
use engine::ids::{ActionId, TraceId};
use harness::device::SimulatedDevice;
use harness::device::resource::AnswerMode as Manner;
use protocol::lwm2m::path::Path;

use crate::callers::Answer;
use crate::settings::WorldSettings;
use crate::world::World;

const S: i64 = 1_000;
const MINUTE: i64 = 60 * S;
const HOUR: i64 = 60 * MINUTE;

const TEMPERATURE: Path = Path::resource(3303, 0, 5700);
const ZONE: Path = Path::resource(3, 0, 14);
const TRIGGER: Path = Path::resource(1, 0, 8);

/// A still world with one registered device.
fn registered() -> World {
    let mut world = World::still(1);
    world.switch_on(0);
    world.pass(S);
    assert!(world.is_registered());
    world
}

/// A still world with this many arbiters and registered devices.
fn spread(arbiters: usize, devices: usize) -> World {
    all_registered(WorldSettings {
        arbiters,
        ..WorldSettings::still(devices)
    })
}

/// A world with these settings in which all devices are registered.
fn all_registered(settings: WorldSettings) -> World {
    let devices = settings.devices;
    let mut world = World::with(settings);
    for who in 0..devices {
        world.switch_on(who);
    }
    world.pass(MINUTE);
    world
}

fn read(path: Path) -> NewAction {
    request(Operation::Read, path, None)
}

fn write(path: Path, data: &str) -> NewAction {
    request(Operation::Write, path, Some(data))
}

fn execute(path: Path) -> NewAction {
    request(Operation::Execute, path, None)
}

fn observe(path: Path) -> NewAction {
    request(Operation::ObserveStart, path, None)
}

fn end_observing(path: Path) -> NewAction {
    request(Operation::ObserveEnd, path, None)
}

/// A SEND_WHEN_ACTIVE request with one attempt.
fn request(operation: Operation, path: Path, data: Option<&str>) -> NewAction {
    let request = Lwm2mRequest::parse(operation, &path.to_string(), data);
    NewAction {
        request: Request::Lwm2m(request.expect("it is a valid request")),
        mode: Mode::SendWhenActive,
        attempts_permitted: 1,
        expires_in_s: None,
        not_before: None,
        wake_up: None,
        trace: TraceId::from_bytes([1; 16]),
        idempotent_call: None,
    }
}

fn now(new: NewAction) -> NewAction {
    let mode = Mode::SendNow;
    NewAction { mode, ..new }
}

fn attempts(attempts_permitted: u8, new: NewAction) -> NewAction {
    NewAction {
        attempts_permitted,
        ..new
    }
}

impl World {
    /// Whether the device believes to be registered.
    fn is_registered(&self) -> bool {
        self.fleet.member(0).machine.location().is_some()
    }

    /// Creates a request and waits until it is accepted.
    fn create(&mut self, new: NewAction) -> ActionId {
        self.create_for(0, new)
    }

    fn create_for(&mut self, who: usize, new: NewAction) -> ActionId {
        let call = self.ask(who, DeviceCommand::Submit(new));
        self.pass(S / 10);
        match self.callers.answer(call) {
            Some(Answer::Accepted(id)) => id,
            other => panic!("not accepted: {other:?}"),
        }
    }

    /// The device updates its registration.
    fn uplink(&mut self) {
        self.does(0, "updates", SimulatedDevice::update);
        self.pass(S);
    }

    fn status(&self, id: ActionId) -> Status {
        self.status_for(0, id)
    }

    fn status_for(&self, who: usize, id: ActionId) -> Status {
        self.disk
            .durable
            .action(who, id)
            .expect("a request that was accepted is kept")
            .status
    }

    /// The service crashes; returns when it is up again.
    fn restart(&mut self) {
        self.crash_after(0);
        while !self.service.is_up() {
            self.pass(1);
        }
    }

    /// The final result of a request: the payload or the error message.
    fn shown(&self, id: ActionId) -> String {
        let action = self.disk.durable.action(0, id).expect("it is kept");
        let outcome = action.outcome.clone().expect("it is final");
        let payload = outcome.payload.as_ref().and_then(ResultPayload::as_text);
        let shown = payload.or(outcome.error.as_deref());
        shown.unwrap_or_default().to_owned()
    }

    fn answers(&mut self, path: Path, behaviour: Manner) {
        self.answer_with(0, path, behaviour);
    }

    /// How many operations the device has performed.
    fn deeds(&self) -> u64 {
        self.fleet.member(0).machine.performed_count()
    }
}
