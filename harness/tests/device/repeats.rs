//! What does a device do with a duplicate message?

use harness::device::configuration::Configuration;
use harness::device::event::Operation;
use harness::device::resource::AnswerMode;
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;

use super::world::{Fixture, answered, at, sent};

const SWITCH: &str = "/1/0/8";

#[test]
fn a_duplicate_execute_runs_once_and_is_answered_alike() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let execute = fixture.execute(SWITCH);
    fixture.deliver(&execute);
    let event = answered(Operation::Execute, SWITCH, Code::CHANGED);
    let reply = sent(&Message::response_to(&execute, Code::CHANGED, MessageId(0)));
    assert_eq!(fixture.take(), [event, reply.clone()]);
    for _ in 0..3 {
        fixture.deliver(&execute);
        assert_eq!(fixture.take(), std::slice::from_ref(&reply));
    }
    assert_eq!(fixture.device.executed(at(SWITCH)), 1);
}

#[test]
fn a_duplicate_read_is_answered_with_the_first_value() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let read = fixture.read("/3/0/9");
    fixture.deliver(&read);
    let first = fixture.messages();
    fixture.device.press(at("/3/0/9"));
    fixture.deliver(&read);
    assert_eq!(fixture.messages(), first);
    assert_eq!(fixture.device.performed_count(), 1);
}

#[test]
fn a_duplicate_of_a_request_with_a_separate_response_is_acknowledged_again() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    fixture.device.answer_with(
        at(SWITCH),
        AnswerMode::SeparateConfirmable { after_ms: 9_000 },
    );
    let execute = fixture.execute(SWITCH);
    let acknowledged = sent(&Message::acknowledgement(execute.message_id));
    for _ in 0..2 {
        fixture.deliver(&execute);
        assert_eq!(fixture.take(), std::slice::from_ref(&acknowledged));
    }
    assert_eq!(fixture.device.executed(at(SWITCH)), 1);
}

#[test]
fn a_duplicate_of_an_unanswered_request_is_not_answered() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    fixture.device.answer_with(at(SWITCH), AnswerMode::Silent);
    let execute = fixture.execute(SWITCH);
    fixture.deliver(&execute);
    fixture.take();
    fixture
        .device
        .answer_with(at(SWITCH), AnswerMode::Piggybacked);
    fixture.deliver(&execute);
    assert_eq!(fixture.take(), []);
    assert_eq!(fixture.device.executed(at(SWITCH)), 0);
}

#[test]
fn a_duplicate_non_confirmable_request_is_not_answered_again() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let execute = fixture.request(MessageKind::NonConfirmable, Operation::Execute, SWITCH);
    fixture.deliver(&execute);
    assert_eq!(fixture.messages().len(), 1);
    fixture.deliver(&execute);
    assert_eq!(fixture.take(), []);
    assert_eq!(fixture.device.executed(at(SWITCH)), 1);
}

#[test]
fn another_request_under_the_same_id_is_another_request() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let execute = fixture.execute(SWITCH);
    fixture.deliver(&execute);
    let mut other = execute.clone();
    other.token = Token::from_u64(1);
    fixture.deliver(&other);
    fixture.deliver(&execute.clone().with_payload("1"));
    assert_eq!(fixture.device.executed(at(SWITCH)), 3);
    fixture.deliver(&execute);
    assert_eq!(fixture.device.executed(at(SWITCH)), 3);
}

#[test]
fn a_duplicate_after_its_lifetime_is_a_new_request() {
    let configuration = Configuration {
        lifetime_s: 86_400,
        ..Configuration::new("lamp")
    };
    let mut fixture = Fixture::registered(configuration);
    let write = fixture.write("/3/0/14", "+02:00");
    fixture.deliver(&write);
    fixture.pass(246_999);
    fixture.deliver(&write);
    assert_eq!(fixture.device.executed(at("/3/0/14")), 1);
    fixture.pass(1);
    fixture.deliver(&write);
    assert_eq!(fixture.device.executed(at("/3/0/14")), 2);
}

#[test]
fn a_device_that_rebooted_does_not_recognise_duplicates() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let execute = fixture.execute(SWITCH);
    fixture.deliver(&execute);
    fixture.order(|device, now_ms, out| device.reboot(now_ms, out));
    fixture.deliver(&execute);
    assert_eq!(fixture.device.executed(at(SWITCH)), 2);
}
