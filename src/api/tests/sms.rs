//! Do SMS and their forwarder in responses match the OpenAPI document?

use engine::action::timeline::{Timeline, TimelineEvent, WaitReason};
use engine::action::{Action, Addressee, Lwm2mRequest, Mode, Operation, Request, Status, WakeUp};
use engine::delivery::backlog::Backlog;
use engine::delivery::destination::{
    Destination, DestinationState, EventTypes, Replay, SmsForwarder, Target,
};
use engine::ids::{
    ActionId, CustomerId, DestinationId, DeviceId, DeviceKey, Iccid, SmsId, TraceId,
};
use engine::moment::Timestamp;
use engine::query::{Page, PageRequest};
use engine::sms::address::AddressType;
use engine::sms::{
    JoinedSms, NetworkTask, ReceivedPart, Sms, SmsPurpose, SmsStatus, SmsWay, SubmittedSms,
};
use engine::wake_up::{WakeUpContent, WakeUpMessage};

use super::golden;
use crate::api::action::ActionWithTimelineBody;
use crate::api::destinations::{DestinationKind as _, WithBacklogBody};
use crate::api::page::PageBody;
use crate::api::sms::forwarder::SmsForwarders;
use crate::api::sms::{
    NetworkSmsBody, ReceivedBody, ReportedBody, SmsBody, SubmittedBody, TakenBody,
    WakeUpMessageBody,
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

#[test]
fn an_action_request_whose_device_is_woken() {
    let mut timeline = Timeline::default();
    for (second, what) in [
        (0, TimelineEvent::Waiting(WaitReason::Asleep)),
        (50, TimelineEvent::AttemptBegun(1)),
        (50, TimelineEvent::DatagramSent),
    ] {
        timeline.note(NOON.plus_s(second), what);
    }
    let request = Lwm2mRequest::parse(Operation::Read, "/3/0/9", None).unwrap();
    let woken = Action {
        id: ActionId::from_bytes([1; 16]),
        customer: CustomerId::parse("acme").unwrap(),
        device: DeviceKey::from_bytes([7; 16]),
        request: Request::Lwm2m(request),
        mode: Mode::SendNow,
        status: Status::InProgress,
        attempts_permitted: 1,
        attempts_made: 1,
        created_at: NOON,
        updated_at: NOON.plus_s(50),
        expires_at: NOON.plus_s(172_800),
        expires_in_s: None,
        not_before: None,
        wake_up: Some(WakeUp::Sms),
        woken_by: Some(id()),
        addressee: Addressee {
            device: DeviceId::parse("tracker").unwrap(),
            iccid: Iccid::parse("8988280666000000001").unwrap(),
            imsi: None,
            ip: None,
        },
        trace: TraceId::from_bytes([9; 16]),
        outcome: None,
        timeline,
    };
    let body = ActionWithTimelineBody::of(&woken, Some(&failed()));
    golden::check("action_woken", &body);
    let message = WakeUpMessage {
        source: "1234".into(),
        source_type: AddressType::International,
        content: WakeUpContent::Data([0x0a, 0xff].into()),
    };
    golden::check("wake_up_message", &WakeUpMessageBody::of(&message));
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
        purpose: SmsPurpose::Message,
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
        purpose: SmsPurpose::Message,
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
