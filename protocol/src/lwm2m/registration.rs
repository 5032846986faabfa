//! What does a Register or Update contain? (LwM2M Core 1.1 sections 6.2.1, 6.2.2)
//!
//! Reads the parameters as the device sent them: the meaning of a missing lifetime, or whether the
//! device is known, is decided elsewhere. Unknown parameters are skipped; the Content-Format of the
//! payload is ignored, because devices omit it.

mod parameters;
#[cfg(test)]
mod tests;

use thiserror::Error;

use self::parameters::RegistrationParameters;
use super::binding::Binding;
use super::links::{self, ObjectLinks};
use super::version::EnablerVersion;
use crate::coap::code::Code;

/// Bounds the endpoint name in bytes; a Uri-Query option cannot carry more.
pub const ENDPOINT_BYTES_MAX: usize = 255;

/// Bounds the SMS number in bytes: an MSISDN has 15 digits, and devices add other characters.
pub const SMS_BYTES_MAX: usize = 64;

/// A decoded Register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// The endpoint name of the device.
    pub endpoint: Box<str>,
    /// The lifetime in seconds as sent, 0 included; a number beyond `u32` is its maximum.
    pub lifetime_s: Option<u32>,
    /// The LwM2M release of the device.
    pub version: EnablerVersion,
    /// How the device can be reached.
    pub binding: Binding,
    /// The number for SMS to the device.
    pub sms: Option<Box<str>>,
    /// The objects the device offers.
    pub links: ObjectLinks,
}

/// A decoded Update: absent parameters are unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// The new lifetime in seconds.
    pub lifetime_s: Option<u32>,
    /// How the device can be reached from now on, from `b`; see [`Update::binding_after`].
    pub binding: Option<Binding>,
    /// Whether `Q` was given.
    pub queue_mode: bool,
    /// The new SMS number.
    pub sms: Option<Box<str>>,
    /// The new objects.
    pub links: Option<ObjectLinks>,
}

/// Why a Register or Update is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RegistrationRefusal {
    /// The release of the device is not supported; it may try another.
    #[error("this version of LwM2M is not supported; 1.0, 1.1 and 1.2 are")]
    UnsupportedVersion,
    /// There is no endpoint name, or an empty one.
    #[error("the endpoint name is missing")]
    MissingEndpoint,
    /// The endpoint name is too long.
    #[error("the endpoint name is longer than {ENDPOINT_BYTES_MAX} bytes")]
    EndpointTooLong,
    /// The lifetime is not a decimal number.
    #[error("the lifetime is not a number of seconds")]
    InvalidLifetime,
    /// The binding has a letter that is no transport.
    #[error("the binding is not made of the letters U, T, S, N, M, H and Q")]
    InvalidBinding,
    /// The SMS number is too long.
    #[error("the SMS number is longer than {SMS_BYTES_MAX} bytes")]
    SmsTooLong,
    /// A parameter that may occur once is repeated.
    #[error("a parameter is given twice")]
    Repeated,
    /// The payload is no valid list of objects.
    #[error(transparent)]
    Links(#[from] links::MalformedLinks),
}

impl Register {
    /// Reads the Uri-Query options and the payload of `POST /rd`.
    ///
    /// An empty payload means a device that offers nothing: the standard requires objects, but such
    /// a device can still Send, and lists its objects with its next Update.
    pub fn decode<'a>(
        queries: impl IntoIterator<Item = &'a str>,
        payload: &[u8],
    ) -> Result<Self, RegistrationRefusal> {
        Self::read(&RegistrationParameters::read(queries)?, payload)
    }

    /// Reads the same of a client that is authenticated as `endpoint`: from LwM2M 1.1 on it may
    /// omit the endpoint client name and then has this one (Core 1.1.1 section 6.2.1).
    pub fn decode_authenticated<'a>(
        queries: impl IntoIterator<Item = &'a str>,
        payload: &[u8],
        endpoint: &'a str,
    ) -> Result<Self, RegistrationRefusal> {
        let parameters = RegistrationParameters::read(queries)?;
        Self::read(&parameters.authenticated_as(endpoint), payload)
    }

    fn read(
        parameters: &RegistrationParameters<'_>,
        payload: &[u8],
    ) -> Result<Self, RegistrationRefusal> {
        let version = parameters.version()?;
        Ok(Self {
            endpoint: parameters.endpoint()?,
            lifetime_s: parameters.lifetime_s()?,
            version,
            binding: parameters.binding_with_queue_mode()?,
            sms: parameters.sms()?,
            links: ObjectLinks::decode(payload)?,
        })
    }

    /// Writes the Uri-Query options; the payload is [`ObjectLinks::encode`].
    pub fn queries(&self) -> Vec<String> {
        let mut queries = vec![
            format!("lwm2m={}", self.version),
            format!("ep={}", self.endpoint),
        ];
        queries.extend(self.lifetime_s.map(|lifetime_s| format!("lt={lifetime_s}")));
        queries.extend(parameters::write_binding(self.binding, self.version));
        queries.extend(self.sms.as_ref().map(|sms| format!("sms={sms}")));
        queries
    }

    /// Returns whether the device sleeps and is sent requests only when it has just been seen.
    pub fn queue_mode(&self) -> bool {
        self.binding.queue_mode()
    }
}

impl Update {
    /// Reads the Uri-Query options and the payload of `POST` on the registration's location.
    ///
    /// An empty payload leaves the objects unchanged. Parameters of a Register (`ep`, `lwm2m`) are
    /// skipped: neither can change during a registration.
    pub fn decode<'a>(
        queries: impl IntoIterator<Item = &'a str>,
        payload: &[u8],
    ) -> Result<Self, RegistrationRefusal> {
        let parameters = RegistrationParameters::read(queries)?;
        let links = match payload {
            [] => None,
            listed => Some(ObjectLinks::decode(listed)?),
        };
        Ok(Self {
            lifetime_s: parameters.lifetime_s()?,
            binding: parameters.binding()?,
            queue_mode: parameters.queue_mode(),
            sms: parameters.sms()?,
            links,
        })
    }

    /// Writes the Uri-Query options; the payload is [`ObjectLinks::encode`], if there are links.
    pub fn queries(&self) -> Vec<String> {
        let mut queries = Vec::new();
        queries.extend(self.lifetime_s.map(|lifetime_s| format!("lt={lifetime_s}")));
        queries.extend(self.binding.map(|binding| format!("b={binding}")));
        queries.extend(self.queue_mode.then(|| "Q".to_owned()));
        queries.extend(self.sms.as_ref().map(|sms| format!("sms={sms}")));
        queries
    }

    /// Returns whether the Update changes nothing but the expiry of the registration.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the binding in force after this Update.
    ///
    /// In LwM2M 1.0 queue mode is a letter of `b` and ends with a `b` that lacks it. From 1.1 on
    /// only the Register sets it, so an Update cannot end it.
    pub fn binding_after(&self, current: Binding, version: EnablerVersion) -> Binding {
        let kept = match (self.binding, version) {
            (None, _) => current,
            (Some(binding), EnablerVersion::V1_0) => binding,
            (Some(binding), EnablerVersion::V1_1 | EnablerVersion::V1_2) => {
                if current.queue_mode() {
                    binding.with_queue_mode()
                } else {
                    binding
                }
            }
        };
        if self.queue_mode {
            kept.with_queue_mode()
        } else {
            kept
        }
    }
}

impl RegistrationRefusal {
    /// Returns the code of the response.
    pub fn code(self) -> Code {
        match self {
            Self::UnsupportedVersion => Code::PRECONDITION_FAILED,
            Self::MissingEndpoint
            | Self::EndpointTooLong
            | Self::InvalidLifetime
            | Self::InvalidBinding
            | Self::SmsTooLong
            | Self::Repeated
            | Self::Links(_) => Code::BAD_REQUEST,
        }
    }

    /// Returns the name of the parameter at fault, if it is one that the device sent.
    pub fn parameter(self) -> Option<&'static str> {
        match self {
            Self::UnsupportedVersion => Some("lwm2m"),
            Self::EndpointTooLong => Some("ep"),
            Self::InvalidLifetime => Some("lt"),
            Self::InvalidBinding => Some("b"),
            Self::SmsTooLong => Some("sms"),
            Self::MissingEndpoint | Self::Repeated | Self::Links(_) => None,
        }
    }
}
