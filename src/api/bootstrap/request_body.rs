//! How is a bootstrap configuration parsed? Every fault is reported at once.

use serde_json::Value as Json;

use engine::bootstrap::{
    AccountCertificate, AccountSecurity, BootstrapConfig, BootstrapScope, BootstrapServer,
};
use engine::directory::bootstrap::{
    ConfigFault, check_uri, configured, parse_binding, parse_uri, parse_value,
};
use engine::key_pair::private_key_of;
use engine::limits::{BOOTSTRAP_VALUE_BYTES_MAX, LIFETIME_S_MAX};
use engine::policy::CustomerSettings;
use engine::sealing::SecretOwner;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use store::sealed::MasterKey;
use zeroize::Zeroizing;

use crate::api::error::ApiError;
use crate::api::fields::{FieldFault, Fields};
use crate::api::words::Word;

/// A configuration; its values have the types of the object model of the customer, and its private
/// keys are sealed.
pub(super) fn new_config(
    mut fields: Fields,
    settings: &CustomerSettings,
    scope: &BootstrapScope,
    master_key: &MasterKey,
) -> Result<BootstrapConfig, ApiError> {
    let servers = fields.objects("servers", |fields| server(fields, scope, master_key));
    if servers.is_none() && !fields.has_faults() {
        fields.fault("servers", FieldFault::required("is required"));
    }
    let catalog = settings.catalog();
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

fn server(
    fields: &mut Fields,
    scope: &BootstrapScope,
    master_key: &MasterKey,
) -> Option<BootstrapServer> {
    let short_id = fields.required_number("shortId", 1..=65_534);
    let lifetime_s = fields.required_number("lifetime", 1..=LIFETIME_S_MAX);
    let binding = fields.required("binding", parse_binding);
    let security = fields.required("security", |text| security(text, scope));
    let given = account_certificate(fields);
    let certificate = match (security, given) {
        (Some(AccountSecurity::X509), Given::Certificate(certificate, key)) => {
            seal_for(scope, certificate, &key, master_key).map(Some)
        }
        (Some(AccountSecurity::X509), Given::Nothing) => {
            let needs = FieldFault::required("is required, with `key`, for security X509");
            fields.fault("certificate", needs);
            None
        }
        (Some(_), Given::Certificate(..)) => {
            fields.fault("certificate", "is for security X509 alone");
            None
        }
        (Some(_), Given::Nothing) => Some(None),
        (None, _) | (_, Given::Faulty) => None,
    };
    let has_uri = fields.has("uri");
    let uri = fields.optional("uri", |text| {
        let uri = parse_uri(text)?;
        security.map_or(Ok(()), |security| check_uri(&uri, security))?;
        Ok::<_, engine::directory::bootstrap::InvalidServerUri>(uri)
    });
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
fn security(text: &str, scope: &BootstrapScope) -> Result<AccountSecurity, String> {
    match (AccountSecurity::read(text)?, scope) {
        (AccountSecurity::X509, BootstrapScope::Customer(_)) => Err(
            "X509 is possible in the bootstrap configuration of a device alone: a certificate is \
             that of one device"
                .to_owned(),
        ),
        (security, _) => Ok(security),
    }
}

/// What is given of a certificate.
enum Given {
    Nothing,
    /// The certificate in DER, and its private key in PKCS #8.
    Certificate(Box<[u8]>, Zeroizing<Vec<u8>>),
    Faulty,
}

fn account_certificate(fields: &mut Fields) -> Given {
    let is_given = [fields.has("certificate"), fields.has("key")];
    let certificate = fields.optional("certificate", |text| {
        let read = CertificateDer::from_pem_slice(text.as_bytes());
        let read = read.map_err(|_| "must be a certificate in PEM".to_owned())?;
        match read.len() <= BOOTSTRAP_VALUE_BYTES_MAX {
            true => Ok(read),
            false => Err(format!(
                "must not be longer than {BOOTSTRAP_VALUE_BYTES_MAX} bytes in DER"
            )),
        }
    });
    let key = fields.optional("key", |text| {
        let read = PrivateKeyDer::from_pem_slice(text.as_bytes());
        read.map_err(|_| "must be a private key in PEM, without a passphrase")
    });
    match (is_given, certificate, key) {
        ([false, false], ..) => Given::Nothing,
        (_, Some(certificate), Some(key)) => match private_key_of(&certificate, key.secret_der()) {
            Ok(key) => Given::Certificate(certificate.as_ref().into(), key),
            Err(fault) => {
                fields.fault("key", fault.to_string());
                Given::Faulty
            }
        },
        ([true, false], ..) => {
            fields.fault("key", FieldFault::required("is required with certificate"));
            Given::Faulty
        }
        ([false, true], ..) => {
            let needs = FieldFault::required("is required with key");
            fields.fault("certificate", needs);
            Given::Faulty
        }
        ([true, true], ..) => Given::Faulty,
    }
}

/// A certificate of the device that the configuration is for; none if that is no device.
fn seal_for(
    scope: &BootstrapScope,
    certificate: Box<[u8]>,
    key: &[u8],
    master_key: &MasterKey,
) -> Option<AccountCertificate> {
    let BootstrapScope::Device(device) = scope else {
        return None;
    };
    let key = master_key.seal(key, &SecretOwner::Bootstrap(*device).context());
    Some(AccountCertificate { certificate, key })
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
