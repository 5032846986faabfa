//! Which CA certificates are trusted? Those of the system, and those that the operator names.

use std::sync::Arc;

use rustls::client::WantsClientCert;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};
use tracing::warn;

use super::HttpError;

/// The authorities of the system and those of this PEM text.
pub(crate) fn roots(authorities: Option<&[u8]>) -> Result<RootCertStore, HttpError> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    let (of_system, _unreadable) = roots.add_parsable_certificates(system.certs);
    if let Some(pem) = authorities {
        add(&mut roots, pem)?;
    }
    // A machine may have none; then plain HTTP and the operator's own are left.
    if of_system == 0 {
        warn!("the system has no CA certificates; connections to public hosts will fail");
    }
    Ok(roots)
}

/// A TLS configuration that trusts these authorities; what the service shows is missing yet.
pub(crate) fn trusting(roots: Arc<RootCertStore>) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has the protocols of TLS")
        .with_root_certificates(roots)
}

/// The TLS configuration of a client that trusts the authorities of the system, and those of this
/// PEM text.
pub fn client_config(authorities: Option<&[u8]>) -> Result<ClientConfig, HttpError> {
    let roots = Arc::new(roots(authorities)?);
    Ok(trusting(roots).with_no_client_auth())
}

/// Adds the authorities of a PEM text.
pub(crate) fn add(roots: &mut RootCertStore, pem: &[u8]) -> Result<(), HttpError> {
    let refused = |why: &dyn ToString| HttpError::Authorities(why.to_string());
    let mut added = 0_usize;
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|why| refused(&why))?;
        roots.add(certificate).map_err(|why| refused(&why))?;
        added += 1;
    }
    if added == 0 {
        return Err(refused(&"there are none"));
    }
    Ok(())
}
