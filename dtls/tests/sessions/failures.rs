//! Handshakes that fail, and what ends a session.

use dtls::{
    AlertDescription, CipherSuite, ClientConfig, CloseReason, Config, ConnectionIdOffer,
    HandshakeFailure,
};

use crate::network::{Host, IDENTITY, KEY, Network, Report, psk_client, server_config};

#[test]
fn a_wrong_key_and_an_unknown_identity_look_the_same() {
    let mut conversations = Vec::new();
    for client in [
        ClientConfig::with_psk(IDENTITY, &[8; 16]),
        ClientConfig::with_psk(b"urn:dev:meter-2", KEY),
    ] {
        let mut network = Network::new();
        network.session(client);
        assert_eq!(
            network.failures(Host::Client),
            [HandshakeFailure::RefusedByPeer(
                AlertDescription::DECRYPT_ERROR
            )]
        );
        network.run(&mut || vec![10], 60_000);
        assert_eq!(network.failures(Host::Server), [HandshakeFailure::WrongKey]);
        assert_eq!(network.server.association_count(), 0);
        let sent = network.sent.iter();
        let shape = sent.map(|(host, datagram)| (*host, datagram.len()));
        conversations.push(shape.collect::<Vec<(Host, usize)>>());
    }
    assert_eq!(conversations[0], conversations[1]);
}

#[test]
fn no_suite_in_common_is_a_handshake_failure() {
    let server = Config {
        cipher_suites: vec![CipherSuite::PskAes128Ccm8],
        ..server_config()
    };
    let mut network = Network::with(server, 1);
    network.session(ClientConfig {
        cipher_suites: vec![CipherSuite::PskAes128Gcm],
        ..psk_client()
    });
    let failure = AlertDescription::HANDSHAKE_FAILURE;
    assert_eq!(
        network.failures(Host::Server),
        [HandshakeFailure::Refused(failure)]
    );
    assert_eq!(
        network.failures(Host::Client),
        [HandshakeFailure::RefusedByPeer(failure)]
    );
}

#[test]
fn cbc_is_refused_unless_both_encrypt_before_they_authenticate() {
    fn hide_encrypt_then_mac(mut datagram: Vec<u8>) -> Vec<u8> {
        let empty = [0, 22, 0, 0];
        let found = datagram.windows(4).position(|it| it == empty);
        if let Some(place) = found {
            // An extension that nobody knows (RFC 8701).
            datagram[place..place + 2].copy_from_slice(&[0x0a, 0x0a]);
        }
        datagram
    }
    let client = || ClientConfig {
        cipher_suites: vec![CipherSuite::PskAes128Cbc],
        ..psk_client()
    };
    let failure = AlertDescription::HANDSHAKE_FAILURE;
    for (altered, refusing) in [(Host::Client, Host::Server), (Host::Server, Host::Client)] {
        let mut network = Network::new();
        network.alter = match altered {
            Host::Client => |host, datagram| match host {
                Host::Client => hide_encrypt_then_mac(datagram),
                Host::Server => datagram,
            },
            Host::Server => |host, datagram| match host {
                Host::Client => datagram,
                Host::Server => hide_encrypt_then_mac(datagram),
            },
        };
        network.session(client());
        assert_eq!(
            network.failures(refusing),
            [HandshakeFailure::Refused(failure)]
        );
    }
}

#[test]
fn a_peer_that_falls_silent_is_given_up() {
    let mut network = Network::new();
    let mut sent = 0;
    let mut delivery = || {
        sent += 1;
        if sent <= 3 { vec![10] } else { vec![] }
    };
    network.connect(psk_client(), &mut delivery);
    network.run(&mut delivery, 100_000);
    assert_eq!(network.failures(Host::Client), [HandshakeFailure::TimedOut]);
    assert_eq!(network.failures(Host::Server), [HandshakeFailure::TimedOut]);
    // RFC 6347 section 4.2.4.1: 1, 2, 4, 8, 16 and 32 s apart.
    let of_server = network
        .sent
        .iter()
        .filter(|(host, _)| *host == Host::Server);
    assert_eq!(of_server.count(), 1 + 6);
    assert_eq!(network.server.next_timeout(), None);
}

#[test]
fn the_number_of_handshakes_is_bounded() {
    let server = Config {
        handshakes_max: 3,
        ..server_config()
    };
    let mut network = Network::with(server, 1);
    for port in 1..=5 {
        network.client_address.set_port(port);
        // The hello with a cookie arrives; the answer to it is lost.
        let mut sent = 0;
        let mut delivery = || {
            sent += 1;
            if sent <= 3 { vec![10] } else { vec![] }
        };
        let id = network.connect(psk_client(), &mut delivery);
        network.run(&mut delivery, 100);
        network.client.forget(id);
    }
    assert_eq!(network.server.handshake_count(), 3);
    assert_eq!(
        network.failures(Host::Server),
        [HandshakeFailure::Evicted; 2]
    );
}

#[test]
fn a_client_that_begins_anew_replaces_its_handshake() {
    let mut network = Network::new();
    let mut sent = 0;
    let mut delivery = || {
        sent += 1;
        if sent <= 3 { vec![10] } else { vec![] }
    };
    let id = network.connect(psk_client(), &mut delivery);
    network.run(&mut delivery, 100);
    network.client.forget(id);
    network.session(psk_client());
    network.security(Host::Server);
    assert_eq!(network.failures(Host::Server), [HandshakeFailure::Replaced]);
}

#[test]
fn a_session_ends_with_close_notify() {
    for closing in [Host::Client, Host::Server] {
        let mut network = Network::new();
        let client_id = network.session(psk_client());
        let id = match closing {
            Host::Client => client_id,
            Host::Server => network.server_association.unwrap(),
        };
        network.reports.clear();
        let out = network.call(closing, |endpoint, _, out| endpoint.close(id, out));
        network.perform(closing, &out, &mut || vec![10]);
        network.run(&mut || vec![10], 1_000);
        let closed = Report::Closed(CloseReason::CloseNotify);
        assert_eq!(network.reports, [(crate::network::other(closing), closed)]);
        assert_eq!(network.server.association_count(), 0);
        assert_eq!(network.client.association_count(), 0);
    }
}

#[test]
fn a_session_that_is_revoked_ends_with_a_fatal_alert() {
    let mut network = Network::new();
    network.session(psk_client());
    let id = network.server_association.unwrap();
    network.reports.clear();
    let out = network.call(Host::Server, |endpoint, _, out| endpoint.revoke(id, out));
    network.perform(Host::Server, &out, &mut || vec![10]);
    network.run(&mut || vec![10], 1_000);
    let closed = Report::Closed(CloseReason::Alert(AlertDescription::ACCESS_DENIED));
    assert_eq!(network.reports, [(Host::Client, closed)]);
    assert_eq!(network.server.association_count(), 0);
}

#[test]
fn a_silent_session_ends_after_the_idle_timeout() {
    let server = Config {
        idle_timeout_ms: 60_000,
        ..server_config()
    };
    let mut network = Network::with(server, 1);
    let id = network.session(psk_client());
    for _ in 0..10 {
        network.send(Host::Client, id, b"still here");
        network.run(&mut || vec![10], 50_000);
    }
    assert_eq!(network.received(Host::Server).len(), 10);
    network.reports.clear();
    network.run(&mut || vec![10], 60_000);
    let closed = Report::Closed(CloseReason::Idle);
    assert_eq!(network.reports, [(Host::Server, closed)]);
    assert_eq!(network.server.next_timeout(), None);
}

#[test]
fn the_session_that_was_silent_longest_gives_way() {
    let server = Config {
        associations_max: 2,
        idle_timeout_ms: 160_000,
        ..server_config()
    };
    let mut network = Network::with(server, 1);
    let client = ClientConfig {
        connection_id: ConnectionIdOffer::Own,
        ..psk_client()
    };
    let first = network.session(client.clone());
    let first_at_server = network.server_association.unwrap();
    network.session(client.clone());
    let second_at_server = network.server_association.unwrap();
    network.run(&mut || vec![10], 20_000);
    network.send(Host::Client, first, b"still here");
    network.run(&mut || vec![10], 100);
    network.session(client);
    assert!(network.server.peer(first_at_server).is_some());
    assert!(network.server.peer(second_at_server).is_none());
}
