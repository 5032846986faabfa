//! Which parameters does a Register or Update have? (LwM2M Core 1.1 tables 6.2.1.-1, 6.2.2.-1)

use super::{ENDPOINT_BYTES_MAX, RegistrationRefusal, SMS_BYTES_MAX};
use crate::lwm2m::binding::Binding;
use crate::lwm2m::version::EnablerVersion;

/// The known parameters, as text.
#[derive(Debug, Default)]
pub(super) struct RegistrationParameters<'a> {
    endpoint: Option<&'a str>,
    lifetime: Option<&'a str>,
    version: Option<&'a str>,
    binding: Option<&'a str>,
    queue_mode: Option<&'a str>,
    sms: Option<&'a str>,
}

impl<'a> RegistrationParameters<'a> {
    /// Reads Uri-Query options by name; a repeated parameter is ambiguous and refused.
    pub(super) fn read(
        queries: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, RegistrationRefusal> {
        let mut found = Self::default();
        for query in queries {
            let (name, value) = query.split_once('=').unwrap_or((query, ""));
            let place = match name {
                "ep" => &mut found.endpoint,
                "lt" => &mut found.lifetime,
                "lwm2m" => &mut found.version,
                "b" => &mut found.binding,
                "Q" => &mut found.queue_mode,
                "sms" => &mut found.sms,
                _ => continue,
            };
            if place.replace(value).is_some() {
                return Err(RegistrationRefusal::Repeated);
            }
        }
        Ok(found)
    }

    /// The parameters of a client that is authenticated as an endpoint: a name that is absent is
    /// this one, but for 1.0, which requires it.
    pub(super) fn authenticated_as(mut self, endpoint: &'a str) -> Self {
        if self.version.is_some_and(|version| version != "1.0") {
            self.endpoint = self.endpoint.or(Some(endpoint));
        }
        self
    }

    pub(super) fn endpoint(&self) -> Result<Box<str>, RegistrationRefusal> {
        match self.endpoint.unwrap_or_default() {
            "" => Err(RegistrationRefusal::MissingEndpoint),
            long if long.len() > ENDPOINT_BYTES_MAX => Err(RegistrationRefusal::EndpointTooLong),
            endpoint => Ok(endpoint.into()),
        }
    }

    /// Reads the lifetime; a number too large for the field is its maximum.
    pub(super) fn lifetime_s(&self) -> Result<Option<u32>, RegistrationRefusal> {
        let Some(text) = self.lifetime else {
            return Ok(None);
        };
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(RegistrationRefusal::InvalidLifetime);
        }
        Ok(Some(text.parse().unwrap_or(u32::MAX)))
    }

    /// Reads the release; clients built against drafts of 1.0 omit it.
    pub(super) fn version(&self) -> Result<EnablerVersion, RegistrationRefusal> {
        self.version.map_or(Ok(EnablerVersion::V1_0), |text| {
            EnablerVersion::parse(text).map_err(|_| RegistrationRefusal::UnsupportedVersion)
        })
    }

    pub(super) fn binding(&self) -> Result<Option<Binding>, RegistrationRefusal> {
        let given = self.binding.filter(|letters| !letters.is_empty());
        given
            .map(|letters| Binding::parse(letters).ok_or(RegistrationRefusal::InvalidBinding))
            .transpose()
    }

    /// Returns the binding of `b` and `Q` together; without `b` the device is reached over UDP.
    pub(super) fn binding_with_queue_mode(&self) -> Result<Binding, RegistrationRefusal> {
        let binding = self.binding()?.unwrap_or(Binding::UDP);
        Ok(if self.queue_mode() {
            binding.with_queue_mode()
        } else {
            binding
        })
    }

    pub(super) fn queue_mode(&self) -> bool {
        self.queue_mode.is_some()
    }

    pub(super) fn sms(&self) -> Result<Option<Box<str>>, RegistrationRefusal> {
        match self.sms {
            Some(long) if long.len() > SMS_BYTES_MAX => Err(RegistrationRefusal::SmsTooLong),
            given => Ok(given.filter(|number| !number.is_empty()).map(Box::from)),
        }
    }
}

/// Writes a binding as the release specifies: the letter Q among the others, or apart.
pub(super) fn write_binding(binding: Binding, version: EnablerVersion) -> Vec<String> {
    let (letters, queue_mode) = match version {
        EnablerVersion::V1_0 => (binding, None),
        EnablerVersion::V1_1 | EnablerVersion::V1_2 => (
            binding.without_queue_mode(),
            binding.queue_mode().then(|| "Q".to_owned()),
        ),
    };
    let letters = (letters != Binding::UDP).then(|| format!("b={letters}"));
    letters.into_iter().chain(queue_mode).collect()
}
