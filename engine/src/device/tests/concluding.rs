//! If the customer wants results, the end of a request is published in the step that ends it.

use protocol::coap::code::Code;

use super::vocabulary::{
    DeviceFixture, HOUR, S, all, created, ended, logged, moved, published, read, refused_at_once,
    write,
};
use crate::action::Status::{Cancelled, Failed, InProgress, Scheduled, Succeeded};

#[test]
fn a_result_is_published_with_the_outcome_of_the_request() {
    let mut fixture = DeviceFixture::reporting_results();
    fixture.ask(read("/3/0/9"));
    let expected = all([
        published("/3/0/9=87 for #1"),
        ended("#1", Succeeded, r#"1/1 "205" "87""#),
        published(r#"#1 Succeeded "205" "87""#),
    ]);
    assert_eq!(fixture.answer(Code::CONTENT, "87"), expected);
}

#[test]
fn a_failure_is_published_as_a_result_and_as_an_error() {
    let mut fixture = DeviceFixture::reporting_results();
    fixture.ask(read("/3/0/9"));
    let why = "the device answered 4.04";
    let expected = all([
        ended("#1", Failed, &format!(r#"1/1 "404" {why:?}"#)),
        published(&format!(r#"#1 Failed "404" {why:?}"#)),
        logged(&format!(
            "DeviceController[ActionRequestFailed] Error: Action request #1 failed: {why}."
        )),
    ]);
    assert_eq!(fixture.answer(Code::NOT_FOUND, ""), expected);
}

#[test]
fn a_request_that_ends_before_it_is_sent_has_a_result_too() {
    let mut fixture = DeviceFixture::reporting_results();
    let effects = fixture.submit(write("/1/0/1", "soon")).1;
    let why = "the value for /1/0/1 is not of type INTEGER: \
               expected a decimal integer of at most 64 bits";
    let before = refused_at_once("#1", InProgress, &format!("0/1 {why:?}"));
    let published = published(&format!("#1 Failed {why:?}"));
    assert_eq!(effects[..before.len() + 1], all([before, published]));

    let id = fixture.ask(read("/3/0/9").when_active());
    let expected = all([
        moved("#2", Scheduled, Cancelled, "0/1"),
        vec!["publish #2 Cancelled".to_owned()],
    ]);
    assert_eq!(fixture.cancel(id).1, expected);

    fixture.ask(read("/3/0/9").when_active());
    let effects = fixture.at(48 * HOUR).timeout();
    let result = |line: &String| line.starts_with("publish #3 Failed \"the request expired");
    assert_eq!(effects.iter().filter(|line| result(line)).count(), 1);
}

#[test]
fn each_request_cancelled_with_the_others_has_a_result() {
    let mut fixture = DeviceFixture::reporting_results();
    fixture.ask(read("/3/0/9").when_active());
    fixture.ask(read("/3/0/13").when_active());
    let effects = fixture.cancel_all().1;
    for expected in ["publish #1 Cancelled", "publish #2 Cancelled"] {
        assert_eq!(effects.iter().filter(|line| *line == expected).count(), 1);
    }
}

#[test]
fn an_attempt_that_ends_without_the_request_has_no_result() {
    let mut fixture = DeviceFixture::reporting_results();
    let (_, effects) = fixture.submit(read("/3/0/9").attempts(2));
    assert_eq!(effects[..2], created("#1", InProgress, "0/2"));
    let effects = fixture.at(S).answer(Code::SERVICE_UNAVAILABLE, "");
    assert_eq!(effects, ended("#1", InProgress, "1/2"));
}

#[test]
fn no_result_is_published_unless_results_are_wanted() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9"));
    let effects = fixture.answer(Code::CONTENT, "87");
    let results = effects.iter().filter(|line| line.starts_with("publish #1"));
    assert_eq!(results.collect::<Vec<_>>(), Vec::<&String>::new());
}
