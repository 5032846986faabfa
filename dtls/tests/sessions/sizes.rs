//! Limits of records (RFC 6066 section 4, RFC 8449), and the errors of sending.

use dtls::{
    AlertDescription, ClientConfig, Config, ConnectionIdOffer, Effects, HandshakeFailure,
    MaxFragmentLength, SendError,
};

use crate::certificates::{Authority, named};
use crate::network::{Host, Network, psk_client, server_config};

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
fn a_maximum_fragment_length_is_answered_and_kept() {
    let root = Authority::new("CA");
    let chain = [&root.intermediate("1"), &root.intermediate("2")];
    for (offer, max) in [
        (MaxFragmentLength::Bytes512, 512),
        (MaxFragmentLength::Bytes1024, 1_024),
        (MaxFragmentLength::Bytes2048, 2_048),
        (MaxFragmentLength::Bytes4096, 4_096),
    ] {
        let server_key = root.signs(&named("server"), &chain);
        let mut network = Network::with(
            Config {
                server_key: Some(server_key.clone()),
                ..server_config()
            },
            1,
        );
        network.authorities = vec![root.certificate.clone()];
        let id = network.session(ClientConfig {
            max_fragment_length: Some(offer),
            connection_id: ConnectionIdOffer::None,
            ..ClientConfig::with_signing_key(
                root.signs(&named("meter-1"), &chain),
                server_key.public_key(),
            )
        });
        let longest = network
            .sent
            .iter()
            .flat_map(|(_, it)| plaintext_lengths(it))
            .max();
        assert!(longest.unwrap() <= max, "{longest:?} bytes");
        // Both flights have a chain that needs several records.
        assert!(max > 512 || longest == Some(max));
        let server_id = network.server_association.unwrap();
        for (host, id) in [(Host::Server, server_id), (Host::Client, id)] {
            assert_eq!(
                network.endpoint(host).content_max(id),
                Some(max),
                "{host:?}"
            );
        }
    }
}

#[test]
fn a_code_of_no_maximum_fragment_length_is_refused() {
    let mut network = Network::new();
    network.alter = |from, mut datagram| {
        let offered = [0, 1, 0, 1, MaxFragmentLength::Bytes4096 as u8];
        let place = datagram.windows(5).position(|it| it == offered);
        if let Some(place) = place.filter(|_| from == Host::Client) {
            datagram[place + 4] = 5;
        }
        datagram
    };
    network.session(ClientConfig {
        max_fragment_length: Some(MaxFragmentLength::Bytes4096),
        ..psk_client()
    });
    let refused = HandshakeFailure::Refused(AlertDescription::ILLEGAL_PARAMETER);
    assert_eq!(network.failures(Host::Server), [refused]);
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

/// How long the content of each record without protection is.
fn plaintext_lengths(datagram: &[u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    let mut rest = datagram;
    // Their type, version and epoch.
    while let [22, 0xfe, 0xfd, 0, 0, ..] = rest {
        let length = usize::from(u16::from_be_bytes([rest[11], rest[12]]));
        lengths.push(length);
        rest = &rest[13 + length..];
    }
    lengths
}
