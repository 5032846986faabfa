//! Bootstraps: what is durable before a device is written it, and what is published.

use engine::bootstrap::{AccountSecurity, BootstrapConfig};
use engine::event::Lifecycle;
use harness::device::SimulatedDevice;

use super::{MINUTE, S, World};
use crate::settings::{self, Faults, WorldSettings};

#[test]
fn a_device_that_keeps_asking_is_bootstrapped_and_then_registers() {
    let mut world = bootstrapping(AccountSecurity::NoSec);
    world.faults = Faults {
        lost_percent: 40,
        repeated_percent: 30,
        late_percent: 10,
        ..Faults::NONE
    };
    world.switch_on(0);
    for _ in 0..20 {
        world.pass(20 * S);
        world.does(0, "is rebooted", SimulatedDevice::reboot);
        world.crash();
    }
    assert!(world.heal_soon(), "it registers");
}

#[test]
fn a_key_is_saved_before_it_is_written() {
    let mut world = bootstrapping(AccountSecurity::Psk);
    world.stall_the_disk_for(20 * S);
    world.switch_on(0);
    world.pass(10 * S);
    assert_eq!(world.deeds(), 0, "the key is not durable");
    world.crash_after(0);
    world.pass(MINUTE);
    assert!(world.is_registered());
}

#[test]
fn a_finished_bootstrap_is_published_once() {
    let mut world = bootstrapping(AccountSecurity::NoSec);
    world.faults.repeated_percent = 100;
    world.switch_on(0);
    world.pass(MINUTE);
    world.restart();
    world.does(0, "asks for its bootstrap", SimulatedDevice::bootstrap);
    world.pass(MINUTE);
    assert!(world.is_registered());
    let told = world.disk.durable.history(0).presence().told.iter();
    let told = told.filter(|kind| **kind == Lifecycle::Bootstrapped);
    assert_eq!(told.count(), 2);
}

/// A still world with a device that has no account.
fn bootstrapping(security: AccountSecurity) -> World {
    World::with(WorldSettings {
        bootstrap_percent: 100,
        bootstrap: match security {
            AccountSecurity::Psk => settings::with_second_server(86_400),
            AccountSecurity::NoSec | AccountSecurity::Rpk | AccountSecurity::X509 => {
                BootstrapConfig::of_this_service(security)
            }
        },
        ..WorldSettings::still(1)
    })
}

impl World {
    /// Ends the faults, and returns whether the device is registered some time later.
    fn heal_soon(&mut self) -> bool {
        self.faults = Faults::NONE;
        self.pass(20 * MINUTE);
        self.is_registered()
    }
}
