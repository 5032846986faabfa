//! What is removed for its age, and what is left of removed customers and devices?

use engine::action::Action;
use engine::admin_log::entry::Entry;
use engine::ids::{ActionId, EntryId, EventId};
use sled::IVec;
use tokio::sync::oneshot;

use super::apply::{Indexed, remove_action, remove_updates};
use super::counting::Counted;
use super::fault::Fault;
use super::kv::{self, Rows};
use super::overlay::Overlay;
use crate::key::log::Kind;
use crate::key::{self, Key};
use crate::record::{self, Unreadable, number};
use crate::{Retention, Swept, Unavailable};

/// The most one sweep removes, however much is asked for. A request is eight rows and its index
/// rows lie anywhere in the tree, so removing one takes up to 0.3 ms, in which no commit is written
/// and, while sled applies the rows, nothing is read: 64 take about as long as a group of commits.
/// The caller asks again.
pub(super) const SWEEP_MAX: usize = 64;

/// A sweep that was asked for.
pub(super) struct SweepWanted {
    /// What is too old.
    pub(super) retention: Retention,
    /// How much to remove at most.
    pub(super) max: u32,
    /// Where the answer goes.
    pub(super) reply: oneshot::Sender<Result<Swept, Unavailable>>,
}

/// Removes what is due from the rows.
pub(super) fn sweep(
    retention: &Retention,
    max: u32,
    rows: &mut Overlay<'_>,
) -> Result<Swept, Fault> {
    let max = usize::try_from(max).map_or(SWEEP_MAX, |max| max.min(SWEEP_MAX));
    let mut left = max;
    left -= sweep_tokens(retention, left, rows)?;
    left -= sweep_promises(retention, left, rows)?;
    left -= sweep_actions(retention, left, rows)?;
    left -= sweep_entries(retention, left, rows)?;
    left -= sweep_events(retention, left, rows)?;
    left -= sweep_removed_logs(left, rows)?;
    left -= sweep_removed_histories(left, rows)?;
    let removed = u64::try_from(max - left).expect("a bounded count");
    Ok(Swept {
        removed,
        more: left == 0,
    })
}

fn sweep_tokens(retention: &Retention, max: usize, rows: &mut Overlay<'_>) -> Result<usize, Fault> {
    let first = key::token::by_expiry();
    let end = key::token::expiring_from(retention.tokens_before);
    let due = rows.keys_between(&first, &end, max)?;
    for expiring in &due {
        let token = key::token::token_from_expiry(expiring);
        if let Some(value) = kv::load(rows, &token)? {
            let kept = record::customer::read_token(&value)?;
            rows.remove(key::token::token_of(&kept.client, &kept.digest));
        }
        rows.remove(token);
        rows.remove(expiring.clone());
    }
    Ok(due.len())
}

fn sweep_promises(
    retention: &Retention,
    max: usize,
    rows: &mut Overlay<'_>,
) -> Result<usize, Fault> {
    let first = key::promise::by_age();
    let end = key::promise::promised_from(retention.promises_before);
    let due = rows.keys_between(&first, &end, max)?;
    for by_age in &due {
        rows.remove(key::promise::promise_from_age(by_age));
        rows.remove(by_age.clone());
    }
    Ok(due.len())
}

fn sweep_actions(
    retention: &Retention,
    max: usize,
    rows: &mut Overlay<'_>,
) -> Result<usize, Fault> {
    let first = key::action::final_actions();
    let end = key::ids_from(first.clone(), retention.actions_before);
    let due = rows.keys_between(&first, &end, max)?;
    for final_action in &due {
        let id = key::last_id(final_action).ok_or(Unreadable::Damaged("an index of actions"))?;
        match load_action(ActionId::from_bytes(id), rows)? {
            Some(action) => {
                remove_updates(rows, &indexed(&action), action.updated_at);
                remove_action(rows, &indexed(&action))?;
            }
            None => rows.remove(final_action.clone()),
        }
    }
    Ok(due.len())
}

fn sweep_entries(
    retention: &Retention,
    max: usize,
    rows: &mut Overlay<'_>,
) -> Result<usize, Fault> {
    let first = key::log::by_age();
    let end = key::ids_from(first.clone(), retention.entries_before);
    let due = rows.keys_between(&first, &end, max)?;
    for by_age in &due {
        let entry =
            key::log::entry_from_age(by_age).ok_or(Unreadable::Damaged("an index of logs"))?;
        remove_entry(&entry, rows)?;
        rows.remove(by_age.clone());
    }
    Ok(due.len())
}

fn sweep_events(retention: &Retention, max: usize, rows: &mut Overlay<'_>) -> Result<usize, Fault> {
    let first = key::event::by_age();
    let end = key::ids_from(first.clone(), retention.events_before);
    let due = rows.keys_between(&first, &end, max)?;
    for by_age in &due {
        let event = key::event::event_from_age(by_age);
        rows.erase(event.ok_or(Unreadable::Damaged("an index of events"))?)?;
        rows.remove(by_age.clone());
    }
    Ok(due.len())
}

fn sweep_removed_logs(max: usize, rows: &mut Overlay<'_>) -> Result<usize, Fault> {
    let mut removed = 0;
    // A log that is already empty costs one row, so looking at so many is bounded as well.
    for mark in rows.keys(&key::log::removed(), max)? {
        removed += sweep_removed_log(mark, max - removed, rows)?;
        if removed == max {
            break;
        }
    }
    Ok(removed)
}

fn sweep_removed_log(mark: IVec, max: usize, rows: &mut Overlay<'_>) -> Result<usize, Fault> {
    let Some(row) = rows.row(&mark)? else {
        return Ok(0);
    };
    let (log, last) = (key::log::of_removed(&mark), number::read_last_entry(&row)?);
    let mut removed = 0;
    for kind in Kind::all(None, None) {
        let first = key::log::of_kind(log.clone(), kind);
        let end = end_of_removed(&first, last);
        for entry in rows.keys_between(&first, &end, max - removed)? {
            remove_entry(&entry, rows)?;
            removed += 1;
        }
    }
    if removed < max {
        rows.remove(mark);
    }
    Ok(removed)
}

fn sweep_removed_histories(max: usize, rows: &mut Overlay<'_>) -> Result<usize, Fault> {
    let mut removed = 0;
    for mark in rows.keys(&key::event::removed(), max)? {
        removed += sweep_removed_history(mark, max - removed, rows)?;
        if removed == max {
            break;
        }
    }
    Ok(removed)
}

fn sweep_removed_history(mark: IVec, max: usize, rows: &mut Overlay<'_>) -> Result<usize, Fault> {
    let device = key::event::device_of_removed(&mark);
    let device = device.ok_or(Unreadable::Damaged("the mark of a history"))?;
    let Some(row) = rows.row(&mark)? else {
        return Ok(0);
    };
    let first = key::event::of_device(device);
    let end = key::behind(key::event::event(device, number::read_last_event(&row)?));
    let events = rows.keys_between(&first, &end, max)?;
    for event in &events {
        let id = key::last_id(event).ok_or(Unreadable::Damaged("the key of an event"))?;
        rows.remove(key::event::by_age_of(device, EventId::from_bytes(id)));
        rows.erase(event.clone())?;
    }
    if events.len() < max {
        rows.remove(mark);
    }
    Ok(events.len())
}

/// The first key behind the last entry of a kind that a removed log may have.
fn end_of_removed(of_kind: &[u8], last: EntryId) -> Key {
    key::behind(key::append(of_kind.to_vec(), last.as_bytes()))
}

fn remove_entry(key: &[u8], rows: &mut Overlay<'_>) -> Result<(), Fault> {
    let Some(value) = kv::load(rows, key)? else {
        return Ok(());
    };
    let entry: Entry = record::entry::read_entry(&value)?;
    if let Some(about) = &entry.about {
        rows.remove(key::log::entry_of_iccid(&entry, &about.iccid));
    }
    rows.remove(key::log::entry_by_age(&entry));
    if entry.payload.is_some() {
        rows.erase(key::log::payload(&entry.customer, entry.id))?;
    }
    rows.erase(key)?;
    Counted::of(&entry).leave(rows)
}

fn load_action(id: ActionId, rows: &Overlay<'_>) -> Result<Option<Action>, Fault> {
    match kv::load(rows, &key::action::action(id))? {
        Some(value) => Ok(Some(record::action::read_action(&value)?)),
        None => Ok(None),
    }
}

fn indexed(action: &Action) -> Indexed<'_> {
    Indexed {
        id: action.id,
        customer: &action.customer,
        device: action.device,
        protocol: action.protocol(),
        status: action.status,
    }
}
