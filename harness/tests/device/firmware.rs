//! How does the firmware object of a device proceed? (LwM2M Core 1.1 appendix E.6)

use harness::device::configuration::Configuration;
use harness::device::resource::{FIRMWARE_RESULT, FIRMWARE_UPDATE, firmware};
use protocol::coap::code::Code;
use protocol::coap::message::Message;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;

use super::world::{Fixture, at};

#[test]
fn an_image_is_downloaded_and_installed() {
    let mut fixture = updatable();
    assert_eq!(given(&mut fixture, "http://a.example/1"), Code::CHANGED);
    assert_eq!(state(&fixture), (1, 0));
    assert_eq!(executed(&mut fixture), Code::METHOD_NOT_ALLOWED);
    fixture.pass(1_000);
    assert_eq!(state(&fixture), (2, 0));
    assert_eq!(executed(&mut fixture), Code::CHANGED);
    assert_eq!(state(&fixture), (3, 0));
    assert_eq!(given(&mut fixture, ""), Code::METHOD_NOT_ALLOWED);
    fixture.pass(1_000);
    assert_eq!(state(&fixture), (0, 1));
    assert_eq!(executed(&mut fixture), Code::METHOD_NOT_ALLOWED);
    assert_eq!(fixture.device.executed(FIRMWARE_UPDATE), 1);
}

#[test]
fn an_empty_uri_ends_a_download() {
    let mut fixture = updatable();
    given(&mut fixture, "http://a.example/1");
    assert_eq!(given(&mut fixture, ""), Code::CHANGED);
    fixture.pass(1_000);
    assert_eq!(state(&fixture), (0, 0));
}

#[test]
fn an_image_survives_the_loss_of_power_and_a_download_does_not() {
    let mut fixture = updatable();
    given(&mut fixture, "http://a.example/1");
    fixture.device.power_off();
    assert_eq!(state(&fixture), (0, 4));

    let mut fixture = updatable();
    given(&mut fixture, "http://a.example/1");
    fixture.pass(1_000);
    executed(&mut fixture);
    fixture.device.power_off();
    assert_eq!(state(&fixture), (2, 0));
}

#[test]
fn a_device_fails_as_it_is_told() {
    let mut fixture = updatable();
    fixture.device.update_with_results(5, 1);
    given(&mut fixture, "http://a.example/1");
    fixture.pass(1_000);
    assert_eq!(state(&fixture), (0, 5));
    fixture.device.update_with_results(0, 8);
    given(&mut fixture, "http://a.example/1");
    fixture.pass(1_000);
    executed(&mut fixture);
    fixture.pass(1_000);
    assert_eq!(state(&fixture), (0, 8));
}

fn updatable() -> Fixture {
    let mut configuration = Configuration::new("meter");
    configuration.resources.extend(firmware(0, 1));
    Fixture::registered(configuration)
}

fn given(fixture: &mut Fixture, uri: &str) -> Code {
    let request = fixture.write("/5/0/1", uri);
    code_of(fixture, &request)
}

fn executed(fixture: &mut Fixture) -> Code {
    let request = fixture.execute("/5/0/2");
    code_of(fixture, &request)
}

fn code_of(fixture: &mut Fixture, request: &Message) -> Code {
    fixture.messages();
    fixture.deliver(request);
    let answers = fixture.messages();
    let answer = answers.iter().find(|it| it.token == request.token);
    answer.unwrap().code
}

/// The state and the result of the object.
fn state(fixture: &Fixture) -> (i64, i64) {
    let number = |path: Path| match fixture.device.value(path) {
        Some(Value::Integer(number)) => *number,
        other => panic!("{path} is {other:?}"),
    };
    (number(at("/5/0/3")), number(FIRMWARE_RESULT))
}
