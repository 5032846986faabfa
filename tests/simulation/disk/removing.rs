//! What is deleted from the disk: removed devices with their data, and old requests.

use engine::action::{Action, Status};
use engine::change::Counter;
use engine::device::record::DeviceRecord;
use engine::ids::ActionId;
use engine::moment::Timestamp;

use super::Durable;
use super::history::History;

/// How many requests one sweep removes at most: few, so that there are several sweeps.
const SWEEP_MAX: usize = 3;

/// A request that was removed because of its age.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SweptAction {
    pub(crate) who: usize,
    pub(crate) action: ActionId,
    pub(crate) status: Status,
}

impl Durable {
    /// Adds a removed device again, as a new device.
    pub(crate) fn add(&mut self, who: usize) {
        assert!(!self.exists(who), "a name has one bearer");
        self.turns[who] += 1;
        let customer = self.profiles[who].customer.clone();
        self.count_by(Counter::Devices(customer), 1);
    }

    /// Removes a device with its record. Its requests stay until they are old.
    pub(super) fn remove(&mut self, who: usize) {
        self.turns[who] += 1;
        self.records[who] = DeviceRecord::default();
        // A device added under its name is another one.
        self.first_contacts[who] = 0;
        self.histories[who] = History::default();
        self.outbox.forget(who);
    }

    /// Removes some of the final requests created before this time.
    pub(crate) fn sweep(&mut self, before: Timestamp) -> Vec<SweptAction> {
        let due = |action: &&Action| !action.status.is_pending() && action.created_at < before;
        let swept = |(who, action): (usize, &Action)| SweptAction {
            who,
            action: action.id,
            status: action.status,
        };
        let old = (0..self.devices()).flat_map(|who| {
            let due = self.actions(who).filter(due);
            due.map(move |action| (who, action))
        });
        let all: Vec<SweptAction> = old.take(SWEEP_MAX).map(swept).collect();
        for swept in &all {
            let action = self.actions[swept.who].remove(&swept.action);
            self.count_out(&action.expect("it was found a moment ago"));
        }
        self.outbox.sweep();
        all
    }

    fn count_out(&mut self, action: &Action) {
        self.count_by(Counter::of_action(action, action.status), -1);
    }
}
