//! Which rows store and list an action request?

use engine::action::{Action, ActionState, Status};
use sled::IVec;

use super::{PlanStep, Steps};
use crate::record::{self, number};
use crate::sled::key::action::Updated;
use crate::sled::key::log::count::BucketSize;
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
        if let Some(was) = was {
            let rows = lists_of(action, was);
            self.0
                .extend(rows.map(|(key, _)| PlanStep::Remove(key.into())));
        }
        let rows = lists_of(action, now);
        self.0
            .extend(rows.map(|(key, row)| PlanStep::Put(key.into(), row)));
        let was_pending = was.is_none_or(|was| was.status.is_pending());
        if was_pending && !now.status.is_pending() {
            let bucket = BucketSize::FiveSeconds.bucket(key::made_at(*action.id.as_bytes()));
            self.mark(key::action::final_by_age(bucket, &action.customer));
        }
    }
}

/// The rows that list a request while it is in a state: for its customer and for its device by
/// creation, and once it is final for its customer by its last change as well.
///
/// Elsewhere the row by creation contains the last change: a customer has few requests in progress
/// at a time, and a device has few at all, so whoever wants their order by last change sorts them.
pub(in crate::sled) fn lists_of(
    action: &Action,
    state: ActionState,
) -> impl Iterator<Item = (Key, IVec)> {
    let ActionState { status, updated_at } = state;
    let (customer, device) = (&action.customer, action.device);
    let (protocol, id) = (action.protocol(), action.id);
    let change = |has_it: bool| match has_it {
        true => IVec::from(&number::write_instant(updated_at)),
        false => IVec::default(),
    };
    let of_customer = key::action::action_of_customer(customer, protocol, status, id);
    let of_device = key::action::action_of_device(device, protocol, status, id);
    let by_change = (!status.is_pending()).then(|| {
        let updated = Updated { at: updated_at, id };
        key::action::updated_action_of_customer(customer, protocol, status, updated)
    });
    let by_creation = [
        (of_customer, change(status == Status::InProgress)),
        (of_device, change(!status.is_untouched())),
    ];
    let by_change = by_change.map(|key| (key, IVec::default()));
    by_creation.into_iter().chain(by_change)
}
