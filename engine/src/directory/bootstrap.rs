//! Decisions about what devices are given when they are bootstrapped: whether a configuration is
//! valid, and what a device is written, with a fresh key.

use std::collections::BTreeMap;

use dtls::{CertificateChain, CertificateFault};
use protocol::lwm2m::binding::Binding;
use protocol::lwm2m::bootstrap::{SECURITY_OBJECT, SERVER_OBJECT};
use protocol::lwm2m::model::catalog::Catalog;
use protocol::lwm2m::operation;
use protocol::lwm2m::path::{InvalidPath, Path};
use protocol::lwm2m::payload::Reading;
use protocol::lwm2m::value::{InvalidValue, Value};
use protocol::lwm2m::version::Version;
use url::Url;
use zeroize::Zeroizing;

use crate::associations::server_key::ServerKey;
use crate::bootstrap::{
    AccountSecurity, BootstrapConfig, BootstrapFault, BootstrapPlan, BootstrapScope,
    BootstrapServer, is_of_server,
};
use crate::change::{Batch, Change, Expect, UniqueName};
use crate::directory::credentials::with_issued_keys;
use crate::directory::guarded;
use crate::ids::Endpoint;
use crate::key_pair::{KeyPair, NoKey};
use crate::limits::{
    BOOTSTRAP_SERVERS_MAX, BOOTSTRAP_URI_CHARS_MAX, BOOTSTRAP_VALUE_BYTES_MAX, BOOTSTRAP_VALUES_MAX,
};
use crate::moment::Timestamp;
use crate::profile::{Profile, SecurityRequirement};
use crate::sealed::Sealed;

/// The resource of an account by which the device verifies the server.
const SERVER_PUBLIC_KEY: u16 = 4;

/// Newer than every version of an object: its newest one is meant.
const NEWEST: Version = Version::new(u8::MAX, u8::MAX);

/// Why the URI of a server is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidServerUri {
    /// It is no URI of a CoAP server.
    #[error("must be coap://host:port or coaps://host:port")]
    Form,
    /// It is too long.
    #[error("must not be longer than {BOOTSTRAP_URI_CHARS_MAX} characters")]
    TooLong,
    /// It has a secure scheme, and the account no security.
    #[error("must begin with coap:// for security NOSEC")]
    NeedsNoSecurity,
    /// It has a scheme without security, and the account needs one.
    #[error("must begin with coaps:// for security PSK, RPK and X509")]
    NeedsSecurity,
}

/// Why a value of a configuration is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidBootstrapValue {
    /// Its path is invalid.
    #[error("{0}")]
    Path(#[from] InvalidPath),
    /// Its path is that of no resource.
    #[error("must be named by the path of a resource or of one of its instances")]
    Level,
    /// It is a part of an account.
    #[error(
        "is written from `servers`, as the resources 0, 1, 2, 3, 5 and 10 of object 0 and 0, 1 and \
         7 of object 1 are"
    )]
    Reserved,
    /// It is one of several of an account.
    #[error("has several instances, which accounts (object 0) cannot be given")]
    SeveralOfAccount,
    /// The object model does not have the resource.
    #[error("is not a resource of the object model")]
    Unknown,
    /// It has another type.
    #[error("{0}")]
    Type(#[from] InvalidValue),
    /// It is too long.
    #[error("must not be longer than {BOOTSTRAP_VALUE_BYTES_MAX} bytes")]
    TooLong,
}

/// Why the certificate of an account is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidAccountCertificate {
    /// It is too long.
    #[error("must not be longer than {BOOTSTRAP_VALUE_BYTES_MAX} bytes in DER")]
    TooLong,
    /// It has expired, or its time is still to come.
    #[error("is not valid at this time: it has expired, or its validity has not begun")]
    NotValidNow,
    /// It is no certificate, or not that of a client.
    #[error("must be an X.509 certificate of version 3 that a client may use (RFC 5280)")]
    Unusable,
    /// It is that of another device.
    #[error(
        "does not have the endpoint name of the device as a common name, or as a DNS name or URI \
         of its subjectAltName, so this service would refuse it"
    )]
    OtherName,
}

/// Why a configuration as a whole is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ConfigFault {
    /// It has no server, or too many.
    #[error("must have 1 to {BOOTSTRAP_SERVERS_MAX} servers")]
    ServerCount,
    /// Two servers have one short id.
    #[error("another server has this short id")]
    ShortIdRepeated(usize),
    /// It has too many values.
    #[error("must have at most {BOOTSTRAP_VALUES_MAX} values")]
    ValueCount,
    /// A value is given beside another one for the same resource.
    #[error("is given for a resource that has another value")]
    Overlap(Path),
    /// A value is for the account or the instance of a server that there is not.
    #[error("is of a server that is not in `servers`: the first one has /0/0 and /1/0")]
    NoServer(Path),
}

/// Reads the URI of a server.
pub fn parse_uri(text: &str) -> Result<Box<str>, InvalidServerUri> {
    if text.chars().count() > BOOTSTRAP_URI_CHARS_MAX {
        return Err(InvalidServerUri::TooLong);
    }
    let url = Url::parse(text).map_err(|_| InvalidServerUri::Form)?;
    let is_coap = ["coap", "coaps"].contains(&url.scheme());
    let has_host = url.host_str().is_some_and(|host| !host.is_empty());
    let is_bare = url.username().is_empty()
        && url.password().is_none()
        && ["", "/"].contains(&url.path())
        && url.query().is_none()
        && url.fragment().is_none();
    match is_coap && has_host && is_bare {
        true => Ok(text.into()),
        false => Err(InvalidServerUri::Form),
    }
}

/// Whether a URI suits the security of its account.
pub fn check_uri(uri: &str, security: AccountSecurity) -> Result<(), InvalidServerUri> {
    match (uri.starts_with("coaps:"), security) {
        (true, AccountSecurity::NoSec) => Err(InvalidServerUri::NeedsNoSecurity),
        (false, AccountSecurity::NoSec) => Ok(()),
        (true, AccountSecurity::Psk | AccountSecurity::Rpk | AccountSecurity::X509) => Ok(()),
        (false, AccountSecurity::Psk | AccountSecurity::Rpk | AccountSecurity::X509) => {
            Err(InvalidServerUri::NeedsSecurity)
        }
    }
}

/// Reads the binding of a server.
pub fn parse_binding(letters: &str) -> Result<Binding, &'static str> {
    Binding::parse(letters).ok_or("must be made of the letters U, T, S, N, M, H and Q")
}

/// Reads a value by the type that its resource has in the object model.
pub fn parse_value(
    catalog: &Catalog,
    path: &str,
    text: &str,
) -> Result<(Path, Value), InvalidBootstrapValue> {
    let path = Path::parse(path)?;
    let Some(resource_id) = path.resource_id() else {
        return Err(InvalidBootstrapValue::Level);
    };
    if is_of_server(path) {
        return Err(InvalidBootstrapValue::Reserved);
    }
    let resource = catalog.resource(path.object_id(), NEWEST, resource_id);
    let data_type = resource.and_then(|it| it.data_type());
    let data_type = data_type.ok_or(InvalidBootstrapValue::Unknown)?;
    if text.len() > BOOTSTRAP_VALUE_BYTES_MAX {
        return Err(InvalidBootstrapValue::TooLong);
    }
    let value = Value::parse(data_type, text)?;
    let target = operation::write_target(path, resource);
    let is_of_account = path.object_id() == SECURITY_OBJECT;
    match is_of_account && target.resource_instance_id().is_some() {
        true => Err(InvalidBootstrapValue::SeveralOfAccount),
        false => Ok((target, value)),
    }
}

/// Checks the certificate of an account with this service, in DER: whether the handshakes of the
/// device with it can succeed. Who has signed it is not looked at, because the authorities of the
/// customer may be set later.
pub fn check_own_certificate(
    certificate: &[u8],
    endpoint: &Endpoint,
    now: Timestamp,
) -> Result<(), InvalidAccountCertificate> {
    let chain = check_length(certificate)?;
    chain
        .check_own(dtls_time(now))
        .map_err(|fault| match fault {
            CertificateFault::NotValidNow => InvalidAccountCertificate::NotValidNow,
            CertificateFault::UnknownIssuer | CertificateFault::Unusable => {
                InvalidAccountCertificate::Unusable
            }
        })?;
    match chain.names().iter().any(|name| name == endpoint.as_str()) {
        true => Ok(()),
        false => Err(InvalidAccountCertificate::OtherName),
    }
}

/// Checks the certificate of an account with another server, in DER. How that server knows its
/// devices is its own affair.
pub fn check_foreign_certificate(
    certificate: &[u8],
    now: Timestamp,
) -> Result<(), InvalidAccountCertificate> {
    match check_length(certificate)?.check_own(dtls_time(now)) {
        Err(CertificateFault::NotValidNow) => Err(InvalidAccountCertificate::NotValidNow),
        Ok(()) | Err(CertificateFault::UnknownIssuer | CertificateFault::Unusable) => Ok(()),
    }
}

fn check_length(certificate: &[u8]) -> Result<CertificateChain, InvalidAccountCertificate> {
    if certificate.len() > BOOTSTRAP_VALUE_BYTES_MAX {
        return Err(InvalidAccountCertificate::TooLong);
    }
    CertificateChain::of(&[certificate]).ok_or(InvalidAccountCertificate::Unusable)
}

fn dtls_time(now: Timestamp) -> dtls::Timestamp {
    dtls::Timestamp::from_ms(u64::try_from(now.as_ms()).unwrap_or(0))
}

/// A configuration of these servers and values, unless it has faults as a whole.
pub fn configured(
    servers: Vec<BootstrapServer>,
    mut values: Vec<(Path, Value)>,
) -> Result<BootstrapConfig, Vec<ConfigFault>> {
    let mut faults = Vec::new();
    if !(1..=BOOTSTRAP_SERVERS_MAX).contains(&servers.len()) {
        faults.push(ConfigFault::ServerCount);
    }
    for (place, server) in servers.iter().enumerate() {
        let mut before = servers.iter().take(place);
        if before.any(|it| it.short_id == server.short_id) {
            faults.push(ConfigFault::ShortIdRepeated(place));
        }
    }
    if values.len() > BOOTSTRAP_VALUES_MAX {
        faults.push(ConfigFault::ValueCount);
    }
    values.sort_by_key(|(path, _)| *path);
    for pair in values.windows(2) {
        if let [(one, _), (other, _)] = pair
            && one.contains(*other)
        {
            faults.push(ConfigFault::Overlap(*other));
        }
    }
    let of_servers = values
        .iter()
        .filter(|(path, _)| [SECURITY_OBJECT, SERVER_OBJECT].contains(&path.object_id()));
    let has_server = |path: &Path| {
        path.instance_id()
            .is_some_and(|id| usize::from(id) < servers.len())
    };
    let lost = of_servers.filter(|(path, _)| !has_server(path));
    faults.extend(lost.map(|(path, _)| ConfigFault::NoServer(*path)));
    match faults.is_empty() {
        true => Ok(BootstrapConfig {
            servers: servers.into(),
            objects: values.into(),
        }),
        false => Err(faults),
    }
}

/// Puts a configuration, as long as whoever it is for exists.
pub fn put_config(scope: BootstrapScope, config: BootstrapConfig) -> Batch {
    let expects = vec![exists(&scope)];
    let config = Box::new(config);
    guarded(expects, Change::PutBootstrapConfig { scope, config })
}

/// Removes a configuration.
pub fn remove_config(scope: BootstrapScope) -> Batch {
    guarded(vec![exists(&scope)], Change::RemoveBootstrapConfig(scope))
}

fn exists(scope: &BootstrapScope) -> Expect {
    Expect::Taken(match scope {
        BootstrapScope::Customer(customer) => UniqueName::Customer(customer.clone()),
        BootstrapScope::Device(device) => UniqueName::Device(*device),
    })
}

/// The URIs by which devices reach this service.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ServiceUris {
    /// Without security.
    pub coap: Option<Box<str>>,
    /// Over DTLS.
    pub coaps: Option<Box<str>>,
}

impl ServiceUris {
    /// The URIs of a host and two ports, for those that are not set.
    pub fn or_at(&self, host: Option<&str>, (coap, coaps): (u16, u16)) -> Self {
        // An IPv6 address is put in brackets (RFC 3986 section 3.2.2).
        let host = host.map(|host| match host.contains(':') {
            true => format!("[{host}]"),
            false => host.to_owned(),
        });
        let at = |scheme: &str, port: u16| {
            let host = host.as_ref()?;
            Some(format!("{scheme}://{host}:{port}").into())
        };
        Self {
            coap: self.coap.clone().or_else(|| at("coap", coap)),
            coaps: self.coaps.clone().or_else(|| at("coaps", coaps)),
        }
    }

    fn of(&self, security: AccountSecurity) -> Result<&str, BootstrapFault> {
        let uri = match security {
            AccountSecurity::NoSec => &self.coap,
            AccountSecurity::Psk | AccountSecurity::Rpk | AccountSecurity::X509 => &self.coaps,
        };
        uri.as_deref().ok_or(BootstrapFault::UnknownHost)
    }
}

/// A host name that a device said, if it is one: it goes into a URI.
pub fn host_of(text: &str) -> Option<Box<str>> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || ['-', '.'].contains(&c);
    let is_name = !text.is_empty() && text.len() < BOOTSTRAP_URI_CHARS_MAX / 2;
    (is_name && text.chars().all(is_part)).then(|| text.into())
}

/// A key that was just generated, and the same key sealed for its device.
pub struct FreshKey {
    /// The key.
    pub bytes: Zeroizing<Vec<u8>>,
    /// The key at rest.
    pub sealed: Sealed,
}

/// The keys that accounts may have. Those that no account has are dropped.
pub struct BootstrapKeys<'k> {
    /// A fresh pre-shared key.
    pub psk: FreshKey,
    /// Makes a fresh key pair.
    pub pair: &'k dyn Fn() -> Result<KeyPair, NoKey>,
    /// The key of the service.
    pub server: ServerKey,
    /// Opens the private key of a certificate.
    pub open: &'k dyn Fn(&Sealed) -> Option<Zeroizing<Vec<u8>>>,
}

/// What a device is to be written, and what has to be durable before.
#[derive(Debug)]
pub struct PreparedBootstrap {
    /// What it is written.
    pub plan: BootstrapPlan,
    /// The device with its fresh keys; nothing if it gets none.
    pub batch: Option<Batch>,
}

/// Prepares the bootstrap of a device.
pub fn prepare(
    profile: &Profile,
    config: &BootstrapConfig,
    uris: &ServiceUris,
    keys: &BootstrapKeys<'_>,
    now: Timestamp,
) -> Result<PreparedBootstrap, BootstrapFault> {
    if profile.security == SecurityRequirement::Dtls && config.has(AccountSecurity::NoSec) {
        return Err(BootstrapFault::NeedsDtls);
    }
    let pair = config.has(AccountSecurity::Rpk).then(keys.pair);
    let pair = pair.transpose().map_err(|NoKey| BootstrapFault::Unstored)?;
    let mut accounts = Vec::new();
    for (place, server) in (0..).zip(&config.servers) {
        let uri = match &server.uri {
            Some(uri) => uri,
            None => uris.of(server.security)?,
        };
        let of_place = |(path, value): &(Path, Value)| {
            let is_of_account = Path::instance(SECURITY_OBJECT, place).contains(*path);
            is_of_account.then_some((path.resource_id()?, value.clone()))
        };
        let given: BTreeMap<_, _> = config.objects.iter().filter_map(of_place).collect();
        let own = (profile.psk_identity(), pair.as_ref());
        let shown = KeysOfAccount::of(server, own, keys, given.get(&SERVER_PUBLIC_KEY))?;
        accounts.push(account_of(server, uri, shown, given));
    }
    let psk = config.has(AccountSecurity::Psk);
    let psk = psk.then(|| keys.psk.sealed.clone());
    let public_key = pair.map(|pair| pair.public);
    let batch = (psk.is_some() || public_key.is_some()).then(|| {
        let is = with_issued_keys(profile, psk, public_key, now);
        let put = Change::PutDevice {
            was: Some(Box::new(profile.clone())),
            profile: Box::new(is),
        };
        guarded(vec![Expect::Profile(Box::new(profile.clone()))], put)
    });
    let plan = BootstrapPlan {
        accounts,
        instances: instances_of(config),
    };
    Ok(PreparedBootstrap { plan, batch })
}

/// The keys of an account (LwM2M Core 1.2 appendix E.1.1), each empty if there is none.
struct KeysOfAccount {
    /// Security Mode.
    mode: i64,
    /// Public Key or Identity.
    identity: Vec<u8>,
    /// Server Public Key.
    server: Vec<u8>,
    /// Secret Key.
    secret: Vec<u8>,
}

impl KeysOfAccount {
    /// The keys of the account of a server. What is given for the key of the server wins: the
    /// certificate may be that of an authority (Certificate Usage).
    fn of(
        server: &BootstrapServer,
        (identity, pair): (&str, Option<&KeyPair>),
        keys: &BootstrapKeys<'_>,
        server_key_given: Option<&Value>,
    ) -> Result<Self, BootstrapFault> {
        let (mode, identity, shown, secret) = match server.security {
            AccountSecurity::Psk => {
                let identity = identity.as_bytes().to_vec();
                (0, identity, Vec::new(), keys.psk.bytes.to_vec())
            }
            AccountSecurity::Rpk => {
                let pair = pair.ok_or(BootstrapFault::Unstored)?;
                let shown = keys.server.public_key().to_vec();
                (1, pair.public.spki(), shown, pair.private.to_vec())
            }
            AccountSecurity::X509 => {
                let shown = keys.server.certificates().first().map(|it| it.to_vec());
                let shown = shown.or(server_key_given.map(|_| Vec::new()));
                let shown = shown.ok_or(BootstrapFault::NoCertificate)?;
                let own = server.certificate.as_ref();
                let own = own.ok_or(BootstrapFault::Unopened)?;
                let secret = (keys.open)(&own.key).ok_or(BootstrapFault::Unopened)?;
                (2, own.certificate.to_vec(), shown, secret.to_vec())
            }
            AccountSecurity::NoSec => (3, Vec::new(), Vec::new(), Vec::new()),
        };
        Ok(Self {
            mode,
            identity,
            server: shown,
            secret,
        })
    }
}

/// An instance of the security object (LwM2M Core 1.2 appendix E.1), with what is given beside the
/// configuration of the server.
fn account_of(
    server: &BootstrapServer,
    uri: &str,
    keys: KeysOfAccount,
    given: BTreeMap<u16, Value>,
) -> Vec<(u16, Value)> {
    let mut values = BTreeMap::from([
        (0, Value::String(uri.to_owned())),
        (1, Value::Boolean(false)),
        (2, Value::Integer(keys.mode)),
        (3, Value::Opaque(keys.identity)),
        (SERVER_PUBLIC_KEY, Value::Opaque(keys.server)),
        (5, Value::Opaque(keys.secret)),
        (10, Value::Integer(server.short_id.into())),
    ]);
    values.extend(given);
    values.into_iter().collect()
}

/// The instances of all other objects: those of the servers first (appendix E.2).
fn instances_of(config: &BootstrapConfig) -> Vec<(Path, Reading)> {
    let mut instances: BTreeMap<Path, Reading> = BTreeMap::new();
    for (instance, server) in (0..).zip(&config.servers) {
        let at = |id| Path::resource(SERVER_OBJECT, instance, id);
        let values = Reading::from([
            (at(0), Value::Integer(server.short_id.into())),
            (at(1), Value::Integer(server.lifetime_s.into())),
            (at(6), Value::Boolean(true)),
            (at(7), Value::String(server.binding.to_string())),
        ]);
        instances.insert(Path::instance(SERVER_OBJECT, instance), values);
    }
    let beside_accounts = config.objects.iter();
    let beside_accounts = beside_accounts.filter(|(path, _)| path.object_id() != SECURITY_OBJECT);
    for (path, value) in beside_accounts {
        let Some(instance) = path.instance_id() else {
            continue;
        };
        let instance = Path::instance(path.object_id(), instance);
        let values = instances.entry(instance).or_default();
        values.insert(*path, value.clone());
    }
    instances.into_iter().collect()
}

impl std::fmt::Debug for BootstrapKeys<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BootstrapKeys(..)")
    }
}

impl std::fmt::Debug for FreshKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FreshKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use rcgen::date_time_ymd;

    use super::*;
    use crate::bootstrap::AccountCertificate;
    use crate::directory::device::{NewDevice, draft_device};
    use crate::ids::{CustomerId, DeviceId};
    use crate::moment::Moment;

    #[test]
    fn a_uri_is_that_of_a_coap_server() {
        for uri in [
            "coap://10.0.0.1:5683",
            "coaps://lwm2m.example",
            "coap://[::1]:1/",
        ] {
            assert_eq!(parse_uri(uri).as_deref(), Ok(uri));
        }
        for uri in [
            "",
            "http://a",
            "coap://",
            "coap://u@a",
            "coap://a/x",
            "coap://a?b",
            "coap:a",
        ] {
            assert_eq!(parse_uri(uri), Err(InvalidServerUri::Form), "{uri}");
        }
        let long = format!("coap://{}", "a".repeat(255));
        assert_eq!(parse_uri(&long), Err(InvalidServerUri::TooLong));
        let (no_sec, psk) = (AccountSecurity::NoSec, AccountSecurity::Psk);
        assert_eq!(check_uri("coaps://a", psk), Ok(()));
        assert_eq!(check_uri("coap://a", no_sec), Ok(()));
        assert!(check_uri("coap://a", psk).is_err() && check_uri("coaps://a", no_sec).is_err());
    }

    #[test]
    fn a_certificate_is_valid_now_and_that_of_its_device_at_this_service() {
        let certificate = |name: &str, years: [i32; 2]| {
            let mut params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
            [params.not_before, params.not_after] = years.map(|year| date_time_ymd(year, 1, 1));
            let key = rcgen::KeyPair::generate().unwrap();
            params.self_signed(&key).unwrap().der().to_vec()
        };
        let meter = Endpoint::parse("meter-1").unwrap();
        let now = Timestamp::from_ms(1_767_225_600_000);
        let own = |certificate: &[u8]| check_own_certificate(certificate, &meter, now);
        let foreign = |certificate: &[u8]| check_foreign_certificate(certificate, now);
        let valid = certificate("meter-1", [2025, 2027]);
        assert_eq!((own(&valid), foreign(&valid)), (Ok(()), Ok(())));
        let other = certificate("meter-2", [2025, 2027]);
        assert_eq!(own(&other), Err(InvalidAccountCertificate::OtherName));
        assert_eq!(foreign(&other), Ok(()));
        for years in [[2024, 2025], [2027, 2028]] {
            let not_now = Err(InvalidAccountCertificate::NotValidNow);
            let certificate = certificate("meter-1", years);
            assert_eq!(
                (own(&certificate), foreign(&certificate)),
                (not_now, not_now)
            );
        }
        assert_eq!(own(b"none"), Err(InvalidAccountCertificate::Unusable));
        let long = vec![0x30; BOOTSTRAP_VALUE_BYTES_MAX + 1];
        assert_eq!(foreign(&long), Err(InvalidAccountCertificate::TooLong));
    }

    #[test]
    fn a_value_has_the_type_of_its_resource() {
        let catalog = Catalog::registry();
        let read = |path, text| parse_value(&catalog, path, text);
        let timezone = Path::resource(3, 0, 15);
        let berlin = Value::String("Europe/Berlin".to_owned());
        assert_eq!(read("/3/0/15", "Europe/Berlin"), Ok((timezone, berlin)));
        let (first, _) = read("/3/0/6", "1").unwrap();
        assert_eq!(first, Path::resource_instance(3, 0, 6, 0));
        for (path, text, fault) in [
            ("/0/1/0", "coap://a", InvalidBootstrapValue::Reserved),
            ("/0/1/5", "AA==", InvalidBootstrapValue::Reserved),
            ("/0/1/16", "1", InvalidBootstrapValue::SeveralOfAccount),
            ("/1/0/1", "60", InvalidBootstrapValue::Reserved),
            ("/3/0", "1", InvalidBootstrapValue::Level),
            ("/3/0/999", "1", InvalidBootstrapValue::Unknown),
            ("/3/0/4", "", InvalidBootstrapValue::Unknown),
        ] {
            assert_eq!(read(path, text), Err(fault), "{path}");
        }
        assert!(matches!(
            read("/3/0/13", "soon"),
            Err(InvalidBootstrapValue::Type(_))
        ));
        assert!(matches!(
            read("3//", "1"),
            Err(InvalidBootstrapValue::Path(_))
        ));
    }

    #[test]
    fn every_fault_of_a_configuration_is_reported() {
        let servers = vec![
            server(1, AccountSecurity::Psk),
            server(1, AccountSecurity::Psk),
        ];
        let value = |path| (path, Value::Integer(1));
        let (whole, part) = (Path::resource(3, 0, 6), Path::resource_instance(3, 0, 6, 0));
        let (lost, account) = (Path::resource(1, 2, 13), Path::resource(0, 2, 11));
        let values = vec![value(part), value(whole), value(lost), value(account)];
        let faults = configured(servers, values);
        let expected = vec![
            ConfigFault::ShortIdRepeated(1),
            ConfigFault::Overlap(part),
            ConfigFault::NoServer(account),
            ConfigFault::NoServer(lost),
        ];
        assert_eq!(faults, Err(expected));
        assert_eq!(
            configured(vec![], vec![]),
            Err(vec![ConfigFault::ServerCount])
        );
    }

    #[test]
    fn a_device_gets_an_account_and_a_server_for_each_configured_one() {
        let objects = vec![
            (Path::resource(0, 1, 11), Value::Integer(10)),
            (Path::resource(1, 1, 13), Value::Integer(2)),
            (Path::resource(3, 0, 15), Value::String("UTC".to_owned())),
        ];
        let second = BootstrapServer {
            uri: Some("coap://other.example".into()),
            ..server(2222, AccountSecurity::NoSec)
        };
        let config = configured(vec![server(1111, AccountSecurity::Psk), second], objects).unwrap();
        let uris = ServiceUris::default().or_at(Some("::1"), (1, 2));
        let prepared = prepare(&meter(), &config, &uris, &keys(), at(1)).unwrap();
        let writes = prepared.plan.writes(|instance| instance == 1);
        let paths: Vec<String> = writes.iter().map(|(path, _)| path.to_string()).collect();
        assert_eq!(paths, ["/0/2", "/0/3", "/1/0", "/1/1", "/3/0"]);
        let value = |at: Path| {
            let mut values = writes.iter().filter_map(|(_, values)| values.get(&at));
            values.next().unwrap().to_text()
        };
        assert_eq!(value(Path::resource(0, 2, 0)), "coaps://[::1]:2");
        assert_eq!(value(Path::resource(0, 2, 2)), "0");
        assert_eq!(value(Path::resource(0, 3, 0)), "coap://other.example");
        assert_eq!(value(Path::resource(0, 3, 2)), "3");
        assert_eq!(value(Path::resource(0, 3, 5)), "");
        assert_eq!(value(Path::resource(0, 3, 11)), "10");
        assert_eq!(value(Path::resource(1, 1, 13)), "2");
        assert_eq!(value(Path::resource(1, 1, 1)), "86400");
    }

    #[test]
    fn a_fresh_key_is_saved_with_what_it_replaces_and_never_printed() {
        let config = BootstrapConfig::of_this_service(AccountSecurity::Psk);
        let uris = ServiceUris::default().or_at(Some("10.0.0.1"), (1, 2));
        let prepared = prepare(&meter(), &config, &uris, &keys(), at(1)).unwrap();
        let batch = prepared.batch.as_ref().unwrap();
        assert_eq!(batch.expects, [Expect::Profile(Box::new(meter()))]);
        let [Change::PutDevice { profile, .. }] = &batch.changes[..] else {
            panic!("{batch:?}");
        };
        let issued = profile.credentials.issued.as_ref().unwrap();
        assert_eq!(issued.key.key, keys().psk.sealed);
        assert_eq!(&*issued.key.identity, "meter");
        assert_eq!(format!("{:?}", prepared.plan), "BootstrapPlan(..)");
        let plain = BootstrapConfig::of_this_service(AccountSecurity::NoSec);
        let plain = prepare(&meter(), &plain, &uris, &keys(), at(1)).unwrap();
        assert_eq!(plain.batch, None);
    }

    #[test]
    fn an_account_with_a_raw_public_key_has_the_fresh_key_pair_and_the_key_of_the_service() {
        let config = BootstrapConfig::of_this_service(AccountSecurity::Rpk);
        let uris = ServiceUris::default().or_at(Some("10.0.0.1"), (1, 2));
        let prepared = prepare(&meter(), &config, &uris, &keys(), at(1)).unwrap();
        let account: BTreeMap<_, _> = prepared.plan.accounts.concat().into_iter().collect();
        let opaque = |bytes: &[u8]| Value::Opaque(bytes.to_vec());
        assert_eq!(account[&0], Value::String("coaps://10.0.0.1:2".to_owned()));
        assert_eq!(account[&2], Value::Integer(1));
        assert_eq!(account[&3], opaque(&pair().unwrap().public.spki()));
        assert_eq!(account[&4], opaque(keys().server.public_key()));
        assert_eq!(account[&5], opaque(&pair().unwrap().private));
        let batch = prepared.batch.unwrap();
        let [Change::PutDevice { profile, .. }] = &batch.changes[..] else {
            panic!("{batch:?}");
        };
        let credentials = &profile.credentials;
        assert!(credentials.has_public_key(&pair().unwrap().public));
        assert_eq!(credentials.issued, None);
    }

    #[test]
    fn an_account_with_a_certificate_has_the_configured_one_and_that_of_the_service() {
        let own = AccountCertificate {
            certificate: Box::from([8]),
            key: Sealed::from_bytes(Box::from([1])),
        };
        let server = BootstrapServer {
            certificate: Some(own),
            ..server(1111, AccountSecurity::X509)
        };
        let uris = ServiceUris::default().or_at(Some("10.0.0.1"), (1, 2));
        let config = configured(vec![server.clone()], vec![]).unwrap();
        let refused = prepare(&meter(), &config, &uris, &keys(), at(1)).unwrap_err();
        assert_eq!(refused, BootstrapFault::NoCertificate);
        let authority = (Path::resource(0, 0, 4), Value::Opaque(vec![6]));
        let config = configured(vec![server], vec![authority]).unwrap();
        let prepared = prepare(&meter(), &config, &uris, &keys(), at(1)).unwrap();
        let account: BTreeMap<_, _> = prepared.plan.accounts.concat().into_iter().collect();
        assert_eq!(account[&2], Value::Integer(2));
        assert_eq!(account[&3], Value::Opaque(vec![8]));
        assert_eq!(account[&4], Value::Opaque(vec![6]));
        assert_eq!(account[&5], Value::Opaque(vec![9]));
        assert_eq!(prepared.batch, None);
        let unopened = BootstrapKeys {
            open: &|_| None,
            ..keys()
        };
        let refused = prepare(&meter(), &config, &uris, &unopened, at(1)).unwrap_err();
        assert_eq!(refused, BootstrapFault::Unopened);
    }

    #[test]
    fn a_device_that_needs_dtls_gets_no_account_without_security() {
        let profile = Profile {
            security: SecurityRequirement::Dtls,
            ..meter()
        };
        let config = BootstrapConfig::of_this_service(AccountSecurity::NoSec);
        let uris = ServiceUris::default().or_at(Some("10.0.0.1"), (1, 2));
        let refused = prepare(&profile, &config, &uris, &keys(), at(1)).unwrap_err();
        assert_eq!(refused, BootstrapFault::NeedsDtls);
        let nowhere = prepare(&meter(), &config, &ServiceUris::default(), &keys(), at(1));
        assert_eq!(nowhere.unwrap_err(), BootstrapFault::UnknownHost);
    }

    #[test]
    fn a_set_uri_wins_over_where_the_device_came_to() {
        let set = ServiceUris {
            coap: None,
            coaps: Some("coaps://iot.example".into()),
        };
        let uris = set.or_at(Some("10.0.0.1"), (5683, 5684));
        assert_eq!(uris.coap.as_deref(), Some("coap://10.0.0.1:5683"));
        assert_eq!(uris.coaps.as_deref(), Some("coaps://iot.example"));
        assert_eq!(host_of("iot.example").as_deref(), Some("iot.example"));
        assert_eq!(host_of("iot/example"), None);
        assert_eq!(host_of(""), None);
    }

    fn server(short_id: u16, security: AccountSecurity) -> BootstrapServer {
        BootstrapServer {
            short_id,
            uri: None,
            lifetime_s: 86_400,
            binding: Binding::UDP,
            security,
            certificate: None,
        }
    }

    fn pair() -> Result<KeyPair, NoKey> {
        KeyPair::generate(&mut |bytes| bytes.fill(5))
    }

    /// Keys with which every secret opens as a 9.
    fn keys() -> BootstrapKeys<'static> {
        BootstrapKeys {
            psk: FreshKey {
                bytes: Zeroizing::new(vec![7; 16]),
                sealed: Sealed::from_bytes(Box::from([1])),
            },
            pair: &pair,
            server: ServerKey::from_scalar(&[3; 32]).unwrap(),
            open: &|_| Some(Zeroizing::new(vec![9])),
        }
    }

    fn meter() -> Profile {
        let new = NewDevice {
            device: DeviceId::parse("meter").ok(),
            ..NewDevice::default()
        };
        let mut m = Moment::new(at(0), 7);
        draft_device(&mut m, &CustomerId::parse("acme").unwrap(), new).unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_ms(1_000 * second)
    }
}
