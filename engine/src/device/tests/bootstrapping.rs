//! A device asks for its bootstrap and is sent it, one request after the other.

use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;

use super::vocabulary::{DeviceFixture, HOME, Lines, S, execute, peer, plan};
use crate::action::Status;
use crate::bootstrap::{BootstrapFault, BootstrapState};

const SECURED: &str = "10.0.9.1:5684 over DTLS";

#[test]
fn a_device_is_sent_everything_in_order_and_then_finish() {
    let mut fixture = DeviceFixture::bootstrapped_without_dtls();
    let asked = fixture.ask_for_bootstrap(HOME, &["ep=meter", "pct=110"]);
    assert_eq!(asked, ["prepare bootstrap of 10.0.0.1:5683"]);
    let begun = fixture.prepared(Ok(plan()));
    assert_eq!(
        begun,
        [
            "bootstrap Running",
            "send 10.0.0.1:5683: ACK 2.04 to 101",
            "rebind nowhere -> 10.0.0.1:5683",
            "send 10.0.0.1:5683: CON DELETE  m1",
        ]
    );
    let next = |fixture: &mut DeviceFixture, code, payload| {
        let mut lines = fixture.answer(code, payload);
        lines.retain(|line| !line.starts_with("rebind"));
        lines
    };
    assert_eq!(
        next(&mut fixture, Code::DELETED, ""),
        ["send 10.0.0.1:5683: CON GET /0 accept 40 m2"]
    );
    let account = r#"[{"bn":"/0/2/","n":"0","vs":"coap://a"},{"n":"10","v":1111}]"#;
    assert_eq!(
        next(&mut fixture, Code::CONTENT, "</0/0>,</0/1>"),
        [format!(
            "send 10.0.0.1:5683: CON PUT /0/2 format 110 {account:?} m3"
        )]
    );
    let server = r#"[{"bn":"/1/0/1","v":86400}]"#;
    assert_eq!(
        next(&mut fixture, Code::CHANGED, ""),
        [format!(
            "send 10.0.0.1:5683: CON PUT /1/0 format 110 {server:?} m4"
        )]
    );
    assert_eq!(
        next(&mut fixture, Code::CHANGED, ""),
        ["send 10.0.0.1:5683: CON POST /bs m5"]
    );
    assert_eq!(
        next(&mut fixture, Code::CHANGED, ""),
        ["bootstrap Succeeded", "publish Bootstrapped"]
    );
    assert_eq!(fixture.snapshot().bootstrap, None);
}

#[test]
fn a_bootstrap_without_dtls_is_refused_unless_the_operator_allows_it() {
    let mut fixture = DeviceFixture::new();
    let refused = fixture.ask_for_bootstrap(HOME, &["ep=meter"]);
    let [log, published, answer] = &refused[..] else {
        panic!("{refused:?}");
    };
    assert!(log.starts_with("log LwM2M[BootstrapRejected] Error: A bootstrap request from"));
    assert_eq!(published, "publish failure LwM2M[BootstrapRejected]");
    assert!(answer.contains("ACK 4.03 \"bootstrap needs DTLS\" to 101"));
    let again = fixture.ask_for_bootstrap(HOME, &["ep=meter"]);
    assert_eq!(again.len(), 1, "it is logged once a minute: {again:?}");
}

#[test]
fn a_bootstrap_is_refused_to_a_sender_who_could_not_register() {
    let mut fixture = DeviceFixture::bootstrapped_without_dtls();
    for (from, queries, code) in [
        ("10.0.0.9:5683", &["ep=meter"][..], "4.03"),
        (HOME, &["ep=other"], "4.03"),
        (HOME, &[], "4.00"),
        (HOME, &["ep=meter", "ep=meter"], "4.00"),
        (SECURED, &["ep=other"], "4.03"),
    ] {
        let refused = fixture.ask_for_bootstrap(from, queries);
        let answer = refused.last().unwrap();
        assert!(
            answer.contains(&format!("ACK {code}")),
            "{queries:?}: {refused:?}"
        );
        assert!(!has_order(&refused));
    }
}

#[test]
fn a_device_over_dtls_is_bootstrapped_and_needs_no_name() {
    let mut fixture = DeviceFixture::new();
    for queries in [&[][..], &["ep=meter"]] {
        assert!(has_order(&fixture.ask_for_bootstrap(SECURED, queries)));
    }
    let begun = fixture.prepared(Ok(plan()));
    let to = peer(SECURED);
    assert!(
        begun.contains(&format!("send {to}: CON DELETE  m1")),
        "{begun:?}"
    );
}

#[test]
fn the_next_format_follows_one_that_the_device_refuses() {
    let mut fixture = DeviceFixture::bootstrapped_without_dtls();
    fixture.begin_bootstrap();
    fixture.answer(Code::DELETED, "");
    fixture.answer(Code::NOT_FOUND, "");
    let formats = [11542, 112, 11543, 11544].map(|format| format!("format {format}"));
    for format in &formats {
        let lines = fixture.answer(Code::UNSUPPORTED_CONTENT_FORMAT, "");
        let sent = lines.last().unwrap();
        assert!(sent.contains("PUT /0/1") && sent.contains(format), "{sent}");
    }
    let failed = fixture.answer(Code::NOT_ACCEPTABLE, "");
    assert_eq!(
        failed.iter().filter(|it| *it == "bootstrap Failed").count(),
        1
    );
}

#[test]
fn a_refusal_of_the_device_ends_the_bootstrap_and_is_logged() {
    for (answers, step) in [
        (&[Code::FORBIDDEN][..], "Delete /"),
        (
            &[Code::DELETED, Code::NOT_FOUND, Code::INTERNAL_SERVER_ERROR],
            "Write /0/1",
        ),
        (
            &[
                Code::DELETED,
                Code::METHOD_NOT_ALLOWED,
                Code::CHANGED,
                Code::CHANGED,
                Code::NOT_ACCEPTABLE,
            ],
            "Finish",
        ),
    ] {
        let mut fixture = DeviceFixture::bootstrapped_without_dtls();
        fixture.begin_bootstrap();
        let mut last = Lines::new();
        for code in answers {
            last = fixture.answer(*code, "");
        }
        let code = answers.last().unwrap();
        let why = format!("the bootstrap failed: the device answered {step} with {code}");
        let is_logged =
            |line: &String| line.starts_with("log LwM2M[BootstrapRejected]") && line.contains(&why);
        assert!(last.iter().any(is_logged), "{last:?}");
        assert!(last.contains(&"bootstrap Failed".to_owned()), "{last:?}");
        assert!(
            !last.iter().any(|line| line.starts_with("send")),
            "{last:?}"
        );
    }
}

#[test]
fn silence_of_the_device_ends_the_bootstrap() {
    let mut fixture = DeviceFixture::bootstrapped_without_dtls();
    fixture.begin_bootstrap();
    let mut repeated = 0;
    let last = loop {
        let lines = fixture.next_deadline();
        match lines.iter().any(|line| line.contains("CON DELETE")) {
            true => repeated += 1,
            false => break lines,
        }
    };
    assert_eq!(repeated, 4);
    assert!(last.contains(&"bootstrap Failed".to_owned()), "{last:?}");
    let why = "Delete /: the device did not acknowledge the message";
    assert!(last.iter().any(|line| line.contains(why)), "{last:?}");
}

#[test]
fn a_request_during_a_bootstrap_begins_it_anew_and_a_repeated_one_does_not() {
    let mut fixture = DeviceFixture::bootstrapped_without_dtls();
    let request = fixture
        .request(Code::POST, &["bs"])
        .with_uri_query(["ep=meter"]);
    fixture.receives(HOME, &request);
    fixture.prepared(Ok(plan()));
    fixture.answer(Code::DELETED, "");
    let repeated = fixture.receives(HOME, &request);
    assert_eq!(repeated, ["send 10.0.0.1:5683: ACK 2.04 to 101"]);
    let anew = fixture.ask_for_bootstrap(HOME, &["ep=meter"]);
    assert!(has_order(&anew), "{anew:?}");
    let begun = fixture.prepared(Ok(plan()));
    assert!(begun.last().unwrap().contains("CON DELETE"), "{begun:?}");
    assert_eq!(fixture.snapshot().bootstrap.unwrap().steps.len(), 1);
}

#[test]
fn nothing_else_is_requested_during_a_bootstrap() {
    let mut fixture = DeviceFixture::bootstrapped_without_dtls();
    fixture.register();
    let asked = fixture.ask(execute("/1/0/9"));
    fixture.answer(Code::CHANGED, "");
    assert_eq!(fixture.saved(asked).status, Status::Succeeded);
    fixture.begin_bootstrap();
    let waiting = fixture.ask(execute("/3/0/4"));
    assert_eq!(fixture.saved(waiting).status, Status::Scheduled);
    fixture.answer(Code::DELETED, "");
    fixture.answer(Code::NOT_FOUND, "");
    fixture.answer(Code::CHANGED, "");
    fixture.answer(Code::CHANGED, "");
    let finished = fixture.answer(Code::CHANGED, "");
    let sent = finished.last().unwrap();
    assert!(sent.contains("CON POST /3/0/4"), "{finished:?}");
}

#[test]
fn a_bootstrap_that_cannot_be_prepared_is_refused() {
    for (fault, code) in [
        (BootstrapFault::Unstored, "5.03"),
        (BootstrapFault::NeedsDtls, "4.03"),
        (BootstrapFault::UnknownHost, "5.00"),
        (BootstrapFault::NoCertificate, "5.00"),
        (BootstrapFault::Unopened, "5.00"),
    ] {
        let mut fixture = DeviceFixture::bootstrapped_without_dtls();
        fixture.ask_for_bootstrap(HOME, &["ep=meter"]);
        let refused = fixture.prepared(Err(fault));
        assert_eq!(refused.first().unwrap(), "bootstrap Failed");
        let answer = refused.last().unwrap();
        assert!(answer.contains(&format!("ACK {code}")), "{refused:?}");
        assert_eq!(fixture.snapshot().bootstrap, None);
    }
}

#[test]
fn a_bootstrap_is_over_when_the_service_restarts_and_the_device_may_ask_again() {
    let mut fixture = DeviceFixture::bootstrapped_without_dtls();
    fixture.begin_bootstrap();
    let running = fixture.snapshot().bootstrap.unwrap();
    assert_eq!(running.state, BootstrapState::Running);
    assert_eq!(running.at_rest().state, BootstrapState::Interrupted);
    fixture.restart();
    assert_eq!(fixture.snapshot().bootstrap, None);
    assert!(has_order(&fixture.ask_for_bootstrap(HOME, &["ep=meter"])));
}

#[test]
fn a_device_is_idle_again_after_its_bootstrap() {
    let mut fixture = DeviceFixture::bootstrapped_without_dtls();
    fixture.begin_bootstrap();
    for code in [
        Code::DELETED,
        Code::NOT_FOUND,
        Code::CHANGED,
        Code::CHANGED,
        Code::CHANGED,
    ] {
        fixture.answer(code, "");
    }
    assert!(!fixture.device().is_idle(), "its messages may be repeated");
    fixture.at(300 * S).timeout();
    assert!(fixture.device().is_idle());
}

#[test]
fn a_device_that_requests_a_pack_is_sent_everything_at_once_and_again_if_it_repeats() {
    let mut fixture = DeviceFixture::bootstrapped_without_dtls();
    let request = pack_request(&mut fixture);
    let asked = fixture.receives(HOME, &request);
    assert_eq!(asked, ["prepare bootstrap of 10.0.0.1:5683"]);
    let pack =
        r#"[{"n":"/0/2/0","vs":"coap://a"},{"n":"/0/2/10","v":1111},{"n":"/1/0/1","v":86400}]"#;
    let sent = format!("send 10.0.0.1:5683: ACK 2.05 format 110 {pack:?} to 101");
    assert_eq!(
        fixture.prepared(Ok(plan())),
        [
            "bootstrap Succeeded".to_owned(),
            "publish Bootstrapped".to_owned(),
            sent.clone()
        ]
    );
    assert_eq!(fixture.snapshot().bootstrap, None);
    assert_eq!(fixture.receives(HOME, &request), [sent]);
    let anew = pack_request(&mut fixture);
    assert!(has_order(&fixture.receives(HOME, &anew)));
}

#[test]
fn a_pack_that_the_device_does_not_request_as_a_whole_fails_the_bootstrap() {
    let mut fixture = DeviceFixture::bootstrapped_without_dtls();
    let first = Block::new(0, More::No, BlockSize::MIN);
    let request = pack_request(&mut fixture).with_block2(first);
    fixture.receives(HOME, &request);
    let begun = fixture.prepared(Ok(plan()));
    assert_eq!(begun.first().unwrap(), "bootstrap Running");
    let running = fixture.snapshot().bootstrap.unwrap();
    assert_eq!(running.state, BootstrapState::Running);
    let second = Block::new(1, More::No, BlockSize::MIN);
    let next = pack_request(&mut fixture).with_block2(second);
    assert_eq!(fixture.receives(HOME, &next).len(), 1);
    let forgotten = fixture.at(300 * S).timeout();
    assert_eq!(forgotten.first().unwrap(), "bootstrap Failed");
    let why = "the device did not request all blocks of the pack";
    assert!(
        forgotten.iter().any(|line| line.contains(why)),
        "{forgotten:?}"
    );
    let late = fixture.receives(HOME, &next);
    assert!(late.last().unwrap().contains("ACK 4.00"), "{late:?}");
}

#[test]
fn a_pack_is_refused_in_another_format_and_to_a_sender_who_could_not_register() {
    let mut fixture = DeviceFixture::bootstrapped_without_dtls();
    let request = pack_request(&mut fixture).with_accept(ContentFormat::LWM2M_TLV);
    let refused = fixture.receives(HOME, &request);
    assert!(refused.last().unwrap().contains("ACK 4.06"), "{refused:?}");
    let request = pack_request(&mut fixture);
    let refused = fixture.receives("10.0.0.9:5683", &request);
    assert!(refused.last().unwrap().contains("ACK 4.03"), "{refused:?}");
}

/// A request for a pack in SenML JSON.
fn pack_request(fixture: &mut DeviceFixture) -> Message {
    let request = fixture.request(Code::GET, &["bspack"]);
    let request = request.with_uri_query(["ep=meter"]);
    request.with_accept(ContentFormat::SENML_JSON)
}

fn has_order(lines: &Lines) -> bool {
    lines
        .iter()
        .any(|line| line.starts_with("prepare bootstrap"))
}
