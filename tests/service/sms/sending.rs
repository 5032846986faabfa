//! Do SMS to devices leave at most once, and end with one final status, whenever the service is
//! killed?

use serde_json::{Value, json};

use super::{ICCID, MSISDN, SmsService, sms_path, text_to_device};
use crate::test_service::{error_codes, with};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::endpoint::Endpoint;

#[test]
fn an_sms_is_taken_once_and_settled_by_its_report() {
    let mut setup = SmsService::new();
    let answer = setup.try_send(&text_to_device("open"));
    let id = answer.expect(201)["id"].clone();
    assert_eq!(
        answer.header("location"),
        Some(&*sms_path(&format!("/{id}")))
    );
    let shown = setup.shown(&id);
    assert_eq!(shown["status"], json!({ "id": 1, "status": "PENDING" }));
    assert_eq!(shown["sms_type"], json!({ "id": 1, "description": "MT" }));
    assert_eq!(shown["source_address_type"], json!({ "id": 145 }));
    assert_eq!(
        (&shown["payload"], &shown["dest_address"]),
        (&json!("open"), &json!(MSISDN))
    );
    setup.crash();
    let taken = setup.take();
    let sms = &taken["items"][0];
    assert_eq!((&sms["id"], &sms["iccid"]), (&id, &json!(ICCID)));
    assert_eq!(sms["parts"], json!([{ "payload": "open" }]));
    let shown = setup.shown(&id);
    assert_eq!(shown["status"], json!({ "id": 2, "status": "IN PROGRESS" }));
    assert!(shown["in_progress_date"].is_string(), "{shown}");
    // The answer may have been lost: nobody gets it a second time.
    setup.crash();
    assert_eq!(setup.take()["items"], json!([]));
    let reported = setup.report(&id, "BUFFERED").expect(202);
    assert_eq!(reported["status"]["id"], 3);
    assert!(setup.shown(&id)["buffered_date"].is_string());
    setup.report(&id, "DELIVERED").expect(202);
    let shown = setup.shown(&id);
    assert_eq!(shown["status"], json!({ "id": 4, "status": "DELIVERED" }));
    assert!(shown["final_date"].is_string(), "{shown}");
    let late = setup.report(&id, "FAILED").expect(202);
    assert_eq!(late["status"]["status"], "DELIVERED", "it is final");
    setup.report(&json!(7), "FAILED").expect(404);
}

#[test]
fn a_final_status_is_patched_once_whatever_it_is() {
    let setup = SmsService::new();
    let endpoint = Endpoint::new();
    setup.forward_to(&endpoint);
    for (number, status) in [(4, "DELIVERED"), (5, "FAILED"), (6, "EXPIRED")] {
        let id = setup.send(&text_to_device(status));
        setup.report(&id, "BUFFERED").expect(202);
        setup.report(&id, status).expect(202);
        setup.report(&id, status).expect(202);
        let posted = endpoint.once(number - 3);
        let patched = posted.last().unwrap().json();
        assert_eq!(patched["status"], json!({ "id": number, "status": status }));
        assert_eq!(patched["id"], id);
    }
    let id = setup.send(&text_to_device("cancelled"));
    setup.cancel(&id);
    let posted = endpoint.once(4);
    assert_eq!(
        posted[3].json()["status"],
        json!({ "id": 7, "status": "CANCELED" })
    );
    assert!(posted.iter().all(|it| it.method == "PATCH"));
}

#[test]
fn a_cancelled_sms_is_never_taken_and_a_buffered_one_is_withdrawn() {
    let mut setup = SmsService::new();
    let waiting = setup.send(&text_to_device("waiting"));
    assert_eq!(setup.cancel(&waiting).status, 204);
    assert_eq!(setup.take(), json!({ "items": [], "withdrawn": [] }));
    let refused = setup.cancel(&waiting).expect(409);
    assert_eq!(error_codes(&refused), ["NOT_CANCELLABLE"]);
    let flying = setup.send(&text_to_device("flying"));
    assert_eq!(setup.take()["items"][0]["id"], flying);
    setup.cancel(&flying).expect(409);
    setup.report(&flying, "BUFFERED").expect(202);
    assert_eq!(setup.cancel(&flying).status, 204);
    setup.crash();
    assert_eq!(setup.take(), json!({ "items": [], "withdrawn": [flying] }));
    assert_eq!(setup.take(), json!({ "items": [], "withdrawn": [] }));
    setup.report(&flying, "DELIVERED").expect(202);
    assert_eq!(setup.shown(&flying)["status"]["status"], "CANCELED");
    let of_device = setup.hand_in("from the device")["id"].clone();
    setup.cancel(&of_device).expect(409);
    setup.report(&of_device, "FAILED").expect(404);
}

#[test]
fn an_sms_ends_with_its_validity_and_the_outcome_of_one_that_was_taken_is_unknown() {
    let setup = SmsService::new();
    let endpoint = Endpoint::new();
    setup.forward_to(&endpoint);
    let soon = expiry_in_seconds(6);
    let taken = setup.send(&with(text_to_device("taken"), "expiry_date", json!(soon)));
    setup.take();
    let waiting = setup.send(&with(text_to_device("waiting"), "expiry_date", json!(soon)));
    let expired = setup.once_in(&waiting, "EXPIRED");
    assert_eq!(expired["expiry_date"], soon);
    let failed = setup.once_in(&taken, "FAILED");
    assert_eq!(failed["reason"], "outcome unknown");
    assert_eq!(setup.take()["items"], json!([]));
    let posted = endpoint.once(2);
    let mut statuses: Vec<Value> = posted
        .iter()
        .map(|it| it.json()["status"].clone())
        .collect();
    statuses.sort_by_key(|it| it["id"].as_u64());
    let expected = [
        json!({ "id": 5, "status": "FAILED" }),
        json!({ "id": 6, "status": "EXPIRED" }),
    ];
    assert_eq!(statuses, expected);
}

#[test]
fn a_long_text_is_divided_and_one_with_a_header_never() {
    let setup = SmsService::new();
    let long = "a".repeat(307);
    let id = setup.send(&text_to_device(&long));
    let wide = setup.send(&text_to_device(&"ж".repeat(71)));
    let octets =
        json!({ "source_address": "Acme", "payload": "00ff", "dcs": 4, "udh": "06050415811581" });
    setup.send(&octets);
    let taken = setup.take();
    let items = taken["items"].as_array().unwrap();
    let lengths = |item: &Value| -> Vec<usize> {
        let parts = item["parts"].as_array().unwrap().iter();
        parts
            .map(|part| part["payload"].as_str().unwrap().chars().count())
            .collect()
    };
    assert_eq!(lengths(&items[0]), [153, 153, 1]);
    assert_eq!(lengths(&items[1]), [67, 4]);
    assert_eq!((&items[0]["dcs"], &items[1]["dcs"]), (&json!(0), &json!(8)));
    let header = items[0]["parts"][1]["udh"].as_str().unwrap();
    assert!(
        header.starts_with("050003") && header.ends_with("0302"),
        "{header}"
    );
    let whole = json!([{ "udh": "06050415811581", "payload": "00ff" }]);
    assert_eq!(items[2]["parts"], whole);
    assert_eq!(items[2]["source_address_type"], json!({ "id": 209 }));
    assert_eq!(setup.shown(&id)["multi_part_info"]["total"], 3);
    assert_eq!(setup.shown(&id)["payload"], long);
    assert_eq!(setup.shown(&wide)["dcs"], 8);
}

#[test]
fn an_sms_that_cannot_be_sent_is_refused_with_its_faults() {
    let setup = SmsService::new();
    let text = || text_to_device("open");
    let cases = [
        (json!({}), vec!["REQUIRED", "REQUIRED"]),
        (
            with(text(), "source_address", json!("a name too long")),
            vec!["INVALID_VALUE"],
        ),
        (
            with(text(), "source_address_type", json!({ "id": 1 })),
            vec!["INVALID_VALUE"],
        ),
        (with(text(), "udh", json!("xyz")), vec!["INVALID_VALUE"]),
        (with(text(), "udh", json!("0601")), vec!["INVALID_VALUE"]),
        (with(text(), "dcs", json!(4)), vec!["INVALID_VALUE"]),
        (
            with(text_to_device("漢"), "dcs", json!(0)),
            vec!["INVALID_VALUE"],
        ),
        (
            with(
                text_to_device(&"a".repeat(153)),
                "udh",
                json!("06050415811581"),
            ),
            vec!["INVALID_VALUE"],
        ),
        (
            text_to_device(&"a".repeat(255 * 153 + 1)),
            vec!["INVALID_VALUE"],
        ),
        (
            with(text(), "expiry_date", json!("2020-01-01 00:00:00")),
            vec!["OUT_OF_RANGE"],
        ),
        (
            with(text(), "expiry_date", json!("2999-01-01 00:00:00")),
            vec!["OUT_OF_RANGE"],
        ),
        (
            with(text(), "expiry_date", json!("soon")),
            vec!["INVALID_VALUE"],
        ),
        (
            with(text(), "colour", json!("red")),
            vec!["UNKNOWN_PROPERTY"],
        ),
    ];
    for (body, codes) in cases {
        let refused = setup.try_send(&body).expect(400);
        assert_eq!(error_codes(&refused), codes, "{body}");
    }
    let nowhere = format!("{API}/sims/8988280666000009999/sms");
    setup.caller.post(&nowhere, &text()).expect(404);
    let other = Caller::of_new_customer(&setup.service, "umbrella");
    other.post(&sms_path(""), &text()).expect(404);
    let page = setup.caller.request("GET", &sms_path("")).expect(200);
    assert_eq!(page["items"], json!([]), "nothing was stored");
}

#[test]
fn the_open_sms_of_a_device_have_a_bound() {
    let setup = SmsService::with(&[("SIGNALBOX_SMS_OPEN_MAX", "2")]);
    let first = setup.send(&text_to_device("one"));
    setup.send(&text_to_device("two"));
    let refused = setup.try_send(&text_to_device("three")).expect(409);
    assert_eq!(error_codes(&refused), ["QUEUE_FULL"]);
    setup.report(&first, "DELIVERED").expect(202);
    setup.send(&text_to_device("three"));
}

/// A time so many seconds from now, as SMS have it.
pub(super) fn expiry_in_seconds(s: u64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let s = i64::try_from(now.unwrap().as_secs() + s).unwrap();
    let time = engine::moment::Timestamp::from_ms(s * 1_000);
    time.spaced_s().to_string()
}
