//! Does a bulk call with a filter create one request for each device, whatever happens meanwhile?

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::errors::check;
use crate::test_service::{ID, TestService, error_codes, keys, page, silent_device, start, with};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::client::ApiClient;
use crate::vocabulary::http::Response;
use crate::vocabulary::lwm2m::{outcome, read, when_active};
use crate::vocabulary::poll::until;

const MANY: &str = "/management-api/v1/integrate/devices/actions/LWM2M";
const REQUESTS: &str = "/integrate/devices/actions/requests";

/// More devices than a job is through with before a test looks at it.
const FLEET: usize = 5_000;

#[test]
fn each_device_that_matches_gets_a_request_or_a_reason() {
    let setup = TestService::new();
    for number in 0..150 {
        silent_device(&setup.caller, &format!("silent-{number:03}"));
    }
    let created = post(&setup.caller, read("/3/0/0"), &json!({})).expect(202);
    assert_eq!(keys(&created), ["jobId", "matched"]);
    assert_eq!(created["matched"], 151);
    let job = done(&setup.caller, &created);
    let shape = ["accepted", "created", "id", "matched", "rejected", "state"];
    assert_eq!(keys(&job), shape);
    assert_eq!(
        (&job["accepted"], &job["rejected"]),
        (&json!(1), &json!(150))
    );
    let devices = devices_of(&setup.caller, &job);
    assert_eq!(devices.len(), 151);
    assert_eq!(keys(&devices[0]), ["deviceId", "requestId", "status"]);
    assert_eq!(
        (&devices[0]["deviceId"], &devices[0]["status"]),
        (&json!(ID), &json!("ACCEPTED"))
    );
    let request = text(&devices[0]["requestId"]);
    assert_eq!(
        outcome(&setup.caller.final_action(&request)),
        ("SUCCEEDED", "205")
    );
    let refused = json!({
        "deviceId": "silent-149", "status": "REJECTED", "code": "DEVICE_NOT_REGISTERED",
        "message": "the device is not registered",
    });
    assert_eq!(devices[150], refused);
    let answer = post(
        &setup.caller,
        read("/3/0/0"),
        &json!({ "registered": true }),
    );
    assert_eq!(answer.expect(202)["matched"], 1);
    let filter = json!({ "registered": false, "q": "silent-01", "protocol": null });
    let answer = post(&setup.caller, when_active(read("/3/0/0")), &filter);
    let job = done(&setup.caller, &answer.expect(202));
    assert_eq!(
        (&job["matched"], &job["accepted"]),
        (&json!(10), &json!(10))
    );
}

#[test]
fn a_dry_run_counts_and_creates_nothing() {
    let (_service, caller) = start(&[("SIGNALBOX_JOB_DEVICES_MAX", "12")]);
    for number in 10..22 {
        silent_device(&caller, &format!("d{number}"));
    }
    let body = || when_active(read("/3/0/0"));
    let dry = |filter: Value| post(&caller, with(body(), "dryRun", true), &filter).expect(200);
    let examples: Vec<String> = (10..20).map(|number| format!("d{number}")).collect();
    assert_eq!(
        dry(json!({})),
        json!({ "matched": 12, "examples": examples })
    );
    let one = json!({ "matched": 1, "examples": ["d21"] });
    assert_eq!(dry(json!({ "q": "d21" })), one);
    let none = json!({ "matched": 0, "examples": [] });
    assert_eq!(dry(json!({ "protocol": "UDP" })), none);
    silent_device(&caller, "d22");
    for body in [body(), with(body(), "dryRun", true)] {
        let too_many = post(&caller, body, &json!({}));
        check(&too_many, 400, &[("TOO_MANY_DEVICES", "filter")]);
    }
    assert!(page(&caller, "/jobs").0.is_empty(), "nothing was created");
    assert!(page(&caller, REQUESTS).0.is_empty(), "nothing was created");
    let nobody = post(&caller, body(), &json!({ "q": "x" })).expect(202);
    let job = job(&caller, &nobody);
    assert_eq!(
        (&job["state"], &job["matched"]),
        (&json!("DONE"), &json!(0))
    );
}

#[test]
fn a_job_by_tag_asks_exactly_the_devices_with_the_tag() {
    let (_service, caller) = start(&[]);
    let tags = |number: usize| match number % 3 {
        0 => json!({ "site": "berlin", "floor": (number % 2).to_string() }),
        1 => json!({ "site": "paris" }),
        _ => json!({}),
    };
    let device = |number| json!({ "deviceId": id_of(number), "tags": tags(number) });
    import(&caller, (0..FLEET).map(device));
    let berlin: Vec<String> = (0..FLEET).step_by(3).map(id_of).collect();
    let body = || when_active(read("/3/0/0"));
    let filter = json!({ "tag": "site:berlin" });
    let counted = post(&caller, with(body(), "dryRun", true), &filter).expect(200);
    assert_eq!(
        counted,
        json!({ "matched": berlin.len(), "examples": berlin[..10] })
    );
    let job = done(&caller, &post(&caller, body(), &filter).expect(202));
    assert_eq!(
        (&job["matched"], &job["accepted"]),
        (&json!(berlin.len()), &json!(berlin.len()))
    );
    let devices = devices_of(&caller, &job);
    let asked: Vec<String> = devices.iter().map(|it| text(&it["deviceId"])).collect();
    assert_eq!(asked, berlin);
    assert_eq!(requests(&caller), (berlin.len(), berlin.len()));

    let both = json!({ "tag": ["site:berlin", "floor:1"], "registered": false });
    let created = post(&caller, body(), &both).expect(202);
    let odd = (0..FLEET).step_by(3).filter(|number| number % 2 == 1);
    assert_eq!(created["matched"], json!(odd.count()));
    let seen = json!({ "lastSeenAfter": "2026-01-01T00:00:00.000" });
    assert_eq!(post(&caller, body(), &seen).expect(202)["matched"], 0);
}

#[test]
fn every_error_of_a_filter_is_reported_at_once() {
    let (_service, caller) = start(&[]);
    let cases: [(Value, &[(&str, &str)]); 5] = [
        (json!("all"), &[("WRONG_TYPE", "filter")]),
        (
            json!({
                "q": "", "registered": "true", "protocol": "SMTP", "colour": "red", "tag": [],
                "version": "9", "object": -1, "lastSeenBefore": "now", "firmware": "",
            }),
            &[
                ("INVALID_VALUE", "filter.firmware"),
                ("INVALID_VALUE", "filter.lastSeenBefore"),
                ("INVALID_VALUE", "filter.protocol"),
                ("INVALID_VALUE", "filter.q"),
                ("INVALID_VALUE", "filter.version"),
                ("OUT_OF_RANGE", "filter.object"),
                ("OUT_OF_RANGE", "filter.tag"),
                ("UNKNOWN_PROPERTY", "filter.colour"),
                ("WRONG_TYPE", "filter.registered"),
            ],
        ),
        (json!({ "page": 1 }), &[("UNKNOWN_PROPERTY", "filter.page")]),
        (json!(null), &[("REQUIRED", "deviceIds")]),
        (json!([]), &[("WRONG_TYPE", "filter")]),
    ];
    for (filter, faults) in cases {
        check(&post(&caller, read("/3/0/0"), &filter), 400, faults);
    }
    let both = with(read("/3/0/0"), "deviceIds", json!(["a"]));
    let refused = post(&caller, both, &json!({}));
    check(&refused, 400, &[("UNKNOWN_PROPERTY", "deviceIds")]);
    let dry = with(read("/3/0/0"), "deviceIds", json!(["a"]));
    let refused = caller.post(MANY, &with(dry, "dryRun", true));
    check(&refused, 400, &[("UNKNOWN_PROPERTY", "dryRun")]);
}

#[test]
fn a_job_goes_on_after_a_crash_and_asks_no_device_twice() {
    let (mut service, mut caller) = start(&[]);
    import_fleet(&caller);
    let created = post(&caller, when_active(read("/3/0/0")), &json!({})).expect(202);
    for _ in 0..3 {
        let before = &job(&caller, &created)["accepted"];
        until("progress", || {
            let job = job(&caller, &created);
            (job["state"] == "DONE" || job["accepted"].as_u64() > before.as_u64()).then_some(())
        });
        service.kill();
        service.start_again();
        caller.follow(&service);
    }
    let stopped = job(&caller, &created);
    assert!(service.stop().success());
    service.start_again();
    caller.follow(&service);
    assert!(job(&caller, &created)["accepted"].as_u64() >= stopped["accepted"].as_u64());
    let job = done(&caller, &created);
    assert_eq!(job["accepted"], json!(FLEET));
    assert_eq!(
        requests(&caller),
        (FLEET, FLEET),
        "one request for each device"
    );
    let devices = devices_of(&caller, &job);
    let named: BTreeSet<String> = devices.iter().map(|it| text(&it["requestId"])).collect();
    assert_eq!(named.len(), FLEET);
}

#[test]
fn a_cancelled_job_asks_no_further_device() {
    let (mut service, mut caller) = start(&[("SIGNALBOX_JOBS_RUNNING_MAX", "1")]);
    import_fleet(&caller);
    let body = when_active(read("/3/0/0"));
    let created = post(&caller, body.clone(), &json!({})).expect(202);
    let another = post(&caller, body, &json!({}));
    let path = path_of(&created);
    let cancelled = caller.request("DELETE", &path).expect(200);
    // The first job was running until it was cancelled.
    assert_eq!(error_codes(&another.expect(409)), ["TOO_MANY_JOBS"]);
    assert_eq!(cancelled["state"], "CANCELLED");
    let accepted = cancelled["accepted"].as_u64().unwrap() as usize;
    assert!(accepted < FLEET);
    let again = caller.request("DELETE", &path);
    check(&again, 409, &[("JOB_NOT_RUNNING", "")]);
    service.kill();
    service.start_again();
    caller.follow(&service);
    assert_eq!(job(&caller, &created), cancelled);
    assert_eq!(requests(&caller), (accepted, accepted));
    let devices = devices_of(&caller, &cancelled);
    let open = devices.iter().filter(|it| it["status"] == "CANCELLED");
    assert_eq!(open.count(), FLEET - accepted);
}

#[test]
fn a_repeated_call_names_the_same_job() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    let body = with(when_active(read("/3/0/0")), "filter", json!({}));
    let call = |body: &Value| {
        let request = caller.authorized("POST", MANY);
        let request = request.header("idempotency-key", "k").json(body);
        request.send(caller.address())
    };
    let first = call(&body);
    let id = text(&first.expect(202)["jobId"]);
    let location = format!("{API}/jobs/{id}");
    assert_eq!(first.header("location"), Some(location.as_str()));
    assert_eq!(call(&body).expect(202), first.expect(202));
    assert_eq!(page(&caller, "/jobs").0, [id]);
    let other = with(body, "sendAttempts", 2);
    check(
        &call(&other),
        409,
        &[("IDEMPOTENCY_KEY_REUSED", "Idempotency-Key")],
    );
}

#[test]
fn jobs_are_listed_newest_first_and_belong_to_their_customer() {
    let (service, caller) = start(&[]);
    let create = |_| {
        let created = post(&caller, when_active(read("/3/0/0")), &json!({}));
        text(&created.expect(202)["jobId"])
    };
    let mut made: Vec<String> = (0..3).map(create).collect();
    made.reverse();
    let (listed, rest) = page(&caller, "/jobs?pageSize=2");
    assert_eq!((&listed[..], &rest["pageAmount"]), (&made[..2], &json!(2)));
    assert_eq!(page(&caller, "/jobs?pageSize=2&page=2").0, made[2..]);
    let stranger = Caller::of_new_customer(&service, "Umbrella");
    assert!(page(&stranger, "/jobs").0.is_empty());
    let path = format!("{API}/jobs/{}", made[0]);
    for (method, path) in [
        ("GET", path.clone()),
        ("GET", format!("{path}/devices")),
        ("DELETE", path),
    ] {
        check(&stranger.request(method, &path), 404, &[("NOT_FOUND", "")]);
    }
}

#[test]
fn jobs_go_with_their_customer() {
    let (service, _) = start(&[]);
    let operator = Caller::operator(&service);
    let customer = |operator: &Caller| {
        let body = json!({ "id": "globex", "name": "Globex" });
        operator
            .post("/operator-api/v1/customers", &body)
            .expect(201);
        ApiClient::make(&service, "globex", &json!({ "name": "a test" })).caller(&service)
    };
    let caller = customer(&operator);
    import_fleet(&caller);
    let created = post(&caller, when_active(read("/3/0/0")), &json!({})).expect(202);
    let removed = operator.request("DELETE", "/operator-api/v1/customers/globex");
    assert_eq!(removed.status, 204);
    let caller = customer(&operator);
    assert!(page(&caller, "/jobs").0.is_empty());
    let gone = caller.request("GET", &path_of(&created));
    check(&gone, 404, &[("NOT_FOUND", "")]);
}

/// Creates the devices of a fleet.
fn import_fleet(caller: &Caller) {
    import(
        caller,
        (0..FLEET).map(|number| json!({ "deviceId": id_of(number) })),
    );
}

/// The ids are in the order of the numbers.
fn id_of(number: usize) -> String {
    format!("meter-{number:05}")
}

fn import(caller: &Caller, devices: impl Iterator<Item = Value>) {
    let lines: Vec<String> = devices.map(|device| device.to_string()).collect();
    let request = caller.authorized("POST", &format!("{API}/devices/import"));
    let request = request.text("application/x-ndjson", &lines.join("\n"));
    let imported = request.send(caller.address()).expect(200);
    assert_eq!(imported["created"], json!(lines.len()));
}

/// Creates a job for the devices that match a filter.
fn post(caller: &Caller, body: Value, filter: &Value) -> Response {
    caller.post(MANY, &with(body, "filter", filter.clone()))
}

fn path_of(created: &Value) -> String {
    format!("{API}/jobs/{}", text(&created["jobId"]))
}

fn job(caller: &Caller, created: &Value) -> Value {
    caller.request("GET", &path_of(created)).expect(200)
}

/// The job once it is done.
fn done(caller: &Caller, created: &Value) -> Value {
    until("a job that is done", || {
        let job = job(caller, created);
        (job["state"] == "DONE").then_some(job)
    })
}

/// All devices of a job.
fn devices_of(caller: &Caller, job: &Value) -> Vec<Value> {
    let path = format!("{API}/jobs/{}/devices?pageSize=100", text(&job["id"]));
    all_of(caller, &path)
}

/// How many requests there are, and for how many devices.
fn requests(caller: &Caller) -> (usize, usize) {
    let requests = all_of(caller, &format!("{API}{REQUESTS}?pageSize=100"));
    let devices: BTreeSet<String> = requests.iter().map(|it| text(&it["deviceId"])).collect();
    (requests.len(), devices.len())
}

/// The items of all pages.
fn all_of(caller: &Caller, path: &str) -> Vec<Value> {
    let mut items = Vec::new();
    for number in 1.. {
        let page = caller.request("GET", &format!("{path}&page={number}"));
        let page = page.expect(200);
        items.extend(page["items"].as_array().expect("an array").clone());
        if page["pageAmount"].as_u64() <= Some(number) {
            break;
        }
    }
    items
}
