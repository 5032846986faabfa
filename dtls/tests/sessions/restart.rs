//! Sessions that go on in the next process.

use std::collections::BTreeSet;
use std::sync::Arc;

use dtls::{ClientConfig, Config, ConnectionIdOffer, Endpoint, Identity, ImportSummary, TicketKey};

use crate::network::{Chance, Host, IDENTITY, Network, psk_client, server_config};

/// Ends the server and returns the records of its sessions.
pub(crate) fn export(network: &mut Network) -> Vec<Vec<u8>> {
    let server = std::mem::replace(
        &mut network.server,
        Endpoint::new(Arc::new(server_config())),
    );
    let mut records = Vec::new();
    server.export(|record| records.push(record.to_vec()));
    records
}

#[test]
fn sessions_go_on_without_a_handshake() {
    for connection_id in [ConnectionIdOffer::None, ConnectionIdOffer::Empty] {
        let mut network = Network::new();
        let id = network.session(ClientConfig {
            connection_id,
            ..psk_client()
        });
        let server_id = network.server_association.unwrap();
        network.send(Host::Client, id, b"before");
        network.send(Host::Server, server_id, b"before");
        network.run(&mut || vec![10], 1_000);
        let (_, earlier) = network
            .sent
            .iter()
            .rev()
            .find(|it| it.0 == Host::Client)
            .cloned()
            .unwrap();

        let records = export(&mut network);
        let (server, summary) = Endpoint::import(Arc::new(server_config()), &records);
        let expected = ImportSummary {
            sessions: 1,
            left_out: 0,
        };
        assert_eq!(summary, expected);
        let identity = Identity::Psk(IDENTITY.into());
        assert_eq!(
            server.sessions().collect::<Vec<_>>(),
            [(server_id, &identity)]
        );
        network.server = server;

        let count = network.sent.len();
        network.send(Host::Client, id, b"after");
        network.send(Host::Server, server_id, b"after");
        network.run(&mut || vec![10], 1_000);
        assert_eq!(network.sent.len(), count + 2);
        assert_eq!(network.received(Host::Server), [&b"before"[..], b"after"]);
        assert_eq!(network.received(Host::Client), [&b"before"[..], b"after"]);
        // The window of the records that were received goes on, too.
        let peer = network.client_address;
        assert!(network.deliver(Host::Server, peer, &earlier).is_empty());
    }
}

#[test]
fn no_number_of_a_record_is_used_before_and_after() {
    let mut network = Network::new();
    network.session(psk_client());
    let server_id = network.server_association.unwrap();
    network.send(Host::Server, server_id, b"content");
    let before = network.sent.last().unwrap().1.clone();
    let records = export(&mut network);
    network.server = Endpoint::import(Arc::new(server_config()), &records).0;
    network.send(Host::Server, server_id, b"content");
    let after = network.sent.last().unwrap().1.clone();
    assert!(
        before[3..11] < after[3..11],
        "epoch and sequence number grow"
    );
    assert_ne!(before[11..], after[11..]);
}

/// The keys of a nonce begin with a handshake; the rest of it is the number of the record.
#[test]
fn no_nonce_repeats_whatever_becomes_of_the_server() {
    let config = Arc::new(Config {
        ticket_keys: vec![TicketKey::from_bytes([9; 32])],
        ..server_config()
    });
    for seed in 0..300 {
        let mut network = Network::with((*config).clone(), seed);
        let mut chance = Chance(seed);
        let client = ClientConfig {
            connection_id: match seed % 3 {
                0 => ConnectionIdOffer::None,
                1 => ConnectionIdOffer::Empty,
                _ => ConnectionIdOffer::Own,
            },
            ..psk_client()
        };
        let mut id = network.session(client.clone());
        let (mut handshakes, mut used) = (1, BTreeSet::new());
        for step in 0..60 {
            // What the first handshake has sent is noted before the next.
            match chance.below(10) + u64::from(step == 0) * 10 {
                0 | 1 => {
                    let records = export(&mut network);
                    network.server = Endpoint::import(Arc::clone(&config), &records).0;
                }
                2 => network.server = Endpoint::new(Arc::clone(&config)),
                3 => {
                    let resumption = network.resumption.clone().filter(|_| chance.below(2) == 0);
                    handshakes += 1;
                    id = network.session(ClientConfig {
                        resumption,
                        ..client.clone()
                    });
                }
                4..7 => {
                    let server_id = network.server_association.unwrap();
                    if network.server.peer(server_id).is_some() {
                        network.send(Host::Server, server_id, b"content");
                    }
                }
                _ => network.send(Host::Client, id, b"content"),
            }
            network.run(&mut || vec![10], 100);
            for (host, datagram) in network.sent.drain(..) {
                for number in protected_numbers(&datagram) {
                    let is_first = used.insert((handshakes, host, number));
                    assert!(is_first, "seed {seed}: {host:?} repeats {number:?}");
                }
            }
        }
    }
}

#[test]
fn a_cached_session_is_resumed_at_every_endpoint_that_has_its_record() {
    let mut network = Network::new();
    network.session(psk_client());
    for _ in 0..3 {
        // The last record is of the last handshake, whether it was full or abbreviated.
        let record = network.cached.pop().unwrap();
        assert!(network.cached.is_empty());
        network.server = Endpoint::new(Arc::new(server_config()));
        for length in 0..record.len() {
            assert!(!network.server.cache(&record[..length]));
        }
        assert!(network.server.cache(&record));
        network.run(&mut || vec![10], 20 * 86_400_000);
        network.session(ClientConfig {
            resumption: network.resumption.clone(),
            ..psk_client()
        });
        assert!(network.security(Host::Server).is_resumed);
    }
}

#[test]
fn a_session_with_a_ticket_is_not_cached() {
    let config = Config {
        ticket_keys: vec![TicketKey::from_bytes([9; 32])],
        ..server_config()
    };
    for accepts_tickets in [true, false] {
        let mut network = Network::with(config.clone(), 1);
        let client = ClientConfig {
            accepts_tickets,
            ..psk_client()
        };
        network.session(client.clone());
        assert_eq!(network.cached.is_empty(), accepts_tickets);
        network.session(ClientConfig {
            resumption: network.resumption.clone(),
            ..client
        });
        assert!(network.security(Host::Server).is_resumed);
        assert_eq!(network.cached.is_empty(), accepts_tickets);
    }
}

#[test]
fn after_a_crash_records_are_counted_until_the_session_is_resumed() {
    let config = Config {
        ticket_keys: vec![TicketKey::from_bytes([9; 32])],
        ..server_config()
    };
    let mut network = Network::with(config.clone(), 1);
    let id = network.session(psk_client());
    network.server = Endpoint::new(Arc::new(config));
    let count = network.sent.len();
    network.send(Host::Client, id, b"lost");
    network.run(&mut || vec![10], 1_000);
    assert_eq!(
        network.sent.len(),
        count + 1,
        "nothing is answered that anybody could forge"
    );
    assert_eq!(network.server.counters().unknown_connection_ids, 1);
    assert!(network.received(Host::Server).is_empty());
    let resumption = network.resumption.clone();
    let id = network.session(ClientConfig {
        resumption,
        ..psk_client()
    });
    assert!(network.security(Host::Server).is_resumed);
    network.send(Host::Client, id, b"again");
    network.run(&mut || vec![10], 1_000);
    assert_eq!(network.received(Host::Server), [b"again"]);
}

#[test]
fn a_session_of_weeks_is_resumed_after_a_crash() {
    let config = Config {
        ticket_keys: vec![TicketKey::from_bytes([9; 32])],
        ..server_config()
    };
    let mut network = Network::with(config.clone(), 1);
    let id = network.session(psk_client());
    let server_id = network.server_association.unwrap();
    for _ in 0..25 {
        network.run(&mut || vec![10], 86_400_000);
        network.send(Host::Client, id, b"uplink");
        network.send(Host::Server, server_id, b"downlink");
    }
    network.run(&mut || vec![10], 1_000);
    assert_eq!(network.received(Host::Server).len(), 25);
    network.server = Endpoint::new(Arc::new(config));
    network.session(ClientConfig {
        resumption: network.resumption.clone(),
        ..psk_client()
    });
    assert!(network.security(Host::Server).is_resumed);
}

#[test]
fn new_sessions_do_not_take_the_place_of_imported_ones() {
    let client = ClientConfig {
        connection_id: ConnectionIdOffer::Own,
        ..psk_client()
    };
    let mut network = Network::new();
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push((
            network.session(client.clone()),
            network.server_association.unwrap(),
        ));
    }
    // Two of them end before the restart.
    for gone in [ids.remove(3), ids.remove(0)] {
        network.server.forget(gone.1);
    }
    let records = export(&mut network);
    network.server = Endpoint::import(Arc::new(server_config()), &records).0;
    for _ in 0..5 {
        ids.push((
            network.session(client.clone()),
            network.server_association.unwrap(),
        ));
    }
    assert_eq!(network.server.association_count(), ids.len());
    network.reports.clear();
    for (client_id, server_id) in ids {
        assert!(network.server.peer(server_id).is_some());
        network.send(Host::Client, client_id, b"here");
    }
    network.run(&mut || vec![10], 1_000);
    assert_eq!(network.received(Host::Server).len(), 8);
}

#[test]
fn records_that_do_not_fit_are_left_out() {
    let mut network = Network::new();
    network.session(psk_client());
    let mut records = export(&mut network);
    let session = records.last().unwrap().clone();
    for length in 0..session.len() {
        records.push(session[..length].to_vec());
    }
    // The same session a second time.
    records.push(session.clone());
    let left_out = records.len() as u64 - 1;
    let (_, summary) = Endpoint::import(Arc::new(server_config()), &records);
    let expected = ImportSummary {
        sessions: 1,
        left_out,
    };
    assert_eq!(summary, expected);
    let full = Config {
        associations_max: 0,
        ..server_config()
    };
    assert_eq!(Endpoint::import(Arc::new(full), [session]).1.left_out, 1);
}

/// The epoch and sequence number of each protected record.
fn protected_numbers(datagram: &[u8]) -> Vec<[u8; 8]> {
    const CID: u8 = 25;
    let mut numbers = Vec::new();
    let mut rest = datagram;
    while !rest.is_empty() {
        // The Connection IDs of both hosts: a prefix and six bytes.
        let header = if rest[0] == CID { 20 } else { 13 };
        let number: [u8; 8] = rest[3..11].try_into().unwrap();
        numbers.extend(number.starts_with(&[0, 1]).then_some(number));
        let length = u16::from_be_bytes([rest[header - 2], rest[header - 1]]);
        rest = &rest[header + usize::from(length)..];
    }
    numbers
}
