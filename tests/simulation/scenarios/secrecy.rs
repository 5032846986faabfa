//! Devices with DTLS, behind a NAT that gives the port of one to another.

use std::collections::HashSet;

use engine::action::Status;
use harness::device::SimulatedDevice;

use super::{MINUTE, S, World, ZONE, all_registered, now, read};
use crate::settings::{Kinds, WorldSettings};

/// The devices with a Connection ID; device 0 has none.
const WITH_CONNECTION_ID: [usize; 2] = [1, 2];

#[test]
fn what_a_device_is_told_reaches_the_holder_of_its_key_only() {
    let mut world = secured(5);
    let mut seen = HashSet::new();
    let mut taken_over = 0;
    for _ in 0..20 {
        for who in WITH_CONNECTION_ID {
            world.roam(who);
            let address = world.fleet.member(who).address.address;
            taken_over += usize::from(seen.contains(&(3 - who, address)));
            seen.insert((who, address));
            // It goes to the former address of the device, where another one may be.
            let id = world.create_for(who, now(read(ZONE)));
            world.pass(S);
            world.does(who, "updates", SimulatedDevice::update);
            world.pass(2 * MINUTE);
            assert_eq!(world.status_for(who, id), Status::Succeeded);
        }
    }
    world.restart();
    assert!(taken_over > 5, "{taken_over}");
    assert!(world.census.sessions_moved > 5, "{:?}", world.census);
    assert_eq!(world.census.sessions_made, 3);
}

#[test]
fn a_clean_restart_keeps_sessions_and_a_crash_costs_an_abbreviated_handshake() {
    let mut world = secured(2);
    world.stop();
    all_update(&mut world);
    world.restart();
    let made = |world: &World| (world.census.sessions_made, world.census.sessions_resumed);
    assert_eq!(made(&world), (3, 0));
    assert!(world.census.sessions_kept > 0);
    all_update(&mut world);
    world.restart();
    // A message that overtakes the Finished waits for it: nobody resumes a session twice.
    assert_eq!(made(&world), (3, 3));
}

#[test]
fn a_device_without_connection_id_resumes_its_session_at_another_address() {
    let mut world = secured(3);
    world.roam(0);
    world.does(0, "updates", SimulatedDevice::update);
    world.pass(3 * MINUTE);
    let id = world.create(now(read(ZONE)));
    world.pass(MINUTE);
    assert_eq!(world.status(id), Status::Succeeded);
    world.restart();
    let made = (world.census.sessions_made, world.census.sessions_resumed);
    assert_eq!(made, (3, 1));
}

#[test]
fn a_key_ends_with_the_first_use_of_the_next() {
    let mut world = secured(2);
    world.set_key(1);
    all_update(&mut world);
    assert_eq!(world.keys_of(1), 2, "the device uses the former key");
    world.give_key(1);
    all_update(&mut world);
    assert_eq!(world.keys_of(1), 1);
    world.try_ended_keys(1);
    let id = world.create_for(1, now(read(ZONE)));
    world.pass(MINUTE);
    assert_eq!(world.status_for(1, id), Status::Succeeded);
    world.restart();
    assert_eq!(world.census.sessions_made, 4);
}

#[test]
fn a_device_registers_with_the_key_of_its_bootstrap() {
    let mut world = World::with(WorldSettings {
        kinds: Kinds::Secured,
        bootstrap_percent: 100,
        ..WorldSettings::still(1)
    });
    world.switch_on(0);
    world.pass(MINUTE);
    assert!(world.is_registered());
    assert_eq!(
        world.keys_of(0),
        2,
        "the key of the next bootstrap is valid"
    );
    let does = "asks for its bootstrap";
    world.does(0, does, SimulatedDevice::bootstrap);
    world.pass(MINUTE);
    assert!(world.is_registered());
    assert_eq!((world.keys_of(0), world.census.keys_ended), (2, 1));
    world.try_ended_keys(0);
    let id = world.create(now(read(ZONE)));
    world.pass(MINUTE);
    assert_eq!(world.status(id), Status::Succeeded);
    world.restart();
    assert_eq!(
        world.census.sessions_made, 4,
        "for each bootstrap, and after each"
    );
}

#[test]
fn a_session_for_downloads_does_not_move_a_device() {
    let mut world = secured(2);
    for _ in 0..8 {
        world.request_image(1);
        world.pass(S);
        let id = world.create_for(1, now(read(ZONE)));
        world.pass(MINUTE);
        assert_eq!(world.status_for(1, id), Status::Succeeded);
    }
    world.restart();
    assert!(
        world.census.sessions_made > 3,
        "of the device and its downloads"
    );
}

impl World {
    /// How many pre-shared keys of a device are valid.
    fn keys_of(&self, who: usize) -> usize {
        let profile = self.disk.durable.profile(who);
        profile.credentials.psks().count()
    }

    /// Somebody tries the ended keys of a device, with and without tickets.
    fn try_ended_keys(&mut self, who: usize) {
        for _ in 0..8 {
            self.try_ended_key(who);
            self.pass(MINUTE);
        }
    }
}

/// A still world of three devices with DTLS, which are registered.
fn secured(arbiters: usize) -> World {
    all_registered(WorldSettings {
        arbiters,
        kinds: Kinds::Secured,
        ..WorldSettings::still(3)
    })
}

/// Waits until the service is up, and lets every device be heard.
fn all_update(world: &mut World) {
    while !world.service.is_up() {
        world.pass(1);
    }
    for who in 0..3 {
        world.does(who, "updates", SimulatedDevice::update);
    }
    world.pass(5 * MINUTE);
}
