//! Laws about what the service sends and replies: nothing before it is durable.

use engine::ids::ActionId;
use engine::location::Location;
use protocol::coap::message::Message;

use super::{BegunExchange, Breach, LawChecker, Verdict, hold};
use crate::disk::Durable;
use crate::wire::AttemptKey;

/// No datagram and no reply of a step with changes is sent before the changes are durable.
pub(super) fn nothing_is_sent_before_it_is_saved(laws: &LawChecker, step: Option<u64>) -> Verdict {
    let is_saved = step.is_none_or(|step| !laws.undurable.contains(&step));
    hold("nothing_is_sent_before_it_is_saved", is_saved, || {
        format!("step {step:?} speaks and is not durable")
    })
}

/// A registration is answered with the location of the registration on the disk.
pub(super) fn an_answered_location_exists(
    who: usize,
    datagram: &[u8],
    durable: &Durable,
) -> Verdict {
    let message = Message::decode(datagram).expect("the service speaks well");
    let answered: Vec<&str> = message.location_path().collect();
    let key = durable.key(who);
    let registration = durable.record(who).registration.as_ref();
    let current = registration.map(|it| Location::new(key, it.salt).to_string());
    let leads = current.is_some_and(|current| answered == ["rd", &current]);
    hold("nothing_is_sent_before_it_is_saved", leads, || {
        format!("device {who} is answered {answered:?}, which is not its registration")
    })
}

/// A request is sent only if a step decided it; returns its purpose.
pub(super) fn a_request_is_sent_as_decided(
    laws: &LawChecker,
    attempt: AttemptKey,
) -> Result<BegunExchange, Breach> {
    let begun = laws.attempts.get(&attempt).copied();
    begun.ok_or_else(|| Breach {
        law: "an_attempt_is_saved_before_it_is_sent",
        what: format!("{attempt:?} belongs to no request"),
    })
}

/// A caller's request is sent only after its attempt was counted on the disk.
pub(super) fn an_attempt_is_saved_before_it_is_sent(
    laws: &LawChecker,
    who: usize,
    attempt: AttemptKey,
    action: ActionId,
    durable: &Durable,
) -> Verdict {
    let law = "an_attempt_is_saved_before_it_is_sent";
    let breach = |what: String| Breach { law, what };
    let stored = durable.action(who, action);
    let stored = stored.ok_or_else(|| breach(format!("{action} leaves and is not saved")))?;
    let known = laws.known.get(&action);
    let sent = known.map(|known| &known.sent[..]).unwrap_or_default();
    let attempts = sent.len() + usize::from(!sent.contains(&attempt));
    let is_counted = usize::from(stored.attempts_made) >= attempts;
    hold(law, is_counted, || {
        format!(
            "attempt {attempts} of {action} leaves, {} are saved",
            stored.attempts_made
        )
    })?;
    hold(law, stored.status.is_pending(), || {
        format!("{action} leaves and is {:?}", stored.status)
    })
}
