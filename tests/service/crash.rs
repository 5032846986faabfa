//! Is everything that was acknowledged still there after the service was killed?

use harness::device::resource::AnswerMode;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::lwm2m::path::Path;
use serde_json::{Value, json};

use crate::test_service::{ID, TestService, silent_device, start};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::client::ApiClient;
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::lwm2m::{outcome, read, when_active, write};
use crate::vocabulary::wire::{DeviceSocket, register, request, update};

const ZONE: Path = Path::resource(3, 0, 15);
const FIRST_CONTACT: &str = "Lifecycle[DeviceFirstTimeRegistered]";

#[test]
fn a_scheduled_request_is_sent_exactly_once_after_a_crash() {
    let mut setup = TestService::new();
    let id = setup
        .caller
        .create_action(ID, &when_active(write("/3/0/15", "once")));
    setup.crash();
    assert_eq!(setup.caller.action(&id)["status"], "SCHEDULED");
    assert!(setup.device.performed().is_empty());
    setup.device.update();
    let action = setup.caller.final_action(&id);
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
    assert_eq!(action["sendAttemptsLeft"], 0);
    setup.crash();
    setup.device.update();
    // Requests are sent oldest first: when this one is done, no older one is left.
    assert_eq!(
        outcome(&setup.caller.perform(ID, &read("/3/0/0"))).0,
        "SUCCEEDED"
    );
    assert_eq!(setup.device.payloads(ZONE), ["once"]);
    assert_eq!(setup.caller.action(&id), action);
}

#[test]
fn requests_created_at_the_same_time_keep_their_order_across_a_crash() {
    let mut setup = TestService::new();
    let payloads: Vec<String> = (0..10).map(|number| format!("number {number}")).collect();
    for payload in &payloads {
        setup
            .caller
            .create_action(ID, &when_active(write("/3/0/15", payload)));
    }
    setup.crash();
    setup.device.update();
    assert_eq!(
        outcome(&setup.caller.perform(ID, &read("/3/0/0"))).0,
        "SUCCEEDED"
    );
    assert_eq!(setup.device.payloads(ZONE), payloads);
}

#[test]
fn an_attempt_in_flight_at_a_crash_counts_as_made() {
    let mut setup = TestService::new();
    setup.device.answer_with(ZONE, AnswerMode::Silent);
    let id = setup
        .caller
        .create_action(ID, &write("/3/0/15", "at most once"));
    setup.device.wait_unanswered(ZONE);
    setup.service.kill();
    setup.device.answer_with(ZONE, AnswerMode::Piggybacked);
    setup.crash();
    let action = setup.caller.final_action(&id);
    assert_eq!(outcome(&action), ("FAILED", ""), "{action}");
    assert_eq!(action["sendAttemptsLeft"], 0);
    assert!(action["resultData"]["errorMessage"].is_string(), "{action}");
    let failed = "DeviceController[ActionRequestFailed]";
    assert_eq!(setup.caller.log_messages()[0], failed);
    setup.device.update();
    assert_eq!(
        outcome(&setup.caller.perform(ID, &read("/3/0/0"))).0,
        "SUCCEEDED"
    );
    assert!(
        setup.device.payloads(ZONE).is_empty(),
        "it was not sent again"
    );
}

#[test]
fn a_cancelled_request_stays_cancelled() {
    let mut setup = TestService::new();
    let id = setup
        .caller
        .create_action(ID, &when_active(write("/3/0/15", "never")));
    setup.caller.cancel_action(&id).expect(200);
    setup.crash();
    assert_eq!(setup.caller.action(&id)["status"], "CANCELLED");
    assert_eq!(setup.caller.cancel_action(&id).status, 409);
    setup.device.update();
    assert_eq!(
        outcome(&setup.caller.perform(ID, &read("/3/0/0"))).0,
        "SUCCEEDED"
    );
    assert!(setup.device.payloads(ZONE).is_empty());
}

#[test]
fn a_status_that_was_shown_is_unchanged_after_a_crash() {
    let mut setup = TestService::new();
    for round in 0..12 {
        let id = setup
            .caller
            .create_action(ID, &write("/3/0/15", &format!("round {round}")));
        // Polls without a pause, so that the crash follows the final status at once.
        let shown = std::iter::repeat_with(|| setup.caller.action(&id))
            .find(|action| action["status"] != "IN_PROGRESS")
            .expect("it ends");
        setup.crash();
        assert_eq!(setup.caller.action(&id), shown);
    }
}

#[test]
fn records_and_the_log_are_the_same_after_a_crash() {
    let mut setup = TestService::new();
    setup.caller.perform(ID, &read("/3/0/0"));
    setup.caller.perform(ID, &write("/3/0/0", "x"));
    setup.caller.perform(ID, &write("/3303/0/5700", "warm"));
    let pages = |caller: &Caller| {
        let pages = [
            "integrate/devices/actions/requests",
            "administrationLogs",
            "devices",
        ];
        pages.map(|path| caller.request("GET", &format!("{API}/{path}")).expect(200))
    };
    let before = pages(&setup.caller);
    setup.crash();
    assert_eq!(pages(&setup.caller), before);
    setup.crash();
    assert_eq!(pages(&setup.caller), before);
}

#[test]
fn a_registration_survives_a_crash() {
    let (mut service, mut caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let wire = DeviceSocket::to(&service);
    let location = wire.register(ID, 1);
    let before = registration(&caller);
    for id in 2..5 {
        service.kill();
        service.start_again();
        caller.follow(&service);
        assert_eq!(registration(&caller)["objects"], before["objects"]);
        assert_eq!(wire.ask(&update(&location, id)).code, Code::CHANGED);
    }
    assert_eq!(registration(&caller)["registered"], before["registered"]);
    let id = caller.create_action(ID, &read("/3/0/0"));
    let request = wire.receive();
    assert_eq!(
        request.code,
        Code::GET,
        "it is reached where it registered: {id}"
    );
}

#[test]
fn a_send_repeated_after_a_kill_is_answered_and_published_once() {
    let (mut service, mut caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let wire = DeviceSocket::to(&service);
    wire.register(ID, 1);
    let published = |caller: &Caller| {
        let path = format!("{API}/devices/{ID}/messages?type=TELEMETRY_DATA");
        let page = caller.request("GET", &path).expect(200);
        let items = page["items"].as_array().unwrap();
        let ids = items.iter().map(|item| item["id"].clone());
        ids.collect::<Vec<Value>>()
    };
    let mut all = Vec::new();
    for round in 1..=4_u16 {
        let send = request(Code::POST, round + 1).with_uri_path(["dp"]);
        let send = send.with_content_format(ContentFormat::SENML_JSON);
        let send = send.with_payload(format!(r#"[{{"n":"/3/0/9","v":{round}}}]"#));
        assert_eq!(wire.ask_until_answered(&send).code, Code::CHANGED);
        // The answer is lost with the service.
        let before = published(&caller);
        assert_eq!(before.len(), usize::from(round));
        assert_eq!(before[1..], all);
        all = before;
        service.kill();
        service.start_again();
        caller.follow(&service);
        for _ in 0..2 {
            assert_eq!(wire.ask_until_answered(&send).code, Code::CHANGED);
            assert_eq!(published(&caller), all);
        }
    }
}

#[test]
fn first_contact_is_logged_exactly_once() {
    let mut setup = TestService::new();
    for _ in 0..3 {
        setup.device.reboot();
        setup.crash();
        setup.device.update();
        setup.device.deregister();
        setup.device.reboot();
    }
    assert_eq!(setup.caller.log_messages(), [FIRST_CONTACT]);
}

#[test]
fn first_contact_at_the_moment_of_a_crash_is_logged_exactly_once() {
    let (mut service, mut caller) = start(&[]);
    for round in 0..8 {
        let name = format!("device-{round}");
        caller.create_device(&name, DEVICE_IP);
        let wire = DeviceSocket::to(&service);
        wire.send(&register(&name, 1).encode());
        if round % 2 == 0 {
            // The crash comes while the answer is sent, or just before or after.
            assert_eq!(wire.receive().code, Code::CREATED);
        }
        service.kill();
        service.start_again();
        caller.follow(&service);
        // The answer from before the crash may still arrive.
        let answer = wire.ask_among_others(&register(&name, 2));
        assert_eq!(answer.code, Code::CREATED);
        let path = format!("{API}/administrationLogs?iccid={name}");
        let log = caller.request("GET", &path).expect(200);
        let messages: Vec<&Value> = log["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| &entry["message"])
            .collect();
        assert_eq!(messages, [FIRST_CONTACT], "round {round}");
    }
}

#[test]
fn tokens_survive_a_crash_and_revoked_ones_stay_revoked() {
    let (mut service, _) = start(&[]);
    let client = ApiClient::of_new_customer(&service, "Acme");
    let revoked = ApiClient::make(&service, &client.customer, &json!({ "name": "revoked" }));
    let mut callers = [client.caller(&service), revoked.caller(&service)];
    let operator_token = service.operator_token();
    let mut operator = Caller::operator(&service);
    assert_eq!(operator.request("DELETE", &revoked.path()).status, 204);
    service.kill();
    service.start_again();
    callers
        .iter_mut()
        .for_each(|caller| caller.follow(&service));
    operator.follow(&service);
    let statuses = callers.map(|caller| caller.request("GET", &format!("{API}/devices")).status);
    assert_eq!(statuses, [200, 401]);
    assert_eq!(service.operator_token(), operator_token);
    assert_eq!(
        operator.request("GET", "/operator-api/v1/customers").status,
        200
    );
    assert_eq!(revoked.ask_token(&service).status, 401);
    client
        .caller(&service)
        .request("GET", &format!("{API}/devices"))
        .expect(200);
}

#[test]
fn networks_of_a_customer_bind_after_a_crash() {
    let (mut service, _) = start(&[]);
    let client = ApiClient::of_new_customer(&service, "Acme");
    let path = format!("/operator-api/v1/customers/{}/networks", client.customer);
    let networks = json!({ "networks": ["10.20.0.0/16"] });
    let mut operator = Caller::operator(&service);
    let set = operator.try_send("PUT", &path, &networks).unwrap();
    assert_eq!(set.expect(200), networks);
    service.kill();
    service.start_again();
    operator.follow(&service);
    assert_eq!(operator.request("GET", &path).expect(200), networks);
    let outside = json!({ "deviceId": "meter", "ip": "10.21.0.1" });
    let caller = client.caller(&service);
    assert_eq!(caller.post(&format!("{API}/devices"), &outside).status, 400);
}

#[test]
fn created_and_deleted_devices_stay_so_after_a_crash() {
    let (mut service, mut caller) = start(&[]);
    for round in 0..4 {
        let (made, deleted) = (format!("made-{round}"), format!("deleted-{round}"));
        silent_device(&caller, &deleted);
        assert_eq!(
            caller
                .request("DELETE", &format!("{API}/devices/{deleted}"))
                .status,
            204
        );
        silent_device(&caller, &made);
        service.kill();
        service.start_again();
        caller.follow(&service);
        caller
            .request("GET", &format!("{API}/devices/{made}"))
            .expect(200);
        caller
            .request("GET", &format!("{API}/devices/{deleted}"))
            .expect(404);
        silent_device(&caller, &deleted);
    }
}

fn registration(caller: &Caller) -> Value {
    let device = caller
        .request("GET", &format!("{API}/devices/{ID}"))
        .expect(200);
    assert!(device["registration"].is_object(), "{device}");
    device["registration"].clone()
}
