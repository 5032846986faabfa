//! Sends are stored before they are acknowledged, and passive reads come after all other requests.

use engine::setting::SettingState;
use harness::device::SimulatedDevice;
use protocol::coap::content::ContentFormat;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{Measured, Sample};

use super::{HOUR, MINUTE, S, TEMPERATURE, World, ZONE, read, registered};
use crate::fleet::DeviceProtocols;
use crate::settings::{Kinds, WorldSettings};

const HUMIDITY: Path = Path::resource(3304, 0, 5700);

#[test]
fn a_send_is_stored_once() {
    let mut world = registered();
    world.faults.repeated_percent = 50;
    for format in [ContentFormat::SENML_CBOR, ContentFormat::SENML_JSON] {
        let samples = world.some_samples();
        world.sends(0, format, samples.clone());
        world.pass(MINUTE);
        for sample in &samples {
            assert_eq!(world.times_stored(sample), 1, "{sample:?}");
        }
    }
}

#[test]
fn a_send_is_not_acknowledged_before_it_is_stored() {
    let mut world = registered();
    world.stall_the_disk_for(20 * S);
    let samples = world.some_samples();
    world.sends(0, ContentFormat::SENML_CBOR, samples.clone());
    world.pass(S);
    world.crash_after(0);
    assert_eq!(world.times_stored(&samples[0]), 0);
    world.pass(2 * MINUTE);
    assert_eq!(
        world.times_stored(&samples[0]),
        1,
        "the device sends it again"
    );
}

#[test]
fn a_send_of_an_unregistered_device_is_not_stored() {
    let mut world = registered();
    world.does(0, "deregisters", SimulatedDevice::deregister);
    world.pass(S);
    let samples = world.some_samples();
    world.sends(0, ContentFormat::SENML_CBOR, samples.clone());
    world.pass(MINUTE);
    assert_eq!(world.times_stored(&samples[0]), 0);
}

#[test]
fn passive_reporting_needs_its_setting() {
    let mut world = registered();
    world.uplink();
    assert_eq!(world.deeds(), 0);
    world.wants_reports(SettingState::Enabled);
    world.uplink();
    world.pass(MINUTE);
    let read = world.deeds();
    assert!(read > 0, "it is read");
    world.wants_reports(SettingState::Disabled);
    world.uplink();
    assert_eq!(world.deeds(), read);
}

#[test]
fn passive_reporting_excludes_private_objects() {
    let mut world = registered();
    world.wants_reports(SettingState::Enabled);
    world.uplink();
    world.pass(MINUTE);
    let performed = world.fleet.member(0).machine.performed();
    let objects: Vec<Path> = performed.map(|performed| performed.path).collect();
    assert_eq!(objects, [Path::object(6), Path::object(3303)]);
}

#[test]
fn callers_go_before_passive_reporting() {
    let mut world = registered();
    world.wants_reports(SettingState::Enabled);
    world.create(read(ZONE));
    world.create(read(TEMPERATURE));
    world.uplink();
    world.pass(MINUTE);
    let performed = world.fleet.member(0).machine.performed();
    let paths: Vec<Path> = performed.map(|performed| performed.path).collect();
    assert_eq!(
        paths,
        [ZONE, TEMPERATURE, Path::object(6), Path::object(3303)]
    );
}

#[test]
fn a_world_of_many_kinds_is_read_and_comes_to_rest() {
    let mut world = World::with(WorldSettings {
        kinds: Kinds::Many,
        ..WorldSettings::still(9)
    });
    for who in 0..9 {
        world.switch_on(who);
    }
    world.pass(MINUTE);
    world.wants_reports(SettingState::Enabled);
    for who in 0..9 {
        world.does(who, "updates", SimulatedDevice::update);
    }
    world.pass(HOUR);
    let speaks_lwm2m = |who: &usize| world.fleet.member(*who).speaks != DeviceProtocols::Plain;
    for who in (0..9).filter(speaks_lwm2m) {
        let known = world.disk.durable.history(who).last_in(TEMPERATURE);
        assert!(known.is_some(), "device {who} was read");
    }
    world.heal();
}

impl World {
    fn wants_reports(&mut self, state: SettingState) {
        self.set_reporting(state);
        self.pass(S);
    }

    /// A value of now, one of an hour ago, and one of another path.
    fn some_samples(&mut self) -> Vec<Sample> {
        let ago = Measured::Absolute(self.now_ms - HOUR);
        let places = [
            (TEMPERATURE, None),
            (TEMPERATURE, Some(ago)),
            (HUMIDITY, Some(ago)),
        ];
        let sample = |(path, measured)| Sample {
            path,
            value: self.measurement(),
            measured,
        };
        places.map(sample).to_vec()
    }

    fn times_stored(&self, sample: &Sample) -> usize {
        self.disk.durable.history(0).times_sent(sample)
    }
}
