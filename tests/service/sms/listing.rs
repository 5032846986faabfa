//! Are the SMS of a SIM listed in both directions, joined, until their device is removed?

use serde_json::{Value, json};

use super::{ICCID, MSISDN, SmsService, received, sms_path, text_to_device};
use crate::test_service::with;
use crate::vocabulary::caller::{API, text};
use crate::vocabulary::endpoint::Endpoint;

#[test]
fn the_parts_of_a_message_are_posted_one_by_one_and_joined_in_the_list() {
    let setup = SmsService::new();
    let endpoint = Endpoint::new();
    setup.forward_to(&endpoint);
    let part = |number: u8, text: &str| {
        let info = json!({ "partno": number, "total": 3, "identifier": 42 });
        let body = with(received(MSISDN, text), "multi_part_info", info);
        setup.mo(&body).expect(202)["id"].clone()
    };
    let second = part(2, "world");
    part(1, "hello ");
    let whole = setup.hand_in("another");
    let page = || setup.caller.request("GET", &sms_path("")).expect(200);
    let shown = page();
    assert_eq!(shown["items"].as_array().unwrap().len(), 2);
    let joined = &shown["items"][1];
    assert_eq!(
        (&joined["id"], &joined["payload"]),
        (&second, &json!("hello world"))
    );
    assert_eq!(joined["multi_part_info"]["received"], json!([1, 2]));
    assert_eq!(joined["sms_type"], json!({ "id": 2, "description": "MO" }));
    let third = part(3, "!");
    let shown = setup.shown(&third);
    assert_eq!(
        (&shown["id"], &shown["payload"]),
        (&second, &json!("hello world!"))
    );
    assert_eq!(setup.shown(&second), shown);
    assert_eq!(page()["items"][0]["id"], whole["id"]);
    let posted = endpoint.once(4);
    let info: Vec<Value> = posted
        .iter()
        .map(|it| it.json()["multi_part_info"].clone())
        .collect();
    assert_eq!(
        info[0],
        json!({ "partno": 2, "total": 3, "identifier": 42 })
    );
    assert_eq!(
        info[3],
        json!({ "partno": 3, "total": 3, "identifier": 42 })
    );
    assert_eq!(posted[0].json()["id"], second);
    // The reference is used again.
    let again = part(1, "once more");
    assert_ne!(again, second);
    assert_eq!(setup.shown(&again)["payload"], "once more");
    assert_eq!(setup.shown(&second), shown);
}

#[test]
fn the_list_is_paged_newest_first_in_both_directions_and_in_the_inspector() {
    let mut setup = SmsService::new();
    for number in 0..6 {
        match number % 2 {
            0 => drop(setup.hand_in(&format!("message {number}"))),
            _ => drop(setup.send(&text_to_device(&format!("message {number}")))),
        }
    }
    setup.crash();
    let mut texts = Vec::new();
    for number in 1..=4 {
        let path = sms_path(&format!("?pageSize=2&page={number}"));
        let page = setup.caller.request("GET", &path).expect(200);
        assert_eq!(
            (&page["page"], &page["pageAmount"]),
            (&json!(number), &json!(3))
        );
        let items = page["items"].as_array().unwrap().iter();
        texts.extend(items.map(|sms| text(&sms["payload"])));
    }
    let expected: Vec<String> = (0..6)
        .rev()
        .map(|number| format!("message {number}"))
        .collect();
    assert_eq!(texts, expected);
    let inspected = setup
        .caller
        .request("GET", &format!("{API}/devices/tracker"));
    let recent = inspected.expect(200)["recentSms"].clone();
    let recent: Vec<String> = recent
        .as_array()
        .unwrap()
        .iter()
        .map(|it| text(&it["payload"]))
        .collect();
    assert_eq!(recent, expected);
    let messages = format!("{API}/devices/tracker/messages?type=SMS_RECEIVED");
    let messages = setup.caller.request("GET", &messages).expect(200);
    assert_eq!(messages["items"].as_array().unwrap().len(), 3);
    assert_eq!(messages["items"][0]["sms"]["payload"], "message 4");
}

#[test]
fn the_sms_of_a_removed_device_are_gone_for_the_next_one_with_its_sim() {
    let setup = SmsService::new();
    let id = setup.send(&text_to_device("open"));
    setup.hand_in("closed");
    let removed = setup
        .caller
        .request("DELETE", &format!("{API}/devices/tracker"));
    assert_eq!(removed.status, 204);
    setup.caller.request("GET", &sms_path("")).expect(404);
    assert_eq!(setup.take()["items"], json!([]), "it is not sent");
    setup.report(&id, "DELIVERED").expect(404);
    setup.mo(&received(MSISDN, "who")).expect(404);
    setup.device(&setup.caller, "tracker", (ICCID, MSISDN));
    let page = setup.caller.request("GET", &sms_path("")).expect(200);
    assert_eq!(page["items"], json!([]));
    let path = sms_path(&format!("/{id}"));
    setup.caller.request("GET", &path).expect(404);
}
