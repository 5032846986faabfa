//! Laws about the results that callers are shown.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::action::{Action, CoapRequest, Content, Operation, Request, ResultPayload, Status};
use protocol::lwm2m::path::Path;

use super::deeds::given_and_answered;
use super::{LawChecker, Verdict, hold};
use crate::disk::payload_of;
use crate::wire::AttemptKey;

/// A request succeeds only if the device performed one of its attempts. A read shows the value at
/// that time; an observe-start may also show a value notified since.
pub(super) fn a_success_is_what_the_device_did(laws: &LawChecker, action: &Action) -> Verdict {
    if action.status != Status::Succeeded {
        return Ok(());
    }
    let known = laws.known.get(&action.id);
    let sent = known.map(|known| &known.sent[..]).unwrap_or_default();
    let continued = known.map(|known| &known.continued[..]).unwrap_or_default();
    let devices = 0..laws.members;
    let done = devices.flat_map(|who| {
        let all = sent.iter().chain(continued);
        all.filter_map(move |attempt| laws.deeds.get(&(who, *attempt)))
    });
    let payloads: Vec<&[u8]> = done
        .flat_map(|done| &done.payloads)
        .map(Vec::as_slice)
        .collect();
    let request = match &action.request {
        Request::Udp(_) => {
            let is_taken = known.is_some_and(|known| known.is_taken);
            return hold("a_success_is_what_the_device_did", is_taken, || {
                format!("{} succeeded and never left", action.id)
            });
        }
        Request::Coap(request) => return a_plain_success(action, request, &payloads),
        Request::Lwm2m(request) => request,
    };
    // The simulation's callers address one path in each operation that shows a value.
    let path = request.address().unwrap_or(Path::object(0));
    let shown = shown_of(action, path);
    let has_shown = |shown: &Vec<u8>| payloads.contains(&shown.as_slice());
    let was_notified = |shown: &Vec<u8>| {
        let mut sent = sent.iter().chain(continued);
        sent.any(|attempt| laws.sent_notifications.has_notified(attempt, path, shown))
    };
    let is_true = match request.operation() {
        Operation::Read => shown.as_ref().is_some_and(has_shown),
        // A late response to one request may answer the next one under the same token.
        Operation::ObserveEnd => shown
            .as_ref()
            .is_some_and(|shown| has_shown(shown) || laws.was_done_under(sent, shown)),
        Operation::ObserveStart => shown
            .as_ref()
            .is_some_and(|shown| has_shown(shown) || was_notified(shown)),
        Operation::Write => {
            let written = request.data().unwrap_or_default();
            payloads.contains(&written.as_bytes())
        }
        Operation::Execute
        | Operation::Create
        | Operation::Delete
        | Operation::WriteAttributes
        | Operation::WriteInstance
        | Operation::Discover
        | Operation::ReadComposite
        | Operation::WriteComposite
        | Operation::ObserveCompositeStart
        | Operation::ObserveCompositeEnd => !payloads.is_empty(),
    };
    hold("a_success_is_what_the_device_did", is_true, || {
        format!(
            "{} shows {:?}, the device had {payloads:?}",
            action.id, action.outcome
        )
    })
}

/// A plain request shows the payload the device received and the payload of its response.
fn a_plain_success(action: &Action, request: &CoapRequest, done: &[&[u8]]) -> Verdict {
    let given = request.content.as_ref().map(Content::bytes);
    let shown = action.outcome.as_ref();
    let shown = shown.and_then(|outcome| outcome.payload.as_ref()?.as_text());
    let answered = shown.map(|text| {
        let decoded = STANDARD.decode(text).unwrap_or_default();
        [text.as_bytes().to_vec(), decoded]
    });
    let answered = answered.unwrap_or_default();
    let mut fitting = answered
        .iter()
        .map(|answered| given_and_answered(given.as_deref().unwrap_or_default(), answered));
    let is_true = fitting.any(|it| done.contains(&it.as_slice()));
    hold("a_success_is_what_the_device_did", is_true, || {
        let outcome = &action.outcome;
        format!(
            "{} shows {outcome:?}, and {done:?} was given and answered",
            action.id
        )
    })
}

impl LawChecker {
    /// Whether a device did this for an attempt with the same token.
    fn was_done_under(&self, sent: &[AttemptKey], payload: &[u8]) -> bool {
        let is_alike = |other: &AttemptKey| sent.iter().any(|own| own.token() == other.token());
        let mut alike = self.deeds.iter().filter(|((_, done), _)| is_alike(done));
        alike.any(|(_, deeds)| deeds.payloads.iter().any(|done| done == payload))
    }
}

/// The value a caller is shown, in the bytes of the device.
fn shown_of(action: &Action, path: Path) -> Option<Vec<u8>> {
    match action.outcome.as_ref()?.payload.as_ref()? {
        ResultPayload::Text(text) => Some(text.as_bytes().to_vec()),
        ResultPayload::Values(values) => Some(payload_of(path, values)),
        ResultPayload::Links(_) => None,
    }
}

/// A failed request has an error message, and any other request has none.
pub(super) fn a_failure_says_why(action: &Action) -> Verdict {
    let error = action
        .outcome
        .as_ref()
        .and_then(|outcome| outcome.error.as_ref());
    let has_failed = action.status == Status::Failed;
    hold(
        "a_success_is_what_the_device_did",
        error.is_some() == has_failed,
        || {
            format!(
                "{} is {:?} with {:?}",
                action.id, action.status, action.outcome
            )
        },
    )
}
