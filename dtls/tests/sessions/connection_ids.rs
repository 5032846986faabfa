//! Connection IDs: RFC 9146, and the return routability check of RFC 9853.

use std::net::SocketAddr;

use dtls::{ClientConfig, ConnectionIdOffer, DatagramRoute, Effect, SendError};

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

#[test]
fn a_new_address_is_sent_little_until_the_peer_has_answered_from_there() {
    let mut network = Network::new();
    let id = network.session(psk_client());
    let server_id = network.server_association.unwrap();
    network.client_address = address(50_000);
    network.send(Host::Client, id, b"from elsewhere");
    let (_, record) = network.sent.pop().unwrap();
    network.sent.clear();
    // The record arrives; what the client is sent does not.
    let out = network.deliver(Host::Server, address(50_000), &record);
    network.perform(Host::Server, &out, &mut Vec::new);
    let mut outcomes = Vec::new();
    for number in 0..8u8 {
        let out = network.call(Host::Server, |server, _, out| {
            outcomes.push(server.send(server_id, &[number; 40], out));
        });
        network.perform(Host::Server, &out, &mut Vec::new);
    }
    let sent = network.sent.iter().map(|(_, datagram)| datagram.len());
    assert!(sent.sum::<usize>() <= 3 * record.len());
    let kept = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(outcomes.last(), Some(&Err(SendError::AddressUnderCheck)));
    assert!((4..8).contains(&kept), "{outcomes:?}");
    // The challenge, sent again, is answered: what has waited follows.
    network.sent.clear();
    network.run(&mut || vec![10], 10_000);
    assert_eq!(network.received(Host::Client).len(), 4);
    assert_eq!(network.server.peer(server_id), Some(address(50_000)));
    let out = network.call(Host::Server, |server, _, out| {
        server.send(server_id, &[9; 1_000], out).unwrap();
    });
    assert!(!out.is_empty());
}

#[test]
fn an_address_that_does_not_answer_is_left() {
    let mut network = Network::new();
    let id = network.session(psk_client());
    let server_id = network.server_association.unwrap();
    let home = network.client_address;
    network.send(Host::Client, id, b"stolen");
    let (_, record) = network.sent.pop().unwrap();
    network.sent.clear();
    let out = network.deliver(Host::Server, address(666), &record);
    network.perform(Host::Server, &out, &mut || vec![10]);
    assert_eq!(network.server.peer(server_id), Some(address(666)));
    network.reports.clear();
    network.run(&mut || vec![10], 60_000);
    // Three challenges went there.
    assert_eq!(network.sent.len(), 3);
    assert_eq!(network.reports, [(Host::Server, Report::Moved(home))]);
    network.send(Host::Server, server_id, b"at home");
    network.run(&mut || vec![10], 1_000);
    assert_eq!(network.received(Host::Client), [b"at home"]);
}

#[test]
fn a_peer_that_returns_needs_no_check() {
    let mut network = Network::new();
    let id = network.session(psk_client());
    let server_id = network.server_association.unwrap();
    let home = network.client_address;
    network.send(Host::Client, id, b"stolen");
    network.send(Host::Client, id, b"from home");
    let (_, second) = network.sent.pop().unwrap();
    let (_, first) = network.sent.pop().unwrap();
    network.deliver(Host::Server, address(666), &first);
    network.deliver(Host::Server, home, &second);
    network.sent.clear();
    network.send(Host::Server, server_id, &[1; 1_000]);
    network.run(&mut || vec![10], 60_000);
    assert_eq!(network.sent.len(), 1);
    assert_eq!(network.received(Host::Client), [[1; 1_000]]);
}

#[test]
fn an_echo_from_another_address_or_of_another_cookie_proves_nothing() {
    let mut network = Network::new();
    let id = network.session(psk_client());
    let server_id = network.server_association.unwrap();
    let home = network.client_address;
    network.send(Host::Client, id, b"stolen");
    let (_, record) = network.sent.pop().unwrap();
    let out = network.deliver(Host::Server, address(666), &record);
    let [_, _, Effect::Send { datagram, .. }] = out.iter().collect::<Vec<Effect<'_>>>()[..] else {
        panic!("{:?}", out.iter().collect::<Vec<Effect<'_>>>());
    };
    let server = network.server_address;
    let echo = network.deliver(Host::Client, server, datagram);
    let [Effect::Send { datagram, .. }] = echo.iter().collect::<Vec<Effect<'_>>>()[..] else {
        panic!("an echo");
    };
    // The newest record moves the peer, and the next check has a cookie of its own.
    network.deliver(Host::Server, address(777), datagram);
    assert_eq!(network.server.peer(server_id), Some(address(777)));
    network.run(&mut Vec::new, 60_000);
    assert_eq!(network.server.peer(server_id), Some(home));
}
