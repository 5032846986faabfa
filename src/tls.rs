//! The certificate of the API, read from PEM files.

use std::path::{Path, PathBuf};

use rustls::ServerConfig;
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

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

/// Reads a certificate chain and its private key.
pub fn load(cert: &Path, key: &Path) -> Result<ServerConfig, TlsError> {
    let of = |path: &Path| {
        let path = path.to_owned();
        move |source| TlsError::Pem { path, source }
    };
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>())
        .map_err(of(cert))?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(of(key))?;
    Ok(ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)?)
}
