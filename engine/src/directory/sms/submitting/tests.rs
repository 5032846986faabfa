//! Which part is a receipt about, and what becomes of an SMS by its parts?

use super::*;
use crate::directory::sms::tests::tracker;
use crate::directory::sms::{NewSms, cancel, submit, take};
use crate::limits::SmsRules;
use crate::moment::Timestamp;
use crate::sms::SmsPurpose;
use crate::sms::address::AddressType;

const NOON: Timestamp = Timestamp::from_ms(1_795_521_600_000);

#[test]
fn an_sms_is_delivered_once_all_its_parts_are() {
    let mut sms = taken(1, &"a".repeat(161));
    sms = stored(accept_part(sms, 1, "one").batch);
    sms = stored(accept_part(sms, 2, "two").batch);
    let delivered = |sms: Sms, id: &str| apply(vec![sms], &receipt(Some(id), None));
    sms = stored(delivered(sms, "two").unwrap());
    assert_eq!(status(&sms), SmsStatus::InProgress);
    assert_eq!(
        delivered(sms.clone(), "two"),
        Some(Batch::default()),
        "again"
    );
    sms = stored(delivered(sms, "one").unwrap());
    assert_eq!(status(&sms), SmsStatus::Delivered);
    assert!(!accept_part(sms.clone(), 2, "late").answer, "it is final");
    assert_eq!(release(sms.clone()).batch, Batch::default());
    assert_eq!(
        refuse(&mut at(9), &tracker(), sms, "late").batch,
        Batch::default()
    );
}

#[test]
fn the_first_part_that_fails_fails_the_sms() {
    let sms = stored(accept_part(taken(1, &"a".repeat(161)), 1, "one").batch);
    let failed = Receipt {
        state: Some(ReceiptState::Undelivered),
        ..receipt(Some("one"), None)
    };
    let sms = stored(apply(vec![sms], &failed).unwrap());
    assert_eq!(status(&sms), SmsStatus::Failed);
    let reason = sms.submitted().unwrap().reason.as_deref();
    assert_eq!(reason, Some("DELIVRD, error 000"));
}

#[test]
fn a_receipt_without_a_state_changes_nothing() {
    let sms = stored(accept_part(taken(1, "open"), 1, "one").batch);
    let unclear = Receipt {
        state: None,
        ..receipt(Some("one"), None)
    };
    assert_eq!(apply(vec![sms], &unclear), Some(Batch::default()));
}

#[test]
fn only_an_sms_of_which_nothing_was_accepted_waits_again() {
    let sms = taken(1, &"a".repeat(161));
    let released = stored(release(sms.clone()).batch);
    assert_eq!(status(&released), SmsStatus::Pending);
    assert_eq!(released.state().task, Some(NetworkTask::Send));
    assert!(cancel(&mut at(5), &tracker(), released).is_ok());
    let accepted = stored(accept_part(sms, 1, "one").batch);
    assert_eq!(release(accepted).batch, Batch::default());
}

#[test]
fn a_receipt_is_matched_by_the_surest_way() {
    let known = |ms, id: &str| stored(accept_part(taken(ms, "open"), 1, id).batch);
    let (first, second) = (known(1, "64"), known(2, "100"));
    let unanswered = taken(3, "open");
    let pending = submitted(4, "open");
    let all = || {
        vec![
            first.clone(),
            second.clone(),
            unanswered.clone(),
            pending.clone(),
        ]
    };
    let found = |id: Option<&str>, reference: Option<u16>| {
        matched(all(), &receipt(id, reference)).map(|(sms, number)| (sms.id, number))
    };
    let of = |sms: &Sms| Some((sms.id, 1));
    let reference = |sms: &Sms| Some(sms.part_reference(1));
    assert_eq!(found(Some("100"), None), of(&second), "its id");
    assert_eq!(found(Some("0064"), None), of(&first), "in another notation");
    assert_eq!(
        found(Some("100"), reference(&first)),
        of(&first),
        "0x64 is 100"
    );
    assert_eq!(found(Some("new"), reference(&unanswered)), of(&unanswered));
    assert_eq!(found(None, reference(&unanswered)), of(&unanswered));
    assert_eq!(found(Some("new"), reference(&first)), None, "it has an id");
    assert_eq!(
        found(Some("new"), reference(&pending)),
        None,
        "not submitted"
    );
    assert_eq!(found(Some("new"), None), None);
}

#[test]
fn a_receipt_of_no_device_is_about_the_only_sms_with_its_id_or_the_one_with_its_reference() {
    let known = |ms, id: &str| stored(accept_part(taken(ms, "open"), 1, id).batch);
    let (one, other) = (known(1, "64"), known(2, "64"));
    let by_id = receipt(Some("64"), None);
    assert_eq!(named_by(vec![], &by_id), None);
    assert_eq!(named_by(vec![one.clone()], &by_id), Some(one.clone()));
    let both = || vec![one.clone(), other.clone()];
    assert_eq!(named_by(both(), &by_id), None);
    let with_reference = receipt(Some("64"), Some(other.part_reference(1)));
    assert_eq!(named_by(both(), &with_reference), Some(other.clone()));
    let unlike = receipt(Some("64"), Some(other.part_reference(9)));
    assert_eq!(named_by(both(), &unlike), None);
}

fn apply(open: Vec<Sms>, receipt: &Receipt) -> Option<Batch> {
    apply_receipt(&mut at(9), &tracker(), open, receipt).map(|decided| decided.batch)
}

fn receipt(id: Option<&str>, reference: Option<u16>) -> Receipt {
    Receipt {
        message_id: id.map(Into::into),
        user_message_reference: reference,
        state: Some(ReceiptState::Delivered),
        description: "DELIVRD, error 000".into(),
    }
}

fn at(ms: i64) -> Moment {
    Moment::new(NOON.plus_ms(ms), 7)
}

fn submitted(ms: i64, text: &str) -> Sms {
    let new = NewSms {
        source: "1234".into(),
        source_type: AddressType::International,
        payload: text.into(),
        dcs: 0,
        udh: None,
        expires_at: None,
        purpose: SmsPurpose::Message,
    };
    let rules = SmsRules {
        validity_ms: 60_000,
        open_max: 9,
        wake_ups_max: 4,
    };
    submit(&mut at(ms), &tracker(), new, 0, rules)
        .unwrap()
        .answer
}

fn taken(ms: i64, text: &str) -> Sms {
    let mut taken = take(NOON.plus_ms(ms), vec![submitted(ms, text)]).answer;
    taken.remove(0).1
}

fn stored(batch: Batch) -> Sms {
    let put = batch.changes.into_iter().find_map(|change| {
        if let crate::change::Change::PutSms { sms, .. } = change {
            Some(*sms)
        } else {
            None
        }
    });
    put.expect("it is changed")
}

fn status(sms: &Sms) -> SmsStatus {
    sms.submitted().unwrap().status
}
