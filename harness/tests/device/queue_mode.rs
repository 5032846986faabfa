//! When does a device sleep, and what does it miss?

use harness::device::configuration::{Configuration, Reachability};
use harness::device::event::{Event, Output, Uplink};
use harness::device::resource::Answer;
use protocol::coap::code::Code;
use protocol::coap::message::Message;

use super::world::{World, answer, at, created, told};

#[test]
fn a_device_in_queue_mode_sleeps_when_nothing_was_heard_for_its_awake_window() {
    let mut world = World::registered(sleepy());
    assert_eq!(world.pass_to_timeout(), 5_000);
    assert_eq!(
        world.take(),
        [told(Event::Asleep {
            wakes_in_ms: Some(265_000)
        })]
    );
    assert!(world.device.is_asleep() && !world.device.is_listening());
}

#[test]
fn traffic_keeps_it_awake() {
    let mut world = World::registered(sleepy());
    world.pass(4_000);
    let read = world.read("/3/0/0");
    world.hear(&read);
    world.pass(4_999);
    assert!(!world.device.is_asleep());
    world.pass(1);
    assert!(world.device.is_asleep());
}

#[test]
fn what_it_is_sent_while_asleep_is_lost() {
    let mut world = World::registered(sleepy());
    world.pass(5_000);
    world.take();
    let execute = world.execute("/1/0/8");
    world.hear(&execute);
    world.hear_bytes(b"\x40\x01\x00\x07\xff");
    assert_eq!(world.take(), []);
    assert_eq!(world.device.performed_count(), 0);
}

#[test]
fn it_wakes_for_its_update_and_sleeps_again() {
    let mut world = World::registered(sleepy());
    world.pass(5_000);
    world.take();
    assert_eq!(world.pass_to_timeout(), 265_000);
    let [Output::Told(Event::Awake), Output::Send(datagram)] = &world.take()[..] else {
        panic!("no update");
    };
    let update = Message::decode(datagram).unwrap();
    assert_eq!(update.uri_path().collect::<Vec<_>>(), ["rd", "7"]);
    world.hear(&answer(&update, Code::CHANGED));
    assert_eq!(world.take(), [told(Event::Updated)]);
    assert_eq!(world.pass_to_timeout(), 5_000);
    assert_eq!(
        world.take(),
        [told(Event::Asleep {
            wakes_in_ms: Some(265_000)
        })]
    );
}

#[test]
fn it_does_not_sleep_while_it_waits_for_the_server() {
    let mut world = World::registered(sleepy());
    world.pass(265_000);
    world.order(|device, now_ms, out| device.wake(now_ms, out));
    world.pass(30_000);
    assert!(!world.device.is_asleep());
}

#[test]
fn it_does_not_sleep_while_it_owes_an_answer() {
    let mut world = World::registered(sleepy());
    world.device.answer_with(
        at("/3/0/0"),
        Answer::SeparateConfirmable { after_ms: 20_000 },
    );
    let read = world.read("/3/0/0");
    world.hear(&read);
    world.pass(20_000);
    let response = world.messages().remove(1);
    assert_eq!(response.code, Code::CONTENT);
    world.hear(&Message::acknowledgement(response.message_id));
    assert_eq!(world.pass_to_timeout(), 5_000);
    assert!(world.device.is_asleep());
}

#[test]
fn it_does_not_sleep_before_it_is_registered() {
    let mut world = World::start(sleepy());
    world.pass(300_000);
    assert!(!world.device.is_asleep());
}

#[test]
fn a_device_that_always_listens_never_sleeps_by_itself() {
    let mut world = World::registered(Configuration::new("lamp"));
    world.pass(269_999);
    assert_eq!(world.take(), []);
    assert!(world.device.is_listening());
}

#[test]
fn a_device_that_updates_within_its_awake_window_stays_awake() {
    let configuration = Configuration {
        update_interval_ms: Some(4_000),
        ..sleepy()
    };
    let mut world = World::registered(configuration);
    for _ in 0..3 {
        assert_eq!(world.pass_to_timeout(), 4_000);
        let update = world.message();
        world.hear(&answer(&update, Code::CHANGED));
        assert_eq!(world.take(), [told(Event::Updated)]);
    }
}

#[test]
fn waking_it_makes_it_tell_the_server() {
    let mut world = World::registered(sleepy());
    world.order(|device, now_ms, out| device.wake(now_ms, out));
    assert_eq!(world.take(), [], "it is awake already");
    world.pass(60_000);
    world.take();
    world.order(|device, now_ms, out| device.wake(now_ms, out));
    let put_out = world.take();
    assert_eq!(put_out[0], told(Event::Awake));
    assert!(matches!(&put_out[1..], [Output::Send(_)]));
}

#[test]
fn any_device_sleeps_when_told_to_and_leaves_unsaid_what_it_was_saying() {
    let mut world = World::registered(Configuration::new("lamp"));
    world
        .device
        .answer_with(at("/3/0/0"), Answer::SeparateConfirmable { after_ms: 100 });
    let read = world.read("/3/0/0");
    world.hear(&read);
    world.order(|device, now_ms, out| device.update(now_ms, out));
    world.take();
    world.order(|device, now_ms, out| device.sleep(now_ms, out));
    assert_eq!(
        world.take(),
        [told(Event::Asleep {
            wakes_in_ms: Some(270_000)
        })]
    );
    world.pass(269_999);
    assert_eq!(world.take(), []);
    world.pass(1);
    assert_eq!(
        world.messages()[0].uri_path().collect::<Vec<_>>(),
        ["rd", "7"]
    );
}

#[test]
fn a_device_told_to_sleep_while_it_registers_tries_again_when_it_wakes() {
    let mut world = World::start(Configuration::new("lamp"));
    let register = world.message();
    world.order(|device, now_ms, out| device.sleep(now_ms, out));
    world.hear(&created(&register));
    assert_eq!(world.device.location(), None);
    world.take();
    assert!((2_000..=2_500).contains(&world.pass_to_timeout()));
    let again = world.messages().remove(0);
    assert_eq!(again.uri_path().collect::<Vec<_>>(), ["rd"]);
    assert_ne!(again.token, register.token);
}

#[test]
fn leaving_wakes_it() {
    let mut world = World::registered(sleepy());
    world.pass(60_000);
    world.take();
    world.order(|device, now_ms, out| device.deregister(now_ms, out));
    let put_out = world.take();
    assert_eq!(put_out[0], told(Event::Awake));
    let [Output::Send(datagram)] = &put_out[1..] else {
        panic!("no leave")
    };
    assert_eq!(Message::decode(datagram).unwrap().code, Code::DELETE);
}

#[test]
fn an_update_nobody_hears_keeps_it_awake_until_it_is_registered_again() {
    let mut world = World::registered(sleepy());
    world.pass(270_000);
    world.take();
    world.pass(300_000);
    let put_out = world.take();
    assert!(put_out.contains(&told(Event::GaveUp(Uplink::Update))));
    assert!(!world.device.is_asleep());
    while world.device.location().is_none() {
        world.pass_to_timeout();
        if let [Output::Send(datagram)] = &world.take()[..] {
            world.hear(&created(&Message::decode(datagram).unwrap()));
        }
    }
    world.take();
    world.pass(5_000);
    assert_eq!(
        world.take(),
        [told(Event::Asleep {
            wakes_in_ms: Some(265_000)
        })]
    );
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
