//! What does a device do with a message it has heard before?

use harness::device::configuration::Configuration;
use harness::device::event::Operation;
use harness::device::resource::Answer;
use protocol::coap::code::Code;
use protocol::coap::message::{Kind, Message, MessageId};
use protocol::coap::token::Token;

use super::world::{World, answered, at, sent};

const SWITCH: &str = "/1/0/8";

#[test]
fn a_repeated_execute_runs_once_and_is_answered_alike() {
    let mut world = World::registered(Configuration::new("lamp"));
    let execute = world.execute(SWITCH);
    world.hear(&execute);
    let told = answered(Operation::Execute, SWITCH, Code::CHANGED);
    let reply = sent(&Message::response_to(&execute, Code::CHANGED, MessageId(0)));
    assert_eq!(world.take(), [told, reply.clone()]);
    for _ in 0..3 {
        world.hear(&execute);
        assert_eq!(world.take(), std::slice::from_ref(&reply));
    }
    assert_eq!(world.device.executed(at(SWITCH)), 1);
}

#[test]
fn a_repeated_read_is_answered_with_the_value_of_the_first_time() {
    let mut world = World::registered(Configuration::new("lamp"));
    let read = world.read("/3/0/9");
    world.hear(&read);
    let first = world.messages();
    world.device.press(at("/3/0/9"));
    world.hear(&read);
    assert_eq!(world.messages(), first);
    assert_eq!(world.device.performed_count(), 1);
}

#[test]
fn a_repeat_of_what_is_answered_later_is_acknowledged_again() {
    let mut world = World::registered(Configuration::new("lamp"));
    world
        .device
        .answer_with(at(SWITCH), Answer::SeparateConfirmable { after_ms: 9_000 });
    let execute = world.execute(SWITCH);
    let acknowledged = sent(&Message::acknowledgement(execute.message_id));
    for _ in 0..2 {
        world.hear(&execute);
        assert_eq!(world.take(), std::slice::from_ref(&acknowledged));
    }
    assert_eq!(world.device.executed(at(SWITCH)), 1);
}

#[test]
fn what_was_met_with_silence_is_met_with_silence() {
    let mut world = World::registered(Configuration::new("lamp"));
    world.device.answer_with(at(SWITCH), Answer::Silent);
    let execute = world.execute(SWITCH);
    world.hear(&execute);
    world.take();
    world.device.answer_with(at(SWITCH), Answer::Piggybacked);
    world.hear(&execute);
    assert_eq!(world.take(), []);
    assert_eq!(world.device.executed(at(SWITCH)), 0);
}

#[test]
fn a_repeated_non_confirmable_request_is_not_answered_again() {
    let mut world = World::registered(Configuration::new("lamp"));
    let execute = world.request(Kind::NonConfirmable, Operation::Execute, SWITCH);
    world.hear(&execute);
    assert_eq!(world.messages().len(), 1);
    world.hear(&execute);
    assert_eq!(world.take(), []);
    assert_eq!(world.device.executed(at(SWITCH)), 1);
}

#[test]
fn another_request_under_the_same_id_is_another_request() {
    let mut world = World::registered(Configuration::new("lamp"));
    let execute = world.execute(SWITCH);
    world.hear(&execute);
    let mut other = execute.clone();
    other.token = Token::from_u64(1);
    world.hear(&other);
    world.hear(&execute.clone().with_payload("1"));
    assert_eq!(world.device.executed(at(SWITCH)), 3);
    world.hear(&execute);
    assert_eq!(world.device.executed(at(SWITCH)), 3);
}

#[test]
fn a_repeat_after_its_lifetime_is_a_new_request() {
    let configuration = Configuration {
        lifetime_s: 86_400,
        ..Configuration::new("lamp")
    };
    let mut world = World::registered(configuration);
    let write = world.write("/3/0/14", "+02:00");
    world.hear(&write);
    world.pass(246_999);
    world.hear(&write);
    assert_eq!(world.device.executed(at("/3/0/14")), 1);
    world.pass(1);
    world.hear(&write);
    assert_eq!(world.device.executed(at("/3/0/14")), 2);
}

#[test]
fn a_device_that_rebooted_cannot_know_what_it_heard() {
    let mut world = World::registered(Configuration::new("lamp"));
    let execute = world.execute(SWITCH);
    world.hear(&execute);
    world.order(|device, now_ms, out| device.reboot(now_ms, out));
    world.hear(&execute);
    assert_eq!(world.device.executed(at(SWITCH)), 2);
}
