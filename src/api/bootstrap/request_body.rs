//! How is a bootstrap configuration parsed? Every fault is reported at once.

use serde_json::Value as Json;

use engine::bootstrap::{
    AccountCertificate, AccountSecurity, BootstrapConfig, BootstrapScope, BootstrapServer,
};
use engine::directory::bootstrap::{
    ConfigFault, check_foreign_certificate, check_own_certificate, check_uri, configured,
    parse_binding, parse_uri, parse_value,
};
use engine::ids::{DeviceKey, Endpoint};
use engine::key_pair::private_key_of;
use engine::limits::LIFETIME_S_MAX;
use engine::moment::Timestamp;
use engine::policy::CustomerSettings;
use engine::sealed::Sealed;
use engine::sealing::SecretOwner;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use store::sealed::MasterKey;

use crate::api::destinations::MASKED;
use crate::api::error::ApiError;
use crate::api::fields::{FieldFault, Fields};
use crate::api::words::Word;

/// What a configuration is parsed with.
pub(super) struct ConfigParser<'a> {
    /// The object model is that of the customer.
    pub(super) settings: &'a CustomerSettings,
    /// Whose devices the configuration is for.
    pub(super) scope: &'a BootstrapScope,
    /// The endpoint name of the device that it is for, if that exists.
    pub(super) endpoint: Option<&'a Endpoint>,
    /// What is stored: a key that is given as it is shown is the one in there.
    pub(super) stored: Option<&'a BootstrapConfig>,
    /// Seals the private keys.
    pub(super) master_key: &'a MasterKey,
    /// When a certificate has to be valid.
    pub(super) now: Timestamp,
}

impl ConfigParser<'_> {
    /// A configuration; its values have the types of the object model, and its private keys are
    /// sealed.
    pub(super) fn parse(&self, mut fields: Fields) -> Result<BootstrapConfig, ApiError> {
        let servers = fields.objects("servers", |fields| self.server(fields));
        if servers.is_none() && !fields.has_faults() {
            fields.fault("servers", FieldFault::required("is required"));
        }
        let catalog = self.settings.catalog();
        let objects = match fields.has("objects") {
            true => fields.values_by_name("objects", |path, value| {
                Ok(parse_value(&catalog, path, &scalar(value)?)?)
            }),
            false => Some(Vec::new()),
        };
        let config = servers.zip(objects).and_then(|(servers, objects)| {
            let config = configured(servers, objects);
            let faults = config.as_ref().err().into_iter().flatten();
            for fault in faults {
                fields.fault(&field_of(fault), wrong(fault));
            }
            config.ok()
        });
        fields.finish(config)
    }

    fn server(&self, fields: &mut Fields) -> Option<BootstrapServer> {
        let short_id = fields.required_number("shortId", 1..=65_534);
        let lifetime_s = fields.required_number("lifetime", 1..=LIFETIME_S_MAX);
        let binding = fields.required("binding", parse_binding);
        let security = fields.required("security", |text| self.security(text));
        let has_uri = fields.has("uri");
        let uri = fields.optional("uri", |text| {
            let uri = parse_uri(text)?;
            security.map_or(Ok(()), |security| check_uri(&uri, security))?;
            Ok::<_, engine::directory::bootstrap::InvalidServerUri>(uri)
        });
        let certificate = match (security, self.scope) {
            (Some(AccountSecurity::X509), BootstrapScope::Device(device)) => {
                let endpoint = self.endpoint.filter(|_| !has_uri);
                self.certificate(fields, *device, endpoint).map(Some)
            }
            (security, _) => without_certificate(fields, security).map(|()| None),
        };
        if has_uri && uri.is_none() {
            return None;
        }
        Some(BootstrapServer {
            short_id: u16::try_from(short_id?).ok()?,
            uri,
            lifetime_s: lifetime_s?,
            binding: binding?,
            security: security?,
            certificate: certificate?,
        })
    }

    /// A certificate is that of one device, so customers configure none for all of theirs.
    fn security(&self, text: &str) -> Result<AccountSecurity, String> {
        match (AccountSecurity::read(text)?, self.scope) {
            (AccountSecurity::X509, BootstrapScope::Customer(_)) => Err(
                "X509 is possible in the bootstrap configuration of a device alone: a certificate \
                 is that of one device"
                    .to_owned(),
            ),
            (security, _) => Ok(security),
        }
    }

    /// A certificate of the device with its private key. This service knows the device by its
    /// endpoint name, other servers may know it by another one.
    fn certificate(
        &self,
        fields: &mut Fields,
        device: DeviceKey,
        endpoint: Option<&Endpoint>,
    ) -> Option<AccountCertificate> {
        let certificate = fields.required("certificate", |text| {
            let read = CertificateDer::from_pem_slice(text.as_bytes());
            let read = read.map_err(|_| "must be a certificate in PEM".to_owned())?;
            let checked = match endpoint {
                Some(endpoint) => check_own_certificate(&read, endpoint, self.now),
                None => check_foreign_certificate(&read, self.now),
            };
            checked.map_err(|fault| fault.to_string()).map(|()| read)
        });
        let key = fields.required("key", GivenKey::read);
        let certificate = certificate?;
        let key = match key? {
            GivenKey::Shown => self.stored_key(&certificate).ok_or_else(|| {
                format!(
                    "`{MASKED}` keeps the key that is stored with the same certificate, and none \
                     is: give the private key in PEM"
                )
            }),
            GivenKey::New(key) => private_key_of(&certificate, key.secret_der())
                .map_err(|fault| fault.to_string())
                .map(|key| {
                    let owner = SecretOwner::Bootstrap(device);
                    self.master_key.seal(&key, &owner.context())
                }),
        };
        match key {
            Ok(key) => Some(AccountCertificate {
                certificate: certificate.as_ref().into(),
                key,
            }),
            Err(fault) => {
                fields.fault("key", fault);
                None
            }
        }
    }

    fn stored_key(&self, certificate: &[u8]) -> Option<Sealed> {
        let servers = self.stored?.servers.iter();
        let mut certificates = servers.filter_map(|server| server.certificate.as_ref());
        let same = certificates.find(|it| &*it.certificate == certificate);
        same.map(|it| it.key.clone())
    }
}

/// A private key as a caller gives it.
enum GivenKey {
    /// As it is shown: the stored one.
    Shown,
    New(PrivateKeyDer<'static>),
}

impl GivenKey {
    fn read(text: &str) -> Result<Self, &'static str> {
        if text == MASKED {
            return Ok(Self::Shown);
        }
        let read = PrivateKeyDer::from_pem_slice(text.as_bytes());
        read.map(Self::New)
            .map_err(|_| "must be a private key in PEM, without a passphrase")
    }
}

/// Other accounts have no certificate; of one whose security is faulty nobody knows.
fn without_certificate(fields: &mut Fields, security: Option<AccountSecurity>) -> Option<()> {
    let given = ["certificate", "key"].map(|name| {
        let is_given = fields.has(name);
        fields.optional(name, |_| match security {
            Some(_) => Err("is for security X509 alone"),
            None => Ok(()),
        });
        is_given
    });
    (security.is_some() && given == [false, false]).then_some(())
}

/// A value in its text form.
fn scalar(value: &Json) -> Result<String, FieldFault> {
    match value {
        Json::String(text) => Ok(text.clone()),
        Json::Number(number) => Ok(number.to_string()),
        Json::Bool(truth) => Ok(truth.to_string()),
        Json::Null | Json::Array(_) | Json::Object(_) => {
            Err(FieldFault::wrong_type("a string, a number or a boolean"))
        }
    }
}

fn field_of(fault: &ConfigFault) -> String {
    match fault {
        ConfigFault::ServerCount => "servers".to_owned(),
        ConfigFault::ShortIdRepeated(place) => format!("servers[{place}].shortId"),
        ConfigFault::ValueCount => "objects".to_owned(),
        ConfigFault::Overlap(path) | ConfigFault::NoServer(path) => format!("objects.{path}"),
    }
}

fn wrong(fault: &ConfigFault) -> FieldFault {
    match fault {
        ConfigFault::ServerCount | ConfigFault::ValueCount => FieldFault::out_of_range(fault),
        ConfigFault::ShortIdRepeated(_) | ConfigFault::Overlap(_) => {
            FieldFault::repeated_item(fault)
        }
        ConfigFault::NoServer(_) => FieldFault::from(fault),
    }
}
