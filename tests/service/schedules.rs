//! Does a schedule create its jobs at its due times, whatever happens meanwhile?

use std::time::{SystemTime, UNIX_EPOCH};

use harness::device::configuration::Configuration;
use protocol::lwm2m::value::Value as Lwm2mValue;
use serde_json::{Value, json};

use crate::errors::check;
use crate::test_service::{ID, TestService, error_codes, keys, page, silent_device, start, with};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::client::ApiClient;
use crate::vocabulary::http::Response;
use crate::vocabulary::lwm2m::{outcome, read, when_active};
use crate::vocabulary::poll::until;

const SCHEDULES: &str = "/management-api/v1/schedules";
const REQUESTS: &str = "/integrate/devices/actions/requests";
const SKIPPED: &str = "Scheduler[RunSkipped]";

/// Due times follow each other soon enough to be waited for.
const EVERY_SECOND: (&str, &str) = ("SIGNALBOX_SCHEDULE_EVERY_MIN_S", "1");

#[test]
fn a_due_time_creates_a_job_for_the_devices_that_match_then() {
    let setup = TestService::with(&[EVERY_SECOND], Configuration::new(ID));
    let request = with(read("/3/0/0"), "filter", json!({ "registered": true }));
    let body = with(every(1, request), "name", "Readings");
    let created = post(&setup.caller, &body);
    let shown = created.expect(201);
    let path = format!("{SCHEDULES}/{}", text(&shown["id"]));
    assert_eq!(created.header("location"), Some(path.as_str()));
    let shape = ["created", "every", "id", "name", "next", "start", "state"];
    assert_eq!(keys(&shown), shape);
    assert_eq!(
        (&shown["state"], &shown["every"]),
        (&json!("ACTIVE"), &json!(1))
    );
    assert_eq!(shown["start"], shown["created"]);
    let ran = ran(&setup.caller, &shown, |last| last.get("jobId").is_some());
    assert_eq!(keys(&ran["last"]), ["due", "jobId", "time"]);
    assert!(ran["next"].as_str() > ran["last"]["due"].as_str(), "{ran}");
    let request = json!({
        "protocol": "LWM2M", "action": "read", "resourceAddress": "/3/0/0",
        "requestMode": "SEND_NOW", "sendAttempts": 1, "filter": { "registered": true },
    });
    assert_eq!(ran["request"], request);
    let job = done(&setup.caller, &ran["last"]["jobId"]);
    assert_eq!(job["scheduleId"], shown["id"]);
    assert_eq!((&job["matched"], &job["accepted"]), (&json!(1), &json!(1)));
    let devices = format!("/jobs/{}/devices", text(&job["id"]));
    let devices = setup.caller.request("GET", &format!("{API}{devices}"));
    let request = text(&devices.expect(200)["items"][0]["requestId"]);
    assert_eq!(
        outcome(&setup.caller.final_action(&request)),
        ("SUCCEEDED", "205")
    );
}

#[test]
fn a_due_time_that_was_missed_while_the_service_was_down_runs_once() {
    let (mut service, mut caller) = start(&[]);
    let due = now_s() + 4;
    let body = with(every(3_600, refused()), "start", time(due));
    let created = post(&caller, &body).expect(201);
    assert_eq!(created["next"], iso(due));
    service.kill();
    until("the due time", || (now_s() > due).then_some(()));
    service.start_again();
    caller.follow(&service);
    let after = ran(&caller, &created, |_| true);
    assert_eq!(
        (&after["last"]["due"], &after["next"]),
        (&json!(iso(due)), &json!(iso(due + 3_600)))
    );
    done(&caller, &after["last"]["jobId"]);
    service.kill();
    service.start_again();
    caller.follow(&service);
    assert_eq!(show(&caller, &created), after);
    assert_eq!(page(&caller, "/jobs").0, [text(&after["last"]["jobId"])]);
}

#[test]
fn a_due_time_creates_at_most_one_job_whenever_the_service_is_killed() {
    let (mut service, mut caller) = start(&[EVERY_SECOND]);
    let start = now_s() + 1;
    let body = with(every(1, refused()), "start", time(start));
    let created = post(&caller, &body).expect(201);
    for _ in 0..4 {
        let before = show(&caller, &created)["last"].clone();
        ran(&caller, &created, |last| *last != before);
        service.kill();
        service.start_again();
        caller.follow(&service);
    }
    let paused = patch(&caller, &created, "PAUSED").expect(200);
    let due = text(&paused["last"]["due"]);
    let last_due = (start..).find(|s| iso(*s) == due).unwrap();
    let (jobs, _) = page(&caller, "/jobs?pageSize=100");
    assert!(jobs.len() >= 4, "{jobs:?}");
    assert!(
        jobs.len() as i64 <= last_due - start + 1,
        "each due time has at most one job: {jobs:?} until {due}"
    );
    for id in jobs {
        let job = done(&caller, &json!(id));
        assert_eq!((&job["matched"], &job["rejected"]), (&json!(1), &json!(1)));
        assert_eq!(job["scheduleId"], created["id"]);
    }
}

#[test]
fn requests_do_not_pile_up_at_a_device_that_sleeps() {
    let (_service, caller) = start(&[EVERY_SECOND]);
    silent_device(&caller, "sleepy-1");
    let request = when_active(read("/3/0/0"));
    let request = with(request, "filter", json!({ "q": "sleepy" }));
    let created = post(&caller, &every(1, request)).expect(201);
    let skipped = ran(&caller, &created, |last| last["reason"] == "REQUESTS_OPEN");
    assert_eq!(keys(&skipped["last"]), ["due", "reason", "time"]);
    let (requests, _) = page(&caller, REQUESTS);
    assert_eq!(requests.len(), 1);
    let due = skipped["last"]["due"].clone();
    ran(&caller, &created, |last| {
        last["reason"] == "REQUESTS_OPEN" && last["due"] != due
    });
    let logged = caller.log_messages();
    let logged = logged.iter().filter(|message| *message == SKIPPED);
    assert_eq!(logged.count(), 1, "once for the same reason");
    silent_device(&caller, "sleepy-2");
    let ran_again = ran(&caller, &created, |last| last.get("jobId").is_some());
    let job = done(&caller, &ran_again["last"]["jobId"]);
    assert_eq!((&job["accepted"], &job["rejected"]), (&json!(1), &json!(1)));
    let devices = format!("{API}/jobs/{}/devices", text(&job["id"]));
    let devices = caller.request("GET", &devices).expect(200);
    let open = &devices["items"][0];
    assert_eq!(
        (&open["deviceId"], &open["status"], &open["code"]),
        (
            &json!("sleepy-1"),
            &json!("REJECTED"),
            &json!("REQUEST_OPEN")
        )
    );
    assert!(text(&open["message"]).contains(&requests[0]), "{open}");
    let cancelled = caller.request("DELETE", &format!("{API}{REQUESTS}/{}", requests[0]));
    assert_eq!(cancelled.status, 200);
    until("a further request for the first device", || {
        let (requests, _) = page(&caller, &format!("{REQUESTS}?deviceId=sleepy-1"));
        (requests.len() == 2).then_some(())
    });
}

#[test]
fn a_due_time_without_a_device_has_a_reason_and_a_log_entry() {
    let (_service, caller) = start(&[EVERY_SECOND]);
    let request = with(read("/3/0/0"), "filter", json!({ "tag": "site:berlin" }));
    let created = post(&caller, &with(every(1, request), "name", "Berlin")).expect(201);
    ran(&caller, &created, |last| last["reason"] == "NO_DEVICE");
    let entries = until("an entry", || {
        let entries = caller.log_entries();
        (!entries.is_empty()).then_some(entries)
    });
    assert_eq!(entries[0]["message"], SKIPPED);
    assert_eq!(
        (&entries[0]["type"], &entries[0]["category"]),
        (&json!("GENERAL"), &json!("error"))
    );
    let description = text(&entries[0]["description"]);
    assert!(
        description.contains("no device matches the filter"),
        "{description}"
    );
    assert!(description.contains("Berlin"), "{description}");
    assert!(page(&caller, "/jobs").0.is_empty());
}

#[test]
fn a_time_of_day_is_due_at_that_time_in_its_zone() {
    let (_service, caller) = start(&[]);
    let daily = |at: &str, zone: &str| {
        let body = json!({ "daily": { "at": at, "zone": zone }, "request": refused() });
        post(&caller, &body).expect(201)
    };
    let shown = daily("00:00", "UTC");
    assert_eq!(shown["daily"], json!({ "at": "00:00", "zone": "UTC" }));
    assert!(text(&shown["next"]).ends_with("T00:00:00.000Z"), "{shown}");
    assert!(
        shown["next"].as_str() > shown["created"].as_str(),
        "{shown}"
    );
    let next = text(&daily("06:30", "Asia/Kathmandu")["next"]);
    assert!(next.ends_with("T00:45:00.000Z"), "{next}");
}

#[test]
fn a_paused_schedule_is_never_due_and_a_deleted_one_is_gone() {
    let (_service, caller) = start(&[EVERY_SECOND]);
    let created = post(&caller, &every(1, refused())).expect(201);
    ran(&caller, &created, |_| true);
    let paused = patch(&caller, &created, "PAUSED").expect(200);
    assert_eq!(paused["state"], "PAUSED");
    assert!(paused.get("next").is_none(), "{paused}");
    let jobs = page(&caller, "/jobs").0;
    // Another schedule is due meanwhile.
    let other = post(&caller, &every(1, refused())).expect(201);
    ran(&caller, &other, |_| true);
    assert_eq!(patch(&caller, &other, "PAUSED").status, 200);
    let of_first = page(&caller, "/jobs").0;
    let of_first = of_first.iter().filter(|id| jobs.contains(id));
    assert_eq!(of_first.count(), jobs.len());
    assert_eq!(show(&caller, &created)["last"], paused["last"]);
    let resumed = patch(&caller, &created, "ACTIVE").expect(200);
    assert_eq!(resumed["state"], "ACTIVE");
    assert!(resumed["next"].as_str() > paused["last"]["due"].as_str());
    let before = paused["last"].clone();
    ran(&caller, &created, |last| *last != before);
    let deleted = caller.request("DELETE", &path_of(&created));
    assert_eq!(deleted.status, 204);
    for (method, body) in [("GET", None), ("PATCH", Some("ACTIVE")), ("DELETE", None)] {
        let call = caller.authorized(method, &path_of(&created));
        let call = match body {
            Some(state) => call.json(&json!({ "state": state })),
            None => call,
        };
        check(&call.send(caller.address()), 404, &[("NOT_FOUND", "")]);
    }
    assert_eq!(page(&caller, "/schedules").0, [text(&other["id"])]);
    assert!(page(&caller, "/jobs").0.len() > jobs.len(), "its jobs stay");
}

#[test]
fn a_schedule_ends_with_its_last_due_time() {
    let (_service, caller) = start(&[EVERY_SECOND]);
    let end = now_s() + 6;
    let created = post(&caller, &with(every(1, refused()), "end", time(end))).expect(201);
    assert_eq!(created["end"], iso(end));
    let ended = until("the end", || {
        let schedule = show(&caller, &created);
        (schedule["state"] == "ENDED").then_some(schedule)
    });
    assert!(ended.get("next").is_none(), "{ended}");
    assert!(
        ended["last"]["due"].as_str() <= ended["end"].as_str(),
        "{ended}"
    );
    done(&caller, &ended["last"]["jobId"]);
}

#[test]
fn every_error_of_a_schedule_is_reported_at_once() {
    let (_service, caller) = start(&[]);
    let good = || with(read("/3/0/0"), "deviceIds", json!([ID]));
    let of = |body: Value| scheduled(body, "LWM2M");
    let cases: [(Value, &[(&str, &str)]); 9] = [
        (json!({}), &[("REQUIRED", "every"), ("REQUIRED", "request")]),
        (
            json!({
                "every": 59, "name": " ", "start": "now", "end": 7, "colour": "red",
                "request": of(with(json!({ "action": "look" }), "notBefore", time(now_s()))),
            }),
            &[
                ("INVALID_VALUE", "name"),
                ("INVALID_VALUE", "request.action"),
                ("INVALID_VALUE", "start"),
                ("OUT_OF_RANGE", "every"),
                ("REQUIRED", "request.deviceIds"),
                ("REQUIRED", "request.resourceAddress"),
                ("UNKNOWN_PROPERTY", "colour"),
                ("UNKNOWN_PROPERTY", "request.notBefore"),
                ("WRONG_TYPE", "end"),
            ],
        ),
        (
            json!({
                "every": 60, "daily": { "at": "24:00", "zone": "Mars/Olympus", "day": 1 },
                "request": of(with(good(), "dryRun", true)),
            }),
            &[
                ("INVALID_VALUE", "daily.at"),
                ("INVALID_VALUE", "daily.zone"),
                ("UNKNOWN_PROPERTY", "daily.day"),
                ("UNKNOWN_PROPERTY", "every"),
                ("UNKNOWN_PROPERTY", "request.dryRun"),
            ],
        ),
        (
            json!({ "daily": {}, "request": good() }),
            &[
                ("REQUIRED", "daily.at"),
                ("REQUIRED", "daily.zone"),
                ("REQUIRED", "request.protocol"),
            ],
        ),
        (
            json!({ "every": 31_622_401, "request": scheduled(good(), "SMTP") }),
            &[
                ("INVALID_VALUE", "request.protocol"),
                ("OUT_OF_RANGE", "every"),
            ],
        ),
        (
            json!({ "every": 60, "end": "2026-01-01T00:00:00.000", "request": of(good()) }),
            &[("OUT_OF_RANGE", "end")],
        ),
        (
            json!({
                "daily": { "at": "06:30", "zone": "UTC" }, "start": "9999-12-31T23:59:59.000",
                "request": of(good()),
            }),
            &[("OUT_OF_RANGE", "start")],
        ),
        (
            json!({ "every": "60", "request": [] }),
            &[("WRONG_TYPE", "every"), ("WRONG_TYPE", "request")],
        ),
        (
            json!({
                "every": 60, "request": of(with(good(), "filter", json!({ "page": 1 }))),
            }),
            &[
                ("UNKNOWN_PROPERTY", "request.deviceIds"),
                ("UNKNOWN_PROPERTY", "request.filter.page"),
            ],
        ),
    ];
    for (body, faults) in cases {
        check(&post(&caller, &body), 400, faults);
    }
    assert!(page(&caller, "/schedules").0.is_empty());
    let created = post(&caller, &every(60, good())).expect(201);
    check(
        &patch(&caller, &created, "ENDED"),
        400,
        &[("INVALID_VALUE", "state")],
    );
    let none = caller
        .authorized("PATCH", &path_of(&created))
        .json(&json!({}));
    check(&none.send(caller.address()), 400, &[("REQUIRED", "state")]);
}

#[test]
fn a_customer_has_a_bounded_number_of_schedules_each_created_once() {
    let (service, caller) = start(&[("SIGNALBOX_SCHEDULES_MAX", "3")]);
    let body = every(3_600, refused());
    let call = |key: &str| {
        let request = caller.authorized("POST", SCHEDULES);
        let request = request.header("idempotency-key", key).json(&body);
        request.send(caller.address())
    };
    let first = call("k");
    assert_eq!(call("k").expect(201), first.expect(201));
    assert_eq!(call("k").header("location"), first.header("location"));
    let mut made = vec![first.expect(201)];
    made.extend((0..2).map(|_| post(&caller, &body).expect(201)));
    let refused = post(&caller, &body);
    assert_eq!(error_codes(&refused.expect(409)), ["TOO_MANY_SCHEDULES"]);
    made.reverse();
    let ids: Vec<String> = made.iter().map(|it| text(&it["id"])).collect();
    let (listed, rest) = page(&caller, "/schedules?pageSize=2");
    assert_eq!((&listed[..], &rest["pageAmount"]), (&ids[..2], &json!(2)));
    assert_eq!(page(&caller, "/schedules?pageSize=2&page=2").0, ids[2..]);
    let stranger = Caller::of_new_customer(&service, "Umbrella");
    assert!(page(&stranger, "/schedules").0.is_empty());
    let theirs = stranger.request("GET", &path_of(&made[0]));
    check(&theirs, 404, &[("NOT_FOUND", "")]);
    assert_eq!(post(&stranger, &body).status, 201);
    assert_eq!(caller.request("DELETE", &path_of(&made[0])).status, 204);
    assert_eq!(post(&caller, &body).status, 201);
}

#[test]
fn schedules_go_with_their_customer() {
    let (service, _) = start(&[EVERY_SECOND]);
    let operator = Caller::operator(&service);
    let customer = |operator: &Caller| {
        let body = json!({ "id": "globex", "name": "Globex" });
        operator
            .post("/operator-api/v1/customers", &body)
            .expect(201);
        ApiClient::make(&service, "globex", &json!({ "name": "a test" })).caller(&service)
    };
    let caller = customer(&operator);
    let created = post(&caller, &every(1, refused())).expect(201);
    ran(&caller, &created, |_| true);
    let removed = operator.request("DELETE", "/operator-api/v1/customers/globex");
    assert_eq!(removed.status, 204);
    let caller = customer(&operator);
    assert!(page(&caller, "/schedules").0.is_empty());
    // A schedule of the new customer is due meanwhile.
    let other = post(&caller, &every(1, refused())).expect(201);
    ran(&caller, &other, |_| true);
    let (jobs, _) = page(&caller, "/jobs?pageSize=100");
    for job in jobs {
        let path = format!("{API}/jobs/{job}");
        let job = caller.request("GET", &path).expect(200);
        assert_eq!(job["scheduleId"], other["id"]);
    }
}

/// A request that each device rejects: there is none with this id.
fn refused() -> Value {
    scheduled(
        with(read("/3/0/0"), "deviceIds", json!(["nobody"])),
        "LWM2M",
    )
}

/// A schedule that is due every so many seconds.
fn every(period_s: u32, request: Value) -> Value {
    json!({ "every": period_s, "request": scheduled(request, "LWM2M") })
}

/// The request of a schedule.
fn scheduled(request: Value, protocol: &str) -> Value {
    with(request, "protocol", protocol)
}

fn post(caller: &Caller, body: &Value) -> Response {
    caller.post(SCHEDULES, body)
}

fn patch(caller: &Caller, created: &Value, state: &str) -> Response {
    let call = caller.authorized("PATCH", &path_of(created));
    call.json(&json!({ "state": state })).send(caller.address())
}

fn path_of(created: &Value) -> String {
    format!("{SCHEDULES}/{}", text(&created["id"]))
}

fn show(caller: &Caller, created: &Value) -> Value {
    caller.request("GET", &path_of(created)).expect(200)
}

/// The schedule once it has run with such an outcome.
fn ran(caller: &Caller, created: &Value, is_such: impl Fn(&Value) -> bool) -> Value {
    until("a run", || {
        let schedule = show(caller, created);
        let last = schedule.get("last")?;
        is_such(last).then(|| schedule.clone())
    })
}

/// The job once it is done.
fn done(caller: &Caller, id: &Value) -> Value {
    let path = format!("{API}/jobs/{}", text(id));
    until("a job that is done", || {
        let job = caller.request("GET", &path).expect(200);
        (job["state"] == "DONE").then_some(job)
    })
}

fn now_s() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap()
}

/// A time as it is given.
fn time(s: i64) -> String {
    Lwm2mValue::Time(s).to_text()
}

/// The same time as it is shown.
fn iso(s: i64) -> String {
    time(s).replace('Z', ".000Z")
}
