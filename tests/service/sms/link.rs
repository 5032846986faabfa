//! Do SMS leave over a link once, are receipts matched, and are messages of devices kept?

use protocol::smpp::message::ShortMessage;
use protocol::smpp::pdu::SmppCommand;
use protocol::smpp::status::{
    ESME_RMSGQFUL, ESME_ROK, ESME_RTHROTTLED, ESME_RX_P_APPN, ESME_RX_T_APPN,
};
use serde_json::json;

use super::{MSISDN, SmsService, sms_path, text_to_device};
use crate::test_service::with;
use crate::vocabulary::endpoint::{Endpoint, ReceivedPost};
use crate::vocabulary::poll::until;
use crate::vocabulary::smsc::{PASSWORD, SYSTEM_ID, Smsc, SubmitReply, message_of, receipt_of};

/// A service with a link to an SMS centre.
pub(super) fn linked(smsc: &Smsc, settings: &[(&str, &str)]) -> SmsService {
    let url = smsc.url();
    let link = [
        ("SIGNALBOX_SMPP_URL", &*url),
        ("SIGNALBOX_SMPP_SYSTEM_ID", SYSTEM_ID),
        ("SIGNALBOX_SMPP_PASSWORD", PASSWORD),
    ];
    let setup = SmsService::with(&[&link, settings].concat());
    smsc.bound();
    setup
}

#[test]
fn an_sms_is_submitted_once_and_delivered_by_its_receipt() {
    let smsc = Smsc::new();
    let mut setup = linked(&smsc, &[]);
    let endpoint = Endpoint::new();
    setup.forward_to(&endpoint);
    let id = setup.send(&text_to_device("open € gate"));
    let submitted = smsc.submitted_once(1).remove(0);
    assert_eq!((&*submitted.source.text, submitted.source.ton), ("1234", 1));
    assert_eq!((&*submitted.dest.text, submitted.dest.ton), (MSISDN, 1));
    assert_eq!(&*submitted.octets, b"open \x1be gate");
    assert_eq!((submitted.esm_class, submitted.data_coding), (0, 0));
    assert_eq!(submitted.registered_delivery, 1);
    assert!(submitted.user_message_reference.is_some());
    assert!(submitted.validity_period.ends_with("000+"), "{submitted:?}");
    setup.once_in(&id, "IN PROGRESS");
    // The id is stored: after a restart the receipt is matched all the same.
    setup.service.stop();
    setup.service.start_again();
    setup.caller.follow(&setup.service);
    smsc.bound();
    assert_eq!(
        smsc.deliver(receipt_of(&submitted, "id0", "ENROUTE")),
        ESME_ROK
    );
    setup.once_in(&id, "BUFFERED");
    for stat in ["DELIVRD", "DELIVRD", "UNDELIV"] {
        assert_eq!(smsc.deliver(receipt_of(&submitted, "id0", stat)), ESME_ROK);
    }
    assert_eq!(setup.shown(&id)["status"]["status"], "DELIVERED");
    let patched = endpoint.once(1).remove(0);
    assert_eq!((&*patched.method, &patched.json()["id"]), ("PATCH", &id));
    assert_eq!(smsc.submitted().len(), 1);
}

#[test]
fn a_long_text_is_delivered_once_all_its_parts_are() {
    let smsc = Smsc::new();
    let setup = linked(&smsc, &[]);
    let id = setup.send(&text_to_device(&"ж".repeat(140)));
    let parts = smsc.submitted_once(3);
    let header = |part: &ShortMessage| (part.octets[..3].to_vec(), part.octets[4], part.octets[5]);
    for (number, part) in (1..).zip(&parts) {
        assert_eq!(header(part), (vec![5, 0, 3], 3, number));
        assert_eq!((part.esm_class, part.data_coding), (0x40, 8));
    }
    let references: Vec<u16> = parts
        .iter()
        .filter_map(|it| it.user_message_reference)
        .collect();
    assert!(
        references.is_sorted_by(|a, b| a.wrapping_add(1) == *b),
        "{references:?}"
    );
    setup.once_in(&id, "IN PROGRESS");
    for (number, part) in parts.iter().enumerate() {
        assert_eq!(setup.shown(&id)["status"]["status"], "IN PROGRESS");
        let receipt = receipt_of(part, &format!("id{number}"), "DELIVRD");
        for _ in 0..2 {
            assert_eq!(smsc.deliver(receipt.clone()), ESME_ROK);
        }
    }
    assert_eq!(setup.shown(&id)["status"]["status"], "DELIVERED");
    let failing = setup.send(&text_to_device(&"a".repeat(161)));
    let parts = smsc.submitted_once(5);
    let receipt = receipt_of(&parts[4], "id4", "UNDELIV");
    until("the receipt is matched", || {
        smsc.deliver(receipt.clone());
        (setup.shown(&failing)["status"]["status"] == "FAILED").then_some(())
    });
    assert_eq!(setup.shown(&failing)["reason"], "UNDELIV, error 000");
}

#[test]
fn a_receipt_is_matched_before_the_response_and_in_another_notation() {
    let smsc = Smsc::replying(|submitted, number| {
        // The id of the response is hexadecimal, that of the receipt decimal.
        let (hexadecimal, decimal) = (format!("{:X}", number + 700), format!("{}", number + 700));
        let receipt = receipt_of(submitted, &decimal, "DELIVRD");
        SubmitReply::AcceptAfter(Box::new(receipt), hexadecimal)
    });
    let setup = linked(&smsc, &[]);
    let ids: Vec<_> = (0..20)
        .map(|number| setup.send(&text_to_device(&format!("text {number}"))))
        .collect();
    for id in &ids {
        setup.once_in(id, "DELIVERED");
    }
    let unknown = receipt_of(&smsc.submitted()[0], "never", "DELIVRD");
    assert_eq!(smsc.deliver(unknown), ESME_ROK, "it would come again");
    let of_nobody = ShortMessage {
        source: message_of("882285100009999", "").source,
        ..receipt_of(&smsc.submitted()[0], "700", "DELIVRD")
    };
    assert_eq!(smsc.deliver(of_nobody), ESME_ROK);
}

#[test]
fn a_receipt_whose_address_is_no_device_is_matched_by_its_id() {
    let smsc = Smsc::replying(|submitted, number| {
        let id = format!("id{number}");
        // Exchanged addresses, a national number, a name, and none; some before the response.
        let source = ["1234", "085100000001", "Acme", ""][number % 4];
        let mut receipt = receipt_of(submitted, &id, "DELIVRD");
        receipt.source.text = source.into();
        SubmitReply::AcceptAfter(Box::new(receipt), id)
    });
    let mut setup = linked(&smsc, &[]);
    for number in 0..8 {
        let id = setup.send(&text_to_device(&format!("text {number}")));
        setup.once_in(&id, "DELIVERED");
    }
    // The id is stored: after a restart the receipt is matched all the same.
    smsc.reply(|_, number| SubmitReply::Accept(format!("id{number}")));
    let id = setup.send(&text_to_device("last"));
    let last = smsc.submitted_once(9)[8].clone();
    setup.once_in(&id, "IN PROGRESS");
    setup.service.stop();
    setup.service.start_again();
    setup.caller.follow(&setup.service);
    let mut receipt = receipt_of(&last, "id8", "DELIVRD");
    receipt.source.text = "".into();
    until("the receipt is matched", || {
        smsc.bound();
        smsc.deliver(receipt.clone());
        (setup.shown(&id)["status"]["status"] == "DELIVERED").then_some(())
    });
}

#[test]
fn a_submission_without_a_response_is_never_repeated() {
    let smsc = Smsc::replying(|_, number| match number {
        0 => SubmitReply::Silence,
        _ => SubmitReply::Accept(format!("id{number}")),
    });
    let mut setup = linked(&smsc, &[]);
    let endpoint = Endpoint::new();
    setup.forward_to(&endpoint);
    let lost = setup.send(&text_to_device("lost"));
    let submitted = smsc.submitted_once(1).remove(0);
    smsc.break_session();
    smsc.bound();
    let next = setup.send(&text_to_device("next"));
    assert_eq!(&*smsc.submitted_once(2)[1].octets, b"next");
    setup.once_in(&next, "IN PROGRESS");
    setup.crash();
    smsc.bound();
    let last = setup.send(&text_to_device("last"));
    assert_eq!(&*smsc.submitted_once(3)[2].octets, b"last");
    setup.once_in(&last, "IN PROGRESS");
    assert_eq!(setup.shown(&lost)["status"]["status"], "IN PROGRESS");
    // Nobody knows its id here: the reference tells it.
    let receipt = ShortMessage {
        user_message_reference: submitted.user_message_reference,
        ..receipt_of(&submitted, "unheard", "DELIVRD")
    };
    assert_eq!(smsc.deliver(receipt), ESME_ROK);
    assert_eq!(setup.shown(&lost)["status"]["status"], "DELIVERED");
    assert_eq!(endpoint.once(1)[0].json()["id"], lost);
}

#[test]
fn an_sms_whose_response_was_lost_fails_at_the_end_of_its_validity() {
    let smsc = Smsc::replying(|_, _| SubmitReply::Break);
    let setup = linked(&smsc, &[]);
    let soon = super::sending::expiry_in_seconds(4);
    let id = setup.send(&with(text_to_device("lost"), "expiry_date", json!(soon)));
    let failed = setup.once_in(&id, "FAILED");
    assert_eq!(failed["reason"], "outcome unknown");
    assert_eq!(smsc.submitted().len(), 1);
}

#[test]
fn a_throttled_sms_waits_and_is_submitted_again() {
    let smsc = Smsc::replying(|_, number| match number {
        0 => SubmitReply::Refuse(ESME_RTHROTTLED),
        1 => SubmitReply::Refuse(ESME_RMSGQFUL),
        _ => SubmitReply::Accept(format!("id{number}")),
    });
    let setup = linked(&smsc, &[("SIGNALBOX_SMPP_WINDOW", "1")]);
    let one = setup.send(&text_to_device("one"));
    let two = setup.send(&text_to_device("two"));
    let submitted = smsc.submitted_once(4);
    let texts: Vec<&[u8]> = submitted.iter().map(|it| &*it.octets).collect();
    assert_eq!(texts, [b"one", b"one", b"one", b"two"]);
    for (id, number) in [(&one, 2), (&two, 3)] {
        let receipt = receipt_of(&submitted[number], &format!("id{number}"), "DELIVRD");
        until("the receipt is matched", || {
            smsc.deliver(receipt.clone());
            (setup.shown(id)["status"]["status"] == "DELIVERED").then_some(())
        });
    }
    assert_eq!(smsc.submitted().len(), 4);
}

#[test]
fn a_refused_sms_fails_and_a_cancelled_one_is_deleted_from_the_queue() {
    let smsc = Smsc::replying(|message, number| match &*message.octets {
        b"refused" => SubmitReply::Refuse(0x0b),
        _ => SubmitReply::Accept(format!("id{number}")),
    });
    let setup = linked(&smsc, &[]);
    let refused = setup.send(&text_to_device("refused"));
    let failed = setup.once_in(&refused, "FAILED");
    assert_eq!(
        failed["reason"],
        "refused by the SMS centre with command_status 0xb"
    );
    let buffered = setup.send(&text_to_device("buffered"));
    let submitted = smsc.submitted_once(2).remove(1);
    until("the receipt is matched", || {
        smsc.deliver(receipt_of(&submitted, "id1", "ENROUTE"));
        (setup.shown(&buffered)["status"]["status"] == "BUFFERED").then_some(())
    });
    assert_eq!(setup.cancel(&buffered).status, 204);
    let cancelled = until("cancel_sm", || {
        smsc.others().into_iter().find_map(|command| {
            if let SmppCommand::CancelSm(cancellation) = command {
                Some(cancellation)
            } else {
                None
            }
        })
    });
    assert_eq!(&*cancelled.message_id, "id1");
    assert_eq!(
        (&*cancelled.source.text, &*cancelled.dest.text),
        ("1234", MSISDN)
    );
    let name = setup.send(&json!({ "source_address": "Größe", "payload": "open" }));
    let failed = setup.once_in(&name, "FAILED");
    assert_eq!(
        failed["reason"],
        "the source address is too long, or has a character that is not ASCII"
    );
    let nowhere = json!({ "deviceId": "silent", "iccid": "8988280666000000002" });
    setup
        .caller
        .post("/management-api/v1/devices", &nowhere)
        .expect(201);
    let path = "/management-api/v1/sims/8988280666000000002/sms";
    let id = setup.caller.post(path, &text_to_device("open")).expect(201)["id"].clone();
    let failed = until("the end of an SMS to no number", || {
        let shown = setup
            .caller
            .request("GET", &format!("{path}/{id}"))
            .expect(200);
        (shown["status"]["status"] == "FAILED").then_some(shown)
    });
    assert_eq!(failed["reason"], "the device has no msisdn");
}

#[test]
fn a_message_of_a_device_is_acknowledged_once_it_is_stored() {
    let smsc = Smsc::new();
    let mut setup = linked(&smsc, &[]);
    let endpoint = Endpoint::new();
    setup.forward_to(&endpoint);
    let with_plus = message_of(&format!("+{MSISDN}"), "hello");
    assert_eq!(smsc.deliver(with_plus), ESME_ROK);
    let part = |number: u8, octets: &[u8]| ShortMessage {
        esm_class: 0x40,
        octets: [&[5, 0, 3, 9, 2, number], octets].concat().into(),
        ..message_of(MSISDN, "")
    };
    assert_eq!(smsc.deliver(part(2, b"world")), ESME_ROK);
    assert_eq!(smsc.deliver(part(1, b"hello ")), ESME_ROK);
    setup.crash();
    let page = setup.caller.request("GET", &sms_path("")).expect(200);
    let texts: Vec<_> = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["payload"])
        .collect();
    assert_eq!(texts, ["hello world", "hello"]);
    // What was in delivery at the crash is delivered again.
    let distinct = |posted: &[ReceivedPost]| {
        let mut bodies = Vec::new();
        for body in posted.iter().map(ReceivedPost::json) {
            if !bodies.contains(&body) {
                bodies.push(body);
            }
        }
        bodies
    };
    let posted = endpoint.once_so("three messages", |posted| distinct(posted).len() >= 3);
    assert_eq!(distinct(&posted)[2]["multi_part_info"]["partno"], 1);
    smsc.bound();
    assert_eq!(
        smsc.deliver(message_of("882285100009999", "stranger")),
        ESME_RX_P_APPN
    );
    let unheard = smsc.send(SmppCommand::OtherRequest(0x0000_0103));
    until("generic_nack", || {
        smsc.others()
            .contains(&SmppCommand::GenericNack)
            .then_some(unheard)
    });
}

#[test]
fn a_full_store_refuses_messages_for_now() {
    let smsc = Smsc::new();
    let mut setup = linked(&smsc, &[]);
    let reserve = setup.service.reserve_above_free();
    let url = smsc.url();
    setup.service.stop();
    setup.service.start_again_with(&[
        ("SIGNALBOX_SMPP_URL", &*url),
        ("SIGNALBOX_SMPP_SYSTEM_ID", SYSTEM_ID),
        ("SIGNALBOX_SMPP_PASSWORD", PASSWORD),
        ("SIGNALBOX_DISK_RESERVE_MIB", &*reserve),
    ]);
    setup.service.may_fail();
    smsc.bound();
    assert_eq!(smsc.deliver(message_of(MSISDN, "full")), ESME_RX_T_APPN);
}
