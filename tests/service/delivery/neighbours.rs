//! Does a failing endpoint delay no other endpoint, and a refused event no other device?

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{DeliveryService, STEADY, counted, values_of};
use crate::vocabulary::endpoint::{Endpoint, Reply, taken};

#[test]
fn a_slow_or_dead_endpoint_delays_no_other() {
    // No delivery to the silent endpoint times out during the test.
    let setup = DeliveryService::with(&[STEADY, ("SIGNALBOX_DELIVERY_TIMEOUT_MS", "600000")]);
    let silent = Endpoint::replying(|_, _| Reply::Silence);
    let mut dead = Endpoint::new();
    let live = Endpoint::new();
    for endpoint in [&silent, &dead, &live] {
        setup.values_to(endpoint);
    }
    dead.close();
    let mut meter = setup.meter("meter-1");
    for number in 1..=30 {
        meter.send(f64::from(number));
    }
    let posted = live.once(30);
    assert_eq!(values_of(&posted, "meter-1"), counted(30));
    assert_eq!(silent.posted().len(), 1, "one of a device is under way");
    assert!(dead.posted().is_empty());
}

#[test]
fn a_refused_event_delays_only_its_own_device() {
    let setup = DeliveryService::with(&[STEADY]);
    // The endpoint accepts nothing of the first device until it has all of the second.
    let of_second = AtomicUsize::new(0);
    let endpoint = Endpoint::replying(move |posted, _| {
        if posted.text.contains("meter-2") {
            of_second.fetch_add(1, Ordering::SeqCst);
        }
        Reply::Status(match of_second.load(Ordering::SeqCst) {
            0..10 if posted.text.contains("meter-1") => 503,
            _ => 204,
        })
    });
    let id = setup.values_to(&endpoint);
    let mut meters = [setup.meter("meter-1"), setup.meter("meter-2")];
    for number in 1..=10 {
        for meter in &mut meters {
            meter.send(f64::from(number));
        }
    }
    let posted = endpoint.once_taken(20);
    for meter in &meters {
        assert_eq!(values_of(&posted, &meter.name), counted(10));
    }
    assert_eq!(taken(&endpoint.posted()).len(), 20);
    setup.once_done(&id);
}
