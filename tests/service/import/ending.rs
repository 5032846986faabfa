//! What remains of an import that ends early or runs concurrently with others?

use std::thread;

use serde_json::json;

use super::{CSV, NDJSON, count_devices, device_ids, end_of, import, import_path, lines};
use crate::test_service::{error_codes, start};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::client::ApiClient;
use crate::vocabulary::poll::until;
use crate::vocabulary::upload::Upload;

#[test]
fn an_interrupted_import_keeps_its_settled_lines_and_nothing_partial() {
    let (_service, caller) = start(&[]);
    let mut upload = Upload::begin(&caller, NDJSON);
    upload.send(&lines("device", 0..1_000));
    assert_eq!(upload.status(), 200);
    let through = progress_from(&mut upload, 600);
    upload.send("{\"deviceId\":\"half");
    upload.cut();
    let text = lines("device", 0..1_000);
    let again = until("the end of the broken import", || {
        let answer = import(&caller, NDJSON, &text);
        (answer.status != 409).then(|| answer.expect(200))
    });
    let unchanged = again["unchanged"].as_u64().unwrap();
    assert!(unchanged >= through, "{unchanged} of {through}");
    assert_eq!(again["created"].as_u64().unwrap() + unchanged, 1_000);
    assert_eq!(count_devices(&caller), 1_000);
}

#[test]
fn a_body_shorter_than_announced_is_not_complete() {
    let (service, caller) = start(&[]);
    let broken = caller
        .authorized("POST", &import_path())
        .header("transfer-encoding", "chunked")
        .header("content-type", NDJSON);
    let chunk = "{\"deviceId\":\"a\"}\n{\"deviceId\":\"b\"}";
    let text = format!("{:x}\r\n{chunk}\r\n", chunk.len());
    broken.leave_behind(service.http, &text);
    until("the end of the broken import", || {
        let answer = import(&caller, NDJSON, "{\"deviceId\":\"c\"}");
        (answer.status != 409).then(|| answer.expect(200))
    });
    let ids = device_ids(&caller);
    assert!(
        !ids.contains(&"b".to_owned()),
        "a line without an end is none: {ids:?}"
    );
}

#[test]
fn lines_reported_as_settled_survive_a_crash() {
    let (mut service, mut caller) = start(&[]);
    for round in 0..3 {
        let name = format!("round-{round}");
        let mut upload = Upload::begin(&caller, NDJSON);
        upload.send(&lines(&name, 0..2_000));
        assert_eq!(upload.status(), 200);
        let mut through = progress_from(&mut upload, 300 * (round + 1));
        service.kill();
        while let Some(line) = upload.next_line() {
            let progress = &line["progress"]["through"];
            through = progress.as_u64().unwrap_or(through);
        }
        service.start_again();
        caller.follow(&service);
        let settled = import(&caller, NDJSON, &lines(&name, 0..through)).expect(200);
        assert_eq!(settled["unchanged"], through, "round {round}");
        let whole = import(&caller, NDJSON, &lines(&name, 0..2_000)).expect(200);
        assert_eq!(whole["refused"], 0, "round {round}: nothing is half made");
    }
    assert_eq!(count_devices(&caller), 6_000);
}

#[test]
fn an_import_and_concurrent_creates_create_each_device_once() {
    let (_service, caller) = start(&[]);
    let single = caller.clone();
    let creating = thread::spawn(move || {
        let bodies = (0..600)
            .rev()
            .map(|number| json!({ "deviceId": format!("device-{number}"), "name": "made alone" }));
        let made = bodies.filter(|body| single.post(&format!("{API}/devices"), body).status == 201);
        made.count()
    });
    let mut upload = Upload::begin(&caller, NDJSON);
    for number in 0..600 {
        upload.send(&lines("device", number..number + 1));
    }
    upload.finish();
    let end = end_of(&mut upload);
    let summary = &end["summary"];
    let alone = creating.join().unwrap() as u64;
    let created = summary["created"].as_u64().unwrap();
    assert_eq!(created + alone, 600, "{end}");
    assert_eq!(summary["refused"], alone, "{end}");
    assert_eq!(count_devices(&caller), 600);
}

#[test]
fn an_import_ends_when_its_client_is_revoked() {
    let (service, _) = start(&[]);
    let client = ApiClient::of_new_customer(&service, "Umbrella");
    let other = ApiClient::make(&service, &client.customer, &json!({ "name": "stays" }));
    let mut upload = Upload::begin(&client.caller(&service), CSV);
    upload.send("deviceId\na\n");
    assert_eq!(upload.status(), 200);
    progress_from(&mut upload, 2);
    let operator = Caller::operator(&service);
    assert_eq!(operator.request("DELETE", &client.path()).status, 204);
    upload.send("b\n");
    upload.finish();
    let end = end_of(&mut upload);
    assert_eq!(error_codes(&end["error"]), ["UNAUTHORIZED"], "{end}");
    assert_eq!(end["summary"]["created"], 1);
    assert_eq!(device_ids(&other.caller(&service)), ["a"]);
}

#[test]
fn removing_a_customer_during_its_import_leaves_no_device() {
    let (service, stranger) = start(&[]);
    let client = ApiClient::of_new_customer(&service, "Umbrella");
    let mut upload = Upload::begin(&client.caller(&service), NDJSON);
    let mut sender = upload.sender();
    let sending = thread::spawn(move || {
        let sent =
            (0..5_000).take_while(|number| sender.send(&lines("device", *number..*number + 1)));
        sent.count();
        // The service may have closed the connection.
        sender.finish();
    });
    assert_eq!(upload.status(), 200);
    progress_from(&mut upload, 100);
    let path = format!("/operator-api/v1/customers/{}", client.customer);
    let operator = Caller::operator(&service);
    assert_eq!(operator.request("DELETE", &path).status, 204);
    let end = end_of(&mut upload);
    sending.join().unwrap();
    let code = error_codes(&end["error"])[0];
    assert!(["UNAUTHORIZED", "NOT_FOUND"].contains(&code), "{end}");
    // Every name is free again.
    let made = end["summary"]["created"].as_u64().unwrap();
    let answer = import(&stranger, NDJSON, &lines("device", 0..made)).expect(200);
    assert_eq!(answer["created"], made);
}

#[test]
fn imports_that_wait_for_their_callers_leave_room_for_another_customer() {
    let (service, caller) = start(&[]);
    let slow: Vec<Upload> = (0..4)
        .map(|number| {
            let other = Caller::of_new_customer(&service, &format!("Slow {number}"));
            let mut upload = Upload::begin(&other, NDJSON);
            upload.send(&lines(&format!("slow-{number}"), 0..1));
            assert_eq!(upload.status(), 200);
            progress_from(&mut upload, 1);
            upload
        })
        .collect();
    let answer = import(&caller, NDJSON, &lines("device", 0..2_000)).expect(200);
    assert_eq!(answer["created"], 2_000);
    for mut upload in slow {
        upload.finish();
        let end = end_of(&mut upload);
        assert_eq!(end["summary"]["created"], 1, "{end}");
    }
}

#[test]
fn an_import_that_falls_behind_the_least_rate_ends_and_counts_its_lines() {
    let (service, caller) = start(&[("SIGNALBOX_IMPORT_BEHIND_MAX_MS", "1000")]);
    let mut upload = Upload::begin(&caller, NDJSON);
    upload.send(&lines("followed", 0..3));
    assert_eq!(upload.status(), 200);
    let end = end_of(&mut upload);
    assert_eq!(error_codes(&end["error"]), ["BODY_TOO_SLOW"], "{end}");
    assert_eq!(end["error"]["statusCode"], 408, "{end}");
    assert_eq!(end["summary"]["created"], 3);

    let stalled = caller
        .authorized("POST", &import_path())
        .header("transfer-encoding", "chunked")
        .header("content-type", NDJSON);
    let text = lines("answered", 0..2);
    let part = format!("{:x}\r\n{text}\r\n", text.len());
    let answer = stalled.send_part(service.http, &part).expect(408);
    assert_eq!(error_codes(&answer), ["BODY_TOO_SLOW"], "{answer}");
    assert_eq!(answer["created"], 2, "{answer}");
    assert_eq!(count_devices(&caller), 5);
}

#[test]
fn a_stopped_import_reports_how_far_it_came() {
    let (mut service, caller) = start(&[]);
    let mut upload = Upload::begin(&caller, NDJSON);
    upload.send(&lines("device", 0..300));
    assert_eq!(upload.status(), 200);
    progress_from(&mut upload, 300);
    service.terminate();
    let mut sent = 300;
    let end = loop {
        upload.send(&lines("device", sent..sent + 1));
        sent += 1;
        let line = upload.next_line().unwrap();
        if line["summary"].is_object() {
            break line;
        }
    };
    assert_eq!(error_codes(&end["error"]), ["UNAVAILABLE"], "{end}");
    assert_eq!(end["summary"]["through"], end["summary"]["created"]);
    drop(upload);
    assert!(service.ended().success());
}

#[test]
fn an_import_on_a_full_disk_reports_it_and_creates_nothing_partial() {
    let (mut service, mut caller) = start(&[]);
    assert_eq!(
        import(&caller, NDJSON, &lines("a", 0..10)).expect(200)["created"],
        10
    );
    service.kill();
    let reserve = service.reserve_above_free();
    service.start_again_with(&[("SIGNALBOX_DISK_RESERVE_MIB", &reserve)]);
    caller.follow(&service);
    let answer = import(&caller, NDJSON, &lines("b", 0..10)).expect(503);
    assert_eq!(error_codes(&answer), ["UNAVAILABLE"], "{answer}");
    assert_eq!(
        (&answer["created"], &answer["through"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(count_devices(&caller), 10);
}

#[test]
#[cfg(target_os = "linux")]
fn memory_does_not_grow_with_the_body() {
    const LINES: u64 = 20_000;
    let (service, caller) = start(&[]);
    let answer = import(&caller, NDJSON, &lines("device", 0..LINES)).expect(200);
    assert_eq!(answer["created"], LINES);
    let before_kib = memory_peak_kib(service.pid());
    // The same devices on lines of almost 8 KiB: 150 MiB of body and nothing new to store.
    let padding = " ".repeat(7_800);
    let mut upload = Upload::begin(&caller, NDJSON);
    assert_eq!(upload.status(), 200);
    let mut sender = upload.sender();
    let sending = thread::spawn(move || {
        for number in 0..LINES {
            let line = format!("{{{padding}\"deviceId\":\"device-{number}\"}}\n");
            assert!(sender.send(&line));
        }
        assert!(sender.finish());
    });
    let end = end_of(&mut upload);
    sending.join().unwrap();
    assert_eq!(end["summary"]["unchanged"], LINES, "{end}");
    let grown_kib = memory_peak_kib(service.pid()) - before_kib;
    assert!(
        grown_kib < 48 * 1_024,
        "{grown_kib} KiB more for a body of 150 MiB"
    );
}

/// Reads progress until everything up to a line is settled; returns the line up to which it is.
fn progress_from(upload: &mut Upload, line: u64) -> u64 {
    loop {
        let progress = upload.next_line().expect("the import goes on");
        let through = progress["progress"]["through"].as_u64().unwrap_or(0);
        if through >= line {
            return through;
        }
    }
}

#[cfg(target_os = "linux")]
fn memory_peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    peak.trim()
        .strip_suffix(" kB")
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}
