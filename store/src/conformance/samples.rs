//! Samples for the laws: customers, devices, requests and entries like those of a service.

use std::num::{NonZeroU16, NonZeroU32};

use engine::action::timeline::{Timeline, TimelineEvent, WaitReason};
use engine::action::{
    Action, Addressee, CoapRequest, Content, ContentEncoding, InstanceWrite, Lwm2mRequest, Method,
    Mode, NewAction, NewInstance, Outcome, Protocol, Request, Status, UdpRequest, WakeUp,
};
use engine::admin_log::entry::{AboutDevice, Category, Entry, Subject};
use engine::change::{Batch, Change};
use engine::change::{Counter, CounterDelta, Expect, Owner, UniqueName};
use engine::credentials::{Credential, DeviceCredentials, Psk, RawPublicKey};
use engine::customer::{
    AccessToken, ApiClient, ClientOwner, ClientSecret, Customer, Scopes, SecretDigest,
};
use engine::definition::{Definition, DefinitionId};
use engine::delivery::destination::{
    Destination, DestinationState, EventTypes, JsonPayload, Replay, Target, Webhook,
};
use engine::device::log_quota::LogQuota;
use engine::device::record::{
    Connectivity, DeviceRecord, Logged, Observation, ObservationState, ObservationTarget,
    ProtocolsSeen, Registration, Wakefulness,
};
use engine::effect::Effects;
use engine::event::{DeviceInfo, Event, EventContent, Lifecycle};
use engine::firmware::image_key::ImageKey;
use engine::firmware::update::{DeliveryMethod, FirmwareUpdate, UpdateImage, UpdateStep};
use engine::ids::{
    ActionId, CampaignId, ClientId, CustomerId, DestinationId, DeviceId, Endpoint, EntryId,
    EventId, Iccid, ImageId, Imsi, Msisdn, SecretId, SmsId, TraceId,
};
use engine::moment::{Moment, Timestamp};
use engine::peer::Peer;
use engine::profile::{Profile, SecurityRequirement};
use engine::sealed::Sealed;
use engine::sms::address::AddressType;
use engine::tags::{Tag, Tags};
use engine::wake_up::{WakeUpContent, WakeUpMessage};
use engine::{Attributes, Code, Path, PathAndQuery, Version, WriteMethod};

/// When the scenario of every law begins.
const START_MS: i64 = 1_700_000_000_000;

/// The port on which devices listen.
pub const PORT: NonZeroU16 = NonZeroU16::new(5_683).expect("it is not zero");

/// An instant, in seconds after the start.
pub fn at(second: i64) -> Timestamp {
    Timestamp::from_ms(START_MS).plus_s(second)
}

/// A moment, in seconds after the start; `rng` tells moments of the same second apart.
pub fn moment(second: i64, rng: u64) -> Moment {
    Moment::new(at(second), u128::from(rng) << 32 | 0xa5a5_5a5a)
}

/// The id of the customer that most laws use.
pub fn acme() -> CustomerId {
    CustomerId::parse("acme").expect("an id")
}

/// A customer.
pub fn customer(id: &str) -> Customer {
    Customer {
        networks: Box::default(),
        wake_up: None,
        offline_after_s: None,
        authorities: None,
        id: CustomerId::parse(id).expect("an id"),
        number: 4_711,
        name: format!("{id} & Sons").into(),
        created_at: at(0),
    }
}

/// An API client of a customer.
pub fn client(customer: &CustomerId, id: &str) -> ApiClient {
    ApiClient {
        id: ClientId::parse(id).expect("an id"),
        owner: ClientOwner::Customer(customer.clone()),
        name: "a script".into(),
        secrets: vec![ClientSecret {
            id: SecretId::from_bytes([3; 16]),
            digest: SecretDigest::of(id),
            created_at: at(1),
            expires_at: Some(at(9)),
        }],
        scopes: Scopes::ALL,
        created_at: at(1),
    }
}

/// An access token that expires at an instant.
pub fn token(client: &ApiClient, secret: &str, expires_at: Timestamp) -> AccessToken {
    AccessToken {
        digest: SecretDigest::of(secret),
        client: client.id.clone(),
        scopes: client.scopes,
        expires_at,
    }
}

/// A device of a customer; its names contain its number.
pub fn device(customer: &CustomerId, number: u64) -> Profile {
    Profile {
        customer: customer.clone(),
        device: DeviceId::parse(&format!("meter-{number:06}")).expect("an id"),
        number,
        iccid: Iccid::parse(&format!("8988303{number:012}")).expect("an ICCID"),
        imsi: Some(Imsi::parse(&format!("90140{number:010}")).expect("an IMSI")),
        msisdn: Some(Msisdn::parse(&format!("88{number:010}")).expect("an MSISDN")),
        ip: Some([10, 0, 0, 1].into()),
        endpoint: Endpoint::parse(&format!("urn:dev:{number}")).expect("an endpoint"),
        name: Some("in the cellar".into()),
        credentials: credentials(number),
        security: SecurityRequirement::Dtls,
        created_at: at(2),
        tags: Tags::of([Tag::parse("made-by:acme").expect("a tag")]).expect("one tag"),
        wake_up: Some(WakeUpMessage {
            source: "Größe".into(),
            source_type: AddressType::Alphanumeric,
            content: WakeUpContent::Text("wake up".into()),
        }),
        offline_after_s: NonZeroU32::new(600),
    }
}

/// The keys of a device; their names contain its number.
fn credentials(number: u64) -> DeviceCredentials {
    let psk = |name: &str| Psk {
        identity: format!("{name}-{number}").into(),
        key: Sealed::from_bytes([1, 2, 3].into()),
    };
    let mut point = [4; RawPublicKey::POINT_BYTES];
    point[1..9].copy_from_slice(&number.to_be_bytes());
    DeviceCredentials {
        kept_identity: None,
        psk: Some(Credential {
            key: psk("psk"),
            created_at: at(2),
            admitted_since: at(1),
            previous: Some(psk("previous")),
        }),
        public_key: Some(Credential {
            key: RawPublicKey::from_point(&point).expect("a point"),
            created_at: at(1),
            admitted_since: at(1),
            previous: None,
        }),
        issued: Some(Credential {
            key: psk("psk"),
            created_at: at(3),
            admitted_since: at(1),
            previous: None,
        }),
        issued_public_key: Some(Credential {
            key: RawPublicKey::from_point(&point).expect("a point"),
            created_at: at(3),
            admitted_since: at(2),
            previous: None,
        }),
    }
}

/// The record of a device that registered at a second with these object links.
pub fn record(second: i64, links: &str) -> DeviceRecord {
    DeviceRecord {
        first_contact_at: Some(at(second)),
        last_seen_at: Some(at(second)),
        peer: Some(Peer::plain(([192, 0, 2, 7], 5_683).into())),
        registration: Some(Registration {
            salt: 7,
            lifetime_asked_s: Some(3_600),
            expires_at: at(second).plus_s(3_600),
            registered_at: at(second),
            version: Registration::parse_version("1.1").expect("a version"),
            binding: Registration::parse_binding("UQ").expect("a binding"),
            sms: Some("88123".into()),
            links: Registration::parse_links(links).expect("links"),
        }),
        observations: [ObservationState::Held, ObservationState::Owed]
            .map(|state| observation(second, state))
            .into(),
        protocols_seen: ProtocolsSeen::restored([Protocol::Lwm2m], Some(Protocol::Lwm2m)),
        unknown_object: if second % 2 == 0 {
            Logged::No
        } else {
            Logged::Yes
        },
        update: (second % 2 == 0).then(|| {
            Box::new(FirmwareUpdate {
                campaign: CampaignId::from_bytes([5; 16]),
                place: 7,
                image: match second % 4 {
                    0 => UpdateImage::Stored {
                        image: ImageId::from_bytes([6; 16]),
                        bytes: 900,
                        key: ImageKey::of(&[8; 16], 7),
                    },
                    _ => UpdateImage::Elsewhere("http://192.0.2.9/image".into()),
                },
                method: DeliveryMethod::Auto,
                retries_left: 2,
                step: UpdateStep::Applies,
                version_before: (second % 4 == 0).then(|| "1.4.0".into()),
            })
        }),
        composite_unanswered: (second % 2 == 0).then_some(NonZeroU32::MAX),
        log_quota: match second % 2 {
            0 => LogQuota::restored(u16::MAX, 1),
            _ => LogQuota::default(),
        },
        connectivity: Connectivity::Online,
        wakefulness: match second % 2 {
            0 => Wakefulness::Awake,
            _ => Wakefulness::Unreported,
        },
        expired_lifetime_s: (second % 2 == 1).then_some(NonZeroU32::MIN),
    }
}

fn observation(second: i64, state: ObservationState) -> Observation {
    Observation {
        target: match (state, second % 2) {
            (_, 0) => ObservationTarget::Paths([Path::object(3303), Path::object(6)].into()),
            (ObservationState::Held, _) => ObservationTarget::Path(Path::object(3303)),
            (ObservationState::Owed, _) => {
                ObservationTarget::Path(Path::resource_instance(3, 0, 6, 1))
            }
        },
        attributes: match state {
            ObservationState::Held => Attributes::default(),
            ObservationState::Owed => {
                Attributes::from_query("pmin=10&gt=21.5").expect("they are valid")
            }
        },
        token: [1, 2, 3, 4],
        action: ActionId::new(moment(second, 3).uuid()),
        begun_at: at(second),
        state,
        newest: None,
    }
}

/// The links of a device with this many objects, each of some eight bytes.
pub fn links(objects: u64) -> String {
    (0..objects)
        .map(|id| format!("</{id}/0>"))
        .collect::<Vec<_>>()
        .join(",")
}

/// A SCHEDULED request for a device, created at a second.
pub fn action(device: &Profile, second: i64, rng: u64) -> Action {
    let mut m = moment(second, rng);
    Action {
        id: ActionId::new(m.uuid()),
        customer: device.customer.clone(),
        device: device.key(),
        request: operation(),
        mode: Mode::SendWhenActive,
        status: Status::Scheduled,
        attempts_permitted: 3,
        attempts_made: 0,
        created_at: m.now(),
        updated_at: m.now(),
        expires_at: m.now().plus_s(86_400),
        expires_in_s: Some(86_400),
        not_before: Some(Timestamp::from_ms(1_700_000_060_000)),
        wake_up: Some(WakeUp::Sms),
        woken_by: SmsId::from_number(890_590_445_567_283),
        addressee: Addressee {
            device: device.device.clone(),
            iccid: device.iccid.clone(),
            imsi: device.imsi.clone(),
            ip: device.ip,
        },
        trace: TraceId::new(m.uuid()),
        outcome: None,
        timeline: Timeline::default(),
    }
}

/// A request to be created.
pub fn new_action() -> NewAction {
    NewAction {
        request: operation(),
        mode: Mode::SendWhenActive,
        attempts_permitted: 3,
        expires_in_s: Some(86_400),
        not_before: Some(Timestamp::from_ms(1_700_000_060_000)),
        wake_up: Some(WakeUp::Sms),
        trace: TraceId::from_bytes([9; 16]),
        idempotent_call: None,
    }
}

/// A request of each protocol.
pub fn requests() -> [Request; 3] {
    let content = |text| Content::parse(ContentEncoding::String, text).expect("any text is");
    let datagram = UdpRequest {
        content: content("21.5"),
        port: PORT,
    };
    let request = CoapRequest {
        method: Method::Put,
        port: PORT,
        target: PathAndQuery::parse("/valve?at=21.5").expect("a path and a query"),
        content: Some(content("open")),
    };
    [Request::Udp(datagram), Request::Coap(request), operation()]
}

/// A request of each operation.
pub fn operations() -> impl Iterator<Item = Lwm2mRequest> {
    let path = Path::resource(3303, 0, 5700);
    let values = || {
        [
            (path, "21.5".into()),
            (Path::resource(3303, 0, 5701), "".into()),
        ]
        .into()
    };
    let attributes = Attributes::from_query("pmin=10&pmax&gt=21.5").expect("they are valid");
    let new = |instance| {
        Lwm2mRequest::Create(NewInstance {
            object: 3303,
            instance,
            values: values(),
        })
    };
    let write = |method| {
        Lwm2mRequest::WriteInstance(InstanceWrite {
            path: Path::instance(3303, 0),
            method,
            values: values(),
        })
    };
    [
        Lwm2mRequest::Read(path),
        Lwm2mRequest::Write(path, "".into()),
        Lwm2mRequest::Execute(path, None),
        Lwm2mRequest::Execute(path, Some("0='a'".into())),
        Lwm2mRequest::ObserveStart(path, Attributes::default()),
        Lwm2mRequest::ObserveStart(path, attributes.clone()),
        Lwm2mRequest::ObserveCompositeStart([path, Path::object(6)].into(), Attributes::default()),
        Lwm2mRequest::ObserveCompositeStart([path].into(), attributes.clone()),
        Lwm2mRequest::ObserveCompositeEnd([].into()),
        Lwm2mRequest::ObserveEnd(path),
        Lwm2mRequest::Discover(Path::object(3303)),
        new(None),
        new(Some(0)),
        Lwm2mRequest::Delete(Path::resource_instance(3, 0, 6, 1)),
        Lwm2mRequest::WriteAttributes(path, attributes),
        write(WriteMethod::Replace),
        write(WriteMethod::PartialUpdate),
        Lwm2mRequest::ReadComposite([].into()),
        Lwm2mRequest::ReadComposite([path, Path::object(6)].into()),
        Lwm2mRequest::WriteComposite(values()),
    ]
    .into_iter()
}

fn operation() -> Request {
    let path = "/3303/0/5601".parse().expect("a path");
    Request::Lwm2m(Lwm2mRequest::Write(path, "21.5".into()))
}

/// Every event of a timeline.
const HAPPENED: [TimelineEvent; 8] = [
    TimelineEvent::Waiting(WaitReason::PassiveReporting),
    TimelineEvent::AttemptBegun(1),
    TimelineEvent::DatagramSent,
    TimelineEvent::DatagramRepeated,
    TimelineEvent::Acknowledged,
    TimelineEvent::Answered(Code::CONTENT),
    TimelineEvent::Rejected,
    TimelineEvent::GaveUp,
];

/// The request in another status a second later, with an answer if it is final.
pub fn moved(action: &Action, status: Status) -> Action {
    let outcome = (!status.is_pending()).then(|| Outcome {
        code: Some("205".into()),
        payload: Some("21.5".into()),
        payload_type: None,
        error: None,
    });
    let updated_at = if status.is_untouched() {
        action.created_at
    } else {
        action.updated_at.plus_s(1)
    };
    let mut timeline = action.timeline.clone();
    for what in HAPPENED {
        timeline.note(updated_at, what);
    }
    timeline.note_error(updated_at, Code::NOT_FOUND, Some("no such instance".into()));
    Action {
        status,
        outcome,
        updated_at,
        timeline,
        ..action.clone()
    }
}

/// The batch in which a device's machine saves a new request: with its expectations and counts.
pub fn created(action: &Action) -> Batch {
    saved(None, action)
}

/// The batch that saves a request that was in the given state before.
pub fn saved(was: Option<&Action>, action: &Action) -> Batch {
    let mut effects = Effects::new();
    effects.save_action(was.map(Action::state), action);
    effects.settle(Owner::Nobody).0
}

/// A batch that adds a device.
pub fn known(device: &Profile) -> Batch {
    Batch {
        expects: UniqueName::all_of(device)
            .into_iter()
            .map(Expect::Free)
            .collect(),
        adds: vec![CounterDelta {
            counter: Counter::Devices(device.customer.clone()),
            delta: 1,
        }],
        ..batch(vec![Change::PutDevice {
            was: None,
            profile: Box::new(device.clone()),
        }])
    }
}

/// A batch that removes a device.
pub fn forgotten(device: &Profile) -> Batch {
    Batch {
        expects: vec![Expect::Taken(UniqueName::Device(device.key()))],
        adds: vec![CounterDelta {
            counter: Counter::Devices(device.customer.clone()),
            delta: -1,
        }],
        ..batch(vec![Change::RemoveDevice(device.key())])
    }
}

/// A batch with these changes and no expectations.
pub fn batch(changes: Vec<Change>) -> Batch {
    Batch {
        changes,
        ..Batch::default()
    }
}

/// An entry about a device, written at a second.
pub fn entry(device: &Profile, second: i64, rng: u64) -> Entry {
    let mut m = moment(second, rng);
    Entry {
        id: EntryId::new(m.uuid()),
        customer: device.customer.clone(),
        at: m.now(),
        subject: Subject::Device,
        category: Category::Error,
        message: "DeviceController[ActionRequestFailed]".into(),
        description: format!("Number {rng} went wrong.").into(),
        trace: TraceId::new(m.uuid()),
        about: Some(AboutDevice {
            key: device.key(),
            iccid: device.iccid.clone(),
            imsi: device.imsi.clone(),
            ip: None,
        }),
        payload: None,
    }
}

/// An event of a device, which registered at a second.
pub fn event(device: &Profile, second: i64, rng: u64) -> Event {
    let mut m = moment(second, rng);
    Event {
        id: EventId::new(m.uuid()),
        customer: device.customer.clone(),
        device: device.key(),
        device_info: DeviceInfo {
            device: device.device.clone(),
            iccid: device.iccid.clone(),
            imsi: device.imsi.clone(),
            ip: device.ip,
        },
        at: m.now(),
        content: EventContent::Lifecycle(Lifecycle::Registered),
    }
}

/// A destination of a customer, identified by its number.
pub fn destination(customer: &CustomerId, number: u8) -> Destination {
    Destination {
        id: DestinationId::from_bytes([number; 16]),
        customer: customer.clone(),
        name: format!("ERP {number}").into(),
        target: Target::Webhook(Webhook {
            url: "https://example.org/{{deviceId}}".into(),
            headers: Box::default(),
            secret: None,
            json: JsonPayload::AsText,
            batching: None,
        }),
        event_types: EventTypes::usual(),
        state: DestinationState::RolledOut,
        failure: None,
        replay: Replay::None,
        created_at: at(3),
        updated_at: at(4),
    }
}

/// A definition of a version of an object, whose text has about this many bytes.
pub fn definition(customer: &CustomerId, object: u16, version: &str, bytes: usize) -> Definition {
    let id = DefinitionId {
        customer: customer.clone(),
        object,
        version: Version::parse(version).expect("a version"),
    };
    let line = format!("<!-- {object} {version} -->");
    let xml = line.repeat(bytes / line.len() + 1).into();
    Definition { id, xml, at: at(5) }
}
