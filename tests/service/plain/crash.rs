//! Is everything acknowledged to a plain device or to a caller kept after a crash?

use protocol::coap::code::Code;

use super::{ID, PlainService, progress};
use crate::vocabulary::lwm2m::when_active;
use crate::vocabulary::plain::{ReportedData, carrying, coap, data, datagram, path_of};
use crate::vocabulary::poll::until;

#[test]
fn accepted_requests_are_sent_once_and_in_order_after_a_crash() {
    let mut setup = PlainService::new();
    let (coap_port, udp_port) = (setup.coap.port(), setup.udp.port());
    let mut ids = Vec::new();
    for number in 0..3 {
        let text = format!("datagram {number}");
        ids.push(setup.create_udp(&when_active(datagram(&text, udp_port))));
        setup.crash();
        let body = carrying(coap("PUT", &format!("/{number}?a=b"), coap_port), "on");
        ids.push(setup.create_coap(&when_active(body)));
        setup.crash();
    }
    for id in &ids {
        assert_eq!(progress(&setup.caller.action(id)), ("SCHEDULED", 1));
    }
    assert_eq!(setup.udp.received(), Vec::<Vec<u8>>::new());
    assert_eq!(setup.coap.received(), []);
    setup.post("awake");
    for number in 0..3 {
        assert_eq!(
            setup.udp.receive(),
            format!("datagram {number}").into_bytes()
        );
        let request = setup.answer_next(Code::CHANGED, "");
        assert_eq!(path_of(&request), format!("/{number}"));
        assert_eq!(request.payload, b"on");
    }
    let done: Vec<_> = ids.iter().map(|id| setup.caller.final_action(id)).collect();
    setup.crash();
    setup.post("awake");
    for (id, done) in ids.iter().zip(&done) {
        assert_eq!(done["status"], "SUCCEEDED", "{done}");
        assert_eq!(setup.caller.action(id), *done);
    }
    assert_eq!(
        setup.udp.received(),
        Vec::<Vec<u8>>::new(),
        "each went out once"
    );
    assert_eq!(setup.coap.received(), []);
}

#[test]
fn acknowledged_data_survives_a_crash() {
    let mut setup = PlainService::new();
    let mut expected = Vec::new();
    for round in 0..6 {
        for number in 0..3 {
            let text = format!("{round} {number}");
            setup.post(&text);
            expected.push(ReportedData::over_coap("t", text));
        }
        setup.crash();
        assert_eq!(setup.caller.reported(ID), expected);
    }
}

#[test]
fn data_repeated_after_a_crash_without_an_answer_is_stored_once() {
    let mut setup = PlainService::new();
    for round in 0..6 {
        let text = format!("round {round}");
        let message = data("t", text.clone(), setup.id());
        setup.coap.send(&message.encode());
        // The crash comes before, while or after the data is stored; the device gets no answer and
        // repeats.
        setup.service.kill();
        setup.service.start_again();
        setup.caller.follow(&setup.service);
        let answered = setup.coap.ask_until_answered(&message);
        assert_eq!(answered.code, Code::CHANGED);
        let reported = setup.caller.reported(ID);
        let times = reported
            .iter()
            .filter(|it| **it == ReportedData::over_coap("t", text.clone()));
        assert_eq!(times.count(), 1, "{reported:?}");
    }
}

#[test]
fn a_datagram_to_be_sent_at_a_crash_is_sent_once_at_most() {
    let mut setup = PlainService::new();
    let port = setup.udp.port();
    for round in 0..6 {
        let text = format!("round {round}");
        let id = setup.create_udp(&datagram(&text, port));
        setup.crash();
        let action = until("a final status", || {
            // If nothing was sent, the next uplink releases the datagram.
            setup.udp.send(b"awake");
            let action = setup.caller.action(&id);
            (action["status"] != "IN_PROGRESS").then_some(action)
        });
        let times = setup
            .udp
            .received()
            .into_iter()
            .filter(|it| *it == text.as_bytes());
        let times = times.count();
        match action["status"].as_str() {
            Some("SUCCEEDED") => assert_eq!(times, 1, "{action}"),
            Some("FAILED") => assert!(times <= 1, "{action}"),
            _ => panic!("{action}"),
        }
    }
}
