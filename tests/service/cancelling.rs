//! Can exactly the requests that were not sent be cancelled, and is a cancelled request never sent?

use std::thread;

use harness::device::configuration::Configuration;
use harness::device::resource::AnswerMode;
use protocol::lwm2m::path::Path;
use serde_json::{Value, json};

use crate::test_service::{ID, TestService, error_codes, page, silent_device, start};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::client::{ApiClient, CUSTOMERS};
use crate::vocabulary::device::{DEVICE_IP, Device};
use crate::vocabulary::http::Response;
use crate::vocabulary::lwm2m::{outcome, read, when_active, write};

const ZONE: Path = Path::resource(3, 0, 15);
/// The list of all requests.
const REQUESTS: &str = "/integrate/devices/actions/requests";
/// An id that no request has.
const UNKNOWN: &str = "019a0000-0000-7000-8000-000000000000";

#[test]
fn a_cancelled_request_is_never_sent() {
    let mut setup = TestService::new();
    let zones = ["first", "cancelled", "last"];
    let ids = zones.map(|zone| {
        setup
            .caller
            .create_action(ID, &when_active(write("/3/0/15", zone)))
    });
    let answer = setup.caller.cancel_action(&ids[1]).expect(200);
    assert_eq!(answer, json!({ "id": ids[1], "status": "CANCELLED" }));
    setup.device.update();
    assert_eq!(outcome(&setup.caller.final_action(&ids[2])).0, "SUCCEEDED");
    assert_eq!(setup.device.payloads(ZONE), ["first", "last"]);
    let cancelled = setup.caller.action(&ids[1]);
    assert_eq!(cancelled["status"], "CANCELLED");
    assert_eq!(
        cancelled["sendAttemptsLeft"], cancelled["sendAttempts"],
        "none was made"
    );
}

#[test]
fn only_a_scheduled_request_can_be_cancelled() {
    let mut setup = TestService::new();
    let scheduled = setup.caller.create_action(ID, &when_active(read("/3/0/0")));
    setup.caller.cancel_action(&scheduled).expect(200);
    let done = setup.caller.create_action(ID, &read("/3/0/0"));
    setup.caller.final_action(&done);
    setup.device.answer_with(ZONE, AnswerMode::Silent);
    let in_flight = setup.caller.create_action(ID, &read("/3/0/15"));
    setup.device.wait_unanswered(ZONE);
    for id in [&scheduled, &done, &in_flight] {
        let before = setup.caller.action(id);
        let refused = setup.caller.cancel_action(id).expect(409);
        assert_eq!(error_codes(&refused), ["REQUEST_NOT_SCHEDULED"], "{before}");
        assert_eq!(setup.caller.action(id), before);
    }
}

#[test]
fn an_unknown_request_or_one_of_another_customer_is_not_found() {
    let (service, caller) = start(&[]);
    let stranger = Caller::of_new_customer(&service, "Umbrella");
    silent_device(&caller, ID);
    let id = caller.create_action(ID, &when_active(read("/3/0/0")));
    for (who, id) in [
        (&caller, UNKNOWN),
        (&caller, "17"),
        (&stranger, id.as_str()),
    ] {
        assert_eq!(
            error_codes(&who.cancel_action(id).expect(404)),
            ["NOT_FOUND"]
        );
        let path = format!("{API}/integrate/devices/actions/requests/{id}");
        assert_eq!(
            error_codes(&who.request("GET", &path).expect(404)),
            ["NOT_FOUND"]
        );
    }
    for (who, device) in [(&caller, "nobody"), (&stranger, ID)] {
        assert_eq!(
            error_codes(&cancel_all(who, device).expect(404)),
            ["NOT_FOUND"]
        );
    }
    assert_eq!(caller.action(&id)["status"], "SCHEDULED");
}

#[test]
fn all_scheduled_requests_of_a_device_are_cancelled_at_once() {
    let mut setup = TestService::new();
    silent_device(&setup.caller, "other");
    let of_other = setup
        .caller
        .create_action("other", &when_active(read("/3/0/0")));
    assert_eq!(cancel_all(&setup.caller, ID).expect(200), json!([]));
    setup.device.answer_with(ZONE, AnswerMode::Silent);
    let in_flight = setup.caller.create_action(ID, &read("/3/0/15"));
    setup.device.wait_unanswered(ZONE);
    let mut ids: Vec<String> = (0..3)
        .map(|_| setup.caller.create_action(ID, &when_active(read("/3/0/0"))))
        .collect();
    let answer = cancel_all(&setup.caller, ID).expect(200);
    let mut expected: Vec<Value> = ids
        .iter()
        .map(|id| json!({ "id": id, "status": "CANCELLED" }))
        .collect();
    let mut cancelled = answer.as_array().unwrap().clone();
    let by_id = |entry: &Value| entry["id"].to_string();
    cancelled.sort_by_key(by_id);
    expected.sort_by_key(by_id);
    assert_eq!(cancelled, expected);
    ids.push(in_flight);
    let statuses = ids
        .iter()
        .map(|id| setup.caller.action(id)["status"].clone());
    let statuses: Vec<Value> = statuses.collect();
    assert_eq!(
        statuses,
        ["CANCELLED", "CANCELLED", "CANCELLED", "IN_PROGRESS"]
    );
    assert_eq!(setup.caller.action(&of_other)["status"], "SCHEDULED");
    assert_eq!(cancel_all(&setup.caller, ID).expect(200), json!([]));
}

#[test]
fn a_request_cancelled_while_its_device_wakes_is_either_cancelled_or_sent() {
    let setup = TestService::new();
    for round in 0..40 {
        let payload = format!("round {round}");
        let id = setup
            .caller
            .create_action(ID, &when_active(write("/3/0/15", &payload)));
        let caller = setup.caller.clone();
        let cancelled = id.clone();
        let cancelling = thread::spawn(move || caller.cancel_action(&cancelled).status);
        setup.device.begin_update();
        let status = cancelling.join().unwrap();
        let action = setup.caller.final_action(&id);
        let sent = setup.device.payloads(ZONE).contains(&payload);
        let expected = match status {
            200 => ("CANCELLED", false),
            409 => ("SUCCEEDED", true),
            other => panic!("answered {other}: {action}"),
        };
        assert_eq!((outcome(&action).0, sent), expected, "{action}");
    }
}

#[test]
fn a_request_for_now_can_be_cancelled_until_it_is_sent() {
    let mut setup = TestService::new();
    setup.device.answer_with(ZONE, AnswerMode::Silent);
    let in_flight = setup.caller.create_action(ID, &read("/3/0/15"));
    setup.device.wait_unanswered(ZONE);
    let [cancelled, kept] =
        ["cancelled", "kept"].map(|data| setup.caller.create_action(ID, &write("/3/0/15", data)));
    for (id, status) in [(&in_flight, "IN_PROGRESS"), (&cancelled, "SCHEDULED")] {
        assert_eq!(setup.caller.action(id)["status"], status);
    }
    setup.caller.cancel_action(&cancelled).expect(200);
    setup.device.deregister();
    let failed = setup.caller.final_action(&kept);
    assert_eq!(failed["status"], "FAILED", "{failed}");
    let why = "the device deregistered before the request was sent";
    assert_eq!(failed["resultData"], json!({ "errorMessage": why }));
    assert_eq!(setup.caller.action(&cancelled)["status"], "CANCELLED");
    assert!(setup.device.payloads(ZONE).is_empty());
}

#[test]
fn requests_end_with_their_device_and_stay_readable() {
    let mut setup = TestService::new();
    let finished = setup.caller.create_action(ID, &read("/3/0/0"));
    let done = setup.caller.final_action(&finished);
    setup.device.answer_with(ZONE, AnswerMode::Silent);
    let in_flight = setup.caller.create_action(ID, &read("/3/0/15"));
    setup.device.wait_unanswered(ZONE);
    let waiting = setup.caller.create_action(ID, &when_active(read("/3/0/0")));
    delete_device(&setup.caller);

    let failed = setup.caller.action(&in_flight);
    assert_eq!(failed["status"], "FAILED", "{failed}");
    let why = json!({ "errorMessage": "the device was removed" });
    assert_eq!(failed["resultData"], why);
    let cancelled = setup.caller.action(&waiting);
    assert_eq!(cancelled["status"], "CANCELLED", "{cancelled}");
    assert_eq!(cancelled["sendAttemptsLeft"], cancelled["sendAttempts"]);
    assert_eq!(setup.caller.action(&finished), done);
    let ids = [&*waiting, &in_flight, &finished];
    for id in ids {
        let refused = setup.caller.cancel_action(id).expect(409);
        assert_eq!(error_codes(&refused), ["REQUEST_NOT_SCHEDULED"]);
    }
    let refused = cancel_all(&setup.caller, ID).expect(404);
    assert_eq!(error_codes(&refused), ["NOT_FOUND"]);
    let log = setup.caller.log_messages();
    assert_eq!(log[0], "DeviceController[ActionRequestFailed]");
    assert_archived(&setup.caller, &ids);
}

#[test]
fn a_device_created_again_has_no_requests_of_the_earlier_one_to_be_sent() {
    let (service, caller) = start(&[("SIGNALBOX_SCHEDULED_MAX", "1")]);
    caller.create_device(ID, DEVICE_IP);
    let earlier = caller.create_action(ID, &when_active(read("/3/0/0")));
    delete_device(&caller);
    caller.create_device(ID, DEVICE_IP);
    assert_archived(&caller, &[&earlier]);
    let later = caller.create_action(ID, &when_active(read("/3/0/15")));
    let device = Device::registered(&service, Configuration::new(ID));
    let action = caller.final_action(&later);
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    assert_eq!(
        device.performed().len(),
        1,
        "nothing of the earlier life was sent"
    );
    assert_archived(&caller, &[&later, &earlier]);
}

#[test]
fn a_customer_created_again_has_no_requests() {
    let (service, _) = start(&[]);
    let operator = Caller::operator(&service);
    let new = || {
        let body = json!({ "id": "phoenix", "name": "Phoenix" });
        operator.post(CUSTOMERS, &body).expect(201);
        let client = ApiClient::make(&service, "phoenix", &json!({ "name": "a test" }));
        client.caller(&service)
    };
    let pages = |caller: &Caller| {
        let (ids, page) = page(caller, &format!("{REQUESTS}?pageSize=1"));
        (ids.len(), page["pageAmount"].clone())
    };
    let caller = new();
    // One device is deleted before its customer.
    for device in [ID, "other"] {
        caller.create_device(device, DEVICE_IP);
        // Together they are more than one batch deletes.
        for _ in 0..40 {
            let id = caller.create_action(device, &when_active(read("/3/0/0")));
            caller.cancel_action(&id).expect(200);
        }
        caller.create_action(device, &when_active(read("/3/0/0")));
    }
    delete_device(&caller);
    assert_eq!(pages(&caller), (1, json!(82)));
    let deleted = operator.request("DELETE", &format!("{CUSTOMERS}/phoenix"));
    assert_eq!(deleted.status, 204);
    assert_eq!(pages(&new()), (0, json!(1)));
}

fn delete_device(caller: &Caller) {
    let path = format!("{API}/devices/{ID}");
    assert_eq!(caller.request("DELETE", &path).status, 204);
}

/// Checks that these requests, newest first, are all requests of the device, and final.
fn assert_archived(caller: &Caller, ids: &[&str]) {
    let only = json!({ "page": 1, "pageAmount": 1 });
    for (list, expected) in [("", ids), ("/archived", ids), ("/active", &[])] {
        let (found, page) = page(caller, &format!("{REQUESTS}{list}?deviceId={ID}"));
        assert_eq!(found, expected, "{list}");
        assert_eq!(page, only, "{list}");
    }
}

fn cancel_all(caller: &Caller, device: &str) -> Response {
    caller.request(
        "DELETE",
        &format!("{API}/integrate/devices/{device}/actions/requests"),
    )
}
