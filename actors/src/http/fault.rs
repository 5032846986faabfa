//! Why did a request get no response? Read from the causes of an error, innermost included.

use std::error::Error;
use std::{io, iter};

use rustls::CertificateError;

use super::UnreachableReason;
use super::resolver::ResolveError;

/// Why the request got no response.
pub(super) fn of(error: &reqwest::Error) -> UnreachableReason {
    let known = causes(error).find_map(known);
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

/// An error and its causes.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let first: &(dyn Error + 'static) = error;
    iter::successors(Some(first), |error| cause_of(*error))
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
        return Some(match unresolved {
            ResolveError::Forbidden => UnreachableReason::Forbidden,
            ResolveError::Unknown => UnreachableReason::NameUnknown,
        });
    }
    let tls = cause.downcast_ref::<rustls::Error>()?;
    let rustls::Error::InvalidCertificate(certificate) = tls else {
        return Some(UnreachableReason::NoTls);
    };
    Some(of_certificate(certificate))
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
