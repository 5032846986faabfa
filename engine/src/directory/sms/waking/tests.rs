//! Which SMS wakes a device, and when is it refused?

use super::*;
use crate::directory::sms::tests::tracker;
use crate::limits::Limits;
use crate::sms::address::AddressType;
use crate::sms::{SmsWay, SubmittedSms};

const NOON: Timestamp = Timestamp::from_ms(1_795_521_600_000);

const S: i64 = 1_000;

#[test]
fn a_device_is_sent_its_own_message_or_that_of_its_customer() {
    let of_customer = text("wake up");
    let facts = facts(None, Some(of_customer));
    let sms = sent(woken(0, &facts, asleep()));
    assert_eq!(&*to_device(&sms).payload, "wake up");
    assert_eq!((&*sms.source, sms.dcs), ("1234", 0));
    assert_eq!(sms.dest.as_deref(), Some("882285100000001"));
    assert_eq!(to_device(&sms).purpose, SmsPurpose::WakeUp);
    let own = WakeUpMessage {
        content: WakeUpContent::Data([0xca, 0xfe].into()),
        ..text("")
    };
    let facts = WakeUpFacts {
        device: tracker_with(Some(own)),
        ..facts
    };
    let sms = sent(woken(0, &facts, asleep()));
    assert_eq!((&*to_device(&sms).payload, sms.dcs), ("cafe", 4));
}

#[test]
fn a_text_beyond_the_gsm_alphabet_is_ucs2() {
    let facts = facts(Some(text("проснись")), None);
    assert_eq!(sent(woken(0, &facts, asleep())).dcs, 8);
}

#[test]
fn the_registration_update_trigger_executes_resource_8_of_the_server() {
    let trigger = WakeUpMessage {
        content: WakeUpContent::RegistrationUpdateTrigger,
        ..text("")
    };
    let sms = sent(woken(0, &facts(Some(trigger), None), asleep()));
    let payload = &to_device(&sms).payload;
    // NON POST without a token, a message id, Uri-Path 1, 0 and 8.
    assert!(
        payload.starts_with("5002") && payload.ends_with("b13101300138"),
        "{payload}"
    );
    assert_eq!((payload.len(), sms.dcs), (20, 4));
}

#[test]
fn a_device_without_a_number_or_a_message_cannot_be_woken() {
    assert_eq!(
        woken(0, &facts(None, None), asleep()),
        Err(WakeUpRefusal::NoMessage)
    );
    let mut facts = facts(Some(text("wake up")), None);
    facts.device.msisdn = None;
    assert_eq!(woken(0, &facts, asleep()), Err(WakeUpRefusal::NoNumber));
    assert_eq!(check(&facts), Err(WakeUpRefusal::NoNumber));
}

#[test]
fn an_sms_is_valid_no_longer_than_the_request() {
    let facts = facts(Some(text("wake up")), None);
    let expires_at = |after_ms| {
        let at = NOON.plus_ms(after_ms);
        let facts = (&facts, SmsId::first_at(NOON));
        let woken = wake(&mut at_ms(0), facts, asleep(), at, rules());
        to_device(&sent(woken)).expires_at
    };
    assert_eq!(expires_at(600 * S), NOON.plus_ms(600 * S));
    let by_default = NOON.plus_ms(rules().validity_ms);
    assert_eq!(expires_at(2 * rules().validity_ms), by_default);
}

#[test]
fn no_second_sms_is_sent_while_one_is_under_way() {
    let first = sent(woken(0, &facts(Some(text("wake up")), None), asleep()));
    let under_way = Ok(WakeUpSms::UnderWay(first.id));
    // Before it can be read.
    let unread = facts(Some(text("wake up")), None);
    let waiting = SleepingDevice {
        woken_by: Some(first.id),
        ..asleep()
    };
    assert_eq!(woken(S, &unread, waiting), under_way);
    let is_new = |status, after_ms, heard_after_ms: Option<i64>| {
        let facts = WakeUpFacts {
            newest: vec![with_status(&first, status, 10 * S)],
            ..unread.clone()
        };
        let device = SleepingDevice {
            heard_at: heard_after_ms.map(|ms| NOON.plus_ms(ms)),
            woken_by: Some(first.id),
        };
        woken(after_ms, &facts, device) != under_way
    };
    for status in [
        SmsStatus::Pending,
        SmsStatus::InProgress,
        SmsStatus::Buffered,
    ] {
        assert!(!is_new(status, 600 * S, None), "{status:?}");
        assert!(is_new(status, rules().validity_ms, None), "{status:?}");
    }
    for status in [SmsStatus::Failed, SmsStatus::Expired, SmsStatus::Canceled] {
        assert!(is_new(status, 11 * S, None), "{status:?}");
    }
    // It was received: the device has a minute.
    assert!(!is_new(SmsStatus::Delivered, 69 * S, None));
    assert!(!is_new(SmsStatus::Delivered, 69 * S, Some(5 * S)));
    assert!(is_new(SmsStatus::Delivered, 70 * S, None));
    assert!(is_new(SmsStatus::Delivered, 69 * S, Some(15 * S)));
}

#[test]
fn a_device_is_woken_a_bounded_number_of_times_within_an_hour() {
    let mut facts = facts(Some(text("wake up")), None);
    let max = rules().wake_ups_max;
    for number in 0..i64::from(max) {
        let sms = sent(woken(number * 600 * S, &facts, asleep()));
        let failed = with_status(&sms, SmsStatus::Failed, number * 600 * S);
        facts.newest.insert(0, failed);
    }
    let refused = Err(WakeUpRefusal::TooOften { max });
    assert_eq!(woken(3_599 * S, &facts, asleep()), refused);
    assert!(woken(3_600 * S, &facts, asleep()).is_ok());
}

#[test]
fn sms_without_a_final_status_have_a_bound() {
    let facts = WakeUpFacts {
        open: rules().open_max,
        ..facts(Some(text("wake up")), None)
    };
    let max = rules().open_max;
    let refused = Err(WakeUpRefusal::TooManyOpen { max });
    assert_eq!(woken(0, &facts, asleep()), refused);
}

fn rules() -> SmsRules {
    Limits::default().sms
}

fn at_ms(after_ms: i64) -> Moment {
    Moment::new(NOON.plus_ms(after_ms), 7)
}

fn asleep() -> SleepingDevice {
    SleepingDevice {
        heard_at: None,
        woken_by: None,
    }
}

fn woken(
    after_ms: i64,
    facts: &WakeUpFacts,
    device: SleepingDevice,
) -> Result<WakeUpSms, WakeUpRefusal> {
    let m = &mut at_ms(after_ms);
    let expires_at = m.now().plus_ms(2 * rules().validity_ms);
    let id = SmsId::first_at(m.now());
    wake(m, (facts, id), device, expires_at, rules())
}

/// The new SMS.
fn sent(woken: Result<WakeUpSms, WakeUpRefusal>) -> Sms {
    match woken {
        Ok(WakeUpSms::New(sms)) => *sms,
        other => panic!("{other:?}"),
    }
}

fn to_device(sms: &Sms) -> &SubmittedSms {
    sms.submitted().expect("it is one to a device")
}

fn with_status(sms: &Sms, status: SmsStatus, final_after_ms: i64) -> Sms {
    let final_at = status.is_final().then(|| NOON.plus_ms(final_after_ms));
    let submitted = SubmittedSms {
        status,
        final_at,
        ..to_device(sms).clone()
    };
    Sms {
        way: SmsWay::ToDevice(Box::new(submitted)),
        ..sms.clone()
    }
}

fn text(text: &str) -> WakeUpMessage {
    WakeUpMessage {
        source: "1234".into(),
        source_type: AddressType::International,
        content: WakeUpContent::Text(text.into()),
    }
}

fn facts(own: Option<WakeUpMessage>, of_customer: Option<WakeUpMessage>) -> WakeUpFacts {
    WakeUpFacts {
        device: tracker_with(own),
        of_customer,
        newest: Vec::new(),
        open: 0,
    }
}

fn tracker_with(wake_up: Option<WakeUpMessage>) -> Profile {
    Profile {
        wake_up,
        ..tracker()
    }
}
