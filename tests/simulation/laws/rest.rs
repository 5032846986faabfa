//! The law of a healed world: everything comes to rest.

use engine::delivery::destination::Replay;
use engine::device::record::{Connectivity, ObservationState};
use engine::location::Location;
use engine::moment::Timestamp;

use super::{Verdict, campaigns, hold};
use crate::fleet::DeviceProtocols;
use crate::world::World;

/// Every request is final, nothing is in flight, no observation has to be established, and every
/// device is registered where it believes to be and is reached at its peer.
pub(crate) fn after_the_faults_everything_becomes_final(world: &World) -> Verdict {
    let law = "after_the_faults_everything_becomes_final";
    let durable = &world.disk.durable;
    hold(law, world.disk.waiting() == 0, || {
        "the disk is busy".to_owned()
    })?;
    hold(law, world.callers.open() == 0, || {
        "a caller waits for an answer".to_owned()
    })?;
    hold(law, world.service.is_whole(), || {
        "a partition has no node".to_owned()
    })?;
    let is_started = world
        .service
        .arbiters()
        .all(|arbiter| !arbiter.is_starting());
    hold(law, is_started, || {
        "an arbiter brings devices back".to_owned()
    })?;
    hold(law, world.service.datagrams_held() == 0, || {
        "a datagram is under way".to_owned()
    })?;
    campaigns::a_campaign_ends(durable)?;
    for who in 0..durable.devices() {
        let pending: Vec<_> = durable.pending(who).map(|action| action.id).collect();
        hold(law, pending.is_empty(), || {
            format!("device {who} owes {pending:?}")
        })?;
        hold(law, world.service.is_at_rest(who), || {
            format!("device {who} is busy")
        })?;
        let mut observed = durable.record(who).observations.iter();
        let owed = observed.find(|observed| observed.state == ObservationState::Owed);
        hold(law, owed.is_none(), || {
            format!("device {who} is to be asked again for {owed:?}")
        })?;
        match world.fleet.member(who).speaks {
            DeviceProtocols::Lwm2m | DeviceProtocols::Both => is_registered(world, who)?,
            DeviceProtocols::Plain => is_gone(world, who)?,
        }
    }
    nothing_waits_to_be_delivered(world)
}

fn nothing_waits_to_be_delivered(world: &World) -> Verdict {
    let law = "after_the_faults_everything_becomes_final";
    let outbox = world.disk.durable.outbox();
    for record in outbox.destinations() {
        let id = record.destination.id;
        let running = world.service.deliveries.running(id);
        hold(law, running.is_some_and(|it| it.is_at_rest()), || {
            format!("destination {id} is busy")
        })?;
        let waiting = outbox.backlog(id);
        let partitions = outbox.partitions_waiting(id);
        let is_done = waiting == 0 && partitions.is_empty() && record.held.is_empty();
        hold(law, is_done, || {
            let held = record.held.len();
            format!("for destination {id} {waiting} wait, in {partitions:?}, {held} of them again")
        })?;
        let replay = record.destination.replay;
        hold(law, replay == Replay::None, || {
            format!("destination {id} still has a replay")
        })?;
    }
    Ok(())
}

/// A device without registration is unloaded from memory once nothing is remembered of it, unless
/// it goes offline soon.
fn is_gone(world: &World, who: usize) -> Verdict {
    let record = world.disk.durable.record(who);
    let is_online = record.connectivity == Connectivity::Online;
    let machine = world.service.machine(who).filter(|_| !is_online);
    hold(
        "after_the_faults_everything_becomes_final",
        machine.is_none(),
        || format!("device {who} has nothing to do and has a machine"),
    )
}

fn is_registered(world: &World, who: usize) -> Verdict {
    let law = "after_the_faults_everything_becomes_final";
    let durable = &world.disk.durable;
    let member = world.fleet.member(who);
    let believed = member.machine.location().map(ToString::to_string);
    hold(law, believed.is_some(), || {
        format!("device {who} does not believe to be registered")
    })?;
    let registration = durable.record(who).registration.as_ref();
    let key = durable.key(who);
    let location = registration.map(|it| format!("/rd/{}", Location::new(key, it.salt)));
    hold(law, location == believed, || {
        format!("device {who} believes to be at {believed:?} and is at {location:?}")
    })?;
    let machine = world.service.machine(who);
    let bound = machine.and_then(engine::device::Device::bound_peer);
    hold(law, bound == Some(member.address), || {
        format!(
            "device {who} is at {:?} and looked for at {bound:?}",
            member.address
        )
    })?;
    let next = machine.and_then(engine::device::Device::next_timeout);
    let ends =
        machine.and_then(|it| Some(it.snapshot(Timestamp::default()).registration?.expires_at));
    // A device goes offline or falls asleep before that.
    hold(law, next.is_some() && next <= ends, || {
        format!("device {who} is registered until {ends:?} and due at {next:?}")
    })
}
