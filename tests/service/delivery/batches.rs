//! Do the events of several devices arrive in one request, at an endpoint that wants that?

use serde_json::{Value, json};

use super::events::is_signed;
use super::{DeliveryService, SECRET, STEADY, counted, events_in, path, values_of};
use crate::vocabulary::endpoint::{Endpoint, Reply, taken};

#[test]
fn events_of_several_devices_arrive_in_one_signed_request() {
    let setup = DeliveryService::with(&[STEADY]);
    let endpoint = Endpoint::new();
    let id = setup.webhook(&batched(
        &endpoint,
        &json!({ "maxEvents": 4, "maxWaitMs": 60_000 }),
    ));
    let mut meters = [setup.meter("meter-1"), setup.meter("meter-2")];
    for number in [1.0, 2.0] {
        for meter in &mut meters {
            meter.send(number);
        }
    }
    let posted = endpoint.once_taken(1);
    let [request] = &*posted else {
        panic!("{posted:?}");
    };
    assert!(is_signed(request, &request.text));
    assert_eq!(events_in(request).len(), 4);
    for meter in &meters {
        assert_eq!(values_of(&posted, &meter.name), counted(2));
    }
    assert_eq!(setup.once_done(&id)["state"], "INTEGRATION_ACTIVE");
}

#[test]
fn a_refused_batch_is_repeated_as_a_whole_under_the_same_id() {
    let setup = DeliveryService::with(&[STEADY]);
    let endpoint = Endpoint::replying(|_, number| match number {
        0 | 1 => Reply::Status(503),
        _ => Reply::Status(204),
    });
    let batch = json!({ "maxEvents": 2, "maxWaitMs": 60_000 });
    let id = setup.webhook(&batched(&endpoint, &batch));
    let mut meters = [setup.meter("meter-1"), setup.meter("meter-2")];
    for meter in &mut meters {
        meter.send(1.0);
    }
    let tried = endpoint.once(3);
    assert!(tried.iter().all(|it| it.id() == tried[0].id()));
    assert!(tried.iter().all(|it| it.text == tried[0].text));
    for meter in &mut meters {
        meter.send(2.0);
    }
    setup.once_done(&id);
    let posted = taken(&endpoint.posted());
    for meter in &meters {
        assert_eq!(values_of(&posted, &meter.name), counted(2));
    }
}

#[test]
fn acknowledged_values_arrive_in_batches_after_a_kill() {
    let mut setup = DeliveryService::with(&[STEADY]);
    let mut endpoint = Endpoint::new();
    let id = setup.webhook(&batched(
        &endpoint,
        &json!({ "maxEvents": 3, "maxWaitMs": 50 }),
    ));
    let mut meter = setup.meter("meter-1");
    endpoint.close();
    for number in 1..=7 {
        meter.send(f64::from(number));
    }
    setup.service.kill();
    endpoint.open();
    setup.revive();
    setup.once_done(&id);
    let posted = taken(&endpoint.posted());
    assert!(posted.iter().all(|request| events_in(request).len() <= 3));
    assert_eq!(values_of(&posted, "meter-1"), counted(7));
}

#[test]
fn batches_are_shown_changed_and_ended() {
    let setup = DeliveryService::with(&[]);
    let endpoint = Endpoint::new();
    let id = setup.webhook(&batched(&endpoint, &json!({})));
    let usual = json!({ "maxEvents": 100, "maxWaitMs": 1_000 });
    assert_eq!(setup.shown(&id)["batch"], usual);
    let amend = |batch: Value, status| {
        let body = json!({ "batch": batch });
        let answer = setup.caller.try_send("PATCH", &path(&id), &body).unwrap();
        answer.expect(status)
    };
    let amended = amend(json!({ "maxEvents": 1, "maxWaitMs": 0 }), 200);
    assert_eq!(amended["batch"], json!({ "maxEvents": 1, "maxWaitMs": 0 }));
    let refused = amend(
        json!({ "maxEvents": 101, "maxWaitMs": 60_001, "max": 1 }),
        400,
    );
    let faults = refused["errors"].as_array().unwrap().iter();
    let fields: Vec<&Value> = faults.map(|it| &it["field"]).collect();
    assert_eq!(fields, ["batch.maxEvents", "batch.maxWaitMs", "batch.max"]);
    assert_eq!(amend(Value::Null, 200).get("batch"), None);
    setup.meter("meter-1").send(1.0);
    let posted = endpoint.once_taken(1);
    assert_eq!(posted[0].json()["type"], "TELEMETRY_DATA");
}

fn batched(endpoint: &Endpoint, batch: &Value) -> Value {
    json!({
        "name": "Values",
        "url": endpoint.url("/in"),
        "eventTypes": [{ "type": "TELEMETRY_DATA" }],
        "secret": SECRET,
        "batch": batch,
    })
}
