//! Certificates and their keys: read from PEM files, and read again when they change or on SIGHUP.
//!
//! New connections get what was read last. Files that cannot be used leave it as it is, so a
//! renewal that writes one file after the other does no harm.

use std::fmt;
use std::fs;
use std::hash::{DefaultHasher, Hasher as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use engine::associations::server_key::InvalidServerKey;
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
    /// The same, for DTLS.
    #[error("cannot use the certificate and key for DTLS: {0}")]
    UnusableForDtls(#[from] InvalidServerKey),
}

/// The files of a private key and of the certificate chain that it is shown by, if there is one.
#[derive(Clone, Debug)]
pub struct KeyFiles {
    /// The certificate chain.
    pub cert: Option<PathBuf>,
    /// The private key.
    pub key: PathBuf,
}

/// What is in the files of a key.
pub struct KeyMaterial {
    /// The certificate chain, the own certificate first.
    pub certificates: Vec<CertificateDer<'static>>,
    /// The private key.
    pub key: PrivateKeyDer<'static>,
    fingerprint: u64,
}

/// The certificate of the API.
pub struct Certificate {
    files: KeyFiles,
    current: RwLock<Arc<CertifiedKey>>,
    /// The fingerprint of what was read first.
    loaded: u64,
}

impl KeyFiles {
    /// Reads the files.
    pub fn read(&self) -> Result<KeyMaterial, TlsError> {
        let read = |path: &Path| {
            let bytes = fs::read(path);
            bytes.map_err(|error| refused(path)(PemError::Io(error)))
        };
        let mut hasher = DefaultHasher::new();
        let mut certificates = Vec::new();
        if let Some(path) = &self.cert {
            let bytes = read(path)?;
            hasher.write(&bytes);
            let chain = CertificateDer::pem_slice_iter(&bytes).collect::<Result<_, _>>();
            certificates = chain.map_err(refused(path))?;
        }
        let key = Zeroizing::new(read(&self.key)?);
        hasher.write(&key);
        Ok(KeyMaterial {
            certificates,
            key: PrivateKeyDer::from_pem_slice(&key).map_err(refused(&self.key))?,
            fingerprint: hasher.finish(),
        })
    }

    /// Follows the files until `show` breaks. It gets what is in them, whenever that has changed
    /// since `seen`, and on SIGHUP.
    pub fn follow(
        self,
        what: &'static str,
        seen: u64,
        show: impl Fn(&KeyMaterial) -> Result<ControlFlow<()>, TlsError> + 'static,
    ) {
        let hangup = signal(SignalKind::hangup()).expect("the runtime handles signals");
        actix_rt::spawn(self.followed(what, seen, show, hangup));
    }

    async fn followed(
        self,
        what: &'static str,
        seen: u64,
        show: impl Fn(&KeyMaterial) -> Result<ControlFlow<()>, TlsError>,
        mut hangup: Signal,
    ) {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut seen = Some(seen);
        loop {
            let is_asked = tokio::select! {
                _ = hangup.recv() => true,
                _ = looks.tick() => false,
            };
            let read = self.read();
            let found = read.as_ref().ok().map(KeyMaterial::fingerprint);
            if !is_asked && found == seen {
                continue;
            }
            seen = found;
            match read.and_then(|material| show(&material)) {
                Ok(ControlFlow::Continue(())) => {
                    info!(path = %self.key.display(), "{what} read again");
                }
                Ok(ControlFlow::Break(())) => return,
                Err(error) => error!(%error, "the {what} stays as it was"),
            }
        }
    }
}

impl KeyMaterial {
    /// Tells the contents of files from others.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn certified(&self) -> Result<CertifiedKey, TlsError> {
        let provider = aws_lc_rs::default_provider();
        let (chain, key) = (self.certificates.clone(), self.key.clone_key());
        Ok(CertifiedKey::from_der(chain, key, &provider)?)
    }
}

impl Certificate {
    /// Reads a certificate chain and its private key.
    pub fn load(cert: &Path, key: &Path) -> Result<Arc<Self>, TlsError> {
        let files = KeyFiles {
            cert: Some(cert.to_path_buf()),
            key: key.to_path_buf(),
        };
        let material = files.read()?;
        Ok(Arc::new(Self {
            files,
            current: RwLock::new(Arc::new(material.certified()?)),
            loaded: material.fingerprint(),
        }))
    }

    /// A server with TLS 1.2 and 1.3 that shows this certificate.
    pub fn server_config(self: &Arc<Self>) -> ServerConfig {
        let shown: Arc<Self> = Arc::clone(self);
        ServerConfig::builder()
            .with_no_client_auth()
            .with_cert_resolver(shown)
    }

    /// Follows the files for as long as the certificate is used.
    pub fn follow(self: &Arc<Self>) {
        let shown = Arc::downgrade(self);
        let files = self.files.clone();
        files.follow("TLS certificate", self.loaded, move |material| {
            let Some(shown) = shown.upgrade() else {
                return Ok(ControlFlow::Break(()));
            };
            let certified = Arc::new(material.certified()?);
            let current = shown.current.write();
            *current.unwrap_or_else(PoisonError::into_inner) = certified;
            Ok(ControlFlow::Continue(()))
        });
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
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

fn refused(path: &Path) -> impl FnOnce(PemError) -> TlsError {
    let path = path.to_owned();
    move |source| TlsError::Pem { path, source }
}
