//! What does a link send and store, in which order?

use protocol::sms::parts::encode;

use super::*;
use crate::ids::{CustomerId, DeviceKey, Iccid};
use crate::sms::address::AddressType;
use crate::sms::{SmsPurpose, SmsStatus, SmsWay, SubmittedSms};

const START: Timestamp = Timestamp::from_ms(1_795_521_600_000);

const DEVICE: &str = "882285100000001";

/// A bound link with a clock.
struct Fixture {
    link: SmppLink,
    ms: i64,
    out: Vec<LinkEffect>,
}

impl Fixture {
    fn new(window: usize, servers: usize) -> Self {
        let link = SmppLink::new(LinkRules {
            credentials: Credentials {
                system_id: "me".into(),
                password: "secret".into(),
                system_type: "".into(),
            },
            servers,
            window,
            enquire_link_ms: 30_000,
            response_timeout_ms: 10_000,
            back_off_ms_max: 8_000,
        });
        Self {
            link,
            ms: 0,
            out: Vec::new(),
        }
    }

    fn bound(window: usize) -> Self {
        let mut it = Self::new(window, 1);
        it.bind();
        it
    }

    fn bind(&mut self) -> Vec<LinkEffect> {
        self.due();
        self.step(|link, m, out| link.connected(m, link.connection, out));
        self.receive(1, ESME_ROK, SmppCommand::BindTransceiverResp)
    }

    fn step(
        &mut self,
        input: impl FnOnce(&mut SmppLink, &mut Moment, &mut Vec<LinkEffect>),
    ) -> Vec<LinkEffect> {
        let mut m = Moment::new(START.plus_ms(self.ms), 7);
        input(&mut self.link, &mut m, &mut self.out);
        std::mem::take(&mut self.out)
    }

    /// Lets time pass until the next timeout, and handles it.
    fn due(&mut self) -> Vec<LinkEffect> {
        let at = self.link.next_timeout().unwrap();
        self.ms = self.ms.max(at.since_ms(START));
        self.step(SmppLink::handle_timeout)
    }

    fn receive(&mut self, sequence: u32, status: u32, command: SmppCommand) -> Vec<LinkEffect> {
        let pdu = Pdu {
            sequence,
            status,
            command,
        };
        self.step(|link, m, out| link.received(m, link.connection, pdu, out))
    }

    fn taken(&mut self, texts: &[(u64, &str)]) -> Vec<LinkEffect> {
        let taken = texts
            .iter()
            .map(|(id, text)| (NetworkTask::Send, sms(*id, text)))
            .collect();
        self.step(|link, m, out| link.taken(m, taken, out))
    }

    fn accepted(&mut self, sequence: u32, id: &str) -> Vec<LinkEffect> {
        self.receive(sequence, ESME_ROK, SmppCommand::SubmitSmResp(id.into()))
    }

    fn broken(&mut self) -> Vec<LinkEffect> {
        self.step(|link, m, out| link.closed(m, link.connection, out))
    }
}

#[test]
fn a_session_binds_and_takes_as_many_as_its_window_has() {
    let mut it = Fixture::new(3, 1);
    assert_eq!(it.due(), [LinkEffect::Connect(ConnectionId(1), 0)]);
    let bind = it.step(|link, m, out| link.connected(m, ConnectionId(1), out));
    let credentials = it.link.rules.credentials.clone();
    let pdu = Pdu::request(1, SmppCommand::BindTransceiver(credentials));
    assert_eq!(bind, [LinkEffect::Send(pdu)]);
    let bound = it.receive(1, ESME_ROK, SmppCommand::BindTransceiverResp);
    let take = LinkEffect::Store(SmsTask::Take(3));
    assert_eq!(bound, [LinkEffect::Report(LinkEvent::Bound(0)), take]);
    assert_eq!(
        sent(&it.taken(&[(1, "one"), (2, "two")])),
        ["2 one", "3 two"]
    );
}

#[test]
fn the_window_bounds_what_is_on_the_air() {
    let mut it = Fixture::bound(2);
    let effects = it.taken(&[(1, "one"), (2, "two"), (3, "three")]);
    assert_eq!(sent(&effects), ["2 one", "3 two"]);
    assert_eq!(it.link.unanswered(), 2);
    let effects = it.accepted(3, "b");
    assert_eq!(sent(&effects), ["4 three"]);
    let stored = LinkEffect::Store(SmsTask::AcceptPart(id(2), 1, "b".into()));
    assert!(effects.contains(&stored), "{effects:?}");
}

#[test]
fn nothing_is_taken_and_nothing_is_due_while_the_window_is_full() {
    let mut it = Fixture::bound(2);
    it.taken(&[(1, "one"), (2, "two"), (3, "three")]);
    it.ms += SMPP_TAKE_EVERY_MS;
    assert_eq!(it.step(SmppLink::handle_timeout), []);
    let response_due = START.plus_ms(it.link.rules.response_timeout_ms);
    assert_eq!(it.link.next_timeout(), Some(response_due));
}

#[test]
fn a_part_follows_once_it_is_stored_that_the_one_before_was_accepted() {
    let mut it = Fixture::bound(2);
    let long = "a".repeat(161);
    assert_eq!(sent(&it.taken(&[(1, &long)])).len(), 1);
    let accepted = it.accepted(2, "a");
    assert!(sent(&accepted).is_empty());
    let effects = it.step(|link, m, out| link.part_stored(m, id(1), true, out));
    assert_eq!(sent(&effects).len(), 1);
    it.accepted(3, "b");
    it.step(|link, m, out| link.part_stored(m, id(1), true, out));
    assert!(it.link.submitting.is_empty());
}

#[test]
fn what_is_refused_for_now_waits_again_and_pauses_the_link() {
    let mut it = Fixture::bound(4);
    it.taken(&[(1, "one"), (2, "two")]);
    let effects = it.receive(2, ESME_RTHROTTLED, SmppCommand::SubmitSmResp("".into()));
    let expected = [
        reported(SubmitOutcome::Throttled),
        LinkEffect::Store(SmsTask::Release(id(1))),
    ];
    assert_eq!(effects, expected);
    let effects = it.receive(3, 0x0b, SmppCommand::SubmitSmResp("".into()));
    let reason = "refused by the SMS centre with command_status 0xb";
    let expected = [
        reported(SubmitOutcome::Refused),
        LinkEffect::Store(SmsTask::Refuse(id(2), reason.into())),
    ];
    assert_eq!(effects, expected);
    it.taken(&[]);
    let paused_until = it.link.flow.paused_until();
    assert_eq!(it.link.next_timeout(), Some(paused_until));
    assert_eq!(it.due(), [LinkEffect::Store(SmsTask::Take(2))]);
}

#[test]
fn a_lost_session_leaves_what_was_on_the_air_and_releases_the_rest() {
    let mut it = Fixture::bound(1);
    it.taken(&[(1, "one"), (2, "two")]);
    let effects = it.broken();
    let expected = [
        LinkEffect::Report(LinkEvent::Lost(LossReason::Closed)),
        reported(SubmitOutcome::Unknown),
        LinkEffect::Store(SmsTask::Release(id(2))),
    ];
    assert_eq!(effects, expected);
    assert!(it.accepted(2, "late").is_empty(), "its session has ended");
    let bound = it.bind();
    assert!(sent(&bound).is_empty(), "{bound:?}");
}

#[test]
fn a_silent_sms_centre_is_asked_and_then_left() {
    let mut it = Fixture::bound(1);
    it.taken(&[]);
    let mut asked = Vec::new();
    while asked.is_empty() {
        let effects = it.due();
        for effect in &effects {
            if let LinkEffect::Send(pdu) = effect {
                asked.push(pdu.command.clone());
            }
        }
        if effects.contains(&LinkEffect::Store(SmsTask::Take(1))) {
            it.taken(&[]);
        }
    }
    assert_eq!(asked, [SmppCommand::EnquireLink]);
    let mut left = Vec::new();
    while !left.contains(&LinkEffect::Close) {
        left = it.due();
        if left.contains(&LinkEffect::Store(SmsTask::Take(1))) {
            it.taken(&[]);
        }
    }
    let lost = LinkEffect::Report(LinkEvent::Lost(LossReason::Silent));
    assert_eq!(left, [LinkEffect::Close, lost]);
}

#[test]
fn each_sms_centre_is_tried_before_the_link_waits_longer_and_longer() {
    let mut it = Fixture::new(1, 2);
    let mut pauses = Vec::new();
    for attempt in 1..=12 {
        let place = usize::from(attempt % 2 == 0);
        assert_eq!(
            it.due(),
            [LinkEffect::Connect(ConnectionId(attempt), place)]
        );
        it.broken();
        let at = it.link.next_timeout().unwrap();
        pauses.push(at.since_ms(START.plus_ms(it.ms)));
    }
    for (round, pause) in pauses.chunks(2).enumerate() {
        let most = (SMPP_BACK_OFF_MS_MIN << round).min(8_000);
        assert_eq!(pause[0], 0, "the next one at once");
        assert!((most / 2..=most).contains(&pause[1]), "{pauses:?}");
    }
}

#[test]
fn messages_of_a_device_are_stored_one_after_the_other() {
    let mut it = Fixture::bound(1);
    let first = it.receive(1, ESME_ROK, deliver("one", 0));
    assert!(
        matches!(&first[..], [LinkEffect::Store(SmsTask::Receive(..))]),
        "{first:?}"
    );
    assert!(it.receive(2, ESME_ROK, deliver("two", 0)).is_empty());
    let stored = it.step(|link, m, out| link.handed_in(m, &device(), HandedIn::Stored, out));
    assert!(stored.contains(&response(1, ESME_ROK)), "{stored:?}");
    let is_next = |effect: &LinkEffect| matches!(effect, LinkEffect::Store(SmsTask::Receive(..)));
    assert!(stored.iter().any(is_next));
    for (sequence, outcome, status) in [
        (2, HandedIn::Refused, ESME_RX_T_APPN),
        (3, HandedIn::Unknown, ESME_RX_P_APPN),
    ] {
        it.receive(sequence, ESME_ROK, deliver("text", 0));
        let answered = it.step(|link, m, out| link.handed_in(m, &device(), outcome, out));
        assert!(
            answered.contains(&response(sequence, status)),
            "{answered:?}"
        );
        if sequence == 2 {
            // The one that was received in between.
            it.step(|link, m, out| link.handed_in(m, &device(), HandedIn::Stored, out));
        }
    }
}

#[test]
fn an_unknown_receipt_waits_for_the_response_to_a_submission() {
    let mut it = Fixture::bound(1);
    it.taken(&[(1, "one")]);
    it.receive(1, ESME_ROK, deliver("id:a stat:DELIVRD", 4));
    let held = it.step(|link, m, out| link.handed_in(m, &device(), HandedIn::Unknown, out));
    assert_eq!(held, []);
    it.accepted(2, "a");
    let again = it.step(|link, m, out| link.part_stored(m, id(1), true, out));
    let is_applied = |effect: &LinkEffect| matches!(effect, LinkEffect::Store(SmsTask::Apply(..)));
    assert!(again.iter().any(is_applied), "{again:?}");
    let unknown = it.step(|link, m, out| link.handed_in(m, &device(), HandedIn::Unknown, out));
    assert!(
        unknown.contains(&response(1, ESME_ROK)),
        "nothing is submitted: {unknown:?}"
    );
}

#[test]
fn an_unknown_receipt_with_the_address_of_no_device_waits_for_all_responses_once() {
    for source in ["", "0043 1 234", "1234"] {
        let mut it = Fixture::bound(2);
        it.taken(&[(1, "one"), (2, "two")]);
        let SmppCommand::DeliverSm(mut message) = deliver("id:b stat:DELIVRD", 4) else {
            panic!("it is a message");
        };
        message.source.text = source.into();
        let sender = device_of(&message);
        it.receive(1, ESME_ROK, SmppCommand::DeliverSm(message));
        let unknown = |it: &mut Fixture| {
            it.step(|link, m, out| link.handed_in(m, &sender, HandedIn::Unknown, out))
        };
        assert_eq!(unknown(&mut it), [], "{source}");
        it.accepted(2, "a");
        let is_applied =
            |effect: &LinkEffect| matches!(effect, LinkEffect::Store(SmsTask::Apply(..)));
        let first = it.step(|link, m, out| link.part_stored(m, id(1), true, out));
        assert!(!first.iter().any(is_applied), "{first:?}");
        it.accepted(3, "b");
        let second = it.step(|link, m, out| link.part_stored(m, id(2), true, out));
        assert!(second.iter().any(is_applied), "{second:?}");
        it.taken(&[(3, "three")]);
        let unknown = unknown(&mut it);
        assert!(unknown.contains(&response(1, ESME_ROK)), "{unknown:?}");
    }
}

#[test]
fn a_stop_releases_what_was_not_submitted_and_unbinds_after_the_responses() {
    let mut it = Fixture::bound(1);
    it.taken(&[(1, "one"), (2, "two")]);
    let stopping = it.step(SmppLink::stop);
    assert_eq!(stopping, [LinkEffect::Store(SmsTask::Release(id(2)))]);
    it.accepted(2, "a");
    let unbound = it.step(|link, m, out| link.part_stored(m, id(1), true, out));
    let unbind = Pdu::request(3, SmppCommand::Unbind);
    assert_eq!(unbound, [LinkEffect::Send(unbind)]);
    let ended = it.receive(3, ESME_ROK, SmppCommand::UnbindResp);
    assert_eq!(ended, [LinkEffect::Close]);
    assert!(it.link.is_stopped());
    assert_eq!(it.link.next_timeout(), None);
}

#[test]
fn a_stop_does_not_wait_for_ever() {
    let mut it = Fixture::bound(1);
    it.taken(&[(1, "one")]);
    it.step(SmppLink::stop);
    let ended = it.due();
    assert_eq!(ended, [LinkEffect::Close, reported(SubmitOutcome::Unknown)]);
    assert!(it.link.is_stopped());
}

#[test]
fn what_is_no_command_of_a_session_is_refused() {
    let mut it = Fixture::bound(1);
    let refused = it.receive(9, ESME_ROK, SmppCommand::OtherRequest(0x103));
    let nack = Pdu {
        sequence: 9,
        status: ESME_RINVCMDID,
        command: SmppCommand::GenericNack,
    };
    assert_eq!(refused, [LinkEffect::Send(nack)]);
    assert_eq!(it.accepted(77, "never"), [], "nothing was submitted");
    let asked = it.receive(10, ESME_ROK, SmppCommand::EnquireLink);
    let alive = Pdu::request(10, SmppCommand::EnquireLinkResp);
    assert_eq!(asked, [LinkEffect::Send(alive)]);
    it.taken(&[(1, "one")]);
    let nacked = it.receive(2, 0x0b, SmppCommand::GenericNack);
    assert!(
        nacked.contains(&reported(SubmitOutcome::Refused)),
        "{nacked:?}"
    );
}

/// The sequence numbers and the texts that are submitted.
fn sent(effects: &[LinkEffect]) -> Vec<String> {
    let mut submitted = Vec::new();
    for effect in effects {
        if let LinkEffect::Send(pdu) = effect
            && let SmppCommand::SubmitSm(message) = &pdu.command
        {
            submitted.push(format!("{} {}", pdu.sequence, message.text().payload));
        }
    }
    submitted
}

fn response(sequence: u32, status: u32) -> LinkEffect {
    LinkEffect::Send(Pdu {
        sequence,
        status,
        command: SmppCommand::DeliverSmResp,
    })
}

fn deliver(text: &str, esm_class: u8) -> SmppCommand {
    let mut message = ShortMessage {
        esm_class,
        octets: text.as_bytes().into(),
        ..ShortMessage::default()
    };
    message.source.text = DEVICE.into();
    SmppCommand::DeliverSm(Box::new(message))
}

fn device() -> Sender {
    Some(Msisdn::parse(DEVICE).unwrap())
}

fn id(number: u64) -> SmsId {
    SmsId::from_number(number).unwrap()
}

fn sms(number: u64, text: &str) -> Sms {
    assert!(encode(text, 0, None, 0).is_ok());
    let submitted = SubmittedSms {
        payload: text.into(),
        source_type: AddressType::International,
        udh: None,
        expires_at: START.plus_s(86_400),
        status: SmsStatus::InProgress,
        task: None,
        taken_at: Some(START),
        buffered_at: None,
        final_at: None,
        reason: None,
        parts: Vec::new(),
        purpose: SmsPurpose::Message,
    };
    Sms {
        id: id(number),
        customer: CustomerId::parse("acme").unwrap(),
        device: DeviceKey::from_bytes([7; 16]),
        device_number: 7,
        iccid: Iccid::parse("8988280666000000001").unwrap(),
        source: "1234".into(),
        dest: Some(DEVICE.into()),
        dcs: 0,
        pid: 0,
        submitted_at: START,
        way: SmsWay::ToDevice(Box::new(submitted)),
    }
}
