//! Abbreviated handshakes: by session id (RFC 5246 section 7.3) and by ticket (RFC 5077).

use std::sync::Arc;

use dtls::{ClientConfig, CloseReason, Config, Endpoint, TicketKey};

use crate::network::{Host, Network, Report, psk_client, server_config};

const DAY_MS: u64 = 86_400_000;

fn with_tickets() -> Config {
    Config {
        ticket_keys: vec![TicketKey::from_bytes([9; 32])],
        ..server_config()
    }
}

/// Connects with what the last session left.
fn resume(network: &mut Network) {
    network.reports.clear();
    let resumption = network.resumption.clone();
    assert!(resumption.is_some(), "the session can be resumed");
    let id = network.session(ClientConfig {
        resumption,
        ..psk_client()
    });
    network.send(Host::Client, id, b"uplink");
    network.run(&mut || vec![10], 1_000);
    assert_eq!(network.received(Host::Server), [b"uplink"]);
}

#[test]
fn a_session_is_resumed_by_its_id_and_by_its_ticket() {
    for config in [server_config(), with_tickets()] {
        let mut network = Network::with(config, 1);
        network.session(psk_client());
        let begun = network.security(Host::Server);
        for _ in 0..3 {
            network.run(&mut || vec![10], 3_600_000);
            // The key is not needed again.
            network.keys.clear();
            resume(&mut network);
            let security = network.security(Host::Server);
            assert!(security.is_resumed && network.security(Host::Client).is_resumed);
            assert_eq!(security.authenticated_at, begun.authenticated_at);
        }
    }
}

#[test]
fn a_ticket_outlives_the_server_and_an_id_does_not() {
    for (config, is_resumed) in [(with_tickets(), true), (server_config(), false)] {
        let mut network = Network::with(config.clone(), 1);
        network.session(psk_client());
        network.server = Endpoint::new(Arc::new(config));
        resume(&mut network);
        assert_eq!(network.security(Host::Server).is_resumed, is_resumed);
    }
}

#[test]
fn a_ticket_of_the_previous_key_is_accepted_and_one_of_an_unknown_key_is_not() {
    let keys = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| TicketKey::from_bytes([*byte; 32]))
            .collect()
    };
    for (now, is_resumed) in [(&[8, 9][..], true), (&[8], false)] {
        let mut network = Network::with(with_tickets(), 1);
        network.session(psk_client());
        let config = Config {
            ticket_keys: keys(now),
            ..server_config()
        };
        network.server = Endpoint::new(Arc::new(config));
        resume(&mut network);
        assert_eq!(network.security(Host::Server).is_resumed, is_resumed);
    }
}

#[test]
fn a_renewed_ticket_is_sealed_with_the_first_key() {
    let mut network = Network::with(with_tickets(), 1);
    network.session(psk_client());
    for keys in [&[8, 9][..], &[8]] {
        let keys = keys.iter().map(|byte| TicketKey::from_bytes([*byte; 32]));
        let config = Config {
            ticket_keys: keys.collect(),
            ..server_config()
        };
        network.server = Endpoint::new(Arc::new(config));
        resume(&mut network);
        assert!(network.security(Host::Server).is_resumed);
    }
}

#[test]
fn a_session_that_has_ended_for_its_silence_is_resumed() {
    for config in [server_config(), with_tickets()] {
        let idle_ms = config.idle_timeout_ms;
        let mut network = Network::with(config, 1);
        network.session(psk_client());
        network.run(&mut || vec![10], idle_ms);
        let ended = (Host::Server, Report::Closed(CloseReason::Idle));
        assert!(network.reports.contains(&ended));
        resume(&mut network);
        assert!(network.security(Host::Server).is_resumed);
    }
}

#[test]
fn a_session_is_resumed_for_a_bounded_time_after_its_last_handshake() {
    for config in [server_config(), with_tickets()] {
        let mut network = Network::with(config, 1);
        network.session(psk_client());
        network.run(&mut || vec![10], 30 * DAY_MS);
        resume(&mut network);
        assert!(!network.security(Host::Server).is_resumed);
    }
}

#[test]
fn a_session_is_resumed_again_and_again_for_a_bounded_time_after_its_full_handshake() {
    for config in [server_config(), with_tickets()] {
        let mut network = Network::with(config, 1);
        network.session(psk_client());
        for is_resumed in [true, true, true, true, true, false, true] {
            network.run(&mut || vec![10], 20 * DAY_MS);
            resume(&mut network);
            assert_eq!(network.security(Host::Server).is_resumed, is_resumed);
        }
    }
}

#[test]
fn the_number_of_sessions_that_are_kept_by_their_id_is_bounded() {
    let config = Config {
        cached_sessions_max: 2,
        ..server_config()
    };
    let mut network = Network::with(config, 1);
    network.session(psk_client());
    let oldest = network.resumption.clone();
    network.session(psk_client());
    network.session(psk_client());
    resume(&mut network);
    assert!(network.security(Host::Server).is_resumed);
    network.resumption = oldest;
    resume(&mut network);
    assert!(!network.security(Host::Server).is_resumed);
}
