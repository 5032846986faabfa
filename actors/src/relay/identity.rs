//! Who is a node of this service? Whoever has its secret.
//!
//! Both ends of a connection show the same public key, whose private key is derived from the
//! secret, and sign the handshake with it: TLS 1.3 with raw public keys (RFC 7250). Nobody else
//! reads, changes or repeats what nodes send each other.

use std::sync::Arc;

use engine::node::secret::private_key_of;
use rustls::client::AlwaysResolvesClientRawPublicKeys;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::{self, sign};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme,
};
use zeroize::Zeroizing;

/// What precedes the seed of an Ed25519 key in PKCS #8 (RFC 8410 section 7).
const PKCS8_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// What a node of this service proves itself with to the others.
#[derive(Clone)]
pub struct NodeIdentity {
    key: Arc<CertifiedKey>,
    peers: Arc<SameKey>,
}

impl NodeIdentity {
    /// The identity of the nodes that have this secret.
    pub fn of_secret(secret: &[u8]) -> Self {
        let seed = private_key_of(secret);
        let der = Zeroizing::new([&PKCS8_PREFIX[..], &seed[..]].concat());
        let key = sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(der.as_slice()));
        let key = key.expect("every seed is a key");
        let public = key.public_key().expect("an Ed25519 key has its public key");
        let shown = CertificateDer::from(public.as_ref().to_vec());
        let provider = aws_lc_rs::default_provider();
        let peers = SameKey {
            shown: shown.clone(),
            algorithms: provider.signature_verification_algorithms,
        };
        Self {
            key: Arc::new(CertifiedKey::new(vec![shown], key)),
            peers: Arc::new(peers),
        }
    }

    /// The TLS configuration of the node that is connected to.
    pub fn server_config(&self) -> ServerConfig {
        let (key, peers) = (Arc::clone(&self.key), Arc::clone(&self.peers));
        ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .expect("the provider has TLS 1.3")
            .with_client_cert_verifier(peers)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(key)))
    }

    /// The TLS configuration of the node that connects.
    pub fn client_config(&self) -> ClientConfig {
        let (key, peers) = (Arc::clone(&self.key), Arc::clone(&self.peers));
        ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .expect("the provider has TLS 1.3")
            .dangerous()
            .with_custom_certificate_verifier(peers)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(key)))
    }
}

/// Accepts the own key and no other.
#[derive(Debug)]
struct SameKey {
    shown: CertificateDer<'static>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl SameKey {
    fn check(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        match *shown == self.shown {
            true => Ok(()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn check_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(shown.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
    }
}

/// Neither configuration has TLS 1.2.
fn tls13_alone() -> Error {
    Error::General("nodes use TLS 1.3 alone".to_owned())
}

impl ServerCertVerifier for SameKey {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(shown).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(tls13_alone())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for SameKey {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(shown).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(tls13_alone())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::ServerName;
    use rustls::{ClientConnection, ServerConnection};

    use super::*;

    const SECRET: &[u8] = b"a secret of more than 32 characters";

    #[test]
    fn nodes_with_one_secret_trust_each_other() {
        let (client, server) = connected(SECRET, SECRET).unwrap();
        assert!(!client.is_handshaking() && !server.is_handshaking());
    }

    #[test]
    fn nodes_with_different_secrets_refuse_each_other() {
        let other = b"another secret of more than 32 characters";
        assert!(connected(SECRET, other).is_err());
    }

    #[test]
    fn a_client_that_shows_no_key_is_refused() {
        let identity = NodeIdentity::of_secret(SECRET);
        let provider = Arc::new(aws_lc_rs::default_provider());
        let anonymous = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(identity.peers.clone())
            .with_no_client_auth();
        assert!(handshake(anonymous, identity.server_config()).is_err());
    }

    fn connected(
        client: &[u8],
        server: &[u8],
    ) -> Result<(ClientConnection, ServerConnection), Error> {
        let client = NodeIdentity::of_secret(client).client_config();
        handshake(client, NodeIdentity::of_secret(server).server_config())
    }

    fn handshake(
        client: ClientConfig,
        server: ServerConfig,
    ) -> Result<(ClientConnection, ServerConnection), Error> {
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
        let mut server = ServerConnection::new(Arc::new(server)).unwrap();
        while client.wants_write() || server.wants_write() {
            let mut flight = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut flight).unwrap();
            }
            server.read_tls(&mut flight.as_slice()).unwrap();
            server.process_new_packets()?;
            let mut flight = Vec::new();
            while server.wants_write() {
                server.write_tls(&mut flight).unwrap();
            }
            client.read_tls(&mut flight.as_slice()).unwrap();
            client.process_new_packets()?;
        }
        Ok((client, server))
    }
}
