//! Is everything that was acknowledged to a device delivered, whenever the service is killed?

use super::{DeliveryService, STEADY, counted, metered, once_delivered, values_of};
use crate::vocabulary::endpoint::{Endpoint, Reply, taken};

#[test]
fn acknowledged_values_are_delivered_after_a_kill() {
    let (mut setup, mut endpoint, id, mut meter) = metered(&[STEADY]);
    endpoint.close();
    meter.send(1.0);
    meter.send(2.0);
    setup.service.kill();
    endpoint.open();
    setup.revive();
    let posted = endpoint.once_taken(2);
    assert_eq!(values_of(&posted, "meter-1"), counted(2));
    assert_eq!(setup.once_done(&id)["state"], "INTEGRATION_ACTIVE");
}

#[test]
fn a_delivery_in_flight_at_a_kill_is_repeated_under_its_id() {
    let mut setup = DeliveryService::with(&[]);
    let endpoint = Endpoint::replying(|_, _| Reply::Silence);
    setup.values_to(&endpoint);
    let mut meter = setup.meter("meter-1");
    meter.send(1.0);
    let before = endpoint.once(1);
    setup.service.kill();
    endpoint.reply(|_, _| Reply::Status(204));
    setup.revive();
    meter.send(2.0);
    let posted = endpoint.once_taken(2);
    assert_eq!(posted[0].id(), before[0].id());
    assert_eq!(posted[0].text, before[0].text);
    assert_eq!(values_of(&posted, "meter-1"), counted(2));
}

#[test]
fn a_delivery_accepted_at_a_kill_may_be_repeated_under_its_id_and_nothing_is_lost() {
    let (mut setup, endpoint, id, mut meter) = metered(&[STEADY]);
    for round in 0..4 {
        for number in 1..=5 {
            meter.send(f64::from(round * 5 + number));
        }
        endpoint.once_so("the round has begun", |posted| {
            values_of(posted, "meter-1").len() > round as usize * 5
        });
        setup.crash();
    }
    let posted = once_delivered(&endpoint, 20);
    assert_eq!(values_of(&posted, "meter-1"), counted(20));
    setup.once_done(&id);
    for posted in endpoint.posted() {
        let first = endpoint.posted();
        let first = first.iter().find(|it| it.id() == posted.id()).unwrap();
        assert_eq!(
            first.text, posted.text,
            "the same event is the same message"
        );
    }
}

#[test]
fn tries_that_were_made_before_a_kill_count() {
    let waits = ("SIGNALBOX_DELIVERY_RETRY_MS", "300,300");
    let mut setup = DeliveryService::with(&[waits]);
    let endpoint = Endpoint::replying(|_, _| Reply::Status(503));
    let id = setup.values_to(&endpoint);
    setup.meter("meter-1").send(1.0);
    endpoint.once(2);
    setup.crash();
    setup.once_in(&id, "INTEGRATION_FAILED");
    let posted = endpoint.posted();
    assert!(posted.iter().all(|it| it.id() == posted[0].id()));
    // The try that was in flight at the kill may not have been counted.
    assert!((3..=4).contains(&posted.len()), "{} tries", posted.len());
    assert_eq!(setup.dead_letters(&id)[0]["tries"], 3);
}

#[test]
fn a_value_sent_at_a_kill_is_delivered_if_it_was_acknowledged() {
    let (mut setup, endpoint, id, mut meter) = metered(&[STEADY]);
    let mut acknowledged = Vec::new();
    for round in 0..6 {
        let first = f64::from(round * 2 + 1);
        meter.send(first);
        acknowledged.push(first);
        // This value may be lost, because it was not acknowledged.
        meter.send_unconfirmed(first + 1.0);
        setup.crash();
        // A late acknowledgement is ignored: its message id is not awaited.
        meter.wire.received_before_ping();
    }
    meter.send(100.0);
    acknowledged.push(100.0);
    let posted = endpoint.once_so("all that was acknowledged", |posted| {
        let delivered = values_of(&taken(posted), "meter-1");
        acknowledged.iter().all(|value| delivered.contains(value))
    });
    let delivered = values_of(&posted, "meter-1");
    assert!(delivered.is_sorted(), "in order: {delivered:?}");
    setup.once_done(&id);
}
