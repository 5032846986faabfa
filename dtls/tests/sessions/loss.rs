//! Loss, repetition and reordering: a handshake ends in a session, and nothing is received twice.

use std::collections::BTreeSet;
use std::sync::Arc;

use dtls::{
    AssociationId, ClientConfig, Config, ConnectionIdOffer, Endpoint, Retransmission, TicketKey,
};

use crate::certificates::{Authority, named, raw_key};
use crate::network::{Chance, Delivery, Host, Network, Report, other, psk_client, server_config};

/// The datagrams of a full handshake, and one more of each side.
const DATAGRAMS: u32 = 7;

#[test]
fn every_loss_in_a_handshake_is_made_good() {
    let clients = [ConnectionIdOffer::None, ConnectionIdOffer::Empty];
    for lost in 0u32..1 << DATAGRAMS {
        for connection_id in clients {
            for resumed in [false, true] {
                let mut network = Network::with(patient(), lost.into());
                let mut client = ClientConfig {
                    connection_id,
                    ..psk_client()
                };
                if resumed {
                    network.session(client.clone());
                    client.resumption = network.resumption.clone();
                    network.reports.clear();
                }
                let mut sent = 0;
                let mut delivery = || -> Delivery {
                    sent += 1;
                    let is_lost = sent <= DATAGRAMS && lost & (1 << (sent - 1)) != 0;
                    if is_lost { vec![] } else { vec![10] }
                };
                let id = network.connect(client, &mut delivery);
                network.run(&mut delivery, 400_000);
                let what = format!("lost {lost:b}, resumed {resumed}, {connection_id:?}");
                for host in [Host::Client, Host::Server] {
                    assert_eq!(network.security(host).is_resumed, resumed, "{what}");
                }
                network.send(Host::Client, id, b"uplink");
                network.run(&mut || vec![10], 1_000);
                assert_eq!(network.received(Host::Server), [b"uplink"], "{what}");
            }
        }
    }
}

#[test]
fn a_network_that_is_merely_bad_delays_a_session() {
    for seed in 0..400 {
        let mut server = patient();
        if seed % 2 == 0 {
            server.ticket_keys = vec![TicketKey::from_bytes([9; 32])];
        }
        if seed % 3 == 0 {
            server.datagram_max = 120;
        }
        let mut network = Network::with(server, seed);
        network.look_up_ms = seed % 5 * 400;
        let mut delivery = bad_network(seed);
        let connection_id = match seed % 4 {
            0 => ConnectionIdOffer::None,
            1 => ConnectionIdOffer::Own,
            _ => ConnectionIdOffer::Empty,
        };
        let id = network.connect(
            ClientConfig {
                connection_id,
                ..psk_client()
            },
            &mut delivery,
        );
        network.run(&mut delivery, 900_000);
        network.security(Host::Client);
        network.security(Host::Server);
        let server_id = network.server_association.unwrap();
        for number in 0..40u32 {
            let content = number.to_be_bytes();
            network.send_over(Host::Client, id, &content, &mut delivery);
            network.send_over(Host::Server, server_id, &content, &mut delivery);
            network.run(&mut delivery, 200);
        }
        network.run(&mut delivery, 10_000);
        for host in [Host::Client, Host::Server] {
            let received = network.received(host);
            let distinct: BTreeSet<&[u8]> = received.iter().copied().collect();
            assert_eq!(
                distinct.len(),
                received.len(),
                "seed {seed}: received twice"
            );
            assert!(received.len() > 10, "seed {seed}: {} of 40", received.len());
        }
    }
}

#[test]
fn a_network_that_is_merely_bad_delays_a_session_with_certificates_in_many_fragments() {
    const DATAGRAM_MAX: usize = 200;
    let root = Authority::new("CA");
    let factory = root.intermediate("factory");
    let server_key = root.signs(&named("server"), &[]);
    let keys = [raw_key(3), factory.signs(&named("meter-1"), &[&factory])];
    for seed in 0..100 {
        let server = Config {
            server_key: Some(server_key.clone()),
            datagram_max: DATAGRAM_MAX,
            ..patient()
        };
        let mut network = Network::with(server, seed);
        network.client = Endpoint::new(Arc::new(Config {
            accepts_clients: false,
            datagram_max: DATAGRAM_MAX,
            ..patient()
        }));
        network.authorities = vec![root.certificate.clone()];
        network.public_keys.insert(keys[0].public_key().to_vec());
        let key = keys[seed as usize % keys.len()].clone();
        let client = ClientConfig::with_signing_key(key, server_key.public_key());
        let mut delivery = bad_network(seed);
        let id = network.connect(client, &mut delivery);
        network.run(&mut delivery, 900_000);
        network.security(Host::Client);
        network.security(Host::Server);
        assert!(network.sent.iter().all(|(_, it)| it.len() <= DATAGRAM_MAX));
        network.send(Host::Client, id, b"uplink");
        network.run(&mut || vec![10], 1_000);
        assert_eq!(network.received(Host::Server), [b"uplink"], "seed {seed}");
    }
}

#[test]
fn a_message_that_overtakes_the_finished_is_received_after_it() {
    for connection_id in [ConnectionIdOffer::None, ConnectionIdOffer::Own] {
        for last in [Host::Client, Host::Server] {
            let mut overtaken = Overtaken::by(last, connection_id);
            let to = other(last);
            overtaken.send(&[b"one", b"two"]);
            let what = format!("{last:?} is last, {connection_id:?}");
            let before = overtaken.network.received(to);
            assert!(before.is_empty(), "{what}: received before the Finished");
            overtaken.let_arrive();
            let network = &overtaken.network;
            assert_eq!(network.security(to).is_resumed, last == Host::Client);
            assert_eq!(network.received(to), [b"one", b"two"], "{what}");
            let place = |is_it: fn(&Report) -> bool| {
                let mut reports = network.reports.iter();
                reports.position(|(host, report)| *host == to && is_it(report))
            };
            let established = place(|it| matches!(it, Report::Established(..)));
            let received = place(|it| matches!(it, Report::Received(_)));
            assert!(established < received, "{what}");
        }
    }
}

#[test]
fn as_much_as_is_stated_waits_for_the_finished_that_it_has_overtaken() {
    let long = [[1; 900], [2; 900], [3; 900]];
    let cases: [(&[&[u8]], usize); 2] = [
        (&[b"1", b"2", b"3", b"4", b"5"], 4),
        (&[&long[0], &long[1], &long[2]], 2),
    ];
    for (contents, kept) in cases {
        let mut overtaken = Overtaken::by(Host::Client, ConnectionIdOffer::Own);
        overtaken.send(contents);
        overtaken.let_arrive();
        let received = overtaken.network.received(Host::Server);
        assert!(received == contents[..kept], "{} contents", received.len());
        // The session takes what comes after it.
        overtaken.send(&[b"after"]);
        let received = overtaken.network.received(Host::Server);
        assert_eq!(received.last(), Some(&&b"after"[..]));
    }
}

#[test]
fn a_hello_that_arrives_again_when_the_session_is_there_begins_no_handshake() {
    let mut network = Network::new();
    network.session(psk_client());
    // After a hello and the request of a cookie.
    let (host, hello) = network.sent[2].clone();
    assert_eq!(host, Host::Client);
    let peer = network.client_address;
    assert!(network.deliver(Host::Server, peer, &hello).is_empty());
    assert_eq!(network.server.handshake_count(), 0);
    // Another hello from there does.
    network.reports.clear();
    network.session(psk_client());
    network.security(Host::Server);
}

#[test]
fn no_record_is_received_twice_nor_at_another_session() {
    let mut network = Network::new();
    let id = network.session(psk_client());
    for number in 0..200u8 {
        network.send(Host::Client, id, &[number]);
    }
    network.run(&mut || vec![10], 1_000);
    assert_eq!(network.received(Host::Server).len(), 200);
    let sent = network.sent.clone();
    let mut other = Network::with(server_config(), 2);
    other.session(psk_client());
    let count = other.reports.len();
    for (host, datagram) in sent.iter().rev().chain(&sent) {
        if *host == Host::Client {
            let peer = network.client_address;
            let out = network.deliver(Host::Server, peer, datagram);
            network.perform(Host::Server, &out, &mut || vec![]);
            let out = other.deliver(Host::Server, peer, datagram);
            other.perform(Host::Server, &out, &mut || vec![]);
        }
    }
    assert_eq!(network.received(Host::Server).len(), 200);
    assert_eq!(other.reports.len(), count);
}

/// A handshake whose last datagram takes longer than what its sender says after it.
struct Overtaken {
    network: Network,
    last: Host,
    id: AssociationId,
}

impl Overtaken {
    /// The client's Finished is the last one when it resumes a session, otherwise the server's.
    fn by(last: Host, connection_id: ConnectionIdOffer) -> Self {
        let mut network = Network::with(patient(), 1);
        let mut client = ClientConfig {
            connection_id,
            ..psk_client()
        };
        // Two hellos, the request of a cookie, and the flights between.
        let mut before = 5;
        if last == Host::Client {
            network.session(client.clone());
            client.resumption = network.resumption.clone();
            network.reports.clear();
            before = 4;
        }
        let mut delivery = || -> Delivery {
            let is_last = before == 0;
            before -= i32::from(!is_last);
            if is_last { vec![500] } else { vec![10] }
        };
        let mut id = network.connect(client, &mut delivery);
        network.run(&mut delivery, 100);
        if last == Host::Server {
            id = network.server_association.expect("a session");
        }
        Self { network, last, id }
    }

    fn send(&mut self, contents: &[&[u8]]) {
        for content in contents {
            self.network.send(self.last, self.id, content);
        }
        self.network.run(&mut || vec![10], 100);
    }

    fn let_arrive(&mut self) {
        self.network.run(&mut || vec![10], 500);
    }
}

/// Loses, repeats and reorders.
fn bad_network(seed: u64) -> impl FnMut() -> Delivery {
    let mut chance = Chance(seed ^ 0xdead_beef);
    move || {
        let copies = match chance.below(10) {
            0..3 => 0,
            3..9 => 1,
            _ => 2,
        };
        (0..copies).map(|_| 1 + chance.below(2_500)).collect()
    }
}

/// A server, and a client like it, that give up after an hour.
fn patient() -> Config {
    Config {
        retransmission: Retransmission {
            initial_ms: 1_000,
            max_ms: 8_000,
            give_up_ms: 3_600_000,
        },
        ..server_config()
    }
}
