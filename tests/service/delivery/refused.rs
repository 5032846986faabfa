//! What happens to an event that an endpoint refuses or answers too late?

use serde_json::json;

use super::{DeliveryService, QUICK, STEADY, counted, value, values_of};
use crate::vocabulary::endpoint::{Endpoint, Reply, taken};

#[test]
fn a_delivery_to_a_slow_endpoint_times_out_and_is_repeated_under_the_same_id() {
    // Enough tries for a machine on which the endpoint misses the deadline many times.
    let setup = DeliveryService::with(&[STEADY, ("SIGNALBOX_DELIVERY_TIMEOUT_MS", "1000")]);
    let endpoint = Endpoint::replying(|_, number| match number {
        0 => Reply::Silence,
        _ => Reply::Status(204),
    });
    let id = setup.values_to(&endpoint);
    let mut meter = setup.meter("meter-1");
    meter.send(1.0);
    meter.send(2.0);
    setup.once_done(&id);
    let posted = endpoint.posted();
    assert_eq!(posted[0].id(), posted[1].id());
    assert_eq!(values_of(&taken(&posted), "meter-1"), counted(2));
    assert_eq!(setup.shown(&id)["state"], "INTEGRATION_ACTIVE");
}

#[test]
fn an_event_is_repeated_after_a_4xx() {
    check_repeated([400, 401, 404, 410, 429]);
}

#[test]
fn an_event_is_repeated_after_a_5xx() {
    check_repeated([500, 501, 502, 503, 504]);
}

#[test]
fn a_redirect_is_not_followed_and_the_event_is_repeated() {
    let setup = DeliveryService::with(&[QUICK]);
    let (elsewhere, place) = (Endpoint::new(), "location");
    let to = elsewhere.url("/stolen");
    let endpoint = Endpoint::replying(move |_, number| match number {
        0 => Reply::With(302, place, to.clone()),
        1 => Reply::With(307, place, to.clone()),
        2 => Reply::With(308, place, to.clone()),
        _ => Reply::Status(200),
    });
    let id = setup.values_to(&endpoint);
    setup.meter("meter-1").send(1.0);
    let posted = endpoint.once(4);
    assert!(posted.iter().all(|it| it.id() == posted[0].id()));
    assert_eq!(setup.once_done(&id)["state"], "INTEGRATION_ACTIVE");
    assert!(elsewhere.posted().is_empty());
}

#[test]
fn a_flapping_endpoint_receives_everything_in_order() {
    let setup = DeliveryService::with(&[STEADY]);
    let endpoint = Endpoint::replying(|_, number| match number % 3 {
        0 => Reply::Status(503),
        1 => Reply::Break,
        _ => Reply::Status(204),
    });
    let id = setup.values_to(&endpoint);
    let mut meters = [setup.meter("meter-1"), setup.meter("meter-2")];
    for number in 1..=4 {
        for meter in &mut meters {
            meter.send(f64::from(number));
        }
    }
    let posted = endpoint.once_taken(8);
    for meter in &meters {
        assert_eq!(values_of(&posted, &meter.name), counted(4));
    }
    let shown = setup.once_done(&id);
    assert_eq!(shown["state"], "INTEGRATION_ACTIVE");
    assert_eq!(shown["backlog"], json!({ "waiting": 0, "deadLetters": 0 }));
    assert_eq!(
        taken(&endpoint.posted()).len(),
        8,
        "what was taken does not come again"
    );
}

/// Checks that the same event is repeated after each of these statuses.
fn check_repeated(statuses: [u16; 5]) {
    let setup = DeliveryService::with(&[STEADY]);
    let endpoint = Endpoint::replying(move |_, number| {
        Reply::Status(statuses.get(number).copied().unwrap_or(204))
    });
    let id = setup.values_to(&endpoint);
    let mut meter = setup.meter("meter-1");
    meter.send(1.0);
    meter.send(2.0);
    let posted = endpoint.once(7);
    assert!(posted[..6].iter().all(|it| it.id() == posted[0].id()));
    assert!(posted[..6].iter().all(|it| it.text == posted[0].text));
    assert_eq!(value(&posted[6]), 2.0, "what follows waits for it");
    assert_eq!(setup.once_done(&id)["state"], "INTEGRATION_ACTIVE");
}
