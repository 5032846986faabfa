//! Decisions about the parts of SMS that a link submits to an SMS centre: which were accepted,
//! which are refused, and which part a delivery receipt is about.

use protocol::smpp::receipt::{Receipt, ReceiptState, is_same_id, is_same_id_otherwise_written};

use super::{Settlement, put, settled, unchanged};
use crate::change::{Batch, Expect};
use crate::directory::Decision;
use crate::moment::Moment;
use crate::profile::Profile;
use crate::sms::{
    NetworkTask, ReportedStatus, Sms, SmsStatus, SmsWay, SubmittedPart, SubmittedSms,
};

/// Records that the SMS centre accepted a part. The answer is whether the next one may follow.
pub fn accept_part(was: Sms, number: u8, message_id: &str) -> Decision<bool> {
    let Some(submitted) = was.submitted().filter(|it| !it.status.is_final()) else {
        return Decision {
            batch: Batch::default(),
            answer: false,
        };
    };
    let mut parts = submitted.parts.clone();
    let part = part_at(&mut parts, number);
    if !message_id.is_empty() {
        part.message_id = Some(message_id.into());
    }
    Decision {
        batch: with_parts(was, parts).batch,
        answer: true,
    }
}

/// Takes an SMS back of which nothing was submitted: it waits for the network again.
pub fn release(was: Sms) -> Decision<()> {
    let SmsWay::ToDevice(submitted) = &was.way else {
        return unchanged();
    };
    if submitted.status != SmsStatus::InProgress || !submitted.parts.is_empty() {
        return unchanged();
    }
    let submitted = SubmittedSms {
        status: SmsStatus::Pending,
        task: Some(NetworkTask::Send),
        taken_at: None,
        ..(**submitted).clone()
    };
    changed(was, submitted)
}

/// Settles an SMS that the SMS centre refused.
pub fn refuse(m: &mut Moment, device: &Profile, was: Sms, reason: &str) -> Decision<()> {
    match was.submitted() {
        Some(submitted) if !submitted.status.is_final() => {
            let to = Settlement {
                reason: Some(reason.into()),
                ..Settlement::reported(SmsStatus::Failed)
            };
            settled(m, device, was, to)
        }
        Some(_) | None => unchanged(),
    }
}

/// The SMS that a receipt is about whose address is that of no device: the one that has its message
/// id, of those without a final status. If several have it, as of several SMS centres, the
/// reference must tell which.
pub fn named_by(mut found: Vec<Sms>, receipt: &Receipt) -> Option<Sms> {
    if found.len() > 1 {
        let total = |sms: &Sms| u8::try_from(total(sms)).unwrap_or(u8::MAX);
        found.retain(|sms| (1..=total(sms)).any(|part| has_reference(sms, part, receipt)));
    }
    let only = found.len() == 1;
    found.pop().filter(|_| only)
}

/// Applies a receipt about an SMS to a device, of those without a final status; none if it is about
/// none of them. The SMS is delivered once all its parts are, and fails or expires with the first
/// part that does. A repeated receipt changes nothing.
pub fn apply_receipt(
    m: &mut Moment,
    device: &Profile,
    open: Vec<Sms>,
    receipt: &Receipt,
) -> Option<Decision<()>> {
    let (was, number) = matched(open, receipt)?;
    // Without a state it says that the SMS centre does not know.
    let Some(status) = receipt.state.map(reported) else {
        return Some(unchanged());
    };
    let submitted = was.submitted()?;
    let mut parts = submitted.parts.clone();
    let part = part_at(&mut parts, number);
    let is_final = |status: ReportedStatus| SmsStatus::from(status).is_final();
    if part.status.is_some_and(is_final) || part.status == Some(status) {
        return Some(unchanged());
    }
    part.status = Some(status);
    if part.message_id.is_none() {
        part.message_id.clone_from(&receipt.message_id);
    }
    let delivered = parts
        .iter()
        .filter(|part| part.status == Some(ReportedStatus::Delivered));
    let is_partial = match status {
        ReportedStatus::Delivered => delivered.count() < total(&was),
        ReportedStatus::Buffered => submitted.status == SmsStatus::Buffered,
        ReportedStatus::Failed | ReportedStatus::Expired => false,
    };
    if is_partial {
        return Some(with_parts(was, parts));
    }
    let has_failed = status == ReportedStatus::Failed;
    let reason = Some(&receipt.description).filter(|it| has_failed && !it.is_empty());
    let to = Settlement {
        reason: reason.cloned(),
        parts: Some(parts),
        ..Settlement::reported(status.into())
    };
    Some(settled(m, device, was, to))
}

/// The SMS to a device, of those without a final status, that a receipt is about, and the number of
/// the part. Two parts rarely have the same reference, and the same id means another message in
/// another notation, so the surest way is tried first. A part without a known id is one whose
/// response is lost or follows.
fn matched(open: Vec<Sms>, receipt: &Receipt) -> Option<(Sms, u8)> {
    type Fits = fn(&Sms, u8, &Receipt) -> bool;
    let ways: [Fits; 4] = [
        |sms, number, receipt| {
            let has_id = has_id(sms, number, receipt, is_same_id)
                || has_id(sms, number, receipt, is_same_id_otherwise_written);
            has_id && has_reference(sms, number, receipt)
        },
        |sms, number, receipt| has_id(sms, number, receipt, is_same_id),
        |sms, number, receipt| has_reference(sms, number, receipt) && is_unanswered(sms, number),
        |sms, number, receipt| has_id(sms, number, receipt, is_same_id_otherwise_written),
    ];
    let found = ways.iter().find_map(|fits| {
        let mut all = open.iter().enumerate().rev();
        all.find_map(|(place, sms)| {
            // Of those that follow, none is known and none is on the air.
            let known = sms.submitted().map_or(0, |it| it.parts.len());
            let next = u8::try_from(known + 1).unwrap_or(u8::MAX);
            let number = (1..=next).find(|number| fits(sms, *number, receipt))?;
            (usize::from(number) <= total(sms)).then_some((place, number))
        })
    });
    let (place, number) = found?;
    open.into_iter().nth(place).map(|sms| (sms, number))
}

fn total(sms: &Sms) -> usize {
    sms.encoded().map_or(1, |encoded| encoded.parts.len())
}

fn reported(state: ReceiptState) -> ReportedStatus {
    match state {
        ReceiptState::Enroute => ReportedStatus::Buffered,
        ReceiptState::Delivered => ReportedStatus::Delivered,
        ReceiptState::Expired => ReportedStatus::Expired,
        ReceiptState::Undelivered => ReportedStatus::Failed,
    }
}

fn has_reference(sms: &Sms, number: u8, receipt: &Receipt) -> bool {
    receipt.user_message_reference == Some(sms.part_reference(number))
}

/// Whether a part may be on the air under an id that is not known.
fn is_unanswered(sms: &Sms, number: u8) -> bool {
    let is_taken = sms.submitted().is_some_and(|it| {
        let known = it.parts.len();
        let is_next = usize::from(number) <= known + 1;
        it.status != SmsStatus::Pending && is_next
    });
    is_taken && known_id(sms, number).is_none()
}

fn has_id(sms: &Sms, number: u8, receipt: &Receipt, is_same: fn(&str, &str) -> bool) -> bool {
    known_id(sms, number)
        .zip(receipt.message_id.as_deref())
        .is_some_and(|(one, other)| is_same(one, other))
}

fn known_id(sms: &Sms, number: u8) -> Option<&str> {
    let place = usize::from(number).checked_sub(1)?;
    sms.submitted()?.parts.get(place)?.message_id.as_deref()
}

/// The part with a number; those before it that are not known yet are added.
fn part_at(parts: &mut Vec<SubmittedPart>, number: u8) -> &mut SubmittedPart {
    let place = usize::from(number).saturating_sub(1);
    if parts.len() <= place {
        parts.resize_with(place + 1, SubmittedPart::default);
    }
    &mut parts[place]
}

fn with_parts(was: Sms, parts: Vec<SubmittedPart>) -> Decision<()> {
    let SmsWay::ToDevice(submitted) = &was.way else {
        return unchanged();
    };
    let submitted = SubmittedSms {
        parts,
        ..(**submitted).clone()
    };
    changed(was, submitted)
}

fn changed(was: Sms, submitted: SubmittedSms) -> Decision<()> {
    let sms = Sms {
        way: SmsWay::ToDevice(Box::new(submitted)),
        ..was.clone()
    };
    Decision {
        batch: Batch {
            changes: vec![put(Some(was.state()), sms)],
            expects: vec![Expect::Sms(Box::new(was))],
            ..Batch::default()
        },
        answer: (),
    }
}

#[cfg(test)]
mod tests;
