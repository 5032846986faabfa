//! Are datagrams, requests and devices counted by what they are?

use std::cell::RefCell;

use harness::device::configuration::{Configuration, Reachability};
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;
use serde_json::json;

use super::{scrape, sum_of};
use crate::test_service::{ID, IMPATIENT, NEVER_AWAKE, TestService, silent_device, start};
use crate::vocabulary::caller::API;
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::lwm2m::{read, when_active, write};
use crate::vocabulary::poll::until;
use crate::vocabulary::service::Service;
use crate::vocabulary::wire::{self, DeviceSocket};

const HANDLED: &str = "signalbox_datagrams_handled_total";
const RECEIVED: &str = "signalbox_datagrams_received_total";
const SENT: &str = "signalbox_datagrams_sent_total";
const CREATED: &str = "signalbox_actions_created_total";
const FINISHED: &str = "signalbox_actions_finished_total";
const BEGUN: &str = "signalbox_exchanges_begun_total";
const RETRANSMITTED: &str = "signalbox_exchanges_retransmitted_total";
const ENDED: &str = "signalbox_exchanges_ended_total";
const IN_FLIGHT: &str = "signalbox_exchanges_in_flight";
const WAITING: &str = "signalbox_actions_waiting";
const RESIDENT: &str = "signalbox_devices_resident";
const KNOWN: &str = "signalbox_devices_known";
const NOTIFIED: &str = "signalbox_notifications_total";

/// A metric, the labels that its samples must have, and their sum.
pub(super) type Figure<'a> = (&'a str, &'a [(&'a str, &'a str)], f64);

#[test]
fn each_datagram_is_counted_by_type_code_and_meaning() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let wire = DeviceSocket::from(DEVICE_IP, &service);
    let location = wire.register(ID, 1);
    let update = wire::update(&location, 2);
    wire.ask(&update);
    wire.ask(&update);
    wire.ask(&wire::request(Code::GET, 3).with_uri_path(["time"]));
    let token = Token::new(&[9]).unwrap();
    let unasked = Message::separate(MessageKind::Confirmable, Code::CONTENT, MessageId(4), token);
    for rejected in [unasked, Message::ping(MessageId(5))] {
        wire.send(&rejected.encode());
        assert_eq!(wire.receive(), Message::reset(rejected.message_id));
    }
    wire.ask(&wire::deregister(&location, 6));

    for meaning in [
        "register",
        "update",
        "repeated",
        "unsupported",
        "unsolicited",
        "ping",
        "deregister",
    ] {
        are(&service, &[(HANDLED, &[("kind", meaning)], 1.0)]);
    }
    are(
        &service,
        &[
            (RECEIVED, &[("type", "CON"), ("code", "POST")], 3.0),
            (RECEIVED, &[("type", "CON"), ("code", "DELETE")], 1.0),
            (RECEIVED, &[("type", "CON"), ("code", "GET")], 1.0),
            (RECEIVED, &[("type", "CON"), ("code", "2.xx")], 1.0),
            (RECEIVED, &[("type", "CON"), ("code", "empty")], 1.0),
            (RECEIVED, &[], 7.0),
            (SENT, &[("type", "ACK"), ("code", "2.xx")], 4.0),
            (SENT, &[("type", "ACK"), ("code", "4.xx")], 1.0),
            (SENT, &[("type", "RST"), ("code", "empty")], 2.0),
            (SENT, &[], 7.0),
        ],
    );
}

#[test]
fn a_request_is_counted_from_its_creation_to_its_end() {
    let setup = TestService::new();
    setup.caller.perform(ID, &read("/3/0/0"));
    setup.caller.perform(ID, &read("/3/0/999"));
    setup.caller.create_action(ID, &write("/3/0/13", "noon"));

    let read_well = [("operation", "read"), ("status", "succeeded")];
    let read_badly = [("operation", "read"), ("status", "failed")];
    let wrote_badly = [("operation", "write"), ("status", "failed")];
    are(
        &setup.service,
        &[
            (CREATED, &[("protocol", "lwm2m")], 3.0),
            (FINISHED, &read_well, 1.0),
            (FINISHED, &read_badly, 1.0),
            (FINISHED, &wrote_badly, 1.0),
            (FINISHED, &[], 3.0),
            // A request whose value does not fit is never sent.
            (BEGUN, &[("purpose", "action")], 2.0),
            (ENDED, &[("outcome", "2.xx")], 1.0),
            (ENDED, &[("outcome", "4.xx")], 1.0),
            (ENDED, &[], 2.0),
            (HANDLED, &[("kind", "answer")], 2.0),
            (IN_FLIGHT, &[], 0.0),
            (WAITING, &[], 0.0),
        ],
    );
}

#[test]
fn unanswered_requests_are_counted_with_their_retransmissions() {
    let setup = TestService::with(&IMPATIENT, Configuration::new(ID));
    setup.device.sleep();
    let id = setup.caller.create_action(ID, &read("/3/0/0"));
    setup.caller.final_action(&id);
    are(
        &setup.service,
        &[
            (BEGUN, &[], 1.0),
            (RETRANSMITTED, &[], 1.0),
            (ENDED, &[("outcome", "not_acknowledged")], 1.0),
        ],
    );
}

#[test]
fn waiting_requests_are_counted_until_they_are_cancelled_or_deleted_with_their_device() {
    let (service, caller) = start(&[]);
    silent_device(&caller, ID);
    let waiting = when_active(read("/3/0/0"));
    let first = caller.create_action(ID, &waiting);
    caller.create_action(ID, &waiting);
    are(
        &service,
        &[
            (WAITING, &[("status", "scheduled")], 2.0),
            (RESIDENT, &[("presence", "unregistered")], 1.0),
        ],
    );
    caller.cancel_action(&first).expect(200);
    are(
        &service,
        &[
            (WAITING, &[("status", "scheduled")], 1.0),
            (FINISHED, &[("status", "cancelled")], 1.0),
        ],
    );
    let forgotten = caller.request("DELETE", &format!("{API}/devices/{ID}"));
    assert_eq!(forgotten.status, 204);
    are(
        &service,
        &[
            (WAITING, &[], 0.0),
            (CREATED, &[], 2.0),
            (FINISHED, &[("status", "cancelled")], 2.0),
            (FINISHED, &[], 2.0),
        ],
    );
}

#[test]
fn devices_are_counted_by_their_presence() {
    let sleepy = Configuration {
        reachability: Reachability::Queue {
            awake_window_ms: 60_000,
        },
        ..Configuration::new(ID)
    };
    let mut setup = TestService::with(&[NEVER_AWAKE], sleepy);
    silent_device(&setup.caller, "meter-2");
    let one_sleeps: [Figure<'_>; 4] = [
        (RESIDENT, &[("presence", "asleep")], 1.0),
        (RESIDENT, &[], 1.0),
        (KNOWN, &[("registration", "registered")], 1.0),
        (KNOWN, &[("registration", "unregistered")], 1.0),
    ];
    are(&setup.service, &one_sleeps);
    setup.crash();
    are(&setup.service, &one_sleeps);
    setup.device.deregister();
    are(
        &setup.service,
        &[
            (RESIDENT, &[("presence", "asleep")], 0.0),
            (KNOWN, &[("registration", "registered")], 0.0),
            (KNOWN, &[("registration", "unregistered")], 2.0),
        ],
    );
}

#[test]
fn a_device_that_always_listens_is_awake() {
    let setup = TestService::new();
    are(&setup.service, &[(RESIDENT, &[("presence", "awake")], 1.0)]);
}

#[test]
fn notifications_are_counted_by_what_becomes_of_them() {
    let setup = TestService::new();
    let observe = json!({ "action": "observe-start", "resourceAddress": "/3/0/9" });
    let action = setup.caller.perform(ID, &observe);
    assert_eq!(action["status"], "SUCCEEDED", "{action}");
    let battery = Path::resource(3, 0, 9);
    setup.device.set(battery, Value::Integer(42));
    are(
        &setup.service,
        &[
            (NOTIFIED, &[("outcome", "published")], 1.0),
            (NOTIFIED, &[], 1.0),
            (HANDLED, &[("kind", "notification")], 1.0),
            ("signalbox_observations_lost_total", &[], 0.0),
        ],
    );
}

/// Waits until all metrics have these values: an arbiter publishes once a second.
pub(crate) fn are(service: &Service, expected: &[Figure<'_>]) {
    let others = RefCell::new(Vec::new());
    until("the figures", || {
        let scraped = scrape(service);
        let found = |(name, labels, _): &Figure<'_>| sum_of(&scraped, name, labels);
        let wrong = expected.iter().filter(|it| found(it) != it.2);
        let wrong: Vec<_> = wrong.map(|it| (*it, found(it))).collect();
        if !wrong.is_empty() && *others.borrow() != wrong {
            eprintln!("not yet: {wrong:?}");
        }
        let is_over = wrong.is_empty();
        others.replace(wrong);
        is_over.then_some(())
    });
}
