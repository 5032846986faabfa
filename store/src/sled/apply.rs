//! What becomes of one batch of a group: fenced, in conflict, or applied to the group's rows.

use engine::action::{Protocol, Status};
use engine::bootstrap::BootstrapScope;
use engine::change::Counter;
use engine::customer::ClientOwner;
use engine::ids::{ActionId, ClientId, CustomerId, DestinationId, DeviceKey, EntryId};
use engine::limits::CAMPAIGN_ROWS_COMMITTED;
use sled::IVec;

use super::epochs::Epochs;
use super::fault::Fault;
use super::key::{self, Key};
use super::kv::{self, Rows};
use super::ledger::Ledger;
use super::names::name_rows;
use super::overlay::Overlay;
use super::plan::actions::lists_of;
use super::plan::{Check, Plan, PlanStep, address_of};
use super::{definitions, destinations, device_log, jobs, listing, sms};
use crate::CommitError;
use crate::record::entry_place::Kind;
use crate::record::{self, Unreadable, number};

/// The action requests of a customer that one batch removes: their rows take about as long as a
/// group of commits. The caller commits again.
const ACTIONS_REMOVED_AT_ONCE: usize = 64;

/// Checks a batch and applies it, or returns why not.
pub(super) fn apply(
    plan: Plan,
    epochs: &mut Epochs,
    ledger: &mut Ledger,
    rows: &mut Overlay<'_>,
) -> Result<Result<(), CommitError>, Fault> {
    if epochs.fence(plan.owner) {
        return Ok(Err(CommitError::Fenced));
    }
    match all_hold(&plan.checks, rows) {
        Ok(true) => {}
        Ok(false) => return Ok(Err(CommitError::Conflict)),
        Err(fault) if fault.is_fatal() => return Err(fault),
        Err(fault) => {
            tracing::error!(%fault, "the expectations of a batch cannot be checked");
            return Ok(Err(CommitError::Unavailable));
        }
    }
    epochs.record(plan.owner, rows);
    rows.begin();
    ledger.begin();
    let mut steps = plan.steps.into_iter();
    match steps.try_for_each(|step| take(step, ledger, rows)) {
        Ok(()) => Ok(Ok(())),
        Err(fault) if fault.is_fatal() => Err(fault),
        Err(fault) => {
            tracing::error!(%fault, "a batch cannot be applied");
            rows.roll_back();
            ledger.roll_back();
            Ok(Err(CommitError::Unavailable))
        }
    }
}

/// Removes the action request that an index row is for, with every row that lists it, and counts it
/// out. If there is none, only that row is removed.
pub(super) fn remove_action(indexed: IVec, rows: &mut Overlay<'_>) -> Result<(), Fault> {
    let id = key::last_id(&indexed).ok_or(Unreadable::Damaged("an index of actions"))?;
    let key = key::action::action(ActionId::from_bytes(id));
    let Some(value) = kv::load(rows, &key)? else {
        rows.remove(indexed);
        return Ok(());
    };
    let action = record::action::read_action(&value)?;
    rows.erase(key)?;
    for (row, _) in lists_of(&action, action.state()) {
        rows.remove(row);
    }
    let counter = Counter::of_action(&action, action.status);
    rows.add(IVec::from(key::counter(&counter)), -1)
}

fn all_hold(checks: &[Check], rows: &Overlay<'_>) -> Result<bool, Fault> {
    for check in checks {
        if !holds(check, rows)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn holds(check: &Check, rows: &Overlay<'_>) -> Result<bool, Fault> {
    match check {
        Check::Absent(key) => Ok(rows.row(key)?.is_none()),
        Check::Present(key) => Ok(rows.row(key)?.is_some()),
        Check::Value(key, value) => Ok(kv::load(rows, key)?.is_some_and(|found| *found == **value)),
        Check::OnlyOf(address, customer) => is_only_of(address, customer, rows),
        Check::Status(key, status) => match rows.row(key)? {
            Some(head) => Ok(record::action::read_status(kv::beginning(&head))? == *status),
            None => Ok(false),
        },
    }
}

/// Whether no device of another customer has an address. One of them is enough to know, because
/// nothing else is ever accepted.
fn is_only_of(address: &Key, customer: &CustomerId, rows: &Overlay<'_>) -> Result<bool, Fault> {
    let first = rows.keys(address, 1)?;
    let device = first.first().and_then(|key| key::last_id(key));
    let Some(device) = device.map(DeviceKey::from_bytes) else {
        return Ok(true);
    };
    let profile = kv::load(rows, &key::device::device(device))?;
    let profile = profile.map(|value| record::profile::read_profile(&value));
    Ok(profile
        .transpose()?
        .is_none_or(|it| it.customer == *customer))
}

fn take(step: PlanStep, ledger: &mut Ledger, rows: &mut Overlay<'_>) -> Result<(), Fault> {
    match step {
        PlanStep::Put(key, row) => rows.put(key, row),
        PlanStep::Mark(key) => {
            if rows.row(&key)?.is_none() {
                rows.put(key, IVec::default());
            }
        }
        PlanStep::Replace(key, value) => rows.replace(key, value)?,
        PlanStep::PutRecord(recorded) => recorded.put(rows)?,
        PlanStep::Remove(key) => rows.remove(key),
        PlanStep::Erase(key) => {
            rows.erase(key)?;
        }
        PlanStep::Add(key, delta) => rows.add(key, delta)?,
        PlanStep::AppendEntry(row) => row.append(rows)?,
        PlanStep::LeaveSim(sim) => {
            let (customer, device, iccid) = *sim;
            device_log::leave_sim(&customer, device, &iccid, rows)?;
        }
        PlanStep::CountNew(key) => {
            if rows.row(&key)?.is_none() {
                rows.add(IVec::from(key::customers_counted()), 1)?;
            }
        }
        PlanStep::RemoveDevice(device) => remove_device(device, ledger, rows)?,
        PlanStep::RemoveActions(customer) => remove_actions(&customer, rows)?,
        PlanStep::RemoveClient(client) => remove_client(&client, rows)?,
        PlanStep::RemoveCustomer(customer) => remove_customer(&customer, ledger, rows)?,
        PlanStep::Append(entry) => ledger.append(entry),
        PlanStep::PutDestination(put) => put.apply(ledger, rows)?,
        PlanStep::RemoveDestination(customer, id) => {
            destinations::remove(&customer, id, rows)?;
        }
        PlanStep::PutProgress(step) => step.apply(rows)?,
        PlanStep::PutDefinition(put) => put.apply(rows)?,
        PlanStep::RemoveDefinition(id) => definitions::remove(&id, rows)?,
        PlanStep::PutJob(job) => job.apply(rows)?,
        PlanStep::RemoveJob(id) => jobs::remove(id, rows)?,
        PlanStep::RemoveCampaignDevices(id) => {
            let devices = key::firmware::devices_of(id);
            for device in rows.keys(&devices, CAMPAIGN_ROWS_COMMITTED)? {
                rows.erase(device)?;
            }
        }
    }
    Ok(())
}

/// Removes a device under its current names: they may have changed since the caller read them.
fn remove_device(
    device: DeviceKey,
    ledger: &mut Ledger,
    rows: &mut Overlay<'_>,
) -> Result<(), Fault> {
    let Some(value) = kv::load(rows, &key::device::device(device))? else {
        return Ok(());
    };
    let profile = record::profile::read_profile(&value)?;
    for name in name_rows(&profile) {
        rows.remove(name);
    }
    if let Some(address) = address_of(&profile) {
        rows.remove(address);
    }
    listing::remove(&profile, rows)?;
    device_log::leave_device(&profile, rows)?;
    rows.erase(key::device::device(device))?;
    rows.erase(key::device::record(device))?;
    rows.erase(key::bootstrap::config(&BootstrapScope::Device(device)))?;
    rows.erase(key::bootstrap::bootstrap(device))?;
    ledger.remove_device(device, rows)?;
    sms::end(profile.number, rows)?;
    remove_pending(device, rows)
}

/// Removes the requests of a device that are not final: its machine has ended those that it knew
/// of, and a later device with the same key must not inherit another one.
fn remove_pending(device: DeviceKey, rows: &mut Overlay<'_>) -> Result<(), Fault> {
    for pending in rows.keys(&key::action::pending_of(device), usize::MAX)? {
        remove_action(pending, rows)?;
    }
    Ok(())
}

fn remove_actions(customer: &CustomerId, rows: &mut Overlay<'_>) -> Result<(), Fault> {
    let mut left = ACTIONS_REMOVED_AT_ONCE;
    for protocol in Protocol::ALL {
        for status in Status::ALL {
            let of_customer = key::action::actions_of_customer(customer, protocol, status);
            for listed in rows.keys(&of_customer, left)? {
                left -= 1;
                remove_action(listed, rows)?;
            }
        }
    }
    Ok(())
}

fn remove_client(client: &ClientId, rows: &mut Overlay<'_>) -> Result<(), Fault> {
    let Some(value) = kv::load(rows, &key::client(client))? else {
        return Ok(());
    };
    let owner = record::customer::read_client(&value)?.owner;
    rows.erase(key::client(client))?;
    rows.remove(key::client_of(&owner, client));
    let tokens = key::token::of_client(client);
    for of_client in rows.keys(&tokens, usize::MAX)? {
        let token = key::token::token_from_client(&of_client, &tokens);
        if let Some(value) = kv::load(rows, &token)? {
            let kept = record::customer::read_token(&value)?;
            rows.remove(key::token::expiring(kept.expires_at, &kept.digest));
        }
        rows.remove(token);
        rows.remove(of_client);
    }
    Ok(())
}

fn remove_customer(
    customer: &CustomerId,
    ledger: &mut Ledger,
    rows: &mut Overlay<'_>,
) -> Result<(), Fault> {
    let clients = key::clients_of(&ClientOwner::Customer(customer.clone()));
    for of_owner in rows.keys(&clients, usize::MAX)? {
        let client = key::client_from_owner(&of_owner, &clients)
            .ok_or(Unreadable::Damaged("an index of clients"))?;
        remove_client(&client, rows)?;
    }
    for setting in rows.keys(&key::settings_of(customer), usize::MAX)? {
        rows.remove(setting);
    }
    rows.erase(key::bootstrap::config(&BootstrapScope::Customer(
        customer.clone(),
    )))?;
    definitions::remove_all(customer, rows)?;
    for of_customer in rows.keys(&key::outbox::destinations_of(customer), usize::MAX)? {
        let id = key::last_id(&of_customer).ok_or(Unreadable::Damaged("a destination"))?;
        destinations::remove(customer, DestinationId::from_bytes(id), rows)?;
    }
    if rows.erase(key::customer(customer))? {
        rows.add(IVec::from(key::customers_counted()), -1)?;
    }
    let row = IVec::from(&number::write_sequence(ledger.newest()));
    rows.put(key::event::removed_of_customer(customer).into(), row);
    end_log(customer, rows)
}

/// Marks the log of a customer as removed. A later customer with the same id begins behind it.
fn end_log(customer: &CustomerId, rows: &mut Overlay<'_>) -> Result<(), Fault> {
    let log = key::log::of_customer(customer);
    let mut last = None;
    for kind in Kind::all(None, None) {
        if let Some(key) = rows.last_key(&key::log::of_kind(log.clone(), kind))? {
            let id = key::last_id(&key).ok_or(Unreadable::Damaged("a log key"))?;
            last = last.max(Some(EntryId::from_bytes(id)));
        }
    }
    let Some(last) = last else {
        return Ok(());
    };
    let row = number::write_last_entry(last);
    rows.put(IVec::from(key::log::removed_of(customer)), IVec::from(&row));
    Ok(())
}
