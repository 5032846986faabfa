//! Does a node that stands by serve devices and callers as the active one does, to which it relays
//! them?

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use protocol::coap::code::Code;
use serde_json::json;
use tempfile::TempDir;

use super::{ID, NODES, Pair, SHORT, SLEEPER, SLEEPER_IP, status};
use crate::postgres::send;
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::http::{Request, next_part};
use crate::vocabulary::lwm2m::{execute, when_active};
use crate::vocabulary::plain::{UdpDevice, answer, datagram};
use crate::vocabulary::poll::until;
use crate::vocabulary::postgres::PostgresServer;
use crate::vocabulary::secured::SecuredDevice;
use crate::vocabulary::service::{Service, own_address};
use crate::vocabulary::wire::{DeviceSocket, location_of, register, update};

const ADDRESS: &str = "SIGNALBOX_NODE_ADDRESS";

/// A device that speaks DTLS.
const SECURED: &str = "meter-3";
const SECURED_IP: &str = "127.78.2.3";
const KEY: &str = "a key that nobody guesses";

/// A device without LwM2M.
const PLAIN: &str = "sensor";
const PLAIN_IP: &str = "127.78.2.4";

#[test]
fn devices_are_served_through_a_node_that_stands_by_and_answered_from_its_address() {
    let server = PostgresServer::start();
    let relaying = Relaying::start(&server);
    let Pair {
        active,
        standby,
        caller,
    } = &relaying.pair;
    let device = DeviceSocket::to(standby);
    let location = location_of(&device.ask_until_answered(&register(ID, 1)));
    assert_eq!(device.ask_until_answered(&send(1)).code, Code::CHANGED);
    // A request leaves through the node that the device was last heard by.
    let through = |via: &Service, id: u16| {
        device.turn_to(via);
        let action = caller.create_action(ID, &when_active(execute("/3/0/4")));
        assert_eq!(
            device.ask_among_others(&update(&location, id)).code,
            Code::CHANGED
        );
        let request = device.receive_request();
        device.send(&answer(&request, Code::CHANGED).encode());
        assert_eq!(caller.final_action(&action)["status"], "SUCCEEDED");
    };
    through(standby, 11);
    through(active, 12);
    through(standby, 13);

    // One that speaks DTLS has its session with the active node.
    caller.create_secured_device(SECURED, KEY);
    let mut secured = SecuredDevice::connected(SECURED_IP, standby, SECURED, KEY);
    let location = secured.register(&register(SECURED, 1));
    let action = caller.create_action(SECURED, &when_active(execute("/3/0/4")));
    secured.send(&update(&location, 2));
    let request = secured.receive_request();
    secured.send(&answer(&request, Code::CHANGED));
    assert_eq!(caller.final_action(&action)["status"], "SUCCEEDED");
    secured.move_to_another_port(standby);
    assert_eq!(secured.ask(&update(&location, 3)).code, Code::CHANGED);

    // Bare datagrams are from the address of the device, too.
    caller.create_device(PLAIN, PLAIN_IP);
    let plain = UdpDevice::from(PLAIN_IP, standby);
    let blink = when_active(datagram("blink", plain.port()));
    let action = caller.create_over("UDP", PLAIN, &blink);
    plain.send(b"wet");
    assert_eq!(plain.receive(), b"blink");
    assert_eq!(caller.final_action(&action)["status"], "SUCCEEDED");
    assert_eq!(caller.once_reported(PLAIN, 1).len(), 1);

    // Whichever node serves it, the other one has passed on what came there.
    let relayed = [active, standby].map(|node| {
        let metrics = Request::new("GET", "/metrics").send(node.http);
        let relayed = "signalbox_datagrams_relayed_total ";
        let mut lines = metrics.text().lines();
        let relayed = lines.find_map(|it| it.strip_prefix(relayed));
        relayed.unwrap().parse::<u64>().unwrap()
    });
    assert!(relayed.iter().sum::<u64>() >= 2, "{relayed:?}");
}

#[test]
fn callers_are_served_by_a_node_that_stands_by_as_by_the_active_one() {
    let server = PostgresServer::start();
    let mut relaying = Relaying::start(&server);
    let active = relaying.pair.active.http;
    relaying.pair.caller.follow(&relaying.pair.standby);
    let Pair {
        standby, caller, ..
    } = &relaying.pair;
    // What was created here is there, and the other way round; bodies of any length pass.
    let long = "x".repeat(60_000);
    caller.create_device("created-here", "127.78.2.5");
    let device = format!("{API}/devices/created-here");
    let answered = |request: Request| [active, standby.http].map(|at| request.send(at));
    let [directly, through] = answered(caller.authorized("GET", &device));
    assert_eq!(directly.expect(200), through.expect(200));
    for name in ["content-type", "x-content-type-options", "cache-control"] {
        assert_eq!(directly.header(name), through.header(name), "{name}");
    }
    assert!(through.header("x-trace-id").is_some());
    let too_long = json!({ "deviceId": "b", "description": long });
    let creating = caller.authorized("POST", &format!("{API}/devices"));
    let [directly, through] = answered(creating.json(&too_long));
    assert_eq!((directly.status, through.status), (400, 400));
    // The error differs in its trace alone.
    assert_eq!(directly.json()["errors"], through.json()["errors"]);
    assert_eq!(
        Request::new("GET", &device).send(standby.http).status,
        401,
        "without a token"
    );
    let unknown = caller.authorized("GET", "/nowhere").send(standby.http);
    assert_eq!(unknown.status, 404);
    // A stream of events begins at once, and has what happens afterwards.
    let mut stream = caller
        .authorized("GET", &format!("{API}/events/stream?type=TELEMETRY_DATA"))
        .begin(standby.http);
    let wire = DeviceSocket::from(SLEEPER_IP, standby);
    wire.ask_until_answered(&register(SLEEPER, 21));
    let mut streamed = String::new();
    let mut read_until = |text: &str| {
        while !streamed.contains(text) {
            let part = next_part(&mut stream).unwrap().expect("the stream goes on");
            streamed.push_str(&String::from_utf8(part).unwrap());
        }
    };
    read_until("text/event-stream");
    read_until(": ");
    assert_eq!(wire.ask(&send(42)).code, Code::CHANGED);
    read_until("TELEMETRY_DATA");
    // Both nodes are listed by either, and drained by either.
    assert_eq!(relaying.pair.states(), ["ACTIVE", "STANDBY"]);
    let listed = Caller::operator(standby).request("GET", NODES).expect(200);
    let addresses = listed["items"][0]["addresses"].to_string();
    assert!(addresses.contains("node://"), "{addresses}");
    relaying.drain();
    assert_eq!(relaying.pair.caller.request("GET", &device).status, 200);
}

#[test]
fn a_device_that_a_node_relayed_is_answered_by_it_once_it_takes_over() {
    let server = PostgresServer::start();
    let mut relaying = Relaying::start(&server);
    let wire = DeviceSocket::to(&relaying.pair.standby);
    wire.ask_until_answered(&register(ID, 1));
    assert_eq!(wire.ask_until_answered(&send(1)).code, Code::CHANGED);
    relaying.pair.active.kill();
    assert_eq!(wire.ask_until_answered(&send(2)).code, Code::CHANGED);
    relaying.pair.take_over();
    assert_eq!(relaying.pair.values(), [1, 2]);
    // The other one relays to it in turn.
    relaying.pair.standby.stand_by();
    relaying.wait_until_shared();
    wire.turn_to(&relaying.pair.standby);
    assert_eq!(wire.ask_until_answered(&send(3)).code, Code::CHANGED);
    assert_eq!(relaying.pair.values(), [1, 2, 3]);
}

#[test]
fn no_call_fails_while_the_active_node_is_drained_and_a_call_waits_when_it_was_killed() {
    let server = PostgresServer::start();
    let mut relaying = Relaying::start(&server);
    let action = when_active(execute("/3/0/4"));
    let path = format!("{API}/integrate/devices/{ID}/actions/LWM2M");
    let create = relaying.pair.caller.authorized("POST", &path).json(&action);
    let nodes = [relaying.pair.active.http, relaying.pair.standby.http];
    let is_over = AtomicBool::new(false);
    let statuses = thread::scope(|scope| {
        // Each goes to the node that a load balancer would choose for it.
        let callers = [0, 1].map(|first: usize| {
            let (create, is_over) = (&create, &is_over);
            scope.spawn(move || {
                let mut statuses = Vec::new();
                while !is_over.load(Ordering::Relaxed) || statuses.len() < 20 {
                    // One of them is ready at any time.
                    let readyz = Request::new("GET", "/readyz").try_send(nodes[first]);
                    let is_ready = readyz.is_ok_and(|it| it.status == 200);
                    let node = nodes[if is_ready { first } else { 1 - first }];
                    statuses.push(create.try_send(node).map(|it| it.status).unwrap_or(0));
                }
                statuses
            })
        });
        relaying.drain();
        relaying.pair.standby.stand_by();
        relaying.wait_until_shared();
        is_over.store(true, Ordering::Relaxed);
        callers.map(|it| it.join().unwrap()).concat()
    });
    assert!(statuses.iter().all(|it| *it == 202), "{statuses:?}");

    relaying.pair.active.kill();
    assert_eq!(create.send(relaying.pair.standby.http).status, 202);
    relaying.pair.take_over();
    let listed = format!("{API}/integrate/devices/actions/requests?pageSize=1");
    let listed = relaying.pair.caller.request("GET", &listed).expect(200);
    assert_eq!(listed["pageAmount"], statuses.len() + 1);
}

#[test]
fn a_device_goes_on_with_its_session_at_the_node_that_takes_over_from_a_drained_one() {
    let server = PostgresServer::start();
    let mut relaying = Relaying::start(&server);
    let pair = &relaying.pair;
    pair.caller.create_secured_device(SECURED, KEY);
    let mut device = SecuredDevice::connected(SECURED_IP, &pair.standby, SECURED, KEY);
    let location = device.register(&register(SECURED, 1));
    // Another one resumes its session by its id.
    pair.caller.create_secured_device(PLAIN, KEY);
    let mut resuming = SecuredDevice::at(PLAIN_IP, &pair.standby);
    resuming.accepts_tickets = false;
    assert!(!resuming.connect(PLAIN, KEY).unwrap().is_resumed);
    assert_eq!(resuming.ask(&register(PLAIN, 1)).code, Code::CREATED);

    relaying.drain();
    assert_eq!(device.ask(&update(&location, 2)).code, Code::CHANGED);
    let pair = &relaying.pair;
    let action = pair
        .caller
        .create_action(SECURED, &when_active(execute("/3/0/4")));
    assert_eq!(device.ask(&update(&location, 3)).code, Code::CHANGED);
    let request = device.receive_request();
    device.send(&answer(&request, Code::CHANGED));
    assert_eq!(pair.caller.final_action(&action)["status"], "SUCCEEDED");
    assert!(resuming.resume(PLAIN, KEY).unwrap().is_resumed);

    // And back, where it is relayed to from now on.
    relaying.pair.standby.stand_by();
    relaying.wait_until_shared();
    relaying.drain();
    relaying.pair.standby.stand_by();
    relaying.wait_until_shared();
    assert_eq!(device.ask(&update(&location, 4)).code, Code::CHANGED);
}

#[test]
fn nobody_relays_without_the_secret_of_the_nodes() {
    let server = PostgresServer::start();
    let relaying = Relaying::start(&server);
    let Pair {
        active, standby, ..
    } = &relaying.pair;
    // A caller of a node that stands by cannot pretend to be another one, or a node.
    let operator =
        Request::new("GET", NODES).header("signalbox-relayed", "127.0.0.1:1 https operator");
    assert_eq!(operator.send(standby.http).status, 401);
    let stream = "/v1/datagrams/01935c5a-0000-7000-8000-000000000001/0";
    for node in [active, standby] {
        let refused = Request::new("POST", stream).send(node.http);
        assert_eq!(refused.status, 404);
    }
    // Without TLS there is no answer but an alert.
    let mut plain = TcpStream::connect(relaying.active_address).unwrap();
    plain
        .write_all(b"POST / HTTP/1.1\r\nhost: a\r\n\r\n")
        .unwrap();
    let mut answered = Vec::new();
    let _ = plain.read_to_end(&mut answered);
    assert!(!answered.starts_with(b"HTTP/"), "{answered:?}");
    // A node with another secret is not let in, says why, and is not ready.
    let other = relaying.secrets.path().join("other");
    fs::write(&other, "another secret of more than 32 characters").unwrap();
    let address = SocketAddr::new(own_address(), 7_700).to_string();
    let mut stranger = Service::stand_by_beside(
        active,
        &[
            (ADDRESS, &address),
            ("SIGNALBOX_NODE_SECRET_FILE", other.to_str().unwrap()),
        ],
    );
    stranger.wait_for_line("there is no link to a node");
    assert_eq!(relaying.shards()[2..], [0]);
    assert_eq!(status(&stranger, "/readyz"), Some(503));
    assert_eq!(status(&stranger, API), Some(503));
    assert_eq!(status(standby, "/readyz"), Some(200));
}

/// An active node and one that relays to it.
pub(super) struct Relaying {
    pub(super) pair: Pair,
    secrets: TempDir,
    active_address: SocketAddr,
}

impl Relaying {
    pub(super) fn start(server: &PostgresServer) -> Self {
        let database = server.create_database();
        Self::start_on(&database, &database)
    }

    /// The node that stands by reaches the database in another way.
    pub(super) fn start_on(database: &str, of_standby: &str) -> Self {
        let secrets = TempDir::new().unwrap();
        let secret = secrets.path().join("secret");
        fs::write(
            &secret,
            "a secret of the nodes of more than 32 characters\n",
        )
        .unwrap();
        let [active_address, standby_address] =
            [(); 2].map(|()| SocketAddr::new(own_address(), 7_700));
        let active = active_address.to_string();
        let settings = [
            &SHORT[..],
            &[
                (ADDRESS, &active),
                ("SIGNALBOX_NODE_SECRET_FILE", secret.to_str().unwrap()),
            ],
        ]
        .concat();
        let of_standby = [
            (ADDRESS, &*standby_address.to_string()),
            ("SIGNALBOX_STORE", of_standby),
        ];
        let pair = Pair::start_on(database, &settings, &of_standby);
        let relaying = Self {
            pair,
            secrets,
            active_address,
        };
        relaying.wait_until_shared();
        relaying
    }

    /// Has the active node give up its lease, and waits for the other one to be active.
    pub(super) fn drain(&mut self) {
        let operator = Caller::operator(&self.pair.standby);
        let listed = operator.request("GET", NODES).expect(200);
        let mut nodes = listed["items"].as_array().unwrap().iter();
        let active = nodes.find(|it| it["state"] == "ACTIVE").unwrap();
        let drain = format!("{NODES}/{}/drain", text(&active["id"]));
        assert_eq!(operator.request("POST", &drain).status, 202);
        assert!(self.pair.active.ended().success());
        self.pair.take_over();
    }

    /// Waits until the node that stands by relays and has half of the shards.
    pub(super) fn wait_until_shared(&self) {
        until("that the node which stands by relays", || {
            (status(&self.pair.standby, "/readyz") == Some(200)).then_some(())
        });
        until("that both nodes have half of the shards", || {
            (self.shards() == [512, 512]).then_some(())
        });
    }

    /// How many shards each node has that is not lost, as they started.
    fn shards(&self) -> Vec<u64> {
        let operator = Caller::operator(&self.pair.active);
        let listed = operator.request("GET", NODES).expect(200);
        let nodes = listed["items"].as_array().unwrap().iter();
        let nodes = nodes.filter(|it| it["state"] != "LOST");
        nodes.map(|it| it["shards"].as_u64().unwrap()).collect()
    }
}
