//! Laws about what callers are shown in the end.

use engine::action::{Action, Operation, Request, Status};

use super::{Judge, Verdict, hold};

/// A request succeeds only if the device did it for one of its attempts; a read shows what the
/// device had then.
pub(super) fn a_success_is_what_the_device_did(judge: &Judge, action: &Action) -> Verdict {
    if action.status != Status::Succeeded {
        return Ok(());
    }
    let known = judge.known.get(&action.id);
    let sent = known.map(|known| &known.sent[..]).unwrap_or_default();
    let devices = 0..judge.open.len();
    let done = devices.flat_map(|who| {
        sent.iter()
            .filter_map(move |attempt| judge.deeds.get(&(who, *attempt)))
    });
    let payloads: Vec<&[u8]> = done
        .flat_map(|done| &done.payloads)
        .map(Vec::as_slice)
        .collect();
    let Request::Lwm2m(request) = &action.request;
    let shown = action
        .outcome
        .as_ref()
        .and_then(|outcome| outcome.payload.as_ref()?.as_text());
    let is_true = match request.operation {
        Operation::Read | Operation::ObserveStart | Operation::ObserveEnd => {
            shown.is_some_and(|shown| payloads.contains(&shown.as_bytes()))
        }
        Operation::Write => {
            let written = request.data.as_deref().unwrap_or_default();
            payloads.contains(&written.as_bytes())
        }
        Operation::Execute => !payloads.is_empty(),
    };
    hold("a_success_is_what_the_device_did", is_true, || {
        format!(
            "{} shows {:?}, the device had {payloads:?}",
            action.id, action.outcome
        )
    })
}

/// A request that failed says why, and one that did not fail has no error.
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
