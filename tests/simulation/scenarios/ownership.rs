//! Where devices are, which are restored after a start, and which are not.

use engine::arbiter::input::DeviceCommand;
use harness::device::SimulatedDevice;

use super::{MINUTE, S, ZONE, read, spread};

#[test]
fn a_device_runs_once_at_its_arbiter() {
    let mut world = spread(3, 6);
    for _ in 0..10 {
        for who in 0..6 {
            world.roam(who);
            world.does(who, "is rebooted", SimulatedDevice::reboot);
        }
        world.pass(MINUTE);
        for who in 0..6 {
            let home = world.service.arbiter_of(who);
            let arbiters = world.service.arbiters();
            let hosts = arbiters.filter(|arbiter| arbiter.machine(who).is_some());
            let hosts: Vec<_> = hosts.map(|arbiter| arbiter.here()).collect();
            assert_eq!(hosts, [home]);
        }
    }
}

#[test]
fn live_devices_are_restored() {
    let mut world = spread(3, 8);
    for who in 0..8 {
        world.switch_off(who);
    }
    world.create_for(5, read(ZONE));
    world.restart();
    assert!((0..8).all(|who| world.service.machine(who).is_none()));
    world.pass(5 * MINUTE);
    assert!((0..8).all(|who| world.service.machine(who).is_some()));
    assert!(world.census.pages > 3, "{:?}", world.census);
}

#[test]
fn devices_are_restored_from_current_data() {
    let mut world = spread(2, 4);
    for _ in 0..20 {
        world.restart();
        // Its arbiter is about to read the device's data, or has read it.
        world.pass(100);
        for who in 0..4 {
            world.ask(who, DeviceCommand::Retire);
        }
        world.pass(MINUTE);
        for who in 0..4 {
            assert!(!world.disk.durable.exists(who));
            assert!(world.service.machine(who).is_none());
            world.add(who);
            world.does(who, "is rebooted", SimulatedDevice::reboot);
        }
        world.pass(MINUTE);
    }
    assert!(world.census.passed_over_left > 5, "{:?}", world.census);
}

#[test]
fn a_removed_device_is_gone() {
    let mut world = spread(3, 2);
    world.ask(0, DeviceCommand::Retire);
    world.pass(S);
    assert!(!world.disk.durable.exists(0));
    world.uplink();
    world.pass(MINUTE);
    assert!(!world.is_registered(), "nobody bears its name");
    world.add(0);
    world.switch_on(0);
    world.pass(10 * MINUTE);
    assert!(world.is_registered());
    assert_eq!(world.disk.durable.first_contacts(0), 1);
}

#[test]
fn a_device_follows_the_last_change_of_its_customer() {
    /// Devices with an address of their own.
    const OWN: [usize; 3] = [2, 5, 8];
    let mut world = spread(3, 9);
    for _ in 0..20 {
        world.restart();
        // Its arbiter is about to read the device's data, or has read it.
        world.pass(100);
        OWN.iter().for_each(|who| world.readdress(*who));
        world.pass(MINUTE);
        for who in OWN {
            world.does(who, "is rebooted", SimulatedDevice::reboot);
        }
        world.pass(MINUTE);
        for who in OWN {
            let machine = world.service.machine(who).expect("it is registered");
            let peer = machine.bound_peer().expect("it is registered");
            let current = world.disk.durable.profile(who).ip;
            assert_eq!(
                Some(peer.ip()),
                current,
                "it is admitted from its new address"
            );
        }
    }
}
