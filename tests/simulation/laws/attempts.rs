//! Laws about what is sent: how often, in which order, and one exchange at a time.

use engine::action::timeline::{TimelineEvent, WaitReason};
use engine::action::{Action, Mode, Protocol, Status};
use engine::ids::ActionId;
use protocol::coap::exchange::Transmission;

use super::{KnownAction, LawChecker, Verdict, hold, reaching};
use crate::disk::{ActionMove, Durable};
use crate::wire::{AttemptKey, RequestPurpose};

/// No request is sent in more attempts than permitted, however often the service crashes.
pub(super) fn attempts_never_exceed_what_was_permitted(
    known: &KnownAction,
    id: ActionId,
    durable: &Durable,
) -> Verdict {
    let permitted = durable
        .action(known.who, id)
        .map_or(0, |action| action.attempts_permitted);
    let left = known.sent.len();
    hold(
        "attempts_never_exceed_what_was_permitted",
        left <= usize::from(permitted),
        || format!("{id} left in {left} attempts and may in {permitted}"),
    )
}

/// A new exchange begins only when the one before has ended: by an answer, a Reset, or silence for
/// the shortest time an exchange lasts. A read for passive reporting that was acknowledged lasts as
/// long as it may stay unanswered while something else waits.
pub(super) fn one_exchange_is_in_flight(
    laws: &LawChecker,
    who: usize,
    (at_ms, purpose): (i64, RequestPurpose),
    durable: &Durable,
) -> Verdict {
    let law = "one_exchange_is_in_flight_oldest_first";
    let needs_none = purpose == RequestPurpose::Bootstrap || purpose.protocol() != Protocol::Lwm2m;
    let is_registered = needs_none || durable.record(who).registration.is_some();
    hold(law, is_registered, || {
        format!("device {who} is asked and not registered")
    })?;
    let Some(open) = &laws.open[who] else {
        return Ok(());
    };
    let lasted_ms = at_ms - open.begun_at_ms;
    // A block-wise transfer ends, too, when no block was transferred for too long.
    let purpose = laws.attempts.get(&open.attempt).map(|it| it.purpose);
    let may_last_ms = laws.rules.limits.passive_response_timeout_ms;
    let gave_way = matches!(purpose, Some(RequestPurpose::Report(_)))
        && open
            .acknowledged_at_ms
            .is_some_and(|it| at_ms - it >= may_last_ms);
    let has_ended = open.is_answered
        || open.is_part
        || gave_way
        || lasted_ms >= shortest_ms(&laws.rules.transmission);
    hold(law, has_ended, || {
        format!(
            "device {who} is asked again {lasted_ms} ms after {:?}",
            open.attempt
        )
    })
}

/// The shortest duration of an exchange without answer: until its last timeout or, if wake-ups are
/// late, until it is too late to retransmit.
fn shortest_ms(transmission: &Transmission) -> i64 {
    let timeouts = (1 << (transmission.max_retransmit + 1)) - 1;
    let shortest_ms = i64::from(transmission.ack_timeout_ms);
    let longest_ms = shortest_ms * i64::from(transmission.ack_random_factor_percent) / 100;
    let in_time_ms = shortest_ms * timeouts;
    let late_ms = longest_ms * (timeouts / 2) + shortest_ms;
    in_time_ms
        .min(late_ms)
        .min(transmission.response_timeout_ms.into())
}

/// When a scheduled request is sent, no older one that could be sent is still scheduled. One for
/// the next uplink waits for an uplink, and requests over the protocol of an unanswered request
/// wait. A request that is to be sent now and came after the silence does not wait for those, nor
/// for one that was created while no session of the device was known. When a request whose time had
/// to come was released is not known here.
pub(super) fn the_oldest_request_goes_first(
    laws: &LawChecker,
    moved: &ActionMove,
    action: &Action,
    durable: &Durable,
) -> Verdict {
    let begins = moved
        .from
        .is_some_and(|(before, _)| before == Status::Scheduled)
        && action.status == Status::InProgress;
    if !begins {
        return Ok(());
    }
    let may_be_silent = laws.may_be_silent(moved.who);
    if action.not_before.is_some() {
        return Ok(());
    }
    let was_without_session = |other: &Action| {
        laws.known
            .get(&other.id)
            .is_some_and(|it| it.is_without_session)
    };
    let is_next = |other: &Action| match (action.mode, other.mode) {
        _ if other.not_before.is_some() => false,
        (Mode::SendWhenActive, _) => !may_be_silent || other.protocol() == action.protocol(),
        (Mode::SendNow, Mode::SendNow) => {
            !may_be_silent && !was_asleep(other) && !was_without_session(other)
        }
        (Mode::SendNow, Mode::SendWhenActive) => false,
    };
    let older = durable.pending(moved.who).find(|other| {
        other.status == Status::Scheduled
            && other.created_at < action.created_at
            && other.expires_at > action.updated_at
            && reaching::has_a_way(laws, (other, action.updated_at), moved.who, durable)
            && is_next(other)
    });
    hold(
        "one_exchange_is_in_flight_oldest_first",
        older.is_none(),
        || {
            format!(
                "{} ({:?}) goes before {:?}",
                action.id,
                action.protocol(),
                older.map(|older| (older.id, older.protocol()))
            )
        },
    )
}

/// Whether the device slept when the request was created: then the request waits for an uplink, and
/// a part of a message that wakes the device is none.
fn was_asleep(action: &Action) -> bool {
    let first = action.timeline.as_slice().first().map(|entry| entry.what);
    first == Some(TimelineEvent::Waiting(WaitReason::Asleep))
}

/// Attempts are counted one by one, never beyond what is permitted, and none begins before the time
/// that the caller set or once the request has expired.
pub(super) fn an_attempt_begins_in_time(
    at_ms: i64,
    moved: &ActionMove,
    action: &Action,
) -> Verdict {
    let law = "attempts_never_exceed_what_was_permitted";
    let id = action.id;
    let (before, now) = (
        moved.from.map_or(0, |(_, attempts)| attempts),
        action.attempts_made,
    );
    hold(law, now <= action.attempts_permitted, || {
        format!("{id} made {now} attempts of {}", action.attempts_permitted)
    })?;
    hold(law, now == before || now == before + 1, || {
        format!("{id} made {before} attempts and then {now}")
    })?;
    let begins = now > before;
    hold(
        law,
        !begins || action.updated_at < action.expires_at,
        || format!("{id} begins an attempt after its expiry"),
    )?;
    let is_due = !action.is_deferred(action.updated_at);
    hold(law, !begins || is_due, || {
        format!("{id} begins an attempt before its time")
    })?;
    hold(law, action.updated_at.as_ms() <= at_ms, || {
        format!("{id} is ahead of its time")
    })
}

/// The timeline of a request has as many attempts as were counted, in order of time, and ends with
/// the answer if there is one that counts.
pub(super) fn a_timeline_has_every_attempt(action: &Action) -> Verdict {
    let law = "a_timeline_has_every_attempt";
    let happened = action.timeline.as_slice();
    let id = action.id;
    let begun = happened.iter().filter_map(|entry| match entry.what {
        TimelineEvent::AttemptBegun(number) => Some(number),
        TimelineEvent::Waiting(_)
        | TimelineEvent::DatagramSent
        | TimelineEvent::DatagramRepeated
        | TimelineEvent::Acknowledged
        | TimelineEvent::AttributesWritten(_)
        | TimelineEvent::Answered(_)
        | TimelineEvent::Rejected
        | TimelineEvent::GaveUp => None,
    });
    hold(law, begun.eq(1..=action.attempts_made), || {
        format!("{id} made {} attempts: {happened:?}", action.attempts_made)
    })?;
    hold(law, happened.is_sorted_by_key(|entry| entry.at), || {
        format!("{id}: {happened:?}")
    })?;
    let last = happened.last().map(|entry| entry.what);
    let was_answered = match action.protocol() {
        Protocol::Udp => last == Some(TimelineEvent::DatagramSent),
        Protocol::Coap | Protocol::Lwm2m => {
            matches!(last, Some(TimelineEvent::Answered(code)) if code.is_success())
        }
    };
    let has_succeeded = action.status == Status::Succeeded;
    hold(law, was_answered || !has_succeeded, || {
        format!("{id} succeeded: {happened:?}")
    })
}

/// A device performs an attempt once, unless it rebooted and lost its state.
pub(super) fn a_device_performs_an_attempt_once(
    laws: &LawChecker,
    who: usize,
    boot: u32,
    attempt: AttemptKey,
) -> Verdict {
    let law = "an_attempt_is_performed_at_most_once";
    let is_known = laws.attempts.contains_key(&attempt);
    hold(law, is_known, || {
        format!("{attempt:?} was performed and belongs to no request")
    })?;
    let before = laws.deeds.get(&(who, attempt)).map(|done| done.boot);
    hold(law, before != Some(boot), || {
        format!("{attempt:?} was performed twice")
    })
}
