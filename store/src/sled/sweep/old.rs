//! What is removed for its age?

use engine::action::{Protocol, Status};
use engine::ids::JobId;
use sled::IVec;

use super::SweepTargets;
use super::budget::{RemovedRows, SweepBudget};
use super::removed::each_marked;
use crate::record::entry_place::Kind;
use crate::record::{self, Unreadable};
use crate::sled::apply::remove_action;
use crate::sled::destinations::{count_out_dead, remove_dead};
use crate::sled::fault::Fault;
use crate::sled::jobs::unlist;
use crate::sled::key::log::count::BucketSize;
use crate::sled::key::{self, Key};
use crate::sled::kv::{self, Rows};
use crate::sled::log_entries::remove_entry;
use crate::sled::overlay::Overlay;
use crate::sled::sms::remove as remove_sms;

/// Removes access tokens.
pub(super) fn tokens(
    due: &mut SweepTargets<'_>,
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    let first = key::token::by_expiry();
    let end = key::token::expiring_from(due.retention.tokens_before);
    room.clear(&first, &end, rows, |expiring, rows| {
        let token = key::token::token_from_expiry(&expiring);
        if let Some(value) = kv::load(rows, &token)? {
            let kept = record::customer::read_token(&value)?;
            rows.remove(key::token::token_of(&kept.client, &kept.digest));
        }
        rows.remove(token);
        rows.remove(expiring);
        Ok(())
    })
}

/// Removes idempotency records.
pub(super) fn idempotency_records(
    due: &mut SweepTargets<'_>,
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    let first = key::idempotency::by_age();
    let end = key::idempotency::idempotency_from(due.retention.idempotency_before);
    room.clear(&first, &end, rows, |by_age, rows| {
        rows.remove(key::idempotency::idempotency_from_age(&by_age));
        rows.remove(by_age);
        Ok(())
    })
}

/// Removes final action requests.
pub(super) fn actions(
    due: &mut SweepTargets<'_>,
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    let before = BucketSize::FiveSeconds.bucket(due.retention.actions_before);
    let range = key::action::final_from_bucket(0)..key::action::final_from_bucket(before);
    each_marked(range, room, rows, bucket_of_actions)
}

fn bucket_of_actions(
    by_age: &[u8],
    _: &[u8],
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    let parsed = key::action::of_age(by_age);
    let (bucket, customer) = parsed.ok_or(Unreadable::Damaged("an index of actions"))?;
    let kinds = Protocol::ALL.into_iter().flat_map(|protocol| {
        let done = Status::ALL.into_iter().filter(|it| !it.is_pending());
        done.map(move |status| (protocol, status))
    });
    let lists = kinds.map(|it| key::action::actions_of_customer(&customer, it.0, it.1));
    let actions = made_in(bucket, lists, room, rows)?;
    room.clear_all(actions, rows, remove_action)
}

/// Removes entries of the administration log.
pub(super) fn entries(
    due: &mut SweepTargets<'_>,
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    let before = BucketSize::FiveSeconds.bucket(due.retention.entries_before);
    let range = key::log::from_bucket(0)..key::log::from_bucket(before);
    each_marked(range, room, rows, bucket_of_entries)
}

/// Removes the entries of a customer in a bucket in the order of their ids.
fn bucket_of_entries(
    by_age: &[u8],
    _: &[u8],
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    let parsed = key::log::of_age(by_age);
    let (bucket, log) = parsed.ok_or(Unreadable::Damaged("an index of logs"))?;
    let kinds = Kind::all(None, None).into_iter();
    let kinds = kinds.map(|kind| key::log::of_kind(log.clone(), kind));
    let entries = made_in(bucket, kinds, room, rows)?;
    room.clear_all(entries, rows, |entry, rows| remove_entry(&entry, rows))
}

/// The keys in some lists whose ids were made in a bucket, the oldest first, as many as there is
/// room for.
fn made_in(
    bucket: u32,
    lists: impl Iterator<Item = Key>,
    room: SweepBudget,
    rows: &Overlay<'_>,
) -> Result<Vec<IVec>, Fault> {
    let ends = [bucket, bucket.saturating_add(1)];
    let ends = ends.map(|it| BucketSize::FiveSeconds.start(it));
    let keys_max = room.keys(rows);
    let mut keys = Vec::new();
    for list in lists {
        let [first, end] = ends.map(|at| key::ids_from(list.clone(), at));
        keys.extend(rows.keys_between(&first, &end, keys_max)?);
    }
    keys.sort_unstable_by_key(|key| key::last_id(key));
    keys.truncate(keys_max);
    Ok(keys)
}

/// Removes dead letters.
pub(super) fn dead_letters(
    due: &mut SweepTargets<'_>,
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    let first = key::outbox::by_age();
    let end = key::outbox::dead_from(due.retention.dead_letters_before);
    room.clear(&first, &end, rows, |by_age, rows| {
        let letter = key::outbox::dead_from_age(&by_age);
        let (id, sequence) = letter.ok_or(Unreadable::Damaged("an index of dead letters"))?;
        if remove_dead(id, sequence, rows)? {
            count_out_dead(id, rows)?;
        }
        rows.remove(by_age);
        Ok(())
    })
}

/// Removes jobs, also one that is still running.
pub(super) fn jobs(
    due: &mut SweepTargets<'_>,
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    let first = key::job::jobs();
    let end = key::ids_from(first.clone(), due.retention.jobs_before);
    room.clear(&first, &end, rows, |job, rows| {
        let id = key::last_id(&job).ok_or(Unreadable::Damaged("the key of a job"))?;
        unlist(JobId::from_bytes(id), rows)
    })
}

/// Removes the requests of jobs that were never created.
pub(super) fn job_requests(
    due: &mut SweepTargets<'_>,
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    job_rows(key::job::requests(), due, room, rows)
}

/// Removes the parts of jobs, also those that were never created.
pub(super) fn job_parts(
    due: &mut SweepTargets<'_>,
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    job_rows(key::job::parts(), due, room, rows)
}

/// Removes SMS with all their parts; the first part is the oldest.
pub(super) fn sms(
    due: &mut SweepTargets<'_>,
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    let first = key::sms::all_ids();
    let end = key::sms::ids_from(due.retention.sms_before);
    room.clear(&first, &end, rows, |of_id, rows| {
        let Some(row) = rows.row(&of_id)? else {
            return Ok(());
        };
        let (device, id) = record::sms::read_place(&row)?;
        remove_sms(device, id, rows)?;
        rows.remove(of_id);
        Ok(())
    })
}

/// A job that is still there keeps its rows, however many of those of other jobs are due.
fn job_rows(
    first: Key,
    due: &SweepTargets<'_>,
    room: SweepBudget,
    rows: &mut Overlay<'_>,
) -> Result<RemovedRows, Fault> {
    let mut end = key::ids_from(first.clone(), due.retention.jobs_before);
    if let Some(oldest) = rows.keys(&key::job::jobs(), 1)?.first() {
        let id = key::rest_of(oldest, &key::job::jobs());
        end = end.min(key::append(first.clone(), id));
    }
    room.clear(&first, &end, rows, |row, rows| rows.erase(row).map(drop))
}
