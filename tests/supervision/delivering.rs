//! What happens to a destination whose forwarder falls over or whose store fails, and to the
//! others?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::action::Protocol;
use engine::change::{Batch, Change};
use engine::delivery::destination::{
    Amended, Destination, DestinationState, EventTypes, JsonPayload, Replay, Target, Webhook,
};
use engine::event::{Cause, Event, Happening, Speaker, Telemetry};
use engine::ids::{DestinationId, DeviceId, EventId, Iccid};
use engine::limits::PANICS_MAX;
use engine::supervision::Unserved;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;
use store::{Commit as _, DeliveryReads as _};

use crate::faulty::Mood;
use crate::telling::{is_told, listen};
use crate::vocabulary::endpoint::{Endpoint, Posted, Reply};
use crate::world::{World, customer, wait_for};

const METER: &str = "meter";

#[test]
fn a_panicked_forwarder_is_restored_and_what_was_under_way_comes_again_under_its_id() {
    listen();
    let world = World::new([METER]);
    let endpoint = Endpoint::new();
    let to = world.destination(&endpoint);
    world.once_posted_to(&endpoint, Mood::PanicOnceTo(to));
    world.say(1.0);
    let posted = endpoint.once(2);
    assert_eq!(world.commits.mood(), Mood::Well);
    assert!(world.is_told_of(to, "a forwarder panicked and is restored"));
    assert_repeats(&posted);
    world.until(|| world.waiting_for(to) == 0);
    world.say(2.0);
    assert_eq!(values(&endpoint.once(3)), [1.0, 1.0, 2.0]);
    assert_eq!(world.entries(), [""; 0]);
}

#[test]
fn a_forwarder_that_keeps_panicking_is_parked_with_a_log_entry_and_others_go_on() {
    listen();
    let world = World::new([METER]);
    let (endpoint, other) = (Endpoint::new(), Endpoint::new());
    let (to, to_other) = (world.destination(&endpoint), world.destination(&other));
    world.commits.set(Mood::PanicAlwaysTo(to));
    world.say(1.0);
    world.until(|| world.entries() == ["CloudIntegrator[IntegrationParked]"]);
    assert!(world.is_told_of(to, "a forwarder keeps panicking and is parked"));
    let tried = endpoint.posted();
    assert!(tried.len() <= usize::from(PANICS_MAX) + 1, "{tried:?}");
    assert_repeats(&tried);
    assert_eq!(world.rename(to, "parked"), Err(Unserved::Busy));
    world.say(2.0);
    assert_eq!(values(&other.once(2)), [1.0, 2.0]);
    world.until(|| world.waiting_for(to_other) == 0);
    assert_eq!(world.rename(to_other, "served").as_deref(), Ok("served"));
    assert_eq!(endpoint.posted().len(), tried.len(), "it is left alone");
    assert_eq!(world.waiting_for(to), 2, "nothing of it is lost");
    assert_eq!(wait_for(world.post.remove(to)), Ok(()));
    assert_eq!(wait_for(world.store.destination(to)), Ok(None));
    assert_eq!(world.rename(to, "gone"), Err(Unserved::Unknown));
}

#[test]
fn a_step_that_was_not_saved_is_taken_again_once_the_store_is_back_and_not_before() {
    listen();
    for mood in [Mood::Unavailable, Mood::Full] {
        let world = World::new([METER]);
        let endpoint = Endpoint::new();
        let to = world.destination(&endpoint);
        world.once_posted_to(&endpoint, mood);
        world.say(1.0);
        // The supervisor looks again and again whether the store is back.
        world.until(|| world.commits.turned_back() >= 3);
        assert!(world.is_told_of(to, "a step of a destination was not saved"));
        assert_eq!(values(&endpoint.posted()), [1.0], "{mood:?}");
        world.commits.set(Mood::Well);
        assert_repeats(&endpoint.once(2));
        world.until(|| world.waiting_for(to) == 0);
        world.say(2.0);
        assert_eq!(values(&endpoint.once(3)), [1.0, 1.0, 2.0], "{mood:?}");
    }
}

#[test]
fn what_is_asked_of_a_destination_that_comes_back_is_refused_as_busy_and_works_later() {
    let world = World::new([METER]);
    let endpoint = Endpoint::new();
    let to = world.destination(&endpoint);
    world.let_fall(to);
    assert_eq!(world.rename(to, "too early"), Err(Unserved::Busy));
    let post = &world.post;
    assert_eq!(wait_for(post.restart(to)).err(), Some(Unserved::Busy));
    assert_eq!(wait_for(post.replay(to)).err(), Some(Unserved::Busy));
    assert_eq!(wait_for(post.test(to)).err(), Some(Unserved::Busy));
    assert_eq!(wait_for(post.remove(to)), Err(Unserved::Busy));
    world.commits.set(Mood::Well);
    world.until(|| world.rename(to, "in time").as_deref() == Ok("in time"));
    let restarted = wait_for(post.restart(to)).unwrap();
    assert_eq!(&*restarted.name, "in time", "what failed was not done");
    assert!(wait_for(post.test(to)).unwrap().accepted);
    assert_eq!(wait_for(post.remove(to)), Ok(()));
    world.until(|| world.rename(to, "too late") == Err(Unserved::Unknown));
    assert_eq!(wait_for(world.store.destination(to)), Ok(None));
}

#[test]
fn a_customer_that_goes_takes_its_forwarders_along_wherever_they_are() {
    let world = World::new([METER]);
    let (endpoint, other, later) = (Endpoint::new(), Endpoint::new(), Endpoint::new());
    let (there, falls) = (world.destination(&endpoint), world.destination(&other));
    world.let_fall(falls);
    assert_eq!(wait_for(world.post.forget(customer())), Ok(()));
    for gone in [there, falls] {
        let told = world.rename(gone, "gone");
        assert_eq!(told, Err(Unserved::Unknown));
    }
    // Somebody who begins now shows that what is said is told.
    let turned_back = world.commits.turned_back();
    world.commits.set(Mood::Well);
    world.destination(&later);
    world.say(1.0);
    assert_eq!(values(&later.once(1)), [1.0]);
    assert_eq!(endpoint.posted().len() + other.posted().len(), 0);
    assert_eq!(
        world.commits.turned_back(),
        turned_back,
        "nobody comes back"
    );
}

// The vocabulary of these tests.

impl World {
    /// Makes a destination of the customer.
    fn destination(&self, endpoint: &Endpoint) -> DestinationId {
        let now = self.clock.now();
        let id = DestinationId::new(self.clock.moment().uuid());
        let destination = Destination {
            id,
            customer: customer(),
            name: "Warehouse".into(),
            target: Target::Webhook(Webhook {
                url: endpoint.url("/in").into(),
                headers: Box::default(),
                secret: None,
                json: JsonPayload::AsText,
            }),
            wants: EventTypes::usual(),
            state: DestinationState::RolledOut,
            replay: Replay::None,
            created_at: now,
            updated_at: now,
        };
        wait_for(self.post.create(destination)).unwrap();
        id
    }

    /// From the first delivery on, the store is in this mood.
    fn once_posted_to(&self, endpoint: &Endpoint, mood: Mood) {
        let (commits, is_first) = (Arc::clone(&self.commits), AtomicBool::new(true));
        endpoint.reply(move |_, _| {
            if is_first.swap(false, Ordering::SeqCst) {
                commits.set(mood);
            }
            Reply::Status(204)
        });
    }

    /// Has the store fail, and with it a step of a destination, which cannot be brought back.
    fn let_fall(&self, id: DestinationId) {
        // At first it may still be restored.
        self.until(|| self.rename(id, "before").is_ok());
        self.commits.set(Mood::Unavailable);
        assert_eq!(self.rename(id, "not saved"), Err(Unserved::Failed));
        self.until(|| self.commits.turned_back() > 0);
    }

    /// The device tells a value.
    fn say(&self, value: f64) {
        let mut m = self.clock.moment();
        let event = Event {
            id: EventId::new(m.uuid()),
            customer: customer(),
            device: self.key(METER),
            speaker: Speaker {
                device: DeviceId::parse(METER).unwrap(),
                iccid: Iccid::parse(METER).unwrap(),
                imsi: None,
                ip: None,
            },
            at: m.now(),
            happening: Happening::Telemetry(Telemetry {
                source: Protocol::Lwm2m,
                cause: Cause::Send,
                measured_at: None,
                values: [(Path::resource(3303, 0, 5700), Value::Float(value))].into(),
            }),
        };
        let said = self.commits.commit(Batch {
            changes: vec![Change::AppendEvent(Box::new(event))],
            ..Batch::default()
        });
        wait_for(said).unwrap();
    }

    /// Gives a destination another name.
    fn rename(&self, id: DestinationId, name: &str) -> Result<Box<str>, Unserved> {
        let amended = Amended {
            name: Some(name.into()),
            ..Amended::default()
        };
        wait_for(self.post.amend(id, amended)).map(|it| it.name)
    }

    /// How many events wait for a destination, as it is kept.
    fn waiting_for(&self, id: DestinationId) -> u64 {
        wait_for(self.store.backlog(id)).unwrap().waiting
    }

    /// Whether the operator is told this of a destination.
    fn is_told_of(&self, id: DestinationId, message: &str) -> bool {
        is_told(&format!(r#""destination":"{id}""#), message)
    }
}

/// All of it is one event, however often it was told.
fn assert_repeats(posted: &[Posted]) {
    for pair in posted.windows(2) {
        assert_eq!(pair[0].id(), pair[1].id());
        assert_eq!(pair[0].text, pair[1].text);
    }
}

/// The values that were told.
fn values(posted: &[Posted]) -> Vec<f64> {
    let value = |posted: &Posted| posted.json()["payload"]["value"]["/3303/0/5700"].as_f64();
    posted.iter().map(|it| value(it).unwrap()).collect()
}
