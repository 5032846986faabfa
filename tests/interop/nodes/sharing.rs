//! Do nodes share the devices, and does each live once, whichever node hears it, and whichever is
//! killed or drained?

use std::collections::BTreeMap;
use std::net::SocketAddr;

use protocol::coap::code::Code;
use protocol::coap::message::MessageId;
use serde_json::{Value, json};

use super::relayed::Relaying;
use super::{SUPERSEDED, status};
use crate::postgres::{send, value_of};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::http::Request;
use crate::vocabulary::link::CuttableLink;
use crate::vocabulary::lwm2m::{execute, when_active};
use crate::vocabulary::plain::answer;
use crate::vocabulary::poll::until;
use crate::vocabulary::postgres::PostgresServer;
use crate::vocabulary::secured::SecuredDevice;
use crate::vocabulary::service::Service;
use crate::vocabulary::wire::{DeviceSocket, location_of, register, update};

/// So many that each of two nodes has some, but for one of two thousand times.
const METERS: u8 = 12;

/// Devices that speak DTLS.
const SECURED: u8 = 6;
const KEY: &str = "a key that nobody guesses";

#[test]
fn nodes_share_the_devices_and_each_value_is_stored_once_whichever_is_killed_or_drained() {
    let server = PostgresServer::start();
    let mut nodes = Relaying::start(&server);
    let mut fleet = Fleet::register(&nodes);
    until("that devices live at both", || {
        let both = [&nodes.pair.active, &nodes.pair.standby];
        both.iter().all(|it| resident_at(it) > 0).then_some(())
    });
    fleet.send(1..=5);
    fleet.perform_through_each(&nodes);

    // A request that waits is cancelled, and settings are adopted, wherever the device is.
    for (name, _) in &fleet.meters {
        let caller = &nodes.pair.caller;
        let waiting = caller.create_action(name, &when_active(execute("/3/0/5")));
        assert_eq!(caller.cancel_action(&waiting).status, 200);
        let path = format!("{API}/devices/{name}");
        let shown = caller.request("GET", &path).expect(200);
        assert_eq!(shown["presence"]["state"], "AWAKE", "{shown}");
        assert_eq!(shown["registration"]["queueMode"], false);
        let changed = caller.authorized("PATCH", &path);
        let changed = changed.json(&json!({ "name": "In the cellar" }));
        assert_eq!(changed.send(nodes.pair.active.http).status, 200);
    }

    nodes.pair.standby.kill();
    fleet.turn_to(&[&nodes.pair.active]);
    fleet.send(6..=10);
    nodes.pair.standby.stand_by();
    nodes.wait_until_shared();
    fleet.turn_to(&[&nodes.pair.active, &nodes.pair.standby]);
    fleet.send(11..=15);
    fleet.perform_through_each(&nodes);

    nodes.pair.active.kill();
    fleet.turn_to(&[&nodes.pair.standby]);
    fleet.send(16..=20);
    nodes.pair.take_over();
    nodes.pair.standby.stand_by();
    nodes.wait_until_shared();
    nodes.drain();
    fleet.turn_to(&[&nodes.pair.active]);
    fleet.send(21..=25);
    nodes.pair.standby.stand_by();
    nodes.wait_until_shared();
    fleet.perform_through_each(&nodes);

    let expected: Vec<u64> = (1..=25).collect();
    for (name, values) in stored(&nodes.pair.caller) {
        assert_eq!(values, expected, "{name}");
    }
    // A removed one is gone, wherever it lived.
    for (name, _) in &fleet.meters {
        let path = format!("{API}/devices/{name}");
        assert_eq!(nodes.pair.caller.request("DELETE", &path).status, 204);
        assert_eq!(nodes.pair.caller.request("GET", &path).status, 404);
    }
}

#[test]
fn sessions_over_dtls_go_on_wherever_the_partition_of_their_connection_id_moves() {
    let server = PostgresServer::start();
    let mut nodes = Relaying::start(&server);
    let names: Vec<String> = (0..SECURED).map(|it| format!("secured-{it}")).collect();
    let mut devices: Vec<(SecuredDevice, Vec<String>)> = Vec::new();
    for (number, name) in (1..).zip(&names) {
        nodes.pair.caller.create_secured_device(name, KEY);
        let ip = format!("127.78.4.{number}");
        let mut device = SecuredDevice::connected(&ip, &nodes.pair.standby, name, KEY);
        let location = device.register(&register(name, 1));
        devices.push((device, location));
    }
    for name in &names {
        let path = format!("{API}/devices/{name}");
        let shown = nodes.pair.caller.request("GET", &path).expect(200);
        let session = &shown["association"];
        assert_eq!(session["kind"], "PSK", "{shown}");
        assert_eq!(session["connectionId"], true);
    }
    // The other node takes all partitions, gives half of them up again, and takes them back.
    nodes.drain();
    for (device, location) in &mut devices {
        assert_eq!(device.ask(&update(location, 2)).code, Code::CHANGED);
    }
    nodes.pair.standby.stand_by();
    nodes.wait_until_shared();
    for (name, (device, location)) in names.iter().zip(&mut devices) {
        let action = when_active(execute("/3/0/4"));
        let action = nodes.pair.caller.create_action(name, &action);
        assert_eq!(device.ask(&update(location, 3)).code, Code::CHANGED);
        let request = device.receive_request();
        device.send(&answer(&request, Code::CHANGED));
        let ended = nodes.pair.caller.final_action(&action);
        assert_eq!(ended["status"], "SUCCEEDED", "{name}");
    }
}

#[test]
fn a_node_that_stands_by_without_its_database_passes_on_what_arrives_and_is_not_ready() {
    let server = PostgresServer::start();
    let database = server.create_database();
    let link = CuttableLink::to(SocketAddr::from(([127, 0, 0, 1], server.port())));
    let own = format!(":{}/", server.port());
    let of_standby = database.replace(&own, &format!(":{}/", link.port()));
    assert_ne!(of_standby, database);
    let mut nodes = Relaying::start_on(&database, &of_standby);
    let mut fleet = Fleet::register(&nodes);
    fleet.send(1..=2);
    link.cut();
    until("that it is not ready", || {
        (status(&nodes.pair.standby, "/readyz") == Some(503)).then_some(())
    });
    fleet.turn_to(&[&nodes.pair.standby]);
    fleet.send(3..=4);
    link.mend();
    // The other one has its leases.
    assert_eq!(nodes.pair.standby.ended().code(), Some(SUPERSEDED));
    nodes.pair.standby.stand_by();
    nodes.wait_until_shared();
    fleet.turn_to(&[&nodes.pair.active, &nodes.pair.standby]);
    fleet.send(5..=6);
    fleet.perform_through_each(&nodes);
    let expected: Vec<u64> = (1..=6).collect();
    for (name, values) in stored(&nodes.pair.caller) {
        assert_eq!(values, expected, "{name}");
    }
}

/// Devices that register, with their names.
struct Fleet {
    meters: Vec<(String, Meter)>,
}

struct Meter {
    device: DeviceSocket,
    location: Vec<String>,
    met: Vec<MessageId>,
    messages: u16,
}

impl Fleet {
    /// Registers them through both nodes in turn.
    fn register(nodes: &Relaying) -> Self {
        let both = [&nodes.pair.active, &nodes.pair.standby];
        let meters = (1..=METERS).zip(both.into_iter().cycle());
        let meters = meters.map(|(number, node)| {
            let (name, ip) = (format!("shared-{number}"), format!("127.78.3.{number}"));
            nodes.pair.caller.create_device(&name, &ip);
            let device = DeviceSocket::from(&ip, node);
            let registered = device.ask_until_answered(&register(&name, 1));
            let location = location_of(&registered);
            let meter = Meter {
                device,
                location,
                met: Vec::new(),
                messages: 1,
            };
            (name, meter)
        });
        Self {
            meters: meters.collect(),
        }
    }

    /// Sends from now on to these nodes in turn.
    fn turn_to(&mut self, nodes: &[&Service]) {
        for ((_, meter), node) in self.meters.iter().zip(nodes.iter().cycle()) {
            meter.device.turn_to(node);
        }
    }

    /// Has each send values, and repeat what is not answered.
    fn send(&mut self, values: std::ops::RangeInclusive<u16>) {
        for value in values {
            for (name, meter) in &self.meters {
                let answer = meter.device.ask_until_answered(&send(value));
                assert_eq!(answer.code, Code::CHANGED, "{name}");
            }
        }
    }

    /// Has a request performed by each device, through one node and then through the other.
    fn perform_through_each(&mut self, nodes: &Relaying) {
        for node in [&nodes.pair.active, &nodes.pair.standby] {
            for (name, meter) in &mut self.meters {
                meter.device.turn_to(node);
                let action = when_active(execute("/3/0/4"));
                let action = nodes.pair.caller.create_action(name, &action);
                meter.messages += 1;
                let id = 10_000 + meter.messages;
                let updated = meter
                    .device
                    .ask_until_answered(&update(&meter.location, id));
                assert_eq!(updated.code, Code::CHANGED, "{name}");
                let request = meter.device.receive_new_request(&mut meter.met);
                meter.device.send(&answer(&request, Code::CHANGED).encode());
                let ended = nodes.pair.caller.final_action(&action);
                assert_eq!(ended["status"], "SUCCEEDED", "{name}: {ended}");
                let attempts = ["sendAttempts", "sendAttemptsLeft"].map(|it| ended[it].as_u64());
                assert_eq!(attempts[0].unwrap() - attempts[1].unwrap(), 1, "{name}");
            }
        }
    }
}

/// The values of all devices of the fleet that are stored, the oldest first.
fn stored(caller: &Caller) -> BTreeMap<String, Vec<u64>> {
    let values = (1..=METERS).map(|number| {
        let name = format!("shared-{number}");
        let page = format!("{API}/devices/{name}/messages?type=TELEMETRY_DATA&pageSize=100");
        let stored = caller.request("GET", &page).expect(200);
        let items: &Vec<Value> = stored["items"].as_array().unwrap();
        (name, items.iter().rev().map(value_of).collect())
    });
    values.collect()
}

/// How many devices with a registration a node has in memory.
fn resident_at(node: &Service) -> u64 {
    let metrics = Request::new("GET", "/metrics").send(node.http);
    let metrics = metrics.text();
    let awake = metrics.lines().filter(|it| {
        it.starts_with("signalbox_devices_resident{") && it.contains(r#"presence="awake""#)
    });
    let counts = awake.filter_map(|it| it.rsplit(' ').next()?.parse::<u64>().ok());
    counts.sum()
}
