//! Why was a call not answered? Read from the causes of an error, innermost included.

use std::error::Error;
use std::{io, iter};

use rustls::CertificateError;

use super::Unreachable;
use super::resolver::Unresolved;

/// Why the call was not answered.
pub(super) fn of(error: &reqwest::Error) -> Unreachable {
    let known = causes(error).find_map(known);
    if let Some(known) = known {
        known
    } else if error.is_timeout() {
        Unreachable::Timeout
    } else if error.is_builder() {
        Unreachable::NotSendable
    } else if error.is_connect() {
        Unreachable::NoConnection
    } else {
        Unreachable::NoAnswer
    }
}

/// An error and what caused it.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let first: &(dyn Error + 'static) = error;
    iter::successors(Some(first), |error| cause_of(*error))
}

/// What caused an error; an error of IO does not name what it was made of among its causes.
fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let io = error.downcast_ref::<io::Error>();
    match io.and_then(io::Error::get_ref) {
        Some(made_of) => Some(made_of),
        None => error.source(),
    }
}

fn known(cause: &(dyn Error + 'static)) -> Option<Unreachable> {
    if let Some(unresolved) = cause.downcast_ref::<Unresolved>() {
        return Some(match unresolved {
            Unresolved::Forbidden => Unreachable::Forbidden,
            Unresolved::Unknown => Unreachable::NameUnknown,
        });
    }
    let tls = cause.downcast_ref::<rustls::Error>()?;
    let rustls::Error::InvalidCertificate(certificate) = tls else {
        return Some(Unreachable::NoTls);
    };
    Some(of_certificate(certificate))
}

fn of_certificate(error: &CertificateError) -> Unreachable {
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
        Unreachable::CertificateExpired
    } else if is_of_another {
        Unreachable::CertificateOfAnother
    } else {
        Unreachable::CertificateUntrusted
    }
}
