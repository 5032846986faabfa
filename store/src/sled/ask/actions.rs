//! Which action requests are there?
//!
//! The keys of an index are in order within one protocol and status. A list over several of them
//! merges as many ranges, from the end its order begins at, so its cost grows with what is skipped
//! and shown and not with what exists. Two things are few, and are read as a whole instead of
//! having rows that each request would write: the requests of one device, for its total and for
//! their order by last change, and the requests of a customer in progress, for that order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use engine::action::{Action, Protocol, Status};
use engine::change::Counter;
use engine::idempotency::{IdempotencyKey, IdempotencyRecord};
use engine::ids::ActionId;
use engine::query::listed::ListedAction;
use engine::query::{ActionFilter, ActionOrder, Page, PageRequest};
use sled::{Db, IVec};

use super::{count, load, rows_of};
use crate::record::action::read_action;
use crate::record::idempotency::read_idempotency_record;
use crate::record::{Unreadable, number};
use crate::sled::fault::Fault;
use crate::sled::key::action::Updated;
use crate::sled::key::{self, Key};

/// An action request.
pub(in crate::sled) fn action(db: &Db, id: ActionId) -> Result<Option<Action>, Fault> {
    load(db, &key::action::action(id), read_action)
}

/// A page of the action requests that pass a filter.
pub(in crate::sled) fn actions(
    db: &Db,
    filter: &ActionFilter,
    page: PageRequest,
) -> Result<Page<ListedAction>, Fault> {
    let mut total = 0;
    let mut ranges = Vec::new();
    for (protocol, status) in kinds(filter) {
        total += total_of(db, filter, protocol, status)?;
        ranges.push(range_of(db, filter, protocol, status)?);
    }
    let mut items = Vec::new();
    if page.skip() < total {
        let ids = match direction(filter.order) {
            Direction::Ascending => page_of_ids(ranges, page, Range::next, Reverse)?,
            Direction::Descending => page_of_ids(ranges, page, Range::next_back, |place| place)?,
        };
        for id in ids {
            let found = action(db, id)?;
            // It may have changed since its key was read.
            let found = found.filter(|action| passes(action, filter));
            items.extend(found.map(ListedAction::of));
        }
    }
    Ok(Page { items, total })
}

/// All records under an idempotency key: one row for each device of one call, or one for the call.
pub(in crate::sled) fn idempotency_records(
    db: &Db,
    key: IdempotencyKey,
) -> Result<Vec<IdempotencyRecord>, Fault> {
    let mut records = Vec::new();
    for row in rows_of(db, &key::idempotency::idempotency_under(key)) {
        let (row, value) = row?;
        let device = key::idempotency::device_of(&row, key)?;
        records.push(read_idempotency_record(key, device, &value)?);
    }
    Ok(records)
}

/// From which end a list is read.
enum Direction {
    Ascending,
    Descending,
}

fn direction(order: ActionOrder) -> Direction {
    match order {
        ActionOrder::Created | ActionOrder::Updated => Direction::Ascending,
        ActionOrder::CreatedDescending | ActionOrder::UpdatedDescending => Direction::Descending,
    }
}

/// The requests of one protocol in one status, in order.
type Range = Box<dyn DoubleEndedIterator<Item = Result<Updated, Fault>>>;

fn range_of(
    db: &Db,
    filter: &ActionFilter,
    protocol: Protocol,
    status: Status,
) -> Result<Range, Fault> {
    let by_update = match filter.order {
        ActionOrder::Created | ActionOrder::CreatedDescending => false,
        ActionOrder::Updated | ActionOrder::UpdatedDescending => !status.is_untouched(),
    };
    if by_update && !status.is_pending() && filter.device.is_none() {
        let beginning = key::action::updates_of_customer(&filter.customer, protocol, status);
        let rows = rows_of(db, &beginning).keys();
        let place = move |key: &[u8]| Updated::from_key(key, &beginning);
        return Ok(Box::new(rows.map(move |key| known(place(&key?)))));
    }
    let rows = rows_of(db, &creations(filter, protocol, status));
    if by_update {
        let mut changes = rows.map(changed).collect::<Result<Vec<_>, _>>()?;
        changes.sort_unstable();
        return Ok(Box::new(changes.into_iter().map(Ok)));
    }
    Ok(Box::new(rows.keys().map(|key| known(created(&key?)))))
}

fn known(place: Option<Updated>) -> Result<Updated, Fault> {
    Ok(place.ok_or(Unreadable::Damaged("an index of actions"))?)
}

/// The position of a request in the order of last changes, from its row by creation.
fn changed(row: sled::Result<(IVec, IVec)>) -> Result<Updated, Fault> {
    let (key, row) = row?;
    let at = number::read_instant(&row)?;
    Ok(Updated {
        at,
        ..known(created(&key))?
    })
}

/// The position of a request in the order of creation: its id contains the time.
fn created(key: &[u8]) -> Option<Updated> {
    let id = key::last_id(key)?;
    Some(Updated {
        at: key::made_at(id),
        id: ActionId::from_bytes(id),
    })
}

fn kinds(filter: &ActionFilter) -> impl Iterator<Item = (Protocol, Status)> {
    let protocols = Protocol::ALL.into_iter();
    let protocols = protocols.filter(|one| filter.protocol.is_none_or(|wanted| wanted == *one));
    protocols.flat_map(|protocol| {
        let statuses = Status::ALL.into_iter();
        let statuses = statuses.filter(|one| filter.statuses.has(*one));
        statuses.map(move |status| (protocol, status))
    })
}

/// How many requests a range has.
fn total_of(
    db: &Db,
    filter: &ActionFilter,
    protocol: Protocol,
    status: Status,
) -> Result<u64, Fault> {
    if filter.device.is_none() {
        let customer = filter.customer.clone();
        let counter = Counter::CustomerActions {
            customer,
            protocol,
            status,
        };
        return count(db, &key::counter(&counter));
    }
    let mut total = 0;
    for key in rows_of(db, &creations(filter, protocol, status)).keys() {
        key?;
        total += 1;
    }
    Ok(total)
}

fn creations(filter: &ActionFilter, protocol: Protocol, status: Status) -> Key {
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
        && filter.statuses.has(action.status)
}

/// Merges ranges, the greatest rank first, and cuts a page out. A request that changes while the
/// list is read may be found twice and is shown once.
fn page_of_ids<R: Ord>(
    mut ranges: Vec<Range>,
    page: PageRequest,
    next: impl Fn(&mut Range) -> Option<Result<Updated, Fault>>,
    rank: impl Fn(Updated) -> R,
) -> Result<Vec<ActionId>, Fault> {
    let mut heads = BinaryHeap::new();
    for (number, range) in ranges.iter_mut().enumerate() {
        heads.extend(
            next(range)
                .transpose()?
                .map(|place| (rank(place), number, place.id)),
        );
    }
    let mut skip = page.skip();
    let mut last = None;
    let mut shown = HashSet::new();
    let mut ids = Vec::new();
    while let Some((_, number, id)) = heads.pop() {
        if let Some(range) = ranges.get_mut(number) {
            heads.extend(
                next(range)
                    .transpose()?
                    .map(|place| (rank(place), number, place.id)),
            );
        }
        if last.replace(id) == Some(id) {
            continue;
        }
        if skip > 0 {
            skip -= 1;
            continue;
        }
        if shown.insert(id) {
            ids.push(id);
        }
        if u32::try_from(ids.len()).unwrap_or(u32::MAX) >= page.size {
            break;
        }
    }
    Ok(ids)
}
