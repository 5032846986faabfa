//! Laws about what depends on when a device was heard, and what on time only.

use engine::action::Protocol;
use engine::ids::ActionId;
use protocol::coap::dedup::RECENT_MAX;
use protocol::coap::message::Message;

use super::{LawChecker, RegistrationReply, SentDatagram, Verdict, hold};
use crate::disk::Durable;
use crate::wire::Head;

/// How long a request may outlive its expiry while its machine is there: as long as an attempt in
/// flight, which is not cut off, and the disk may take.
const GRACE_MS: i64 = 600_000;

/// EXCHANGE_LIFETIME of RFC 7252 section 4.8.2.
const REPETITION_MS: i64 = 247_000;

/// A device in queue mode receives requests only for a while after it was heard.
pub(super) fn a_sleeping_device_gets_no_request(
    laws: &LawChecker,
    (at_ms, over): (i64, Protocol),
    who: usize,
    durable: &Durable,
) -> Verdict {
    let registration = durable.record(who).registration.as_ref();
    let sleeps = registration.is_some_and(|registration| registration.binding.queue_mode());
    let silent_ms = at_ms - laws.uplinks[who].heard_at_ms;
    // A device whose registration has expired is tried over other protocols.
    let is_over = registration.is_some_and(|registration| registration.expires_at.as_ms() <= at_ms);
    let is_tried = is_over && over != Protocol::Lwm2m;
    let may_listen = !sleeps || is_tried || silent_ms < laws.rules.limits.awake_window_ms;
    hold("a_sleeping_device_gets_no_request", may_listen, || {
        format!("device {who} sleeps and is asked after {silent_ms} ms of silence")
    })
}

/// Between two attempts of a request the device registers or updates.
pub(super) fn a_retry_waits_for_an_uplink(laws: &LawChecker, who: usize, id: ActionId) -> Verdict {
    let before = laws
        .known
        .get(&id)
        .and_then(|known| known.uplinks_at_attempt);
    let was_heard = before.is_none_or(|before| before < laws.uplinks[who].uplinks);
    hold("a_retry_waits_for_an_uplink", was_heard, || {
        format!("{id} is tried again without an uplink of device {who}")
    })
}

/// A repeated registration request gets the same location while it is remembered.
pub(super) fn a_repeated_register_gets_the_same_location(
    laws: &mut LawChecker,
    who: usize,
    outcome: &SentDatagram<'_>,
) -> Verdict {
    let message = Message::decode(outcome.datagram).expect("the service speaks well");
    let location: Vec<String> = message.location_path().map(str::to_owned).collect();
    let head = Head::of(outcome.datagram).expect("a message has a head");
    let record = &mut laws.uplinks[who];
    // When the machine handled the request: it handles nothing else before its answer is sent.
    let at_ms = record.heard_at_ms;
    let reply = RegistrationReply {
        to: outcome.to,
        key: head.key(),
        location,
        at_ms,
        received_since: 0,
    };
    // The answer to an older request that is repeated contains the location of the registration
    // that replaced it.
    if let Some(before) = &record.last_reply
        && before.key != reply.key
        && before.location == reply.location
    {
        return Ok(());
    }
    let before = record.last_reply.replace(reply);
    let reply = record.last_reply.as_mut().expect("it was put there");
    let Some(before) = before.filter(|before| before.key == reply.key) else {
        return Ok(());
    };
    let is_remembered = before.received_since < RECENT_MAX && at_ms - before.at_ms < REPETITION_MS;
    let is_same = before.location == reply.location;
    // A forgotten request begins again; a remembered one keeps its age.
    if is_same {
        (reply.at_ms, reply.received_since) = (before.at_ms, before.received_since);
    }
    hold(
        "a_repeated_register_gets_the_same_location",
        is_same || !is_remembered,
        || {
            format!(
                "device {who} is answered {:?} after {:?}",
                reply.location, before.location
            )
        },
    )
}

/// No lifecycle event says what was said already, and none is missing before it.
pub(super) fn each_lifecycle_event_is_published_once(who: usize, durable: &Durable) -> Verdict {
    let presence = durable.history(who).presence();
    hold(
        "each_lifecycle_event_is_published_once",
        presence.misplaced.is_none(),
        || {
            format!(
                "device {who}: {:?} does not belong into {:?}",
                presence.misplaced, presence.told
            )
        },
    )
}

/// An expired request is no longer pending.
pub(super) fn an_expired_request_fails_in_time(
    laws: &LawChecker,
    at_ms: i64,
    who: usize,
    durable: &Durable,
) -> Verdict {
    let since_ms = laws.uplinks[who].machine_since_ms;
    let overdue = durable
        .pending(who)
        .find(|action| at_ms - action.expires_at.as_ms().max(since_ms) > GRACE_MS);
    hold(
        "an_expired_request_fails_in_time",
        overdue.is_none(),
        || {
            format!(
                "{:?} is pending after its expiry",
                overdue.map(|action| action.id)
            )
        },
    )
}
