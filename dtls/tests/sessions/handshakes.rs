//! Full handshakes over a network that loses nothing.

use dtls::{CipherSuite, ClientConfig, Config, ConnectionIdOffer, ExtendedMasterSecret, Identity};

use crate::network::{Host, IDENTITY, KEY, Network, Report, psk_client, server_config};

#[test]
fn every_suite_of_pre_shared_keys_leads_to_a_session() {
    let suites = CipherSuite::ALL.into_iter().filter(CipherSuite::has_psk);
    let suites: Vec<CipherSuite> = suites.collect();
    assert_eq!(suites.len(), 8);
    for suite in suites {
        for connection_id in [
            ConnectionIdOffer::None,
            ConnectionIdOffer::Empty,
            ConnectionIdOffer::Own,
        ] {
            let mut network = Network::new();
            let id = network.session(ClientConfig {
                cipher_suites: vec![suite],
                connection_id,
                ..psk_client()
            });
            for host in [Host::Client, Host::Server] {
                let security = network.security(host);
                assert_eq!(security.suite, suite);
                let has_connection_id = connection_id != ConnectionIdOffer::None;
                assert_eq!(security.has_connection_id, has_connection_id);
                assert!(security.has_extended_master_secret);
                assert!(!security.is_resumed);
            }
            let server_id = network.server_association.unwrap();
            network.send(Host::Client, id, b"uplink");
            network.send(Host::Server, server_id, b"downlink");
            network.run(&mut || vec![10], 1_000);
            assert_eq!(network.received(Host::Server), [b"uplink"], "{suite:?}");
            assert_eq!(network.received(Host::Client), [b"downlink"], "{suite:?}");
        }
    }
}

#[test]
fn the_server_knows_the_identity_of_the_key() {
    let mut network = Network::new();
    network.session(psk_client());
    let server = network
        .reports
        .iter()
        .find(|(host, _)| *host == Host::Server);
    let Some((_, Report::Established(identity, _))) = server else {
        panic!("{:?}", network.reports);
    };
    assert_eq!(*identity, Identity::Psk(IDENTITY.into()));
}

#[test]
fn a_hello_without_a_cookie_costs_no_memory() {
    let mut network = Network::new();
    network.connect(psk_client(), &mut || vec![]);
    let hello = network.sent[0].1.clone();
    for port in 1..=10_000 {
        let peer = format!("203.0.113.9:{port}").parse().unwrap();
        let out = network.deliver(Host::Server, peer, &hello);
        assert_eq!(out.iter().count(), 1);
    }
    assert_eq!(network.server.association_count(), 0);
    assert_eq!(network.server.next_timeout(), None);
    assert_eq!(network.server.counters().cookies_sent, 10_000);
}

#[test]
fn the_answer_to_a_hello_without_a_cookie_is_shorter_than_the_hello() {
    let mut network = Network::new();
    network.session(psk_client());
    let lengths: Vec<usize> = network.sent.iter().map(|(_, it)| it.len()).collect();
    assert!(lengths[1] < lengths[0], "{lengths:?}");
}

#[test]
fn a_key_that_is_found_later_leads_to_a_session() {
    let mut network = Network::new();
    network.look_up_ms = 700;
    network.session(psk_client());
    network.security(Host::Server);
    // The Finished that came before the key was kept: nothing had to be sent again.
    let of_client = network
        .sent
        .iter()
        .filter(|(host, _)| *host == Host::Client);
    assert_eq!(of_client.count(), 3);
}

#[test]
fn either_key_is_accepted_while_one_is_exchanged_for_the_other() {
    let (old, new) = ([1; 16], [2; 16]);
    for (index, key) in [old, new].into_iter().enumerate() {
        let mut network = Network::new();
        let keys = vec![old.to_vec(), new.to_vec()];
        network.keys.insert(IDENTITY.to_vec(), keys);
        let id = network.session(ClientConfig::with_psk(IDENTITY, &key));
        assert_eq!(network.security(Host::Server).psk_index, index);
        network.send(Host::Client, id, b"uplink");
        network.run(&mut || vec![10], 1_000);
        assert_eq!(network.received(Host::Server), [b"uplink"]);
    }
}

#[test]
fn a_server_prefers_its_own_order_of_suites() {
    let server = Config {
        cipher_suites: vec![CipherSuite::PskAes128Ccm, CipherSuite::PskAes128Ccm8],
        ..server_config()
    };
    let mut network = Network::with(server, 1);
    network.session(psk_client());
    assert_eq!(
        network.security(Host::Server).suite,
        CipherSuite::PskAes128Ccm
    );
}

#[test]
fn a_required_extended_master_secret_is_present() {
    let server = Config {
        extended_master_secret: ExtendedMasterSecret::Required,
        ..server_config()
    };
    let mut network = Network::with(server, 1);
    network.session(psk_client());
    assert!(network.security(Host::Server).has_extended_master_secret);
}

#[test]
fn a_long_hello_and_small_datagrams_lead_to_a_session() {
    for datagram_max in [64, 90, 200] {
        let server = Config {
            datagram_max,
            ..server_config()
        };
        let mut network = Network::with(server, 1);
        network.session(ClientConfig {
            cipher_suites: vec![CipherSuite::EcdhePskAes128Gcm],
            ..ClientConfig::with_psk(IDENTITY, KEY)
        });
        network.security(Host::Client);
        let longest = network
            .sent
            .iter()
            .filter(|(host, _)| *host == Host::Server);
        let longest = longest.map(|(_, datagram)| datagram.len()).max();
        assert!(longest <= Some(datagram_max.max(80)), "{longest:?}");
    }
}
