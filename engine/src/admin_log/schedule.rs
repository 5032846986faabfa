//! Which log entries concern the schedules of a customer?

use super::entry::{Category, Entry, Subject};
use crate::ids::{EntryId, TraceId};
use crate::moment::Moment;
use crate::schedule::{Schedule, SkipReason};

impl Entry {
    /// A due time of a schedule created no job; logged once until that has another reason or a job
    /// is created.
    ///
    /// Unspecified (the list of messages): a kind of its own, because no other one fits.
    pub fn schedule_skipped(m: &mut Moment, schedule: &Schedule, why: SkipReason) -> Self {
        let name = match &schedule.name {
            Some(name) => format!("{name} ({})", schedule.id),
            None => schedule.id.to_string(),
        };
        let description = format!(
            "The schedule {name} was due and created no job: {why}. This is logged once until a \
             due time has another outcome."
        );
        Self {
            id: EntryId::new(m.uuid()),
            customer: schedule.customer.clone(),
            at: m.now(),
            subject: Subject::General,
            category: Category::Error,
            message: "Scheduler[RunSkipped]".into(),
            description: description.into(),
            trace: TraceId::new(m.uuid()),
            about: None,
            payload: None,
        }
    }
}
