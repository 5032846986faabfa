//! What are the keys of schedules?

use engine::ids::{CustomerId, ScheduleId};

use super::{Builder, Key, Table, append};

/// A schedule of a customer.
pub(crate) fn schedule(customer: &CustomerId, schedule: ScheduleId) -> Key {
    append(all_of(customer), schedule.as_bytes())
}

/// The prefix of the keys of the schedules of a customer; their order is that of creation.
pub(crate) fn all_of(customer: &CustomerId) -> Key {
    Builder::of(Table::Schedule).text(customer.as_str()).end()
}

/// The prefix of the keys of all schedules.
pub(crate) fn all() -> Key {
    Builder::of(Table::Schedule).end()
}

/// What the jobs of a schedule request of which devices.
pub(crate) fn contents(schedule: ScheduleId) -> Key {
    append(
        Builder::of(Table::ScheduleContents).end(),
        schedule.as_bytes(),
    )
}
