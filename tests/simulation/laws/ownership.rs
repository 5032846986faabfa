//! Laws about where devices are: one machine per device, at its own arbiter, restored from current
//! data.

use engine::device::record::RestoredDevice;
use engine::peer::Peer;

use super::{LawChecker, Verdict, hold};
use crate::disk::Durable;
use crate::service::{Arbiter, Service};

/// While a device has a machine, no other is created in the whole process.
pub(super) fn a_device_has_one_machine(laws: &mut LawChecker, who: usize) -> Verdict {
    let was_alive = std::mem::replace(&mut laws.is_alive[who], true);
    hold("a_device_runs_once_at_its_arbiter", !was_alive, || {
        format!("device {who} comes back and was not away")
    })
}

/// A device is only at the arbiter that owns it.
pub(crate) fn a_device_runs_once_at_its_arbiter(service: &Service, devices: usize) -> Verdict {
    for arbiter in service.arbiters() {
        for who in (0..devices).filter(|who| arbiter.looks_after(*who)) {
            let (here, home) = (arbiter.here(), service.arbiter_of(who));
            hold("a_device_runs_once_at_its_arbiter", here == home, || {
                format!("device {who} is at {here:?} and at home at {home:?}")
            })?;
        }
    }
    Ok(())
}

/// A removed device has no machine.
pub(crate) fn a_removed_device_is_gone(service: &Service, durable: &Durable) -> Verdict {
    let mut alive = (0..durable.devices()).filter(|who| service.machine(*who).is_some());
    let removed = alive.find(|who| !durable.exists(*who));
    hold("a_removed_device_is_gone", removed.is_none(), || {
        format!("device {removed:?} was removed and lives")
    })
}

/// Once an arbiter has started, every live device that it owns is restored, and stays while it is
/// live and the arbiter does not give it up.
pub(crate) fn live_devices_are_restored(service: &Service, durable: &Durable) -> Verdict {
    let is_settled = |arbiter: &&Arbiter| !arbiter.is_starting() && !arbiter.is_leaving();
    for arbiter in service.arbiters().filter(is_settled) {
        let here = arbiter.here();
        let own = (0..durable.devices()).filter(|who| service.arbiter_of(*who) == here);
        for who in own.filter(|who| durable.is_live(*who)) {
            hold(
                "live_devices_are_restored",
                arbiter.looks_after(who),
                || format!("device {who} is live and nobody looks after it at {here:?}"),
            )?;
        }
    }
    Ok(())
}

/// What comes from the peer of a device that was registered there before is not taken for a
/// stranger's while no arbiter has restored the device, unless it is parked.
pub(crate) fn a_device_that_is_not_restored_is_no_stranger(
    service: &Service,
    durable: &Durable,
    (sender, heard_at): (Peer, u64),
) -> Verdict {
    let is_there = |who: &usize| durable.is_bound(*who, sender, heard_at);
    let mut registered = (0..durable.devices()).filter(is_there);
    let refused =
        registered.find(|who| service.machine(*who).is_none() && !service.is_parked(*who));
    hold(
        "a_device_that_is_not_restored_is_no_stranger",
        refused.is_none(),
        || format!("device {refused:?} is registered at {sender} and taken for a stranger"),
    )
}

/// Once a device has read its changed profile, its machine uses it.
pub(crate) fn a_device_follows_the_last_change_of_its_customer(
    service: &Service,
    durable: &Durable,
    unread_profiles: &[u32],
) -> Verdict {
    for (who, unread_profiles) in (0..).zip(unread_profiles) {
        let Some(machine) = service.machine(who).filter(|_| *unread_profiles == 0) else {
            continue;
        };
        let (used, current) = (machine.identity().ip(), durable.profile(who).ip);
        hold(
            "a_device_follows_the_last_change_of_its_customer",
            used == current,
            || format!("device {who} uses {used:?} and its profile has {current:?}"),
        )?;
    }
    Ok(())
}

/// A device is restored from the current data of the disk, not from an earlier page, and not at all
/// if it was removed.
pub(crate) fn devices_are_restored_from_current_data(
    who: usize,
    restored: &RestoredDevice,
    durable: &Durable,
) -> Verdict {
    let law = "devices_are_restored_from_current_data";
    hold(law, durable.exists(who), || {
        format!("device {who} comes back after it was removed")
    })?;
    let mut current = durable.record(who).clone();
    if let (Some(peer), Some(found)) = (&mut current.peer, restored.record.peer) {
        // An association ends with the process, and is known again once its device is heard.
        peer.association = found.association;
    }
    hold(law, restored.record == current, || {
        format!(
            "device {who} is {current:?} and comes back as {:?}",
            restored.record
        )
    })
}
