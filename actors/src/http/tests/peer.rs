//! Systems of customers, well-behaved and others: each a listener on the loopback with a thread.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A system of a customer.
pub(super) struct Peer {
    /// Where it listens.
    pub(super) at: SocketAddr,
    /// The requests it received, by connection.
    received: Arc<Mutex<Vec<Vec<String>>>>,
}

/// Both directions of a connection.
pub(super) trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

impl Peer {
    /// Answers every request with these bytes, and keeps the connection open.
    pub(super) fn that_answers(answer: &'static str) -> Self {
        Self::that(move |stream, record| {
            while let Some(request) = read_request(stream) {
                record(request);
                stream.write_all(answer.as_bytes())?;
            }
            Ok(())
        })
    }

    /// Reads a request from each connection, then runs this on the connection, and ends it.
    pub(super) fn that_ends(
        does: impl Fn(&mut dyn Stream) -> io::Result<()> + Send + 'static,
    ) -> Self {
        Self::that(move |stream, record| {
            if let Some(request) = read_request(stream) {
                record(request);
                does(stream)?;
            }
            Ok(())
        })
    }

    /// Reads a request from each connection, sends the beginning of a response, and resets it.
    pub(super) fn that_resets_after(beginning: &'static str) -> Self {
        let resets = |mut stream: TcpStream, record: &mut dyn FnMut(String)| {
            if let Some(request) = read_request(&mut stream) {
                record(request);
                stream.write_all(beginning.as_bytes())?;
                socket2::SockRef::from(&stream).set_linger(Some(std::time::Duration::ZERO))?;
            }
            Ok(())
        };
        Self::serving(resets)
    }

    /// Sends this at once, then reads until the connection ends.
    pub(super) fn that_greets(greeting: &'static str) -> Self {
        Self::that(move |stream, _| {
            stream.write_all(greeting.as_bytes())?;
            stream.read_to_end(&mut Vec::new()).map(drop)
        })
    }

    /// Answers every request with 200 over TLS, with this certificate.
    pub(super) fn by_tls(certificate: Issued) -> Self {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certificate.key));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.certificate], key)
            .unwrap();
        let config = Arc::new(config);
        Self::serving(move |stream, record| {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream);
            while let Some(request) = read_request(&mut stream) {
                record(request);
                stream.write_all(OK.as_bytes())?;
            }
            Ok(())
        })
    }

    fn that(
        does: impl Fn(&mut dyn Stream, &mut dyn FnMut(String)) -> io::Result<()> + Send + 'static,
    ) -> Self {
        Self::serving(move |mut stream, record| does(&mut stream, record))
    }

    /// Serves one connection after another, for as long as the tests run.
    fn serving(
        serve: impl Fn(TcpStream, &mut dyn FnMut(String)) -> io::Result<()> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&received);
        thread::spawn(move || {
            for stream in listener.incoming() {
                shared.lock().unwrap().push(Vec::new());
                let mut record = |request| {
                    let mut connections = shared.lock().unwrap();
                    connections.last_mut().unwrap().push(request);
                };
                // The other side may end it at any time.
                let _ended = serve(stream.unwrap(), &mut record);
            }
        });
        Self { at, received }
    }

    /// The URL of a path of it.
    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.at)
    }

    /// The requests it received, by connection.
    pub(super) fn received(&self) -> Vec<Vec<String>> {
        self.received.lock().unwrap().clone()
    }
}

/// A response without a body.
pub(super) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// A request as received, head and body; nothing at the end of the connection.
fn read_request(stream: &mut dyn Stream) -> Option<String> {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        request.push(byte[0]);
    }
    let head = String::from_utf8(request).unwrap();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        (name == "content-length").then(|| value.parse().unwrap())
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    Some(head + &String::from_utf8(body).unwrap())
}

/// An authority that issues certificates.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key.
pub(super) struct Issued {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Authority {
    /// A new one.
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    /// Its own certificate, as PEM.
    pub(super) fn pem(&self) -> Vec<u8> {
        self.0.pem().into_bytes()
    }

    /// A certificate for a host.
    pub(super) fn issues(&self, host: &str) -> Issued {
        self.issues_until(host, 2999)
    }

    /// A certificate for a host that is valid until the beginning of a year.
    pub(super) fn issues_until(&self, host: &str, year: i32) -> Issued {
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Issued {
            certificate: certificate.der().clone(),
            key: key.serialize_der(),
        }
    }
}

/// A certificate for a host that no authority issued.
pub(super) fn self_signed(host: &str) -> Issued {
    let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    Issued {
        certificate: certificate.der().clone(),
        key: key.serialize_der(),
    }
}
