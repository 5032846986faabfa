//! Do SMS and their forwarder in responses match the OpenAPI document?

use engine::delivery::backlog::Backlog;
use engine::delivery::destination::{
    Destination, DestinationState, EventTypes, Replay, SmsForwarder, Target,
};
use engine::ids::{CustomerId, DestinationId, DeviceKey, Iccid, SmsId};
use engine::moment::Timestamp;
use engine::query::{Page, PageRequest};
use engine::sms::{
    AddressType, JoinedSms, NetworkTask, ReceivedPart, Sms, SmsStatus, SmsWay, SubmittedSms,
};

use super::golden;
use crate::api::destinations::{DestinationKind as _, WithBacklogBody};
use crate::api::page::PageBody;
use crate::api::sms::forwarder::SmsForwarders;
use crate::api::sms::{
    NetworkSmsBody, ReceivedBody, ReportedBody, SmsBody, SubmittedBody, TakenBody,
};

const NOON: Timestamp = Timestamp::from_ms(1_795_521_600_000);

#[test]
fn a_forwarder_and_its_backlog() {
    golden::check("sms_forwarder", &SmsForwarders::body(&forwarder()).unwrap());
    let backlog = Backlog {
        waiting: 12,
        dead: 3,
    };
    let body = SmsForwarders::body(&forwarder()).unwrap();
    let body = WithBacklogBody::of(body, backlog);
    golden::check("sms_forwarder_followed", &body);
}

#[test]
fn sms_in_both_directions() {
    golden::check("sms_of_device", &SmsBody::of(&received()));
    golden::check("sms_pending", &SmsBody::of(&submitted(SmsStatus::Pending)));
    golden::check("sms_failed", &SmsBody::of(&failed()));
    let page = Page {
        items: vec![failed(), received()],
        total: 12,
    };
    let wanted = PageRequest { number: 1, size: 2 };
    let body = PageBody::of(wanted, page, |sms| SmsBody::of(&sms));
    golden::check("sms_page", &body);
}

#[test]
fn what_the_network_is_answered() {
    golden::check("sms_submitted", &SubmittedBody::of(&failed()));
    golden::check("sms_received", &ReceivedBody::of(id()));
    golden::check(
        "sms_reported",
        &ReportedBody::of(id(), SmsStatus::Delivered),
    );
    let taken = [
        (NetworkTask::Send, submitted(SmsStatus::InProgress)),
        (NetworkTask::Send, failed()),
        (NetworkTask::Withdraw, submitted(SmsStatus::Canceled)),
    ];
    golden::check("sms_taken", &TakenBody::of(&taken, NetworkSmsBody::of));
}

fn forwarder() -> Destination {
    Destination {
        id: DestinationId::from_bytes([5; 16]),
        customer: CustomerId::parse("acme").unwrap(),
        name: "SMS forwarder".into(),
        target: Target::SmsForwarder(SmsForwarder {
            url: "https://example.com:8443/sms/".into(),
            organisation: 42,
        }),
        event_types: EventTypes::of_sms(),
        state: DestinationState::Active,
        failure: None,
        replay: Replay::None,
        created_at: NOON,
        updated_at: NOON.plus_s(7),
    }
}

fn received() -> Sms {
    let part = |number, text: &str| ReceivedPart {
        number,
        id: id(),
        text: text.into(),
    };
    let joined = JoinedSms {
        total: 3,
        identifier: 42,
        parts: vec![part(1, "hello "), part(3, "!")],
    };
    Sms {
        source: "882285100000001".into(),
        dest: Some("1234".into()),
        ..sms(SmsWay::FromDevice(joined))
    }
}

fn submitted(status: SmsStatus) -> Sms {
    let submitted = SubmittedSms {
        payload: "open".into(),
        source_type: AddressType::International,
        udh: None,
        expires_at: NOON.plus_s(60),
        status,
        task: None,
        taken_at: None,
        buffered_at: None,
        final_at: None,
        reason: None,
        parts: Vec::new(),
    };
    sms(SmsWay::ToDevice(Box::new(submitted)))
}

/// Everything that an SMS to a device may have.
fn failed() -> Sms {
    let submitted = SubmittedSms {
        payload: "00ff".into(),
        source_type: AddressType::Alphanumeric,
        udh: Some([6, 5, 4, 0x15, 0x81, 0x15, 0x81].into()),
        expires_at: NOON.plus_s(60),
        status: SmsStatus::Failed,
        task: None,
        taken_at: Some(NOON.plus_s(1)),
        buffered_at: Some(NOON.plus_s(2)),
        final_at: Some(NOON.plus_s(60)),
        reason: Some("outcome unknown".into()),
        parts: Vec::new(),
    };
    Sms {
        source: "Acme".into(),
        dest: Some("882285100000001".into()),
        dcs: 4,
        ..sms(SmsWay::ToDevice(Box::new(submitted)))
    }
}

fn sms(way: SmsWay) -> Sms {
    Sms {
        id: id(),
        customer: CustomerId::parse("acme").unwrap(),
        device: DeviceKey::from_bytes([7; 16]),
        device_number: 7,
        iccid: Iccid::parse("8988280666000000001").unwrap(),
        source: "1234".into(),
        dest: None,
        dcs: 0,
        pid: 0,
        submitted_at: NOON,
        way,
    }
}

fn id() -> SmsId {
    SmsId::first_at(NOON)
}
