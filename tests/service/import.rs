//! Does an import create exactly the devices of its valid lines and report every other line?

mod ending;

use protocol::coap::code::Code;
use serde_json::{Value, json};

use crate::test_service::{error_codes, silent_device, start};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::client::ApiClient;
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::http::Response;
use crate::vocabulary::upload::Upload;
use crate::vocabulary::wire::{DeviceSocket, register};

const NDJSON: &str = "application/x-ndjson";
const CSV: &str = "text/csv";

#[test]
fn ndjson_lines_become_devices() {
    let (_service, caller) = start(&[]);
    let whole = json!({
        "deviceId": "meter-2", "iccid": "8988280666000000002", "imsi": "901288000000002",
        "msisdn": "491710000002", "ip": "10.0.0.2", "endpoint": "urn:imei:2", "name": "Cellar",
    });
    let body = format!("{{\"iccid\":\"8901\"}}\r\n\n{whole}");
    for content_type in [
        NDJSON,
        "application/jsonl",
        "application/ndjson; charset=utf-8",
    ] {
        let answer = import(&caller, content_type, &body).expect(200);
        let is_first = content_type == NDJSON;
        let (created, unchanged) = if is_first { (2, 0) } else { (0, 2) };
        let expected = json!({
            "lines": 2, "created": created, "unchanged": unchanged, "refused": 0, "through": 3,
            "refusals": [], "refusalsOmitted": 0,
        });
        assert_eq!(answer, expected, "{content_type}");
    }
    let made = device(&caller, "meter-2");
    for (name, value) in whole.as_object().unwrap() {
        assert_eq!(made[name], *value, "{name}");
    }
    let defaulted = device(&caller, "8901");
    assert_eq!(defaulted["endpoint"], "8901");
    assert!(made["number"].is_u64() && made["number"] != defaulted["number"]);
}

#[test]
fn csv_lines_become_devices() {
    let (_service, caller) = start(&[]);
    let body = "\u{feff}name,deviceId,ip\r\n\"Cellar, \"\"left\"\"\",a,10.0.0.1\r\n,b,\r\n";
    let answer = import(&caller, "Text/CSV; charset=utf-8", body).expect(200);
    assert_eq!(
        (&answer["created"], &answer["through"]),
        (&json!(2), &json!(3))
    );
    let a = device(&caller, "a");
    assert_eq!(
        (&a["name"], &a["ip"]),
        (&json!("Cellar, \"left\""), &json!("10.0.0.1"))
    );
    let b = device(&caller, "b");
    assert!(b["name"].is_null() && b["ip"].is_null(), "{b}");
}

#[test]
fn a_line_is_refused_with_the_errors_of_a_single_create() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, "there");
    let bodies = [
        json!({}),
        json!({ "deviceId": "a/b", "imsi": "x", "ip": "everywhere", "name": " " }),
        json!({ "deviceId": 7, "colour": "red" }),
        json!({ "deviceId": "x".repeat(129) }),
        json!({ "deviceId": "there", "name": "another" }),
        json!({ "deviceId": "other", "iccid": "there" }),
        json!({ "deviceId": "other", "endpoint": "there" }),
    ];
    let lines: Vec<String> = bodies.iter().map(|body| format!("{body}\n")).collect();
    let text = format!("{}{{\"deviceId\":\"good\"}}\n", lines.concat());
    let answer = import(&caller, NDJSON, &text).expect(200);
    assert_eq!(answer["refused"], bodies.len());
    assert_eq!(answer["created"], 1);
    for ((body, refusal), line) in bodies.iter().zip(refusals(&answer)).zip(1..) {
        let alone = caller.post(&format!("{API}/devices"), body).json();
        let expected = json!({ "line": line, "errors": alone["errors"] });
        assert_eq!(refusal, &expected, "{body}");
    }
    device(&caller, "good");
}

#[test]
fn each_refused_line_is_reported_by_its_number_and_the_others_are_imported() {
    let (_service, caller) = start(&[]);
    let long = "x".repeat(9_000);
    let text = format!(
        "deviceId,name\n\na,one\nb\nc,\"two\nlines\"\n{long},x\na,again\nd,four\ne,\"open\n"
    );
    let answer = import(&caller, CSV, &text).expect(200);
    let expected = [
        (4, "MALFORMED_LINE"),
        (5, "INVALID_VALUE"),
        (7, "LINE_TOO_LONG"),
        (8, "DEVICE_EXISTS"),
        (10, "MALFORMED_LINE"),
    ];
    assert_eq!(refused_lines(&answer), expected);
    assert_eq!(
        (&answer["lines"], &answer["created"]),
        (&json!(7), &json!(2))
    );
    assert_eq!(device_ids(&caller), ["a", "d"]);
    let answer = import(&caller, NDJSON, "{}\n[]\nnot json\n{\"deviceId\":\"f\"}").expect(200);
    let expected = [
        (1, "REQUIRED"),
        (2, "MALFORMED_LINE"),
        (3, "MALFORMED_LINE"),
    ];
    assert_eq!(refused_lines(&answer), expected);
    device(&caller, "f");
}

#[test]
fn of_lines_with_the_same_name_the_first_wins_at_any_distance() {
    let (service, caller) = start(&[]);
    let stranger = Caller::of_new_customer(&service, "Umbrella");
    let body = json!({ "deviceId": "theirs", "imsi": "77" });
    stranger.post(&format!("{API}/devices"), &body).expect(201);
    let line = |number: usize| match number {
        10 => json!({ "deviceId": "ten", "msisdn": "49" }),
        11 => json!({ "deviceId": "eleven", "msisdn": "49" }),
        900 => json!({ "deviceId": "nine-hundred", "iccid": "ten" }),
        901 => json!({ "deviceId": "nine-hundred", "iccid": "its-own", "endpoint": "device-2000" }),
        1_500 => json!({ "deviceId": "device-1", "name": "another" }),
        1_501 => json!({ "deviceId": "device-1" }),
        1_700 => json!({ "deviceId": "ours", "imsi": "77" }),
        1_701 => {
            json!({ "deviceId": "theirs", "iccid": "of-ours", "endpoint": "e" })
        }
        2_000 => json!({ "deviceId": "device-2000" }),
        number => json!({ "deviceId": format!("device-{number}") }),
    };
    let text: String = (1..=2_500)
        .map(|number| format!("{}\n", line(number)))
        .collect();
    let answer = import(&caller, NDJSON, &text).expect(200);
    let expected = [11, 900, 1_500, 1_700, 2_000].map(|line| (line, "DEVICE_EXISTS"));
    assert_eq!(refused_lines(&answer), expected);
    let fields = refusals(&answer)
        .iter()
        .map(|refusal| fields_of(&refusal["errors"]));
    let expected = [
        vec!["msisdn"],
        vec!["iccid"],
        vec!["deviceId", "iccid", "endpoint"],
        vec!["imsi"],
        vec!["endpoint"],
    ];
    assert_eq!(fields.collect::<Vec<_>>(), expected);
    let counts = (&answer["created"], &answer["unchanged"]);
    assert_eq!(counts, (&json!(2_494), &json!(1)));
    assert_eq!(count_devices(&caller), 2_494);
}

#[test]
fn a_repeated_import_changes_nothing() {
    let (_service, caller) = start(&[]);
    let text = lines("device", 0..1_500);
    assert_eq!(import(&caller, NDJSON, &text).expect(200)["created"], 1_500);
    let before = device(&caller, "device-7");
    let key = json!({ "secretKey": "0123456789", "format": "STRING", "identity": "own" });
    caller.post(&format!("{API}/devices/device-8/psk"), &key);
    let again = import(&caller, NDJSON, &text).expect(200);
    let counts = ["created", "unchanged", "refused"].map(|name| again[name].clone());
    assert_eq!(counts, [json!(0), json!(1_500), json!(0)]);
    assert_eq!(device(&caller, "device-7"), before);
    let more = lines("device", 1_000..2_000);
    let more = import(&caller, NDJSON, &more).expect(200);
    assert_eq!(
        (&more["created"], &more["unchanged"]),
        (&json!(500), &json!(500))
    );
    assert_eq!(count_devices(&caller), 2_000);
}

#[test]
fn an_invalid_import_is_refused_as_a_whole() {
    let (service, caller) = start(&[]);
    let good = "{\"deviceId\":\"a\"}\n";
    for content_type in ["application/json", "text/plain", "text/csv2", ""] {
        let refused = import(&caller, content_type, good).expect(415);
        assert_eq!(
            error_codes(&refused),
            ["UNSUPPORTED_MEDIA_TYPE"],
            "{content_type}"
        );
    }
    let packed = caller.authorized("POST", &import_path());
    let packed = packed.header("content-encoding", "gzip").text(NDJSON, good);
    assert_eq!(packed.send(service.http).status, 415);
    let headers: [(&str, &[&str]); 3] = [
        ("", &["MALFORMED_BODY"]),
        ("colour,deviceId\nred,a\n", &["UNKNOWN_PROPERTY"]),
        ("name,name\nx,y\n", &["REPEATED", "REQUIRED"]),
    ];
    for (text, codes) in headers {
        assert_eq!(
            error_codes(&import(&caller, CSV, text).expect(400)),
            codes,
            "{text:?}"
        );
    }
    let client = ApiClient::of_new_customer(&service, "Umbrella");
    let scopes = json!({ "name": "reader", "scopes": ["devices:read"] });
    let reader = ApiClient::make(&service, &client.customer, &scopes).caller(&service);
    assert_eq!(import(&reader, NDJSON, good).status, 403);
    let nobody = Caller::with_token(&service, "nobody");
    assert_eq!(import(&nobody, NDJSON, good).status, 401);
    assert_eq!(device_ids(&caller), Vec::<String>::new());
}

#[test]
fn lines_beyond_the_limit_are_refused_and_those_before_are_imported() {
    let (_service, caller) = start(&[("SIGNALBOX_IMPORT_LINES_MAX", "300")]);
    let whole = import(&caller, NDJSON, &lines("a", 0..300)).expect(200);
    assert_eq!(whole["created"], 300);
    let answer = import(&caller, NDJSON, &lines("b", 0..1_000)).expect(413);
    assert_eq!(error_codes(&answer), ["TOO_MANY_LINES"]);
    assert_eq!(
        (&answer["created"], &answer["through"]),
        (&json!(300), &json!(300))
    );
    assert!(answer["traceId"].is_string(), "{answer}");
    assert_eq!(count_devices(&caller), 600);
    let mut upload = Upload::begin(&caller, NDJSON);
    upload.send(&lines("c", 0..301));
    upload.finish();
    let end = end_of(&mut upload);
    assert_eq!(end["summary"]["created"], 300);
    assert_eq!(error_codes(&end["error"]), ["TOO_MANY_LINES"]);
}

#[test]
fn a_caller_sees_the_progress_of_its_import_while_it_sends() {
    let (_service, caller) = start(&[]);
    let mut upload = Upload::begin(&caller, CSV);
    upload.send("deviceId\n");
    assert_eq!(upload.status(), 200);
    upload.send("a\nb\nc/c\n");
    let refusal = upload.next_line().unwrap();
    assert_eq!(refusal["refusal"]["line"], 4, "{refusal}");
    let progress = upload.next_line().unwrap();
    let counts = json!({ "lines": 3, "created": 2, "unchanged": 0, "refused": 1, "through": 4 });
    assert_eq!(progress, json!({ "progress": counts }));
    assert_eq!(device_ids(&caller), ["a", "b"]);
    let refused = import(&caller, NDJSON, "{}").expect(409);
    assert_eq!(error_codes(&refused), ["IMPORT_RUNNING"]);
    upload.send("d\n");
    assert_eq!(upload.next_line().unwrap()["progress"]["through"], 5);
    upload.finish();
    let counts = json!({ "lines": 4, "created": 3, "unchanged": 0, "refused": 1, "through": 5 });
    assert_eq!(end_of(&mut upload), json!({ "summary": counts }));
}

#[test]
fn imported_devices_can_register_at_once() {
    let (service, caller) = start(&[]);
    let text = format!("deviceId,ip\nmeter-1,{DEVICE_IP}\nmeter-2,10.9.9.9\n");
    import(&caller, CSV, &text).expect(200);
    let wire = DeviceSocket::to(&service);
    wire.register("meter-1", 1);
    assert_eq!(wire.ask(&register("meter-2", 2)).code, Code::FORBIDDEN);
    assert_eq!(device(&caller, "meter-1")["presence"]["state"], "AWAKE");
}

fn import(caller: &Caller, content_type: &str, text: &str) -> Response {
    let request = caller.authorized("POST", &import_path());
    request.text(content_type, text).send(caller.address())
}

fn import_path() -> String {
    format!("{API}/devices/import")
}

/// One line for each device of these numbers.
fn lines(name: &str, numbers: std::ops::Range<u64>) -> String {
    let lines = numbers.map(|number| format!("{{\"deviceId\":\"{name}-{number}\"}}\n"));
    lines.collect()
}

fn refusals(answer: &Value) -> &Vec<Value> {
    answer["refusals"].as_array().unwrap()
}

/// The line and the first error code of each refusal.
fn refused_lines(answer: &Value) -> Vec<(u64, &str)> {
    let lines = refusals(answer).iter().map(|refusal| {
        let line = refusal["line"].as_u64().unwrap();
        (line, error_codes(refusal)[0])
    });
    lines.collect()
}

fn fields_of(errors: &Value) -> Vec<&str> {
    let errors = errors.as_array().unwrap().iter();
    errors
        .map(|error| error["field"].as_str().unwrap())
        .collect()
}

/// The last line of the response to an upload.
fn end_of(upload: &mut Upload) -> Value {
    if !upload.is_answered() {
        assert_eq!(upload.status(), 200);
    }
    let lines = std::iter::from_fn(|| upload.next_line());
    let end = lines.last().expect("an import that ends says so");
    assert!(end["summary"].is_object(), "{end}");
    end
}

fn device(caller: &Caller, id: &str) -> Value {
    caller
        .request("GET", &format!("{API}/devices/{id}"))
        .expect(200)
}

fn device_ids(caller: &Caller) -> Vec<String> {
    let page = caller
        .request("GET", &format!("{API}/devices?pageSize=100"))
        .expect(200);
    let items = page["items"].as_array().unwrap().iter();
    items
        .map(|item| item["deviceId"].as_str().unwrap().to_owned())
        .collect()
}

fn count_devices(caller: &Caller) -> u64 {
    let page = caller
        .request("GET", &format!("{API}/devices?pageSize=1"))
        .expect(200);
    page["pageAmount"].as_u64().unwrap()
}
