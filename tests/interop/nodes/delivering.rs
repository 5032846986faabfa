//! Do nodes that stand by deliver beside the active one, whichever of them is killed or drained?

use std::collections::BTreeMap;

use protocol::coap::code::Code;
use serde_json::json;

use super::ID;
use super::relayed::Relaying;
use crate::postgres::{send, values_of};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::endpoint::{Endpoint, ReceivedPost};
use crate::vocabulary::http::Request;
use crate::vocabulary::postgres::PostgresServer;
use crate::vocabulary::service::Service;
use crate::vocabulary::wire::DeviceSocket;

const WEBHOOKS: &str = "/integrate/clouds/webhooks";

/// So many that each node delivers to some, but for one of four thousand times.
const HOOKS: usize = 13;

#[test]
fn nodes_share_the_deliveries_and_each_value_arrives_in_order_whichever_is_killed_or_drained() {
    let server = PostgresServer::start();
    let mut nodes = Relaying::start(&server);
    let endpoint = Endpoint::new();
    let hooks = Hooks::create(&nodes.pair.caller, &endpoint);
    let mut sent = Sent::to(&nodes.pair.active);
    sent.send(1..=40);
    hooks.wait_for(&endpoint, &sent);
    for node in [&nodes.pair.active, &nodes.pair.standby] {
        assert!(delivered_by(node) > 0);
    }

    // Whatever a caller wants of a destination, the node that delivers to it does.
    for hook in &hooks.paths {
        let caller = &nodes.pair.caller;
        let tested = caller.request("POST", &format!("{hook}/test")).expect(200);
        assert_eq!(tested["delivered"], true);
        let rename = json!({ "name": "Renamed" });
        let renamed = caller.authorized("PATCH", hook).json(&rename);
        let renamed = renamed.send(nodes.pair.active.http).expect(200);
        assert_eq!(renamed["name"], "Renamed");
        let letters = caller.request("POST", &format!("{hook}/deadletters/replay"));
        assert_eq!(letters.status, 202);
    }
    sent.send(41..=60);
    hooks.wait_for(&endpoint, &sent);

    // The other one delivers everything once the leases of the killed one have ended.
    nodes.pair.standby.kill();
    sent.send(61..=100);
    hooks.wait_for(&endpoint, &sent);
    nodes.pair.standby.stand_by();
    nodes.wait_until_shared();
    sent.send(101..=120);
    hooks.wait_for(&endpoint, &sent);

    // The drained one gives up its part before.
    nodes.drain();
    sent.device.turn_to(&nodes.pair.active);
    sent.send(121..=160);
    hooks.wait_for(&endpoint, &sent);
    nodes.pair.standby.stand_by();
    nodes.wait_until_shared();

    // A removed one gets nothing any more, whoever delivered to it.
    let (removed, kept) = hooks.paths.split_at(HOOKS / 2);
    for hook in removed {
        let gone = nodes.pair.caller.request("DELETE", hook);
        assert_eq!(gone.status, 204);
        assert_eq!(nodes.pair.caller.request("GET", hook).status, 404);
    }
    let before = endpoint.posted().len();
    sent.send(161..=180);
    let expected = 20 * kept.len();
    let posted = endpoint.once_so("the values after that", |posted| {
        posted.len() >= before + expected
    });
    assert_eq!(posted.len(), before + expected);
}

/// The values that a device has sent.
struct Sent {
    device: DeviceSocket,
    values: Vec<u64>,
}

impl Sent {
    fn to(active: &Service) -> Self {
        let device = DeviceSocket::to(active);
        device.register(ID, 1);
        let values = Vec::new();
        Self { device, values }
    }

    fn send(&mut self, values: impl Iterator<Item = u16>) {
        for value in values {
            let answer = self.device.ask_until_answered(&send(value));
            assert_eq!(answer.code, Code::CHANGED);
            self.values.push(value.into());
        }
    }
}

/// The webhooks of a customer.
struct Hooks {
    /// Their paths in the API.
    paths: Vec<String>,
}

impl Hooks {
    fn create(caller: &Caller, endpoint: &Endpoint) -> Self {
        let create = |number| {
            let types = json!([{ "type": "TELEMETRY_DATA" }]);
            let url = endpoint.url(&format!("/{number}"));
            let webhook = json!({ "name": "Values", "url": url, "eventTypes": types });
            let created = caller
                .post(&format!("{API}{WEBHOOKS}"), &webhook)
                .expect(201);
            format!("{API}{WEBHOOKS}/{}", text(&created["id"]))
        };
        let paths = (0..HOOKS).map(create).collect();
        Self { paths }
    }

    /// Waits until every webhook has got every value, and checks the order at each.
    fn wait_for(&self, endpoint: &Endpoint, sent: &Sent) {
        let has_all = |posted: &[ReceivedPost]| {
            let by_path = by_path(posted);
            by_path.len() == HOOKS && by_path.values().all(|it| it.len() >= sent.values.len())
        };
        let posted = endpoint.once_so("every value at every webhook", has_all);
        for (path, values) in by_path(&posted) {
            assert_eq!(values, sent.values, "{path}");
        }
    }
}

/// The values that were posted to each path, each event once.
fn by_path(posted: &[ReceivedPost]) -> BTreeMap<String, Vec<u64>> {
    let mut by_path: BTreeMap<String, Vec<ReceivedPost>> = BTreeMap::new();
    let is_value = |it: &&ReceivedPost| it.json()["type"] == "TELEMETRY_DATA";
    for post in posted.iter().filter(is_value) {
        by_path
            .entry(post.path.clone())
            .or_default()
            .push(post.clone());
    }
    let values = by_path
        .into_iter()
        .map(|(path, posts)| (path, values_of(&posts)));
    values.collect()
}

/// How many events a node has delivered, as it counts them.
fn delivered_by(node: &Service) -> u64 {
    let metrics = Request::new("GET", "/metrics").send(node.http);
    let metrics = metrics.text();
    let delivered = metrics.lines().filter(|it| {
        it.starts_with("signalbox_deliveries_total{") && it.contains(r#"result="accepted""#)
    });
    let counts = delivered.filter_map(|it| it.rsplit(' ').next()?.parse::<u64>().ok());
    counts.sum()
}
