//! What the cell of a device wants done about an input, in the order of the law.

use std::num::NonZeroU16;
use std::sync::Arc;

use protocol::coap::code::Code;
use protocol::coap::message::{Kind, Message, MessageId};
use protocol::coap::token::Token;

use super::{CellEffect, DeviceCell, NotSaved, StepContext};
use crate::action::{Content, ContentForm, Lwm2mRequest, Mode, NewAction, Operation};
use crate::action::{Request, UdpRequest};
use crate::arbiter::input::{Answer, Asked, Input, Question};
use crate::arbiter::tests::vocabulary::{peer, profile};
use crate::datagram::{Arrival, Datagram};
use crate::device::Device;
use crate::device::record::{DeviceRecord, Restored};
use crate::effect::Departure;
use crate::ids::{ActionId, TraceId};
use crate::limits::Limits;
use crate::moment::{Moment, Timestamp};
use crate::peer::Peer;
use crate::profile::Profile;
use crate::rules::{NameTrust, Patience, Rules};
use crate::supervision::{Supervisor, Unserved};
use crate::terms::Terms;

#[test]
fn what_a_step_saves_is_committed_before_anything_is_said() {
    let mut scene = Scene::new();
    assert_eq!(scene.hears(&register()), ["heard Register", "commit"]);
    assert!(scene.cell.is_waiting());
    let said = [
        "rebind 10.0.0.1:5683 to 10.0.0.1:5683",
        "send 2.01 to 10.0.0.1:5683",
        "report",
        "arm 86400 s",
    ];
    assert_eq!(scene.saves(Ok(())), said);
    assert!(!scene.cell.is_waiting());
}

#[test]
fn a_step_that_was_not_saved_is_not_said_and_the_cell_fails() {
    let mut scene = Scene::new();
    scene.hears(&register());
    let failed = ["end Failed(Unsaved)"];
    assert_eq!(scene.saves(Err(NotSaved::Failed)), failed);
}

#[test]
fn a_step_that_saves_nothing_is_said_at_once() {
    let mut scene = Scene::registered();
    let said = ["heard Ping", "send 0.00 to 10.0.0.1:5683", "report"];
    assert_eq!(scene.hears(&Message::ping(MessageId(9))), said);
}

#[test]
fn a_device_that_has_nothing_to_do_could_end_when_its_step_is_done() {
    let mut scene = Scene::new();
    let said = [
        "heard Ping",
        "send 0.00 to 10.0.0.1:5683",
        "report",
        "end Idle { handled: 1 }",
    ];
    assert_eq!(scene.hears(&Message::ping(MessageId(9))), said);
}

#[test]
fn a_caller_is_answered_when_what_it_was_promised_is_durable() {
    let mut scene = Scene::new();
    assert_eq!(scene.asks(Question::Submit(when_active())), ["commit"]);
    let said = ["report", "arm 172800 s", "reply Submitted"];
    assert_eq!(scene.saves(Ok(())), said);
}

#[test]
fn a_caller_is_told_why_nothing_was_saved() {
    let cases = [
        (NotSaved::Full, Unserved::Busy),
        (NotSaved::Conflict, Unserved::Failed),
        (NotSaved::Failed, Unserved::Failed),
    ];
    for (not_saved, why) in cases {
        let mut scene = Scene::new();
        scene.asks(Question::Submit(when_active()));
        let told = [format!("reply {why:?}"), "end Failed(Unsaved)".to_owned()];
        assert_eq!(scene.saves(Err(not_saved)), told);
    }
}

#[test]
fn the_arbiter_hears_that_a_device_was_removed_before_whoever_asked_does() {
    let mut scene = Scene::new();
    assert_eq!(scene.asks(Question::Retire), ["commit"]);
    let said = [
        "rebind nowhere to nowhere",
        "report",
        "end Retired",
        "reply Retired",
    ];
    assert_eq!(scene.saves(Ok(())), said);
    assert_eq!(scene.asks(Question::Inspect), ["reply Unknown"]);
    assert_eq!(scene.hears(&register()), NOTHING);
}

#[test]
fn a_device_that_was_removed_before_is_unknown_to_whoever_removes_it() {
    let mut scene = Scene::new();
    scene.asks(Question::Retire);
    let told = ["reply Unknown", "end Failed(Unsaved)"];
    assert_eq!(scene.saves(Err(NotSaved::Conflict)), told);
}

#[test]
fn a_device_goes_by_what_its_customer_made_of_it() {
    let mut scene = Scene::registered();
    assert_eq!(scene.asks(Question::ReadProfile), ["read the profile"]);
    assert!(scene.cell.is_waiting());
    let moved = Profile {
        ip: Some("10.0.0.2".parse().unwrap()),
        ..profile("8931")
    };
    let said = ["rebind 10.0.0.1:5683 to nowhere", "reply ProfileRead"];
    assert_eq!(scene.reads(Ok(Some(&moved))), said);
    assert_eq!(scene.cell.device().identity().ip(), moved.ip);
}

#[test]
fn a_device_whose_profile_is_gone_is_unknown_and_one_that_cannot_be_read_fails() {
    let mut scene = Scene::registered();
    scene.asks(Question::ReadProfile);
    assert_eq!(scene.reads(Ok(None)), ["reply Unknown"]);
    scene.asks(Question::ReadProfile);
    let failed = ["end Failed(Unsaved)", "reply Failed"];
    assert_eq!(scene.reads(Err(NotSaved::Failed)), failed);
}

#[test]
fn an_earlier_deadline_takes_the_place_of_the_one_before() {
    let mut scene = Scene::registered();
    let soon = NewAction {
        expires_in_s: Some(60),
        ..when_active()
    };
    scene.asks(Question::Submit(soon));
    let said = ["report", "disarm 86400 s", "arm 60 s", "reply Submitted"];
    assert_eq!(scene.saves(Ok(())), said);
}

#[test]
fn a_device_that_was_due_says_anew_when_it_is() {
    let mut scene = Scene::registered();
    let said = ["disarm 86400 s", "report", "arm 86400 s"];
    assert_eq!(scene.is_due(), said);
}

#[test]
fn what_became_of_a_bare_datagram_is_a_step_of_its_own_after_which_the_device_is_idle() {
    let mut scene = Scene::addressed();
    assert_eq!(scene.asks(Question::Submit(bare())), ["commit"]);
    let said = [
        "send bytes to 10.0.0.1:4445",
        "report",
        "arm 10 s",
        "reply Submitted",
    ];
    assert_eq!(scene.saves(Ok(())), said);
    assert!(!scene.cell.is_waiting(), "other inputs may come before it");
    assert_eq!(scene.departs(Departure::Taken), ["commit"]);
    let said = ["report", "end Idle { handled: 1 }"];
    assert_eq!(scene.saves(Ok(())), said);
}

#[test]
fn a_device_goes_by_the_terms_its_customer_chose_last() {
    let mut scene = Scene::registered();
    scene.terms = Arc::new(Terms::clone(&scene.terms));
    scene.hears(&Message::ping(MessageId(9)));
    assert!(Arc::ptr_eq(scene.cell.device().terms(), &scene.terms));
}

#[test]
fn a_restored_device_says_where_it_is_and_when_it_is_due() {
    let mut scene = Scene::registered();
    let mut out = Vec::new();
    scene.cell.armed_at = None;
    scene.cell.start(&mut out);
    let said = ["rebind 10.0.0.1:5683 to 10.0.0.1:5683", "arm 86400 s"];
    assert_eq!(lines(out), said);
}

// The vocabulary of these tests.

const START: Timestamp = Timestamp::from_ms(1_700_000_000_000);

const NOTHING: [&str; 0] = [];

/// The cell of one device.
struct Scene {
    cell: DeviceCell<()>,
    terms: Arc<Terms>,
    /// The request whose bare datagram was to leave last.
    departing: Option<ActionId>,
}

type Out = Vec<CellEffect<()>>;

impl Scene {
    /// A device that was never heard.
    fn new() -> Self {
        Self::of(profile("8931"))
    }

    /// The same with an address of its own.
    fn addressed() -> Self {
        Self::of(Profile {
            ip: Some(peer().ip()),
            ..profile("8931")
        })
    }

    /// A device that registered.
    fn registered() -> Self {
        let mut scene = Self::new();
        scene.hears(&register());
        scene.saves(Ok(()));
        scene
    }

    fn of(profile: Profile) -> Self {
        let patience = Patience {
            ack_timeout_ms: 2_000,
            max_retransmit: 4,
            response_timeout_ms: 60_000,
        };
        let rules = Rules::new(Limits::default(), patience, NameTrust::NameSuffices);
        let terms = Arc::new(Terms::of_rules(Arc::new(rules)));
        let restored = Restored {
            profile,
            record: DeviceRecord::default(),
            pending: Vec::new(),
        };
        let device = Device::restore(&mut Moment::new(START, 1), Arc::clone(&terms), restored);
        let generation = Supervisor::<()>::default().next_generation();
        Self {
            cell: DeviceCell::new(device, generation),
            terms,
            departing: None,
        }
    }

    fn hears(&mut self, message: &Message) -> Vec<String> {
        self.handle(Input::Datagram(Box::new(Arrival::Message(Datagram {
            number: 0,
            peer: peer(),
            message: message.clone(),
        }))))
    }

    fn is_due(&mut self) -> Vec<String> {
        self.handle(Input::Timeout)
    }

    fn asks(&mut self, question: Question) -> Vec<String> {
        let asked = Asked {
            question,
            reply: (),
        };
        self.handle(Input::Asked(Box::new(asked)))
    }

    fn handle(&mut self, input: Input<()>) -> Vec<String> {
        self.step(|cell, context, out| cell.handle(context, input, out))
    }

    fn departs(&mut self, departure: Departure) -> Vec<String> {
        let action = self.departing.expect("something was to leave");
        self.step(|cell, context, out| cell.handle_departure(context, (action, departure), out))
    }

    fn saves(&mut self, receipt: Result<(), NotSaved>) -> Vec<String> {
        self.step(|cell, _, out| cell.handle_receipt(receipt, out))
    }

    fn reads(&mut self, profile: Result<Option<&Profile>, NotSaved>) -> Vec<String> {
        self.step(|cell, _, out| cell.handle_profile(profile, out))
    }

    fn step(
        &mut self,
        input: impl FnOnce(&mut DeviceCell<()>, &mut StepContext<'_>, &mut Out),
    ) -> Vec<String> {
        let mut out = Out::new();
        let mut context = StepContext {
            moment: Moment::new(START, 1),
            terms: &self.terms,
            epoch: 1,
        };
        input(&mut self.cell, &mut context, &mut out);
        for effect in &out {
            if let CellEffect::SendBare(_, _, action) = effect {
                self.departing = Some(*action);
            }
        }
        lines(out)
    }
}

fn lines(out: Out) -> Vec<String> {
    out.into_iter().map(line).collect()
}

fn line(effect: CellEffect<()>) -> String {
    let place = |peer: Option<Peer>| peer.map_or("nowhere".to_owned(), |peer| peer.to_string());
    let after_s = |at: Timestamp| at.since_ms(START) / 1_000;
    match effect {
        CellEffect::Heard(heard, _) => format!("heard {heard:?}"),
        CellEffect::Commit(..) => "commit".to_owned(),
        CellEffect::ReadProfile => "read the profile".to_owned(),
        CellEffect::Rebind(from, to) => format!("rebind {} to {}", place(from), place(to)),
        CellEffect::Send(to, datagram) => {
            let message = Message::decode(&datagram).unwrap();
            format!("send {} to {to}", message.code)
        }
        CellEffect::SendBare(to, ..) => format!("send bytes to {to}"),
        CellEffect::Report(_) => "report".to_owned(),
        CellEffect::Reply((), answer) => format!("reply {}", told(answer)),
        CellEffect::Arm(at) => format!("arm {} s", after_s(at)),
        CellEffect::Disarm(at) => format!("disarm {} s", after_s(at)),
        CellEffect::End(ending) => format!("end {ending:?}"),
    }
}

fn told(answer: Result<Answer, Unserved>) -> String {
    let answered = match answer {
        Err(why) => return format!("{why:?}"),
        Ok(Answer::Submitted(_)) => "Submitted",
        Ok(Answer::Cancelled(_)) => "Cancelled",
        Ok(Answer::CancelledAll(_)) => "CancelledAll",
        Ok(Answer::Retired) => "Retired",
        Ok(Answer::Inspected(_)) => "Inspected",
        Ok(Answer::ProfileRead) => "ProfileRead",
    };
    answered.to_owned()
}

fn register() -> Message {
    Message::request(Kind::Confirmable, Code::POST, MessageId(7), Token::EMPTY)
        .with_uri_path(["rd"])
        .with_uri_query(["ep=meter", "lwm2m=1.1", "lt=86400"])
        .with_payload("</3/0>")
}

/// A request that waits for the device to be heard.
fn when_active() -> NewAction {
    let read = Request::Lwm2m(Lwm2mRequest {
        operation: Operation::Read,
        path: "/3/0/9".parse().unwrap(),
        data: None,
    });
    asking(read, Mode::SendWhenActive)
}

/// A bare datagram to be sent now.
fn bare() -> NewAction {
    let request = UdpRequest {
        content: Content::parse(ContentForm::String, "on").unwrap(),
        port: NonZeroU16::new(4_445).unwrap(),
    };
    asking(Request::Udp(request), Mode::SendNow)
}

fn asking(request: Request, mode: Mode) -> NewAction {
    NewAction {
        request,
        mode,
        attempts_permitted: 1,
        expires_in_s: None,
        trace: TraceId::from_bytes([9; 16]),
        once: None,
    }
}
