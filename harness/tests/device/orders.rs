//! What does a device do on the order of a person, or when a resource is executed?

use harness::device::SimulatedDevice;
use harness::device::configuration::Configuration;
use harness::device::event::{DeviceEvent, DeviceOutput, Operation, Uplink};
use harness::device::resource::{AnswerMode, Consequence, Resource};
use protocol::coap::code::Code;
use protocol::coap::message::Message;
use protocol::lwm2m::value::Value;

use super::world::{Fixture, START_MS, answer, at, reported};

#[test]
fn a_device_that_is_off_sends_and_receives_nothing() {
    let mut device = SimulatedDevice::new(Configuration::new("lamp"), 7);
    let mut out = Vec::new();
    let execute = b"\x40\x02\x12\x34\xb1\x31\x010\x018";
    device.handle_datagram(START_MS, execute, &mut out);
    device.handle_timeout(START_MS, &mut out);
    device.update(START_MS, &mut out);
    device.wake(START_MS, &mut out);
    device.sleep(START_MS, &mut out);
    device.deregister(START_MS, &mut out);
    assert_eq!(out, []);
    assert_eq!(device.next_timeout(), None);
    assert!(!device.is_listening() && !device.is_asleep());
}

#[test]
fn the_same_seed_makes_the_same_device() {
    let first_words = |seed| {
        let mut device = SimulatedDevice::new(Configuration::new("lamp"), seed);
        let mut out = Vec::new();
        device.handle_start(START_MS, &mut out);
        (out, device.next_timeout())
    };
    assert_eq!(first_words(7), first_words(7));
    assert_ne!(first_words(7), first_words(8));
}

#[test]
fn a_reboot_forgets_all_but_the_resources() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let write = fixture.write("/3/0/14", "+02:00");
    fixture.deliver(&write);
    fixture.order(|device, now_ms, out| device.update(now_ms, out));
    let update = fixture.messages().remove(1);
    fixture.order(|device, now_ms, out| device.reboot(now_ms, out));
    let [
        DeviceOutput::Report(DeviceEvent::Rebooted),
        DeviceOutput::Send(datagram),
    ] = &fixture.take()[..]
    else {
        panic!("no new registration");
    };
    let register = Message::decode(datagram).unwrap();
    assert_eq!(register.uri_path().collect::<Vec<_>>(), ["rd"]);
    assert_eq!(fixture.device.location(), None);
    assert_eq!(
        fixture.device.value(at("/3/0/14")),
        Some(&Value::String("+02:00".into()))
    );
    assert_eq!(fixture.device.executed(at("/3/0/14")), 1);
    fixture.deliver(&answer(&update, Code::CHANGED));
    assert_eq!(fixture.take(), [], "it asked for nothing of the kind");
}

#[test]
fn power_comes_back_with_a_start() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    fixture.device.power_off();
    fixture.pass(1_000_000);
    assert_eq!(fixture.take(), []);
    fixture.order(|device, now_ms, out| device.handle_start(now_ms, out));
    assert_eq!(fixture.message().uri_path().collect::<Vec<_>>(), ["rd"]);
    fixture.order(|device, now_ms, out| device.handle_start(now_ms, out));
    assert_eq!(fixture.take(), [], "it is on already");
}

#[test]
fn an_executed_reboot_answers_first() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let execute = fixture.execute("/3/0/4");
    fixture.deliver(&execute);
    assert_eq!(fixture.messages(), [answer(&execute, Code::CHANGED)]);
    assert_eq!(fixture.pass_to_timeout(), 1_000);
    assert_eq!(fixture.take()[0], reported(DeviceEvent::Rebooted));
}

#[test]
fn an_executed_reboot_waits_for_its_separate_response() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    fixture.device.answer_with(
        at("/3/0/4"),
        AnswerMode::SeparateNonConfirmable { after_ms: 3_000 },
    );
    let execute = fixture.execute("/3/0/4");
    fixture.deliver(&execute);
    fixture.pass(3_999);
    assert_eq!(fixture.messages().len(), 2);
    fixture.pass(1);
    assert_eq!(fixture.take()[0], reported(DeviceEvent::Rebooted));
}

#[test]
fn a_read_has_no_consequence() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let read = fixture.read("/1/0/1");
    fixture.deliver(&read);
    assert_eq!(fixture.messages()[0].payload, b"300");
    fixture.pass(269_999);
    assert_eq!(fixture.take(), []);
}

#[test]
fn the_update_trigger_makes_it_update() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let execute = fixture.execute("/1/0/8");
    fixture.deliver(&execute);
    fixture.take();
    assert_eq!(fixture.pass_to_timeout(), 0);
    assert_eq!(
        fixture.message().uri_path().collect::<Vec<_>>(),
        ["rd", "7"]
    );
}

#[test]
fn a_disabled_device_deregisters_and_returns_a_day_later() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let execute = fixture.execute("/1/0/4");
    fixture.deliver(&execute);
    assert_eq!(fixture.messages(), [answer(&execute, Code::CHANGED)]);
    assert_eq!(fixture.pass_to_timeout(), 1_000);
    let leave = fixture.message();
    assert_eq!(leave.code, Code::DELETE);
    fixture.deliver(&answer(&leave, Code::DELETED));
    assert_eq!(fixture.take(), [reported(DeviceEvent::Deregistered)]);
    assert_eq!(fixture.pass_to_timeout(), 86_400_000);
    assert_eq!(fixture.message().uri_path().collect::<Vec<_>>(), ["rd"]);
}

#[test]
fn the_consequence_of_an_execute_is_configurable() {
    let mut configuration = Configuration::new("lamp");
    let reboot = Resource::executable(at("/3/0/4"));
    assert_eq!(reboot.consequence, Consequence::Nothing);
    configuration.resources.push(reboot);
    let mut fixture = Fixture::registered(configuration);
    let execute = fixture.execute("/3/0/4");
    fixture.deliver(&execute);
    fixture.take();
    fixture.pass(200_000);
    assert_eq!(fixture.take(), []);
    assert_eq!(fixture.device.executed(at("/3/0/4")), 1);
}

#[test]
fn a_press_toggles_a_switch_and_increments_a_counter() {
    let mut configuration = Configuration::new("lamp");
    let switch = Resource::holding(at("/3342/0/5500"), Value::Boolean(false));
    configuration.resources.push(switch);
    let mut fixture = Fixture::start(configuration);
    let cases = [
        ("/3342/0/5500", Some(Value::Boolean(true))),
        ("/3342/0/5500", Some(Value::Boolean(false))),
        ("/3/0/9", Some(Value::Integer(88))),
        ("/3303/0/5700", Some(Value::Float(22.5))),
        ("/3/0/0", None),
        ("/3/0/4", None),
        ("/99/0/0", None),
    ];
    for (path, pressed) in cases {
        assert_eq!(fixture.device.press(at(path)), pressed, "{path}");
        if pressed.is_some() {
            assert_eq!(fixture.device.value(at(path)), pressed.as_ref());
        }
    }
}

#[test]
fn a_measured_value_keeps_its_type() {
    let mut fixture = Fixture::start(Configuration::new("lamp"));
    let before = fixture.device.set(at("/3303/0/5700"), Value::Float(3.5));
    assert_eq!(before, Some(Value::Float(21.5)));
    assert_eq!(
        fixture.device.set(at("/3303/0/5700"), Value::Integer(3)),
        None
    );
    assert_eq!(fixture.device.set(at("/99/0/0"), Value::Integer(3)), None);
    assert_eq!(
        fixture.device.value(at("/3303/0/5700")),
        Some(&Value::Float(3.5))
    );
}

#[test]
fn events_print_as_sentences() {
    let (path, operation, code) = (at("/3/0/0"), Operation::Read, Code::CONTENT);
    let cases = [
        (
            DeviceEvent::Answered {
                path,
                operation,
                code,
            },
            "answered read /3/0/0 with 2.05",
        ),
        (
            DeviceEvent::Asleep {
                wakes_in_ms: Some(5_250),
            },
            "fell asleep for 5.2 s",
        ),
        (DeviceEvent::Asleep { wakes_in_ms: None }, "fell asleep"),
        (
            DeviceEvent::GaveUp(Uplink::Register),
            "got no response to its registration",
        ),
        (
            DeviceEvent::LeftUnanswered { path, operation },
            "left read /3/0/0 unanswered",
        ),
        (
            DeviceEvent::Refused {
                uplink: Uplink::Update,
                code: Code::NOT_FOUND,
            },
            "had its update refused with 4.04",
        ),
        (
            DeviceEvent::Answered {
                path,
                operation: Operation::CancelObservation,
                code,
            },
            "answered cancel observation /3/0/0 with 2.05",
        ),
        (
            DeviceEvent::Notified { path },
            "sent a notification for /3/0/0",
        ),
        (
            DeviceEvent::ObservationEnded { path },
            "ended the observation of /3/0/0",
        ),
        (
            DeviceEvent::GaveUp(Uplink::Notification),
            "got no response to its notification",
        ),
        (DeviceEvent::RegistrationLost, "lost its registration"),
    ];
    for (event, sentence) in cases {
        assert_eq!(event.to_string(), sentence);
    }
}
