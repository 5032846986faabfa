//! Laws about what the service says: nothing that does not rest on the disk.

use engine::ids::ActionId;
use engine::location::Location;
use protocol::coap::message::Message;

use super::{BegunExchange, Breach, LawChecker, Verdict, hold};
use crate::disk::Durable;
use crate::wire::AttemptKey;

/// No datagram and no answer of a step that changes something leaves before it is durable.
pub(super) fn nothing_is_said_before_it_is_saved(laws: &LawChecker, step: Option<u64>) -> Verdict {
    let is_saved = step.is_none_or(|step| !laws.undurable.contains(&step));
    hold("nothing_is_said_before_it_is_saved", is_saved, || {
        format!("step {step:?} speaks and is not durable")
    })
}

/// A registration is answered with the location of the registration on the disk.
pub(super) fn a_location_is_told_when_it_leads_somewhere(
    who: usize,
    datagram: &[u8],
    durable: &Durable,
) -> Verdict {
    let message = Message::decode(datagram).expect("the service speaks well");
    let told: Vec<&str> = message.location_path().collect();
    let key = durable.key(who);
    let registration = durable.record(who).registration.as_ref();
    let kept = registration.map(|kept| Location::new(key, kept.salt).to_string());
    let leads = kept.is_some_and(|kept| told == ["rd", &kept]);
    hold("nothing_is_said_before_it_is_saved", leads, || {
        format!("device {who} is told {told:?}, which is not its registration")
    })
}

/// A request leaves only if a step decided it, and returns what it is.
pub(super) fn a_request_leaves_as_it_was_decided(
    laws: &LawChecker,
    attempt: AttemptKey,
) -> Result<BegunExchange, Breach> {
    let begun = laws.attempts.get(&attempt).copied();
    begun.ok_or_else(|| Breach {
        law: "an_attempt_is_saved_before_it_leaves",
        what: format!("{attempt:?} belongs to no request"),
    })
}

/// A request of a caller leaves only after its attempt was counted on the disk.
pub(super) fn an_attempt_is_saved_before_it_leaves(
    laws: &LawChecker,
    who: usize,
    attempt: AttemptKey,
    action: ActionId,
    durable: &Durable,
) -> Verdict {
    let law = "an_attempt_is_saved_before_it_leaves";
    let breach = |what: String| Breach { law, what };
    let kept = durable.action(who, action);
    let kept = kept.ok_or_else(|| breach(format!("{action} leaves and is not saved")))?;
    let known = laws.known.get(&action);
    let sent = known.map(|known| &known.sent[..]).unwrap_or_default();
    let attempts = sent.len() + usize::from(!sent.contains(&attempt));
    let is_counted = usize::from(kept.attempts_made) >= attempts;
    hold(law, is_counted, || {
        format!(
            "attempt {attempts} of {action} leaves, {} are saved",
            kept.attempts_made
        )
    })?;
    hold(law, kept.status.is_pending(), || {
        format!("{action} leaves and is {:?}", kept.status)
    })
}
