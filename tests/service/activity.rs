//! Does a customer see how busy its devices were?

use serde_json::Value;

use crate::test_service::{ID, TestService};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::lwm2m::{read, when_active};

#[test]
fn events_and_requests_of_a_customer_are_counted_by_the_minute() {
    let mut setup = TestService::new();
    setup.caller.create_action(ID, &when_active(read("/3/0/0")));
    // The first contact and the registration.
    assert_eq!(activity(&setup.caller), (2, 1));
    let stranger = Caller::of_new_customer(&setup.service, "Umbrella");
    assert_eq!(activity(&stranger), (0, 0));
    setup.crash();
    assert_eq!(
        activity(&setup.caller),
        (0, 0),
        "the counts begin with the process"
    );
}

/// The events and the requests of all minutes.
fn activity(caller: &Caller) -> (u64, u64) {
    let shown = caller
        .request("GET", &format!("{API}/activity"))
        .expect(200);
    let minutes = shown["minutes"].as_array().unwrap();
    let sum = |name: &str| -> u64 { minutes.iter().filter_map(|it| count(it, name)).sum() };
    (sum("events"), sum("requests"))
}

fn count(minute: &Value, name: &str) -> Option<u64> {
    minute[name].as_u64()
}
