//! Which notifications does a device send, for how long, and how?

use harness::device::configuration::{Configuration, Notify, Reachability};
use harness::device::event::{DeviceEvent, DeviceOutput, Operation, Uplink};
use harness::device::resource::{AnswerMode, Resource};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::lwm2m::payload::{Reading, tlv};
use protocol::lwm2m::value::Value;

use super::world::{Fixture, answer, answered, at, created, reported, sent};

const TEMPERATURE: &str = "/3303/0/5700";

#[test]
fn an_observation_begins_with_the_value_and_a_number() {
    let mut fixture = Fixture::registered(lamp(Notify::NonConfirmable));
    // Confirmable GET /3303/0/5700, message id 0x1234, token 0xAB, Observe 0.
    fixture.deliver_bytes(b"\x41\x01\x12\x34\xab\x60\x543303\x010\x045700");
    // Acknowledgement 2.05 with the same ids, Observe 1, Content-Format 0 and the text.
    let reply = b"\x61\x45\x12\x34\xab\x61\x01\x60\xff21.5".to_vec();
    let event = answered(Operation::Observe, TEMPERATURE, Code::CONTENT);
    assert_eq!(fixture.take(), [event, DeviceOutput::Send(reply)]);
}

#[test]
fn each_change_is_notified_under_the_token_with_a_higher_number() {
    let mut fixture = Fixture::registered(lamp(Notify::NonConfirmable));
    let observe = begin(&mut fixture, TEMPERATURE);
    let mut before = 1;
    for (value, text) in [(22.0, "22"), (22.5, "22.5"), (-3.0, "-3")] {
        let notification = set(&mut fixture, value);
        assert_eq!(notification.kind, MessageKind::NonConfirmable);
        assert_eq!(notification.token, observe.token);
        assert_eq!(notification.code, Code::CONTENT);
        assert_eq!(notification.content_format(), Some(ContentFormat::TEXT));
        assert_eq!(notification.payload, text.as_bytes());
        let number = notification.observe().unwrap();
        assert!(number > before, "{number} after {before}");
        before = number;
    }
    fixture.pass(200_000);
    assert_eq!(fixture.take(), [], "a change is notified once");
}

#[test]
fn an_unchanged_value_is_not_notified() {
    let mut fixture = Fixture::registered(lamp(Notify::NonConfirmable));
    begin(&mut fixture, TEMPERATURE);
    fixture.device.set(at(TEMPERATURE), Value::Float(21.5));
    fixture.device.set(at("/3/0/9"), Value::Integer(12));
    fixture.pass(1_000);
    fixture.device.set(at(TEMPERATURE), Value::Float(30.0));
    fixture.device.set(at(TEMPERATURE), Value::Float(21.5));
    fixture.pass(1_000);
    assert_eq!(fixture.take(), []);
}

#[test]
fn a_written_value_is_notified_after_the_response() {
    let mut fixture = Fixture::registered(lamp(Notify::NonConfirmable));
    let observe = begin(&mut fixture, "/3/0/14");
    let write = fixture.write("/3/0/14", "+02:00");
    fixture.deliver(&write);
    let messages = fixture.messages();
    assert_eq!(messages[0], answer(&write, Code::CHANGED));
    assert_eq!(messages[1].token, observe.token);
    assert_eq!(messages[1].payload, b"+02:00");
    assert_eq!(messages.len(), 2);
}

#[test]
fn a_pressed_button_is_notified() {
    let mut fixture = Fixture::registered(lamp(Notify::NonConfirmable));
    begin(&mut fixture, "/3/0/9");
    fixture.device.press(at("/3/0/9"));
    fixture.pass_to_timeout();
    assert_eq!(fixture.messages()[0].payload, b"88");
}

#[test]
fn a_change_is_notified_in_the_requested_format() {
    let mut fixture = Fixture::registered(lamp(Notify::NonConfirmable));
    let observe = fixture.observe(TEMPERATURE);
    fixture.deliver(&observe.with_accept(ContentFormat::LWM2M_TLV));
    fixture.take();
    let notification = set(&mut fixture, 23.0);
    let format = notification.content_format();
    assert_eq!(format, Some(ContentFormat::LWM2M_TLV));
    let value = Reading::from([(at(TEMPERATURE), Value::Float(23.0))]);
    assert_eq!(notification.payload, tlv::encode(at(TEMPERATURE), &value));
}

#[test]
fn an_observation_of_an_object_or_instance_notifies_all_its_values() {
    for path in ["/3303", "/3303/0"] {
        let mut fixture = Fixture::registered(lamp(Notify::NonConfirmable));
        begin(&mut fixture, path);
        let notification = set(&mut fixture, 23.0);
        let read = fixture.read(path);
        fixture.deliver(&read);
        let response = fixture.messages().remove(0);
        assert_eq!(notification.payload, response.payload, "{path}");
        let format = notification.content_format();
        assert_eq!(format, Some(ContentFormat::LWM2M_TLV), "{path}");
    }
}

#[test]
fn a_removed_instance_is_notified_once_as_not_found() {
    let mut configuration = lamp(Notify::NonConfirmable);
    for path in ["/11/0/8/0", "/11/0/8/1"] {
        let name = Resource::holding(at(path), Value::String("name".to_owned()));
        configuration.resources.push(name);
    }
    let mut fixture = Fixture::registered(configuration);
    let observe = begin(&mut fixture, "/11/0/8/1");
    let list = Reading::from([(at("/11/0/8/0"), Value::String("only".to_owned()))]);
    let write = fixture.request(MessageKind::Confirmable, Operation::Write, "/11/0/8");
    let write = write
        .with_content_format(ContentFormat::LWM2M_TLV)
        .with_payload(tlv::encode(at("/11/0/8"), &list));
    fixture.deliver(&write);
    let put_out = fixture.take();
    let ended = DeviceEvent::ObservationEnded {
        path: at("/11/0/8/1"),
    };
    assert_eq!(put_out.last(), Some(&reported(ended)));
    let DeviceOutput::Send(notification) = &put_out[2] else {
        panic!("no notification: {put_out:?}");
    };
    let notification = Message::decode(notification).unwrap();
    let fields = (
        notification.code,
        notification.token,
        notification.observe(),
    );
    assert_eq!(fields, (Code::NOT_FOUND, observe.token, None));
    assert!(!is_notified(&mut fixture, "/11/0/8/0"));
}

#[test]
fn a_get_with_observe_1_ends_the_observation_of_its_token() {
    let mut fixture = Fixture::registered(lamp(Notify::NonConfirmable));
    let observe = begin(&mut fixture, TEMPERATURE);
    let other = fixture.request(
        MessageKind::Confirmable,
        Operation::CancelObservation,
        TEMPERATURE,
    );
    fixture.deliver(&other);
    fixture.take();
    set(&mut fixture, 30.0);
    let cancel = fixture.cancel(&observe);
    fixture.deliver(&cancel);
    let response = fixture.messages().remove(0);
    assert_eq!((response.code, response.observe()), (Code::CONTENT, None));
    assert_eq!(response.payload, b"30");
    assert!(!is_notified(&mut fixture, TEMPERATURE));
}

#[test]
fn an_observation_replaces_one_of_its_path_or_token() {
    let mut fixture = Fixture::registered(lamp(Notify::NonConfirmable));
    begin(&mut fixture, TEMPERATURE);
    let again = begin(&mut fixture, TEMPERATURE);
    assert_eq!(set(&mut fixture, 22.0).token, again.token);
    let mut elsewhere = fixture.observe("/3/0/9");
    elsewhere.token = again.token;
    fixture.deliver(&elsewhere);
    fixture.take();
    assert!(!is_notified(&mut fixture, TEMPERATURE));
    assert!(is_notified(&mut fixture, "/3/0/9"));
}

#[test]
fn a_reset_ends_the_observation() {
    for notify in [Notify::NonConfirmable, Notify::Confirmable] {
        let mut fixture = Fixture::registered(lamp(notify));
        begin(&mut fixture, TEMPERATURE);
        let notification = set(&mut fixture, 22.0);
        fixture.deliver(&Message::reset(MessageId(notification.message_id.0 ^ 1)));
        assert_eq!(fixture.take(), [], "the Reset is of something else");
        fixture.deliver(&Message::reset(notification.message_id));
        let ended = DeviceEvent::ObservationEnded {
            path: at(TEMPERATURE),
        };
        assert_eq!(fixture.take(), [reported(ended)]);
        assert!(!is_notified(&mut fixture, TEMPERATURE));
        fixture.pass(200_000);
        assert_eq!(fixture.take(), [], "nothing is repeated");
    }
}

#[test]
fn a_confirmable_notification_is_retransmitted_until_it_is_acknowledged() {
    let mut fixture = Fixture::registered(lamp(Notify::Confirmable));
    begin(&mut fixture, TEMPERATURE);
    let notification = set(&mut fixture, 22.0);
    assert_eq!(notification.kind, MessageKind::Confirmable);
    for _ in 0..2 {
        fixture.pass_to_timeout();
        assert_eq!(fixture.take(), [sent(&notification)]);
    }
    fixture.deliver(&Message::acknowledgement(notification.message_id));
    fixture.pass(200_000);
    assert_eq!(fixture.take(), []);
}

#[test]
fn a_notification_waits_until_the_previous_one_is_acknowledged() {
    let mut fixture = Fixture::registered(lamp(Notify::Confirmable));
    begin(&mut fixture, TEMPERATURE);
    let first = set(&mut fixture, 22.0);
    for value in [23.0, 24.0] {
        fixture.device.set(at(TEMPERATURE), Value::Float(value));
    }
    fixture.pass(1_000);
    assert_eq!(fixture.take(), []);
    fixture.deliver(&Message::acknowledgement(first.message_id));
    let second = fixture.messages();
    assert_eq!(second.len(), 1, "values in between are not notified");
    assert_eq!(second[0].payload, b"24");
    assert!(second[0].observe() > first.observe());
}

#[test]
fn an_unacknowledged_notification_ends_the_observation() {
    let mut fixture = Fixture::registered(lamp(Notify::Confirmable));
    begin(&mut fixture, TEMPERATURE);
    let notification = set(&mut fixture, 22.0);
    fixture.pass(120_000);
    let mut expected = vec![sent(&notification); 4];
    expected.push(reported(DeviceEvent::GaveUp(Uplink::Notification)));
    expected.push(reported(DeviceEvent::ObservationEnded {
        path: at(TEMPERATURE),
    }));
    assert_eq!(fixture.take(), expected);
    assert!(!is_notified(&mut fixture, TEMPERATURE));
}

#[test]
fn a_device_that_registers_anew_or_deregisters_forgets_its_observations() {
    let mut fixture = Fixture::registered(lamp(Notify::NonConfirmable));
    begin(&mut fixture, TEMPERATURE);
    fixture.order(|device, now_ms, out| device.update(now_ms, out));
    let update = fixture.message();
    fixture.deliver(&answer(&update, Code::NOT_FOUND));
    let register = fixture.messages().remove(0);
    fixture.deliver(&created(&register));
    assert!(!is_notified(&mut fixture, TEMPERATURE));

    begin(&mut fixture, TEMPERATURE);
    fixture.order(|device, now_ms, out| device.deregister(now_ms, out));
    let leave = fixture.message();
    fixture.deliver(&answer(&leave, Code::DELETED));
    assert!(!is_notified(&mut fixture, TEMPERATURE));
}

#[test]
fn an_update_keeps_observations() {
    let mut fixture = Fixture::registered(lamp(Notify::NonConfirmable));
    begin(&mut fixture, TEMPERATURE);
    fixture.order(|device, now_ms, out| device.update(now_ms, out));
    let update = fixture.message();
    fixture.deliver(&answer(&update, Code::CHANGED));
    assert!(is_notified(&mut fixture, TEMPERATURE));
}

#[test]
fn a_device_that_rebooted_has_forgotten_its_observations() {
    let mut fixture = Fixture::registered(lamp(Notify::NonConfirmable));
    begin(&mut fixture, TEMPERATURE);
    fixture.order(|device, now_ms, out| device.reboot(now_ms, out));
    let register = fixture.messages().remove(0);
    fixture.deliver(&created(&register));
    assert!(!is_notified(&mut fixture, TEMPERATURE));
}

#[test]
fn a_change_wakes_a_sleeping_device() {
    let mut fixture = Fixture::registered(sleepy());
    begin(&mut fixture, TEMPERATURE);
    fixture.pass(5_000);
    assert!(fixture.device.is_asleep());
    fixture.take();
    fixture.device.set(at(TEMPERATURE), Value::Float(40.0));
    fixture.pass(0);
    let [
        DeviceOutput::Report(DeviceEvent::Awake),
        DeviceOutput::Send(datagram),
        DeviceOutput::Report(_),
    ] = &fixture.take()[..]
    else {
        panic!("it says something else");
    };
    assert_eq!(Message::decode(datagram).unwrap().payload, b"40");
    assert_eq!(fixture.pass_to_timeout(), 5_000);
    assert!(fixture.device.is_asleep());
}

#[test]
fn it_does_not_sleep_before_a_notification_is_acknowledged() {
    let configuration = Configuration {
        notify: Notify::Confirmable,
        ..sleepy()
    };
    let mut fixture = Fixture::registered(configuration);
    begin(&mut fixture, TEMPERATURE);
    let notification = set(&mut fixture, 22.0);
    fixture.pass(20_000);
    assert!(!fixture.device.is_asleep());
    fixture.deliver(&Message::acknowledgement(notification.message_id));
    fixture.pass(5_000);
    assert!(fixture.device.is_asleep());
}

#[test]
fn a_sleep_order_abandons_a_notification_and_keeps_the_observation() {
    let mut fixture = Fixture::registered(lamp(Notify::Confirmable));
    begin(&mut fixture, TEMPERATURE);
    set(&mut fixture, 22.0);
    fixture.order(|device, now_ms, out| device.sleep(now_ms, out));
    fixture.pass(200_000);
    fixture.take();
    assert!(is_notified(&mut fixture, TEMPERATURE));
}

#[test]
fn an_observation_can_begin_with_a_separate_response() {
    let mut fixture = Fixture::registered(lamp(Notify::NonConfirmable));
    let later = AnswerMode::SeparateNonConfirmable { after_ms: 400 };
    fixture.device.answer_with(at(TEMPERATURE), later);
    let observe = fixture.observe(TEMPERATURE);
    fixture.deliver(&observe);
    fixture.pass(400);
    let response = fixture.messages().remove(1);
    assert_eq!(response.observe(), Some(1));
    assert!(is_notified(&mut fixture, TEMPERATURE));
}

#[test]
fn a_refused_observe_starts_no_observation() {
    for answering in [
        AnswerMode::Silent,
        AnswerMode::Reset,
        AnswerMode::Code(Code::CONTENT),
    ] {
        let mut fixture = Fixture::registered(lamp(Notify::NonConfirmable));
        fixture.device.answer_with(at(TEMPERATURE), answering);
        begin(&mut fixture, TEMPERATURE);
        assert!(!is_notified(&mut fixture, TEMPERATURE), "{answering:?}");
    }
}

#[test]
fn an_observation_beyond_the_maximum_is_a_plain_read() {
    let mut configuration = lamp(Notify::NonConfirmable);
    for instance in 0..65 {
        let path = at(&format!("/3300/{instance}/5700"));
        let sensor = Resource::holding(path, Value::Float(1.0));
        configuration.resources.push(sensor);
    }
    let mut fixture = Fixture::registered(configuration);
    for instance in 0..65 {
        let observe = fixture.observe(&format!("/3300/{instance}/5700"));
        fixture.deliver(&observe);
        let response = fixture.messages().remove(0);
        assert_eq!(response.code, Code::CONTENT);
        assert_eq!(response.observe().is_some(), instance < 64, "{instance}");
    }
    let again = fixture.observe("/3300/63/5700");
    fixture.deliver(&again);
    assert!(
        fixture.messages()[0].observe().is_some(),
        "it replaces itself"
    );
}

/// Starts an observation and returns its request.
fn begin(fixture: &mut Fixture, path: &str) -> Message {
    let observe = fixture.observe(path);
    fixture.deliver(&observe);
    fixture.take();
    observe
}

/// Sets a measured temperature and returns the notification of it.
fn set(fixture: &mut Fixture, degrees: f64) -> Message {
    fixture.device.set(at(TEMPERATURE), Value::Float(degrees));
    assert_eq!(
        fixture
            .device
            .next_timeout()
            .map(|at_ms| at_ms <= fixture.now_ms),
        Some(true)
    );
    fixture.pass(0);
    let put_out = fixture.take();
    let [
        DeviceOutput::Send(datagram),
        DeviceOutput::Report(DeviceEvent::Notified { .. }),
    ] = &put_out[..]
    else {
        panic!("no notification: {put_out:?}");
    };
    Message::decode(datagram).unwrap()
}

/// Whether a change of a value is notified.
fn is_notified(fixture: &mut Fixture, path: &str) -> bool {
    fixture.take();
    let value = match fixture.device.value(at(path)) {
        Some(Value::Float(number)) => Value::Float(number + 1.0),
        Some(Value::Integer(number)) => Value::Integer(number + 1),
        Some(Value::String(text)) => Value::String(format!("{text}!")),
        other => panic!("{path} cannot change: {other:?}"),
    };
    fixture.device.set(at(path), value);
    fixture.pass(0);
    let notified = reported(DeviceEvent::Notified { path: at(path) });
    fixture.take().contains(&notified)
}

fn lamp(notify: Notify) -> Configuration {
    Configuration {
        notify,
        ..Configuration::new("lamp")
    }
}

fn sleepy() -> Configuration {
    let reachability = Reachability::Queue {
        awake_window_ms: 5_000,
    };
    Configuration {
        reachability,
        ..Configuration::new("lamp")
    }
}
