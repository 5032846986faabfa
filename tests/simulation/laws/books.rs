//! Laws about counters, log entries and limits.

use engine::action::{Mode, Protocol, Status};
use engine::change::Counter;

use super::{LawChecker, Verdict, hold};
use crate::disk::Durable;

/// The counters of a device's customer equal the counts from the moves of its requests.
pub(super) fn counters_equal_a_recount(
    laws: &LawChecker,
    who: usize,
    durable: &Durable,
) -> Verdict {
    for status in Status::ALL {
        let place = status as usize;
        let recount = laws.recount.iter().map(|counts| counts[place]).sum();
        equals(durable, who, status, recount)?;
    }
    Ok(())
}

/// The counters equal a recount of everything on the disk.
pub(super) fn everything_equals_a_recount(durable: &Durable) -> Verdict {
    for status in Status::ALL {
        let requests = (0..durable.devices()).flat_map(|who| durable.actions(who));
        let found = requests.filter(|action| action.status == status);
        equals(durable, 0, status, found.map(|_| 1).sum())?;
    }
    Ok(())
}

fn equals(durable: &Durable, who: usize, status: Status, recount: i64) -> Verdict {
    let of_protocol = |protocol| {
        durable.count(&Counter::CustomerActions {
            customer: durable.profile(who).customer.clone(),
            protocol,
            status,
        })
    };
    let counted: i64 = Protocol::ALL.into_iter().map(of_protocol).sum();
    hold("counters_equal_a_recount", counted == recount, || {
        format!("{recount} requests are {status:?}, their counters say {counted}")
    })
}

/// A device with a first contact has one log entry of it, and any other device has none.
pub(super) fn first_contact_is_logged_exactly_once(who: usize, durable: &Durable) -> Verdict {
    let expected = u32::from(durable.record(who).first_contact_at.is_some());
    let logged = durable.first_contacts(who);
    hold(
        "first_contact_is_logged_exactly_once",
        logged == expected,
        || format!("device {who} has {logged} entries of first contact"),
    )
}

/// No more requests wait for a device than the limits allow.
pub(super) fn queues_keep_their_bounds(
    laws: &LawChecker,
    who: usize,
    durable: &Durable,
) -> Verdict {
    let limits = &laws.rules.limits;
    let (mut scheduled, mut sent_now) = (0u32, 0u32);
    for action in durable.pending(who) {
        match action.mode {
            Mode::SendNow => sent_now += 1,
            Mode::SendWhenActive => scheduled += u32::from(action.status == Status::Scheduled),
        }
    }
    // Of the requests to be sent now, one more than may wait can be in flight.
    let within = scheduled <= limits.scheduled_max && sent_now <= limits.waiting_max + 1;
    hold("queues_keep_their_bounds", within, || {
        format!("device {who} has {scheduled} scheduled, {sent_now} to be sent now")
    })
}

/// Every failure is logged once.
pub(super) fn a_failure_is_logged_once(
    laws: &LawChecker,
    who: usize,
    durable: &Durable,
) -> Verdict {
    let failed = laws.failed[who];
    let logged = i64::from(durable.failures_logged(who));
    hold("a_failure_is_logged_once", failed == logged, || {
        format!("device {who} has {failed} failed requests and {logged} entries")
    })
}
