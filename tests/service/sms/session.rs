//! Does the link come back, change to another SMS centre, and end in order?

use protocol::smpp::pdu::SmppCommand;
use protocol::smpp::status::ESME_ROK;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};

use super::link::linked;
use super::{MSISDN, SmsService, sms_path, text_to_device};
use crate::vocabulary::caller::Caller;
use crate::vocabulary::poll::until;
use crate::vocabulary::smsc::{PASSWORD, SYSTEM_ID, Smsc, SubmitReply, message_of, receipt_of};

/// SMS of the tests with many: what a busy machine does in a moment.
const MANY: usize = 1_000;

#[test]
fn readiness_says_whether_the_link_is_bound() {
    let mut smsc = Smsc::new();
    let setup = linked(&smsc, &[]);
    let ready = |state: &str| {
        until(state, || {
            let ready = setup.caller.request("GET", "/readyz").expect(200);
            (ready["smpp"] == state).then_some(())
        });
    };
    ready("bound");
    assert!(metrics(&setup.caller).contains("signalbox_smpp_bound 1"));
    smsc.close();
    ready("unbound");
    let id = setup.send(&text_to_device("later"));
    assert_eq!(setup.shown(&id)["status"]["status"], "PENDING");
    smsc.open_again();
    smsc.bound();
    ready("bound");
    setup.once_in(&id, "IN PROGRESS");
    let without = SmsService::new();
    let body = without.caller.request("GET", "/readyz").expect(200);
    assert_eq!(body, json!({ "status": "ok" }));
}

#[test]
fn the_next_sms_centre_is_used_while_the_first_is_down() {
    let (mut first, second) = (Smsc::new(), Smsc::new());
    let urls = format!("{},{}", first.url(), second.url());
    let setup = linked(&first, &[("SIGNALBOX_SMPP_URL", &urls)]);
    assert!(!second.is_bound());
    setup.send(&text_to_device("first"));
    first.submitted_once(1);
    first.close();
    second.bound();
    setup.send(&text_to_device("second"));
    assert_eq!(&*second.submitted_once(1)[0].octets, b"second");
    assert_eq!(second.deliver(message_of(MSISDN, "hello")), ESME_ROK);
    first.open_again();
    second.break_session();
    first.bound();
    assert_eq!(first.submitted().len(), 1);
}

#[test]
fn a_link_over_tls_trusts_the_authorities_of_its_setting() {
    let names = vec!["localhost".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let tls = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], PrivateKeyDer::from(key))
        .unwrap();
    let smsc = Smsc::secure(tls);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (authorities, password) = (file("ca.pem", &cert.pem()), file("password", PASSWORD));
    let trusting = [
        ("SIGNALBOX_SMPP_CA_FILE", &*authorities),
        ("SIGNALBOX_SMPP_PASSWORD", ""),
        ("SIGNALBOX_SMPP_PASSWORD_FILE", &*password),
    ];
    let setup = linked(&smsc, &trusting);
    setup.send(&text_to_device("secret"));
    assert_eq!(&*smsc.submitted_once(1)[0].octets, b"secret");
    assert_eq!(smsc.deliver(message_of(MSISDN, "hello")), ESME_ROK);
    let url = smsc.url();
    let distrusting = SmsService::with(&[
        ("SIGNALBOX_SMPP_URL", &url),
        ("SIGNALBOX_SMPP_SYSTEM_ID", SYSTEM_ID),
        ("SIGNALBOX_SMPP_PASSWORD", PASSWORD),
    ]);
    until("a refused certificate", || {
        let metrics = metrics(&distrusting.caller);
        let refused = "signalbox_smpp_sessions_total{result=\"not_bound\"}";
        metrics.contains(refused).then_some(())
    });
}

#[test]
fn a_silent_sms_centre_is_asked_and_left() {
    let smsc = Smsc::replying(|_, _| SubmitReply::Silence);
    let settings = [
        ("SIGNALBOX_SMPP_ENQUIRE_LINK_MS", "100"),
        ("SIGNALBOX_SMPP_RESPONSE_TIMEOUT_MS", "1000"),
    ];
    let setup = linked(&smsc, &settings);
    until("enquire_link", || {
        smsc.others()
            .contains(&SmppCommand::EnquireLink)
            .then_some(())
    });
    let id = setup.send(&text_to_device("lost"));
    smsc.submitted_once(1);
    until("the end of the session", || {
        let metrics = metrics(&setup.caller);
        metrics
            .contains("signalbox_smpp_submitted_total{result=\"unknown\"} 1")
            .then_some(())
    });
    smsc.bound();
    assert_eq!(setup.shown(&id)["status"]["status"], "IN PROGRESS");
    assert_eq!(smsc.submitted().len(), 1);
}

#[test]
fn an_unbind_of_either_side_ends_the_session() {
    let smsc = Smsc::new();
    let mut setup = linked(&smsc, &[]);
    smsc.send(SmppCommand::Unbind);
    until("unbind_resp", || {
        smsc.others()
            .contains(&SmppCommand::UnbindResp)
            .then_some(())
    });
    until("another session", || {
        let metrics = metrics(&setup.caller);
        metrics
            .contains("signalbox_smpp_sessions_total{result=\"bound\"} 2")
            .then_some(())
    });
    assert!(setup.service.stop().success());
    assert!(smsc.others().contains(&SmppCommand::Unbind));
}

#[test]
fn what_was_not_submitted_at_a_stop_is_submitted_after_it() {
    let smsc = Smsc::replying(|_, _| SubmitReply::Silence);
    let mut setup = linked(&smsc, &[("SIGNALBOX_SMPP_WINDOW", "1")]);
    let ids: Vec<Value> = (0..5)
        .map(|number| setup.send(&text_to_device(&number.to_string())))
        .collect();
    smsc.submitted_once(1);
    assert!(setup.service.stop().success());
    smsc.reply(|_, number| SubmitReply::Accept(format!("id{number}")));
    setup.service.start_again();
    setup.caller.follow(&setup.service);
    let texts: Vec<Vec<u8>> = smsc
        .submitted_once(5)
        .into_iter()
        .map(|it| it.octets.into())
        .collect();
    assert_eq!(texts, [b"0", b"1", b"2", b"3", b"4"]);
    setup.once_in(&ids[4], "IN PROGRESS");
}

#[test]
fn sms_are_submitted_at_most_once_however_often_sessions_and_the_service_end() {
    let smsc = Smsc::replying(|message, number| match number % 97 {
        41 => SubmitReply::Break,
        13 => SubmitReply::Refuse(0x58),
        _ => {
            let id = format!("{number}");
            let receipt = receipt_of(message, &id, "DELIVRD");
            SubmitReply::AcceptAfter(Box::new(receipt), id)
        }
    });
    let open = ("SIGNALBOX_SMS_OPEN_MAX", "1000");
    let mut setup = linked(&smsc, &[open, ("SIGNALBOX_SMPP_WINDOW", "8")]);
    for number in 0..MANY {
        setup.send(&text_to_device(&format!("text {number}")));
        if number % 333 == 332 {
            setup.crash();
        }
    }
    // Those that were on the air when a session ended have no response.
    let settled = || {
        let mut counts = [0; 3];
        for page in 1..=MANY / 100 {
            let path = sms_path(&format!("?pageSize=100&page={page}"));
            let page = setup.caller.request("GET", &path).expect(200);
            for sms in page["items"].as_array().unwrap() {
                match sms["status"]["status"].as_str().unwrap() {
                    "PENDING" => counts[0] += 1,
                    "IN PROGRESS" => counts[1] += 1,
                    "DELIVERED" => counts[2] += 1,
                    other => panic!("{other}"),
                }
            }
        }
        counts
    };
    let mut submitted = 0;
    until("nothing waits, and nothing is submitted any more", || {
        let before = std::mem::replace(&mut submitted, smsc.submitted().len());
        (submitted == before && settled()[0] == 0).then_some(())
    });
    let mut texts: Vec<Vec<u8>> = Vec::new();
    for (number, message) in smsc.submitted().into_iter().enumerate() {
        // A refused one is submitted again.
        if number % 97 != 13 {
            texts.push(message.octets.into());
        }
    }
    let all = texts.len();
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len(), all, "none left twice");
    let [_, in_progress, delivered] = settled();
    assert_eq!(in_progress + delivered, MANY);
    // At each of some ends of sessions, a window of eight was on the air.
    assert!(delivered > MANY / 2, "{delivered} are delivered");
}

#[test]
fn messages_of_devices_are_kept_however_often_sessions_and_the_service_end() {
    let smsc = Smsc::new();
    let mut setup = linked(&smsc, &[]);
    let mut acknowledged = Vec::new();
    for round in 0..4 {
        smsc.bound();
        let sent: Vec<(u32, String)> = (0..MANY / 4)
            .map(|number| {
                let text = format!("{round}-{number}");
                let message = Box::new(message_of(MSISDN, &text));
                (smsc.send(SmppCommand::DeliverSm(message)), text)
            })
            .collect();
        let half = sent[sent.len() / 2].0;
        until("half of the responses", || smsc.response(half));
        let mut ok = Vec::new();
        for (sequence, text) in sent {
            if smsc.response(sequence) == Some(ESME_ROK) {
                ok.push(text);
            }
        }
        acknowledged.extend(ok);
        setup.crash();
    }
    let stored = setup
        .caller
        .request("GET", &sms_path("?pageSize=100&page=1"))
        .expect(200);
    let pages = stored["pageAmount"].as_u64().unwrap();
    let mut texts = Vec::new();
    for page in 1..=pages {
        let path = sms_path(&format!("?pageSize=100&page={page}"));
        let page = setup.caller.request("GET", &path).expect(200);
        let items = page["items"].as_array().unwrap().clone();
        texts.extend(
            items
                .iter()
                .map(|it| it["payload"].as_str().unwrap().to_owned()),
        );
    }
    for text in &acknowledged {
        assert!(texts.contains(text), "{text} was acknowledged");
    }
    let of_round = |text: &&String| text.starts_with("2-");
    let of_one: Vec<usize> = texts
        .iter()
        .filter(of_round)
        .map(|text| text[2..].parse().unwrap())
        .collect();
    assert!(of_one.is_sorted_by(|a, b| a > b), "the newest is first");
}

fn metrics(caller: &Caller) -> String {
    caller.request("GET", "/metrics").text().to_owned()
}
