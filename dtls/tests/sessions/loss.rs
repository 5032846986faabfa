//! Loss, repetition and reordering: a handshake ends in a session, and nothing is received twice.

use std::collections::BTreeSet;

use dtls::{ClientConfig, Config, ConnectionIdOffer, Retransmission, TicketKey};

use crate::network::{Chance, Delivery, Host, Network, psk_client, server_config};

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
        let mut chance = Chance(seed ^ 0xdead_beef);
        let mut delivery = || -> Delivery {
            let copies = match chance.below(10) {
                0..3 => 0,
                3..9 => 1,
                _ => 2,
            };
            (0..copies).map(|_| 1 + chance.below(2_500)).collect()
        };
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
