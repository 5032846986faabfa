//! Laws about bootstraps: what is durable before a device is written it, and what is published.

use std::collections::{BTreeMap, HashSet};

use engine::bootstrap::BootstrapState;
use engine::event::Lifecycle;
use engine::peer::Peer;
use harness::device::SimulatedDevice;
use harness::device::event::Operation;
use harness::device::operation_log::PerformedOperation;
use protocol::lwm2m::bootstrap::SECURITY_OBJECT;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;

use super::{Verdict, hold};
use crate::disk::{BatchSummary, Durable};

/// What is known of bootstraps.
#[derive(Default)]
pub(crate) struct BootstrapRecords {
    /// Where each device asked for its last bootstrap.
    asked_at: BTreeMap<usize, Peer>,
    /// The devices that are being bootstrapped, at least as far as is known.
    under_way: HashSet<usize>,
    /// How often each device took a bootstrap as finished.
    finished: BTreeMap<usize, u64>,
}

impl BootstrapRecords {
    /// A device asks for its bootstrap.
    pub(crate) fn asked(&mut self, who: usize, at: Peer) {
        self.asked_at.insert(who, at);
        self.under_way.insert(who);
    }

    /// The state of a device's bootstrap became durable.
    pub(super) fn became_durable(&mut self, who: usize, state: BootstrapState) {
        if state != BootstrapState::Running {
            self.under_way.remove(&who);
        }
    }

    /// The machine of a device has ended, and begins no bootstrap again.
    pub(super) fn ended(&mut self, who: usize) {
        self.under_way.remove(&who);
    }

    /// Whether a device may be in the middle of a bootstrap, in which everything else waits.
    pub(super) fn is_under_way(&self, who: usize) -> bool {
        self.under_way.contains(&who)
    }

    /// A device has everything.
    pub(crate) fn finished(&mut self, who: usize) {
        *self.finished.entry(who).or_default() += 1;
    }

    /// Whether a device asked for its bootstrap at a peer.
    pub(super) fn is_at(&self, who: usize, peer: Peer) -> bool {
        self.asked_at.get(&who) == Some(&peer)
    }
}

/// A key that a device has was saved for it.
pub(crate) fn a_key_is_saved_before_it_is_written(
    who: usize,
    performed: &PerformedOperation,
    device: &SimulatedDevice,
    durable: &Durable,
) -> Verdict {
    let path = performed.path;
    let is_write = performed.operation == Operation::Write;
    let Some(instance) = path.instance_id().filter(|_| is_write) else {
        return Ok(());
    };
    let key = match device.value(Path::resource(SECURITY_OBJECT, instance, 5)) {
        Some(Value::Opaque(key)) if path.object_id() == SECURITY_OBJECT => key,
        Some(_) | None => return Ok(()),
    };
    hold(
        "a_key_is_saved_before_it_is_written",
        key.is_empty() || durable.has_issued(who, key),
        || format!("device {who} is written a key at {path} that is not durable"),
    )
}

/// A bootstrap that a device took as finished is published once, with its record.
pub(super) fn a_finished_bootstrap_is_published_once(
    records: &BootstrapRecords,
    who: usize,
    done: &BatchSummary,
    durable: &Durable,
) -> Verdict {
    let law = "a_finished_bootstrap_is_published_once";
    let has_succeeded = done.bootstrap == Some(BootstrapState::Succeeded);
    hold(law, has_succeeded == done.is_bootstrapped, || {
        format!(
            "the bootstrap of device {who} is {:?}, published: {}",
            done.bootstrap, done.is_bootstrapped
        )
    })?;
    let told = durable.history(who).presence().told.iter();
    let told = told.filter(|kind| **kind == Lifecycle::Bootstrapped);
    let finished = records.finished.get(&who).copied().unwrap_or_default();
    let told = told.count() as u64;
    hold(law, told <= finished, || {
        format!("device {who} finished {finished} bootstraps, and {told} are published")
    })
}
