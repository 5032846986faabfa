//! How do very many devices speak DTLS? One session for each, all of them in one endpoint; no
//! socket, and no clock.
//!
//! ```text
//!   no session ---- something to send ----> handshake ---- Finished ----> session
//!       ^                                      |                            |
//!       +---- failed: the datagram is lost ----+                            |
//!       +---- forgotten, or closed by the server ---------------------------+
//! ```
//! All devices speak to the same server, so the endpoint tells them apart by a peer address that
//! stands for the number of the device. It never reaches a socket.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use dtls::{
    AssociationId, CipherSuite, ClientConfig, Config, Effect, Effects, Endpoint, Moment, Timestamp,
};

use super::addressing::{DeviceRange, EndpointPattern};
use super::behaviour::{DeviceBehaviour, PreSharedKey};
use super::outbox::Outbox;
use crate::rng::Rng;

const NS_PER_MS: u64 = 1_000_000;

/// How long a handshake may take; the request that waits for it is given up at about the same time.
const GIVE_UP_MS: u64 = 60_000;

/// The sessions of the devices of a worker.
pub(super) struct DtlsSessions {
    endpoint: Endpoint,
    pattern: EndpointPattern,
    key: PreSharedKey,
    loss_percent: u8,
    // The number of the first device; the others follow.
    first: u32,
    sessions: Vec<DtlsSession>,
    // What a device sends once its handshake is over: the latest datagram of its request.
    waiting_by_member: BTreeMap<u32, Vec<u8>>,
    rng: Rng,
    counts: SessionCounts,
    // Keeps its memory, so that a record costs no allocation.
    effects: Effects,
}

/// What a device notices of its link to the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkEvent<'d> {
    /// A datagram, opened if it came over DTLS.
    Received(&'d [u8]),
    /// Its DTLS handshake failed, and what it was to send is lost.
    HandshakeFailed,
}

/// What happened to sessions.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SessionCounts {
    /// Handshakes that led to a session.
    pub handshakes: u64,
    /// Datagrams of handshakes that were dropped on purpose.
    pub dropped: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum DtlsSession {
    None,
    Handshaking(AssociationId),
    Established(AssociationId),
}

impl DtlsSessions {
    /// Devices without sessions. Their PSK identities are their endpoint names.
    pub(super) fn new(
        behaviour: &DeviceBehaviour,
        key: PreSharedKey,
        DeviceRange { first, count }: DeviceRange,
        seed: u64,
    ) -> Self {
        let mut config = Config::new([0; 32]);
        config.accepts_clients = false;
        config.handshakes_max = count as usize;
        config.associations_max = count as usize;
        config.idle_timeout_ms = u64::MAX;
        config.retransmission.initial_ms = behaviour.transmission.ack_timeout_ms.into();
        config.retransmission.give_up_ms = GIVE_UP_MS;
        Self {
            endpoint: Endpoint::new(Arc::new(config)),
            pattern: behaviour.pattern.clone(),
            key,
            loss_percent: behaviour.loss_percent,
            first,
            sessions: vec![DtlsSession::None; count as usize],
            waiting_by_member: BTreeMap::new(),
            rng: Rng::from_seed(seed),
            counts: SessionCounts::default(),
            effects: Effects::new(),
        }
    }

    /// Seals a datagram of a device; without a session, a handshake begins and the datagram waits.
    pub(super) fn send(&mut self, member: u32, content: &[u8], now_ns: u64, out: &mut Outbox) {
        match self.session(member) {
            DtlsSession::Established(id) => {
                let mut effects = std::mem::take(&mut self.effects);
                match self.endpoint.send(id, content, &mut effects) {
                    Ok(()) => self.perform(member, effects, now_ns, out, &mut |_, _| {}),
                    Err(_) => self.connect(member, content, now_ns, out),
                }
            }
            DtlsSession::Handshaking(_) => {
                self.waiting_by_member.insert(member, content.to_vec());
            }
            DtlsSession::None => self.connect(member, content, now_ns, out),
        }
    }

    /// Opens a datagram to a device.
    pub(super) fn handle_datagram(
        &mut self,
        member: u32,
        datagram: &[u8],
        now_ns: u64,
        out: &mut Outbox,
        take: &mut impl FnMut(u32, LinkEvent<'_>),
    ) {
        if self.is_lost(member) {
            return;
        }
        let mut effects = std::mem::take(&mut self.effects);
        let mut entropy = |bytes: &mut [u8]| fill(&mut self.rng, bytes);
        let mut moment = moment(now_ns, &mut entropy);
        self.endpoint
            .handle_datagram(&mut moment, peer_of(member), datagram, &mut effects);
        self.perform(member, effects, now_ns, out, take);
    }

    /// Repeats the flights of handshakes that are due, and gives up those that take too long.
    pub(super) fn handle_timeout(
        &mut self,
        now_ns: u64,
        out: &mut Outbox,
        take: &mut impl FnMut(u32, LinkEvent<'_>),
    ) {
        if self.next_at().is_none_or(|at_ns| at_ns > now_ns) {
            return;
        }
        let mut effects = std::mem::take(&mut self.effects);
        let mut entropy = |bytes: &mut [u8]| fill(&mut self.rng, bytes);
        let mut moment = moment(now_ns, &mut entropy);
        self.endpoint.handle_timeout(&mut moment, &mut effects);
        // No session of a device ends by time, so every effect names its peer.
        self.perform(u32::MAX, effects, now_ns, out, take);
    }

    /// Makes a device forget its session: its next datagram begins with a handshake.
    pub(super) fn forget(&mut self, member: u32) {
        if let DtlsSession::Handshaking(id) | DtlsSession::Established(id) = self.session(member) {
            self.endpoint.forget(id);
        }
        self.end(member);
    }

    /// When a handshake is due.
    pub(super) fn next_at(&self) -> Option<u64> {
        let at = self.endpoint.next_timeout()?;
        Some(at.as_ms().saturating_mul(NS_PER_MS))
    }

    /// Takes the counts since the last call.
    pub(super) fn take_counts(&mut self) -> SessionCounts {
        std::mem::take(&mut self.counts)
    }

    fn connect(&mut self, member: u32, content: &[u8], now_ns: u64, out: &mut Outbox) {
        self.forget(member);
        let name = self.pattern.name(self.first + member);
        let client = ClientConfig {
            // The suite that LwM2M requires (Core 1.1 transport section 5.2.8), and no other.
            cipher_suites: vec![CipherSuite::PskAes128Ccm8],
            ..ClientConfig::with_psk(name.as_bytes(), &self.key.0)
        };
        let mut effects = std::mem::take(&mut self.effects);
        let mut entropy = |bytes: &mut [u8]| fill(&mut self.rng, bytes);
        let mut moment = moment(now_ns, &mut entropy);
        let begun = self
            .endpoint
            .connect(&mut moment, peer_of(member), client, &mut effects);
        let Ok(id) = begun else {
            return;
        };
        self.put(member, DtlsSession::Handshaking(id));
        self.waiting_by_member.insert(member, content.to_vec());
        self.perform(member, effects, now_ns, out, &mut |_, _| {});
    }

    fn perform(
        &mut self,
        member: u32,
        mut effects: Effects,
        now_ns: u64,
        out: &mut Outbox,
        take: &mut impl FnMut(u32, LinkEvent<'_>),
    ) {
        for effect in effects.iter() {
            match effect {
                Effect::Send { peer, datagram } => {
                    let member = member_of(peer);
                    if !self.is_lost(member) {
                        out.put(member, |bytes| bytes.extend_from_slice(datagram));
                    }
                }
                Effect::Established {
                    association, peer, ..
                } => {
                    let member = member_of(peer);
                    self.put(member, DtlsSession::Established(association));
                    self.counts.handshakes += 1;
                    if let Some(content) = self.waiting_by_member.remove(&member) {
                        self.send(member, &content, now_ns, out);
                    }
                }
                Effect::Received { content, .. } => take(member, LinkEvent::Received(content)),
                Effect::Failed { peer, .. } => {
                    let member = member_of(peer);
                    self.end(member);
                    take(member, LinkEvent::HandshakeFailed);
                }
                Effect::Closed { .. } => self.end(member),
                // Those of a server.
                Effect::LookUpPsk { .. }
                | Effect::AdmitPublicKey { .. }
                | Effect::AdmitCertificate { .. }
                | Effect::Moved { .. } => {}
            }
        }
        effects.clear();
        self.effects = effects;
    }

    fn session(&self, member: u32) -> DtlsSession {
        let found = self.sessions.get(member as usize);
        found.copied().unwrap_or(DtlsSession::None)
    }

    fn put(&mut self, member: u32, session: DtlsSession) {
        if let Some(place) = self.sessions.get_mut(member as usize) {
            *place = session;
        }
    }

    fn end(&mut self, member: u32) {
        self.put(member, DtlsSession::None);
        self.waiting_by_member.remove(&member);
    }

    /// Whether a datagram of a handshake is dropped; the devices themselves drop what is in others.
    fn is_lost(&mut self, member: u32) -> bool {
        let is_handshake = !matches!(self.session(member), DtlsSession::Established(_));
        let is_lost = is_handshake && self.loss_percent > 0 && self.rng.hits(self.loss_percent);
        self.counts.dropped += u64::from(is_lost);
        is_lost
    }
}

/// The address that stands for a device.
fn peer_of(member: u32) -> SocketAddr {
    (Ipv4Addr::from_bits(member), 0).into()
}

fn member_of(peer: SocketAddr) -> u32 {
    match peer {
        SocketAddr::V4(peer) => peer.ip().to_bits(),
        SocketAddr::V6(_) => u32::MAX,
    }
}

fn moment<'e>(now_ns: u64, entropy: &'e mut dyn dtls::Entropy) -> Moment<'e> {
    Moment {
        now: Timestamp::from_ms(now_ns / NS_PER_MS),
        entropy,
    }
}

/// The numbers of a seed: the sessions of a load protect nothing.
fn fill(rng: &mut Rng, bytes: &mut [u8]) {
    for chunk in bytes.chunks_mut(8) {
        let number = rng.number().to_be_bytes();
        for (byte, random) in chunk.iter_mut().zip(number) {
            *byte = random;
        }
    }
}

#[cfg(test)]
mod tests;
