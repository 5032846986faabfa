//! Does the API speak TLS, and follow its certificate while it runs?

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, ProtocolVersion, RootCertStore, StreamOwned,
    SupportedProtocolVersion,
};
use tempfile::TempDir;

use crate::vocabulary::http::Request;
use crate::vocabulary::poll::{PATIENCE, until};
use crate::vocabulary::service::Service;

#[test]
fn https_is_tls_1_2_or_1_3_and_never_http() {
    let setup = TlsService::new();
    for (version, wanted) in [
        (&TLS12, ProtocolVersion::TLSv1_2),
        (&TLS13, ProtocolVersion::TLSv1_3),
    ] {
        let answer = setup.ask(&setup.first, &[version]).unwrap();
        assert_eq!(answer.version, Some(wanted));
        assert!(answer.text.starts_with("HTTP/1.1 200 "), "{}", answer.text);
        let is_secure_only = |line: &str| line.eq_ignore_ascii_case(SECURE_ONLY);
        assert!(answer.text.lines().any(is_secure_only), "{}", answer.text);
    }
    // A caller that speaks no TLS gets no response.
    let plain = Request::new("GET", "/livez").try_send(setup.service.http);
    assert!(plain.is_err(), "{plain:?}");
    let another = generate_simple_self_signed([HOST.to_owned()]).unwrap();
    assert!(setup.ask(&another, &BOTH).is_err(), "it is not trusted");
}

#[test]
fn plain_http_has_no_strict_transport_security() {
    let service = Service::start();
    let answer = Request::new("GET", "/livez").send(service.http);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("strict-transport-security"), None);
}

#[test]
fn a_changed_certificate_is_shown_without_a_restart() {
    let setup = TlsService::new();
    let second = generate_simple_self_signed([HOST.to_owned()]).unwrap();
    setup.write(&second);
    until("the second certificate", || setup.ask(&second, &BOTH).ok());
    assert!(setup.ask(&setup.first, &BOTH).is_err());
}

#[test]
fn a_hangup_has_the_certificate_read_again_and_does_not_stop_the_service() {
    let mut setup = TlsService::new();
    setup.service.hang_up();
    setup.once_logged("TLS certificate read again");
    assert!(setup.ask(&setup.first, &BOTH).is_ok());
    let second = generate_simple_self_signed([HOST.to_owned()]).unwrap();
    let mut earlier = setup.connect(&setup.first, &BOTH).unwrap();
    setup.write(&second);
    setup.service.hang_up();
    until("the second certificate", || setup.ask(&second, &BOTH).ok());
    // A connection outlives the certificate that it began with.
    let answer = exchange(&mut earlier).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(setup.service.stop().success());
}

#[test]
fn a_certificate_that_cannot_be_used_leaves_the_one_before_it() {
    let mut setup = TlsService::new();
    setup.service.may_fail();
    let second = generate_simple_self_signed([HOST.to_owned()]).unwrap();
    std::fs::write(setup.cert(), second.cert.pem()).unwrap();
    setup.service.hang_up();
    setup.once_logged("the TLS certificate stays as it was");
    assert!(setup.ask(&setup.first, &BOTH).is_ok());
    assert!(setup.ask(&second, &BOTH).is_err());
    std::fs::write(setup.cert(), "no certificate").unwrap();
    setup.service.hang_up();
    setup.once_logged("the TLS certificate stays as it was");
    assert!(setup.ask(&setup.first, &BOTH).is_ok());
    setup.write(&second);
    until("the second certificate", || setup.ask(&second, &BOTH).ok());
}

/// What the certificates are for.
const HOST: &str = "signalbox.test";

const SECURE_ONLY: &str = "strict-transport-security: max-age=31536000";

const BOTH: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

type Certificate = CertifiedKey<rcgen::KeyPair>;

type Secured = StreamOwned<ClientConnection, TcpStream>;

/// A service with a certificate, whose files can be replaced.
struct TlsService {
    service: Service,
    first: Certificate,
    files: TempDir,
}

struct Answer {
    version: Option<ProtocolVersion>,
    text: String,
}

impl TlsService {
    fn new() -> Self {
        let files = TempDir::new().unwrap();
        let first = generate_simple_self_signed([HOST.to_owned()]).unwrap();
        let [cert, key] = ["cert.pem", "key.pem"].map(|name| files.path().join(name));
        std::fs::write(&cert, first.cert.pem()).unwrap();
        std::fs::write(&key, first.signing_key.serialize_pem()).unwrap();
        let settings = [
            ("SIGNALBOX_TLS_CERT", cert.to_str().unwrap()),
            ("SIGNALBOX_TLS_KEY", key.to_str().unwrap()),
        ];
        Self {
            service: Service::start_with(&settings),
            first,
            files,
        }
    }

    fn cert(&self) -> PathBuf {
        self.files.path().join("cert.pem")
    }

    /// Replaces both files, each whole, as tools that renew certificates do.
    fn write(&self, certificate: &Certificate) {
        let texts = [
            ("key.pem", certificate.signing_key.serialize_pem()),
            ("cert.pem", certificate.cert.pem()),
        ];
        for (name, text) in texts {
            let whole = self.files.path().join("new.pem");
            std::fs::write(&whole, text).unwrap();
            std::fs::rename(&whole, self.files.path().join(name)).unwrap();
        }
    }

    fn once_logged(&mut self, text: &str) {
        self.service.wait_for_line(text);
    }

    fn ask(
        &self,
        trusted: &Certificate,
        versions: &[&'static SupportedProtocolVersion],
    ) -> std::io::Result<Answer> {
        let mut secured = self.connect(trusted, versions)?;
        let text = exchange(&mut secured)?;
        Ok(Answer {
            version: secured.conn.protocol_version(),
            text,
        })
    }

    /// A connection on which the handshake is complete.
    fn connect(
        &self,
        trusted: &Certificate,
        versions: &[&'static SupportedProtocolVersion],
    ) -> std::io::Result<Secured> {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.cert.der().clone()).unwrap();
        let config = ClientConfig::builder_with_protocol_versions(versions)
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(HOST).unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let stream = TcpStream::connect(self.service.http)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut secured = StreamOwned::new(connection, stream);
        while secured.conn.is_handshaking() {
            secured.conn.complete_io(&mut secured.sock)?;
        }
        Ok(secured)
    }
}

fn exchange(secured: &mut Secured) -> std::io::Result<String> {
    secured.write_all(b"GET /livez HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    match secured.read_to_end(&mut answer) {
        // The end of the connection without `close_notify`.
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {}
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
