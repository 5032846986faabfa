//! How does a device stay known, and how does it leave?

use harness::device::configuration::Configuration;
use harness::device::event::{Event, Output, Uplink};
use protocol::coap::code::Code;
use protocol::coap::message::{Kind, Message};

use super::world::{World, answer, created, queries, sent, told};

#[test]
fn an_update_is_sent_when_nine_tenths_of_the_lifetime_have_passed() {
    let mut world = World::registered(Configuration::new("lamp"));
    assert_eq!(world.pass_to_timeout(), 270_000);
    let [Output::Send(datagram)] = &world.take()[..] else {
        panic!("not one datagram");
    };
    // Confirmable POST to /rd/7, and nothing else.
    assert_eq!(datagram[..2], [0x48, 0x02]);
    assert_eq!(datagram[12..], *b"\xb2rd\x017");
    let update = Message::decode(datagram).unwrap();
    world.hear(&answer(&update, Code::CHANGED));
    assert_eq!(world.take(), [told(Event::Updated)]);
    assert_eq!(world.pass_to_timeout(), 270_000);
}

#[test]
fn a_device_may_update_more_often() {
    let configuration = Configuration {
        update_interval_ms: Some(30_000),
        ..Configuration::new("lamp")
    };
    let mut world = World::registered(configuration);
    assert_eq!(world.pass_to_timeout(), 30_000);
}

#[test]
fn another_interval_counts_from_the_next_update_on() {
    let mut world = World::registered(Configuration::new("lamp"));
    world.device.update_every(30_000);
    for interval_ms in [270_000, 30_000, 30_000] {
        assert_eq!(world.pass_to_timeout(), interval_ms);
        let update = world.message();
        world.hear(&answer(&update, Code::CHANGED));
        assert_eq!(world.take(), [told(Event::Updated)]);
    }
}

#[test]
fn no_setting_makes_a_flood_of_updates() {
    let cases = [
        (300, Some(0), 100),
        (0, None, 77_760_000),
        (u32::MAX, None, 3_865_470_565_500),
    ];
    for (lifetime_s, update_interval_ms, first_update_after_ms) in cases {
        let configuration = Configuration {
            lifetime_s,
            update_interval_ms,
            ..Configuration::new("lamp")
        };
        let mut world = World::registered(configuration);
        assert_eq!(world.pass_to_timeout(), first_update_after_ms);
    }
}

#[test]
fn a_device_that_is_not_known_any_more_registers_at_once() {
    let mut world = World::registered(Configuration::new("lamp"));
    world.pass_to_timeout();
    let update = world.message();
    world.hear(&answer(&update, Code::NOT_FOUND));
    assert_eq!(world.device.location(), None);
    let [
        Output::Told(Event::RegistrationLost),
        Output::Send(datagram),
    ] = &world.take()[..]
    else {
        panic!("no new registration");
    };
    let register = Message::decode(datagram).unwrap();
    assert_eq!(register.uri_path().collect::<Vec<_>>(), ["rd"]);
    assert_eq!(
        queries(&register),
        ["ep=lamp", "lt=300", "lwm2m=1.1", "b=U"]
    );
    world.hear(&created(&register));
    assert!(matches!(world.events()[..], [Event::Registered { .. }]));
}

#[test]
fn an_update_nobody_hears_ends_in_a_new_registration() {
    let mut world = World::registered(Configuration::new("lamp"));
    world.pass_to_timeout();
    let update = world.message();
    for _ in 0..4 {
        world.pass_to_timeout();
        assert_eq!(world.take(), [sent(&update)]);
    }
    world.pass_to_timeout();
    assert_eq!(world.take(), [told(Event::GaveUp(Uplink::Update))]);
    assert!((2_000..=2_500).contains(&world.pass_to_timeout()));
    assert_eq!(world.message().uri_path().collect::<Vec<_>>(), ["rd"]);
}

#[test]
fn a_busy_server_does_not_cost_the_registration() {
    let mut world = World::registered(Configuration::new("lamp"));
    world.pass_to_timeout();
    let update = world.message();
    world.hear(&answer(&update, Code::SERVICE_UNAVAILABLE).with_max_age(5));
    let code = Code::SERVICE_UNAVAILABLE;
    assert_eq!(
        world.take(),
        [told(Event::Refused {
            uplink: Uplink::Update,
            code
        })]
    );
    assert_eq!(world.device.location().unwrap().to_string(), "/rd/7");
    assert_eq!(world.pass_to_timeout(), 5_000);
    assert_eq!(world.message().uri_path().collect::<Vec<_>>(), ["rd", "7"]);
}

#[test]
fn another_refusal_of_an_update_ends_in_a_new_registration() {
    let mut world = World::registered(Configuration::new("lamp"));
    world.pass_to_timeout();
    let update = world.message();
    world.hear(&answer(&update, Code::BAD_REQUEST));
    let code = Code::BAD_REQUEST;
    assert_eq!(
        world.take(),
        [told(Event::Refused {
            uplink: Uplink::Update,
            code
        })]
    );
    assert_eq!(world.device.location(), None);
    assert!((2_000..=2_500).contains(&world.pass_to_timeout()));
}

#[test]
fn a_new_lifetime_is_told_at_once_and_only_once() {
    let mut world = World::registered(Configuration::new("lamp"));
    let write = world.write("/1/0/1", "60");
    world.hear(&write);
    assert_eq!(world.messages()[0].code, Code::CHANGED);
    assert_eq!(world.pass_to_timeout(), 0);
    let update = world.message();
    assert_eq!(update.uri_path().collect::<Vec<_>>(), ["rd", "7"]);
    assert_eq!(queries(&update), ["lt=60"]);
    world.hear(&answer(&update, Code::CHANGED));
    world.take();
    assert_eq!(world.pass_to_timeout(), 54_000);
    assert_eq!(queries(&world.message()), [""; 0]);
}

#[test]
fn a_new_lifetime_the_server_had_no_time_for_is_told_again() {
    let mut world = World::registered(Configuration::new("lamp"));
    let write = world.write("/1/0/1", "60");
    world.hear(&write);
    world.take();
    world.pass_to_timeout();
    let update = world.message();
    world.hear(&answer(&update, Code::SERVICE_UNAVAILABLE).with_max_age(5));
    world.take();
    assert_eq!(world.pass_to_timeout(), 5_000);
    assert_eq!(queries(&world.message()), ["lt=60"]);
}

#[test]
fn a_lifetime_that_is_none_is_not_told() {
    let mut world = World::registered(Configuration::new("lamp"));
    let write = world.write("/1/0/1", "-1");
    world.hear(&write);
    world.take();
    world.pass_to_timeout();
    assert_eq!(queries(&world.message()), [""; 0]);
}

#[test]
fn a_device_updates_when_it_is_told_to() {
    let mut world = World::registered(Configuration::new("lamp"));
    world.order(|device, now_ms, out| device.update(now_ms, out));
    let update = world.message();
    assert_eq!(update.uri_path().collect::<Vec<_>>(), ["rd", "7"]);
    world.order(|device, now_ms, out| device.update(now_ms, out));
    assert_eq!(world.take(), [], "one request at a time");
    world.hear(&answer(&update, Code::CHANGED));
    assert_eq!(world.take(), [told(Event::Updated)]);
}

#[test]
fn a_device_takes_its_leave_and_comes_back_when_told_to() {
    let mut world = World::registered(Configuration::new("lamp"));
    world.order(|device, now_ms, out| device.deregister(now_ms, out));
    let leave = world.message();
    assert_eq!((leave.kind, leave.code), (Kind::Confirmable, Code::DELETE));
    assert_eq!(leave.uri_path().collect::<Vec<_>>(), ["rd", "7"]);
    world.hear(&answer(&leave, Code::DELETED));
    assert_eq!(world.take(), [told(Event::Deregistered)]);
    assert_eq!(world.device.location(), None);
    assert_eq!(world.device.next_timeout(), None);
    world.order(|device, now_ms, out| device.handle_start(now_ms, out));
    assert_eq!(world.message().uri_path().collect::<Vec<_>>(), ["rd"]);
}

#[test]
fn a_leave_nobody_hears_is_a_leave_all_the_same() {
    let mut world = World::registered(Configuration::new("lamp"));
    world.order(|device, now_ms, out| device.deregister(now_ms, out));
    world.pass(100_000);
    let put_out = world.take();
    assert_eq!(
        put_out.last(),
        Some(&told(Event::GaveUp(Uplink::Deregister)))
    );
    assert_eq!(put_out.len(), 6);
    assert_eq!(world.device.next_timeout(), None);
}
