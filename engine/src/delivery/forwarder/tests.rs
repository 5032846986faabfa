//! What is done of a step, in which order, and what is left undone if it was not saved?

use std::slice;
use std::sync::Arc;

use super::{Forwarder, ForwarderEffect, Input};
use crate::change::{Batch, Change};
use crate::delivery::destination::{
    Amended, Destination, DestinationState, EventTypes, JsonPayload, Replay, Target, Webhook,
};
use crate::delivery::forwarders::ForwarderEnd;
use crate::delivery::forwarding::{Delivered, DeliveryRules, Errand, Forwarding};
use crate::delivery::letter::{DeadLetter, Sequence, Standing, Waiting};
use crate::delivery::question::{Answer, Question};
use crate::event::EventType;
use crate::ids::{CustomerId, DestinationId, DeviceId, DeviceKey, EventId};
use crate::limits::STORE_RETRY_MS;
use crate::moment::{Moment, Timestamp};
use crate::supervision::Failure;
use crate::supervision::Unserved;

#[test]
fn a_step_is_saved_first_then_the_target_changes_and_then_the_caller_hears_of_it() {
    let mut scene = Scene::started();
    let [ForwarderEffect::Commit(_)] = &*scene.ask(rename()) else {
        panic!("nothing else happens before it is saved");
    };
    let renamed = scene.destination();
    assert_eq!(&*renamed.name, "theirs");
    assert_eq!(
        scene.receipt(Ok(())),
        [
            ForwarderEffect::Retarget(renamed.clone()),
            answered(Answer::Destination(renamed)),
        ]
    );
}

#[test]
fn of_a_step_that_was_not_saved_nothing_is_done_but_that_its_caller_is_refused() {
    for refusal in [Unserved::Busy, Unserved::Failed] {
        let mut scene = Scene::started();
        scene.ask(rename());
        assert_eq!(
            scene.receipt(Err(refusal)),
            [
                ForwarderEffect::Answer("caller", Err(refusal)),
                ForwarderEffect::End(ForwarderEnd::Failed(Failure::Unsaved)),
            ]
        );
    }
}

#[test]
fn a_step_that_saves_nothing_is_done_at_once() {
    let mut scene = Scene::started();
    let restarted = Answer::Destination(scene.destination());
    assert_eq!(scene.ask(Question::Restart), [answered(restarted)]);
    let tests = scene.ask(Question::Test);
    assert!(matches!(
        &*tests,
        [ForwarderEffect::Test {
            reply: "caller",
            ..
        }]
    ));
}

#[test]
fn a_destination_that_is_removed_ends_its_forwarder_once_that_is_durable() {
    let mut scene = Scene::started();
    let destination = scene.destination();
    let remove = Change::RemoveDestination {
        customer: destination.customer.clone(),
        destination: destination.id,
    };
    let batch = Batch {
        changes: vec![remove],
        ..Batch::default()
    };
    assert_eq!(
        scene.ask(Question::Remove),
        [ForwarderEffect::Commit(batch)]
    );
    let end = ForwarderEffect::End(ForwarderEnd::Removed);
    let removed = answered(Answer::Removed);
    assert_eq!(scene.receipt(Ok(())), [removed, end.clone()]);

    let mut forgotten = Scene::started();
    assert_eq!(forgotten.take(Input::Forgotten), [end]);
}

#[test]
fn what_the_store_did_not_answer_is_asked_again_later_and_nothing_beside_it() {
    let mut scene = Scene::started();
    let waiting = waiting();
    let read = scene.take(Input::News(vec![waiting.shard()]));
    let [ForwarderEffect::Begin(read @ Errand::Read { shard, .. })] = *read else {
        panic!("{read:?}");
    };
    assert_eq!(scene.take(Input::Unread(read)), []);
    assert_eq!(scene.forwarder.next_timeout(), Some(at(STORE_RETRY_MS)));
    assert_eq!(scene.pass_to(STORE_RETRY_MS - 1), []);
    assert_eq!(
        scene.pass_to(STORE_RETRY_MS),
        [ForwarderEffect::Begin(read)]
    );

    let deliver = ForwarderEffect::Begin(Errand::Deliver(waiting));
    let delivers = scene.take(Input::Rows(shard, vec![waiting]));
    assert_eq!(delivers, slice::from_ref(&deliver));
    assert_eq!(scene.take(Input::Unread(Errand::Deliver(waiting))), []);
    assert_eq!(scene.forwarder.forwarding().in_flight(), 1);
    // That the shard was read is saved by then.
    let saved = scene.pass_to(2 * STORE_RETRY_MS);
    assert!(matches!(&*saved, [ForwarderEffect::Commit(_)]));
    assert_eq!(scene.receipt(Ok(())), [deliver]);
}

#[test]
fn an_event_that_was_not_read_waits_behind_an_older_one_that_is_delivered_again() {
    let mut scene = Scene::started();
    let (older, newer) = (
        Waiting {
            sequence: Sequence(2),
            ..waiting()
        },
        waiting(),
    );
    scene.take(Input::News(vec![newer.shard()]));
    scene.take(Input::Rows(newer.shard(), vec![newer]));
    scene.take(Input::Unread(Errand::Deliver(newer)));
    scene.ask(Question::Replay);
    scene.receipt(Ok(()));
    let letter = DeadLetter {
        waiting: older,
        tries: 5,
        at: at(0),
        why: "answered 500".into(),
    };
    scene.take(Input::Dead(vec![letter]));
    assert_eq!(scene.receipt(Ok(())), [], "one of a device is under way");
    let first = ForwarderEffect::Begin(Errand::Deliver(older));
    assert_eq!(scene.pass_to(STORE_RETRY_MS), [first]);
}

#[test]
fn the_operator_is_told_of_a_state_once_and_when_it_is_durable() {
    let mut scene = Scene::started();
    let waiting = waiting();
    scene.take(Input::News(vec![waiting.shard()]));
    scene.take(Input::Rows(waiting.shard(), vec![waiting]));
    let saved = scene.take(Input::Delivered(waiting.sequence, Delivered::Taken));
    assert!(matches!(&*saved, [ForwarderEffect::Commit(_)]));
    let shown = ForwarderEffect::ShowState {
        before: Some(DestinationState::RolledOut),
        state: DestinationState::Active,
    };
    assert_eq!(scene.receipt(Ok(())), [shown]);
    assert_eq!(scene.take(Input::Due), []);
}

#[test]
fn the_next_event_of_a_device_is_delivered_once_it_is_durable_that_the_one_before_was() {
    let mut scene = Scene::started();
    let first = waiting();
    let next = Waiting {
        sequence: Sequence(4),
        ..first
    };
    scene.take(Input::News(vec![first.shard()]));
    scene.take(Input::Rows(first.shard(), vec![first, next]));
    let saved = scene.take(Input::Delivered(first.sequence, Delivered::Taken));
    assert!(matches!(&*saved, [ForwarderEffect::Commit(_)]));
    let delivers = ForwarderEffect::Begin(Errand::Deliver(next));
    assert!(scene.receipt(Ok(())).contains(&delivers));
}

// The vocabulary of these tests.

type Effect = ForwarderEffect<&'static str>;

struct Scene {
    forwarder: Forwarder<&'static str>,
    now_ms: i64,
}

impl Scene {
    fn started() -> Self {
        let rules = DeliveryRules {
            waits_ms: [1_000].into(),
            parallel_max: 8,
            backlog_max: 100,
        };
        let destination = destination();
        let standing = Standing::default();
        let forwarding = Forwarding::restore(Arc::new(rules), destination, standing, Vec::new());
        let mut scene = Self {
            forwarder: Forwarder::new(forwarding),
            now_ms: 0,
        };
        let shown = ForwarderEffect::ShowState {
            before: None,
            state: DestinationState::RolledOut,
        };
        assert_eq!(scene.take(Input::Due), [shown]);
        scene
    }

    fn take(&mut self, input: Input<&'static str>) -> Vec<Effect> {
        let mut out = Vec::new();
        let mut m = Moment::new(at(self.now_ms), 7);
        self.forwarder.handle(&mut m, input, &mut out);
        out
    }

    fn ask(&mut self, question: Question) -> Vec<Effect> {
        self.take(Input::Asked(question, "caller"))
    }

    fn pass_to(&mut self, ms: i64) -> Vec<Effect> {
        self.now_ms = ms;
        self.take(Input::Due)
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

fn answered(answer: Answer) -> Effect {
    ForwarderEffect::Answer("caller", Ok(answer))
}

fn rename() -> Question {
    Question::Amend(Box::new(Amended {
        name: Some("theirs".into()),
        ..Amended::default()
    }))
}

fn waiting() -> Waiting {
    let device = DeviceId::parse("meter").unwrap();
    Waiting {
        sequence: Sequence(3),
        device: DeviceKey::of(&acme(), &device),
        event: EventId::from_bytes([9; 16]),
        event_type: EventType::TelemetryData,
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
        }),
        wants: EventTypes::usual(),
        state: DestinationState::RolledOut,
        replay: Replay::None,
        created_at: at(0),
        updated_at: at(0),
    }
}
