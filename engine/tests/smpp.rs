//! Is a part of an SMS on the air at most once, and a message of a device kept once it is
//! acknowledged, whatever becomes of sessions, responses and the process?

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "sms/tracker.rs"]
mod tracker;

use std::collections::{BTreeMap, BTreeSet};

use engine::change::{Batch, Change, Expect};
use engine::directory::sms::submitting::{accept_part, apply_receipt, named_by, refuse, release};
use engine::directory::sms::{FoundParts, NewSms, lapse, receive, submit, take};
use engine::event::EventContent;
use engine::ids::SmsId;
use engine::limits::SmsRules;
use engine::moment::{Moment, Timestamp};
use engine::smpp::effect::{ConnectionId, HandedIn, LinkEffect, LinkEvent, SmsTask};
use engine::smpp::link::{LinkRules, SmppLink};
use engine::smpp_pdu::message::ShortMessage;
use engine::smpp_pdu::pdu::{Credentials, Pdu, SmppCommand};
use engine::smpp_pdu::receipt::{Receipt, message_id_keys};
use engine::smpp_pdu::status::{ESME_ROK, ESME_RTHROTTLED};
use engine::sms::address::AddressType;
use engine::sms::{Sms, SmsPurpose, SmsStatus};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_oneof, proptest};

use tracker::tracker;

const VALIDITY_MS: i64 = 600_000;

const NUMBER: &str = "882285100000001";

/// The addresses of receipts: the number of the device, that number in the form of its country, the
/// address that the SMS came from, and none.
const SOURCES: [&str; 4] = [NUMBER, "085100000001", "1", ""];

/// One input. A choice selects one of what there is.
#[derive(Clone, Debug)]
enum LinkInput {
    /// A caller sends an SMS, which may be a long one.
    Send(bool),
    /// A task of the store is done.
    Store(u8),
    /// The SMS centre answers a submission: 0 and 1 accept it, 2 throttles it, 3 refuses it.
    Answer(u8, u8),
    /// The SMS centre delivers a receipt about a part that it has, with or without its reference,
    /// and with one of [`SOURCES`] as its address.
    Receipt(u8, bool, u8),
    /// A device sends a message.
    Deliver,
    /// The connection that is wanted opens, or fails.
    Connect(bool),
    /// The connection ends.
    Break,
    /// Time passes.
    Pass(i64),
    /// The process is killed, and started again.
    Crash,
    /// The same, once the store has done a task and before that is known.
    CrashBehind(u8),
    /// The service stops, and is started again.
    Stop,
}

/// A part that was submitted.
#[derive(Clone, Debug)]
struct OnAir {
    session: u32,
    sequence: u32,
    message: ShortMessage,
    /// Whether the SMS centre accepted it, and under which id.
    id: String,
    is_answered: bool,
    is_kept: bool,
}

/// A link, its store and its SMS centre.
struct LinkWorld {
    now_ms: i64,
    link: SmppLink,
    wanted: Option<ConnectionId>,
    open: Option<ConnectionId>,
    /// The number of the open connection, over all processes.
    session: u32,
    sms: BTreeMap<SmsId, Sms>,
    tasks: Vec<SmsTask>,
    on_air: Vec<OnAir>,
    /// How often each part is on the air, without the refused ones.
    times: BTreeMap<(Box<str>, Box<[u8]>), u32>,
    sent: u32,
    delivered: u32,
    /// The messages of the device that the SMS centre keeps, because they are not acknowledged.
    kept: BTreeSet<u32>,
    last_sequence: u32,
    /// The sequence numbers of messages of devices, by their connection.
    unanswered: BTreeMap<(u32, u32), u32>,
    acknowledged: BTreeSet<u32>,
    /// The messages of the device in the order of their events.
    received: Vec<u32>,
    published: BTreeMap<SmsId, Vec<SmsStatus>>,
    /// Whether a session ended with something on the air.
    has_lost: bool,
    /// Whether the process is killed before it takes another step.
    is_dying: bool,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_part_is_submitted_once_whatever_becomes_of_its_session(
        inputs in vec(input(), 1..300),
    ) {
        let mut world = LinkWorld::new();
        for input in &inputs {
            world.perform(input);
            world.hold();
        }
        world.calm();
        world.hold();
        world.hold_at_the_end();
    }
}

impl LinkWorld {
    fn new() -> Self {
        Self {
            now_ms: 0,
            link: SmppLink::new(rules()),
            wanted: None,
            open: None,
            session: 0,
            sms: BTreeMap::new(),
            tasks: Vec::new(),
            on_air: Vec::new(),
            times: BTreeMap::new(),
            sent: 0,
            delivered: 0,
            kept: BTreeSet::new(),
            last_sequence: 1_000_000,
            unanswered: BTreeMap::new(),
            acknowledged: BTreeSet::new(),
            received: Vec::new(),
            published: BTreeMap::new(),
            has_lost: false,
            is_dying: false,
        }
    }

    fn perform(&mut self, input: &LinkInput) {
        self.now_ms += 1;
        match input {
            LinkInput::Send(is_long) => self.send(*is_long),
            LinkInput::Store(choice) => self.store(*choice),
            LinkInput::Answer(choice, reply) => self.answer(*choice, *reply),
            LinkInput::Receipt(choice, has_reference, source) => {
                self.receipt(*choice, *has_reference, *source);
            }
            LinkInput::Deliver => self.deliver(),
            LinkInput::Connect(succeeds) => self.connect(*succeeds),
            LinkInput::Break => {
                if let Some(open) = self.open.take() {
                    self.step(|link, m, out| link.closed(m, open, out));
                }
            }
            LinkInput::Pass(ms) => self.now_ms += ms,
            LinkInput::Crash => self.start_again(),
            LinkInput::CrashBehind(choice) => {
                self.is_dying = true;
                self.store(*choice);
                self.is_dying = false;
                self.start_again();
            }
            LinkInput::Stop => {
                self.step(SmppLink::stop);
                while !self.tasks.is_empty() {
                    self.store(0);
                }
                self.start_again();
            }
        }
        self.settle();
    }

    /// A new process has nothing of the old one.
    fn start_again(&mut self) {
        self.has_lost = true;
        self.link = SmppLink::new(rules());
        self.tasks.clear();
        self.wanted = None;
        self.open = None;
        self.unanswered.clear();
    }

    /// What is due is done.
    fn settle(&mut self) {
        let due: Vec<Sms> = self.sms.values().cloned().collect();
        for sms in due {
            let lapsed = lapse(&mut self.moment(), &tracker(Some(NUMBER)), sms).batch;
            self.commit(lapsed);
        }
        let now = self.now();
        if self.link.next_timeout().is_some_and(|at| at <= now) {
            self.step(SmppLink::handle_timeout);
        }
    }

    fn send(&mut self, is_long: bool) {
        self.sent += 1;
        let text = format!("{} ", self.sent);
        let new = NewSms {
            source: self.sent.to_string().into(),
            source_type: AddressType::International,
            payload: text.repeat(if is_long { 150 } else { 1 }).into(),
            dcs: 0,
            udh: None,
            expires_at: None,
            purpose: SmsPurpose::Message,
        };
        let rules = SmsRules {
            validity_ms: VALIDITY_MS,
            open_max: 1_000,
            wake_ups_max: 4,
        };
        let submitted = submit(&mut self.moment(), &tracker(Some(NUMBER)), new, 0, rules);
        self.commit(submitted.unwrap().batch);
    }

    fn store(&mut self, choice: u8) {
        let Some(place) = usize::from(choice).checked_rem(self.tasks.len()) else {
            return;
        };
        let task = self.tasks.remove(place);
        // Ids are times.
        self.now_ms += 1;
        let device = tracker(Some(NUMBER));
        let mut m = self.moment();
        let now = m.now();
        match task {
            SmsTask::Take(max) => {
                let waiting = self.sms.values().filter(|it| it.state().task.is_some());
                let waiting = waiting.take(max as usize).cloned().collect();
                let taken = take(now, waiting);
                self.commit(taken.batch);
                self.step(|link, m, out| link.taken(m, taken.answer, out));
            }
            SmsTask::Receive(from, new) => {
                let stored = receive(&mut m, &device, *new, FoundParts::default());
                self.commit(stored.batch);
                self.step(|link, m, out| link.handed_in(m, &from, HandedIn::Stored, out));
            }
            SmsTask::Apply(from, receipt) => {
                let is_open = |it: &&Sms| it.state().due_at.is_some();
                let open: Vec<Sms> = self.sms.values().filter(is_open).cloned().collect();
                let open = match from == device.msisdn {
                    true => open,
                    false => found_by_id(open, &receipt),
                };
                let applied = apply_receipt(&mut m, &device, open, &receipt);
                let outcome = match applied {
                    Some(_) => HandedIn::Stored,
                    None => HandedIn::Unknown,
                };
                self.commit(applied.map(|it| it.batch).unwrap_or_default());
                self.step(|link, m, out| link.handed_in(m, &from, outcome, out));
            }
            SmsTask::AcceptPart(id, number, message_id) => {
                let accepted = accept_part(self.sms[&id].clone(), number, &message_id);
                self.commit(accepted.batch);
                self.step(|link, m, out| link.part_stored(m, id, accepted.answer, out));
            }
            SmsTask::Refuse(id, reason) => {
                let refused = refuse(&mut m, &device, self.sms[&id].clone(), &reason);
                self.commit(refused.batch);
            }
            SmsTask::Release(id) => self.commit(release(self.sms[&id].clone()).batch),
        }
    }

    fn answer(&mut self, choice: u8, reply: u8) {
        let session = self.open.map(|_| self.session);
        let waits = |it: &&mut OnAir| Some(it.session) == session && !it.is_answered;
        let mut waiting: Vec<&mut OnAir> = self.on_air.iter_mut().filter(waits).collect();
        let Some(place) = usize::from(choice).checked_rem(waiting.len()) else {
            return;
        };
        let part = &mut *waiting[place];
        part.is_answered = true;
        let (status, id) = match reply {
            0 | 1 => (ESME_ROK, part.id.clone()),
            2 => (ESME_RTHROTTLED, String::new()),
            _ => (0x0b, String::new()),
        };
        part.is_kept = status == ESME_ROK;
        if !part.is_kept {
            let key = (
                part.message.source.text.clone(),
                part.message.octets.clone(),
            );
            *self.times.get_mut(&key).unwrap() -= 1;
        }
        let pdu = Pdu {
            sequence: part.sequence,
            status,
            command: SmppCommand::SubmitSmResp(id.into()),
        };
        self.receive(pdu);
    }

    fn receipt(&mut self, choice: u8, has_reference: bool, source: u8) {
        let kept = |it: &&OnAir| it.is_kept || !it.is_answered;
        let kept: Vec<&OnAir> = self.on_air.iter().filter(kept).collect();
        let Some(place) = usize::from(choice).checked_rem(kept.len()) else {
            return;
        };
        let part = kept[place].clone();
        let reference = part.message.user_message_reference;
        let reference = reference.filter(|_| has_reference);
        self.deliver_receipt(&part, reference, SOURCES[usize::from(source)]);
    }

    fn deliver_receipt(&mut self, part: &OnAir, reference: Option<u16>, source: &str) {
        let text = format!("id:{} stat:DELIVRD err:000", part.id);
        let mut receipt = ShortMessage {
            esm_class: 4,
            octets: text.into_bytes().into(),
            user_message_reference: reference,
            ..ShortMessage::default()
        };
        receipt.source.text = source.into();
        self.now_ms += 1;
        self.last_sequence += 1;
        let sequence = self.last_sequence;
        let command = SmppCommand::DeliverSm(Box::new(receipt));
        self.receive(Pdu::request(sequence, command));
    }

    fn deliver(&mut self) {
        self.delivered += 1;
        self.kept.insert(self.delivered);
        self.deliver_one(self.delivered);
    }

    fn deliver_one(&mut self, number: u32) {
        let mut message = ShortMessage {
            octets: number.to_string().into_bytes().into(),
            ..ShortMessage::default()
        };
        message.source.text = NUMBER.into();
        self.last_sequence += 1;
        let sequence = self.last_sequence;
        self.unanswered.insert((self.session, sequence), number);
        let command = SmppCommand::DeliverSm(Box::new(message));
        self.receive(Pdu::request(sequence, command));
    }

    fn connect(&mut self, succeeds: bool) {
        let Some(wanted) = self.wanted.take() else {
            return;
        };
        if succeeds {
            self.open = Some(wanted);
            self.session += 1;
            self.step(|link, m, out| link.connected(m, wanted, out));
            // The SMS centre delivers again what was not acknowledged, in order.
            for number in self.kept.clone() {
                self.deliver_one(number);
            }
        } else {
            self.step(|link, m, out| link.closed(m, wanted, out));
        }
    }

    fn receive(&mut self, pdu: Pdu) {
        if let Some(open) = self.open {
            self.step(|link, m, out| link.received(m, open, pdu, out));
        }
    }

    fn step(&mut self, input: impl FnOnce(&mut SmppLink, &mut Moment, &mut Vec<LinkEffect>)) {
        if self.is_dying {
            return;
        }
        let mut out = Vec::new();
        let mut m = self.moment();
        input(&mut self.link, &mut m, &mut out);
        for effect in out {
            match effect {
                LinkEffect::Connect(id, _) => self.wanted = Some(id),
                LinkEffect::Send(pdu) => self.sent(pdu),
                LinkEffect::Close => self.open = None,
                LinkEffect::Store(task) => self.tasks.push(task),
                LinkEffect::Report(event) => {
                    self.has_lost |= matches!(event, LinkEvent::Lost(_));
                }
            }
        }
    }

    /// A PDU reaches the SMS centre.
    fn sent(&mut self, pdu: Pdu) {
        if self.open.is_none() {
            return;
        }
        let session = self.session;
        let Pdu {
            sequence,
            status,
            command,
        } = pdu;
        let respond = |command| Pdu::request(sequence, command);
        if let SmppCommand::BindTransceiver(_) = command {
            self.receive(respond(SmppCommand::BindTransceiverResp));
        } else if command == SmppCommand::EnquireLink {
            self.receive(respond(SmppCommand::EnquireLinkResp));
        } else if command == SmppCommand::Unbind {
            self.receive(respond(SmppCommand::UnbindResp));
        } else if let SmppCommand::SubmitSm(message) = command {
            let key = (message.source.text.clone(), message.octets.clone());
            *self.times.entry(key).or_default() += 1;
            self.on_air.push(OnAir {
                session,
                sequence,
                message: *message,
                id: format!("m-{}", self.on_air.len()),
                is_answered: false,
                is_kept: false,
            });
        } else if command == SmppCommand::DeliverSmResp
            && let Some(number) = self.unanswered.remove(&(session, sequence))
            && status == ESME_ROK
        {
            self.kept.remove(&number);
            self.acknowledged.insert(number);
        }
    }

    fn commit(&mut self, batch: Batch) {
        for expect in &batch.expects {
            if let Expect::Sms(sms) = expect {
                assert_eq!(self.sms.get(&sms.id), Some(&**sms));
            } else if let Expect::SmsIdFree(id) = expect {
                assert!(!self.sms.contains_key(id), "{id}");
            }
        }
        for change in batch.changes {
            if let Change::PutSms { sms, .. } = change {
                self.sms.insert(sms.id, *sms);
            } else if let Change::AppendEvent(event) = change {
                if let EventContent::SmsReport(report) = event.content {
                    let statuses = self.published.entry(report.id).or_default();
                    statuses.push(report.status);
                } else if let EventContent::SmsReceived(sms) = event.content {
                    self.received.push(sms.payload.parse().unwrap());
                }
            }
        }
    }

    /// What holds at any time.
    fn hold(&self) {
        for ((source, _), times) in &self.times {
            assert!(
                *times <= 1,
                "a part of {source} is on the air {times} times"
            );
        }
        for (id, statuses) in &self.published {
            let status = self.sms[id].submitted().unwrap().status;
            assert_eq!(*statuses, [status], "{id}");
        }
        let texts = self.sms.values().filter_map(text_of_device);
        let stored: BTreeSet<u32> = texts.map(|text| text.parse().unwrap()).collect();
        let lost: Vec<_> = self.acknowledged.difference(&stored).collect();
        assert!(lost.is_empty(), "acknowledged and not stored: {lost:?}");
        let mut first = Vec::new();
        for number in &self.received {
            if !first.contains(number) {
                first.push(*number);
            }
        }
        assert!(
            first.is_sorted(),
            "messages of a device in another order: {first:?}"
        );
    }

    /// Nothing fails any more: what waits is submitted and accepted, and receipts come.
    fn calm(&mut self) {
        for _ in 0..2_000 {
            self.connect(true);
            while !self.tasks.is_empty() {
                self.store(0);
            }
            self.answer(0, 0);
            self.now_ms += 100;
            self.settle();
        }
        // A receipt reaches its SMS by the id alone, whatever address it has.
        for place in 0..self.on_air.len() {
            let part = self.on_air[place].clone();
            if part.is_kept && self.knows(&part.id) {
                let source = SOURCES[place % SOURCES.len()];
                self.deliver_receipt(&part, None, source);
                while !self.tasks.is_empty() {
                    self.store(0);
                }
                assert!(!self.expects(&part.id), "{} with {source:?}", part.id);
            }
        }
    }

    /// Whether a part was accepted under an id, and its SMS is not settled.
    fn knows(&self, id: &str) -> bool {
        let mut open = self.sms.values().filter(|it| it.state().due_at.is_some());
        open.any(|sms| sms.message_id_keys().any(|key| key == id.to_uppercase()))
    }

    /// Whether the part with an id has no status, and its SMS is not settled.
    fn expects(&self, id: &str) -> bool {
        let open = self.sms.values().filter(|it| it.state().due_at.is_some());
        let mut parts = open.flat_map(|sms| &sms.submitted().unwrap().parts);
        parts.any(|part| part.message_id.as_deref() == Some(id) && part.status.is_none())
    }

    fn hold_at_the_end(&self) {
        let submitted = self.sms.values().filter_map(Sms::submitted);
        for sms in submitted.clone() {
            assert_ne!(sms.status, SmsStatus::Pending, "{sms:?}");
        }
        if self.has_lost {
            return;
        }
        // All parts of what is not settled were accepted.
        for sms in self.sms.values().filter(|it| it.state().due_at.is_some()) {
            let parts = &sms.submitted().unwrap().parts;
            assert_eq!(parts.len(), sms.encoded().unwrap().parts.len(), "{sms:?}");
            assert!(parts.iter().all(|it| it.message_id.is_some()), "{sms:?}");
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_ms(1_795_521_600_000 + self.now_ms)
    }

    fn moment(&self) -> Moment {
        Moment::new(self.now(), u128::from(self.sent) + 7)
    }
}

/// What the store finds for a receipt whose address is that of no device.
fn found_by_id(open: Vec<Sms>, receipt: &Receipt) -> Vec<Sms> {
    let keys = message_id_keys(receipt.message_id.as_deref().unwrap_or_default());
    let has_it = |sms: &Sms| sms.message_id_keys().any(|key| keys.contains(&key));
    let found = open.into_iter().filter(has_it).collect();
    named_by(found, receipt).into_iter().collect()
}

fn text_of_device(sms: &Sms) -> Option<String> {
    match &sms.way {
        engine::sms::SmsWay::FromDevice(joined) => Some(joined.text()),
        engine::sms::SmsWay::ToDevice(_) => None,
    }
}

fn input() -> impl Strategy<Value = LinkInput> {
    prop_oneof![
        6 => any::<bool>().prop_map(LinkInput::Send),
        12 => any::<u8>().prop_map(LinkInput::Store),
        8 => (any::<u8>(), 0..4_u8).prop_map(|(choice, reply)| LinkInput::Answer(choice, reply)),
        4 => (any::<u8>(), any::<bool>(), 0..4_u8)
            .prop_map(|(choice, has, source)| LinkInput::Receipt(choice, has, source)),
        3 => (0..1_u8).prop_map(|_| LinkInput::Deliver),
        6 => (0..4_u8).prop_map(|dice| LinkInput::Connect(dice > 0)),
        2 => (0..1_u8).prop_map(|_| LinkInput::Break),
        6 => (0..3_000_i64).prop_map(LinkInput::Pass),
        1 => (0..1_u8).prop_map(|_| LinkInput::Pass(VALIDITY_MS / 2)),
        1 => (0..1_u8).prop_map(|_| LinkInput::Crash),
        1 => any::<u8>().prop_map(LinkInput::CrashBehind),
        1 => (0..1_u8).prop_map(|_| LinkInput::Stop),
    ]
}

fn rules() -> LinkRules {
    LinkRules {
        credentials: Credentials {
            system_id: "me".into(),
            password: "secret".into(),
            system_type: "".into(),
        },
        servers: 2,
        window: 3,
        enquire_link_ms: 30_000,
        response_timeout_ms: 10_000,
        back_off_ms_max: 4_000,
    }
}
