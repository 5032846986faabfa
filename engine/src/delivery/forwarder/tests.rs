//! In which order are the effects of a step performed, and which are dropped if it was not saved?

use std::slice;
use std::sync::Arc;

use super::{Forwarder, ForwarderEffect, ForwarderInput};
use crate::change::{Batch, Change};
use crate::delivery::backlog::{DeadLetter, DestinationProgress, QueuedEvent, Sequence};
use crate::delivery::command::{DestinationCommand, DestinationReply};
use crate::delivery::destination::{
    Destination, DestinationAmendment, DestinationState, EventTypes, JsonPayload, Replay, Target,
    Webhook,
};
use crate::delivery::forwarders::ForwarderExit;
use crate::delivery::forwarding::{DeliveryOutcome, DeliveryRules, ForwarderTask, Forwarding};
use crate::event::EventType;
use crate::ids::{CustomerId, DestinationId, DeviceId, DeviceKey, EventId};
use crate::limits::STORE_RETRY_MS;
use crate::moment::{Moment, Timestamp};
use crate::supervision::ActorFailure;
use crate::supervision::Unserved;

#[test]
fn a_step_is_saved_then_the_target_changes_then_the_caller_gets_its_reply() {
    let mut fixture = Fixture::started();
    let [ForwarderEffect::Commit(_)] = &*fixture.command(rename()) else {
        panic!("nothing else happens before it is saved");
    };
    let renamed = fixture.destination();
    assert_eq!(&*renamed.name, "theirs");
    assert_eq!(
        fixture.receipt(Ok(())),
        [
            ForwarderEffect::Retarget(renamed.clone()),
            reply(DestinationReply::Destination(renamed)),
        ]
    );
}

#[test]
fn a_step_that_was_not_saved_only_refuses_its_caller() {
    for refusal in [Unserved::Busy, Unserved::Failed] {
        let mut fixture = Fixture::started();
        fixture.command(rename());
        assert_eq!(
            fixture.receipt(Err(refusal)),
            [
                ForwarderEffect::Answer("caller", Err(refusal)),
                ForwarderEffect::End(ForwarderExit::Failed(ActorFailure::Unsaved)),
            ]
        );
    }
}

#[test]
fn a_step_that_saves_nothing_is_performed_at_once() {
    let mut fixture = Fixture::started();
    let restarted = DestinationReply::Destination(fixture.destination());
    assert_eq!(
        fixture.command(DestinationCommand::Restart),
        [reply(restarted)]
    );
    let tests = fixture.command(DestinationCommand::Test);
    assert!(matches!(
        &*tests,
        [ForwarderEffect::Test {
            reply: "caller",
            ..
        }]
    ));
}

#[test]
fn a_removed_destination_ends_its_forwarder_once_the_removal_is_durable() {
    let mut fixture = Fixture::started();
    let destination = fixture.destination();
    let remove = Change::RemoveDestination {
        customer: destination.customer.clone(),
        destination: destination.id,
    };
    let batch = Batch {
        changes: vec![remove],
        ..Batch::default()
    };
    assert_eq!(
        fixture.command(DestinationCommand::Remove),
        [ForwarderEffect::Commit(batch)]
    );
    let end = ForwarderEffect::End(ForwarderExit::Removed);
    let removed = reply(DestinationReply::Removed);
    assert_eq!(fixture.receipt(Ok(())), [removed, end.clone()]);

    let mut forgotten = Fixture::started();
    assert_eq!(forgotten.take(ForwarderInput::Stop), [end]);
}

#[test]
fn a_task_whose_read_failed_begins_again_later_and_no_other_task_does() {
    let mut fixture = Fixture::started();
    let queued = queued_event();
    let read = fixture.take(ForwarderInput::PartitionsReady(vec![queued.partition()]));
    let [ForwarderEffect::Begin(read @ ForwarderTask::Read { partition, .. })] = &*read else {
        panic!("{read:?}");
    };
    let failed = ForwarderInput::ReadFailed(read.clone());
    assert_eq!(fixture.take(failed), []);
    assert_eq!(fixture.forwarder.next_timeout(), Some(at(STORE_RETRY_MS)));
    assert_eq!(fixture.pass_to(STORE_RETRY_MS - 1), []);
    assert_eq!(
        fixture.pass_to(STORE_RETRY_MS),
        [ForwarderEffect::Begin(read.clone())]
    );

    let deliver = ForwarderEffect::Begin(ForwarderTask::Deliver(vec![queued]));
    let delivers = fixture.take(ForwarderInput::EventsRead(*partition, vec![queued]));
    assert_eq!(delivers, slice::from_ref(&deliver));
    assert_eq!(
        fixture.take(ForwarderInput::ReadFailed(ForwarderTask::Deliver(vec![
            queued
        ]))),
        []
    );
    assert_eq!(fixture.forwarder.forwarding().in_flight(), 1);
    // The cursor of the partition is saved at this time, too.
    let saved = fixture.pass_to(2 * STORE_RETRY_MS);
    assert!(matches!(&*saved, [ForwarderEffect::Commit(_)]));
    assert_eq!(fixture.receipt(Ok(())), [deliver]);
}

#[test]
fn an_event_that_was_not_read_waits_behind_an_older_replayed_one() {
    let mut fixture = Fixture::started();
    let (older, newer) = (
        QueuedEvent {
            sequence: Sequence(2),
            ..queued_event()
        },
        queued_event(),
    );
    fixture.take(ForwarderInput::PartitionsReady(vec![newer.partition()]));
    fixture.take(ForwarderInput::EventsRead(newer.partition(), vec![newer]));
    let failed = ForwarderTask::Deliver(vec![newer]);
    fixture.take(ForwarderInput::ReadFailed(failed));
    fixture.command(DestinationCommand::Replay);
    fixture.receipt(Ok(()));
    let dead_letter = DeadLetter {
        queued: older,
        tries: 5,
        at: at(0),
        why: "answered 500".into(),
    };
    fixture.take(ForwarderInput::DeadLettersRead(vec![dead_letter]));
    assert_eq!(fixture.receipt(Ok(())), [], "one of a device is under way");
    let first = ForwarderEffect::Begin(ForwarderTask::Deliver(vec![older]));
    assert_eq!(fixture.pass_to(STORE_RETRY_MS), [first]);
}

#[test]
fn a_state_is_shown_to_the_operator_once_and_when_it_is_durable() {
    let mut fixture = Fixture::started();
    let queued = queued_event();
    fixture.take(ForwarderInput::PartitionsReady(vec![queued.partition()]));
    fixture.take(ForwarderInput::EventsRead(queued.partition(), vec![queued]));
    let saved = fixture.take(ForwarderInput::Delivered(
        queued.sequence,
        DeliveryOutcome::Delivered,
    ));
    assert!(matches!(&*saved, [ForwarderEffect::Commit(_)]));
    let shown = ForwarderEffect::ShowState {
        before: Some(DestinationState::RolledOut),
        state: DestinationState::Active,
    };
    assert_eq!(fixture.receipt(Ok(())), [shown]);
    assert_eq!(fixture.take(ForwarderInput::Timeout), []);
}

#[test]
fn the_next_event_of_a_device_is_delivered_once_the_previous_result_is_durable() {
    let mut fixture = Fixture::started();
    let first = queued_event();
    let next = QueuedEvent {
        sequence: Sequence(4),
        ..first
    };
    fixture.take(ForwarderInput::PartitionsReady(vec![first.partition()]));
    fixture.take(ForwarderInput::EventsRead(
        first.partition(),
        vec![first, next],
    ));
    let saved = fixture.take(ForwarderInput::Delivered(
        first.sequence,
        DeliveryOutcome::Delivered,
    ));
    assert!(matches!(&*saved, [ForwarderEffect::Commit(_)]));
    let delivers = ForwarderEffect::Begin(ForwarderTask::Deliver(vec![next]));
    assert!(fixture.receipt(Ok(())).contains(&delivers));
}

// The vocabulary of these tests.

type Effect = ForwarderEffect<&'static str>;

struct Fixture {
    forwarder: Forwarder<&'static str>,
    now_ms: i64,
}

impl Fixture {
    fn started() -> Self {
        let rules = DeliveryRules {
            retry_delays_ms: [1_000].into(),
            sms_retry_delays_ms: [1_000].into(),
            parallel_max: 8,
            backlog_max: 100,
        };
        let destination = destination();
        let progress = DestinationProgress::default();
        let forwarding = Forwarding::restore(Arc::new(rules), destination, progress, Vec::new());
        let mut fixture = Self {
            forwarder: Forwarder::new(forwarding),
            now_ms: 0,
        };
        let shown = ForwarderEffect::ShowState {
            before: None,
            state: DestinationState::RolledOut,
        };
        assert_eq!(fixture.take(ForwarderInput::Timeout), [shown]);
        fixture
    }

    fn take(&mut self, input: ForwarderInput<&'static str>) -> Vec<Effect> {
        let mut out = Vec::new();
        let mut m = Moment::new(at(self.now_ms), 7);
        self.forwarder.handle(&mut m, input, &mut out);
        out
    }

    fn command(&mut self, command: DestinationCommand) -> Vec<Effect> {
        self.take(ForwarderInput::Command(command, "caller"))
    }

    fn pass_to(&mut self, ms: i64) -> Vec<Effect> {
        self.now_ms = ms;
        self.take(ForwarderInput::Timeout)
    }

    fn receipt(&mut self, receipt: Result<(), Unserved>) -> Vec<Effect> {
        let mut out = Vec::new();
        self.forwarder.handle_receipt(receipt, &mut out);
        out
    }

    fn destination(&self) -> Box<Destination> {
        Box::new(self.forwarder.forwarding().destination().clone())
    }
}

fn reply(answer: DestinationReply) -> Effect {
    ForwarderEffect::Answer("caller", Ok(answer))
}

fn rename() -> DestinationCommand {
    DestinationCommand::Amend(Box::new(DestinationAmendment {
        name: Some("theirs".into()),
        ..DestinationAmendment::default()
    }))
}

fn queued_event() -> QueuedEvent {
    let device = DeviceId::parse("meter").unwrap();
    QueuedEvent {
        sequence: Sequence(3),
        device: DeviceKey::of(&acme(), &device),
        event: EventId::from_bytes([9; 16]),
        event_type: EventType::TelemetryData,
        lifecycle: None,
    }
}

fn acme() -> CustomerId {
    CustomerId::parse("acme").unwrap()
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_ms(ms)
}

fn destination() -> Destination {
    Destination {
        id: DestinationId::from_bytes([5; 16]),
        customer: acme(),
        name: "ours".into(),
        target: Target::Webhook(Webhook {
            url: "https://example.com/".into(),
            headers: Box::default(),
            secret: None,
            json: JsonPayload::AsText,
            batching: None,
        }),
        event_types: EventTypes::usual(),
        state: DestinationState::RolledOut,
        failure: None,
        replay: Replay::None,
        created_at: at(0),
        updated_at: at(0),
    }
}
