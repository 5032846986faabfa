//! Handshakes with raw public keys and with certificates.

use std::sync::Arc;

use dtls::{
    AlertDescription, CertificateFault, CipherSuite, ClientConfig, Config, ConnectionIdOffer,
    Effect, Effects, HandshakeFailure, Identity, InvalidKey, SigningKey, TicketKey,
};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    PKCS_ECDSA_P384_SHA384, SanType, date_time_ymd,
};

use crate::network::{Host, Network, Report, server_config};

const NAME: &str = "urn:dev:meter-1";

/// An authority and its certificate.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) certificate: Vec<u8>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let params = authority(name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().der().to_vec();
        let issuer = Issuer::new(params, key);
        Self {
            issuer,
            certificate,
        }
    }

    /// An authority that this one vouches for.
    pub(crate) fn intermediate(&self, name: &str) -> Self {
        self.vouches_for(authority(name))
    }

    fn vouches_for(&self, params: CertificateParams) -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Self {
            certificate: certificate.der().to_vec(),
            issuer: Issuer::new(params, key),
        }
    }

    /// A key with a certificate of this authority, and of others that lead to a known one.
    pub(crate) fn signs(&self, params: &CertificateParams, others: &[&Self]) -> Arc<SigningKey> {
        let key = KeyPair::generate().unwrap();
        let own = params.signed_by(&key, &self.issuer).unwrap();
        let mut chain: Vec<Box<[u8]>> = vec![own.der().to_vec().into()];
        chain.extend(others.iter().map(|it| it.certificate.clone().into()));
        Arc::new(SigningKey::from_der(&key.serialize_der(), chain).unwrap())
    }
}

#[test]
fn a_raw_public_key_leads_to_a_session_whatever_the_server_shows() {
    let suites = CipherSuite::ALL.into_iter().filter(|it| !it.has_psk());
    for suite in suites {
        for server_key in [
            raw_key(2),
            Authority::new("CA").signs(&named("server"), &[]),
        ] {
            let mut network = network(&server_key);
            let key = raw_key(3);
            network.public_keys.insert(key.public_key().to_vec());
            let id = network.session(ClientConfig {
                cipher_suites: vec![suite],
                ..ClientConfig::with_signing_key(Arc::clone(&key), server_key.public_key())
            });
            assert_eq!(network.security(Host::Server).suite, suite);
            let identity = Identity::RawPublicKey(key.public_key().into());
            assert_eq!(identities(&network, Host::Server), [&identity]);
            network.send(Host::Client, id, b"uplink");
            network.run(&mut || vec![10], 1_000);
            assert_eq!(network.received(Host::Server), [b"uplink"]);
        }
    }
}

#[test]
fn a_certificate_leads_to_a_session_under_the_name_that_the_caller_gives_it() {
    let (root, server_key) = (Authority::new("CA"), raw_key(2));
    let intermediate = root.intermediate("factory");
    for (key, connection_id) in [
        (root.signs(&named(NAME), &[]), ConnectionIdOffer::Own),
        (
            intermediate.signs(&named(NAME), &[&intermediate]),
            ConnectionIdOffer::None,
        ),
    ] {
        let mut network = network(&server_key);
        network.authorities = vec![root.certificate.clone()];
        let config = ClientConfig {
            connection_id,
            ..ClientConfig::with_signing_key(key, server_key.public_key())
        };
        network.session(config.clone());
        let identity = Identity::Certificate(NAME.as_bytes().into());
        assert_eq!(identities(&network, Host::Server), [&identity]);

        let resumption = network.resumption.clone();
        assert!(resumption.is_some());
        network.session(ClientConfig {
            resumption,
            ..config
        });
        assert!(network.security(Host::Server).is_resumed);
        assert_eq!(identities(&network, Host::Server), [&identity, &identity]);
    }
}

#[test]
fn names_are_the_common_name_then_dns_names_then_uris_each_once() {
    let (root, server_key) = (Authority::new("CA"), raw_key(2));
    let mut params = named("meter-1");
    params.subject_alt_names = vec![
        SanType::URI("urn:imei:490154203237518".try_into().unwrap()),
        SanType::DnsName("meter-1.example".try_into().unwrap()),
        SanType::DnsName("meter-1".try_into().unwrap()),
    ];
    let mut network = network(&server_key);
    let key = root.signs(&params, &[]);
    let client = ClientConfig::with_signing_key(key, server_key.public_key());
    network.session(client);
    assert_eq!(
        network.names_shown,
        ["meter-1", "meter-1.example", "urn:imei:490154203237518"]
    );
}

#[test]
fn every_wrong_chain_is_refused() {
    let root = Authority::new("CA");
    let other = Authority::new("CA");
    let intermediate = root.intermediate("factory");
    let mut past = named(NAME);
    past.not_after = date_time_ymd(2026, 1, 1);
    let mut future = named(NAME);
    future.not_before = date_time_ymd(2028, 1, 1);
    let mut server_only = named(NAME);
    server_only.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let mut not_issuer = named("no authority");
    not_issuer.is_ca = IsCa::ExplicitNoCa;
    let not_authority = root.vouches_for(not_issuer);
    let mut short_path = authority("short");
    short_path.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let (unknown, time, unusable) = (
        CertificateFault::UnknownIssuer,
        CertificateFault::NotValidNow,
        CertificateFault::Unusable,
    );
    let short = root.vouches_for(short_path);
    let below_short = short.intermediate("below");
    for (what, authorities, key, fault) in [
        (
            "an unknown one",
            vec![],
            root.signs(&named(NAME), &[]),
            unknown,
        ),
        // It has the name of the known one, and another key.
        (
            "an impostor",
            vec![&root],
            other.signs(&named(NAME), &[]),
            unknown,
        ),
        (
            "a missing intermediate",
            vec![&root],
            intermediate.signs(&named(NAME), &[]),
            unknown,
        ),
        ("an old one", vec![&root], root.signs(&past, &[]), time),
        ("an early one", vec![&root], root.signs(&future, &[]), time),
        (
            "one for servers",
            vec![&root],
            root.signs(&server_only, &[]),
            unusable,
        ),
        (
            "one of a device that is no authority",
            vec![&root],
            not_authority.signs(&named(NAME), &[&not_authority]),
            unusable,
        ),
        (
            "a path that is too long",
            vec![&root],
            below_short.signs(&named(NAME), &[&below_short, &short]),
            unusable,
        ),
    ] {
        let server_key = raw_key(2);
        let mut network = network(&server_key);
        network.authorities = authorities
            .iter()
            .map(|it| it.certificate.clone())
            .collect();
        network.session(ClientConfig::with_signing_key(key, server_key.public_key()));
        assert_eq!(network.certificate_faults, [fault], "{what}");
        let denied = AlertDescription::ACCESS_DENIED;
        let refused = [HandshakeFailure::Refused(denied)];
        assert_eq!(network.failures(Host::Server), refused, "{what}");
        let told = [HandshakeFailure::RefusedByPeer(denied)];
        assert_eq!(network.failures(Host::Client), told, "{what}");
    }
}

#[test]
fn a_chain_that_is_too_long_is_not_read() {
    let (root, server_key) = (Authority::new("CA"), raw_key(2));
    let mut network = network(&server_key);
    let key = root.signs(&named(NAME), &[&root, &root, &root, &root]);
    network.session(ClientConfig::with_signing_key(key, server_key.public_key()));
    let bad = HandshakeFailure::Refused(AlertDescription::BAD_CERTIFICATE);
    assert_eq!(network.failures(Host::Server), [bad]);
    assert!(network.certificate_faults.is_empty());
}

#[test]
fn a_raw_public_key_that_nobody_has_is_refused() {
    let server_key = raw_key(2);
    let mut network = network(&server_key);
    network.session(ClientConfig::with_signing_key(
        raw_key(3),
        server_key.public_key(),
    ));
    let denied = AlertDescription::ACCESS_DENIED;
    let refused = HandshakeFailure::Refused(denied);
    assert_eq!(network.failures(Host::Server), [refused]);
}

#[test]
fn a_client_refuses_a_server_with_another_key() {
    let mut network = network(&raw_key(2));
    network.session(ClientConfig::with_signing_key(
        raw_key(3),
        raw_key(4).public_key(),
    ));
    let bad = HandshakeFailure::Refused(AlertDescription::BAD_CERTIFICATE);
    assert_eq!(network.failures(Host::Client), [bad]);
}

/// Every message of the client's second flight before its Finished is proved by its signature: one
/// that was changed on its way leads to no session.
#[test]
fn no_changed_byte_of_a_proof_is_accepted() {
    let root = Authority::new("CA");
    let server_key = raw_key(2);
    for key in [raw_key(3), root.signs(&named(NAME), &[])] {
        let start = || {
            let mut network = network(&server_key);
            network.authorities = vec![root.certificate.clone()];
            network.public_keys.insert(key.public_key().to_vec());
            network
        };
        let config = ClientConfig::with_signing_key(Arc::clone(&key), server_key.public_key());
        let mut changed = 0;
        for place in 0.. {
            let mut network = start();
            let Some(()) = with_changed_proof(&mut network, config.clone(), place) else {
                break;
            };
            changed += 1;
            assert_eq!(identities(&network, Host::Server).len(), 0, "byte {place}");
        }
        assert!(changed > 200, "{changed}");
    }
}

#[test]
fn an_older_key_is_shown_no_longer() {
    let (first, second) = (raw_key(2), raw_key(4));
    let key = raw_key(3);
    let mut network = network(&first);
    network.public_keys.insert(key.public_key().to_vec());
    network.session(ClientConfig::with_signing_key(
        Arc::clone(&key),
        first.public_key(),
    ));
    network.server.show_key(Some(Arc::clone(&second)));
    network.session(ClientConfig::with_signing_key(
        Arc::clone(&key),
        second.public_key(),
    ));
    assert_eq!(identities(&network, Host::Server).len(), 2);
    network.session(ClientConfig::with_signing_key(key, first.public_key()));
    assert_eq!(identities(&network, Host::Server).len(), 2);
}

#[test]
fn a_client_with_a_pre_shared_key_is_not_asked_for_a_certificate() {
    let mut network = network(&raw_key(2));
    let offered = ClientConfig {
        cipher_suites: CipherSuite::ALL.to_vec(),
        ..ClientConfig::with_signing_key(raw_key(3), &[])
    };
    network.session(ClientConfig {
        psk_identity: crate::network::IDENTITY.into(),
        psk: crate::network::KEY.into(),
        ..offered
    });
    assert!(network.security(Host::Server).suite.has_psk());
}

#[test]
fn a_key_is_one_on_p256_and_its_certificate_is_its_own() {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
    let refused = SigningKey::from_der(&key.serialize_der(), Vec::new());
    assert_eq!(refused.unwrap_err(), InvalidKey::NotOnP256);
    assert_eq!(
        SigningKey::from_scalar(&[0; 32]).unwrap_err(),
        InvalidKey::NotOnP256
    );
    let key = KeyPair::generate().unwrap().serialize_der();
    let other = Authority::new("CA").certificate;
    let refused = SigningKey::from_der(&key, vec![other.into()]);
    assert_eq!(refused.unwrap_err(), InvalidKey::OtherCertificate);
}

/// Makes a handshake in which one byte of the client's proof is changed on its way; none if there
/// is no such byte.
fn with_changed_proof(network: &mut Network, config: ClientConfig, place: usize) -> Option<()> {
    network.connect(config, &mut || vec![]);
    let hello = network.sent.last().unwrap().1.clone();
    let peer = network.client_address;
    let server = network.server_address;
    let verify = sent_in(&network.deliver(Host::Server, peer, &hello));
    let mut flights = vec![verify];
    // Cookie, hello, the server's flight, the client's.
    for to in [Host::Client, Host::Server, Host::Client] {
        let from = if to == Host::Server { peer } else { server };
        let mut answer = Vec::new();
        for datagram in flights.pop()? {
            answer.extend(sent_in(&network.deliver(to, from, &datagram)));
        }
        flights.push(answer);
    }
    let mut flight = flights.pop()?;
    let places = flight
        .iter()
        .enumerate()
        .flat_map(|(index, datagram)| places_of_messages(datagram).map(move |at| (index, at)));
    let (index, at) = places.into_iter().nth(place)?;
    flight[index][at] ^= 0x10;
    for datagram in &flight {
        let out = network.deliver(Host::Server, peer, datagram);
        network.perform(Host::Server, &out, &mut || vec![]);
    }
    Some(())
}

/// Where the plain handshake messages in a datagram are, without the headers of their records,
/// which nothing protects.
fn places_of_messages(datagram: &[u8]) -> impl Iterator<Item = usize> + use<> {
    const HEADER: usize = 13;
    const HANDSHAKE: u8 = 22;
    let (mut start, mut places) = (0, Vec::new());
    while let Some([content_type, _, _, epoch @ .., high, low]) =
        datagram.get(start..start + HEADER)
    {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let end = start + HEADER + length;
        if *content_type == HANDSHAKE && epoch[..2] == [0, 0] {
            places.extend(start + HEADER..end);
        }
        start = end;
    }
    places.into_iter()
}

fn sent_in(out: &Effects) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    for effect in out.iter() {
        if let Effect::Send { datagram, .. } = effect {
            sent.push(datagram.to_vec());
        }
    }
    sent
}

fn network(server_key: &Arc<SigningKey>) -> Network {
    let config = Config {
        server_key: Some(Arc::clone(server_key)),
        ticket_keys: vec![TicketKey::from_bytes([9; 32])],
        ..server_config()
    };
    Network::with(config, 1)
}

fn identities(network: &Network, of: Host) -> Vec<&Identity> {
    let mut found = Vec::new();
    for (host, report) in &network.reports {
        if let Report::Established(identity, _) = report
            && *host == of
        {
            found.push(identity);
        }
    }
    found
}

pub(crate) fn raw_key(byte: u8) -> Arc<SigningKey> {
    Arc::new(SigningKey::from_scalar(&[byte; 32]).unwrap())
}

fn authority(name: &str) -> CertificateParams {
    let mut params = named(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

pub(crate) fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::OrganizationName, "Meters");
    params.distinguished_name.push(DnType::CommonName, name);
    params
}
