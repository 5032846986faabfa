//! Which rows store and list an action request?

use engine::action::{Action, ActionState, Status};

use super::{PlanStep, Steps};
use crate::record;
use crate::sled::key::action::Updated;
use crate::sled::key::{self, Key};

impl Steps {
    /// Puts a request that was in this state before, and lists it.
    pub(super) fn put_action(&mut self, was: Option<ActionState>, action: &Action) {
        let value = record::action::write_action(action);
        match was {
            None => self.insert(key::action::action(action.id), &value),
            Some(_) => self.replace(key::action::action(action.id), &value),
        }
        let now = action.state();
        if was == Some(now) {
            return;
        }
        if was.map(|was| was.status) != Some(now.status) {
            self.move_action(was.map(|was| was.status), action);
        }
        if let Some(was) = was {
            for row in updates_of(action, was) {
                self.0.push(PlanStep::Remove(row.into()));
            }
        }
        for row in updates_of(action, now) {
            self.put(row, &[]);
        }
    }

    /// Lists a request under its status.
    fn move_action(&mut self, was: Option<Status>, action: &Action) {
        if let Some(was) = was {
            for row in creations_of(action, was) {
                self.0.push(PlanStep::Remove(row.into()));
            }
        }
        for row in creations_of(action, action.status) {
            self.put(row, &[]);
        }
        let pending = key::action::pending(action.device, action.id);
        let done = key::action::final_action(action.id);
        match (was.map(Status::is_pending), action.status.is_pending()) {
            (None, true) => self.put(pending, &[]),
            (None, false) => self.put(done, &[]),
            (Some(true), false) => {
                self.0.push(PlanStep::Remove(pending.into()));
                self.put(done, &[]);
            }
            (Some(false), true) => {
                self.0.push(PlanStep::Remove(done.into()));
                self.put(pending, &[]);
            }
            (Some(true), true) | (Some(false), false) => {}
        }
    }
}

/// The rows that list a request by its creation, in a status.
pub(in crate::sled) fn creations_of(action: &Action, status: Status) -> [Key; 2] {
    let (protocol, id) = (action.protocol(), action.id);
    [
        key::action::action_of_customer(&action.customer, protocol, status, id),
        key::action::action_of_device(action.device, protocol, status, id),
    ]
}

/// The rows that list a request by its last change. A request that never changed has none: its last
/// change is its creation, and it is found by that.
pub(in crate::sled) fn updates_of(
    action: &Action,
    progress: ActionState,
) -> impl Iterator<Item = Key> {
    let ActionState { status, updated_at } = progress;
    let protocol = action.protocol();
    let updated = Updated {
        at: updated_at,
        id: action.id,
    };
    let rows = || {
        [
            key::action::updated_action_of_customer(&action.customer, protocol, status, updated),
            key::action::updated_action_of_device(action.device, protocol, status, updated),
        ]
    };
    let rows = (!status.is_untouched()).then(rows);
    rows.into_iter().flatten()
}
