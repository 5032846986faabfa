//! How is the body of a schedule parsed? With every fault reported at once.

use engine::action::Protocol;
use engine::ids::CustomerId;
use engine::limits::SCHEDULE_EVERY_S_MAX;
use engine::moment::{Moment, Timestamp};
use engine::schedule::{
    NewSchedule, Recurrence, Rhythm, Schedule, ScheduleChange, ScheduleContents, ScheduleState,
};
use engine::zone::{TimeOfDay, Zone};

use crate::api::Api;
use crate::api::actions::request_body::ActionParser;
use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::fields::{FieldFault, Fields, instant, label};
use crate::api::words::Word;

/// Parses a new schedule of a customer.
pub(super) fn new_schedule(
    api: &Api,
    call: Call,
    customer: CustomerId,
    mut fields: Fields,
) -> Result<(Schedule, ScheduleContents), ApiError> {
    let mut moment = api.clock.moment();
    let name = fields.optional("name", label);
    let recurrence = recurrence(&mut fields, moment.now(), api.schedule_every_min_s);
    let schedule = recurrence.and_then(|recurrence| {
        let new = NewSchedule { name, recurrence };
        due(&mut fields, &mut moment, customer.clone(), new)
    });
    if !fields.has("request") {
        fields.fault("request", FieldFault::required("is required"));
    }
    let contents = fields.object("request", |fields| contents(api, call, customer, fields));
    fields.finish(schedule.zip(contents.flatten()))
}

/// Parses a change of a schedule.
pub(super) fn change(mut fields: Fields) -> Result<ScheduleChange, ApiError> {
    let change = fields.required("state", |text| match ScheduleState::read(text)? {
        ScheduleState::Active => Ok(ScheduleChange::Resume),
        ScheduleState::Paused => Ok(ScheduleChange::Pause),
        ScheduleState::Ended => Err("must be ACTIVE or PAUSED".to_owned()),
    });
    fields.finish(change)
}

/// The schedule, if it has a due time.
fn due(
    fields: &mut Fields,
    m: &mut Moment,
    customer: CustomerId,
    new: NewSchedule,
) -> Option<Schedule> {
    let (field, why) = match new.recurrence.end {
        Some(_) => ("end", "must not be before the first due time"),
        None => ("start", "must be a time at which the calendar goes on"),
    };
    let schedule = Schedule::new(m, customer, new);
    if schedule.is_none() {
        fields.fault(field, FieldFault::out_of_range(why));
    }
    schedule
}

fn recurrence(fields: &mut Fields, now: Timestamp, every_min_s: u32) -> Option<Recurrence> {
    let rhythm = rhythm(fields, every_min_s);
    let start = fields.optional("start", instant);
    let end = fields.optional("end", instant);
    Some(Recurrence {
        rhythm: rhythm?,
        start: start.unwrap_or(now),
        end,
    })
}

/// Either `every` or `daily`.
fn rhythm(fields: &mut Fields, every_min_s: u32) -> Option<Rhythm> {
    const EVERY: &str = "every";
    const DAILY: &str = "daily";
    if !fields.has(DAILY) {
        if !fields.has(EVERY) {
            fields.fault(
                EVERY,
                FieldFault::required("is required, unless daily is given"),
            );
        }
        let period_s = fields.number(EVERY, every_min_s..=SCHEDULE_EVERY_S_MAX)?;
        return Some(Rhythm::Every { period_s });
    }
    fields.refuse(EVERY, "must not be given together with daily");
    let read = fields.object(DAILY, |daily| {
        let at = daily.required("at", TimeOfDay::parse);
        let zone = daily.required("zone", Zone::read);
        at.zip(zone)
    });
    let (at, zone) = read.flatten()?;
    Some(Rhythm::Daily { at, zone })
}

/// What is requested of which devices. The protocol says which other properties there are.
fn contents(
    api: &Api,
    call: Call,
    customer: CustomerId,
    fields: &mut Fields,
) -> Option<ScheduleContents> {
    let Some(protocol) = fields.required("protocol", Protocol::read) else {
        fields.skip_others();
        return None;
    };
    ActionParser::of(api, protocol).parse_scheduled(call, customer, fields)
}
