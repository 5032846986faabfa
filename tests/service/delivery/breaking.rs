//! What happens to an event whose connection breaks?

use super::{DeliveryService, QUICK, counted, values_of};
use crate::vocabulary::endpoint::{Endpoint, Reply};

#[test]
fn an_event_is_repeated_if_the_connection_breaks_before_the_answer() {
    let setup = DeliveryService::with(&[QUICK]);
    let endpoint = Endpoint::replying(|_, number| match number {
        0 | 1 => Reply::Break,
        _ => Reply::Status(200),
    });
    let id = setup.values_to(&endpoint);
    setup.meter("meter-1").send(1.0);
    let posted = endpoint.once(3);
    assert!(posted.iter().all(|it| it.id() == posted[0].id()));
    assert_eq!(setup.once_done(&id)["state"], "INTEGRATION_ACTIVE");
    assert_eq!(endpoint.posted().len(), 3);
}

#[test]
fn the_status_counts_if_the_connection_breaks_in_the_body_of_the_answer() {
    let setup = DeliveryService::with(&[QUICK]);
    let endpoint = Endpoint::replying(|_, number| match number {
        0 => Reply::BreakInBody,
        _ => Reply::Status(200),
    });
    let id = setup.values_to(&endpoint);
    let mut meter = setup.meter("meter-1");
    meter.send(1.0);
    meter.send(2.0);
    let posted = endpoint.once(2);
    assert_eq!(values_of(&posted, "meter-1"), counted(2));
    assert_eq!(setup.once_done(&id)["state"], "INTEGRATION_ACTIVE");
    assert_eq!(
        endpoint.posted().len(),
        2,
        "a status of 200 accepts the event"
    );
}
