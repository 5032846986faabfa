//! Several nodes: partitions that move, in order or not, and what is lost between nodes.

use engine::action::Status;
use engine::arbiter::input::DeviceCommand;
use harness::device::SimulatedDevice;
use protocol::lwm2m::value::Value;

use super::{MINUTE, S, TEMPERATURE, World, ZONE, all_registered, attempts, now, observe, read};
use crate::callers::Answer;
use crate::settings::{Kinds, WorldSettings};

#[test]
fn a_device_goes_on_where_its_partition_moves_to() {
    let mut world = among_nodes(4, Kinds::One);
    for _ in 0..10 {
        let ids: Vec<_> = (0..4)
            .map(|who| (who, world.create_for(who, attempts(3, read(ZONE)))))
            .collect();
        world.give_all();
        world.pass(5 * S);
        for (who, id) in ids {
            world.does(who, "updates", SimulatedDevice::update);
            world.pass(MINUTE);
            assert_eq!(world.status_for(who, id), Status::Succeeded);
            assert_eq!(world.laws.attempts_sent(id), 1);
        }
    }
    assert!(world.census.partitions_given > 20, "{:?}", world.census);
}

#[test]
fn what_a_former_owner_writes_is_refused() {
    let mut world = among_nodes(4, Kinds::One);
    for _ in 0..20 {
        world.stall_the_disk_for(20 * S);
        let ids: Vec<_> = (0..4)
            .map(|who| (who, world.ask(who, DeviceCommand::Submit(now(read(ZONE))))))
            .collect();
        world.pass(S / 10);
        (0..3).for_each(|node| world.kill_node(node));
        world.pass(5 * MINUTE);
        for (who, call) in ids {
            // Nobody was told that it is accepted.
            assert_eq!(world.callers.answer(call), Some(Answer::Unserved));
            let mut pending = world.disk.durable.pending(who);
            assert!(pending.next().is_none(), "it is final, if it is there");
        }
    }
    assert!(world.census.superseded > 5, "{:?}", world.census);
}

#[test]
fn a_device_that_is_not_restored_is_no_stranger() {
    let mut world = among_nodes(4, Kinds::One);
    for who in 0..4 {
        let id = world.create_for(who, now(observe(TEMPERATURE)));
        world.pass(S);
        assert_eq!(world.status_for(who, id), Status::Succeeded);
    }
    for round in 0..20 {
        world.give_all();
        for step in 0..4 {
            world.pass(S / 2);
            let value = Value::Float(f64::from(4 * round + step));
            (0..4).for_each(|who| world.measures(who, TEMPERATURE, value.clone()));
        }
        world.pass(3 * MINUTE);
        for who in 0..4 {
            assert_eq!(world.disk.durable.record(who).observations.len(), 1);
        }
    }
    assert!(world.census.not_restored > 5, "{:?}", world.census);
    assert_eq!(world.census.observations_lost, 0);
}

#[test]
fn what_is_lost_between_nodes_is_repeated() {
    let mut world = among_nodes(4, Kinds::One);
    world.faults.cut_percent = 50;
    for _ in 0..10 {
        let ids: Vec<_> = (0..4)
            .map(|who| (who, world.create_for(who, now(read(ZONE)))))
            .collect();
        world.pass(5 * MINUTE);
        for (who, id) in ids {
            assert!(!world.status_for(who, id).is_pending());
        }
    }
    assert!(world.census.lost_between_nodes > 5, "{:?}", world.census);
}

#[test]
fn a_silent_node_goes_on_or_is_superseded() {
    let mut world = among_nodes(4, Kinds::One);
    for _ in 0..10 {
        let ids: Vec<_> = (0..4)
            .map(|who| (who, world.create_for(who, attempts(5, now(read(ZONE))))))
            .collect();
        (0..3).for_each(|node| world.silence_node(node, 8 * S));
        world.pass(5 * MINUTE);
        for (who, id) in ids {
            world.does(who, "updates", SimulatedDevice::update);
            world.pass(MINUTE);
            assert_eq!(world.status_for(who, id), Status::Succeeded);
        }
    }
    assert!(world.census.nodes_renewed > 3, "{:?}", world.census);
    assert!(world.census.nodes_superseded > 3, "{:?}", world.census);
}

#[test]
fn sessions_move_with_their_partition() {
    let mut world = among_nodes(3, Kinds::Secured);
    for _ in 0..10 {
        world.give_all();
        world.pass(MINUTE);
        // Device 0 has no Connection ID: its session does not tell where it is.
        for who in 1..3 {
            world.does(who, "updates", SimulatedDevice::update);
            world.pass(S);
            let id = world.create_for(who, now(read(ZONE)));
            world.pass(S);
            assert_eq!(world.status_for(who, id), Status::Succeeded);
            world.does(who, "updates", SimulatedDevice::update);
            world.pass(MINUTE);
        }
    }
    world.restart();
    assert!(world.census.sessions_kept > 20, "{:?}", world.census);
    let made = (world.census.sessions_made, world.census.sessions_resumed);
    assert_eq!(made, (3, 0));
}

/// A still world of five partitions at three nodes, with this many registered devices.
fn among_nodes(devices: usize, kinds: Kinds) -> World {
    all_registered(WorldSettings {
        arbiters: 5,
        nodes: 3,
        kinds,
        ..WorldSettings::still(devices)
    })
}

impl World {
    /// Each node gives up what it has.
    fn give_all(&mut self) {
        for id in self.service.shard_map().arbiters() {
            self.give_partition(id);
        }
    }
}
