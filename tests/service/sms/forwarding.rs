//! Do the SMS of devices and the reports about SMS to them arrive at the endpoint of their customer
//! as the seed says, however it behaves?

use serde_json::{Value, json};

use super::{ICCID, MSISDN, NETWORK, SmsService, put_forwarder, received, text_to_device};
use crate::test_service::{error_codes, with};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::endpoint::{Endpoint, ReceivedPost, Reply};
use crate::vocabulary::http::Request;
use crate::vocabulary::poll::until;

/// Retries in a fraction of a second, for a minute.
const STEADY: (&str, &str) = (
    "SIGNALBOX_SMS_RETRY_MS",
    "50,100,200,400,800,1600,3200,6400,6400,6400,6400,6400,6400,6400",
);

#[test]
fn a_message_is_posted_and_the_final_report_patched_to_exactly_the_url() {
    let setup = SmsService::new();
    let endpoint = Endpoint::new();
    let forwarder = setup.forward_to(&endpoint);
    assert_eq!(forwarder["url"], endpoint.url("/sms/"));
    let device = setup
        .caller
        .request("GET", &format!("{API}/devices/tracker"))
        .expect(200);
    let handed_in = setup.hand_in("21.5 °C, \"open\"");
    let posted = endpoint.once(1).remove(0);
    assert_eq!(posted.method, "POST");
    let body = posted.json();
    let expected = json!({
        "id": handed_in["id"],
        "payload": "21.5 °C, \"open\"",
        "submit_date": body["submit_date"],
        "dest_address": "1234",
        "source_address": MSISDN,
        "dcs": 0,
        "endpoint": { "id": device["number"], "name": "Tracker" },
        "organisation": { "id": body["organisation"]["id"] },
        "multi_part_info": { "partno": 1, "total": 1, "identifier": 0 },
        "pid": 0,
    });
    assert_eq!(body, expected);
    assert!(body["organisation"]["id"].is_u64(), "{body}");
    check_date(&body["submit_date"]);
    check_plain(&posted);

    let id = setup.send(&text_to_device("open"));
    setup.take();
    setup.report(&id, "DELIVERED").expect(202);
    let patched = endpoint.once(2).remove(1);
    assert_eq!(patched.method, "PATCH");
    let report = patched.json();
    let expected = json!({
        "id": id,
        "final_date": report["final_date"],
        "submit_date": report["submit_date"],
        "organisation": body["organisation"],
        "endpoint": { "name": "Tracker", "id": device["number"] },
        "status": { "id": 4, "status": "DELIVERED" },
    });
    assert_eq!(report, expected);
    check_date(&report["final_date"]);
    check_date(&report["submit_date"]);
    check_plain(&patched);
}

#[test]
fn a_test_posts_one_message_and_patches_one_report() {
    let setup = SmsService::new();
    let endpoint = Endpoint::new();
    setup.forward_to(&endpoint);
    let path = format!("{API}/sms/forwarder/test");
    let tested = setup.caller.request("POST", &path).expect(200);
    assert_eq!(
        (&tested["delivered"], &tested["statusCode"]),
        (&json!(true), &json!(204))
    );
    let posted = endpoint.posted();
    let methods: Vec<&str> = posted.iter().map(|it| it.method.as_str()).collect();
    assert_eq!(methods, ["POST", "PATCH"]);
    posted.iter().for_each(check_plain);
    endpoint.reply(|posted, _| match posted.method.as_str() {
        "PATCH" => Reply::Status(404),
        _ => Reply::Status(200),
    });
    let tested = setup.caller.request("POST", &path).expect(200);
    assert_eq!(
        (&tested["delivered"], &tested["statusCode"]),
        (&json!(false), &json!(404))
    );
    assert_eq!(endpoint.posted().len(), 4);
}

#[test]
fn an_acknowledged_message_is_delivered_after_a_kill() {
    let mut setup = SmsService::with(&[STEADY]);
    let mut endpoint = Endpoint::new();
    setup.forward_to(&endpoint);
    endpoint.close();
    let ids: Vec<Value> = (0..3)
        .map(|number| setup.hand_in(&format!("number {number}"))["id"].clone())
        .collect();
    setup.crash();
    endpoint.open();
    let posted = endpoint.once_taken(3);
    let delivered: Vec<Value> = posted.iter().map(|it| it.json()["id"].clone()).collect();
    assert_eq!(delivered, ids, "in order");
}

#[test]
fn a_refused_message_is_retried_before_later_ones_of_its_sim() {
    let setup = SmsService::with(&[STEADY]);
    let endpoint = Endpoint::replying(|_, number| match number {
        0..3 => Reply::Status(500),
        _ => Reply::Status(201),
    });
    setup.forward_to(&endpoint);
    setup.hand_in("first");
    setup.hand_in("second");
    let posted = endpoint.once_taken(2);
    let texts: Vec<Value> = posted
        .iter()
        .map(|it| it.json()["payload"].clone())
        .collect();
    assert_eq!(texts, ["first", "second"]);
    let all = endpoint.posted();
    assert!(
        all[..4].iter().all(|it| it.text == all[0].text),
        "the same bytes"
    );
    until("an active forwarder", || {
        (setup.forwarder()["state"] == "INTEGRATION_ACTIVE").then_some(())
    });
}

#[test]
fn a_message_that_is_never_accepted_is_logged_and_can_be_replayed() {
    let setup = SmsService::with(&[("SIGNALBOX_SMS_RETRY_MS", "50,50")]);
    let endpoint = Endpoint::replying(|posted, _| match posted.text.contains("poison") {
        true => Reply::Status(400),
        false => Reply::Status(200),
    });
    setup.forward_to(&endpoint);
    setup.hand_in("poison");
    setup.hand_in("water");
    let posted = endpoint.once_taken(1);
    assert_eq!(posted[0].json()["payload"], "water");
    let entries = setup.caller.log_entries();
    let entry = entries
        .iter()
        .find(|it| it["message"] == "SmsForwarder[DeliveryFailed]");
    let entry = entry.expect("it is logged");
    assert_eq!(
        (&entry["category"], &entry["iccid"]),
        (&json!("error"), &json!(ICCID))
    );
    assert!(text(&entry["description"]).contains("400"), "{entry}");
    let path = format!("{API}/sms/forwarder/deadletters");
    let letters = setup.caller.request("GET", &path).expect(200);
    assert_eq!(letters["items"][0]["type"], "SMS_RECEIVED");
    endpoint.reply(|_, _| Reply::Status(204));
    let replay = format!("{path}/replay");
    setup.caller.request("POST", &replay).expect(202);
    let posted = endpoint.once_taken(2);
    assert_eq!(posted[1].json()["payload"], "poison");
}

#[test]
fn a_dead_endpoint_delays_no_other_customer() {
    let setup = SmsService::with(&[STEADY]);
    let silent = Endpoint::replying(|_, _| Reply::Silence);
    setup.forward_to(&silent);
    let other = Caller::of_new_customer(&setup.service, "umbrella");
    let endpoint = Endpoint::new();
    setup.device(&other, "pump", ("8988280666000000002", "882285100000002"));
    put_forwarder(&other, &endpoint.url("/in")).expect(200);
    for _ in 0..20 {
        setup.hand_in("dead");
    }
    silent.once(1);
    let body = received("882285100000002", "alive");
    setup.mo(&body).expect(202);
    let posted = endpoint.once(1);
    assert_eq!(posted[0].path, "/in");
    assert_eq!(posted[0].json()["payload"], "alive");
    assert_eq!(silent.posted().len(), 1, "one message of a SIM at a time");
}

#[test]
fn a_forwarder_is_set_changed_and_deleted() {
    let setup = SmsService::new();
    let path = format!("{API}/sms/forwarder");
    setup.caller.request("GET", &path).expect(404);
    setup.caller.request("DELETE", &path).expect(404);
    setup
        .caller
        .request("POST", &format!("{path}/test"))
        .expect(404);
    // What nobody forwards is in the list of the SIM.
    setup.hand_in("before");
    let (first, second) = (Endpoint::new(), Endpoint::new());
    setup.forward_to(&first);
    setup.hand_in("one");
    first.once(1);
    setup.forward_to(&second);
    assert_eq!(setup.forwarder()["url"], second.url("/sms/"));
    setup.hand_in("two");
    assert_eq!(second.once(1)[0].json()["payload"], "two");
    assert_eq!(setup.caller.request("DELETE", &path).status, 204);
    setup.caller.request("GET", &path).expect(404);
    setup.hand_in("three");
    setup.forward_to(&second);
    setup.hand_in("four");
    assert_eq!(second.once(2)[1].json()["payload"], "four");
    assert_eq!(first.posted().len(), 1);
}

#[test]
fn a_url_that_may_not_be_called_is_refused() {
    let (_service, caller) = crate::test_service::start(&[]);
    let urls = [
        "http://example.com/",
        "https://127.0.0.1/",
        "https://localhost/in",
        "https://user:pass@example.com/",
        "example.com",
    ];
    for url in urls {
        let refused = put_forwarder(&caller, url).expect(400);
        assert_eq!(error_codes(&refused), ["INVALID_VALUE"], "{url}");
    }
    put_forwarder(&caller, "https://example.com:8443/sms/").expect(200);
}

#[test]
fn a_webhook_receives_no_sms() {
    let setup = SmsService::new();
    let (webhook, forwarder) = (Endpoint::new(), Endpoint::new());
    setup.forward_to(&forwarder);
    let path = format!("{API}/integrate/clouds/webhooks");
    let body = json!({ "name": "All", "url": webhook.url("/in") });
    let types = json!([{ "type": "SMS_RECEIVED" }]);
    let refused = setup
        .caller
        .post(&path, &with(body.clone(), "eventTypes", types));
    refused.expect(400);
    let made = setup.caller.post(&path, &body).expect(201);
    setup.hand_in("for the forwarder");
    forwarder.once(1);
    let path = format!("{path}/{}", text(&made["id"]));
    until("nothing waits for the webhook", || {
        let shown = setup.caller.request("GET", &path).expect(200);
        (shown["backlog"]["waiting"] == 0).then_some(())
    });
    assert!(webhook.posted().is_empty());
}

#[test]
fn a_message_of_an_unknown_number_or_with_faults_is_refused() {
    let setup = SmsService::new();
    setup.mo(&received("882285109999999", "who")).expect(404);
    setup
        .mo(&received(&format!("+{MSISDN}"), "with a plus"))
        .expect(202);
    let faults = [
        (
            with(received(MSISDN, "x"), "dcs", json!(256)),
            "OUT_OF_RANGE",
        ),
        (with(received(MSISDN, "x"), "pid", json!("0")), "WRONG_TYPE"),
        (with(received("x", "x"), "pid", json!(0)), "INVALID_VALUE"),
        (received(MSISDN, &"x".repeat(281)), "OUT_OF_RANGE"),
        (
            with(received(MSISDN, "x"), "more", json!(0)),
            "UNKNOWN_PROPERTY",
        ),
    ];
    for (body, code) in faults {
        let refused = setup.mo(&body).expect(400);
        assert_eq!(error_codes(&refused), [code], "{body}");
    }
    let part = json!({ "partno": 3, "total": 2, "identifier": 7 });
    let refused = setup.mo(&with(received(MSISDN, "x"), "multi_part_info", part));
    refused.expect(400);
}

#[test]
fn a_message_that_is_handed_in_twice_under_a_key_is_posted_once() {
    let setup = SmsService::new();
    let endpoint = Endpoint::new();
    setup.forward_to(&endpoint);
    let path = format!("{NETWORK}/mo");
    let hand_in = || {
        let call: Request = setup.network.authorized("POST", &path);
        let call = call.header("idempotency-key", "9f1c");
        let call = call.json(&received(MSISDN, "once"));
        call.send(setup.network.address()).expect(202)
    };
    assert_eq!(hand_in(), hand_in());
    setup.hand_in("twice");
    let posted = endpoint.once(2);
    let texts: Vec<Value> = posted
        .iter()
        .map(|it| it.json()["payload"].clone())
        .collect();
    assert_eq!(texts, ["once", "twice"]);
}

/// The request goes to exactly the URL, and has no header of authentication or signature.
fn check_plain(posted: &ReceivedPost) {
    assert_eq!(posted.path, "/sms/");
    assert_eq!(posted.header("content-type"), Some("application/json"));
    for name in [
        "authorization",
        "webhook-signature",
        "webhook-id",
        "webhook-timestamp",
    ] {
        assert_eq!(posted.header(name), None, "{name}");
    }
}

/// `YYYY-MM-DD HH:MM:SS`.
fn check_date(date: &Value) {
    let date = text(date);
    let form = date
        .chars()
        .map(|c| if c.is_ascii_digit() { '9' } else { c });
    assert_eq!(form.collect::<String>(), "9999-99-99 99:99:99", "{date}");
}
