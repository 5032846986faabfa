//! The routing of datagrams between arbiters.

use engine::action::Status;
use protocol::coap::message::{Message, MessageId};

use super::{MINUTE, S, World, ZONE, now, read, spread};
use crate::settings::WorldSettings;

#[test]
fn a_datagram_ends_once() {
    let mut world = World::with(WorldSettings {
        arbiters: 5,
        ..WorldSettings::still(1)
    });
    world.pass(S);
    // No device is registered there, so each arbiter is asked.
    world.device_says(0, Message::ping(MessageId(7)).encode());
    world.pass(S);
    assert_eq!((world.census.forwarded, world.census.searched), (4, 1));
    assert_eq!(world.service.datagrams_held(), 0);
}

#[test]
fn a_datagram_that_names_its_device_is_routed_at_once() {
    let mut world = spread(5, 1);
    for _ in 0..30 {
        let before = world.census.forwarded;
        world.roam(0);
        world.uplink();
        let steps = world.census.forwarded - before;
        assert!(steps <= 1, "an update took {steps} steps");
        assert!(world.is_registered());
    }
    assert!(world.census.forwarded > 10, "{:?}", world.census);
}

#[test]
fn an_answer_reaches_its_device() {
    let mut world = spread(5, 3);
    for _ in 0..10 {
        // No device was heard since the start, so no arbiter knows the peer.
        world.restart();
        for who in 0..3 {
            let id = world.create_for(who, now(read(ZONE)));
            world.pass(S);
            assert_eq!(world.status_for(who, id), Status::Succeeded);
        }
        world.pass(MINUTE);
    }
    assert!(world.census.searched > 5, "{:?}", world.census);
    assert!(world.census.route_hints > 5, "{:?}", world.census);
}

#[test]
fn an_answer_that_was_lost_between_arbiters_is_repeated() {
    let mut world = spread(5, 4);
    world.faults.crowded_percent = 50;
    for _ in 0..5 {
        world.restart();
        let ids: Vec<_> = (0..4)
            .map(|who| (who, world.create_for(who, now(read(ZONE)))))
            .collect();
        world.pass(5 * MINUTE);
        for (who, id) in ids {
            assert!(!world.status_for(who, id).is_pending());
        }
    }
    assert!(world.census.crowded > 5, "{:?}", world.census);
}
