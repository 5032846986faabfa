//! Do two nodes on one database serve as one service, whichever is killed, stopped or drained, and
//! whatever becomes of the database?

mod delivering;
mod relayed;
mod sharing;

use std::time::Instant;

use protocol::coap::code::Code;
use serde_json::{Value, json};

use crate::postgres::{send, value_of, values_of};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::endpoint::{Endpoint, ReceivedPost};
use crate::vocabulary::http::Request;
use crate::vocabulary::lwm2m::{read, when_active};
use crate::vocabulary::poll::until;
use crate::vocabulary::postgres::PostgresServer;
use crate::vocabulary::service::Service;
use crate::vocabulary::wire::DeviceSocket;

const ID: &str = "meter-1";

/// A device that says nothing while requests wait for it.
const SLEEPER: &str = "meter-2";
const SLEEPER_IP: &str = "127.78.2.2";

const NODES: &str = "/operator-api/v1/nodes";

/// A short lease, so that its end is soon.
const SHORT: [(&str, &str); 4] = [
    ("SIGNALBOX_NODE_LEASE_S", "3"),
    ("SIGNALBOX_NODE_HEARTBEAT_S", "1"),
    ("SIGNALBOX_SCHEDULED_MAX", "10000"),
    ("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true"),
];

/// A lease that ends after every test.
const LONG: [(&str, &str); 2] = [
    ("SIGNALBOX_NODE_LEASE_S", "600"),
    ("SIGNALBOX_NODE_HEARTBEAT_S", "1"),
];

/// The exit status of a node whose lease another one has.
const SUPERSEDED: i32 = 75;

#[test]
fn what_a_killed_node_acknowledged_is_there_once_at_the_node_that_takes_over() {
    let server = PostgresServer::start();
    let mut pair = Pair::start(&server, &SHORT);
    let endpoint = Endpoint::new();
    let types = json!([{ "type": "TELEMETRY_DATA" }]);
    let webhook = json!({ "name": "Values", "url": endpoint.url("/in"), "eventTypes": types });
    let webhooks = format!("{API}/integrate/clouds/webhooks");
    pair.caller.post(&webhooks, &webhook).expect(201);
    let mut acknowledged = Vec::new();
    let mut accepted = Vec::new();
    let wire = pair.registered(1);
    for round in 0..3_u16 {
        // The node is killed while the device and the caller go on.
        for value in 1..=40 {
            let value = round * 100 + value;
            assert_eq!(wire.ask(&send(value)).code, Code::CHANGED);
            acknowledged.push(u64::from(value));
            accepted.push(
                pair.caller
                    .create_action(SLEEPER, &when_active(read("/3/0/0"))),
            );
        }
        let unanswered = round * 100 + 41;
        let last = send(unanswered);
        wire.send(&last.encode());
        pair.active.kill();
        let killed_at = Instant::now();
        pair.take_over();
        eprintln!("kill -9: ready after {:?}", killed_at.elapsed());
        wire.turn_to(&pair.active);
        // Whether it was acknowledged is not known: it is repeated, as a device does.
        assert_eq!(wire.ask_until_answered(&last).code, Code::CHANGED);
        eprintln!("kill -9: first answer after {:?}", killed_at.elapsed());
        acknowledged.push(u64::from(unanswered));
        pair.standby.stand_by();
    }
    assert_eq!(pair.values(), acknowledged);
    let is_all = |posted: &[ReceivedPost]| values_of(posted).len() >= acknowledged.len();
    let posted = endpoint.once_so("every acknowledged value", is_all);
    assert_eq!(values_of(&posted), acknowledged);
    for action in accepted {
        assert_eq!(pair.caller.action(&action)["status"], "SCHEDULED");
    }
    let first_contact = "Lifecycle[DeviceFirstTimeRegistered]";
    assert_eq!(pair.caller.log_messages(), [first_contact; 2]);
    assert_eq!(pair.states(), ["ACTIVE", "STANDBY"]);
}

#[test]
fn a_node_that_was_stopped_beyond_its_lease_answers_and_writes_nothing_any_more() {
    let server = PostgresServer::start();
    let mut pair = Pair::start(&server, &SHORT);
    let former = pair.registered(1);
    assert_eq!(former.ask(&send(1)).code, Code::CHANGED);
    pair.active.pause();
    // The kernel keeps for it what arrives.
    former.send(&send(2).encode());
    let late = Request::new("POST", &format!("{API}/devices"));
    let late = late.header("authorization", &format!("Bearer {}", pair.caller.token()));
    let late = late.json(&json!({ "deviceId": "late" }));
    let to = pair.active.http;
    let late = std::thread::spawn(move || late.try_send(to));
    pair.take_over();
    let wire = pair.registered(2);
    assert_eq!(wire.ask_until_answered(&send(3)).code, Code::CHANGED);
    pair.standby.resume();
    assert_eq!(pair.standby.ended().code(), Some(SUPERSEDED));
    // It had the datagram, and the call, before it ended.
    assert!(former.received().is_empty());
    let late = late.join().unwrap();
    assert!(late.is_err() || late.is_ok_and(|it| it.status == 503));
    let device = format!("{API}/devices/late");
    pair.caller.request("GET", &device).expect(404);
    assert_eq!(pair.values(), [1, 3]);
    pair.standby.stand_by();
    assert_eq!(pair.states(), ["ACTIVE", "STANDBY"]);
}

#[test]
fn a_drained_node_is_replaced_without_waiting_for_the_end_of_its_lease() {
    let server = PostgresServer::start();
    let mut pair = Pair::start(&server, &LONG);
    let wire = pair.registered(1);
    assert_eq!(wire.ask(&send(1)).code, Code::CHANGED);
    let operator = Caller::operator(&pair.active);
    let nodes = operator.request("GET", NODES).expect(200);
    let (active, standby) = (&nodes["items"][0], &nodes["items"][1]);
    assert_eq!(
        (&active["state"], &active["shards"]),
        (&json!("ACTIVE"), &json!(1024))
    );
    assert_eq!(
        (&standby["state"], &standby["shards"]),
        (&json!("STANDBY"), &json!(0))
    );
    assert!(active["leaseEndsAt"].is_string() && standby["leaseEndsAt"].is_null());
    let drain = format!("{NODES}/{}/drain", text(&active["id"]));
    // The node that stands by tells the same, and takes the order.
    Request::new("GET", NODES)
        .send(pair.standby.http)
        .expect(401);
    Request::new("POST", &drain)
        .send(pair.standby.http)
        .expect(401);
    let mut operator = operator;
    operator.follow(&pair.standby);
    let listed = operator.request("GET", NODES).expect(200);
    let ids = |nodes: &Value| [&nodes["items"][0]["id"], &nodes["items"][1]["id"]].map(text);
    assert_eq!(ids(&listed), ids(&nodes));
    let unknown = format!("{NODES}/01935c5a-0000-7000-8000-000000000001/drain");
    operator.request("POST", &unknown).expect(404);
    let drained_at = Instant::now();
    assert_eq!(operator.request("POST", &drain).status, 202);
    assert!(pair.active.ended().success());
    pair.take_over();
    eprintln!("drain: ready after {:?}", drained_at.elapsed());
    wire.turn_to(&pair.active);
    assert_eq!(wire.ask_until_answered(&send(2)).code, Code::CHANGED);
    eprintln!("drain: first answer after {:?}", drained_at.elapsed());
    assert_eq!(pair.values(), [1, 2]);
    // The same by SIGTERM, back to where it was.
    pair.standby.stand_by();
    pair.active.terminate();
    assert!(pair.active.ended().success());
    pair.take_over();
    wire.turn_to(&pair.active);
    assert_eq!(wire.ask_until_answered(&send(3)).code, Code::CHANGED);
    assert_eq!(pair.values(), [1, 2, 3]);
    let operator = Caller::operator(&pair.active);
    operator.request("POST", &unknown).expect(404);
}

#[test]
fn an_active_node_without_its_database_is_silent_and_goes_on_with_it() {
    let mut server = PostgresServer::start();
    let mut pair = Pair::start(&server, &SHORT);
    let wire = pair.registered(1);
    assert_eq!(wire.ask(&send(1)).code, Code::CHANGED);
    server.kill();
    pair.active.wait_for_line("this node is silent");
    wire.send(&send(2).encode());
    let devices = format!("{API}/devices");
    let refused = pair.caller.request("GET", &devices);
    assert_eq!(refused.status, 503);
    assert!(
        refused.text().contains("could not renew its lease"),
        "{}",
        refused.text()
    );
    assert_eq!(status(&pair.active, "/livez"), Some(200));
    let metrics = Request::new("GET", "/metrics").send(pair.active.http);
    assert!(metrics.text().contains("signalbox_node_active 0"));
    until("that the standby misses it", || {
        let ready = Request::new("GET", "/readyz").send(pair.standby.http);
        ready.text().contains("cannot be reached").then_some(())
    });
    // What arrived meanwhile was not even acknowledged.
    assert!(wire.received().is_empty());
    server.start_again();
    until("that one is ready", || pair.ready().is_some().then_some(()));
    if pair.ready() == Some(pair.standby.http) {
        // The lease had ended: the standby may have been faster.
        pair.take_over();
    }
    wire.turn_to(&pair.active);
    assert_eq!(wire.ask_until_answered(&send(2)).code, Code::CHANGED);
    pair.caller.follow(&pair.active);
    assert_eq!(pair.values(), [1, 2]);
}

/// An active node, one that stands by, and a caller of the active one.
struct Pair {
    active: Service,
    standby: Service,
    caller: Caller,
}

impl Pair {
    fn start(server: &PostgresServer, settings: &[(&str, &str)]) -> Self {
        let pair = Self::start_on(&server.create_database(), settings, &[]);
        for (path, expected) in [("/livez", 200), ("/readyz", 503), (API, 503)] {
            assert_eq!(status(&pair.standby, path), Some(expected), "{path}");
        }
        pair
    }

    /// The node that stands by has the settings of the other one but for its own.
    fn start_on(database: &str, settings: &[(&str, &str)], of_standby: &[(&str, &str)]) -> Self {
        let mut active = Service::start_on(database, settings);
        let mut standby = Service::stand_by_beside(&active, of_standby);
        active.may_fail();
        standby.may_fail();
        let caller = Caller::of_new_customer(&active, "Acme");
        caller.create_device(ID, DEVICE_IP);
        caller.create_device(SLEEPER, SLEEPER_IP);
        DeviceSocket::from(SLEEPER_IP, &active).register(SLEEPER, 1);
        Self {
            active,
            standby,
            caller,
        }
    }

    fn registered(&self, id: u16) -> DeviceSocket {
        let wire = DeviceSocket::to(&self.active);
        wire.register(ID, id);
        wire
    }

    /// Waits until the node that stands by is ready; then it is the active one.
    fn take_over(&mut self) {
        // One that relays is ready before.
        self.standby.wait_for_line("listening udp=");
        until("that the other node is ready", || {
            (status(&self.standby, "/readyz") == Some(200)).then_some(())
        });
        std::mem::swap(&mut self.active, &mut self.standby);
        self.caller.follow(&self.active);
    }

    /// The API of the node that is ready, as a load balancer finds it.
    fn ready(&self) -> Option<std::net::SocketAddr> {
        let nodes = [&self.active, &self.standby];
        let ready = nodes.iter().find(|it| status(it, "/readyz") == Some(200));
        ready.map(|it| it.http)
    }

    /// The values of the device that are stored, the oldest first.
    fn values(&self) -> Vec<u64> {
        let mut values = Vec::new();
        let mut page = format!("{API}/devices/{ID}/messages?type=TELEMETRY_DATA&pageSize=100");
        loop {
            let stored = self.caller.request("GET", &page).expect(200);
            let items = stored["items"].as_array().unwrap();
            values.extend(items.iter().map(value_of));
            let Some(next) = stored["nextCursor"].as_str() else {
                values.reverse();
                return values;
            };
            page = format!(
                "{API}/devices/{ID}/messages?type=TELEMETRY_DATA&pageSize=100&cursor={next}"
            );
        }
    }

    /// The states of all nodes, sorted.
    fn states(&self) -> Vec<String> {
        let nodes = Caller::operator(&self.active)
            .request("GET", NODES)
            .expect(200);
        let nodes = nodes["items"].as_array().unwrap();
        let mut states: Vec<_> = nodes.iter().map(|it| text(&it["state"])).collect();
        states.sort();
        states
    }
}

fn status(node: &Service, path: &str) -> Option<u16> {
    let answer = Request::new("GET", path).try_send(node.http);
    answer.ok().map(|it| it.status)
}
