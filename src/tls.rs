//! The certificate of the API: read from PEM files, and read again when they change or on SIGHUP.
//!
//! New connections get the certificate that was read last. Files that cannot be used leave the
//! certificate as it is, so a renewal that writes one file after the other does no harm.

use std::fmt;
use std::fs;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};
use tracing::{error, info};
use zeroize::Zeroizing;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(5);

/// Why a certificate or its key is invalid.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read as PEM.
    #[error("cannot read {path} as PEM: {source}")]
    Pem {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: PemError,
    },
    /// The key does not belong to the certificate, or its kind is not supported.
    #[error("cannot use the TLS certificate and key: {0}")]
    Unusable(#[from] rustls::Error),
}

/// A certificate chain with its private key, in two files.
pub struct Certificate {
    cert: PathBuf,
    key: PathBuf,
    current: RwLock<Arc<CertifiedKey>>,
    /// The fingerprint of what was read first.
    loaded: u64,
}

/// The contents of both files.
struct Contents {
    cert: Vec<u8>,
    key: Zeroizing<Vec<u8>>,
}

impl Certificate {
    /// Reads a certificate chain and its private key.
    pub fn load(cert: &Path, key: &Path) -> Result<Arc<Self>, TlsError> {
        let (cert, key) = (cert.to_path_buf(), key.to_path_buf());
        let contents = Contents::read(&cert, &key)?;
        let current = RwLock::new(Arc::new(contents.certified(&cert, &key)?));
        let loaded = contents.fingerprint();
        Ok(Arc::new(Self {
            cert,
            key,
            current,
            loaded,
        }))
    }

    /// A server with TLS 1.2 and 1.3 that shows this certificate.
    pub fn server_config(self: &Arc<Self>) -> ServerConfig {
        let shown: Arc<Self> = Arc::clone(self);
        ServerConfig::builder()
            .with_no_client_auth()
            .with_cert_resolver(shown)
    }

    /// Follows the files for as long as the process runs.
    pub fn follow(self: &Arc<Self>) {
        let hangup = signal(SignalKind::hangup()).expect("the runtime handles signals");
        actix_rt::spawn(Arc::clone(self).followed(hangup));
    }

    async fn followed(self: Arc<Self>, mut hangup: Signal) {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut seen = Some(self.loaded);
        loop {
            let is_asked = tokio::select! {
                _ = hangup.recv() => true,
                _ = looks.tick() => false,
            };
            let contents = Contents::read(&self.cert, &self.key);
            let found = contents.as_ref().ok().map(Contents::fingerprint);
            if !is_asked && found == seen {
                continue;
            }
            seen = found;
            match contents.and_then(|contents| self.show(&contents)) {
                Ok(()) => info!(path = %self.cert.display(), "TLS certificate read again"),
                Err(error) => error!(%error, "the TLS certificate stays as it was"),
            }
        }
    }

    /// New connections get this certificate.
    fn show(&self, contents: &Contents) -> Result<(), TlsError> {
        let certified = Arc::new(contents.certified(&self.cert, &self.key)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = certified;
        Ok(())
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&current))
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("cert", &self.cert)
            .finish_non_exhaustive()
    }
}

impl Contents {
    fn read(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let read = |path: &Path| {
            let bytes = fs::read(path);
            bytes.map_err(|error| refused(path)(PemError::Io(error)))
        };
        Ok(Self {
            cert: read(cert)?,
            key: Zeroizing::new(read(key)?),
        })
    }

    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write(&self.cert);
        hasher.write(&self.key);
        hasher.finish()
    }

    fn certified(&self, cert: &Path, key: &Path) -> Result<CertifiedKey, TlsError> {
        let chain = CertificateDer::pem_slice_iter(&self.cert).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(refused(cert))?;
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(refused(key))?;
        let provider = aws_lc_rs::default_provider();
        Ok(CertifiedKey::from_der(chain, key, &provider)?)
    }
}

fn refused(path: &Path) -> impl FnOnce(PemError) -> TlsError {
    let path = path.to_owned();
    move |source| TlsError::Pem { path, source }
}
