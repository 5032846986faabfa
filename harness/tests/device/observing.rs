//! What does a device tell of what is observed, for how long, and how?

use harness::device::configuration::{Configuration, Notify, Reachability};
use harness::device::event::{Event, Operation, Output, Uplink};
use harness::device::resource::{Answer, Resource};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Kind, Message, MessageId};
use protocol::lwm2m::payload::{Reading, tlv};
use protocol::lwm2m::value::Value;

use super::world::{World, answer, answered, at, created, sent, told};

const TEMPERATURE: &str = "/3303/0/5700";

#[test]
fn an_observation_begins_with_the_value_and_a_number() {
    let mut world = World::registered(lamp(Notify::NonConfirmable));
    // Confirmable GET /3303/0/5700, message id 0x1234, token 0xAB, Observe 0.
    world.hear_bytes(b"\x41\x01\x12\x34\xab\x60\x543303\x010\x045700");
    // Acknowledgement 2.05 with the same ids, Observe 1, Content-Format 0 and the text.
    let reply = b"\x61\x45\x12\x34\xab\x61\x01\x60\xff21.5".to_vec();
    let told = answered(Operation::Observe, TEMPERATURE, Code::CONTENT);
    assert_eq!(world.take(), [told, Output::Send(reply)]);
}

#[test]
fn each_change_is_told_under_the_token_with_a_higher_number() {
    let mut world = World::registered(lamp(Notify::NonConfirmable));
    let observe = begin(&mut world, TEMPERATURE);
    let mut before = 1;
    for (value, text) in [(22.0, "22"), (22.5, "22.5"), (-3.0, "-3")] {
        let notification = set(&mut world, value);
        assert_eq!(notification.kind, Kind::NonConfirmable);
        assert_eq!(notification.token, observe.token);
        assert_eq!(notification.code, Code::CONTENT);
        assert_eq!(notification.content_format(), Some(ContentFormat::TEXT));
        assert_eq!(notification.payload, text.as_bytes());
        let number = notification.observe().unwrap();
        assert!(number > before, "{number} after {before}");
        before = number;
    }
    world.pass(200_000);
    assert_eq!(world.take(), [], "a change is told once");
}

#[test]
fn what_does_not_change_is_not_told() {
    let mut world = World::registered(lamp(Notify::NonConfirmable));
    begin(&mut world, TEMPERATURE);
    world.device.set(at(TEMPERATURE), Value::Float(21.5));
    world.device.set(at("/3/0/9"), Value::Integer(12));
    world.pass(1_000);
    world.device.set(at(TEMPERATURE), Value::Float(30.0));
    world.device.set(at(TEMPERATURE), Value::Float(21.5));
    world.pass(1_000);
    assert_eq!(world.take(), []);
}

#[test]
fn a_value_the_server_writes_is_told_after_the_answer() {
    let mut world = World::registered(lamp(Notify::NonConfirmable));
    let observe = begin(&mut world, "/3/0/14");
    let write = world.write("/3/0/14", "+02:00");
    world.hear(&write);
    let messages = world.messages();
    assert_eq!(messages[0], answer(&write, Code::CHANGED));
    assert_eq!(messages[1].token, observe.token);
    assert_eq!(messages[1].payload, b"+02:00");
    assert_eq!(messages.len(), 2);
}

#[test]
fn a_button_that_is_pressed_is_told() {
    let mut world = World::registered(lamp(Notify::NonConfirmable));
    begin(&mut world, "/3/0/9");
    world.device.press(at("/3/0/9"));
    world.pass_to_timeout();
    assert_eq!(world.messages()[0].payload, b"88");
}

#[test]
fn a_change_is_told_in_the_format_that_was_asked_for() {
    let mut world = World::registered(lamp(Notify::NonConfirmable));
    let observe = world.observe(TEMPERATURE);
    world.hear(&observe.with_accept(ContentFormat::LWM2M_TLV));
    world.take();
    let notification = set(&mut world, 23.0);
    let format = notification.content_format();
    assert_eq!(format, Some(ContentFormat::LWM2M_TLV));
    let value = Reading::from([(at(TEMPERATURE), Value::Float(23.0))]);
    assert_eq!(notification.payload, tlv::encode(at(TEMPERATURE), &value));
}

#[test]
fn an_object_or_an_instance_tells_of_all_that_is_in_it() {
    for path in ["/3303", "/3303/0"] {
        let mut world = World::registered(lamp(Notify::NonConfirmable));
        begin(&mut world, path);
        let notification = set(&mut world, 23.0);
        let read = world.read(path);
        world.hear(&read);
        let response = world.messages().remove(0);
        assert_eq!(notification.payload, response.payload, "{path}");
        let format = notification.content_format();
        assert_eq!(format, Some(ContentFormat::LWM2M_TLV), "{path}");
    }
}

#[test]
fn an_instance_that_is_gone_is_told_once_as_not_found() {
    let mut configuration = lamp(Notify::NonConfirmable);
    for path in ["/11/0/8/0", "/11/0/8/1"] {
        let name = Resource::holding(at(path), Value::String("name".to_owned()));
        configuration.resources.push(name);
    }
    let mut world = World::registered(configuration);
    let observe = begin(&mut world, "/11/0/8/1");
    let list = Reading::from([(at("/11/0/8/0"), Value::String("only".to_owned()))]);
    let write = world.request(Kind::Confirmable, Operation::Write, "/11/0/8");
    let write = write
        .with_content_format(ContentFormat::LWM2M_TLV)
        .with_payload(tlv::encode(at("/11/0/8"), &list));
    world.hear(&write);
    let put_out = world.take();
    let ended = Event::ObservationEnded {
        path: at("/11/0/8/1"),
    };
    assert_eq!(put_out.last(), Some(&told(ended)));
    let Output::Send(notification) = &put_out[2] else {
        panic!("no notification: {put_out:?}");
    };
    let notification = Message::decode(notification).unwrap();
    let seen = (
        notification.code,
        notification.token,
        notification.observe(),
    );
    assert_eq!(seen, (Code::NOT_FOUND, observe.token, None));
    assert!(!tells(&mut world, "/11/0/8/0"));
}

#[test]
fn a_get_with_observe_1_ends_the_observation_of_its_token() {
    let mut world = World::registered(lamp(Notify::NonConfirmable));
    let observe = begin(&mut world, TEMPERATURE);
    let other = world.request(Kind::Confirmable, Operation::CancelObservation, TEMPERATURE);
    world.hear(&other);
    world.take();
    set(&mut world, 30.0);
    let cancel = world.cancel(&observe);
    world.hear(&cancel);
    let response = world.messages().remove(0);
    assert_eq!((response.code, response.observe()), (Code::CONTENT, None));
    assert_eq!(response.payload, b"30");
    assert!(!tells(&mut world, TEMPERATURE));
}

#[test]
fn an_observation_takes_the_place_of_one_of_its_path_or_token() {
    let mut world = World::registered(lamp(Notify::NonConfirmable));
    begin(&mut world, TEMPERATURE);
    let again = begin(&mut world, TEMPERATURE);
    assert_eq!(set(&mut world, 22.0).token, again.token);
    let mut elsewhere = world.observe("/3/0/9");
    elsewhere.token = again.token;
    world.hear(&elsewhere);
    world.take();
    assert!(!tells(&mut world, TEMPERATURE));
    assert!(tells(&mut world, "/3/0/9"));
}

#[test]
fn a_reset_ends_the_observation() {
    for notify in [Notify::NonConfirmable, Notify::Confirmable] {
        let mut world = World::registered(lamp(notify));
        begin(&mut world, TEMPERATURE);
        let notification = set(&mut world, 22.0);
        world.hear(&Message::reset(MessageId(notification.message_id.0 ^ 1)));
        assert_eq!(world.take(), [], "the Reset is of something else");
        world.hear(&Message::reset(notification.message_id));
        let ended = Event::ObservationEnded {
            path: at(TEMPERATURE),
        };
        assert_eq!(world.take(), [told(ended)]);
        assert!(!tells(&mut world, TEMPERATURE));
        world.pass(200_000);
        assert_eq!(world.take(), [], "nothing is repeated");
    }
}

#[test]
fn a_confirmable_notification_is_repeated_until_it_is_acknowledged() {
    let mut world = World::registered(lamp(Notify::Confirmable));
    begin(&mut world, TEMPERATURE);
    let notification = set(&mut world, 22.0);
    assert_eq!(notification.kind, Kind::Confirmable);
    for _ in 0..2 {
        world.pass_to_timeout();
        assert_eq!(world.take(), [sent(&notification)]);
    }
    world.hear(&Message::acknowledgement(notification.message_id));
    world.pass(200_000);
    assert_eq!(world.take(), []);
}

#[test]
fn a_change_waits_until_the_one_before_is_acknowledged() {
    let mut world = World::registered(lamp(Notify::Confirmable));
    begin(&mut world, TEMPERATURE);
    let first = set(&mut world, 22.0);
    for value in [23.0, 24.0] {
        world.device.set(at(TEMPERATURE), Value::Float(value));
    }
    world.pass(1_000);
    assert_eq!(world.take(), []);
    world.hear(&Message::acknowledgement(first.message_id));
    let second = world.messages();
    assert_eq!(second.len(), 1, "what lies between is not told");
    assert_eq!(second[0].payload, b"24");
    assert!(second[0].observe() > first.observe());
}

#[test]
fn a_notification_nobody_acknowledges_ends_the_observation() {
    let mut world = World::registered(lamp(Notify::Confirmable));
    begin(&mut world, TEMPERATURE);
    let notification = set(&mut world, 22.0);
    world.pass(120_000);
    let mut expected = vec![sent(&notification); 4];
    expected.push(told(Event::GaveUp(Uplink::Notification)));
    expected.push(told(Event::ObservationEnded {
        path: at(TEMPERATURE),
    }));
    assert_eq!(world.take(), expected);
    assert!(!tells(&mut world, TEMPERATURE));
}

#[test]
fn a_device_that_registers_anew_or_leaves_forgets_what_was_observed() {
    let mut world = World::registered(lamp(Notify::NonConfirmable));
    begin(&mut world, TEMPERATURE);
    world.order(|device, now_ms, out| device.update(now_ms, out));
    let update = world.message();
    world.hear(&answer(&update, Code::NOT_FOUND));
    let register = world.messages().remove(0);
    world.hear(&created(&register));
    assert!(!tells(&mut world, TEMPERATURE));

    begin(&mut world, TEMPERATURE);
    world.order(|device, now_ms, out| device.deregister(now_ms, out));
    let leave = world.message();
    world.hear(&answer(&leave, Code::DELETED));
    assert!(!tells(&mut world, TEMPERATURE));
}

#[test]
fn an_update_keeps_what_is_observed() {
    let mut world = World::registered(lamp(Notify::NonConfirmable));
    begin(&mut world, TEMPERATURE);
    world.order(|device, now_ms, out| device.update(now_ms, out));
    let update = world.message();
    world.hear(&answer(&update, Code::CHANGED));
    assert!(tells(&mut world, TEMPERATURE));
}

#[test]
fn a_device_that_rebooted_has_forgotten_what_was_observed() {
    let mut world = World::registered(lamp(Notify::NonConfirmable));
    begin(&mut world, TEMPERATURE);
    world.order(|device, now_ms, out| device.reboot(now_ms, out));
    let register = world.messages().remove(0);
    world.hear(&created(&register));
    assert!(!tells(&mut world, TEMPERATURE));
}

#[test]
fn a_change_wakes_a_device_that_sleeps() {
    let mut world = World::registered(sleepy());
    begin(&mut world, TEMPERATURE);
    world.pass(5_000);
    assert!(world.device.is_asleep());
    world.take();
    world.device.set(at(TEMPERATURE), Value::Float(40.0));
    world.pass(0);
    let [
        Output::Told(Event::Awake),
        Output::Send(datagram),
        Output::Told(_),
    ] = &world.take()[..]
    else {
        panic!("it says something else");
    };
    assert_eq!(Message::decode(datagram).unwrap().payload, b"40");
    assert_eq!(world.pass_to_timeout(), 5_000);
    assert!(world.device.is_asleep());
}

#[test]
fn it_does_not_sleep_before_a_notification_is_acknowledged() {
    let configuration = Configuration {
        notify: Notify::Confirmable,
        ..sleepy()
    };
    let mut world = World::registered(configuration);
    begin(&mut world, TEMPERATURE);
    let notification = set(&mut world, 22.0);
    world.pass(20_000);
    assert!(!world.device.is_asleep());
    world.hear(&Message::acknowledgement(notification.message_id));
    world.pass(5_000);
    assert!(world.device.is_asleep());
}

#[test]
fn a_device_told_to_sleep_leaves_a_notification_unsaid_and_goes_on_observing() {
    let mut world = World::registered(lamp(Notify::Confirmable));
    begin(&mut world, TEMPERATURE);
    set(&mut world, 22.0);
    world.order(|device, now_ms, out| device.sleep(now_ms, out));
    world.pass(200_000);
    world.take();
    assert!(tells(&mut world, TEMPERATURE));
}

#[test]
fn an_observation_begins_with_a_separate_answer_too() {
    let mut world = World::registered(lamp(Notify::NonConfirmable));
    let later = Answer::SeparateNonConfirmable { after_ms: 400 };
    world.device.answer_with(at(TEMPERATURE), later);
    let observe = world.observe(TEMPERATURE);
    world.hear(&observe);
    world.pass(400);
    let response = world.messages().remove(1);
    assert_eq!(response.observe(), Some(1));
    assert!(tells(&mut world, TEMPERATURE));
}

#[test]
fn what_is_not_performed_is_not_observed() {
    for answering in [Answer::Silent, Answer::Reset, Answer::Code(Code::CONTENT)] {
        let mut world = World::registered(lamp(Notify::NonConfirmable));
        world.device.answer_with(at(TEMPERATURE), answering);
        begin(&mut world, TEMPERATURE);
        assert!(!tells(&mut world, TEMPERATURE), "{answering:?}");
    }
}

#[test]
fn one_observation_too_many_is_a_plain_read() {
    let mut configuration = lamp(Notify::NonConfirmable);
    for instance in 0..65 {
        let path = at(&format!("/3300/{instance}/5700"));
        let sensor = Resource::holding(path, Value::Float(1.0));
        configuration.resources.push(sensor);
    }
    let mut world = World::registered(configuration);
    for instance in 0..65 {
        let observe = world.observe(&format!("/3300/{instance}/5700"));
        world.hear(&observe);
        let response = world.messages().remove(0);
        assert_eq!(response.code, Code::CONTENT);
        assert_eq!(response.observe().is_some(), instance < 64, "{instance}");
    }
    let again = world.observe("/3300/63/5700");
    world.hear(&again);
    assert!(
        world.messages()[0].observe().is_some(),
        "it replaces itself"
    );
}

/// Begins an observation and gives the request for it.
fn begin(world: &mut World, path: &str) -> Message {
    let observe = world.observe(path);
    world.hear(&observe);
    world.take();
    observe
}

/// Has the device measure a temperature and gives the notification of it.
fn set(world: &mut World, degrees: f64) -> Message {
    world.device.set(at(TEMPERATURE), Value::Float(degrees));
    assert_eq!(
        world
            .device
            .next_timeout()
            .map(|at_ms| at_ms <= world.now_ms),
        Some(true)
    );
    world.pass(0);
    let put_out = world.take();
    let [Output::Send(datagram), Output::Told(Event::Notified { .. })] = &put_out[..] else {
        panic!("no notification: {put_out:?}");
    };
    Message::decode(datagram).unwrap()
}

/// Tells whether a change of a value is told.
fn tells(world: &mut World, path: &str) -> bool {
    world.take();
    let value = match world.device.value(at(path)) {
        Some(Value::Float(number)) => Value::Float(number + 1.0),
        Some(Value::Integer(number)) => Value::Integer(number + 1),
        Some(Value::String(text)) => Value::String(format!("{text}!")),
        other => panic!("{path} cannot change: {other:?}"),
    };
    world.device.set(at(path), value);
    world.pass(0);
    let notified = told(Event::Notified { path: at(path) });
    world.take().contains(&notified)
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
