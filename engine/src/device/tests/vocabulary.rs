//! The vocabulary of the device's tests: a device under test, the messages it sends, the requests
//! to it, and the effects line by line.

mod amending;
mod blocks;
mod bootstrapping;
mod defining;
mod firmware;
mod observing;
mod occurring;
mod plain;
mod rendering;
mod reporting;
mod requests;
mod sending;

use std::collections::BTreeMap;
use std::sync::Arc;

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::exchange::Transmission;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;

use crate::action::{Action, NewAction};
use crate::associations::handshake::HandshakeFault;
use crate::change::{Change, Expect};
use crate::credentials::DeviceCredentials;
use crate::datagram::{Datagram, RefusedHandshake};
use crate::delivery::address::policy::AddressPolicy;
use crate::device::Device;
use crate::device::objects::ObjectLists;
use crate::device::queue::{Accepted, CancelRefusal};
use crate::device::record::{DeviceRecord, RestoredDevice};
use crate::device::refusal::SubmitRefusal;
use crate::device::snapshot::Snapshot;
use crate::directory::bootstrap::ServiceUris;
use crate::directory::sms::waking::{WakeUpFacts, WakingAction};
use crate::effect::{Effect, Effects, Outbound};
use crate::firmware::delivery::DownloadUris;
use crate::ids::{ActionId, CustomerId, DeviceId, Endpoint, EventId, Iccid, SmsId};
use crate::limits::Limits;
use crate::moment::{Moment, Timestamp};
use crate::peer::Peer;
use crate::policy::{CustomerPolicy, Wanted};
use crate::profile::{Profile, SecurityRequirement};
use crate::rules::{EndpointTrust, NoSecBootstrap, Rules};
use crate::step_event::StepEvent;
use crate::tags::Tags;

pub(super) use blocks::{block, small_blocks};
pub(super) use bootstrapping::plan;
pub(super) use defining::definition;
pub(super) use firmware::{DOWNLOADS, UPDATABLE};
pub(super) use observing::{
    BATTERY, end_observing, end_observing_several, observation_lost, observe, observe_several,
    observe_several_under, observe_under, observing, read_several, tlv,
};
pub(super) use plain::{
    BARE, coap, data_published, datagram, datagram_published, first_contact, port,
};
pub(super) use rendering::{
    Lines, all, answered, answers, created, ended, logged, moved, published, put_off, recorded,
    refused, refused_at_once, sent, undecodable, updated, without_record,
};
pub(super) use reporting::{REPORTING, reads, reported, unread};
pub(super) use requests::{discover, execute, execute_with, read, write, write_attributes};

pub(super) const S: i64 = 1_000;
pub(super) const MINUTE: i64 = 60 * S;
pub(super) const HOUR: i64 = 60 * MINUTE;

/// The address of the device, unless a test uses another.
pub(super) const HOME: &str = "10.0.0.1:5683";

/// The address of the service itself.
pub(super) const OWN: &str = "10.0.0.1:5999";

/// The objects the device offers, unless a test uses others.
pub(super) const OBJECTS: &str = "</1/0>,</3/0>,</3303/0>";

/// Where the time of a test begins: a Tuesday in November 2023.
pub(super) const START: Timestamp = Timestamp::from_ms(1_700_000_000_000);

/// A device under test, with a store that holds exactly what was saved.
pub(super) struct DeviceFixture {
    now: Timestamp,
    entropy: u128,
    policy: Arc<CustomerPolicy>,
    device: Device,
    saved: RestoredDevice,
    /// The events of the device, oldest first.
    appended: Vec<EventId>,
    final_actions: BTreeMap<ActionId, Action>,
    names: rendering::Names,
    /// The message id of the device's next message.
    next_id: u16,
    /// The last request to the device.
    last_request: Option<Message>,
    /// The request whose bare datagram was handed to the socket last.
    bare_action: Option<ActionId>,
    /// The location of its registration, as answered to the device.
    location: Vec<String>,
    /// The step events of the last step.
    events: Vec<StepEvent>,
    /// The effects of the last step.
    wanted: Vec<Effect>,
}

impl DeviceFixture {
    /// A device that never sent anything, with an IP address in its profile.
    pub(super) fn new() -> Self {
        Self::within(Limits::default())
    }

    /// The same with other limits.
    pub(super) fn within(limits: Limits) -> Self {
        let mut profile = profile();
        profile.ip = Some("10.0.0.1".parse().unwrap());
        Self::made(profile, EndpointTrust::AddressRequired, limits)
    }

    /// A device that is accepted from any address.
    pub(super) fn roaming() -> Self {
        Self::of(profile(), EndpointTrust::NameSuffices)
    }

    pub(super) fn of(profile: Profile, names: EndpointTrust) -> Self {
        Self::made(profile, names, Limits::default())
    }

    fn made(profile: Profile, names: EndpointTrust, limits: Limits) -> Self {
        let policy = Arc::new(CustomerPolicy::of_rules(Arc::new(Rules {
            limits,
            transmission: Transmission {
                // Without randomness the times of retransmissions are round.
                ack_random_factor_percent: 100,
                ..Transmission::STANDARD
            },
            names,
            bootstrap: NoSecBootstrap::default(),
            uris: ServiceUris::default(),
            downloads: DownloadUris {
                http: Some(DOWNLOADS.into()),
                ..DownloadUris::default()
            },
            own: [OWN.parse().unwrap()].into(),
            addresses: AddressPolicy::PublicOnly,
        })));
        let saved = RestoredDevice {
            profile,
            record: DeviceRecord::default(),
            pending: Vec::new(),
            recent_events: Box::default(),
        };
        let mut m = Moment::new(START, 0);
        Self {
            now: START,
            entropy: 1,
            device: Device::restore(&mut m, Arc::clone(&policy), saved.clone()),
            policy,
            saved,
            appended: Vec::new(),
            final_actions: BTreeMap::new(),
            names: rendering::Names::default(),
            next_id: 100,
            last_request: None,
            bare_action: None,
            location: Vec::new(),
            events: Vec::new(),
            wanted: Vec::new(),
        }
    }

    /// A device that registered at the start; the effects of that are dropped.
    pub(super) fn registered() -> Self {
        let mut fixture = Self::new();
        fixture.register();
        fixture
    }

    /// A device that registered at the start, whose customer wants results to be published.
    pub(super) fn reporting_results() -> Self {
        let mut fixture = Self::registered();
        fixture.change_policy(|policy| policy.results = Wanted::Yes);
        fixture
    }

    /// The customer changes what applies to its devices.
    pub(super) fn change_policy(&mut self, change: impl FnOnce(&mut CustomerPolicy)) {
        change(Arc::make_mut(&mut self.policy));
        self.device.take_policy(Arc::clone(&self.policy));
    }

    /// A device that registered for queue mode at the start.
    pub(super) fn registered_for_queue_mode() -> Self {
        let mut fixture = Self::new();
        fixture.register_for_queue_mode();
        fixture
    }

    /// Sets the clock to this many milliseconds after the start.
    pub(super) fn at(&mut self, after_start: i64) -> &mut Self {
        self.now = START.plus_ms(after_start);
        self
    }

    // Acts of the device.

    pub(super) fn register(&mut self) -> Lines {
        self.register_with(&["lwm2m=1.1", "lt=86400", "b=U"], OBJECTS)
    }

    pub(super) fn register_for_queue_mode(&mut self) -> Lines {
        self.register_with(&["lwm2m=1.1", "lt=86400", "b=U", "Q"], OBJECTS)
    }

    pub(super) fn register_with(&mut self, queries: &[&str], objects: &str) -> Lines {
        let message = self.registration(queries, objects);
        self.receives(HOME, &message)
    }

    pub(super) fn registration(&mut self, queries: &[&str], objects: &str) -> Message {
        self.request(Code::POST, &["rd"])
            .with_uri_query([&["ep=meter"], queries].concat())
            .with_content_format(ContentFormat::LINK_FORMAT)
            .with_payload(objects)
    }

    /// An update that changes nothing.
    pub(super) fn update(&mut self) -> Lines {
        let message = self.updating(&[], "");
        self.receives(HOME, &message)
    }

    pub(super) fn updating(&mut self, queries: &[&str], objects: &str) -> Message {
        let at = self.location.clone();
        let path: Vec<&str> = at.iter().map(String::as_str).collect();
        self.request(Code::POST, &path)
            .with_uri_query(queries)
            .with_payload(objects)
    }

    pub(super) fn deregister(&mut self) -> Lines {
        let message = self.deregistering();
        self.receives(HOME, &message)
    }

    pub(super) fn deregistering(&mut self) -> Message {
        let at = self.location.clone();
        let path: Vec<&str> = at.iter().map(String::as_str).collect();
        self.request(Code::DELETE, &path)
    }

    /// A confirmable request of the device.
    pub(super) fn request(&mut self, code: Code, path: &[&str]) -> Message {
        let (id, token) = (self.device_id(), Token::new(&[7, 7]).unwrap());
        Message::request(MessageKind::Confirmable, code, id, token).with_uri_path(path)
    }

    /// The device answers the last request in its acknowledgement.
    pub(super) fn answer(&mut self, code: Code, payload: &str) -> Lines {
        let message = self.piggybacked(code).with_payload(payload);
        self.receives(HOME, &message)
    }

    pub(super) fn piggybacked(&self, code: Code) -> Message {
        Message::response_to(self.last_request(), code, MessageId(0))
    }

    pub(super) fn separate(&mut self, kind: MessageKind, code: Code) -> Message {
        let token = self.last_request().token;
        Message::separate(kind, code, self.device_id(), token)
    }

    /// The last request to the device.
    pub(super) fn last_request(&self) -> &Message {
        self.last_request.as_ref().expect("a request was sent")
    }

    pub(super) fn device_id(&mut self) -> MessageId {
        self.next_id += 1;
        MessageId(self.next_id)
    }

    // Acts of the service.

    pub(super) fn receives(&mut self, from: &str, message: &Message) -> Lines {
        // Only bytes are transmitted.
        let message = Message::decode(&message.encode()).unwrap();
        let datagram = Datagram::new(0, peer(from), message);
        self.step(|device, m, out| device.handle_datagram(m, &datagram, out))
            .1
    }

    /// A handshake is refused to somebody who claims to be the device.
    pub(super) fn is_refused_a_handshake(&mut self, from: &str, why: HandshakeFault) -> Lines {
        let refused = RefusedHandshake {
            number: 0,
            peer: peer(from),
            why,
        };
        self.step(|device, m, out| device.handle_refused_handshake(m, refused, out))
            .1
    }

    pub(super) fn timeout(&mut self) -> Lines {
        self.step(Device::handle_timeout).1
    }

    pub(super) fn drop_unfinished(&mut self) -> Lines {
        self.step(Device::drop_unfinished).1
    }

    /// Sets the clock to the next deadline and handles it.
    pub(super) fn next_deadline(&mut self) -> Lines {
        self.now = self.device.next_timeout().expect("there is a deadline");
        self.timeout()
    }

    pub(super) fn submit(&mut self, new: NewAction) -> (Result<Accepted, SubmitRefusal>, Lines) {
        self.step(|device, m, out| device.submit(m, new, out))
    }

    /// Creates a request that wakes the device, with what is stored of it.
    pub(super) fn submit_waking(
        &mut self,
        new: NewAction,
        facts: &WakeUpFacts,
    ) -> (Result<Accepted, SubmitRefusal>, Lines) {
        let waking = WakingAction {
            new,
            facts: facts.clone(),
            sms: SmsId::first_at(self.now),
        };
        self.step(|device, m, out| device.submit_waking(m, waking, out))
    }

    /// Creates a request and returns its id; the effects are dropped.
    pub(super) fn ask(&mut self, new: NewAction) -> ActionId {
        self.submit(new).0.expect("the request is accepted").id
    }

    pub(super) fn cancel(&mut self, id: ActionId) -> (Result<(), CancelRefusal>, Lines) {
        let (cancelled, lines) = self.step(|device, m, out| device.cancel(m, id, out));
        (
            cancelled.map(|cancelled| assert_eq!(cancelled.id, id)),
            lines,
        )
    }

    pub(super) fn cancel_all(&mut self) -> (Vec<ActionId>, Lines) {
        let (cancelled, lines) = self.step(Device::cancel_all);
        (
            cancelled
                .into_iter()
                .map(|cancelled| cancelled.id)
                .collect(),
            lines,
        )
    }

    pub(super) fn retire(&mut self) -> Lines {
        self.step(Device::retire).1
    }

    /// The service stops at any point and starts again.
    pub(super) fn restart(&mut self) {
        let mut m = self.moment();
        for observation in &mut self.saved.record.observations {
            observation.newest = None;
        }
        let policy = Arc::clone(&self.policy);
        self.saved.recent_events = self.appended.as_slice().into();
        self.device = Device::restore(&mut m, policy, self.saved.clone());
    }

    /// The device uses the shared copy of its object list.
    pub(super) fn share_objects(&mut self, lists: &mut ObjectLists) {
        self.device.share_objects(lists);
    }

    /// The request as it was saved.
    pub(super) fn saved(&self, id: ActionId) -> &Action {
        let pending = self.saved.pending.iter().find(|action| action.id == id);
        pending
            .or_else(|| self.final_actions.get(&id))
            .expect("an accepted request is saved")
    }

    pub(super) fn saved_record(&self) -> &DeviceRecord {
        &self.saved.record
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.device.snapshot(self.now)
    }

    /// The next deadline, in milliseconds after the start.
    pub(super) fn deadline(&self) -> Option<i64> {
        self.device.next_timeout().map(|at| at.since_ms(START))
    }

    /// A time, in milliseconds after the start.
    pub(super) fn since_start(&self, at: Timestamp) -> i64 {
        at.since_ms(START)
    }

    /// The present time, in milliseconds after the start.
    pub(super) fn since_start_now(&self) -> i64 {
        self.since_start(self.now)
    }

    /// The present time, in seconds after the start.
    pub(super) fn now_s(&self) -> i64 {
        self.now.since_ms(START) / S
    }

    /// Runs one step, stores what it saves, and returns its effects as lines.
    fn step<T>(
        &mut self,
        input: impl FnOnce(&mut Device, &mut Moment, &mut Effects) -> T,
    ) -> (T, Lines) {
        let mut m = self.moment();
        let mut out = Effects::new();
        let outcome = input(&mut self.device, &mut m, &mut out);
        self.events = out.take_events();
        let before = self.saved.clone();
        for effect in out.as_slice() {
            self.take_note(&before, effect);
        }
        self.wanted = out.as_slice().to_vec();
        let lines = out.as_slice().iter();
        (
            outcome,
            lines.map(|effect| self.names.line(effect)).collect(),
        )
    }

    fn moment(&mut self) -> Moment {
        // An odd multiplier with bits all over, as entropy has.
        self.entropy = self
            .entropy
            .wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645);
        Moment::new(self.now, self.entropy)
    }

    fn take_note(&mut self, before: &RestoredDevice, effect: &Effect) {
        match effect {
            Effect::Expect(Expect::Status { action, is }) => {
                let found = before.pending.iter().find(|it| it.id == *action);
                let status = found.map(|it| it.status);
                assert_eq!(status, Some(*is), "a batch expects what held before it");
            }
            Effect::Save(Change::PutAction { action, .. }) => self.save(action),
            Effect::Save(Change::PutRecord { record, .. }) => {
                self.saved.record = (**record).clone()
            }
            Effect::Save(Change::AppendEvent(event)) => self.appended.push(event.id),
            Effect::Send(Outbound::Send { datagram, .. }) => self.take_note_of_message(datagram),
            Effect::Send(Outbound::SendUdp { action, .. }) => self.bare_action = Some(*action),
            Effect::Save(_)
            | Effect::Expect(_)
            | Effect::Count(_)
            | Effect::Log(_)
            | Effect::Send(
                Outbound::Rebind { .. }
                | Outbound::PrepareBootstrap(_)
                | Outbound::ReadImage(_)
                | Outbound::NoteTransferred { .. },
            ) => {}
        }
    }

    fn take_note_of_message(&mut self, datagram: &[u8]) {
        let message = Message::decode(datagram).expect("we send well-formed messages");
        if message.code.is_request() {
            self.last_request = Some(message);
        } else if message.code == Code::CREATED {
            self.location = message.location_path().map(str::to_owned).collect();
        }
    }

    fn save(&mut self, action: &Action) {
        self.saved.pending.retain(|it| it.id != action.id);
        if action.status.is_pending() {
            self.saved.pending.push(action.clone());
            self.saved.pending.sort_by_key(|it| it.id);
        } else {
            self.final_actions.insert(action.id, action.clone());
        }
    }
}

/// The profile of the device; it has no IP address.
pub(super) fn profile() -> Profile {
    Profile {
        customer: CustomerId::parse("acme").unwrap(),
        device: DeviceId::parse("8931").unwrap(),
        number: 1,
        iccid: Iccid::parse("8931").unwrap(),
        imsi: None,
        msisdn: None,
        ip: None,
        endpoint: Endpoint::parse("meter").unwrap(),
        name: None,
        credentials: DeviceCredentials::default(),
        security: SecurityRequirement::Any,
        created_at: START,
        tags: Tags::default(),
        wake_up: None,
        offline_after_s: None,
    }
}

/// A peer at an address; with ` over DTLS`, the association of the device at that address.
pub(super) fn peer(text: &str) -> Peer {
    match text.strip_suffix(" over DTLS") {
        Some(address) => Peer::secured(address.parse().unwrap()).of_device(profile().key()),
        None => Peer::plain(text.parse().unwrap()),
    }
}
