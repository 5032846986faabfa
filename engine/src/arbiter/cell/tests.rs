//! The effects of a device's cell for an input, in order.

use std::num::NonZeroU16;
use std::sync::Arc;

use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;

use super::{CellEffect, CommitFailure, DeviceCell, StepContext};
use crate::action::{Content, ContentEncoding, Lwm2mRequest, Mode, NewAction};
use crate::action::{Request, UdpRequest};
use crate::arbiter::input::{DeviceCommand, DeviceInput, DeviceReply, PendingCommand};
use crate::arbiter::tests::vocabulary::{peer, profile};
use crate::bootstrap::{BootstrapFault, BootstrapPlan};
use crate::change::Change;
use crate::datagram::{Datagram, Inbound};
use crate::device::Device;
use crate::device::record::{DeviceRecord, RestoredDevice};
use crate::effect::SendOutcome;
use crate::ids::{ActionId, TraceId};
use crate::limits::Limits;
use crate::location::Location;
use crate::moment::{Moment, Timestamp};
use crate::peer::Peer;
use crate::policy::CustomerPolicy;
use crate::profile::Profile;
use crate::rules::{EndpointTrust, NoSecBootstrap, Rules, TransmissionRules};
use crate::supervision::{Supervisor, Unserved};

#[test]
fn a_step_is_committed_before_anything_is_sent() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.receives(&register()), ["count Register", "commit"]);
    assert!(fixture.cell.is_waiting());
    let binding = [
        "rebind 10.0.0.1:5683 to 10.0.0.1:5683",
        "send 2.01 to 10.0.0.1:5683",
        "report",
        "arm 86400 s",
    ];
    assert_eq!(fixture.saves(Ok(())), binding);
    assert!(!fixture.cell.is_waiting());
}

#[test]
fn a_step_that_was_not_saved_sends_nothing_and_the_cell_fails() {
    let mut fixture = Fixture::new();
    fixture.receives(&register());
    let failed = ["end Failed(Unsaved)"];
    assert_eq!(fixture.saves(Err(CommitFailure::Failed)), failed);
}

#[test]
fn a_device_waits_until_its_bootstrap_is_prepared_and_what_begins_it_is_saved_first() {
    let mut fixture = Fixture::new();
    let rules = Rules {
        bootstrap: NoSecBootstrap::Accepted,
        ..Rules::clone(&fixture.policy.rules)
    };
    fixture.policy = Arc::new(CustomerPolicy::of_rules(Arc::new(rules)));
    let id = (MessageId(1), Token::new(&[1]).unwrap());
    let request = Message::request(MessageKind::Confirmable, Code::POST, id.0, id.1)
        .with_uri_path(["bs"])
        .with_uri_query(["ep=meter"]);
    let asked = fixture.receives(&request);
    let expected = [
        "count Bootstrap",
        "prepare bootstrap of 10.0.0.1:5683",
        "report",
    ];
    assert_eq!(asked[..3], expected, "{asked:?}");
    assert!(fixture.cell.is_waiting());
    let plan = BootstrapPlan {
        accounts: vec![Vec::new()],
        instances: Vec::new(),
    };
    assert_eq!(fixture.prepares(Ok(plan)), ["commit"]);
    let begun = fixture.saves(Ok(()));
    let sent = begun.iter().filter(|line| line.starts_with("send"));
    let sent: Vec<_> = sent.collect();
    assert_eq!(
        sent,
        ["send 2.04 to 10.0.0.1:5683", "send 0.04 to 10.0.0.1:5683"]
    );
    assert!(!fixture.cell.is_waiting());
}

#[test]
fn a_step_that_saves_nothing_is_sent_at_once() {
    let mut fixture = Fixture::registered();
    let binding = ["count Ping", "send 0.00 to 10.0.0.1:5683", "report"];
    assert_eq!(fixture.receives(&Message::ping(MessageId(9))), binding);
}

#[test]
fn the_memory_of_a_body_received_in_part_is_announced_when_it_changes() {
    let mut fixture = Fixture::registered();
    let update = fixture.update_in_one_block_of_two();
    let begun = [
        "count BlockPart",
        "note 16 bytes of bodies",
        "send 2.31 to 10.0.0.1:5683",
        "report",
    ];
    assert_eq!(fixture.receives(&update)[..4], begun);
    let dropped = ["note 0 bytes of bodies", "report"];
    assert_eq!(fixture.handle(DeviceInput::DropUnfinished), dropped);
}

#[test]
fn an_idle_device_reports_after_its_step_that_it_could_end() {
    let mut fixture = Fixture::new();
    let binding = [
        "count Ping",
        "send 0.00 to 10.0.0.1:5683",
        "report",
        "end Idle { handled: 1 }",
    ];
    assert_eq!(fixture.receives(&Message::ping(MessageId(9))), binding);
}

#[test]
fn a_caller_is_answered_after_the_commit() {
    let mut fixture = Fixture::new();
    assert_eq!(
        fixture.command(DeviceCommand::Submit(when_active())),
        ["commit"]
    );
    let binding = ["report", "arm 172800 s", "reply Submitted"];
    assert_eq!(fixture.saves(Ok(())), binding);
}

#[test]
fn a_request_that_is_sent_at_once_is_put_once_with_its_attempt() {
    let mut fixture = Fixture::addressed();
    fixture.command(DeviceCommand::Submit(bare()));
    let mut puts = Vec::new();
    for change in &fixture.committed {
        if let Change::PutAction { was, action } = change {
            puts.push((*was, action.attempts_made));
        }
    }
    assert_eq!(puts, [(None, 1)]);
}

#[test]
fn a_caller_gets_the_reason_why_nothing_was_saved() {
    let cases = [
        (CommitFailure::Full, Unserved::Busy),
        (CommitFailure::Conflict, Unserved::Failed),
        (CommitFailure::Failed, Unserved::Failed),
    ];
    for (not_saved, why) in cases {
        let mut fixture = Fixture::new();
        fixture.command(DeviceCommand::Submit(when_active()));
        let reply = [format!("reply {why:?}"), "end Failed(Unsaved)".to_owned()];
        assert_eq!(fixture.saves(Err(not_saved)), reply);
    }
}

#[test]
fn a_removal_is_reported_to_the_arbiter_before_the_caller_is_answered() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.command(DeviceCommand::Retire), ["commit"]);
    let binding = [
        "rebind nowhere to nowhere",
        "report",
        "end Retired",
        "reply Retired",
    ];
    assert_eq!(fixture.saves(Ok(())), binding);
    assert_eq!(fixture.command(DeviceCommand::Inspect), ["reply Unknown"]);
    assert_eq!(fixture.receives(&register()), NOTHING);
}

#[test]
fn removing_a_removed_device_is_answered_unknown() {
    let mut fixture = Fixture::new();
    fixture.command(DeviceCommand::Retire);
    let reply = ["reply Unknown", "end Failed(Unsaved)"];
    assert_eq!(fixture.saves(Err(CommitFailure::Conflict)), reply);
}

#[test]
fn a_device_uses_its_changed_profile() {
    let mut fixture = Fixture::registered();
    assert_eq!(
        fixture.command(DeviceCommand::ReadProfile),
        ["read the profile"]
    );
    assert!(fixture.cell.is_waiting());
    let moved = Profile {
        ip: Some("10.0.0.2".parse().unwrap()),
        ..profile("8931")
    };
    let binding = ["rebind 10.0.0.1:5683 to nowhere", "reply ProfileRead"];
    assert_eq!(fixture.reads(Ok(Some(&moved))), binding);
    assert_eq!(fixture.cell.device().identity().ip(), moved.ip);
}

#[test]
fn a_missing_profile_is_answered_unknown_and_an_unreadable_one_fails_the_cell() {
    let mut fixture = Fixture::registered();
    fixture.command(DeviceCommand::ReadProfile);
    assert_eq!(fixture.reads(Ok(None)), ["reply Unknown"]);
    fixture.command(DeviceCommand::ReadProfile);
    let failed = ["end Failed(Unsaved)", "reply Failed"];
    assert_eq!(fixture.reads(Err(CommitFailure::Failed)), failed);
}

#[test]
fn an_earlier_deadline_replaces_the_armed_one() {
    let mut fixture = Fixture::registered();
    let soon = NewAction {
        expires_in_s: Some(60),
        ..when_active()
    };
    fixture.command(DeviceCommand::Submit(soon));
    let binding = ["report", "disarm 86400 s", "arm 60 s", "reply Submitted"];
    assert_eq!(fixture.saves(Ok(())), binding);
}

#[test]
fn a_device_is_armed_again_after_its_timeout() {
    let mut fixture = Fixture::registered();
    let binding = ["disarm 86400 s", "report", "arm 86400 s"];
    assert_eq!(fixture.is_due(), binding);
}

#[test]
fn the_send_outcome_of_a_bare_datagram_is_a_step_after_which_the_device_is_idle() {
    let mut fixture = Fixture::addressed();
    assert_eq!(fixture.command(DeviceCommand::Submit(bare())), ["commit"]);
    let binding = [
        "send bytes to 10.0.0.1:4445",
        "report",
        "arm 10 s",
        "reply Submitted",
    ];
    assert_eq!(fixture.saves(Ok(())), binding);
    assert!(
        !fixture.cell.is_waiting(),
        "other inputs may come before it"
    );
    assert_eq!(fixture.send_outcome(SendOutcome::Sent), ["commit"]);
    let binding = ["report", "end Idle { handled: 1 }"];
    assert_eq!(fixture.saves(Ok(())), binding);
}

#[test]
fn a_device_uses_the_latest_policy() {
    let mut fixture = Fixture::registered();
    fixture.policy = Arc::new(CustomerPolicy::clone(&fixture.policy));
    fixture.receives(&Message::ping(MessageId(9)));
    assert!(Arc::ptr_eq(fixture.cell.device().policy(), &fixture.policy));
}

#[test]
fn a_restored_device_announces_its_peer_and_its_deadline() {
    let mut fixture = Fixture::registered();
    let mut out = Vec::new();
    fixture.cell.armed_at = None;
    fixture.cell.start(&mut out);
    let binding = ["rebind 10.0.0.1:5683 to 10.0.0.1:5683", "arm 86400 s"];
    assert_eq!(lines(out), binding);
}

// The vocabulary of these tests.

const START: Timestamp = Timestamp::from_ms(1_700_000_000_000);

const NOTHING: [&str; 0] = [];

/// The cell of one device.
struct Fixture {
    cell: DeviceCell<()>,
    policy: Arc<CustomerPolicy>,
    /// The request whose bare datagram was handed to the socket last.
    bare_action: Option<ActionId>,
    /// The changes of the batch that was committed last.
    committed: Vec<Change>,
}

type Out = Vec<CellEffect<()>>;

impl Fixture {
    /// A device that never sent anything.
    fn new() -> Self {
        Self::of(profile("8931"))
    }

    /// The same with an IP address in its profile.
    fn addressed() -> Self {
        Self::of(Profile {
            ip: Some(peer().ip()),
            ..profile("8931")
        })
    }

    /// A registered device.
    fn registered() -> Self {
        let mut fixture = Self::new();
        fixture.receives(&register());
        fixture.saves(Ok(()));
        fixture
    }

    fn of(profile: Profile) -> Self {
        let patience = TransmissionRules {
            ack_timeout_ms: 2_000,
            max_retransmit: 4,
            response_timeout_ms: 60_000,
        };
        let rules = Rules::new(Limits::default(), patience, EndpointTrust::NameSuffices);
        let policy = Arc::new(CustomerPolicy::of_rules(Arc::new(rules)));
        let restored = RestoredDevice {
            profile,
            record: DeviceRecord::default(),
            pending: Vec::new(),
            recent_events: Box::default(),
        };
        let device = Device::restore(&mut Moment::new(START, 1), Arc::clone(&policy), restored);
        let generation = Supervisor::<()>::default().next_generation();
        Self {
            cell: DeviceCell::new(device, generation),
            policy,
            bare_action: None,
            committed: Vec::new(),
        }
    }

    fn receives(&mut self, message: &Message) -> Vec<String> {
        self.handle(DeviceInput::Datagram(Box::new(Inbound::Message(
            Datagram::new(0, peer(), message.clone()),
        ))))
    }

    /// The first block of an update.
    fn update_in_one_block_of_two(&self) -> Message {
        let registration = self.cell.device().snapshot(START).registration;
        let salt = registration.expect("it is registered").salt;
        let location = Location::new(profile("8931").key(), salt).to_string();
        let (id, token) = (MessageId(8), Token::EMPTY);
        let block = Block::new(0, More::Yes, BlockSize::MIN);
        Message::request(MessageKind::Confirmable, Code::POST, id, token)
            .with_uri_path(["rd", &*location])
            .with_block1(block)
            .with_payload("</3/0>,</3303/0>")
    }

    fn is_due(&mut self) -> Vec<String> {
        self.handle(DeviceInput::Timeout)
    }

    fn command(&mut self, command: DeviceCommand) -> Vec<String> {
        let pending = PendingCommand { command, reply: () };
        self.handle(DeviceInput::Command(Box::new(pending)))
    }

    fn handle(&mut self, input: DeviceInput<()>) -> Vec<String> {
        self.step(|cell, context, out| cell.handle(context, input, out))
    }

    fn send_outcome(&mut self, outcome: SendOutcome) -> Vec<String> {
        let action = self.bare_action.expect("a bare datagram was sent");
        self.step(|cell, context, out| cell.handle_send_outcome(context, (action, outcome), out))
    }

    fn prepares(&mut self, prepared: Result<BootstrapPlan, BootstrapFault>) -> Vec<String> {
        self.step(|cell, context, out| cell.handle_bootstrap(context, prepared, out))
    }

    fn saves(&mut self, receipt: Result<(), CommitFailure>) -> Vec<String> {
        self.step(|cell, _, out| cell.handle_receipt(receipt, out))
    }

    fn reads(&mut self, profile: Result<Option<&Profile>, CommitFailure>) -> Vec<String> {
        self.step(|cell, _, out| cell.handle_profile(profile, out))
    }

    fn step(
        &mut self,
        input: impl FnOnce(&mut DeviceCell<()>, &mut StepContext<'_>, &mut Out),
    ) -> Vec<String> {
        let mut out = Out::new();
        let mut context = StepContext {
            moment: Moment::new(START, 1),
            policy: &self.policy,
            epoch: 1,
        };
        input(&mut self.cell, &mut context, &mut out);
        for effect in &out {
            if let CellEffect::SendUdp(_, _, action) = effect {
                self.bare_action = Some(*action);
            }
            if let CellEffect::Commit(batch, _) = effect {
                self.committed.clone_from(&batch.changes);
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
        CellEffect::CountUplink(kind, _) => format!("count {kind:?}"),
        CellEffect::ReportImpostor(number, peer) => format!("report {number} from {peer}"),
        CellEffect::Commit(..) => "commit".to_owned(),
        CellEffect::ReadProfile => "read the profile".to_owned(),
        CellEffect::NoteTransferred(_, place, bytes) => format!("place {place} has {bytes} bytes"),
        CellEffect::ReadImage(range) => format!("read {} bytes of an image", range.bytes),
        CellEffect::PrepareBootstrap(order) => format!("prepare bootstrap of {}", order.peer),
        CellEffect::Rebind(from, to) => format!("rebind {} to {}", place(from), place(to)),
        CellEffect::Send(to, datagram) => {
            let message = Message::decode(&datagram).unwrap();
            format!("send {} to {to}", message.code)
        }
        CellEffect::SendUdp(to, ..) => format!("send bytes to {to}"),
        CellEffect::NoteUnfinished(bytes) => format!("note {bytes} bytes of bodies"),
        CellEffect::Report(_) => "report".to_owned(),
        CellEffect::Reply((), answer) => format!("reply {}", reply(answer)),
        CellEffect::Arm(at) => format!("arm {} s", after_s(at)),
        CellEffect::Disarm(at) => format!("disarm {} s", after_s(at)),
        CellEffect::End(ending) => format!("end {ending:?}"),
    }
}

fn reply(answer: Result<DeviceReply, Unserved>) -> String {
    let answered = match answer {
        Err(why) => return format!("{why:?}"),
        Ok(DeviceReply::Submitted(_)) => "Submitted",
        Ok(DeviceReply::Cancelled(_)) => "Cancelled",
        Ok(DeviceReply::CancelledAll(_)) => "CancelledAll",
        Ok(DeviceReply::Retired) => "Retired",
        Ok(DeviceReply::Inspected(_)) => "Inspected",
        Ok(DeviceReply::ProfileRead) => "ProfileRead",
        Ok(DeviceReply::UpdateTaken) => "UpdateTaken",
    };
    answered.to_owned()
}

fn register() -> Message {
    Message::request(
        MessageKind::Confirmable,
        Code::POST,
        MessageId(7),
        Token::EMPTY,
    )
    .with_uri_path(["rd"])
    .with_uri_query(["ep=meter", "lwm2m=1.1", "lt=86400"])
    .with_payload("</3/0>")
}

/// A request that waits for an uplink.
fn when_active() -> NewAction {
    let read = Request::Lwm2m(Lwm2mRequest::Read("/3/0/9".parse().unwrap()));
    action(read, Mode::SendWhenActive)
}

/// A bare datagram to be sent now.
fn bare() -> NewAction {
    let request = UdpRequest {
        content: Content::parse(ContentEncoding::String, "on").unwrap(),
        port: NonZeroU16::new(4_445).unwrap(),
    };
    action(Request::Udp(request), Mode::SendNow)
}

fn action(request: Request, mode: Mode) -> NewAction {
    NewAction {
        request,
        mode,
        attempts_permitted: 1,
        expires_in_s: None,
        not_before: None,
        wake_up: None,
        trace: TraceId::from_bytes([9; 16]),
        idempotent_call: None,
    }
}
