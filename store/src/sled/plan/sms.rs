//! Which rows does an SMS have? Its own, one for each id by which it is found, and those of the
//! lists that its state puts it on.

use engine::sms::{Sms, SmsPurpose, SmsState};
use sled::IVec;

use super::{PlanStep, Steps};
use crate::record;
use crate::sled::key::{self, Key};

impl Steps {
    /// Puts an SMS, and lists it as its state says.
    pub(super) fn put_sms(&mut self, was: Option<SmsState>, sms: &Sms) {
        let place = record::sms::write_place(sms.device_number, sms.id);
        for id in sms.ids() {
            self.put(key::sms::of_id(id), &place);
        }
        if was.is_none() {
            let counted = key::sms::counted(sms.device_number);
            self.0.push(PlanStep::Add(counted.into(), 1));
            if let Some(parts) = sms.parts_key() {
                self.put(key::sms::of_parts(parts), &place);
            }
        }
        let (before, after) = (
            was.map(|was| lists_of(sms, was)),
            lists_of(sms, sms.state()),
        );
        for list in before.into_iter().flatten() {
            if !after.contains(&list) {
                self.0.push(PlanStep::Remove(IVec::from(list)));
            }
        }
        for list in after {
            self.put(list, &place);
        }
        self.replace(
            key::sms::sms(sms.device_number, sms.id),
            &record::sms::write_sms(sms),
        );
    }
}

/// The rows that list an SMS in this state.
pub(in crate::sled) fn lists_of(sms: &Sms, state: SmsState) -> Vec<Key> {
    let mut lists = Vec::new();
    if sms.submitted().map(|it| it.purpose) == Some(SmsPurpose::WakeUp) {
        lists.push(key::sms::wake_up(sms.device_number, sms.id));
    }
    if let Some(due_at) = state.due_at {
        lists.push(key::sms::due_at(due_at, sms.id));
        lists.push(key::sms::open(sms.device_number, sms.id));
        let messages = sms.message_id_keys();
        lists.extend(messages.map(|message| key::sms::of_message(&message, sms.id)));
    }
    if state.task.is_some() {
        lists.push(key::sms::waiting(sms.id));
    }
    lists
}
