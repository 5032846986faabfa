//! How does the service connect to customers' MQTT brokers? By TCP and TLS.
//!
//! A customer chooses the broker, as it chooses an endpoint: each connection is checked by the
//! address it leads to. What is said on it is decided by `engine::delivery::mqtt::link`.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use engine::delivery::address::broker::{BrokerEncryption, BrokerUrl};
use engine::delivery::address::policy::AddressPolicy;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::http::resolver::{GuardedResolver, SystemResolver};
use crate::http::{HttpClient, UnreachableReason, fault, trust};
use crate::lease;

/// Connects to brokers.
#[derive(Clone)]
pub struct BrokerConnector {
    resolver: Arc<GuardedResolver>,
    policy: AddressPolicy,
    connect_timeout: Duration,
    timeout: Duration,
    roots: Arc<RootCertStore>,
}

/// A broker, and what TLS needs for it.
#[derive(Clone)]
pub struct BrokerAddress {
    /// Where it is.
    pub url: BrokerUrl,
    /// What TLS needs.
    pub tls: BrokerTls,
}

/// Whom the service trusts, and what it shows, in PEM.
#[derive(Clone, Default)]
pub struct BrokerTls {
    /// The CA certificates that are trusted instead of those of the system.
    pub ca: Option<String>,
    /// The certificate of the service, with its chain, and its private key.
    pub certificate: Option<(String, String)>,
}

/// Why TLS cannot be set up.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BrokerTlsFault {
    /// The text has no CA certificate, or one that cannot be read.
    #[error("must be CA certificates in PEM")]
    Ca,
    /// The text has no certificate, or one that cannot be read.
    #[error("must be certificates in PEM")]
    Certificate,
    /// The text has no private key.
    #[error("must be a private key in PEM, without a passphrase")]
    Key,
    /// The key cannot be used with the certificate.
    #[error("must be the private key of the certificate")]
    Mismatch,
}

/// An established connection.
pub type BrokerStream = Pin<Box<dyn ReadWrite>>;

/// What is read from and written to.
pub trait ReadWrite: AsyncRead + AsyncWrite {}

impl<T: AsyncRead + AsyncWrite> ReadWrite for T {}

impl BrokerConnector {
    /// Connects under the same rules as an HTTP client.
    pub fn beside(http: &HttpClient) -> Self {
        Self {
            resolver: Arc::new(GuardedResolver::new(http.policy, Arc::new(SystemResolver))),
            policy: http.policy,
            connect_timeout: http.connect_timeout,
            timeout: http.timeout,
            roots: Arc::clone(&http.roots),
        }
    }

    /// How long a message may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Connects to a broker.
    pub(crate) async fn connect(
        &self,
        address: &BrokerAddress,
    ) -> Result<BrokerStream, UnreachableReason> {
        lease::held().await;
        let connected = timeout(self.connect_timeout, self.connected(address)).await;
        connected.unwrap_or(Err(UnreachableReason::Timeout))
    }

    async fn connected(
        &self,
        BrokerAddress { url, tls }: &BrokerAddress,
    ) -> Result<BrokerStream, UnreachableReason> {
        let stream = self.connected_to_one(url).await?;
        // An event is one write, and the next one is not worth waiting for.
        let _ = stream.set_nodelay(true);
        if url.encryption == BrokerEncryption::Plain {
            return Ok(Box::pin(stream));
        }
        let config = tls.config(&self.roots);
        let config = config.map_err(|_| UnreachableReason::NotSendable)?;
        let name = ServerName::try_from(url.host.to_string());
        let name = name.map_err(|_| UnreachableReason::NameUnknown)?;
        let secured = TlsConnector::from(Arc::new(config)).connect(name, stream);
        let secured = secured.await;
        Ok(Box::pin(secured.map_err(|error| of_io(&error))?))
    }

    /// A connection to the first address of the host that accepts one.
    async fn connected_to_one(&self, url: &BrokerUrl) -> Result<TcpStream, UnreachableReason> {
        let addresses = match url.host.parse::<IpAddr>() {
            Ok(ip) if self.policy.may_reach(ip) => vec![SocketAddr::new(ip, 0)],
            Ok(_) => return Err(UnreachableReason::Forbidden),
            Err(_) => self.resolver.addresses(&url.host).await?,
        };
        for address in addresses {
            let at = SocketAddr::new(address.ip(), url.port);
            if let Ok(stream) = TcpStream::connect(at).await {
                return Ok(stream);
            }
        }
        Err(UnreachableReason::NoConnection)
    }
}

impl BrokerTls {
    /// Whether TLS can be set up with this.
    pub fn check(&self) -> Result<(), BrokerTlsFault> {
        self.config(&Arc::new(RootCertStore::empty())).map(|_| ())
    }

    fn config(&self, system: &Arc<RootCertStore>) -> Result<ClientConfig, BrokerTlsFault> {
        let roots = match &self.ca {
            None => Arc::clone(system),
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                let added = trust::add(&mut roots, pem.as_bytes());
                added.map_err(|_| BrokerTlsFault::Ca)?;
                Arc::new(roots)
            }
        };
        let builder = trust::trusting(roots);
        let Some((chain, key)) = &self.certificate else {
            return Ok(builder.with_no_client_auth());
        };
        let chain = CertificateDer::pem_slice_iter(chain.as_bytes());
        let chain: Vec<_> = chain
            .collect::<Result<_, _>>()
            .map_err(|_| BrokerTlsFault::Certificate)?;
        if chain.is_empty() {
            return Err(BrokerTlsFault::Certificate);
        }
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes());
        let key = key.map_err(|_| BrokerTlsFault::Key)?;
        let config = builder.with_client_auth_cert(chain, key);
        config.map_err(|_| BrokerTlsFault::Mismatch)
    }
}

/// Why a connection was not established, or broke.
pub(crate) fn of_io(error: &io::Error) -> UnreachableReason {
    fault::in_causes(error).unwrap_or(UnreachableReason::NoAnswer)
}
