//! Which device sent a record, and over which session is a device reached? The security
//! associations of an arbiter: DTLS 1.2 with Connection IDs, in front of the arbiter's machine.
//!
//! A handshake runs at the arbiter whose socket receives it. Its session stays there: our
//! Connection IDs begin with the number of the arbiter, and a record that arrives elsewhere is
//! forwarded once.
//! What a record says is handed on with the key of the device that proved its keys, and is then
//! routed as any datagram whose device is known.
//!
//! ```text
//!  record -> handshake -> identity claimed -- looked up --> session of a device
//!              |               | unknown, wrong key             | idle, closed, replaced
//!              v               v                                v
//!           (nothing)      (refused)                        (nothing); resumed by its ticket
//! ```
//!
//! A device is reached over one session at an arbiter: the one over which it sent the last message
//! that is not for a download of an image. Devices download with sessions of their own; one may be
//! beside that session.
//!
//! A certificate has several names. Each is looked up, until one is the endpoint name of a device
//! whose customer trusts an authority that has signed the certificate.

pub mod export;
pub mod handshake;
pub mod server_key;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use dtls::{
    CertificateChain, CipherSuite, CloseReason, Config, DatagramRoute, Effect, Effects, Endpoint,
    HandshakeFailure, Identity, Security, TicketKey,
};
use zeroize::Zeroizing;

use crate::arbiter::input::StoreUnavailable;
use crate::certificate_authorities::CertificateAuthorities;
use crate::change::{Batch, UniqueName};
use crate::credentials::{InvalidPublicKey, KeyUse, Psk, RawPublicKey};
use crate::directory::credentials::{UsedKey, key_used};
use crate::dispatch;
use crate::dispatch::shard_map::{ArbiterId, ShardMap};
use crate::ids::{CustomerId, DeviceKey, Endpoint as EndpointName};
use crate::limits::{
    EARLY_RECORDS_MAX, HANDSHAKE_RETRANSMIT_MS, HANDSHAKES_MAX, RESUMABLE_SESSIONS_MAX,
    RESUMPTION_S, RESUMPTIONS_UNTIL_PROOF, SESSION_IDLE_MS, SESSIONS_MAX,
};
use crate::moment::Timestamp;
use crate::peer::{LocalAddressId, Peer};
use crate::profile::Profile;

use export::SessionRecord;
use handshake::{HandshakeFault, HandshakeOutcome};
use server_key::ServerKey;

/// What a Connection ID of ours begins with: the number of the arbiter.
const PREFIX_LENGTH: usize = 2;

/// How many times the first wait for an answer a handshake may take: a flight is sent five times.
const GIVE_UP_AFTER: u64 = 30;

/// The security associations of an arbiter.
#[derive(Debug)]
pub struct Associations {
    here: ArbiterId,
    shard_map: ShardMap,
    endpoint: Endpoint,
    /// Kept for its memory.
    effects: Effects,
    /// What devices without a pre-shared key verify the service by.
    server_key: ServerKey,
    claims: HashMap<dtls::AssociationId, Claim>,
    /// The look-ups under way, each with the devices whose keys have changed since it began: it may
    /// have read the keys before the change.
    changed_by_look_up: HashMap<dtls::AssociationId, Vec<DeviceKey>>,
    sessions: HashMap<dtls::AssociationId, Session>,
    session_by_device: HashMap<DeviceKey, dtls::AssociationId>,
    /// The other session of a device that has one: nothing was received over it, or only requests
    /// for images.
    second_by_device: HashMap<DeviceKey, dtls::AssociationId>,
    /// Which address of the service a peer has sent its hello to, during a handshake.
    local_by_address: HashMap<SocketAddr, LocalAddressId>,
    outcomes: [u64; HandshakeOutcome::ALL.len()],
    address_changes: u64,
}

/// How many sessions an arbiter has, how long, and which it refuses.
#[derive(Clone, Copy, Debug)]
pub struct AssociationLimits {
    /// Sessions; the one that was silent longest gives way.
    pub sessions_max: usize,
    /// Handshakes that have passed the cookie; the oldest gives way.
    pub handshakes_max: usize,
    /// How long a session may be silent.
    pub idle_timeout_ms: u64,
    /// How long after its last handshake a session can be resumed.
    pub resumption_s: u32,
    /// How long a flight waits for an answer before it is sent again.
    pub retransmit_ms: u64,
    /// Whether devices that do not offer encrypt-then-MAC (RFC 7366) may have cipher suites with
    /// CBC.
    pub accepts_bare_cbc: bool,
}

/// The secrets that all arbiters share.
#[derive(Clone)]
pub struct AssociationSecrets {
    /// The key of cookies.
    pub cookies: [u8; 32],
    /// The key of session tickets.
    pub tickets: [u8; 32],
    /// The key of the service.
    pub server_key: ServerKey,
}

/// A moment whose randomness is fit for keys, unlike that of [`crate::moment::Moment`].
pub struct SecureMoment<'e> {
    /// The time.
    pub now: Timestamp,
    /// Fills a buffer with unpredictable bytes.
    pub entropy: &'e mut dyn FnMut(&mut [u8]),
}

/// What the shell of an arbiter does for its associations, in order.
#[derive(Debug)]
pub enum AssociationEffect {
    /// Send a record.
    Send(Peer, Vec<u8>),
    /// Hand a record to the arbiter that has its session, for `handle_forwarded`.
    Forward(ArbiterId, Peer, Vec<u8>),
    /// Look up who has an identity, then call `handle_credentials`.
    LookUp(ClaimId, ClaimedIdentity),
    /// A message of a device has arrived.
    Receive(DeviceKey, Peer, Vec<u8>),
    /// A message has arrived of a device whose key is valid for its bootstrap alone.
    ReceiveForBootstrap(DeviceKey, Peer, Vec<u8>),
    /// Commit that a device uses its new key, which ends the previous one. If the batch is not
    /// committed, the next handshake leads to it again.
    Commit(Box<Batch>),
    /// Have a session of a device without tickets resumed by its id, at every arbiter and by later
    /// processes: give the record to their `cache`. It contains the secret of the session.
    Cache(SessionRecord),
    /// A handshake was refused to somebody who claims to be a device.
    Refuse(DeviceKey, Peer, HandshakeFault),
}

/// The identity that a peer claims or has proved.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ClaimedIdentity {
    /// The identity of a pre-shared key.
    Psk(Box<str>),
    /// A raw public key.
    PublicKey(RawPublicKey),
    /// A certificate with this endpoint name.
    Certificate {
        /// The name.
        endpoint: EndpointName,
        /// The customer whose authorities have admitted it; none until then.
        customer: Option<CustomerId>,
    },
}

/// The handshake for which an identity is looked up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClaimId(dtls::AssociationId);

/// The device that has an identity, and its keys.
#[derive(Debug)]
pub struct KnownCredentials {
    /// The device.
    pub profile: Box<Profile>,
    /// Its valid pre-shared keys of the identity.
    pub psks: Vec<OpenPsk>,
    /// Who certifies the devices of its customer, if the identity is a certificate.
    pub authorities: Option<CertificateAuthorities>,
}

/// A pre-shared key and its bytes, which are overwritten when they are dropped and never printed.
pub struct OpenPsk {
    psk: Psk,
    bytes: Zeroizing<Vec<u8>>,
}

/// The association with a device, for the inspector.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AssociationSnapshot {
    /// Who the device has proved to be.
    pub identity: ClaimedIdentity,
    /// The name of the cipher suite.
    pub suite: &'static str,
    /// Whether the device may change its address without a handshake.
    pub has_connection_id: bool,
    /// Whether the last handshake resumed an earlier session.
    pub is_resumed: bool,
    /// When the last handshake ended.
    pub established_at: Timestamp,
    /// When the device last proved its key.
    pub authenticated_at: Timestamp,
    /// Where the device is.
    pub address: SocketAddr,
    /// How often it changed its address since the last handshake.
    pub address_changes: u32,
}

/// What happened so far, in numbers.
#[derive(Clone, Copy, Debug)]
pub struct AssociationCounts {
    /// Handshakes by outcome, in the order of [`HandshakeOutcome::ALL`].
    pub handshakes: [u64; HandshakeOutcome::ALL.len()],
    /// Hellos that were answered with a cookie.
    pub cookies_sent: u64,
    /// Changes of an address that a session followed.
    pub address_changes: u64,
    /// Datagrams that are no DTLS.
    pub malformed: u64,
    /// Records that were forged, repeated or of another key.
    pub not_authentic: u64,
    /// Records of a session that does not exist, or no longer.
    pub unknown_connection_ids: u64,
    /// All records that led to nothing, those included.
    pub dropped: u64,
    /// Sessions now.
    pub sessions: usize,
    /// Handshakes under way now.
    pub handshakes_open: usize,
}

/// What is known of a handshake since its identity was claimed.
#[derive(Debug)]
struct Claim {
    identity: ClaimedIdentity,
    holder: Holder,
    /// What each of several keys is valid for, and what its use would change.
    uses: Vec<(KeyUse, Option<Box<Batch>>)>,
    /// The certificate, while its names are looked up.
    shown: Option<ShownCertificate>,
}

/// A certificate whose owner is looked up.
#[derive(Debug)]
struct ShownCertificate {
    chain: CertificateChain,
    /// The names that were not looked up, the next one last.
    names: Vec<EndpointName>,
    /// The first device that has one of the names, and why it is not the peer.
    refused: Option<(DeviceKey, HandshakeFault)>,
}

/// Who has a claimed identity.
#[derive(Clone, Copy, Debug)]
enum Holder {
    /// It is being looked up.
    LookedUp,
    Nobody,
    Device(DeviceKey),
    /// The device has no valid key of the identity, or its customer does not trust the certificate.
    Refused(DeviceKey, HandshakeFault),
}

#[derive(Debug)]
struct Session {
    owner: Owner,
    local: Option<LocalAddressId>,
    security: Security,
    established_at: Timestamp,
    address_changes: u32,
    /// What the key of its handshake is valid for. A resumed session with a pre-shared key does not
    /// tell which key it was, and is valid for all.
    key_use: KeyUse,
    /// Beside the owner and not in it: there it would make every session eight bytes larger.
    begun: Begun,
    carries: Carries,
}

/// Whose session it is.
#[derive(Debug)]
enum Owner {
    Device(DeviceKey),
    /// The device is looked up, and its first messages wait.
    LookedUp(Vec<Vec<u8>>),
    /// It is of an earlier process, and was not heard yet.
    Kept,
}

/// What was received over a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Carries {
    /// Nothing yet.
    Nothing,
    /// Requests for images alone.
    Downloads,
    /// Other messages.
    Messages,
}

/// Where a session began.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Begun {
    /// In this process.
    Here,
    /// In an earlier process.
    Before,
}

impl Associations {
    /// The associations of an earlier process, if there are records of it.
    pub fn new(
        here: ArbiterId,
        shard_map: ShardMap,
        limits: AssociationLimits,
        secrets: &AssociationSecrets,
        kept: &[SessionRecord],
    ) -> Self {
        let mut config = Config::new(secrets.cookies);
        config.connection_id_prefix = here.number().to_be_bytes().into();
        config.ticket_keys = vec![TicketKey::from_bytes(secrets.tickets)];
        config.server_key = Some(secrets.server_key.signing_key());
        config.cached_sessions_max = RESUMABLE_SESSIONS_MAX;
        config.associations_max = limits.sessions_max;
        config.handshakes_max = limits.handshakes_max;
        config.accepts_bare_cbc = limits.accepts_bare_cbc;
        config.idle_timeout_ms = limits.idle_timeout_ms;
        config.resumption_s = limits.resumption_s;
        config.authentication_s = limits.resumption_s.saturating_mul(RESUMPTIONS_UNTIL_PROOF);
        config.retransmission.initial_ms = limits.retransmit_ms;
        config.retransmission.give_up_ms = limits.retransmit_ms.saturating_mul(GIVE_UP_AFTER);
        let (endpoint, sessions) = export::import(Arc::new(config), kept);
        Self {
            here,
            shard_map,
            endpoint,
            effects: Effects::new(),
            server_key: secrets.server_key.clone(),
            claims: HashMap::new(),
            changed_by_look_up: HashMap::new(),
            sessions,
            session_by_device: HashMap::new(),
            second_by_device: HashMap::new(),
            local_by_address: HashMap::new(),
            outcomes: [0; HandshakeOutcome::ALL.len()],
            address_changes: 0,
        }
    }

    /// Handles a datagram from a socket.
    pub fn handle_datagram(
        &mut self,
        m: &mut SecureMoment<'_>,
        peer: Peer,
        bytes: &[u8],
        out: &mut Vec<AssociationEffect>,
    ) {
        match self.home_of(bytes) {
            Some(home) if home != self.here => {
                out.push(AssociationEffect::Forward(home, peer, bytes.to_vec()));
            }
            Some(_) | None => self.handle_forwarded(m, peer, bytes, out),
        }
    }

    /// Handles a datagram whose session is here, wherever it was received.
    pub fn handle_forwarded(
        &mut self,
        m: &mut SecureMoment<'_>,
        peer: Peer,
        bytes: &[u8],
        out: &mut Vec<AssociationEffect>,
    ) {
        if !dispatch::is_of_one_host(peer.ip()) || peer.address.port() == 0 {
            return;
        }
        let handshakes = self.endpoint.handshake_count();
        let (moment, effects) = (&mut m.of_dtls(), &mut self.effects);
        self.endpoint
            .handle_datagram(moment, peer.address, bytes, effects);
        if self.endpoint.handshake_count() > handshakes
            && let Some(local) = peer.local
        {
            self.local_by_address.insert(peer.address, local);
        }
        self.settle(m, peer.local, out);
    }

    /// Takes who has the identity of a handshake.
    pub fn handle_credentials(
        &mut self,
        m: &mut SecureMoment<'_>,
        ClaimId(id): ClaimId,
        found: Result<Option<KnownCredentials>, StoreUnavailable>,
        out: &mut Vec<AssociationEffect>,
    ) {
        let changed = self.changed_by_look_up.remove(&id).unwrap_or_default();
        if let Ok(Some(known)) = &found
            && changed.contains(&known.profile.key())
        {
            return self.ask_again(id, out);
        }
        if self.sessions.contains_key(&id) {
            self.own_resumed(id, found, out);
        } else if self.claims.contains_key(&id) {
            self.answer_claim(m, id, found, out);
        }
        self.settle(m, None, out);
    }

    /// Takes a session that can be resumed by its id, of another arbiter or of an earlier process.
    pub fn cache(&mut self, record: &[u8]) {
        self.endpoint.cache(record);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, m: &mut SecureMoment<'_>, out: &mut Vec<AssociationEffect>) {
        self.endpoint
            .handle_timeout(&mut m.of_dtls(), &mut self.effects);
        self.settle(m, None, out);
    }

    /// Sends a message to a device over its session. Returns whether there is one.
    pub fn send(
        &mut self,
        m: &mut SecureMoment<'_>,
        device: DeviceKey,
        message: &[u8],
        out: &mut Vec<AssociationEffect>,
    ) -> bool {
        match self.session_by_device.get(&device).copied() {
            Some(id) => self.send_over(m, id, message, out),
            None => false,
        }
    }

    /// Sends an answer to a device over the session with this address, if it has such a session.
    /// Returns whether there is one.
    pub fn answer(
        &mut self,
        m: &mut SecureMoment<'_>,
        (device, address): (DeviceKey, SocketAddr),
        message: &[u8],
        out: &mut Vec<AssociationEffect>,
    ) -> bool {
        let second = self.second_by_device.get(&device).copied();
        match second.filter(|id| self.endpoint.peer(*id) == Some(address)) {
            Some(id) => self.send_over(m, id, message, out),
            None => self.send(m, device, message, out),
        }
    }

    fn send_over(
        &mut self,
        m: &mut SecureMoment<'_>,
        id: dtls::AssociationId,
        message: &[u8],
        out: &mut Vec<AssociationEffect>,
    ) -> bool {
        let local = self.sessions.get(&id).and_then(|session| session.local);
        let sent = self.endpoint.send(id, message, &mut self.effects);
        self.settle(m, local, out);
        sent.is_ok()
    }

    /// Ends the sessions of a device whose keys are no longer valid, and the handshakes under way
    /// that were answered with one of them.
    pub fn end(
        &mut self,
        m: &mut SecureMoment<'_>,
        device: DeviceKey,
        out: &mut Vec<AssociationEffect>,
    ) {
        for changed in self.changed_by_look_up.values_mut() {
            changed.push(device);
        }
        for (id, claim) in &mut self.claims {
            if matches!(claim.holder, Holder::Device(of) if of == device) {
                claim.holder = Holder::Refused(device, HandshakeFault::NoKey);
                self.endpoint.refuse(*id, &mut self.effects);
            }
        }
        self.settle(m, None, out);
        let first = self.session_by_device.remove(&device);
        let second = self.second_by_device.remove(&device);
        for id in first.into_iter().chain(second) {
            let local = self.sessions.remove(&id).and_then(|session| session.local);
            self.endpoint.close(id, &mut self.effects);
            self.settle(m, local, out);
        }
    }

    /// Ends every session that began with a certificate of a customer's device, whose authorities
    /// have changed. Devices that prove a certificate meanwhile begin anew.
    pub fn end_certified(
        &mut self,
        m: &mut SecureMoment<'_>,
        customer: &CustomerId,
        out: &mut Vec<AssociationEffect>,
    ) {
        let of_customer = self.endpoint.sessions().filter(|(_, identity)| {
            let certified = match identity {
                Identity::Certificate(name) => read_certified(name),
                Identity::Psk(_) | Identity::RawPublicKey(_) => None,
            };
            certified.is_some_and(|(of, _)| of == *customer)
        });
        let ended: Vec<_> = of_customer.map(|(id, _)| id).collect();
        for id in ended {
            self.forget(id);
            self.endpoint.close(id, &mut self.effects);
        }
        for (id, claim) in &mut self.claims {
            if !claim.is_certified() {
                continue;
            }
            if let Holder::Device(device) = claim.holder {
                claim.holder = Holder::Refused(device, HandshakeFault::UntrustedCertificate);
            }
            self.endpoint.refuse(*id, &mut self.effects);
        }
        self.settle(m, None, out);
    }

    /// Shows another key to devices without a pre-shared one, from the next handshake on.
    pub fn show_key(&mut self, key: &ServerKey) {
        self.server_key = key.clone();
        self.endpoint.show_key(Some(key.signing_key()));
    }

    /// The key that is shown.
    pub fn server_key(&self) -> &ServerKey {
        &self.server_key
    }

    /// When `handle_timeout` is due.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        let at = self.endpoint.next_timeout()?.as_ms();
        Some(Timestamp::from_ms(i64::try_from(at).unwrap_or(i64::MAX)))
    }

    /// The association with a device.
    pub fn snapshot(&self, device: DeviceKey) -> Option<AssociationSnapshot> {
        let id = *self.session_by_device.get(&device)?;
        let session = self.sessions.get(&id)?;
        Some(AssociationSnapshot {
            identity: ClaimedIdentity::of(self.endpoint.identity(id)?)?,
            suite: session.security.suite.name(),
            has_connection_id: session.security.has_connection_id,
            is_resumed: session.security.is_resumed,
            established_at: session.established_at,
            authenticated_at: time_of(session.security.authenticated_at),
            address: self.endpoint.peer(id)?,
            address_changes: session.address_changes,
        })
    }

    /// What happened so far.
    pub fn counts(&self) -> AssociationCounts {
        let counters = self.endpoint.counters();
        AssociationCounts {
            handshakes: self.outcomes,
            cookies_sent: counters.cookies_sent,
            address_changes: self.address_changes,
            malformed: counters.malformed,
            not_authentic: counters.not_authentic,
            unknown_connection_ids: counters.unknown_connection_ids,
            dropped: counters.records_dropped,
            sessions: self.sessions.len(),
            handshakes_open: self.endpoint.handshake_count(),
        }
    }

    /// The arbiter whose Connection ID a datagram has.
    fn home_of(&self, bytes: &[u8]) -> Option<ArbiterId> {
        let DatagramRoute::ConnectionId(id) = DatagramRoute::of(bytes, PREFIX_LENGTH) else {
            return None;
        };
        let number = u16::from_be_bytes(*id.first_chunk::<PREFIX_LENGTH>()?);
        self.shard_map.numbered(number)
    }

    /// Settles the effects of a call, which may lead to further ones. `local` is the address that
    /// the datagram was sent to, if it was a datagram.
    fn settle(
        &mut self,
        m: &mut SecureMoment<'_>,
        local: Option<LocalAddressId>,
        out: &mut Vec<AssociationEffect>,
    ) {
        while !self.effects.is_empty() {
            let mut effects = std::mem::take(&mut self.effects);
            for effect in effects.iter() {
                self.settle_one(m, local, &effect, out);
            }
            effects.clear();
            // The buffer that has memory is kept.
            if self.effects.is_empty() {
                self.effects = effects;
            }
        }
        if self.endpoint.handshake_count() == 0 {
            self.local_by_address.clear();
        }
    }

    fn settle_one(
        &mut self,
        m: &mut SecureMoment<'_>,
        local: Option<LocalAddressId>,
        effect: &Effect<'_>,
        out: &mut Vec<AssociationEffect>,
    ) {
        match *effect {
            Effect::Send { peer, datagram } => {
                let local = local.or_else(|| self.local_by_address.get(&peer).copied());
                let peer = Peer::secured(peer).sent_to(local);
                out.push(AssociationEffect::Send(peer, datagram.to_vec()));
            }
            Effect::LookUpPsk {
                association,
                identity,
            } => match str::from_utf8(identity) {
                Ok(identity) => {
                    self.look_up(association, ClaimedIdentity::Psk(identity.into()), out);
                }
                // A name of a device is text.
                Err(_) => {
                    let (moment, effects) = (&mut m.of_dtls(), &mut self.effects);
                    self.endpoint.provide_psk(moment, association, &[], effects);
                }
            },
            Effect::AdmitPublicKey {
                association,
                public_key,
            } => match RawPublicKey::from_spki(public_key) {
                Ok(key) => self.look_up(association, ClaimedIdentity::PublicKey(key), out),
                Err(InvalidPublicKey) => self.endpoint.refuse(association, &mut self.effects),
            },
            Effect::AdmitCertificate { association, chain } => {
                let names = chain.names();
                let names = names.iter().rev().flat_map(|it| EndpointName::parse(it));
                let shown = ShownCertificate {
                    chain: chain.clone(),
                    names: names.collect(),
                    refused: None,
                };
                self.look_up_name(association, shown, out);
            }
            Effect::Established {
                association,
                peer,
                identity,
                security,
                cached,
                ..
            } => {
                out.extend(cached.map(|it| AssociationEffect::Cache(it.to_vec().into())));
                let local = local.or_else(|| self.local_by_address.remove(&peer));
                let claim = self.claims.remove(&association);
                let owner = match claim.as_ref().map(|claim| claim.holder) {
                    Some(Holder::Device(device)) => Owner::Device(device),
                    Some(Holder::LookedUp | Holder::Nobody | Holder::Refused(..)) | None => {
                        Owner::LookedUp(Vec::new())
                    }
                };
                let uses = claim.map_or_else(Vec::new, |claim| claim.uses);
                let used = uses.into_iter().nth(security.psk_index);
                let (key_use, used) = used.unwrap_or((KeyUse::All, None));
                let session = Session {
                    owner,
                    local,
                    security,
                    established_at: m.now,
                    address_changes: 0,
                    key_use,
                    begun: Begun::Here,
                    carries: Carries::Nothing,
                };
                self.establish(association, identity, session, out);
                out.extend(used.map(AssociationEffect::Commit));
            }
            Effect::Received {
                association,
                content,
            } => self.receive(association, local, content, out),
            Effect::Moved { association, .. } => {
                self.address_changes += 1;
                if let Some(session) = self.sessions.get_mut(&association) {
                    session.address_changes = session.address_changes.saturating_add(1);
                }
            }
            Effect::Closed {
                association,
                reason:
                    CloseReason::CloseNotify
                    | CloseReason::Alert(_)
                    | CloseReason::Idle
                    | CloseReason::Evicted
                    | CloseReason::Replaced,
            } => self.forget(association),
            Effect::Failed {
                association,
                peer,
                reason,
            } => self.fail(association, (peer, local), reason, out),
        }
    }

    fn look_up(
        &mut self,
        id: dtls::AssociationId,
        claimed: ClaimedIdentity,
        out: &mut Vec<AssociationEffect>,
    ) {
        let claim = Claim {
            identity: claimed.clone(),
            holder: Holder::LookedUp,
            uses: Vec::new(),
            shown: None,
        };
        self.claims.insert(id, claim);
        self.ask(id, claimed, out);
    }

    /// Asks who has an identity.
    fn ask(
        &mut self,
        id: dtls::AssociationId,
        claimed: ClaimedIdentity,
        out: &mut Vec<AssociationEffect>,
    ) {
        self.changed_by_look_up.insert(id, Vec::new());
        out.push(AssociationEffect::LookUp(ClaimId(id), claimed));
    }

    /// Asks anew, because what was read is from before a change.
    fn ask_again(&mut self, id: dtls::AssociationId, out: &mut Vec<AssociationEffect>) {
        let claimed = match self.claims.get(&id) {
            Some(claim) => Some(claim.identity.clone()),
            None => self.endpoint.identity(id).and_then(ClaimedIdentity::of),
        };
        if let Some(claimed) = claimed {
            self.ask(id, claimed, out);
        }
    }

    /// Looks up the next name of a certificate. If there is none, the handshake is refused.
    fn look_up_name(
        &mut self,
        id: dtls::AssociationId,
        mut shown: ShownCertificate,
        out: &mut Vec<AssociationEffect>,
    ) {
        if let Some(endpoint) = shown.names.pop() {
            let customer = None;
            self.look_up(id, ClaimedIdentity::Certificate { endpoint, customer }, out);
            if let Some(claim) = self.claims.get_mut(&id) {
                claim.shown = Some(shown);
            }
            return;
        }
        if let Some(claim) = self.claims.get_mut(&id) {
            claim.holder = match shown.refused {
                Some((device, fault)) => Holder::Refused(device, fault),
                None => Holder::Nobody,
            };
        }
        self.endpoint.refuse(id, &mut self.effects);
    }

    /// Goes on with a certificate one of whose names was looked up.
    fn answer_name(
        &mut self,
        m: &mut SecureMoment<'_>,
        id: dtls::AssociationId,
        (mut shown, found): (ShownCertificate, Option<KnownCredentials>),
        out: &mut Vec<AssociationEffect>,
    ) {
        let Some(known) = found else {
            return self.look_up_name(id, shown, out);
        };
        let profile = &known.profile;
        let moment = &mut m.of_dtls();
        let trusted = known.authorities.as_ref();
        let trusted = trusted.map_or(&[][..], CertificateAuthorities::certificates);
        if let Err(fault) = shown.chain.verify(trusted, moment.now) {
            shown.refused.get_or_insert((profile.key(), fault.into()));
            return self.look_up_name(id, shown, out);
        }
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        claim.holder = Holder::Device(profile.key());
        let name = write_certified(&profile.customer, &profile.endpoint);
        self.endpoint
            .admit_as(moment, id, name.as_bytes(), &mut self.effects);
    }

    /// Goes on with a handshake whose identity was looked up.
    fn answer_claim(
        &mut self,
        m: &mut SecureMoment<'_>,
        id: dtls::AssociationId,
        found: Result<Option<KnownCredentials>, StoreUnavailable>,
        out: &mut Vec<AssociationEffect>,
    ) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let Ok(found) = found else {
            self.claims.remove(&id);
            self.count(HandshakeOutcome::StoreUnavailable);
            // The device begins anew, when it has waited long enough for an answer.
            return self.endpoint.forget(id);
        };
        if let Some(shown) = claim.shown.take() {
            return self.answer_name(m, id, (shown, found), out);
        }
        claim.holder = match &found {
            Some(known) if claim.identity.is_held_by(known) => Holder::Device(known.profile.key()),
            Some(known) => Holder::Refused(known.profile.key(), HandshakeFault::NoKey),
            None => Holder::Nobody,
        };
        if let Some(known) = &found {
            claim.uses = claim.identity.uses_of(known, m.now);
        }
        let (moment, effects) = (&mut m.of_dtls(), &mut self.effects);
        match (&claim.identity, claim.holder) {
            (ClaimedIdentity::Psk(_), _) => {
                let psks = found.map_or_else(Vec::new, |known| known.psks);
                let candidates: Vec<&[u8]> = psks.iter().map(OpenPsk::as_bytes).collect();
                self.endpoint.provide_psk(moment, id, &candidates, effects);
            }
            (ClaimedIdentity::PublicKey(_), Holder::Device(_)) => {
                self.endpoint.admit(moment, id, effects);
            }
            (
                ClaimedIdentity::PublicKey(_),
                Holder::LookedUp | Holder::Nobody | Holder::Refused(..),
            )
            | (ClaimedIdentity::Certificate { .. }, _) => self.endpoint.refuse(id, effects),
        }
    }

    fn establish(
        &mut self,
        id: dtls::AssociationId,
        identity: &Identity,
        session: Session,
        out: &mut Vec<AssociationEffect>,
    ) {
        match (&session.owner, ClaimedIdentity::of(identity)) {
            (Owner::Device(device), _) => {
                let device = *device;
                self.count(HandshakeOutcome::Completed);
                self.sessions.insert(id, session);
                self.add(device, id);
            }
            (Owner::LookedUp(_) | Owner::Kept, Some(claimed)) => {
                self.sessions.insert(id, session);
                self.ask(id, claimed, out);
            }
            (Owner::LookedUp(_) | Owner::Kept, None) => self.endpoint.forget(id),
        }
    }

    /// A device has another session. It is reached over that if it has no other; if it has, what it
    /// sends decides.
    fn add(&mut self, device: DeviceKey, id: dtls::AssociationId) {
        match self.session_by_device.contains_key(&device) {
            true => self.put_second(device, id),
            false => drop(self.session_by_device.insert(device, id)),
        }
    }

    /// A device is reached over this session from now on. The one before stays if the device
    /// downloads over it.
    fn reach_over(&mut self, device: DeviceKey, id: dtls::AssociationId) {
        let is_second = self.second_by_device.get(&device) == Some(&id);
        if is_second {
            self.second_by_device.remove(&device);
        }
        let before = self.session_by_device.insert(device, id);
        let Some(before) = before.filter(|before| *before != id) else {
            return;
        };
        match self.sessions.get(&before).map(|session| session.carries) {
            Some(Carries::Downloads) => self.put_second(device, before),
            Some(Carries::Nothing | Carries::Messages) | None => self.drop_session(before),
        }
    }

    /// A device has one session beside the one that it is reached over: the newest.
    fn put_second(&mut self, device: DeviceKey, id: dtls::AssociationId) {
        let before = self.second_by_device.insert(device, id);
        if let Some(before) = before.filter(|before| *before != id) {
            self.drop_session(before);
        }
    }

    fn drop_session(&mut self, id: dtls::AssociationId) {
        self.sessions.remove(&id);
        self.endpoint.forget(id);
    }

    /// Goes on with a session, resumed or of an earlier process, whose device was looked up.
    fn own_resumed(
        &mut self,
        id: dtls::AssociationId,
        found: Result<Option<KnownCredentials>, StoreUnavailable>,
        out: &mut Vec<AssociationEffect>,
    ) {
        let claimed = self.endpoint.identity(id).and_then(ClaimedIdentity::of);
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let authenticated_at = time_of(session.security.authenticated_at);
        let Owner::LookedUp(early) = &mut session.owner else {
            return;
        };
        let early = std::mem::take(early);
        let (begun, key_use) = (session.begun, session.key_use);
        let use_by = |known: &KnownCredentials| {
            let claimed = claimed.as_ref();
            let claimed = claimed.filter(|it| it.is_still_of(known, authenticated_at));
            claimed.map(|it| it.use_of_session(known, key_use))
        };
        let (outcome, refused) = match found {
            Err(StoreUnavailable) => (HandshakeOutcome::StoreUnavailable, None),
            Ok(None) => (HandshakeOutcome::UnknownIdentity, None),
            Ok(Some(known)) => {
                let device = known.profile.key();
                if let Some(key_use) = use_by(&known) {
                    session.owner = Owner::Device(device);
                    session.key_use = key_use;
                    if begun == Begun::Here {
                        self.count(HandshakeOutcome::Resumed);
                    }
                    self.add(device, id);
                    for content in early {
                        self.receive(id, None, &content, out);
                    }
                    return;
                }
                let fault = HandshakeFault::Revoked;
                (HandshakeOutcome::Refused(fault), Some((device, fault)))
            }
        };
        let local = session.local;
        self.count(outcome);
        let address = self.endpoint.peer(id);
        if let (Some((device, fault)), Some(address)) = (refused, address) {
            let peer = Peer::secured(address).sent_to(local);
            out.push(AssociationEffect::Refuse(device, peer, fault));
        }
        self.sessions.remove(&id);
        if outcome == HandshakeOutcome::StoreUnavailable {
            // The device may resume it later.
            self.endpoint.close(id, &mut self.effects);
        } else {
            self.endpoint.revoke(id, &mut self.effects);
        }
    }

    fn receive(
        &mut self,
        id: dtls::AssociationId,
        local: Option<LocalAddressId>,
        content: &[u8],
        out: &mut Vec<AssociationEffect>,
    ) {
        let (Some(session), Some(address)) = (self.sessions.get_mut(&id), self.endpoint.peer(id))
        else {
            return;
        };
        session.local = local.or(session.local);
        match &mut session.owner {
            Owner::Device(device) => {
                let device = *device;
                let peer = Peer::secured(address).of_device(device);
                let (peer, bytes) = (peer.sent_to(session.local), content.to_vec());
                out.push(match session.key_use {
                    KeyUse::All => AssociationEffect::Receive(device, peer, bytes),
                    KeyUse::Bootstrap => {
                        AssociationEffect::ReceiveForBootstrap(device, peer, bytes)
                    }
                });
                if session.carries != Carries::Messages {
                    let is_download = dispatch::is_download(content);
                    session.carries = match is_download {
                        true => Carries::Downloads,
                        false => Carries::Messages,
                    };
                    if !is_download {
                        self.reach_over(device, id);
                    }
                }
            }
            // Beyond the bound the network has lost it.
            Owner::LookedUp(early) if early.len() < EARLY_RECORDS_MAX => {
                early.push(content.to_vec());
            }
            Owner::LookedUp(_) => {}
            Owner::Kept => {
                session.owner = Owner::LookedUp(vec![content.to_vec()]);
                match self.endpoint.identity(id).and_then(ClaimedIdentity::of) {
                    Some(claimed) => self.ask(id, claimed, out),
                    None => self.endpoint.forget(id),
                }
            }
        }
    }

    fn forget(&mut self, id: dtls::AssociationId) {
        let Some(session) = self.sessions.remove(&id) else {
            return;
        };
        if let Owner::Device(device) = session.owner {
            for by_device in [&mut self.session_by_device, &mut self.second_by_device] {
                if by_device.get(&device) == Some(&id) {
                    by_device.remove(&device);
                }
            }
        }
    }

    fn fail(
        &mut self,
        id: dtls::AssociationId,
        (address, local): (SocketAddr, Option<LocalAddressId>),
        reason: HandshakeFailure,
        out: &mut Vec<AssociationEffect>,
    ) {
        let local = self.local_by_address.remove(&address).or(local);
        let holder = self.claims.remove(&id).map(|claim| claim.holder);
        let fault = match reason {
            HandshakeFailure::WrongKey => Some(HandshakeFault::WrongKey),
            HandshakeFailure::RefusedByPeer(_) => Some(HandshakeFault::EndedByPeer),
            HandshakeFailure::Refused(_) => Some(HandshakeFault::Protocol),
            HandshakeFailure::TimedOut | HandshakeFailure::Evicted | HandshakeFailure::Replaced => {
                None
            }
        };
        let outcome = match (holder, fault, reason) {
            (Some(Holder::Device(device)), Some(fault), _) => {
                let peer = Peer::secured(address).sent_to(local);
                out.push(AssociationEffect::Refuse(device, peer, fault));
                HandshakeOutcome::Refused(fault)
            }
            (Some(Holder::Refused(device, fault)), Some(_), _) => {
                let peer = Peer::secured(address).sent_to(local);
                out.push(AssociationEffect::Refuse(device, peer, fault));
                HandshakeOutcome::Refused(fault)
            }
            (Some(Holder::Nobody), Some(_), _) => HandshakeOutcome::UnknownIdentity,
            (_, _, HandshakeFailure::TimedOut) => HandshakeOutcome::TimedOut,
            (_, _, HandshakeFailure::Evicted) => HandshakeOutcome::Evicted,
            (_, _, HandshakeFailure::Replaced) => HandshakeOutcome::Replaced,
            (
                Some(Holder::LookedUp) | None,
                _,
                HandshakeFailure::WrongKey
                | HandshakeFailure::RefusedByPeer(_)
                | HandshakeFailure::Refused(_),
            )
            | (Some(_), None, _) => HandshakeOutcome::Failed,
        };
        self.count(outcome);
    }

    fn count(&mut self, outcome: HandshakeOutcome) {
        if let Some(count) = self.outcomes.get_mut(outcome.index()) {
            *count += 1;
        }
    }
}

impl Default for AssociationLimits {
    fn default() -> Self {
        Self {
            sessions_max: SESSIONS_MAX,
            handshakes_max: HANDSHAKES_MAX,
            idle_timeout_ms: SESSION_IDLE_MS,
            resumption_s: RESUMPTION_S,
            retransmit_ms: HANDSHAKE_RETRANSMIT_MS,
            accepts_bare_cbc: false,
        }
    }
}

impl AssociationLimits {
    /// The part of each of several arbiters, of what all of them have together.
    pub fn shared_among(self, arbiters: usize) -> Self {
        let part = |all: usize| all.div_ceil(arbiters.max(1));
        Self {
            sessions_max: part(self.sessions_max),
            handshakes_max: part(self.handshakes_max),
            ..self
        }
    }
}

impl SecureMoment<'_> {
    fn of_dtls(&mut self) -> dtls::Moment<'_> {
        dtls::Moment {
            now: dtls::Timestamp::from_ms(u64::try_from(self.now.as_ms()).unwrap_or(0)),
            entropy: &mut self.entropy,
        }
    }
}

impl ClaimedIdentity {
    /// The identity of a session; none if it is no text, which no device has.
    fn of(identity: &Identity) -> Option<Self> {
        match identity {
            Identity::Psk(identity) => Some(Self::Psk(str::from_utf8(identity).ok()?.into())),
            Identity::RawPublicKey(spki) => {
                Some(Self::PublicKey(RawPublicKey::from_spki(spki).ok()?))
            }
            Identity::Certificate(name) => {
                let (customer, endpoint) = read_certified(name)?;
                let customer = Some(customer);
                Some(Self::Certificate { endpoint, customer })
            }
        }
    }
}

impl ClaimedIdentity {
    /// The name of the device that has the identity.
    pub fn name(&self) -> UniqueName {
        match self {
            Self::Psk(identity) => UniqueName::PskIdentity(identity.clone()),
            Self::PublicKey(key) => UniqueName::PublicKey(*key),
            Self::Certificate { endpoint, .. } => UniqueName::Endpoint(endpoint.clone()),
        }
    }

    /// The valid pre-shared keys that a device has of the identity.
    pub fn psks_of<'p>(&self, profile: &'p Profile) -> Vec<&'p Psk> {
        match self {
            Self::Psk(identity) => profile.credentials.psks_of(identity).collect(),
            Self::PublicKey(_) | Self::Certificate { .. } => Vec::new(),
        }
    }

    /// Whether a device has a valid key of the identity.
    fn is_held_by(&self, known: &KnownCredentials) -> bool {
        match self {
            Self::Psk(_) => !known.psks.is_empty(),
            Self::PublicKey(key) => known.profile.credentials.has_public_key(key),
            Self::Certificate { .. } => false,
        }
    }

    /// What each valid key is valid for, and what its use changes.
    fn uses_of(
        &self,
        known: &KnownCredentials,
        now: Timestamp,
    ) -> Vec<(KeyUse, Option<Box<Batch>>)> {
        let batch_of = |used| key_used(&known.profile, &used, now).map(Box::new);
        match self {
            Self::Psk(_) => {
                let credentials = &known.profile.credentials;
                let of = |it: &OpenPsk| {
                    let key_use = credentials.use_of(&it.psk);
                    (key_use, batch_of(UsedKey::Psk(it.psk.clone())))
                };
                known.psks.iter().map(of).collect()
            }
            Self::PublicKey(key) => {
                let key_use = known.profile.credentials.use_of_public_key(key);
                vec![(key_use, batch_of(UsedKey::PublicKey(*key)))]
            }
            Self::Certificate { .. } => Vec::new(),
        }
    }

    /// What a session of the identity is valid for that was valid for this, as far as the identity
    /// tells which of the keys it began with.
    fn use_of_session(&self, known: &KnownCredentials, was: KeyUse) -> KeyUse {
        match self {
            Self::PublicKey(key) => known.profile.credentials.use_of_public_key(key),
            Self::Psk(_) | Self::Certificate { .. } => was,
        }
    }

    /// Whether a session of the identity is still one of a device.
    fn is_still_of(&self, known: &KnownCredentials, authenticated_at: Timestamp) -> bool {
        let profile = &known.profile;
        let credentials = &profile.credentials;
        match self {
            Self::Psk(identity) => credentials.admit_session_of(identity, authenticated_at),
            Self::PublicKey(key) => credentials.admit_session_with(key, authenticated_at),
            // The name may be that of another customer's device by now.
            Self::Certificate { customer, .. } => {
                let authorities = known.authorities.as_ref();
                customer.as_ref() == Some(&profile.customer)
                    && authorities.is_some_and(|it| it.admit_session_of(authenticated_at))
            }
        }
    }
}

impl AssociationSnapshot {
    /// The name of a cipher suite, if there is one with this name.
    pub fn suite_named(name: &str) -> Option<&'static str> {
        let mut names = CipherSuite::ALL.into_iter().map(CipherSuite::name);
        names.find(|known| *known == name)
    }
}

impl Claim {
    /// Whether a certificate has led to it.
    fn is_certified(&self) -> bool {
        matches!(self.identity, ClaimedIdentity::Certificate { .. })
    }
}

impl OpenPsk {
    /// A key that was opened.
    pub fn new(psk: &Psk, bytes: Zeroizing<Vec<u8>>) -> Self {
        Self {
            psk: psk.clone(),
            bytes,
        }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl std::fmt::Debug for OpenPsk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OpenPsk(..)")
    }
}

impl std::fmt::Debug for AssociationSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AssociationSecrets(..)")
    }
}

impl std::fmt::Debug for SecureMoment<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SecureMoment({:?})", self.now)
    }
}

/// The name under which a certificate is admitted. No name contains a NUL.
fn write_certified(customer: &CustomerId, endpoint: &EndpointName) -> String {
    format!("{}\0{}", customer.as_str(), endpoint.as_str())
}

fn read_certified(name: &[u8]) -> Option<(CustomerId, EndpointName)> {
    let (customer, endpoint) = str::from_utf8(name).ok()?.split_once('\0')?;
    let customer = CustomerId::parse(customer).ok()?;
    Some((customer, EndpointName::parse(endpoint).ok()?))
}

fn time_of(at: dtls::Timestamp) -> Timestamp {
    Timestamp::from_ms(i64::try_from(at.as_ms()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
