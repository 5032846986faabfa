//! Is a device that sleeps woken by one SMS at a time, and served at its next uplink?

use std::sync::mpsc;
use std::thread;

use protocol::coap::code::Code;
use serde_json::{Value, json};

use super::link::linked;
use super::{MSISDN, NETWORK, SmsService};
use crate::test_service::{NEVER_AWAKE, error_codes, with};
use crate::vocabulary::caller::{API, Caller, text as text_in};
use crate::vocabulary::lwm2m::{read, when_active};
use crate::vocabulary::plain::{UdpDevice, answer, datagram, path_of};
use crate::vocabulary::poll::until;
use crate::vocabulary::smsc::{Smsc, receipt_of};
use crate::vocabulary::wire::{DeviceSocket, location_of, register_with, update};

/// The device of these tests.
const DEVICE: &str = "tracker";

/// Its address.
const IP: &str = "127.0.0.21";

/// Devices that are woken while the service is killed.
const MANY: usize = 60;

/// The paths of wake-up messages.
const OF_CUSTOMER: &str = "/management-api/v1/sms/wakeup";
const OF_DEVICE: &str = "/management-api/v1/devices/tracker/wakeup";

/// A device in queue mode that sleeps.
struct Sleeper {
    setup: SmsService,
    socket: DeviceSocket,
    location: Vec<String>,
    last_id: u16,
}

#[test]
fn a_sleeping_device_is_woken_by_one_sms_and_served_at_its_next_uplink() {
    let mut sleeper = Sleeper::registered(SmsService::with(&[NEVER_AWAKE]));
    sleeper.put(OF_CUSTOMER, &text("wake up"));
    let first = sleeper.wake();
    let shown = sleeper.setup.caller.action(&first);
    assert_eq!(shown["status"], "SCHEDULED");
    assert_eq!(shown["requestData"]["wakeUp"], "SMS");
    let (id, statuses) = sleeper.wake_up_of(&first);
    assert_eq!(statuses, ["PENDING"]);
    let second = sleeper.wake();
    assert_eq!(sleeper.wake_up_of(&second).0, id, "one is on its way");
    sleeper.crash();
    assert_eq!(sleeper.wake_up_of(&first), (id.clone(), statuses));
    let taken = sleeper.setup.take();
    let sms = &taken["items"][0];
    assert_eq!((&sms["id"], &sms["dest_address"]), (&id, &json!(MSISDN)));
    assert_eq!(sms["parts"], json!([{ "payload": "wake up" }]));
    sleeper.crash();
    assert_eq!(sleeper.setup.take()["items"], json!([]), "it left once");
    let third = sleeper.wake();
    assert_eq!(sleeper.wake_up_of(&third).0, id);
    sleeper.setup.report(&id, "DELIVERED").expect(202);
    let statuses = ["PENDING", "IN PROGRESS", "DELIVERED"].map(str::to_owned);
    assert_eq!(sleeper.wake_up_of(&first), (id.clone(), statuses.into()));
    assert_eq!(sleeper.socket.received(), [], "it was not heard");
    sleeper.update();
    for request in [first, second, third] {
        sleeper.answer_next();
        let action = sleeper.setup.caller.final_action(&request);
        assert_eq!(action["status"], "SUCCEEDED", "{action}");
    }
    assert_eq!(sleeper.setup.take()["items"], json!([]));
}

#[test]
fn an_sms_over_a_link_wakes_a_device_with_the_message_of_its_own() {
    let smsc = Smsc::new();
    let mut sleeper = Sleeper::registered(linked(&smsc, &[NEVER_AWAKE]));
    sleeper.put(OF_CUSTOMER, &text("wake up"));
    sleeper.put(OF_DEVICE, &trigger());
    let request = sleeper.wake();
    let submitted = smsc.submitted_once(1).remove(0);
    assert_eq!((&*submitted.dest.text, submitted.data_coding), (MSISDN, 4));
    let octets = &submitted.octets;
    assert!(
        octets.starts_with(&[0x50, 0x02]) && octets.ends_with(b"\xb1\x31\x01\x30\x01\x38"),
        "{octets:02x?}"
    );
    smsc.deliver(receipt_of(&submitted, "id0", "DELIVRD"));
    until("the report", || {
        let (_, statuses) = sleeper.wake_up_of(&request);
        (statuses.last().map(String::as_str) == Some("DELIVERED")).then_some(())
    });
    sleeper.update();
    sleeper.answer_next();
    let action = sleeper.setup.caller.final_action(&request);
    assert_eq!(action["status"], "SUCCEEDED", "{action}");
    assert_eq!(smsc.submitted().len(), 1);
}

#[test]
fn a_device_that_cannot_be_woken_is_refused_and_nothing_is_stored() {
    let limit = ("SIGNALBOX_WAKE_UP_SMS_MAX", "1");
    let sleeper = Sleeper::registered(SmsService::with(&[NEVER_AWAKE, limit]));
    let refused = |body: &Value| {
        let answer = sleeper.setup.caller.try_action(DEVICE, body).expect(409);
        error_codes(&answer).concat()
    };
    assert_eq!(refused(&waking()), "NO_WAKE_UP_MESSAGE");
    sleeper.put(OF_CUSTOMER, &text("wake up"));
    sleeper.amend(&json!({ "msisdn": null }));
    assert_eq!(refused(&waking()), "DEVICE_HAS_NO_MSISDN");
    sleeper.amend(&json!({ "msisdn": MSISDN }));
    let (id, _) = sleeper.wake_up_of(&sleeper.wake());
    sleeper.setup.report(&id, "FAILED").expect(202);
    assert_eq!(refused(&waking()), "WAKE_UP_LIMIT");
    let listed = format!("{API}/integrate/devices/actions/requests?deviceId={DEVICE}");
    let listed = sleeper.setup.caller.request("GET", &listed).expect(200);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1));
    for (name, value) in [
        ("wakeUp", json!("PIGEON")),
        ("notBefore", json!("2099-01-01T00:00:00.000Z")),
    ] {
        let body = with(waking(), name, value);
        sleeper.setup.caller.try_action(DEVICE, &body).expect(400);
    }
}

#[test]
fn devices_of_a_bulk_call_and_of_a_job_are_woken() {
    let sleeper = Sleeper::registered(SmsService::with(&[NEVER_AWAKE]));
    sleeper.put(OF_CUSTOMER, &text("wake up"));
    let path = format!("{API}/integrate/devices/actions/LWM2M");
    let body = with(waking(), "deviceIds", json!([DEVICE]));
    let bulk = sleeper.setup.caller.post(&path, &body).expect(202);
    let request = &bulk["acceptedRequests"][0]["requestId"];
    let (id, _) = sleeper.wake_up_of(request.as_str().expect("it is accepted"));
    sleeper.setup.report(&id, "FAILED").expect(202);
    let body = with(waking(), "filter", json!({ "q": DEVICE }));
    sleeper.setup.caller.post(&path, &body).expect(202);
    let other = until("the SMS of the job", || {
        let taken = sleeper.setup.take();
        taken["items"][0]["id"].as_u64()
    });
    assert_ne!(json!(other), id);
}

#[test]
fn a_request_over_udp_waits_until_the_device_is_heard() {
    let setup = SmsService::with(&[NEVER_AWAKE]);
    let sleeper = Sleeper::of(setup);
    let device = UdpDevice::from(IP, &sleeper.setup.service);
    sleeper.put(
        OF_DEVICE,
        &json!({
            "source_address": "Fleet", "type": "DATA", "payload": "0aFF",
        }),
    );
    let body = with(datagram("on", device.port()), "wakeUp", "SMS");
    let request = sleeper.setup.caller.create_over("UDP", DEVICE, &body);
    let taken = sleeper.setup.take();
    assert_eq!(taken["items"][0]["parts"], json!([{ "payload": "0aff" }]));
    assert_eq!(device.received(), Vec::<Vec<u8>>::new());
    device.send(b"awake");
    assert_eq!(device.receive(), b"on");
    let action = sleeper.setup.caller.final_action(&request);
    assert_eq!(action["status"], "SUCCEEDED", "{action}");
    // It was heard just now, as far as its awake window says.
    let listening = SmsService::new();
    let listening = Sleeper::of(listening);
    let device = UdpDevice::from(IP, &listening.setup.service);
    listening.put(OF_CUSTOMER, &text("wake up"));
    device.send(b"awake");
    listening.setup.caller.once_reported(DEVICE, 1);
    let body = with(datagram("on", device.port()), "wakeUp", "SMS");
    listening.setup.caller.create_over("UDP", DEVICE, &body);
    assert_eq!(device.receive(), b"on");
    assert_eq!(listening.setup.take()["items"], json!([]));
}

#[test]
fn a_kill_leaves_a_request_with_its_sms_or_neither() {
    let mut setup = SmsService::new();
    let put = setup.caller.authorized("PUT", OF_CUSTOMER);
    let put = put.json(&text("wake up")).send(setup.caller.address());
    put.expect(200);
    for number in 0..MANY {
        let iccid = format!("898828066600001{number:04}");
        let msisdn = format!("88228510001{number:04}");
        let names = (iccid.as_str(), msisdn.as_str());
        setup.device(&setup.caller, &format!("sleeper-{number}"), names);
    }
    let caller = setup.caller.clone();
    let (accepted, promised) = mpsc::channel();
    let calling = thread::spawn(move || {
        for number in 0..MANY {
            let path = format!("{API}/integrate/devices/sleeper-{number}/actions/UDP");
            let body = with(when_active(datagram("on", 4_445)), "wakeUp", "SMS");
            match caller.try_send("POST", &path, &body) {
                Ok(answer) if answer.status == 202 => {
                    let id = text_in(&answer.expect(202)["id"]);
                    accepted.send(id).expect("the test runs");
                }
                Ok(_) | Err(_) => return,
            }
        }
    });
    let mut ids: Vec<String> = promised.iter().take(MANY / 4).collect();
    setup.service.kill();
    calling.join().expect("it ends with the service");
    ids.extend(promised.try_iter());
    setup.crash();
    let listed = format!("{API}/integrate/devices/actions/requests?pageSize=100");
    let listed = setup.caller.request("GET", &listed).expect(200);
    let listed = listed["items"].as_array().expect("a list").iter();
    let listed: Vec<String> = listed.map(|request| text_in(&request["id"])).collect();
    assert!(ids.iter().all(|id| listed.contains(id)), "a 202 is kept");
    let sms_of = |id: &String| wake_up_of(&setup.caller, id).0.as_u64();
    let mut of_requests: Vec<_> = listed.iter().map(sms_of).collect();
    let taken = format!("{NETWORK}/mt");
    let taken = setup
        .network
        .post(&taken, &json!({ "max": 100 }))
        .expect(200);
    let taken = taken["items"].as_array().expect("a list").iter();
    let mut taken: Vec<_> = taken.map(|sms| sms["id"].as_u64()).collect();
    of_requests.sort_unstable();
    taken.sort_unstable();
    assert_eq!(of_requests, taken);
}

#[test]
fn a_wake_up_message_is_set_shown_and_deleted() {
    let setup = SmsService::new();
    let caller = &setup.caller;
    for path in [OF_CUSTOMER, OF_DEVICE] {
        assert_eq!(caller.request("GET", path).status, 404);
        assert_eq!(caller.request("DELETE", path).status, 404);
        for message in [text("wake up"), trigger()] {
            let put = caller.authorized("PUT", path).json(&message);
            let put = put.send(caller.address()).expect(200);
            assert_eq!(put["type"], message["type"]);
            assert_eq!(put["payload"], message["payload"]);
            assert_eq!(put["source_address_type"], json!({ "id": 145 }));
            assert_eq!(caller.request("GET", path).expect(200), put);
        }
        let bad = [
            (text(""), "payload"),
            (text(&"x".repeat(161)), "payload"),
            (with(trigger(), "payload", "x"), "payload"),
            (with(text("x"), "type", "DATA"), "payload"),
            (with(text("x"), "type", "CALL"), "type"),
            (
                with(text("x"), "source_address", "not a name of GSM"),
                "source_address",
            ),
        ];
        for (body, field) in bad {
            let put = caller.authorized("PUT", path).json(&body);
            let refused = put.send(caller.address()).expect(400);
            assert_eq!(refused["errors"][0]["field"], field, "{body}");
        }
        assert_eq!(caller.request("DELETE", path).status, 204);
        assert_eq!(caller.request("GET", path).status, 404);
    }
}

impl Sleeper {
    /// A device that was not heard yet.
    fn of(setup: SmsService) -> Self {
        let sleeper = Self {
            socket: DeviceSocket::from(IP, &setup.service),
            setup,
            location: Vec::new(),
            last_id: 0,
        };
        sleeper.amend(&json!({ "ip": IP }));
        sleeper
    }

    /// A device that registered in queue mode, and whose awake window is over.
    fn registered(setup: SmsService) -> Self {
        let mut sleeper = Self::of(setup);
        let queries = ["ep=tracker", "lt=3600", "lwm2m=1.1", "Q"];
        let message = register_with(&queries, "</1/0>,</3/0>", sleeper.id());
        let created = sleeper.socket.ask(&message);
        assert_eq!(created.code, Code::CREATED);
        sleeper.location = location_of(&created);
        until("sleep", || {
            let shown = sleeper.setup.caller.inspect(DEVICE);
            (shown["presence"]["state"] == "ASLEEP").then_some(())
        });
        sleeper
    }

    fn amend(&self, body: &Value) {
        let path = format!("{API}/devices/{DEVICE}");
        let caller = &self.setup.caller;
        let patch = caller.authorized("PATCH", &path).json(body);
        patch.send(caller.address()).expect(200);
    }

    fn put(&self, path: &str, message: &Value) {
        let caller = &self.setup.caller;
        let put = caller.authorized("PUT", path).json(message);
        put.send(caller.address()).expect(200);
    }

    /// Creates a request that wakes the device.
    fn wake(&self) -> String {
        self.setup.caller.create_action(DEVICE, &waking())
    }

    /// The SMS of a request, and the statuses that its timeline shows.
    fn wake_up_of(&self, request: &str) -> (Value, Vec<String>) {
        wake_up_of(&self.setup.caller, request)
    }

    fn update(&mut self) {
        let id = self.id();
        let message = update(&self.location, id);
        assert_eq!(self.socket.ask(&message).code, Code::CHANGED);
    }

    fn answer_next(&self) {
        let request = self.socket.receive_request();
        assert_eq!(path_of(&request), "/3/0/0");
        let response = answer(&request, Code::CONTENT).with_payload("value");
        self.socket.send(&response.encode());
    }

    fn crash(&mut self) {
        self.setup.crash();
    }

    fn id(&mut self) -> u16 {
        self.last_id += 1;
        self.last_id
    }
}

/// The SMS of a request, and the statuses that its timeline shows.
fn wake_up_of(caller: &Caller, request: &str) -> (Value, Vec<String>) {
    let action = caller.action(request);
    let timeline = action["timeline"].as_array().expect("a timeline").iter();
    let entries: Vec<_> = timeline.filter(|it| it["event"] == "WAKE_UP_SMS").collect();
    let first = entries.first().unwrap_or_else(|| panic!("none: {action}"));
    let status = |entry: &&Value| entry["status"].as_str().unwrap_or_default().to_owned();
    (first["sms"].clone(), entries.iter().map(status).collect())
}

/// A request that wakes the device.
fn waking() -> Value {
    with(when_active(read("/3/0/0")), "wakeUp", "SMS")
}

fn text(text: &str) -> Value {
    json!({ "source_address": "1234", "type": "TEXT", "payload": text })
}

fn trigger() -> Value {
    json!({ "source_address": "1234", "type": "REGISTRATION_UPDATE_TRIGGER" })
}
