//! Connection IDs: RFC 9146.

use std::net::SocketAddr;

use dtls::{ClientConfig, ConnectionIdOffer, DatagramRoute};

use crate::network::{Host, Network, Report, psk_client};

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 7], port))
}

#[test]
fn a_session_follows_its_peer_to_another_address() {
    let mut network = Network::new();
    let id = network.session(psk_client());
    network.reports.clear();
    network.client_address = address(50_000);
    network.send(Host::Client, id, b"from elsewhere");
    network.run(&mut || vec![10], 1_000);
    let expected = [
        (Host::Server, Report::Moved(address(50_000))),
        (Host::Server, Report::Received(b"from elsewhere".to_vec())),
    ];
    assert_eq!(network.reports, expected);
    let server_id = network.server_association.unwrap();
    network.send(Host::Server, server_id, b"there");
    network.run(&mut || vec![10], 1_000);
    assert_eq!(network.received(Host::Client), [b"there"]);
}

#[test]
fn an_older_or_forged_record_does_not_move_the_peer() {
    let mut network = Network::new();
    let id = network.session(psk_client());
    network.send(Host::Client, id, b"first");
    network.send(Host::Client, id, b"second");
    let (_, second) = network.sent.pop().unwrap();
    let (_, first) = network.sent.pop().unwrap();
    let server_id = network.server_association.unwrap();
    let home = network.client_address;

    network.deliver(Host::Server, home, &second);
    // Authentic and received for the first time, but older.
    let out = network.deliver(Host::Server, address(666), &first);
    assert_eq!(out.iter().count(), 1);
    assert_eq!(network.server.peer(server_id), Some(home));
    // A copy from elsewhere.
    network.deliver(Host::Server, address(666), &second);
    assert_eq!(network.server.peer(server_id), Some(home));
    // A newer number without the key.
    let mut forged = second;
    forged[10] = 200;
    let out = network.deliver(Host::Server, address(666), &forged);
    assert!(out.is_empty());
    assert_eq!(network.server.peer(server_id), Some(home));
}

#[test]
fn a_session_without_a_connection_id_stays_at_its_address() {
    let mut network = Network::new();
    let id = network.session(ClientConfig {
        connection_id: ConnectionIdOffer::None,
        ..psk_client()
    });
    network.client_address = address(50_000);
    network.send(Host::Client, id, b"from elsewhere");
    network.run(&mut || vec![10], 1_000);
    assert!(network.received(Host::Server).is_empty());
}

#[test]
fn two_peers_may_have_the_same_address_one_after_the_other() {
    let mut network = Network::new();
    // The client's table finds its sessions by Connection ID, too.
    let client = ClientConfig {
        connection_id: ConnectionIdOffer::Own,
        ..psk_client()
    };
    let first = network.session(client.clone());
    let first_at_server = network.server_association.unwrap();
    let second = network.session(client);
    let second_at_server = network.server_association.unwrap();
    assert_ne!(first_at_server, second_at_server);
    network.client_address = address(50_000);
    network.send(Host::Client, first, b"first");
    network.send(Host::Client, second, b"second");
    network.run(&mut || vec![10], 1_000);
    assert_eq!(network.received(Host::Server), [&b"first"[..], b"second"]);
}

#[test]
fn a_connection_id_names_the_endpoint() {
    let mut network = Network::new();
    let id = network.session(psk_client());
    let (_, hello) = &network.sent[0];
    assert_eq!(DatagramRoute::of(hello, 1), DatagramRoute::Address);
    network.send(Host::Client, id, b"uplink");
    let (_, datagram) = network.sent.last().unwrap();
    let DatagramRoute::ConnectionId(connection_id) = DatagramRoute::of(datagram, 1) else {
        panic!("a record with a Connection ID");
    };
    assert_eq!((connection_id.len(), connection_id[0]), (7, b's'));
    assert_eq!(
        DatagramRoute::of(b"\x40\x01\x00\x01", 1),
        DatagramRoute::NotDtls
    );
}
