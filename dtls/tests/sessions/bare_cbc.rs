//! Suites with CBC for a client that does not offer encrypt-then-MAC (RFC 7366).

use std::sync::Arc;

use dtls::{
    AlertDescription, CipherSuite, ClientConfig, Config, ConnectionIdOffer, Endpoint,
    HandshakeFailure, TicketKey,
};

use crate::network::{Host, Network, psk_client, server_config};
use crate::restart::export;

const SUITES: [CipherSuite; 2] = [CipherSuite::PskAes128Cbc, CipherSuite::EcdhePskAes128Cbc];
const BLOCK_LENGTH: usize = 16;
/// The fragment of a record with 20 bytes, with or without the type inside: the IV and four blocks.
const FRAGMENT_LENGTH: usize = 5 * BLOCK_LENGTH;
const CONTENT: [u8; 20] = [0x42; 20];

#[test]
fn contents_of_every_length_arrive_on_both_sides() {
    for suite in SUITES {
        for connection_id in [
            ConnectionIdOffer::None,
            ConnectionIdOffer::Empty,
            ConnectionIdOffer::Own,
        ] {
            let mut network = Network::with(accepting(), 1);
            let id = network.session(ClientConfig {
                cipher_suites: vec![suite],
                connection_id,
                ..client()
            });
            assert_eq!(network.security(Host::Server).suite, suite);
            let server_id = network.server_association.unwrap();
            let contents: Vec<Vec<u8>> = (0..200).map(|length| vec![7; length]).collect();
            for content in &contents {
                network.send(Host::Client, id, content);
                network.send(Host::Server, server_id, content);
            }
            network.run(&mut || vec![10], 1_000);
            assert_eq!(network.received(Host::Server), contents);
            assert_eq!(network.received(Host::Client), contents);
        }
    }
}

#[test]
fn a_client_that_offers_encrypt_then_mac_gets_it() {
    let mut network = Network::with(accepting(), 1);
    // It refuses a server that does not agree to it.
    network.session(ClientConfig {
        offers_encrypt_then_mac: true,
        ..client()
    });
    assert_eq!(
        network.security(Host::Client).suite,
        CipherSuite::PskAes128Cbc
    );
}

#[test]
fn a_suite_that_authenticates_what_it_encrypts_is_preferred() {
    let mut network = Network::with(accepting(), 1);
    network.session(ClientConfig {
        cipher_suites: vec![CipherSuite::PskAes128Cbc, CipherSuite::PskAes128Ccm8],
        ..client()
    });
    assert_eq!(
        network.security(Host::Server).suite,
        CipherSuite::PskAes128Ccm8
    );
}

#[test]
fn without_the_setting_it_is_refused_whether_the_session_is_new_or_resumed() {
    let failure = AlertDescription::HANDSHAKE_FAILURE;
    let mut network = Network::new();
    network.session(client());
    assert_eq!(
        network.failures(Host::Server),
        [HandshakeFailure::Refused(failure)]
    );
    let with_tickets = |config| Config {
        ticket_keys: vec![TicketKey::from_bytes([9; 32])],
        ..config
    };
    for (then, is_resumed) in [(accepting(), true), (server_config(), false)] {
        let mut network = Network::with(with_tickets(accepting()), 1);
        network.session(client());
        network.server = Endpoint::new(Arc::new(with_tickets(then)));
        network.reports.clear();
        network.session(ClientConfig {
            resumption: network.resumption.clone(),
            ..client()
        });
        match is_resumed {
            true => assert!(network.security(Host::Server).is_resumed),
            false => assert_eq!(
                network.failures(Host::Server),
                [HandshakeFailure::Refused(failure)]
            ),
        }
    }
}

#[test]
fn a_session_goes_on_after_a_restart_where_the_setting_still_allows_it() {
    let mut network = Network::with(accepting(), 1);
    let id = network.session(client());
    let records = export(&mut network);
    let (_, summary) = Endpoint::import(Arc::new(server_config()), &records);
    assert_eq!((summary.sessions, summary.left_out), (0, 1));
    let (server, summary) = Endpoint::import(Arc::new(accepting()), &records);
    assert_eq!((summary.sessions, summary.left_out), (1, 0));
    network.server = server;
    network.send(Host::Client, id, b"after");
    network.run(&mut || vec![10], 1_000);
    assert_eq!(network.received(Host::Server), [b"after"]);
}

/// Vaudenay's attack: a byte of a block of ciphertext changes the same byte of the next plaintext,
/// and with it the padding, without the key.
#[test]
fn every_changed_record_is_dropped_alike_and_the_session_goes_on() {
    for connection_id in [ConnectionIdOffer::None, ConnectionIdOffer::Empty] {
        let mut network = Network::with(accepting(), 1);
        let id = network.session(ClientConfig {
            connection_id,
            ..client()
        });
        network.send(Host::Client, id, &CONTENT);
        let (_, record) = network.sent.last().cloned().unwrap();
        let start = record.len() - FRAGMENT_LENGTH;
        assert_eq!(record[start - 1], FRAGMENT_LENGTH as u8);
        let mut forged = Vec::new();
        for place in start..record.len() {
            // The last byte of the padding, the byte before it, or one of the others.
            let changes = match (record.len() - place).checked_sub(BLOCK_LENGTH) {
                Some(1 | 2) => 1..=u8::MAX,
                _ => 1..=1,
            };
            for change in changes {
                let mut changed = record.clone();
                changed[place] ^= change;
                forged.push(changed);
            }
        }
        for length in 0..FRAGMENT_LENGTH {
            forged.push(with_fragment(&record, start, length));
        }
        let peer = network.client_address;
        for datagram in &forged {
            let before = network.server.counters();
            let out = network.deliver(Host::Server, peer, datagram);
            assert!(out.is_empty(), "{:?}", out.iter().next());
            let after = network.server.counters();
            assert_eq!(after.not_authentic, before.not_authentic + 1);
            assert_eq!(after.records_dropped, before.records_dropped + 1);
        }
        network.run(&mut || vec![10], 1_000);
        assert_eq!(network.received(Host::Server), [CONTENT]);
    }
}

/// A record whose fragment is cut short.
fn with_fragment(record: &[u8], start: usize, length: usize) -> Vec<u8> {
    let mut cut = record[..start + length].to_vec();
    cut[start - 1] = length as u8;
    cut
}

fn accepting() -> Config {
    Config {
        accepts_bare_cbc: true,
        ..server_config()
    }
}

fn client() -> ClientConfig {
    ClientConfig {
        cipher_suites: vec![CipherSuite::PskAes128Cbc],
        offers_encrypt_then_mac: false,
        ..psk_client()
    }
}
