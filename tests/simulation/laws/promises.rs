//! Laws about what was answered to callers.

use engine::action::{Action, Status};
use engine::ids::ActionId;

use super::{LawChecker, Verdict, hold};
use crate::disk::{ActionMove, Durable};

/// Every accepted request stays on the disk, even if its device is removed.
pub(super) fn a_202_survives_a_crash(laws: &LawChecker, durable: &Durable) -> Verdict {
    let promised = laws.known.iter().filter(|(_, known)| known.is_promised);
    for (id, known) in promised {
        a_202_is_sent_after_the_commit(known.who, *id, durable)?;
    }
    Ok(())
}

/// A request in a reply to a caller is on the disk.
pub(super) fn a_202_is_sent_after_the_commit(
    who: usize,
    id: ActionId,
    durable: &Durable,
) -> Verdict {
    let is_kept = durable.action(who, id).is_some();
    hold("a_202_survives_a_crash", is_kept, || {
        format!("{id} was promised and is gone")
    })
}

/// A device that was removed, or is answered to be unknown, does not exist, and none of its
/// requests is left for another device of its name.
pub(super) fn a_removed_device_is_gone(who: usize, durable: &Durable) -> Verdict {
    let law = "a_removed_device_is_gone";
    hold(law, !durable.exists(who), || {
        format!("device {who} was answered to be unknown and exists")
    })?;
    let pending: Vec<_> = durable.pending(who).map(|action| action.id).collect();
    hold(law, pending.is_empty(), || {
        format!("device {who} was removed and owes {pending:?}")
    })
}

/// A restored machine knows every request that is not final.
pub(super) fn a_restored_device_knows_what_it_owes(
    who: usize,
    pending: &[ActionId],
    durable: &Durable,
) -> Verdict {
    let owed: Vec<ActionId> = durable.pending(who).map(|action| action.id).collect();
    hold("a_202_survives_a_crash", owed == pending, || {
        format!("device {who} owes {owed:?} and knows of {pending:?}")
    })
}

/// A request that is cancelled on the disk is not sent.
pub(super) fn cancelled_action_is_never_sent(
    id: ActionId,
    who: usize,
    durable: &Durable,
) -> Verdict {
    let status = durable.action(who, id).map(|action| action.status);
    let is_cancelled = status == Some(Status::Cancelled);
    hold("cancelled_action_is_never_sent", !is_cancelled, || {
        format!("{id} leaves though it is cancelled")
    })
}

/// A request that becomes cancelled was never sent.
pub(super) fn a_cancelled_request_was_never_sent(laws: &LawChecker, action: &Action) -> Verdict {
    let known = laws.known.get(&action.id);
    let has_left = known.is_some_and(|known| !known.sent.is_empty());
    let is_cancelled = action.status == Status::Cancelled;
    hold(
        "cancelled_action_is_never_sent",
        !(is_cancelled && has_left),
        || format!("{} is cancelled after it left", action.id),
    )
}

/// A request that is answered to be cancelled is cancelled on the disk.
pub(super) fn a_cancellation_is_answered_after_the_commit(
    who: usize,
    id: ActionId,
    durable: &Durable,
) -> Verdict {
    let status = durable.action(who, id).map(|action| action.status);
    hold(
        "cancelled_action_is_never_sent",
        status == Some(Status::Cancelled),
        || format!("{id} was answered to be cancelled and is {status:?}"),
    )
}

/// A final status stays.
pub(super) fn a_final_status_never_changes(moved: &ActionMove, action: &Action) -> Verdict {
    let was_pending = moved.from.is_none_or(|(before, _)| before.is_pending());
    hold("a_final_status_never_changes", was_pending, || {
        format!(
            "{} was {:?} and is {:?}",
            action.id, moved.from, action.status
        )
    })
}

/// A status changes only as the table of states says.
pub(super) fn a_status_follows_the_table(moved: &ActionMove, action: &Action) -> Verdict {
    let follows = match (moved.from.map(|(before, _)| before), action.status) {
        // A request whose value does not fit fails at its creation.
        (None, Status::Scheduled | Status::InProgress | Status::Failed)
        | (Some(Status::Scheduled), Status::InProgress | Status::Cancelled | Status::Failed)
        | (Some(Status::InProgress), Status::InProgress | Status::Succeeded | Status::Failed) => {
            true
        }
        (_, _) => false,
    };
    hold("a_status_follows_the_table", follows, || {
        format!(
            "{} went from {:?} to {:?}",
            action.id, moved.from, action.status
        )
    })
}
