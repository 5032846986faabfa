//! What happens to a destination whose forwarder panics or whose store fails, and to other
//! destinations?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::action::Protocol;
use engine::change::{Batch, Change};
use engine::delivery::destination::{
    Destination, DestinationAmendment, DestinationState, EventTypes, JsonPayload, Replay, Target,
    Webhook,
};
use engine::event::{Cause, DeviceInfo, Event, EventContent, Telemetry};
use engine::ids::{DestinationId, DeviceId, EventId, Iccid};
use engine::limits::PANICS_MAX;
use engine::supervision::Unserved;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;
use store::{Commit as _, DeliveryReads as _};

use crate::faulty::FaultMode;
use crate::operator_log::{is_logged, listen};
use crate::test_service::{TestService, customer, wait_for};
use crate::vocabulary::endpoint::{Endpoint, ReceivedPost, Reply};

const METER: &str = "meter";

#[test]
fn a_panicked_forwarder_is_restored_and_repeats_its_delivery_under_the_same_id() {
    listen();
    let setup = TestService::new([METER]);
    let endpoint = Endpoint::new();
    let to = setup.destination(&endpoint);
    setup.once_posted_to(&endpoint, FaultMode::PanicOnceTo(to));
    setup.send_value(1.0);
    let posted = endpoint.once(2);
    assert_eq!(setup.commits.mode(), FaultMode::Well);
    assert!(setup.is_logged_for(to, "a forwarder panicked and is restored"));
    assert_repeats(&posted);
    setup.until(|| setup.waiting_for(to) == 0);
    setup.send_value(2.0);
    assert_eq!(values(&endpoint.once(3)), [1.0, 1.0, 2.0]);
    assert_eq!(setup.entries(), [""; 0]);
}

#[test]
fn a_forwarder_that_keeps_panicking_is_parked_with_a_log_entry_and_others_continue() {
    listen();
    let setup = TestService::new([METER]);
    let (endpoint, other) = (Endpoint::new(), Endpoint::new());
    let (to, to_other) = (setup.destination(&endpoint), setup.destination(&other));
    setup.commits.set(FaultMode::PanicAlwaysTo(to));
    setup.send_value(1.0);
    setup.until(|| setup.entries() == ["CloudIntegrator[IntegrationParked]"]);
    assert!(setup.is_logged_for(to, "a forwarder keeps panicking and is parked"));
    let tried = endpoint.posted();
    assert!(tried.len() <= usize::from(PANICS_MAX) + 1, "{tried:?}");
    assert_repeats(&tried);
    assert_eq!(setup.rename(to, "parked"), Err(Unserved::Busy));
    setup.send_value(2.0);
    assert_eq!(values(&other.once(2)), [1.0, 2.0]);
    setup.until(|| setup.waiting_for(to_other) == 0);
    assert_eq!(setup.rename(to_other, "served").as_deref(), Ok("served"));
    assert_eq!(endpoint.posted().len(), tried.len(), "it is left alone");
    assert_eq!(setup.waiting_for(to), 2, "nothing of it is lost");
    assert_eq!(wait_for(setup.deliveries.remove(to)), Ok(()));
    assert_eq!(wait_for(setup.store.destination(to)), Ok(None));
    assert_eq!(setup.rename(to, "gone"), Err(Unserved::Unknown));
}

#[test]
fn an_unsaved_step_is_repeated_once_the_store_is_back_and_not_before() {
    listen();
    for mode in [FaultMode::Unavailable, FaultMode::Full] {
        let setup = TestService::new([METER]);
        let endpoint = Endpoint::new();
        let to = setup.destination(&endpoint);
        setup.once_posted_to(&endpoint, mode);
        setup.send_value(1.0);
        // The supervisor checks repeatedly whether the store is available.
        setup.until(|| setup.commits.times_full() >= 3);
        assert!(setup.is_logged_for(to, "a step of a destination was not saved"));
        assert_eq!(values(&endpoint.posted()), [1.0], "{mode:?}");
        setup.commits.set(FaultMode::Well);
        assert_repeats(&endpoint.once(2));
        setup.until(|| setup.waiting_for(to) == 0);
        setup.send_value(2.0);
        assert_eq!(values(&endpoint.once(3)), [1.0, 1.0, 2.0], "{mode:?}");
    }
}

#[test]
fn commands_to_a_destination_being_restored_are_refused_as_busy_and_work_later() {
    let setup = TestService::new([METER]);
    let endpoint = Endpoint::new();
    let to = setup.destination(&endpoint);
    setup.fail(to);
    assert_eq!(setup.rename(to, "too early"), Err(Unserved::Busy));
    let post = &setup.deliveries;
    assert_eq!(wait_for(post.restart(to)).err(), Some(Unserved::Busy));
    assert_eq!(wait_for(post.replay(to)).err(), Some(Unserved::Busy));
    assert_eq!(wait_for(post.test(to)).err(), Some(Unserved::Busy));
    assert_eq!(wait_for(post.remove(to)), Err(Unserved::Busy));
    setup.commits.set(FaultMode::Well);
    setup.until(|| setup.rename(to, "in time").as_deref() == Ok("in time"));
    let restarted = wait_for(post.restart(to)).unwrap();
    assert_eq!(&*restarted.name, "in time", "what failed was not done");
    assert!(wait_for(post.test(to)).unwrap().accepted);
    assert_eq!(wait_for(post.remove(to)), Ok(()));
    setup.until(|| setup.rename(to, "too late") == Err(Unserved::Unknown));
    assert_eq!(wait_for(setup.store.destination(to)), Ok(None));
}

#[test]
fn removing_a_customer_ends_its_forwarders_in_any_state() {
    let setup = TestService::new([METER]);
    let (endpoint, other, later) = (Endpoint::new(), Endpoint::new(), Endpoint::new());
    let (there, falls) = (setup.destination(&endpoint), setup.destination(&other));
    setup.fail(falls);
    assert_eq!(wait_for(setup.deliveries.forget(customer())), Ok(()));
    for id in [there, falls] {
        let renamed = setup.rename(id, "gone");
        assert_eq!(renamed, Err(Unserved::Unknown));
    }
    // A new destination shows that events are delivered.
    let times_full = setup.commits.times_full();
    setup.commits.set(FaultMode::Well);
    setup.destination(&later);
    setup.send_value(1.0);
    assert_eq!(values(&later.once(1)), [1.0]);
    assert_eq!(endpoint.posted().len() + other.posted().len(), 0);
    assert_eq!(setup.commits.times_full(), times_full, "nobody comes back");
}

// The vocabulary of these tests.

impl TestService {
    /// Creates a destination of the customer.
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
                batching: None,
            }),
            event_types: EventTypes::usual(),
            state: DestinationState::RolledOut,
            failure: None,
            replay: Replay::None,
            created_at: now,
            updated_at: now,
        };
        wait_for(self.deliveries.create(destination, None)).unwrap();
        id
    }

    /// Sets the mode of the store at the first delivery.
    fn once_posted_to(&self, endpoint: &Endpoint, mode: FaultMode) {
        let (commits, is_first) = (Arc::clone(&self.commits), AtomicBool::new(true));
        endpoint.reply(move |_, _| {
            if is_first.swap(false, Ordering::SeqCst) {
                commits.set(mode);
            }
            Reply::Status(204)
        });
    }

    /// Lets the store fail, and with it a step of a destination, which cannot be restored.
    fn fail(&self, id: DestinationId) {
        // The destination may still be starting.
        self.until(|| self.rename(id, "before").is_ok());
        self.commits.set(FaultMode::Unavailable);
        assert_eq!(self.rename(id, "not saved"), Err(Unserved::Failed));
        self.until(|| self.commits.times_full() > 0);
    }

    /// The device sends a value.
    fn send_value(&self, value: f64) {
        let mut m = self.clock.moment();
        let event = Event {
            id: EventId::new(m.uuid()),
            customer: customer(),
            device: self.key(METER),
            device_info: DeviceInfo {
                device: DeviceId::parse(METER).unwrap(),
                iccid: Iccid::parse(METER).unwrap(),
                imsi: None,
                ip: None,
            },
            at: m.now(),
            content: EventContent::Telemetry(Telemetry {
                source: Protocol::Lwm2m,
                cause: Cause::Send,
                measured_at: None,
                values: [(Path::resource(3303, 0, 5700), Value::Float(value))].into(),
            }),
        };
        let receipt = self.commits.commit(Batch {
            changes: vec![Change::AppendEvent(Box::new(event))],
            ..Batch::default()
        });
        wait_for(receipt).unwrap();
    }

    /// Renames a destination.
    fn rename(&self, id: DestinationId, name: &str) -> Result<Box<str>, Unserved> {
        let amended = DestinationAmendment {
            name: Some(name.into()),
            ..DestinationAmendment::default()
        };
        wait_for(self.deliveries.amend(id, amended)).map(|it| it.name)
    }

    /// How many events wait for a destination, according to the store.
    fn waiting_for(&self, id: DestinationId) -> u64 {
        wait_for(self.store.backlog(id)).unwrap().waiting
    }

    /// Whether the operator's log has this message about a destination.
    fn is_logged_for(&self, id: DestinationId, message: &str) -> bool {
        is_logged(&format!(r#""destination":"{id}""#), message)
    }
}

/// Checks that all deliveries are one event.
fn assert_repeats(posted: &[ReceivedPost]) {
    for pair in posted.windows(2) {
        assert_eq!(pair[0].id(), pair[1].id());
        assert_eq!(pair[0].text, pair[1].text);
    }
}

/// The delivered values.
fn values(posted: &[ReceivedPost]) -> Vec<f64> {
    let value = |posted: &ReceivedPost| posted.json()["payload"]["value"]["/3303/0/5700"].as_f64();
    posted.iter().map(|it| value(it).unwrap()).collect()
}
