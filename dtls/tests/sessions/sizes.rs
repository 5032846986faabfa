//! Limits of records (RFC 8449), and the errors of sending.

use dtls::{ClientConfig, ConnectionIdOffer, Effects, SendError};

use crate::network::{Host, Network, psk_client};

#[test]
fn a_record_size_limit_is_kept() {
    for (connection_id, max) in [
        (ConnectionIdOffer::Empty, 64),
        // The type inside the record takes one byte.
        (ConnectionIdOffer::Own, 63),
    ] {
        let mut network = Network::new();
        network.session(ClientConfig {
            record_size_limit: Some(64),
            connection_id,
            ..psk_client()
        });
        let id = network.server_association.unwrap();
        assert_eq!(network.server.content_max(id), Some(max));
        let mut out = Effects::new();
        let sent = network.server.send(id, &vec![0; max + 1], &mut out);
        assert_eq!(sent, Err(SendError::TooLong { max }));
        assert!(out.is_empty());
        network.send(Host::Server, id, &vec![1; max]);
        network.run(&mut || vec![10], 1_000);
        assert_eq!(network.received(Host::Client), [vec![1; max]]);
    }
}

#[test]
fn nothing_is_sent_before_the_handshake_is_over_or_after_the_end() {
    let mut network = Network::new();
    let id = network.connect(psk_client(), &mut || vec![10]);
    let mut out = Effects::new();
    assert_eq!(
        network.client.send(id, b"early", &mut out),
        Err(SendError::NotEstablished)
    );
    network.run(&mut || vec![10], 1_000);
    network.client.forget(id);
    assert_eq!(
        network.client.send(id, b"late", &mut out),
        Err(SendError::Unknown)
    );
    assert!(out.is_empty());
}
