//! Which action requests are there?
//!
//! The keys of an index are in order within one protocol and status. A list over several of them
//! merges as many ranges, newest first, so that its cost grows with what is skipped and shown and
//! not with what exists; its total is a sum of counts.

use std::collections::BinaryHeap;

use engine::action::{Action, Protocol, Status};
use engine::change::Counter;
use engine::ids::ActionId;
use engine::query::{ActionFilter, Page, PageWanted};
use sled::{Db, Iter};

use super::{count, load, rows_of};
use crate::key::{self, Key};
use crate::record::Unreadable;
use crate::record::action::read_action;
use crate::sled::fault::Fault;

/// An action request.
pub(in crate::sled) fn action(db: &Db, id: ActionId) -> Result<Option<Action>, Fault> {
    load(db, &key::action::action(id), read_action)
}

/// A page of the action requests that pass a filter.
pub(in crate::sled) fn actions(
    db: &Db,
    filter: &ActionFilter,
    page: PageWanted,
) -> Result<Page<Action>, Fault> {
    let mut total = 0;
    let mut ranges = Vec::new();
    for (protocol, status) in kinds(filter) {
        total += count(db, &counter(filter, protocol, status))?;
        ranges.push(rows_of(db, &index(filter, protocol, status)));
    }
    let mut items = Vec::new();
    if page.skip() < total {
        for id in page_of_ids(ranges, page)? {
            let found = action(db, id)?;
            // It may have changed since its key was read.
            items.extend(found.filter(|action| passes(action, filter)));
        }
    }
    Ok(Page { items, total })
}

fn kinds(filter: &ActionFilter) -> impl Iterator<Item = (Protocol, Status)> {
    let protocols = Protocol::ALL.into_iter();
    let protocols = protocols.filter(|one| filter.protocol.is_none_or(|wanted| wanted == *one));
    protocols.flat_map(|protocol| {
        let statuses = Status::ALL.into_iter();
        let statuses = statuses.filter(|one| filter.status.is_none_or(|wanted| wanted == *one));
        statuses.map(move |status| (protocol, status))
    })
}

fn counter(filter: &ActionFilter, protocol: Protocol, status: Status) -> Key {
    key::counter(&match filter.device {
        Some(device) => Counter::DeviceActions {
            device,
            protocol,
            status,
        },
        None => Counter::CustomerActions {
            customer: filter.customer.clone(),
            protocol,
            status,
        },
    })
}

fn index(filter: &ActionFilter, protocol: Protocol, status: Status) -> Key {
    match filter.device {
        Some(device) => key::action::actions_of_device(device, protocol, status),
        None => key::action::actions_of_customer(&filter.customer, protocol, status),
    }
}

fn passes(action: &Action, filter: &ActionFilter) -> bool {
    action.customer == filter.customer
        && filter
            .protocol
            .is_none_or(|protocol| action.protocol() == protocol)
        && filter.status.is_none_or(|status| action.status == status)
}

/// Merges ranges of ids, newest first, and cuts a page out. A request that changed its status
/// meanwhile may stand in two of them and counts once.
fn page_of_ids(mut ranges: Vec<Iter>, page: PageWanted) -> Result<Vec<ActionId>, Fault> {
    let mut heads = BinaryHeap::new();
    for (number, range) in ranges.iter_mut().enumerate() {
        heads.extend(newest(range)?.map(|id| (id, number)));
    }
    let mut skip = page.skip();
    let mut last = None;
    let mut ids = Vec::new();
    while let Some((id, number)) = heads.pop() {
        if let Some(range) = ranges.get_mut(number) {
            heads.extend(newest(range)?.map(|id| (id, number)));
        }
        if last.replace(id) == Some(id) {
            continue;
        }
        if skip > 0 {
            skip -= 1;
            continue;
        }
        ids.push(id);
        if u32::try_from(ids.len()).unwrap_or(u32::MAX) >= page.size {
            break;
        }
    }
    Ok(ids)
}

fn newest(range: &mut Iter) -> Result<Option<ActionId>, Fault> {
    let Some(row) = range.next_back() else {
        return Ok(None);
    };
    let (key, _) = row?;
    let id = key::last_id(&key).ok_or(Unreadable::Damaged("an index of actions"))?;
    Ok(Some(ActionId::from_bytes(id)))
}
