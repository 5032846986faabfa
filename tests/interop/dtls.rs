//! Do DTLS clients by others find a session with the crate `dtls`?
//!
//! OpenSSL's `s_client`, GnuTLS' `gnutls-cli`, libcoap's clients on OpenSSL and on GnuTLS, and
//! Californium's Scandium, which Leshan uses, with Connection ID; and the crate dimpl.

mod dimpl_client;
pub(crate) mod nat;
mod server;

use std::fmt::Write;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
};

use dtls::{
    AlertDescription, CipherSuite, Config, HandshakeFailure, Identity, SigningKey, TicketKey,
};

use crate::leshan::QUICK_START;
use crate::vocabulary::poll::until;
use crate::vocabulary::program::Program;

use self::nat::Nat;
use self::server::{DtlsServer, IDENTITY, KEY, KnownKeys};

/// The suites by their names in OpenSSL, which has ECDHE_PSK with CBC alone.
const OF_OPENSSL: [(CipherSuite, &str); 5] = [
    (CipherSuite::PskAes128Ccm8, "PSK-AES128-CCM8"),
    (CipherSuite::PskAes128Ccm, "PSK-AES128-CCM"),
    (CipherSuite::PskAes128Gcm, "PSK-AES128-GCM-SHA256"),
    (CipherSuite::PskAes128Cbc, "PSK-AES128-CBC-SHA256"),
    (
        CipherSuite::EcdhePskAes128Cbc,
        "ECDHE-PSK-AES128-CBC-SHA256",
    ),
];

/// The suites by their names in GnuTLS. It has ECDHE_PSK with CBC alone, too, but its client 3.7.9
/// ends with a segmentation fault after such a handshake.
const OF_GNUTLS: [(CipherSuite, &str); 4] = [
    (CipherSuite::PskAes128Ccm8, "+PSK:+AES-128-CCM-8"),
    (CipherSuite::PskAes128Ccm, "+PSK:+AES-128-CCM"),
    (CipherSuite::PskAes128Gcm, "+PSK:+AES-128-GCM"),
    (CipherSuite::PskAes128Cbc, "+PSK:+AES-128-CBC:+SHA256"),
];

/// Those with CBC, which both have without encrypt-then-MAC, too.
const BARE_OF_OPENSSL: [(CipherSuite, &str); 2] = [
    (CipherSuite::PskAes128Cbc, "PSK-AES128-CBC-SHA256"),
    (
        CipherSuite::EcdhePskAes128Cbc,
        "ECDHE-PSK-AES128-CBC-SHA256",
    ),
];
const BARE_OF_GNUTLS: &str = "+PSK:+AES-128-CBC:+SHA256";

/// The suites by their names in Scandium.
const OF_SCANDIUM: [(CipherSuite, &str); 4] = [
    (CipherSuite::PskAes128Ccm8, "TLS_PSK_WITH_AES_128_CCM_8"),
    (CipherSuite::PskAes128Ccm, "TLS_PSK_WITH_AES_128_CCM"),
    (
        CipherSuite::EcdhePskAes128Ccm8,
        "TLS_ECDHE_PSK_WITH_AES_128_CCM_8_SHA256",
    ),
    (
        CipherSuite::EcdhePskAes128Gcm,
        "TLS_ECDHE_PSK_WITH_AES_128_GCM_SHA256",
    ),
];

#[test]
fn openssl_finds_a_session_with_every_suite_that_it_has() {
    for (suite, name) in OF_OPENSSL {
        let server = DtlsServer::start("127.0.9.70", config());
        let mut client = s_client(&server, name, &[]);
        assert_eq!(echo(&mut client), "hello");
        let handshake = server.handshake();
        assert_eq!(handshake.security.suite, suite);
        assert!(handshake.security.has_extended_master_secret);
        assert_eq!(
            handshake.identity,
            Identity::Psk(IDENTITY.as_bytes().into())
        );
    }
}

#[test]
fn a_pre_shared_key_without_encrypt_then_mac_is_refused_unless_it_is_admitted() {
    let refused = DtlsServer::start("127.0.9.112", config());
    for (_, name) in BARE_OF_OPENSSL {
        let mut client = s_client(&refused, name, &["-no_etm"]);
        client.wait_for("an alert", |line| {
            line.contains("alert handshake failure").then_some(())
        });
    }
    let mut client = gnutls(&refused, &format!("{BARE_OF_GNUTLS}:%NO_ETM"), &of_psk());
    client.wait_for("an alert", |line| {
        line.contains("Handshake failed").then_some(())
    });
    assert!(refused.handshakes().is_empty());
    for (suite, name) in BARE_OF_OPENSSL {
        let server = DtlsServer::start("127.0.9.112", admitting_bare_cbc(config()));
        let mut client = s_client(&server, name, &["-no_etm"]);
        assert_eq!(echo(&mut client), "hello");
        assert_eq!(server.handshake().security.suite, suite);
    }
    let server = DtlsServer::start("127.0.9.112", admitting_bare_cbc(config()));
    let mut client = gnutls(&server, &format!("{BARE_OF_GNUTLS}:%NO_ETM"), &of_psk());
    assert_eq!(echo(&mut client), "hello");
    let suite = server.handshake().security.suite;
    assert_eq!(suite, CipherSuite::PskAes128Cbc);
}

#[test]
fn openssl_resumes_a_session_by_ticket_and_by_id() {
    let with_tickets = Config {
        ticket_keys: vec![TicketKey::from_bytes([3; 32])],
        ..config()
    };
    for (name, config) in [("ticket", with_tickets), ("id", config())] {
        let server = DtlsServer::start("127.0.9.71", config);
        let file = scratch(name);
        let file = file.to_string_lossy();
        let suite = "PSK-AES128-CCM8";
        let mut client = s_client(&server, suite, &["-sess_out", &file]);
        assert_eq!(echo(&mut client), "hello");
        drop(client);
        let mut client = s_client(&server, suite, &["-sess_in", &file]);
        client.wait_for("a resumed session", |line| {
            line.starts_with("Reused,").then_some(())
        });
        assert_eq!(echo(&mut client), "hello");
        let handshakes = server.handshakes();
        let resumed: Vec<bool> = handshakes.iter().map(|it| it.security.is_resumed).collect();
        assert_eq!(resumed, [false, true], "by {name}");
    }
}

#[test]
fn openssl_accepts_short_records_and_small_datagrams() {
    let small = Config {
        datagram_max: 100,
        ..config()
    };
    let server = DtlsServer::start("127.0.9.72", small);
    let mut client = s_client(&server, "PSK-AES128-CCM8", &["-maxfraglen", "512"]);
    assert_eq!(echo(&mut client), "hello");
}

#[test]
fn openssl_with_a_wrong_key_is_told() {
    let server = DtlsServer::start("127.0.9.73", config());
    let mut command = Command::new("openssl");
    let address = server.address.to_string();
    command.args(["s_client", "-dtls1_2", "-connect", &address]);
    command.args([
        "-cipher",
        "PSK-AES128-CCM8:@SECLEVEL=0",
        "-psk_identity",
        IDENTITY,
    ]);
    let mut client = Program::start(command.args(["-psk", "00112233445566778899aabbccddeeff"]));
    client.wait_for("an alert", |line| {
        line.contains("alert decrypt error").then_some(())
    });
    assert!(server.handshakes().is_empty());
}

#[test]
fn gnutls_finds_a_session_with_every_suite_that_it_has() {
    for (suite, name) in OF_GNUTLS {
        let server = DtlsServer::start("127.0.9.74", config());
        let mut client = gnutls(&server, name, &of_psk());
        client.wait_for("a session", |line| {
            line.contains("Handshake was completed").then_some(())
        });
        assert_eq!(echo(&mut client), "hello");
        let handshake = server.handshake();
        assert_eq!(handshake.security.suite, suite);
        assert!(handshake.security.has_extended_master_secret);
    }
}

#[test]
fn dimpl_finds_a_session() {
    let server = DtlsServer::start("127.0.9.113", config());
    assert_eq!(dimpl_client::echo(server.address, "hello"), b"hello");
    let security = server.handshake().security;
    assert_eq!(security.suite, CipherSuite::PskAes128Ccm8);
    assert!(security.has_extended_master_secret);
}

#[test]
fn libcoap_asks_over_both_of_its_libraries() {
    for library in ["openssl", "gnutls"] {
        let server = DtlsServer::start("127.0.9.75", config());
        let mut command = Command::new(format!("coap-client-{library}"));
        let key = String::from_utf8_lossy(KEY);
        command.args(["-B", "20", "-u", IDENTITY, "-k", &key]);
        command.arg(format!("coaps://{}/greeting", server.address));
        let printed = Program::start(&mut command).finish();
        let is_greeted = printed.iter().any(|line| line.contains("hello from dtls"));
        assert!(is_greeted, "{library}: {printed:?}");
        assert!(server.handshake().security.suite.has_psk());
    }
}

#[test]
fn scandium_finds_a_session_with_ephemeral_keys_and_without() {
    for (suite, name) in OF_SCANDIUM {
        let server = DtlsServer::start("127.0.9.78", config());
        let mut device = scandium(server.address, "0", name);
        exchange(&mut device);
        let security = server.handshake().security;
        assert_eq!(security.suite, suite);
        assert!(security.has_extended_master_secret);
    }
}

#[test]
fn scandium_has_a_raw_public_key() {
    for (suite, name) in [
        (
            CipherSuite::EcdheEcdsaAes128Ccm8,
            "TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8",
        ),
        (
            CipherSuite::EcdheEcdsaAes128Gcm,
            "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        ),
    ] {
        let server = DtlsServer::start("127.0.9.79", with_key());
        let mut device = scandium(server.address, "0", name);
        let public_key = device.wait_for("its key", |line| {
            line.strip_prefix("key ").map(str::to_owned)
        });
        exchange(&mut device);
        let handshake = server.handshake();
        assert_eq!(handshake.security.suite, suite);
        assert!(handshake.security.has_connection_id);
        let Identity::RawPublicKey(proved) = handshake.identity else {
            panic!("{handshake:?}");
        };
        assert_eq!(hex(&proved), public_key);
        device.write_line("resume");
        exchange(&mut device);
        assert!(server.handshake().security.is_resumed);
    }
}

#[test]
fn openssl_and_gnutls_have_certificates() {
    let certified = Certified::new("certificates");
    for (suite, name) in [
        (CipherSuite::EcdheEcdsaAes128Ccm8, "ECDHE-ECDSA-AES128-CCM8"),
        (
            CipherSuite::EcdheEcdsaAes128Gcm,
            "ECDHE-ECDSA-AES128-GCM-SHA256",
        ),
        (
            CipherSuite::EcdheEcdsaAes128Cbc,
            "ECDHE-ECDSA-AES128-SHA256",
        ),
    ] {
        let server = certified.server(config());
        let mut client = certified.s_client(&server, name, &[]);
        assert_eq!(echo(&mut client), "hello");
        check_certified(&server, suite);
    }
    for (suite, cipher) in [
        (CipherSuite::EcdheEcdsaAes128Ccm8, "+AES-128-CCM-8"),
        (CipherSuite::EcdheEcdsaAes128Gcm, "+AES-128-GCM"),
        (CipherSuite::EcdheEcdsaAes128Cbc, "+AES-128-CBC:+SHA256"),
    ] {
        let server = certified.server(config());
        let mut client = certified.gnutls(&server, cipher);
        assert_eq!(echo(&mut client), "hello");
        check_certified(&server, suite);
    }
}

#[test]
fn a_certificate_without_encrypt_then_mac_is_refused_unless_it_is_admitted() {
    let (suite, name) = (
        CipherSuite::EcdheEcdsaAes128Cbc,
        "ECDHE-ECDSA-AES128-SHA256",
    );
    let certified = Certified::new("bare-cbc");
    let refused = certified.server(config());
    let mut client = certified.s_client(&refused, name, &["-no_etm"]);
    client.wait_for("an alert", |line| {
        line.contains("alert handshake failure").then_some(())
    });
    assert!(refused.handshakes().is_empty());
    let server = certified.server(admitting_bare_cbc(config()));
    let mut client = certified.s_client(&server, name, &["-no_etm"]);
    assert_eq!(echo(&mut client), "hello");
    check_certified(&server, suite);
    let server = certified.server(admitting_bare_cbc(config()));
    let mut client = certified.gnutls(&server, "+AES-128-CBC:+SHA256:%NO_ETM");
    assert_eq!(echo(&mut client), "hello");
    check_certified(&server, suite);
}

#[test]
fn a_raw_public_key_that_nobody_knows_is_refused() {
    let server = DtlsServer::start_with("127.0.9.67", with_key(), KnownKeys::None);
    let mut device = scandium(server.address, "0", "TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8");
    device.write_line("send hello");
    let failures = until("a refusal", || {
        let failures = server.failures();
        (!failures.is_empty()).then_some(failures)
    });
    let expected = HandshakeFailure::Refused(AlertDescription::ACCESS_DENIED);
    assert_eq!(failures[0], expected);
    assert!(server.handshakes().is_empty());
}

#[test]
fn scandium_keeps_its_session_at_another_address() {
    // Its own Connection IDs: none, and of six bytes.
    for length in ["0", "6"] {
        let server = DtlsServer::start("127.0.9.76", config());
        let nat = Nat::start(server.address);
        let mut device = scandium(nat.address, length, OF_SCANDIUM[0].1);
        exchange(&mut device);
        let security = server.handshake().security;
        assert_eq!(security.suite, CipherSuite::PskAes128Ccm8);
        assert!(security.has_connection_id && security.has_extended_master_secret);
        for moves in 1..=2 {
            nat.rebind();
            exchange(&mut device);
            assert_eq!(server.moves(), moves);
        }
        assert_eq!(server.handshakes().len(), 1);
    }
}

#[test]
fn scandium_without_a_connection_id_resumes_its_session_by_id() {
    let server = DtlsServer::start("127.0.9.77", config());
    let mut device = scandium(server.address, "-1", OF_SCANDIUM[0].1);
    exchange(&mut device);
    assert!(!server.handshake().security.has_connection_id);
    device.write_line("resume");
    exchange(&mut device);
    let handshakes = server.handshakes();
    let resumed: Vec<bool> = handshakes.iter().map(|it| it.security.is_resumed).collect();
    assert_eq!(resumed, [false, true]);
    assert!(server.failures().is_empty());
}

/// A configuration with a key of the server.
fn with_key() -> Config {
    let key = rcgen::KeyPair::generate().unwrap().serialize_der();
    let key = SigningKey::from_der(&key, Vec::new()).unwrap();
    Config {
        server_key: Some(Arc::new(key)),
        ..config()
    }
}

fn config() -> Config {
    Config {
        connection_id_prefix: (*b"s").into(),
        ..Config::new([1; 32])
    }
}

fn admitting_bare_cbc(config: Config) -> Config {
    Config {
        accepts_bare_cbc: true,
        ..config
    }
}

fn s_client(server: &DtlsServer, suite: &str, arguments: &[&str]) -> Program {
    let key = hex(KEY);
    let psk = ["-psk_identity", IDENTITY, "-psk", &key];
    openssl(server, suite, &[&psk[..], arguments].concat())
}

fn openssl(server: &DtlsServer, suite: &str, arguments: &[&str]) -> Program {
    let mut command = Command::new("openssl");
    let address = server.address.to_string();
    command.args(["s_client", "-dtls1_2", "-connect", &address]);
    // OpenSSL counts a tag of 8 bytes as weak.
    command.args(["-cipher", &format!("{suite}:@SECLEVEL=0")]);
    Program::start(command.args(arguments))
}

/// `gnutls-cli` with this end of its priority.
fn gnutls(server: &DtlsServer, priority: &str, arguments: &[String]) -> Program {
    let priority = format!(
        "NONE:+VERS-DTLS1.2:+AEAD:+SIGN-ALL:+GROUP-SECP256R1:+COMP-NULL:+CTYPE-ALL:{priority}"
    );
    let mut command = Command::new("gnutls-cli");
    command
        .args(["--udp", "--priority", &priority])
        .args(arguments);
    command.args(["--port", &server.address.port().to_string()]);
    Program::start(command.arg(server.address.ip().to_string()))
}

/// The pre-shared key for `gnutls-cli`.
fn of_psk() -> [String; 4] {
    let key = hex(KEY);
    ["--pskusername", IDENTITY, "--pskkey", &key].map(str::to_owned)
}

/// A server and its clients with certificates of one authority.
struct Certified {
    server_key: Arc<SigningKey>,
    authority: Box<[u8]>,
    files: [String; 3],
}

impl Certified {
    /// Makes them, with files in a folder of this name.
    fn new(folder: &str) -> Self {
        let folder = scratch_folder(folder);
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = params.self_signed(&key).unwrap();
        let issuer = Issuer::new(params, key);
        let certified = |name: &str| {
            let mut params = CertificateParams::default();
            params.distinguished_name = DistinguishedName::new();
            params.distinguished_name.push(DnType::CommonName, name);
            let key = KeyPair::generate().unwrap();
            let certificate = params.signed_by(&key, &issuer).unwrap();
            (key, certificate)
        };
        let (key, own) = certified("127.0.9.66");
        let chain = vec![own.der().to_vec().into()];
        let server_key = SigningKey::from_der(&key.serialize_der(), chain).unwrap();
        let (key, own) = certified(IDENTITY);
        let files = [
            ("ca.pem", authority.pem()),
            ("cert.pem", own.pem()),
            ("key.pem", key.serialize_pem()),
        ]
        .map(|(name, pem)| {
            let path = folder.join(name);
            fs::write(&path, pem).unwrap();
            path.to_string_lossy().into_owned()
        });
        Self {
            server_key: Arc::new(server_key),
            authority: authority.der().to_vec().into(),
            files,
        }
    }

    fn server(&self, config: Config) -> DtlsServer {
        let config = Config {
            server_key: Some(Arc::clone(&self.server_key)),
            ..config
        };
        let known = KnownKeys::CertifiedBy(self.authority.clone());
        DtlsServer::start_with("127.0.9.66", config, known)
    }

    fn s_client(&self, server: &DtlsServer, suite: &str, arguments: &[&str]) -> Program {
        let [ca, cert, key] = &self.files;
        let own = [
            "-CAfile",
            ca,
            "-verify_return_error",
            "-cert",
            cert,
            "-key",
            key,
        ];
        openssl(server, suite, &[&own[..], arguments].concat())
    }

    fn gnutls(&self, server: &DtlsServer, cipher: &str) -> Program {
        let [_, cert, key] = &self.files;
        let own = [
            "--no-ca-verification",
            "--x509certfile",
            cert,
            "--x509keyfile",
            key,
        ];
        gnutls(
            server,
            &format!("+ECDHE-ECDSA:{cipher}"),
            &own.map(str::to_owned),
        )
    }
}

/// A session with this suite, of the device with the certificate.
fn check_certified(server: &DtlsServer, suite: CipherSuite) {
    let handshake = server.handshake();
    assert_eq!(handshake.security.suite, suite);
    let name = Identity::Certificate(IDENTITY.as_bytes().into());
    assert_eq!(handshake.identity, name);
}

/// Writes a line to a client that sends it, and returns what comes back.
fn echo(client: &mut Program) -> String {
    client.write_line("hello");
    client.wait_for("the echo", |line| {
        let line = line.trim_start_matches("- Received[6]: ");
        (line == "hello").then(|| line.to_owned())
    })
}

/// A request of Scandium and its answer.
fn exchange(device: &mut Program) {
    device.write_line("send hello");
    device.wait_for("the echo", |line| (line == "received hello").then_some(()));
}

/// `dtls/ScandiumClient.java`, which needs no compilation before it is run.
fn scandium(server: SocketAddr, connection_id: &str, suite: &str) -> Program {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("target/interop/leshan/lib");
    let what = folder.display();
    assert!(folder.exists(), "`cargo xtask prepare` makes {what}");
    let mut command = Command::new("java");
    command
        .args(QUICK_START)
        .args(["-cp", &format!("{what}/*")]);
    command.arg(root.join("tests/interop/dtls/ScandiumClient.java"));
    let key = String::from_utf8_lossy(KEY);
    let address = server.to_string();
    Program::start(command.args([&address, IDENTITY, &key, connection_id, suite]))
}

fn hex(bytes: &[u8]) -> String {
    let mut digits = String::new();
    for byte in bytes {
        write!(digits, "{byte:02x}").unwrap();
    }
    digits
}

/// A folder for the files of a test.
fn scratch_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A file that does not exist yet.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("openssl-session-by-{name}.pem"));
    fs::remove_file(&file).ok();
    file
}
