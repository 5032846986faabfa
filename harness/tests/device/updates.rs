//! How does a device keep its registration, and how does it deregister?

use harness::device::configuration::Configuration;
use harness::device::event::{DeviceEvent, DeviceOutput, Uplink};
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageKind};

use super::world::{Fixture, answer, created, queries, reported, sent};

#[test]
fn an_update_is_sent_when_nine_tenths_of_the_lifetime_have_passed() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    assert_eq!(fixture.pass_to_timeout(), 270_000);
    let [DeviceOutput::Send(datagram)] = &fixture.take()[..] else {
        panic!("not one datagram");
    };
    // Confirmable POST to /rd/7, and nothing else.
    assert_eq!(datagram[..2], [0x48, 0x02]);
    assert_eq!(datagram[12..], *b"\xb2rd\x017");
    let update = Message::decode(datagram).unwrap();
    fixture.deliver(&answer(&update, Code::CHANGED));
    assert_eq!(fixture.take(), [reported(DeviceEvent::Updated)]);
    assert_eq!(fixture.pass_to_timeout(), 270_000);
}

#[test]
fn a_device_may_update_more_often() {
    let configuration = Configuration {
        update_interval_ms: Some(30_000),
        ..Configuration::new("lamp")
    };
    let mut fixture = Fixture::registered(configuration);
    assert_eq!(fixture.pass_to_timeout(), 30_000);
}

#[test]
fn another_interval_applies_from_the_next_update_on() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    fixture.device.update_every(30_000);
    for interval_ms in [270_000, 30_000, 30_000] {
        assert_eq!(fixture.pass_to_timeout(), interval_ms);
        let update = fixture.message();
        fixture.deliver(&answer(&update, Code::CHANGED));
        assert_eq!(fixture.take(), [reported(DeviceEvent::Updated)]);
    }
}

#[test]
fn no_configuration_causes_a_flood_of_updates() {
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
        let mut fixture = Fixture::registered(configuration);
        assert_eq!(fixture.pass_to_timeout(), first_update_after_ms);
    }
}

#[test]
fn a_device_unknown_to_the_server_registers_immediately() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    fixture.pass_to_timeout();
    let update = fixture.message();
    fixture.deliver(&answer(&update, Code::NOT_FOUND));
    assert_eq!(fixture.device.location(), None);
    let [
        DeviceOutput::Report(DeviceEvent::RegistrationLost),
        DeviceOutput::Send(datagram),
    ] = &fixture.take()[..]
    else {
        panic!("no new registration");
    };
    let register = Message::decode(datagram).unwrap();
    assert_eq!(register.uri_path().collect::<Vec<_>>(), ["rd"]);
    assert_eq!(
        queries(&register),
        ["ep=lamp", "lt=300", "lwm2m=1.1", "b=U"]
    );
    fixture.deliver(&created(&register));
    assert!(matches!(
        fixture.events()[..],
        [DeviceEvent::Registered { .. }]
    ));
}

#[test]
fn an_unanswered_update_leads_to_a_new_registration() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    fixture.pass_to_timeout();
    let update = fixture.message();
    for _ in 0..4 {
        fixture.pass_to_timeout();
        assert_eq!(fixture.take(), [sent(&update)]);
    }
    fixture.pass_to_timeout();
    assert_eq!(
        fixture.take(),
        [reported(DeviceEvent::GaveUp(Uplink::Update))]
    );
    assert!((2_000..=2_500).contains(&fixture.pass_to_timeout()));
    assert_eq!(fixture.message().uri_path().collect::<Vec<_>>(), ["rd"]);
}

#[test]
fn a_busy_server_does_not_end_the_registration() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    fixture.pass_to_timeout();
    let update = fixture.message();
    fixture.deliver(&answer(&update, Code::SERVICE_UNAVAILABLE).with_max_age(5));
    let code = Code::SERVICE_UNAVAILABLE;
    assert_eq!(
        fixture.take(),
        [reported(DeviceEvent::Refused {
            uplink: Uplink::Update,
            code
        })]
    );
    assert_eq!(fixture.device.location().unwrap().to_string(), "/rd/7");
    assert_eq!(fixture.pass_to_timeout(), 5_000);
    assert_eq!(
        fixture.message().uri_path().collect::<Vec<_>>(),
        ["rd", "7"]
    );
}

#[test]
fn another_refusal_of_an_update_leads_to_a_new_registration() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    fixture.pass_to_timeout();
    let update = fixture.message();
    fixture.deliver(&answer(&update, Code::BAD_REQUEST));
    let code = Code::BAD_REQUEST;
    assert_eq!(
        fixture.take(),
        [reported(DeviceEvent::Refused {
            uplink: Uplink::Update,
            code
        })]
    );
    assert_eq!(fixture.device.location(), None);
    assert!((2_000..=2_500).contains(&fixture.pass_to_timeout()));
}

#[test]
fn a_new_lifetime_is_sent_immediately_and_only_once() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let write = fixture.write("/1/0/1", "60");
    fixture.deliver(&write);
    assert_eq!(fixture.messages()[0].code, Code::CHANGED);
    assert_eq!(fixture.pass_to_timeout(), 0);
    let update = fixture.message();
    assert_eq!(update.uri_path().collect::<Vec<_>>(), ["rd", "7"]);
    assert_eq!(queries(&update), ["lt=60"]);
    fixture.deliver(&answer(&update, Code::CHANGED));
    fixture.take();
    assert_eq!(fixture.pass_to_timeout(), 54_000);
    assert_eq!(queries(&fixture.message()), [""; 0]);
}

#[test]
fn a_new_lifetime_that_a_busy_server_refused_is_sent_again() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let write = fixture.write("/1/0/1", "60");
    fixture.deliver(&write);
    fixture.take();
    fixture.pass_to_timeout();
    let update = fixture.message();
    fixture.deliver(&answer(&update, Code::SERVICE_UNAVAILABLE).with_max_age(5));
    fixture.take();
    assert_eq!(fixture.pass_to_timeout(), 5_000);
    assert_eq!(queries(&fixture.message()), ["lt=60"]);
}

#[test]
fn an_invalid_lifetime_is_not_sent() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let write = fixture.write("/1/0/1", "-1");
    fixture.deliver(&write);
    fixture.take();
    fixture.pass_to_timeout();
    assert_eq!(queries(&fixture.message()), [""; 0]);
}

#[test]
fn a_device_updates_on_order() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    fixture.order(|device, now_ms, out| device.update(now_ms, out));
    let update = fixture.message();
    assert_eq!(update.uri_path().collect::<Vec<_>>(), ["rd", "7"]);
    fixture.order(|device, now_ms, out| device.update(now_ms, out));
    assert_eq!(fixture.take(), [], "one request at a time");
    fixture.deliver(&answer(&update, Code::CHANGED));
    assert_eq!(fixture.take(), [reported(DeviceEvent::Updated)]);
}

#[test]
fn a_device_deregisters_and_returns_on_order() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    fixture.order(|device, now_ms, out| device.deregister(now_ms, out));
    let leave = fixture.message();
    assert_eq!(
        (leave.kind, leave.code),
        (MessageKind::Confirmable, Code::DELETE)
    );
    assert_eq!(leave.uri_path().collect::<Vec<_>>(), ["rd", "7"]);
    fixture.deliver(&answer(&leave, Code::DELETED));
    assert_eq!(fixture.take(), [reported(DeviceEvent::Deregistered)]);
    assert_eq!(fixture.device.location(), None);
    assert_eq!(fixture.device.next_timeout(), None);
    fixture.order(|device, now_ms, out| device.handle_start(now_ms, out));
    assert_eq!(fixture.message().uri_path().collect::<Vec<_>>(), ["rd"]);
}

#[test]
fn an_unanswered_deregistration_takes_effect() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    fixture.order(|device, now_ms, out| device.deregister(now_ms, out));
    fixture.pass(100_000);
    let put_out = fixture.take();
    assert_eq!(
        put_out.last(),
        Some(&reported(DeviceEvent::GaveUp(Uplink::Deregister)))
    );
    assert_eq!(put_out.len(), 6);
    assert_eq!(fixture.device.next_timeout(), None);
}
