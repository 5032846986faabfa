//! What is stored of destinations and their progress?

use engine::MqttVersion;
use engine::change::Change;
use engine::delivery::backlog::{DestinationProgress, ProgressUpdate, Sequence};
use engine::delivery::destination::{
    Broker, BrokerCommands, ClientCertificate, Destination, DestinationState, EventBatching,
    EventTypes, Header, JsonPayload, LifecycleKinds, Plugin, Replay, SmsForwarder, Target, Webhook,
};
use engine::event::Lifecycle;
use engine::ids::Partition;
use engine::sealed::Sealed;

use super::outbox::{
    all_waiting, counts, dead, dead_of, held, make, nothing, past, progress, say, sweep_all,
    unmake, waiting_for,
};
use super::samples::{acme, at, customer, destination};
use super::waiting::meters;
use super::{TestBed, put, wait};
use crate::{Retention, Store};

pub(super) fn come_back(ground: &TestBed<'_>) {
    let mut store = ground.open();
    let [first, second] = [1, 2].map(|number| destination(&acme(), number));
    let second = plugin(second);
    let changed = full(&first);
    let elsewhere = sms_forwarder(destination(&customer("acme-2").id, 3));
    let [whole, other] = [4, 5].map(|number| broker(destination(&customer("acme-2").id, number)));
    let bare = bare(other);
    for one in [&first, &second, &elsewhere, &changed, &whole, &bare] {
        make(&*store, one);
    }
    for _ in 0..2 {
        assert_eq!(destinations(&*store), [changed.clone(), second.clone()]);
        let found = wait(store.destination(first.id));
        assert_eq!(found, Ok(Some(changed.clone())));
        let found = wait(store.destination(elsewhere.id));
        assert_eq!(found, Ok(Some(elsewhere.clone())));
        for one in [&whole, &bare] {
            assert_eq!(wait(store.destination(one.id)), Ok(Some(one.clone())));
        }
        drop(store);
        store = ground.open();
    }
    // Only the owner of a destination can remove it.
    let theft = Change::RemoveDestination {
        customer: elsewhere.customer.clone(),
        destination: first.id,
    };
    put(&*store, vec![theft]);
    assert_eq!(destinations(&*store), [changed, second.clone()]);
    unmake(&*store, &first);
    unmake(&*store, &first);
    assert_eq!(destinations(&*store), [second]);
    assert_eq!(wait(store.destination(first.id)), Ok(None));
    assert_eq!(
        wait(store.destination(elsewhere.id)),
        Ok(Some(elsewhere.clone()))
    );
}

pub(super) fn are_listed_by_customer(ground: &TestBed<'_>) {
    let store = ground.open();
    let [acme, other] = ["acme", "acme-2"].map(|id| customer(id).id);
    let of = |customer| wait(store.destinations_of(customer));
    assert_eq!(of(acme.clone()), Ok(vec![]));
    let [first, second] = [1, 2].map(|number| destination(&acme, number));
    let elsewhere = destination(&other, 3);
    for one in [&second, &elsewhere, &first] {
        make(&*store, one);
    }
    assert_eq!(of(acme.clone()), Ok(vec![first.clone(), second.clone()]));
    assert_eq!(of(other.clone()), Ok(vec![elsewhere]));
    unmake(&*store, &first);
    assert_eq!(of(acme.clone()), Ok(vec![second]));
    put(&*store, vec![Change::RemoveCustomer(acme.clone())]);
    assert_eq!(of(acme), Ok(vec![]));
    assert_eq!(of(other).map(|left| left.len()), Ok(1));
}

pub(super) fn keep_their_place(ground: &TestBed<'_>) {
    let mut store = ground.open();
    let meters = meters(3);
    say(&*store, &meters[0], 1);
    let [erp, other] = [1, 2].map(|number| destination(&acme(), number));
    make(&*store, &erp);
    make(&*store, &other);
    let since = wait(store.progress_of(erp.id)).expect("an answer").since;
    for (second, meter) in (2..).zip(meters.iter().cycle().take(12)) {
        say(&*store, meter, second);
    }
    let waiting = waiting_for(&*store, &erp);
    assert_eq!(waiting.len(), 12);
    assert!(waiting.iter().all(|waiting| waiting.sequence > since));
    let step = ProgressUpdate {
        retrying: vec![held(waiting[2], 1), held(waiting[0], 2)],
        ..past(&erp, &waiting[..4])
    };
    progress(&*store, step);
    // One event is retried, another delivered, and no cursor goes back.
    let step = ProgressUpdate {
        retrying: vec![held(waiting[2], 3)],
        released: vec![waiting[0].sequence],
        ..past(&erp, &waiting[..1])
    };
    progress(&*store, step);
    let reached = waiting[..4]
        .iter()
        .map(|one| (one.partition(), one.sequence));
    let reached = reached.collect::<std::collections::BTreeMap<Partition, Sequence>>();
    let expected = DestinationProgress {
        since,
        reached: reached.into_iter().collect(),
        retrying: vec![held(waiting[2], 3)],
    };
    let untouched = DestinationProgress {
        since,
        ..DestinationProgress::default()
    };
    for _ in 0..2 {
        assert_eq!(wait(store.progress_of(erp.id)), Ok(expected.clone()));
        assert_eq!(wait(store.progress_of(other.id)), Ok(untouched.clone()));
        assert_eq!(counts(&*store, &erp), (9, 0));
        assert_eq!(counts(&*store, &other), (12, 0));
        drop(store);
        store = ground.open();
    }
}

pub(super) fn dead_letter_what_is_not_accepted(ground: &TestBed<'_>) {
    let store = ground.open();
    let meters = meters(2);
    let erp = destination(&acme(), 1);
    make(&*store, &erp);
    for second in 1..=6 {
        say(&*store, &meters[0], second);
    }
    let waiting = all_waiting(&*store, &acme());
    let dead_letters: Vec<_> = (10..)
        .zip(&waiting)
        .map(|(at, one)| dead(*one, at))
        .collect();
    let step = ProgressUpdate {
        dead_lettered: dead_letters.clone(),
        ..past(&erp, &waiting)
    };
    progress(&*store, step);
    assert_eq!(dead_of(&*store, erp.id), dead_letters);
    assert_eq!(counts(&*store, &erp), (0, 6));
    let page = |after, max| wait(store.dead_letters(erp.id, after, max));
    assert_eq!(page(None, 2), Ok(dead_letters[..2].to_vec()));
    assert_eq!(
        page(Some(waiting[1].sequence), 3),
        Ok(dead_letters[2..5].to_vec())
    );
    assert_eq!(page(Some(waiting[5].sequence), 3), Ok(vec![]));

    // Some are replayed, one becomes a dead letter again, and none is counted twice.
    let again = dead(waiting[3], 40);
    let step = ProgressUpdate {
        requeued: vec![
            waiting[0].sequence,
            waiting[2].sequence,
            waiting[2].sequence,
        ],
        retrying: vec![held(waiting[0], 0), held(waiting[2], 0)],
        dead_lettered: vec![again.clone()],
        ..nothing(&erp)
    };
    progress(&*store, step);
    let left = [
        dead_letters[1].clone(),
        again,
        dead_letters[4].clone(),
        dead_letters[5].clone(),
    ];
    assert_eq!(dead_of(&*store, erp.id), left);
    assert_eq!(counts(&*store, &erp), (2, 4));

    // Their age counts from when they last became dead letters.
    let due = Retention {
        dead_letters_before: at(15),
        ..Retention::NOTHING
    };
    assert_eq!(sweep_all(&*store, due, 100), 2);
    assert_eq!(dead_of(&*store, erp.id), [left[1].clone(), left[3].clone()]);
    assert_eq!(counts(&*store, &erp), (2, 2));
    let standing = wait(store.progress_of(erp.id)).expect("an answer");
    assert_eq!(
        standing.retrying,
        [held(waiting[0], 0), held(waiting[2], 0)]
    );
}

pub(super) fn take_everything_along(ground: &TestBed<'_>) {
    let store = ground.open();
    let meters = meters(2);
    let erp = destination(&acme(), 1);
    let other = destination(&acme(), 2);
    for one in [&erp, &other] {
        make(&*store, one);
    }
    for second in 1..=40 {
        say(&*store, &meters[0], second);
    }
    let waiting = all_waiting(&*store, &acme());
    let step = |to: &Destination| ProgressUpdate {
        retrying: waiting[..20].iter().map(|one| held(*one, 1)).collect(),
        dead_lettered: waiting[20..].iter().map(|one| dead(*one, 50)).collect(),
        ..past(to, &waiting)
    };
    progress(&*store, step(&erp));
    progress(&*store, step(&other));
    unmake(&*store, &erp);
    let is_gone = |of: &Destination| {
        assert_eq!(
            wait(store.progress_of(of.id)),
            Ok(DestinationProgress::default())
        );
        assert_eq!(dead_of(&*store, of.id), []);
        assert_eq!(counts(&*store, of), (0, 0));
        assert_eq!(wait(store.partitions_waiting(of.id)), Ok(vec![]));
    };
    is_gone(&erp);
    // Progress committed after the removal leaves nothing and does not restore the destination.
    progress(&*store, step(&erp));
    make(&*store, &erp);
    progress(&*store, step(&erp));
    is_gone(&erp);
    assert_eq!(wait(store.destination(erp.id)), Ok(None));
    assert_eq!(destinations(&*store), vec![other.clone()]);
    // Of the removed destination 20 pending retries and 20 dead letters.
    assert_eq!(sweep_all(&*store, Retention::NOTHING, 9), 40);
    is_gone(&erp);
    assert_eq!(counts(&*store, &other), (20, 20));
    assert_eq!(dead_of(&*store, other.id).len(), 20);
    let standing = wait(store.progress_of(other.id)).expect("an answer");
    assert_eq!(standing.retrying.len(), 20);
}

pub(super) fn go_with_their_customer(ground: &TestBed<'_>) {
    let store = ground.open();
    let meters = meters(2);
    let erp = destination(&acme(), 1);
    let globex = destination(&customer("globex").id, 2);
    put(&*store, vec![Change::PutCustomer(customer("acme"))]);
    for one in [&erp, &globex] {
        make(&*store, one);
    }
    for second in 1..=20 {
        say(&*store, &meters[0], second);
    }
    let waiting = all_waiting(&*store, &acme());
    let step = ProgressUpdate {
        retrying: vec![held(waiting[0], 1)],
        dead_lettered: vec![dead(waiting[1], 1)],
        ..past(&erp, &waiting[..2])
    };
    progress(&*store, step);
    put(&*store, vec![Change::RemoveCustomer(acme())]);
    assert_eq!(destinations(&*store), []);
    assert_eq!(wait(store.destination(erp.id)), Ok(None));
    assert_eq!(dead_of(&*store, erp.id), []);

    // A new customer with the same id begins behind what the former one left.
    put(&*store, vec![Change::PutCustomer(customer("acme"))]);
    let fresh = destination(&acme(), 3);
    make(&*store, &fresh);
    assert_eq!(wait(store.partitions_waiting(fresh.id)), Ok(vec![]));
    say(&*store, &meters[1], 30);
    assert_eq!(counts(&*store, &fresh), (1, 0));
    // The twenty events, the retry and the dead letter.
    assert_eq!(sweep_all(&*store, Retention::NOTHING, 7), 22);
    assert_eq!(all_waiting(&*store, &acme()).len(), 1);
    assert_eq!(
        wait(store.partitions_waiting(fresh.id)),
        Ok(vec![meters[1].key().partition()])
    );
    assert_eq!(wait(store.destination(globex.id)), Ok(Some(globex)));
}

/// The destination with something in every field.
fn full(destination: &Destination) -> Destination {
    let header = |name: &str| Header {
        name: name.into(),
        value: Sealed::from_bytes(name.repeat(900).into_bytes().into()),
    };
    let kinds: LifecycleKinds = [Lifecycle::Awake, Lifecycle::Back].into_iter().collect();
    Destination {
        name: "Größe".into(),
        target: Target::Webhook(Webhook {
            url: "https://example.org/other".into(),
            headers: ["Authorization", "X-Device"].map(header).into(),
            secret: Some(Sealed::from_bytes([7; 60].into())),
            json: JsonPayload::Parsed,
            batching: Some(EventBatching {
                events_max: 40,
                wait_ms_max: 250,
            }),
        }),
        event_types: EventTypes::all().with_kinds(Some(kinds)),
        state: DestinationState::Failed,
        failure: Some("the endpoint answered 500".into()),
        replay: Replay::UnderWay,
        updated_at: at(99),
        ..destination.clone()
    }
}

/// The destination as an SMS forwarder.
fn sms_forwarder(destination: Destination) -> Destination {
    let forwarder = SmsForwarder {
        url: "https://example.com:8443/sms/".into(),
        organisation: u64::MAX,
    };
    Destination {
        target: Target::SmsForwarder(forwarder),
        event_types: EventTypes::of_sms(),
        ..destination
    }
}

/// The destination as a broker with everything that one may have.
fn broker(destination: Destination) -> Destination {
    let broker = Broker {
        url: "mqtts://broker.example.com".into(),
        topic_prefix: "acme/meters".into(),
        version: MqttVersion::V3,
        username: Some("signalbox".into()),
        password: Some(Sealed::from_bytes([7; 60].into())),
        ca: Some("a CA certificate".into()),
        certificate: Some(ClientCertificate {
            chain: "a certificate".into(),
            key: Sealed::from_bytes([8; 60].into()),
        }),
        commands: BrokerCommands::On,
        json: JsonPayload::Parsed,
    };
    Destination {
        target: Target::Broker(Box::new(broker)),
        ..destination
    }
}

/// A broker with nothing that one may lack.
fn bare(destination: Destination) -> Destination {
    let broker = destination.target.broker().expect("it is a broker");
    let broker = Broker {
        version: MqttVersion::V5,
        username: None,
        password: None,
        ca: None,
        certificate: None,
        commands: BrokerCommands::Off,
        ..broker.clone()
    };
    Destination {
        target: Target::Broker(Box::new(broker)),
        ..destination
    }
}

/// The destination as a plugin.
fn plugin(destination: Destination) -> Destination {
    let plugin = Plugin {
        partner: "gateway".into(),
        server_domain: "gateway.example.com:8443".into(),
        webhook_key: Sealed::from_bytes([7; 60].into()),
    };
    Destination {
        target: Target::Plugin(plugin),
        event_types: EventTypes::all(),
        ..destination
    }
}

fn destinations(store: &dyn Store) -> Vec<Destination> {
    let chosen = wait(store.customer_settings(acme()));
    chosen.expect("an answer").destinations
}
