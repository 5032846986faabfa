//! Does every response body match its golden file?

mod plain;

use std::num::NonZeroU32;

use actix_web::body::to_bytes;
use serde_json::Value;

use engine::action::timeline::{Timeline, TimelineEvent, WaitReason};
use engine::action::{
    Action, Addressee, Lwm2mRequest, Mode, NewAction, Operation, Outcome, Protocol, Request,
    ResultPayload, Status,
};
use engine::admin_log::daily::{Date, DayAmount, Statistics};
use engine::admin_log::entry::{DeviceSighting, Entry};
use engine::admin_log::payload::{FurtherPayloads, RejectedPayload};
use engine::associations::server_key::ServerKey;
use engine::associations::{AssociationSnapshot, ClaimedIdentity};
use engine::certificate_authorities::CertificateAuthorities;
use engine::delivery::backlog::Sequence;
use engine::device::identity::Identity;
use engine::device::record::{
    Connectivity, DeviceRecord, Observation, ObservationState, ObservationTarget, ProtocolsSeen,
    Registration,
};
use engine::device::refusal::SubmitRefusal;
use engine::device::snapshot::{CurrentExchange, PendingAction, Presence, Snapshot};
use engine::directory::device::{NewDevice, draft_device};
use engine::event::{
    ActionResult, Cause, DeviceInfo, Event, EventContent, Lifecycle, PayloadKept, Telemetry,
};
use engine::firmware::FirmwareImage;
use engine::firmware::campaign::{
    Campaign, CampaignCounts, CampaignDevice, CampaignRules, CampaignState, ImageSource,
};
use engine::firmware::update::{DeliveryMethod, UpdateState};
use engine::ids::{
    ActionId, CampaignId, CustomerId, DeviceId, EntryId, EventId, Iccid, Imsi, JobId, Msisdn,
    ScheduleId, TraceId,
};
use engine::ids::{ImageId, NodeId, Partition};
use engine::job::{Job, JobDevice, JobOutcome, JobState};
use engine::moment::{Moment, Timestamp};
use engine::node::KnownNode;
use engine::peer::Peer;
use engine::profile::Profile;
use engine::query::devices::{
    DeviceFilter, DevicePage, DevicePageRequest, DeviceTotal, ListedDevice,
};
use engine::query::{KnownValue, Page, PageRequest};
use engine::route::DeviceOperation;
use engine::schedule::{
    NewSchedule, Recurrence, Rhythm, RunOutcome, Schedule, ScheduleContents, ScheduleTarget,
    SkipReason,
};
use engine::strangers::Stranger;
use engine::supervision::Unserved;
use engine::tags::{Tag, Tags};
use engine::zone::{TimeOfDay, Zone};
use engine::{Attributes, Code};

use self::plain::data_event;
use super::{bootstrap, golden};
use crate::api::action::{ActionBody, ActionWithTimelineBody};
use crate::api::device::{DeviceBody, InspectorBody, ListedDeviceBody};
use crate::api::devices::DevicePageBody;
use crate::api::dtls::{CertificateAuthoritiesBody, DtlsBody};
use crate::api::error::{ApiError, ErrorDetail};
use crate::api::firmware::ImageBody;
use crate::api::firmware::campaigns::{CampaignBody, CampaignDeviceBody};
use crate::api::jobs::{DryRunBody, JobBody, JobCreatedBody, JobDeviceBody};
use crate::api::logs::EntryBody;
use crate::api::logs::statistics::StatisticsBody;
use crate::api::messages::{MessageBody, MessagesBody};
use crate::api::nodes::NodeBody;
use crate::api::page::PageBody;
use crate::api::schedules::{ScheduleBody, ScheduleWithRequestBody};
use crate::api::strangers::StrangerBody;

const TEMPERATURE: engine::Path = engine::Path::resource(3303, 0, 5700);
const UNITS: engine::Path = engine::Path::resource(3303, 0, 5701);

const NOON: Timestamp = Timestamp::from_ms(1_795_521_600_000);

#[test]
fn a_scheduled_action_request() {
    golden::check("action_scheduled", &ActionBody::of(&scheduled()));
}

#[test]
fn a_job_with_its_devices() {
    let customer = CustomerId::parse("acme").unwrap();
    let job = Job {
        state: JobState::Cancelled,
        accepted: 1,
        rejected: 3,
        schedule: Some(ScheduleId::from_bytes([8; 16])),
        ..Job::new(&mut Moment::new(NOON, 7), customer, 5)
    };
    golden::check("job_created", &JobCreatedBody::of(&job));
    golden::check("job", &JobBody::of(&job));
    let refused = SubmitRefusal::QueueFull {
        mode: Mode::SendWhenActive,
        waiting: 10,
        max: 10,
    };
    let outcomes = [
        Some(JobOutcome::Accepted(ActionId::from_bytes([7; 16]))),
        Some(JobOutcome::Refused(refused)),
        Some(JobOutcome::Unserved(Unserved::Unknown)),
        Some(JobOutcome::RequestOpen(ActionId::from_bytes([6; 16]))),
        None,
    ];
    let device = |(outcome, number): (_, u32)| {
        let device = DeviceId::parse(&format!("meter-{number}")).unwrap();
        JobDeviceBody::of(JobDevice { device, outcome }, job.state)
    };
    let devices: Vec<_> = outcomes.into_iter().zip(1..).map(device).collect();
    golden::check("job_devices", &PageBody::whole(devices));
    let meter = |number: u32| DeviceId::parse(&format!("meter-{number}")).unwrap();
    let matched: Vec<_> = (1..=17).map(meter).collect();
    golden::check("job_dry_run", &DryRunBody::of(&matched));
}

#[test]
fn a_firmware_image_and_a_campaign_with_its_devices() {
    let customer = || CustomerId::parse("acme").unwrap();
    let image = FirmwareImage {
        id: ImageId::from_bytes([5; 16]),
        customer: customer(),
        name: Some("Meter".into()),
        version: Some("1.5.0".into()),
        created_at: NOON,
        bytes: 262_144,
        sha256: [0xab; 32],
    };
    golden::check("firmware_image", &ImageBody::of(&image));
    let campaign = Campaign {
        id: CampaignId::from_bytes([6; 16]),
        customer: customer(),
        state: CampaignState::Cancelled,
        created_at: NOON,
        source: ImageSource::Stored {
            image: image.id,
            bytes: image.bytes,
        },
        secret: [7; 16],
        method: DeliveryMethod::Auto,
        devices: 3,
        rules: CampaignRules {
            concurrency: 10,
            rate_per_minute: Some(60),
            retries: 2,
            canary_percent: Some(5),
            halt_at_failed_percent: Some(10),
            not_before: Some(NOON),
            not_after: NOON.plus_s(86_400),
        },
        failures_accepted: 0,
        is_stopping: false,
    };
    let counts = CampaignCounts::restored([1, 0, 0, 0, 1, 1, 0]);
    golden::check("firmware_campaign", &CampaignBody::of(&campaign, counts));
    let device = |number: u32, state, bytes, reason: Option<&str>| {
        let device = CampaignDevice {
            device: DeviceId::parse(&format!("meter-{number}")).unwrap(),
            state,
            bytes,
            reason: reason.map(Into::into),
            updated_at: NOON,
        };
        CampaignDeviceBody::of(device.shown(campaign.state))
    };
    let why = "the integrity check of the image failed (/5/0/5 is 5)";
    let devices = vec![
        device(1, UpdateState::Succeeded, 262_144, None),
        device(2, UpdateState::Failed, 0, Some(why)),
        device(3, UpdateState::Pending, 0, None),
    ];
    golden::check("firmware_campaign_devices", &PageBody::whole(devices));
}

#[test]
fn a_schedule_with_its_request() {
    let schedule = |rhythm| {
        let new = NewSchedule {
            name: Some("Night".into()),
            recurrence: Recurrence {
                rhythm,
                start: NOON,
                end: Some(NOON.plus_s(86_400 * 365)),
            },
        };
        Schedule::new(&mut Moment::new(NOON, 7), acme(), new).unwrap()
    };
    let due = NOON.plus_s(90);
    let every = schedule(Rhythm::Every { period_s: 90 });
    let created = RunOutcome::Created(JobId::from_bytes([9; 16]));
    let every = every.after_run(due, due.plus_s(1_000), created);
    golden::check("schedule", &ScheduleBody::of(&every));
    let daily = schedule(Rhythm::Daily {
        at: TimeOfDay::parse("06:30").unwrap(),
        zone: Zone::read("Europe/Berlin").unwrap(),
    });
    let skipped = RunOutcome::Skipped(SkipReason::RequestsOpen);
    let daily = daily.after_run(due, due, skipped).paused();
    golden::check("schedule_daily", &ScheduleBody::of(&daily));
    let action = scheduled();
    let contents = |target| ScheduleContents {
        request: NewAction {
            request: action.request.clone(),
            mode: action.mode,
            attempts_permitted: 2,
            expires_in_s: Some(600),
            not_before: None,
            wake_up: None,
            trace: action.trace,
            idempotent_call: None,
        },
        target,
    };
    let named = ScheduleTarget::Named([DeviceId::parse("meter-7").unwrap()].into());
    let shown = ScheduleWithRequestBody::of(&every, &contents(named));
    golden::check("schedule_with_request", &shown);
    let filter = DeviceFilter {
        registered: Some(true),
        tags: [Tag::parse("site:berlin").unwrap()].into(),
        last_seen_after: Some(NOON),
        ..DeviceFilter::all_of(acme())
    };
    let selected = ScheduleTarget::Selected(Box::new(filter));
    let shown = ScheduleWithRequestBody::of(&daily, &contents(selected));
    golden::check("schedule_with_filter", &shown);
}

#[test]
fn a_sender_that_is_no_known_device() {
    let stranger = Stranger {
        endpoint: Some("metre-7".into()),
        address: "10.0.0.7:5683".parse().unwrap(),
        protocol: Protocol::Lwm2m,
        operation: DeviceOperation::Register,
        answer: Some(Code::FORBIDDEN),
        first_at: NOON,
        last_at: NOON.plus_s(60),
        count: 17,
    };
    golden::check("stranger", &StrangerBody::of(stranger));
}

#[test]
fn nodes_with_and_without_a_lease() {
    let active = KnownNode {
        id: NodeId::from_bytes([1; 16]),
        name: "node-1".to_owned(),
        version: "0.1.0".to_owned(),
        addresses: vec!["coap://[::]:5683".to_owned()],
        started_at: NOON,
        heartbeat_at: NOON.plus_s(60),
        is_heard: true,
        is_draining: false,
        is_active: true,
        lease_ends_at: Some(NOON.plus_s(70)),
        partitions: vec![Partition(0), Partition(9)],
    };
    let standby = KnownNode {
        is_active: false,
        lease_ends_at: None,
        ..active.clone()
    };
    golden::check("node_active", &NodeBody::of(active));
    golden::check("node_standby", &NodeBody::of(standby));
}

#[test]
fn a_succeeded_action_request() {
    let outcome = Outcome {
        code: Some("205".into()),
        payload: Some("21.5".into()),
        ..Outcome::default()
    };
    let request = Lwm2mRequest::parse(Operation::Read, "/3303/0/5700", None).unwrap();
    let done = Action {
        request: Request::Lwm2m(request),
        status: Status::Succeeded,
        attempts_made: 1,
        outcome: Some(outcome),
        ..scheduled()
    };
    golden::check("action_succeeded", &ActionBody::of(&done));
}

#[test]
fn an_action_request_with_its_timeline() {
    let mut timeline = Timeline::default();
    let steps = [
        TimelineEvent::Waiting(WaitReason::Request),
        TimelineEvent::AttemptBegun(1),
        TimelineEvent::DatagramSent,
        TimelineEvent::DatagramRepeated,
        TimelineEvent::GaveUp,
        TimelineEvent::AttemptBegun(2),
        TimelineEvent::DatagramSent,
        TimelineEvent::Rejected,
        TimelineEvent::AttemptBegun(3),
        TimelineEvent::DatagramSent,
        TimelineEvent::Acknowledged,
        TimelineEvent::Answered(Code::CONTENT),
    ];
    for (what, second) in steps.into_iter().zip(1..) {
        timeline.note(NOON.plus_s(second), what);
        if what == TimelineEvent::AttemptBegun(3) {
            let text = Some("no such format".into());
            timeline.note(NOON.plus_s(second), TimelineEvent::DatagramSent);
            timeline.note_error(NOON.plus_s(second), Code::NOT_ACCEPTABLE, text);
        }
    }
    let values = [
        (TEMPERATURE, engine::Value::Float(21.5)),
        (UNITS, engine::Value::String("Cel".into())),
    ];
    let outcome = Outcome {
        code: Some("205".into()),
        payload: Some(ResultPayload::Values(values.into())),
        ..Outcome::default()
    };
    let done = Action {
        request: Request::Lwm2m(Lwm2mRequest::parse(Operation::Read, "/3303/0", None).unwrap()),
        status: Status::Succeeded,
        attempts_made: 3,
        outcome: Some(outcome),
        timeline,
        ..scheduled()
    };
    let body = ActionWithTimelineBody::of(&done, None);
    golden::check("action_followed", &body);
}

#[test]
fn a_message_of_each_kind() {
    let telemetry = event(EventContent::Telemetry(Telemetry {
        source: Protocol::Lwm2m,
        cause: Cause::Action(scheduled().id),
        measured_at: None,
        values: [(TEMPERATURE, engine::Value::Float(21.5))].into(),
    }));
    let unasked = |cause, measured_at| {
        event(EventContent::Telemetry(Telemetry {
            source: Protocol::Lwm2m,
            cause,
            measured_at,
            values: [(TEMPERATURE, engine::Value::Float(21.5))].into(),
        }))
    };
    let sent = unasked(Cause::Send, Some(NOON.plus_ms(-1_500)));
    let reported = unasked(Cause::PassiveReport, None);
    let messages = [
        notified(),
        telemetry,
        sent,
        reported,
        data_event(Protocol::Coap, Some("meters/temperature")),
        data_event(Protocol::Udp, None),
        came(),
        event(failure()),
        event(conclusion()),
    ];
    let bodies: Vec<_> = messages.iter().map(MessageBody::of).collect();
    golden::check("messages", &MessagesBody::of(bodies, Some(Sequence(4_711))));
}

#[test]
fn a_failed_action_request_of_a_device_with_few_identifiers() {
    let outcome = Outcome {
        error: Some("the device did not answer".into()),
        ..Outcome::default()
    };
    let addressee = Addressee {
        imsi: None,
        ip: None,
        ..scheduled().addressee
    };
    let failed = Action {
        status: Status::Failed,
        mode: Mode::SendNow,
        attempts_made: 3,
        outcome: Some(outcome),
        addressee,
        ..scheduled()
    };
    golden::check("action_failed", &ActionBody::of(&failed));
}

#[test]
fn a_page_of_action_requests() {
    let page = Page {
        items: vec![scheduled()],
        total: 11,
    };
    let wanted = PageRequest {
        number: 2,
        size: 10,
    };
    let body = PageBody::of(wanted, page, |action| ActionBody::of(&action));
    golden::check("action_page", &body);
}

#[test]
fn a_device() {
    golden::check("device", &DeviceBody::of(&meter()));
}

#[test]
fn a_page_of_devices_that_continues() {
    let record = DeviceRecord {
        first_contact_at: Some(NOON),
        last_seen_at: Some(NOON.plus_s(60)),
        peer: Some(Peer::plain("10.0.0.7:49152".parse().unwrap())),
        registration: Some(registration()),
        protocols_seen: ProtocolsSeen::restored([Protocol::Lwm2m], Some(Protocol::Lwm2m)),
        ..DeviceRecord::default()
    };
    let page = DevicePage {
        items: vec![ListedDevice {
            profile: meter(),
            record,
        }],
        total: DeviceTotal::AtLeast(3),
        next: Some(DeviceId::parse("meter-900").unwrap()),
    };
    let wanted = DevicePageRequest::of(PageRequest { number: 1, size: 2 });
    let body = DevicePageBody::of(&wanted, &page, |listed| {
        ListedDeviceBody::of(listed, Presence::Asleep)
    });
    golden::check("device_page", &body);
}

#[test]
fn a_sleeping_device_with_a_scheduled_request() {
    let snapshot = Snapshot {
        first_contact_at: Some(NOON),
        last_seen_at: Some(NOON.plus_s(60)),
        peer: Some(Peer::plain("10.0.0.7:49152".parse().unwrap())),
        protocols_seen: Some(Protocol::Lwm2m),
        presence: Presence::Asleep,
        connectivity: Connectivity::Online,
        registration: Some(registration()),
        pending: vec![PendingAction {
            action: scheduled(),
            waits_for: Some(WaitReason::Asleep),
        }],
        exchange: Some(CurrentExchange {
            purpose: WaitReason::Notification,
            action: None,
            path: Some(TEMPERATURE),
            begun_at: NOON.plus_s(60),
        }),
        observations: vec![observation()],
        bootstrap: None,
    };
    let recent = [notified(), came()];
    let association = AssociationSnapshot {
        identity: ClaimedIdentity::Psk("meter-7".into()),
        suite: "TLS_PSK_WITH_AES_128_CCM_8",
        has_connection_id: true,
        is_resumed: false,
        established_at: NOON,
        authenticated_at: NOON,
        address: "203.0.113.5:61000".parse().unwrap(),
        address_changes: 3,
    };
    let state = (&snapshot, Some(&association));
    let body = InspectorBody::of(
        &meter(),
        state,
        &[temperature()],
        &recent,
        (&[], Some(&bootstrap::refused())),
    );
    golden::check("device_inspector_asleep", &body);
}

#[test]
fn the_identity_of_the_service_and_the_authorities_of_a_customer() {
    let key = ServerKey::from_scalar(&[3; 32]).unwrap();
    golden::check("dtls", &DtlsBody::of(&key));
    let certificates = vec![[7; 100].into()];
    let authorities = CertificateAuthorities::restore(certificates, NOON);
    let body = CertificateAuthoritiesBody::of(&authorities);
    golden::check("certificate_authorities", &body);
}

#[test]
fn a_device_without_contact() {
    let snapshot = Snapshot {
        first_contact_at: None,
        last_seen_at: None,
        peer: None,
        protocols_seen: None,
        presence: Presence::Unregistered,
        connectivity: Connectivity::Unknown,
        registration: None,
        pending: vec![],
        exchange: None,
        observations: vec![],
        bootstrap: None,
    };
    let body = InspectorBody::of(&meter(), (&snapshot, None), &[], &[], (&[], None));
    golden::check("device_inspector_unheard", &body);
}

#[test]
fn an_entry_of_the_administration_log() {
    let profile = meter();
    let device = DeviceSighting {
        key: profile.key(),
        identity: &Identity::of(&profile),
        at: None,
    };
    let entry = Entry::first_heard(&mut moment(), device, Protocol::Lwm2m);
    golden::check("log_entry", &EntryBody::of(&entry));
}

#[test]
fn an_entry_with_a_stored_payload() {
    let profile = meter();
    let device = DeviceSighting {
        key: profile.key(),
        identity: &Identity::of(&profile),
        at: None,
    };
    let why = "the array has no end";
    let payload = RejectedPayload {
        bytes: Some(&[0x81]),
        further: FurtherPayloads::Logged,
    };
    let entry = Entry::undecodable_payload(&mut moment(), device, why, payload);
    golden::check("log_entry_with_payload", &EntryBody::of(&entry));
}

#[test]
fn the_statistics_of_the_administration_log() {
    let days = [(23, 3), (24, 41)];
    let amounts = days.map(|(day, amount)| DayAmount {
        date: Date {
            year: 2026,
            month: 11,
            day,
        },
        amount,
    });
    let statistics = Statistics {
        devices: 7,
        amounts: amounts.into(),
    };
    golden::check("log_statistics", &StatisticsBody::of(&statistics));
}

#[actix_web::test]
async fn a_failure() {
    let failure = ApiError::invalid(vec![
        ErrorDetail::new("MALFORMED_BODY", "the body is not valid JSON"),
        ErrorDetail::of("REQUIRED", "name", "is required"),
    ]);
    let response = failure.response(trace());
    let bytes = to_bytes(response.into_body()).await.unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    golden::check("failure", &serde_json::from_str::<Value>(&text).unwrap());
}

fn moment() -> Moment {
    Moment::new(NOON, 0x0123_4567_89AB_CDEF_0123_4567_89AB_CDEF)
}

fn acme() -> CustomerId {
    CustomerId::parse("acme").unwrap()
}

fn trace() -> TraceId {
    TraceId::parse("01935c5a-0000-7000-8000-000000000002").unwrap()
}

fn meter() -> Profile {
    let new = NewDevice {
        device: Some(DeviceId::parse("meter-7").unwrap()),
        iccid: Some(Iccid::parse("8988280666000000001").unwrap()),
        imsi: Some(Imsi::parse("901405100000001").unwrap()),
        msisdn: Some(Msisdn::parse("882285100000001").unwrap()),
        ip: Some("10.0.0.7".parse().unwrap()),
        name: Some("Cellar".into()),
        tags: Tags::of([Tag::parse("site:berlin").unwrap()]).unwrap(),
        offline_after_s: NonZeroU32::new(7_200),
        ..NewDevice::default()
    };
    draft_device(&mut moment(), &acme(), new).unwrap()
}

fn registration() -> Registration {
    let links = "</>;rt=\"oma.lwm2m\";ct=110,</1/0>,</3/0>,</3303>;ver=1.1,</3303/0>,</3303/1>";
    Registration {
        salt: 1,
        lifetime_asked_s: Some(0),
        expires_at: NOON.plus_s(86_400),
        registered_at: NOON,
        version: Registration::parse_version("1.1").unwrap(),
        binding: Registration::parse_binding("UQ").unwrap(),
        sms: None,
        links: Registration::parse_links(links).unwrap(),
    }
}

fn scheduled() -> Action {
    let profile = meter();
    let write = Lwm2mRequest::parse(Operation::Write, "/3303/0/5700", Some("21.5")).unwrap();
    Action {
        id: ActionId::parse("01935c5a-0000-7000-8000-000000000001").unwrap(),
        customer: acme(),
        device: profile.key(),
        request: Request::Lwm2m(write),
        mode: Mode::SendWhenActive,
        status: Status::Scheduled,
        attempts_permitted: 3,
        attempts_made: 0,
        created_at: NOON,
        updated_at: NOON,
        expires_at: NOON.plus_s(172_800),
        expires_in_s: None,
        not_before: None,
        wake_up: None,
        woken_by: None,
        addressee: Addressee {
            device: profile.device,
            iccid: profile.iccid,
            imsi: profile.imsi,
            ip: profile.ip,
        },
        trace: trace(),
        outcome: None,
        timeline: Timeline::default(),
    }
}

fn observation() -> Observation {
    Observation {
        target: ObservationTarget::Path(TEMPERATURE),
        attributes: Attributes::default(),
        token: [1, 2, 3, 4],
        action: scheduled().id,
        begun_at: NOON,
        state: ObservationState::Held,
        newest: None,
    }
}

fn temperature() -> KnownValue {
    KnownValue {
        path: TEMPERATURE,
        value: engine::Value::Float(21.5),
        at: NOON,
    }
}

fn notified() -> Event {
    let values = [
        (TEMPERATURE, engine::Value::Float(21.5)),
        (UNITS, engine::Value::String("Cel".into())),
    ];
    event(EventContent::Telemetry(Telemetry {
        source: Protocol::Lwm2m,
        cause: Cause::Observation(engine::Path::instance(3303, 0)),
        measured_at: None,
        values: values.into(),
    }))
}

fn failure() -> EventContent {
    EventContent::Error(Box::new(engine::event::ErrorReport {
        entry: EntryId::parse("01935c5a-0000-7000-8000-000000000004").unwrap(),
        message: "Translator[UserPayloadError]".into(),
        description: "A payload cannot be decoded.".into(),
        payload: PayloadKept::Yes,
    }))
}

fn conclusion() -> EventContent {
    let outcome = Outcome {
        code: Some("205".into()),
        payload: Some("21.5".into()),
        ..Outcome::default()
    };
    EventContent::ActionResult(Box::new(ActionResult {
        action: scheduled().id,
        protocol: Protocol::Lwm2m,
        status: Status::Succeeded,
        outcome: Some(outcome),
    }))
}

fn came() -> Event {
    event(EventContent::Lifecycle(Lifecycle::Registered))
}

fn event(happening: EventContent) -> Event {
    Event {
        id: EventId::parse("01935c5a-0000-7000-8000-000000000003").unwrap(),
        customer: acme(),
        device: meter().key(),
        device_info: DeviceInfo {
            device: meter().device,
            iccid: meter().iccid,
            imsi: meter().imsi,
            ip: meter().ip,
        },
        at: NOON,
        content: happening,
    }
}
