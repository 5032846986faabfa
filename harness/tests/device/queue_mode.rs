//! When does a device sleep, and what does it miss?

use harness::device::configuration::{Configuration, Reachability};
use harness::device::event::{DeviceEvent, DeviceOutput, Uplink};
use harness::device::resource::AnswerMode;
use protocol::coap::code::Code;
use protocol::coap::message::Message;

use super::world::{Fixture, answer, at, created, reported};

#[test]
fn a_device_in_queue_mode_sleeps_after_its_awake_window_without_traffic() {
    let mut fixture = Fixture::registered(sleepy());
    assert_eq!(fixture.pass_to_timeout(), 5_000);
    assert_eq!(
        fixture.take(),
        [reported(DeviceEvent::Asleep {
            wakes_in_ms: Some(265_000)
        })]
    );
    assert!(fixture.device.is_asleep() && !fixture.device.is_listening());
}

#[test]
fn traffic_keeps_it_awake() {
    let mut fixture = Fixture::registered(sleepy());
    fixture.pass(4_000);
    let read = fixture.read("/3/0/0");
    fixture.deliver(&read);
    fixture.pass(4_999);
    assert!(!fixture.device.is_asleep());
    fixture.pass(1);
    assert!(fixture.device.is_asleep());
}

#[test]
fn datagrams_to_a_sleeping_device_are_lost() {
    let mut fixture = Fixture::registered(sleepy());
    fixture.pass(5_000);
    fixture.take();
    let execute = fixture.execute("/1/0/8");
    fixture.deliver(&execute);
    fixture.deliver_bytes(b"\x40\x01\x00\x07\xff");
    assert_eq!(fixture.take(), []);
    assert_eq!(fixture.device.performed_count(), 0);
}

#[test]
fn it_wakes_for_its_update_and_sleeps_again() {
    let mut fixture = Fixture::registered(sleepy());
    fixture.pass(5_000);
    fixture.take();
    assert_eq!(fixture.pass_to_timeout(), 265_000);
    let [
        DeviceOutput::Report(DeviceEvent::Awake),
        DeviceOutput::Send(datagram),
    ] = &fixture.take()[..]
    else {
        panic!("no update");
    };
    let update = Message::decode(datagram).unwrap();
    assert_eq!(update.uri_path().collect::<Vec<_>>(), ["rd", "7"]);
    fixture.deliver(&answer(&update, Code::CHANGED));
    assert_eq!(fixture.take(), [reported(DeviceEvent::Updated)]);
    assert_eq!(fixture.pass_to_timeout(), 5_000);
    assert_eq!(
        fixture.take(),
        [reported(DeviceEvent::Asleep {
            wakes_in_ms: Some(265_000)
        })]
    );
}

#[test]
fn it_does_not_sleep_while_it_waits_for_the_server() {
    let mut fixture = Fixture::registered(sleepy());
    fixture.pass(265_000);
    fixture.order(|device, now_ms, out| device.wake(now_ms, out));
    fixture.pass(30_000);
    assert!(!fixture.device.is_asleep());
}

#[test]
fn it_does_not_sleep_while_an_answer_is_pending() {
    let mut fixture = Fixture::registered(sleepy());
    fixture.device.answer_with(
        at("/3/0/0"),
        AnswerMode::SeparateConfirmable { after_ms: 20_000 },
    );
    let read = fixture.read("/3/0/0");
    fixture.deliver(&read);
    fixture.pass(20_000);
    let response = fixture.messages().remove(1);
    assert_eq!(response.code, Code::CONTENT);
    fixture.deliver(&Message::acknowledgement(response.message_id));
    assert_eq!(fixture.pass_to_timeout(), 5_000);
    assert!(fixture.device.is_asleep());
}

#[test]
fn it_does_not_sleep_before_it_is_registered() {
    let mut fixture = Fixture::start(sleepy());
    fixture.pass(300_000);
    assert!(!fixture.device.is_asleep());
}

#[test]
fn a_device_that_always_listens_never_sleeps_by_itself() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    fixture.pass(269_999);
    assert_eq!(fixture.take(), []);
    assert!(fixture.device.is_listening());
}

#[test]
fn a_device_that_updates_within_its_awake_window_stays_awake() {
    let configuration = Configuration {
        update_interval_ms: Some(4_000),
        ..sleepy()
    };
    let mut fixture = Fixture::registered(configuration);
    for _ in 0..3 {
        assert_eq!(fixture.pass_to_timeout(), 4_000);
        let update = fixture.message();
        fixture.deliver(&answer(&update, Code::CHANGED));
        assert_eq!(fixture.take(), [reported(DeviceEvent::Updated)]);
    }
}

#[test]
fn a_woken_device_contacts_the_server() {
    let mut fixture = Fixture::registered(sleepy());
    fixture.order(|device, now_ms, out| device.wake(now_ms, out));
    assert_eq!(fixture.take(), [], "it is awake already");
    fixture.pass(60_000);
    fixture.take();
    fixture.order(|device, now_ms, out| device.wake(now_ms, out));
    let put_out = fixture.take();
    assert_eq!(put_out[0], reported(DeviceEvent::Awake));
    assert!(matches!(&put_out[1..], [DeviceOutput::Send(_)]));
}

#[test]
fn a_sleep_order_abandons_the_exchange_in_progress() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    fixture.device.answer_with(
        at("/3/0/0"),
        AnswerMode::SeparateConfirmable { after_ms: 100 },
    );
    let read = fixture.read("/3/0/0");
    fixture.deliver(&read);
    fixture.order(|device, now_ms, out| device.update(now_ms, out));
    fixture.take();
    fixture.order(|device, now_ms, out| device.sleep(now_ms, out));
    assert_eq!(
        fixture.take(),
        [reported(DeviceEvent::Asleep {
            wakes_in_ms: Some(270_000)
        })]
    );
    fixture.pass(269_999);
    assert_eq!(fixture.take(), []);
    fixture.pass(1);
    assert_eq!(
        fixture.messages()[0].uri_path().collect::<Vec<_>>(),
        ["rd", "7"]
    );
}

#[test]
fn a_device_ordered_to_sleep_while_it_registers_retries_when_it_wakes() {
    let mut fixture = Fixture::start(Configuration::new("lamp"));
    let register = fixture.message();
    fixture.order(|device, now_ms, out| device.sleep(now_ms, out));
    fixture.deliver(&created(&register));
    assert_eq!(fixture.device.location(), None);
    fixture.take();
    assert!((2_000..=2_500).contains(&fixture.pass_to_timeout()));
    let again = fixture.messages().remove(0);
    assert_eq!(again.uri_path().collect::<Vec<_>>(), ["rd"]);
    assert_ne!(again.token, register.token);
}

#[test]
fn deregistration_wakes_it() {
    let mut fixture = Fixture::registered(sleepy());
    fixture.pass(60_000);
    fixture.take();
    fixture.order(|device, now_ms, out| device.deregister(now_ms, out));
    let put_out = fixture.take();
    assert_eq!(put_out[0], reported(DeviceEvent::Awake));
    let [DeviceOutput::Send(datagram)] = &put_out[1..] else {
        panic!("no leave")
    };
    assert_eq!(Message::decode(datagram).unwrap().code, Code::DELETE);
}

#[test]
fn an_unanswered_update_keeps_it_awake_until_it_is_registered_again() {
    let mut fixture = Fixture::registered(sleepy());
    fixture.pass(270_000);
    fixture.take();
    fixture.pass(300_000);
    let put_out = fixture.take();
    assert!(put_out.contains(&reported(DeviceEvent::GaveUp(Uplink::Update))));
    assert!(!fixture.device.is_asleep());
    while fixture.device.location().is_none() {
        fixture.pass_to_timeout();
        if let [DeviceOutput::Send(datagram)] = &fixture.take()[..] {
            fixture.deliver(&created(&Message::decode(datagram).unwrap()));
        }
    }
    fixture.take();
    fixture.pass(5_000);
    assert_eq!(
        fixture.take(),
        [reported(DeviceEvent::Asleep {
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
