//! What are devices given when they are bootstrapped, and how did the last bootstrap of a device
//! go? (LwM2M Core 1.2 section 6.1)

use std::fmt;

use protocol::coap::code::Code;
use protocol::lwm2m::binding::Binding;
use protocol::lwm2m::bootstrap::{SECURITY_OBJECT, SERVER_OBJECT};
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::Reading;
use protocol::lwm2m::value::Value;

use crate::credentials::DeviceCredentials;
use crate::ids::{CustomerId, DeviceKey};
use crate::limits::{BOOTSTRAP_STEPS_MAX, LIFETIME_S_MAX};
use crate::moment::Timestamp;
use crate::peer::{Peer, Transport};
use crate::sealed::Sealed;

/// The short server id of the service (contract 11).
pub const SHORT_ID: u16 = 1111;

/// Whose devices a configuration is for.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum BootstrapScope {
    /// All devices of a customer that have none of their own.
    Customer(CustomerId),
    /// One device.
    Device(DeviceKey),
}

/// What devices are given.
#[derive(Clone, Debug, PartialEq)]
pub struct BootstrapConfig {
    /// The servers, each with an account.
    pub servers: Box<[BootstrapServer]>,
    /// Further values, by path.
    pub objects: Box<[(Path, Value)]>,
}

/// A server that devices are to register with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BootstrapServer {
    /// Its short server id.
    pub short_id: u16,
    /// Where it is; none for this service.
    pub uri: Option<Box<str>>,
    /// The lifetime of registrations, in seconds.
    pub lifetime_s: u32,
    /// How devices are reached.
    pub binding: Binding,
    /// How the account is secured.
    pub security: AccountSecurity,
    /// What the device proves its identity with, if that is a certificate.
    pub certificate: Option<AccountCertificate>,
}

/// How an account is secured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AccountSecurity {
    /// Not at all.
    NoSec,
    /// With a pre-shared key, which the service makes at each bootstrap.
    Psk,
    /// With a raw public key, whose key pair the service makes at each bootstrap.
    Rpk,
    /// With a certificate, which is configured with its private key.
    X509,
}

/// A certificate of a device and its private key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AccountCertificate {
    /// The certificate, in DER.
    pub certificate: Box<[u8]>,
    /// The private key in PKCS #8, in DER, sealed for the bootstrap of the device.
    pub key: Sealed,
}

impl BootstrapConfig {
    /// What devices are given if nothing is configured: this service, with the security that the
    /// bootstrap came with.
    pub fn of_this_service(security: AccountSecurity) -> Self {
        Self {
            servers: Box::new([BootstrapServer {
                short_id: SHORT_ID,
                uri: None,
                lifetime_s: LIFETIME_S_MAX,
                binding: Binding::UDP,
                security,
                certificate: None,
            }]),
            objects: Box::default(),
        }
    }

    /// Whether an account is secured in a way.
    pub fn has(&self, security: AccountSecurity) -> bool {
        self.servers
            .iter()
            .any(|server| server.security == security)
    }

    /// The private keys of the certificates.
    pub fn keys_mut(&mut self) -> impl Iterator<Item = &mut Sealed> {
        let servers = self.servers.iter_mut();
        servers.filter_map(|server| Some(&mut server.certificate.as_mut()?.key))
    }
}

/// A device that asked for its bootstrap, for the shell that prepares it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BootstrapOrder {
    /// Where the device asks from.
    pub peer: Peer,
    /// The host name by which it reached the service, if it said one.
    pub host: Option<Box<str>>,
}

impl BootstrapOrder {
    /// The security of an account that is not configured: that which the request came with, as far
    /// as the service can make keys of its kind. A certificate it cannot make.
    pub fn security(&self, keys: &DeviceCredentials) -> AccountSecurity {
        let has_psk = keys.psks().next().is_some();
        let has_public_key = keys.public_keys().next().is_some();
        match self.peer.transport {
            Transport::Coaps if has_public_key && !has_psk => AccountSecurity::Rpk,
            Transport::Coaps => AccountSecurity::Psk,
            Transport::Coap | Transport::Udp => AccountSecurity::NoSec,
        }
    }
}

/// What a device is written, with its keys. It is never printed.
#[derive(Clone, PartialEq)]
pub struct BootstrapPlan {
    /// The accounts, by the order of the servers; the device decides which instances are free.
    pub accounts: Vec<Vec<(u16, Value)>>,
    /// The values of every other instance, in the order in which they are written.
    pub instances: Vec<(Path, Reading)>,
}

impl BootstrapPlan {
    /// The instances to write, if these instances of the object of accounts are taken. The first
    /// account is at 1, because that of the bootstrap server is at 0 by convention.
    pub fn writes(&self, is_taken: impl Fn(u16) -> bool) -> Vec<(Path, Reading)> {
        let free = (1..u16::MAX).filter(|instance| !is_taken(*instance));
        let accounts = free.zip(&self.accounts).map(|(instance, values)| {
            let at = |id: u16| Path::resource(SECURITY_OBJECT, instance, id);
            let values = values.iter().map(|(id, value)| (at(*id), value.clone()));
            (Path::instance(SECURITY_OBJECT, instance), values.collect())
        });
        accounts.chain(self.instances.iter().cloned()).collect()
    }
}

impl fmt::Debug for BootstrapPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BootstrapPlan(..)")
    }
}

/// Why a device is not bootstrapped.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BootstrapFault {
    /// The device is accepted over DTLS alone, and an account without security is configured.
    #[error(
        "the device is accepted over DTLS alone (security DTLS), and its bootstrap configuration \
         has a server with security NOSEC"
    )]
    NeedsDtls,
    /// The service does not know by which address it is reached.
    #[error(
        "the service does not know by which address the device reached it; set \
         SIGNALBOX_PUBLIC_COAP and SIGNALBOX_PUBLIC_COAPS"
    )]
    UnknownHost,
    /// The service has no certificate that a device could verify it by.
    #[error(
        "the service has no certificate, which an account with security X509 needs; set \
         SIGNALBOX_COAPS_CERT and SIGNALBOX_COAPS_KEY, or /0/n/4 in the bootstrap configuration"
    )]
    NoCertificate,
    /// A configured private key does not open.
    #[error(
        "the private key of a certificate in the bootstrap configuration cannot be opened; set the \
         configuration again"
    )]
    Unopened,
    /// The store could not be read or written, or the device changed meanwhile.
    #[error("the bootstrap could not be stored; the device may try again")]
    Unstored,
}

/// A bootstrap of a device.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BootstrapRecord {
    /// When the device asked for it.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How it is going.
    pub state: BootstrapState,
    /// Why it failed.
    pub error: Option<Box<str>>,
    /// The security it came with.
    pub security: BootstrapSecurity,
    /// The requests to the device, in order.
    pub steps: Vec<BootstrapStep>,
}

/// How a bootstrap is going.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BootstrapState {
    /// It is under way.
    Running,
    /// The device has everything.
    Succeeded,
    /// The device refused something, or did not answer.
    Failed,
    /// The service was stopped meanwhile.
    Interrupted,
}

/// What a bootstrap is protected by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BootstrapSecurity {
    /// Nothing.
    NoSec,
    /// DTLS.
    Dtls,
}

/// A request of a bootstrap to the device.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BootstrapStep {
    /// What is requested.
    pub operation: BootstrapOperation,
    /// Of which path; none for Finish and for a pack.
    pub path: Option<BootstrapPath>,
    /// The Content-Format of what is written.
    pub format: Option<u16>,
    /// When it was sent.
    pub at: Timestamp,
    /// The answer of the device; for a pack, that of the service.
    pub answer: Option<Code>,
}

/// What a request of a bootstrap is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BootstrapPath {
    /// Everything.
    Root,
    /// An object or an instance.
    At(Path),
}

/// What a bootstrap requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BootstrapOperation {
    /// To delete.
    Delete,
    /// To list instances.
    Discover,
    /// To write an instance.
    Write,
    /// To go on with what was written.
    Finish,
    /// To take everything in one response, which is its answer.
    Pack,
}

impl BootstrapRecord {
    /// A bootstrap that begins.
    pub fn begun(at: Timestamp, peer: Peer) -> Self {
        Self {
            started_at: at,
            ended_at: None,
            state: BootstrapState::Running,
            error: None,
            security: match peer.transport {
                Transport::Coaps => BootstrapSecurity::Dtls,
                Transport::Coap | Transport::Udp => BootstrapSecurity::NoSec,
            },
            steps: Vec::new(),
        }
    }

    /// The bootstrap as it is shown if it is not under way: then one that has not ended was
    /// interrupted.
    pub fn at_rest(self) -> Self {
        match self.state {
            BootstrapState::Running => Self {
                state: BootstrapState::Interrupted,
                ..self
            },
            BootstrapState::Succeeded | BootstrapState::Failed | BootstrapState::Interrupted => {
                self
            }
        }
    }

    /// Notes a request; those beyond the bound are not noted.
    pub(crate) fn note(&mut self, step: BootstrapStep) {
        if self.steps.len() < BOOTSTRAP_STEPS_MAX {
            self.steps.push(step);
        }
    }

    /// Notes the answer to the last request.
    pub(crate) fn note_answer(&mut self, code: Code) {
        if let Some(step) = self.steps.last_mut() {
            step.answer = Some(code);
        }
    }

    /// Notes the end.
    pub(crate) fn end(&mut self, at: Timestamp, state: BootstrapState, error: Option<&str>) {
        self.ended_at = Some(at);
        self.state = state;
        self.error = error.map(Into::into);
    }
}

impl fmt::Display for BootstrapPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("/"),
            Self::At(path) => path.fmt(f),
        }
    }
}

/// Whether a resource is written from the configuration of a server.
pub fn is_of_server(path: Path) -> bool {
    let written: &[u16] = match path.object_id() {
        SECURITY_OBJECT => &[0, 1, 2, 3, 5, 10],
        SERVER_OBJECT => &[0, 1, 7],
        _ => &[],
    };
    path.resource_id().is_some_and(|id| written.contains(&id))
}
