//! Why did a request get no response? Read from the causes of an error, innermost included.

use std::error::Error;
use std::{io, iter};

use rustls::CertificateError;

use super::UnreachableReason;
use super::resolver::ResolveError;

/// Why the request got no response.
pub(super) fn of(error: &reqwest::Error) -> UnreachableReason {
    let known = in_causes(error);
    if let Some(known) = known {
        known
    } else if error.is_timeout() {
        UnreachableReason::Timeout
    } else if error.is_builder() {
        UnreachableReason::NotSendable
    } else if error.is_connect() {
        UnreachableReason::NoConnection
    } else {
        UnreachableReason::NoAnswer
    }
}

/// The reason that an error or one of its causes tells, if it is one of names or TLS.
pub(crate) fn in_causes(error: &(dyn Error + 'static)) -> Option<UnreachableReason> {
    iter::successors(Some(error), |error| cause_of(*error)).find_map(known)
}

/// The cause of an error; an IO error does not list the error it wraps among its causes.
fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let io = error.downcast_ref::<io::Error>();
    match io.and_then(io::Error::get_ref) {
        Some(made_of) => Some(made_of),
        None => error.source(),
    }
}

fn known(cause: &(dyn Error + 'static)) -> Option<UnreachableReason> {
    if let Some(unresolved) = cause.downcast_ref::<ResolveError>() {
        return Some((*unresolved).into());
    }
    let tls = cause.downcast_ref::<rustls::Error>()?;
    let rustls::Error::InvalidCertificate(certificate) = tls else {
        return Some(UnreachableReason::NoTls);
    };
    Some(of_certificate(certificate))
}

impl From<ResolveError> for UnreachableReason {
    fn from(unresolved: ResolveError) -> Self {
        match unresolved {
            ResolveError::Forbidden => Self::Forbidden,
            ResolveError::Unknown => Self::NameUnknown,
        }
    }
}

fn of_certificate(error: &CertificateError) -> UnreachableReason {
    let is_out_of_time = matches!(
        error,
        CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. }
    );
    let is_of_another = matches!(
        error,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
    );
    if is_out_of_time {
        UnreachableReason::CertificateExpired
    } else if is_of_another {
        UnreachableReason::CertificateOfAnother
    } else {
        UnreachableReason::CertificateUntrusted
    }
}
