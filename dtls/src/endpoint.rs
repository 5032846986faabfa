//! Which association is a datagram for, and what follows from it? The dispatcher of one socket.
//!
//! ```text
//! tls12_cid -> the association that the Connection ID names
//! epoch 0   -> the handshake with the address; a ClientHello without one gets a cookie
//! epoch 1   -> the session, or else the handshake, with the address
//! ```

mod handshaking;
mod receiving;
mod routability;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use crate::alert::{Alert, AlertDescription};
use crate::association::{
    Association, AssociationId, AssociationState, AssociationTable, Handshake, Role,
};
use crate::config::{ClientConfig, Config};
use crate::connection_id;
use crate::counters::Counters;
use crate::effect::{CloseReason, Effects, HandshakeFailure};
use crate::handshake::client::ClientHandshake;
use crate::handshake::flight::SizeLimits;
use crate::handshake::resumption::SessionCache;
use crate::handshake::server::ServerHandshake;
use crate::handshake::transport::Transport;
use crate::identity::Identity;
use crate::moment::{Moment, Timestamp};
use crate::path_check::PathCheck;
use crate::presentation::Reader;
use crate::record::{ContentType, PLAINTEXT_MAX, Record};
use crate::session::EPOCH;
use crate::signature::SigningKey;

/// A session moves to the end of the order of age only after this part of the idle timeout: a
/// record then touches one session in memory, not three.
const AGE_STEPS: u64 = 16;

/// All associations of one socket.
///
/// There are three kinds of calls:
///
/// - inputs, which leave their effects in a buffer: [`Self::handle_datagram`],
///   [`Self::handle_timeout`], [`Self::provide_psk`], [`Self::admit`], [`Self::admit_as`],
///   [`Self::refuse`];
/// - commands: [`Self::connect`], [`Self::send`], [`Self::close`], [`Self::forget`],
///   [`Self::show_key`];
/// - questions: [`Self::next_timeout`], [`Self::peer`], [`Self::identity`], [`Self::counters`].
#[derive(Debug)]
pub struct Endpoint {
    pub(crate) config: Arc<Config>,
    pub(crate) associations: AssociationTable,
    /// Also of sessions whose last flight may have to be sent again.
    handshake_by_peer: BTreeMap<SocketAddr, AssociationId>,
    /// Of sessions without a Connection ID.
    pub(crate) session_by_peer: BTreeMap<SocketAddr, AssociationId>,
    deadlines: BTreeSet<(Timestamp, AssociationId)>,
    /// Of sessions whose peers seem to have moved.
    pub(crate) path_checks: BTreeMap<AssociationId, PathCheck>,
    pub(crate) cache: SessionCache,
    counters: Counters,
}

/// Why nothing was sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SendError {
    /// There is no such association, or no longer.
    #[error("the association does not exist")]
    Unknown,
    /// Its handshake is not over.
    #[error("the handshake is not finished")]
    NotEstablished,
    /// The peer accepts only shorter records.
    #[error("the peer accepts at most {max} bytes in a record")]
    TooLong {
        /// The longest content that it accepts.
        max: usize,
    },
    /// The record numbers of the session are used up; a new handshake is needed.
    #[error("the session has no record numbers left")]
    Exhausted,
    /// The peer has not answered from its new address yet, and enough waits for that.
    #[error("the new address of the peer is not checked yet")]
    AddressUnderCheck,
}

/// No handshake was begun: the table is full of handshakes, or the address has one already.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("no handshake can be begun with this address now")]
pub struct CannotConnect;

impl Endpoint {
    /// An endpoint without associations.
    pub fn new(config: Arc<Config>) -> Self {
        Self {
            config,
            associations: AssociationTable::default(),
            handshake_by_peer: BTreeMap::new(),
            session_by_peer: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            path_checks: BTreeMap::new(),
            cache: SessionCache::default(),
            counters: Counters::default(),
        }
    }

    /// Takes a datagram from the socket.
    pub fn handle_datagram(
        &mut self,
        moment: &mut Moment<'_>,
        peer: SocketAddr,
        datagram: &[u8],
        out: &mut Effects,
    ) {
        let connection_id_length = connection_id::length(self.config.connection_id_prefix.len());
        let mut reader = Reader::new(datagram);
        let mut repeats_flight = None;
        while !reader.is_empty() {
            let Ok(record) = Record::decode(&mut reader, connection_id_length) else {
                self.counters.malformed += 1;
                break;
            };
            self.counters.records_received += 1;
            let handled = match (record.content_type, record.epoch) {
                (ContentType::Cid, EPOCH) => self.handle_with_id(moment, peer, &record, out),
                (ContentType::Cid, _) => Handled::Dropped,
                (_, 0) => self.handle_plain(moment, peer, &record, out),
                (_, EPOCH) => self.handle_by_peer(moment, peer, &record, out),
                (_, _) => Handled::Dropped,
            };
            match handled {
                Handled::Done => (),
                Handled::Dropped => self.counters.records_dropped += 1,
                Handled::Repeated(id) => repeats_flight = Some(id),
            }
        }
        // Once for a datagram, however many of its messages were repeated.
        if let Some(id) = repeats_flight {
            self.answer_repetition(id, out);
        }
    }

    /// Does what is due. To be called at [`Self::next_timeout`]; earlier or later is no mistake.
    pub fn handle_timeout(&mut self, moment: &mut Moment<'_>, out: &mut Effects) {
        while let Some((at, id)) = self.deadlines.first().copied() {
            if at > moment.now {
                break;
            }
            self.deadlines.pop_first();
            self.handle_deadline(moment.now, id, out);
        }
        while let Some(at) = self.idle_deadline()
            && at <= moment.now
        {
            let Some(id) = self.associations.oldest_session().map(Association::id) else {
                break;
            };
            self.end_session(id, CloseReason::Idle, out);
        }
    }

    /// Answers [`Effect::LookUpPsk`](crate::Effect::LookUpPsk): the keys that the identity may
    /// have, normally one; two while a key is exchanged for another; none if it is unknown. The
    /// peer cannot tell an unknown identity from a wrong key.
    pub fn provide_psk(
        &mut self,
        moment: &mut Moment<'_>,
        id: AssociationId,
        candidates: &[&[u8]],
        out: &mut Effects,
    ) {
        let Some((server, transport)) = self.server_mut(id) else {
            return;
        };
        server.provide_psk(candidates, transport, moment);
        self.open_early(moment, id, out);
    }

    /// Answers [`Effect::AdmitPublicKey`](crate::Effect::AdmitPublicKey): the owner of the key is
    /// known.
    pub fn admit(&mut self, moment: &mut Moment<'_>, id: AssociationId, out: &mut Effects) {
        let Some((server, transport)) = self.server_mut(id) else {
            return;
        };
        server.admit(transport);
        self.open_early(moment, id, out);
    }

    /// Answers [`Effect::AdmitCertificate`](crate::Effect::AdmitCertificate): the owner of the
    /// certificate is known under this name, which becomes the identity of the session.
    pub fn admit_as(
        &mut self,
        moment: &mut Moment<'_>,
        id: AssociationId,
        name: &[u8],
        out: &mut Effects,
    ) {
        let Some((server, transport)) = self.server_mut(id) else {
            return;
        };
        server.admit_as(name, transport);
        self.open_early(moment, id, out);
    }

    /// Answers [`Effect::AdmitPublicKey`](crate::Effect::AdmitPublicKey) and
    /// [`Effect::AdmitCertificate`](crate::Effect::AdmitCertificate): nobody known has the key.
    pub fn refuse(&mut self, id: AssociationId, out: &mut Effects) {
        let description = AlertDescription::ACCESS_DENIED;
        if self.handshake_mut(id).is_some() {
            self.send_alert(id, Alert::fatal(description), out);
            self.fail_handshake(id, HandshakeFailure::Refused(description), out);
        }
    }

    /// Begins a handshake as a client.
    pub fn connect(
        &mut self,
        moment: &mut Moment<'_>,
        peer: SocketAddr,
        client: ClientConfig,
        out: &mut Effects,
    ) -> Result<AssociationId, CannotConnect> {
        let current = self.handshake_by_peer.get(&peer).copied();
        if current.is_some_and(|id| self.handshake_mut(id).is_some()) {
            return Err(CannotConnect);
        }
        let id = self.make_room(moment, out).ok_or(CannotConnect)?;
        let mut transport = self.transport(moment.now, 0, 0);
        let prefix = &self.config.connection_id_prefix;
        let role = ClientHandshake::begin(client, prefix, id, &mut transport, moment);
        self.insert_handshake(
            moment.now,
            id,
            peer,
            transport,
            Role::Client(Box::new(role)),
        );
        self.send_flight(moment.now, id, out);
        Ok(id)
    }

    /// Sends a datagram of the application in one record. To an address that the peer has not
    /// answered from yet, it may wait for that.
    pub fn send(
        &mut self,
        id: AssociationId,
        content: &[u8],
        out: &mut Effects,
    ) -> Result<(), SendError> {
        let association = self.associations.find_mut(id).ok_or(SendError::Unknown)?;
        let AssociationState::Established(established) = &mut association.state else {
            return Err(SendError::NotEstablished);
        };
        let max = established.session.content_max();
        if content.len() > max {
            return Err(SendError::TooLong { max });
        }
        let start = out.bytes().len();
        let session = &mut established.session;
        if let Some(check) = self.path_checks.get_mut(&id) {
            let length = content.len() + session.overhead_max();
            if !check.admits(length) {
                let is_kept = check.keep(content);
                return is_kept.then_some(()).ok_or(SendError::AddressUnderCheck);
            }
            check.note_sent(length);
        }
        let sealed = session.seal(ContentType::ApplicationData, content, out.bytes());
        sealed.map_err(|_| SendError::Exhausted)?;
        out.transmit(association.peer, start);
        Ok(())
    }

    /// Ends an association and tells the peer.
    pub fn close(&mut self, id: AssociationId, out: &mut Effects) {
        self.send_alert(id, Alert::warning(AlertDescription::CLOSE_NOTIFY), out);
        self.forget(id);
    }

    /// Ends an association whose keys are no longer valid. A peer that closes a session may resume
    /// it, and must not after a fatal alert (RFC 5246 section 7.2.2): it makes a full handshake.
    pub fn revoke(&mut self, id: AssociationId, out: &mut Effects) {
        self.send_alert(id, Alert::fatal(AlertDescription::ACCESS_DENIED), out);
        self.forget(id);
    }

    /// Ends an association without a word, for example because the peer has a newer one.
    pub fn forget(&mut self, id: AssociationId) {
        self.remove_path_check(id);
        let Some(association) = self.associations.remove(id) else {
            return;
        };
        let by_peer = match &association.state {
            AssociationState::Handshaking(handshake) => {
                self.deadlines.remove(&(handshake.deadline, id));
                &mut self.handshake_by_peer
            }
            AssociationState::Established(established) => {
                if let Some(last_flight) = &established.last_flight {
                    self.deadlines.remove(&(last_flight.until, id));
                    unlist(&mut self.handshake_by_peer, last_flight.peer, id);
                }
                &mut self.session_by_peer
            }
        };
        unlist(by_peer, association.peer, id);
    }

    /// Shows another key to the clients of later handshakes.
    pub fn show_key(&mut self, key: Option<Arc<SigningKey>>) {
        Arc::make_mut(&mut self.config).server_key = key;
    }

    /// When [`Self::handle_timeout`] is to be called.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        let deadline = self.deadlines.first().map(|(at, _)| *at);
        [deadline, self.idle_deadline()].into_iter().flatten().min()
    }

    /// Where the peer of an association is.
    pub fn peer(&self, id: AssociationId) -> Option<SocketAddr> {
        self.associations.find(id).map(|it| it.peer)
    }

    /// Who the peer of an established association is.
    pub fn identity(&self, id: AssociationId) -> Option<&Identity> {
        match &self.associations.find(id)?.state {
            AssociationState::Established(established) => Some(&established.identity),
            AssociationState::Handshaking(_) => None,
        }
    }

    /// The longest content that [`Self::send`] accepts for an association.
    pub fn content_max(&self, id: AssociationId) -> Option<usize> {
        match &self.associations.find(id)?.state {
            AssociationState::Established(established) => Some(established.session.content_max()),
            AssociationState::Handshaking(_) => None,
        }
    }

    /// The number of associations, handshakes included.
    pub fn association_count(&self) -> usize {
        self.associations.count()
    }

    /// The number of handshakes that have passed the cookie and are under way.
    pub fn handshake_count(&self) -> usize {
        self.associations.handshake_count()
    }

    /// What has happened so far, in numbers.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    fn transport(&self, now: Timestamp, first_sequence: u16, plain_sequence: u64) -> Transport {
        let limits = SizeLimits {
            datagram_max: self.config.datagram_max,
            plaintext_max: PLAINTEXT_MAX,
        };
        let timers = self.config.retransmission;
        Transport::new(now, limits, timers, first_sequence, plain_sequence)
    }

    /// The id of a new handshake, once others have given way to it.
    fn make_room(&mut self, moment: &mut Moment<'_>, out: &mut Effects) -> Option<AssociationId> {
        if self.associations.handshake_count() >= self.config.handshakes_max.max(1) {
            let oldest = self.associations.oldest_handshake()?.id();
            self.fail_handshake(oldest, HandshakeFailure::Evicted, out);
        }
        if self.associations.count() >= self.config.associations_max.max(1) {
            let oldest = self.associations.oldest_session()?.id();
            self.end_session(oldest, CloseReason::Evicted, out);
        }
        let tag = u32::from_be_bytes(moment.random());
        self.associations.next_id(tag)
    }

    fn insert_handshake(
        &mut self,
        now: Timestamp,
        id: AssociationId,
        peer: SocketAddr,
        transport: Transport,
        role: Role,
    ) {
        let deadline = transport.deadline();
        let handshake = Handshake {
            transport,
            role,
            deadline,
        };
        let state = AssociationState::Handshaking(Box::new(handshake));
        self.associations.insert(id, peer, now, state);
        self.handshake_by_peer.insert(peer, id);
        self.deadlines.insert((deadline, id));
    }

    /// Follows a change of the deadline of a handshake.
    fn note_deadline(&mut self, id: AssociationId) {
        let Some(association) = self.associations.find_mut(id) else {
            return;
        };
        if let AssociationState::Handshaking(handshake) = &mut association.state {
            let deadline = handshake.transport.deadline();
            self.deadlines.remove(&(handshake.deadline, id));
            self.deadlines.insert((deadline, id));
            handshake.deadline = deadline;
        }
    }

    fn handshake_mut(&mut self, id: AssociationId) -> Option<&mut Handshake> {
        match &mut self.associations.find_mut(id)?.state {
            AssociationState::Handshaking(handshake) => Some(handshake),
            AssociationState::Established(_) => None,
        }
    }

    /// A handshake in which we are the server.
    fn server_mut(&mut self, id: AssociationId) -> Option<(&mut ServerHandshake, &mut Transport)> {
        let handshake = self.handshake_mut(id)?;
        match &mut handshake.role {
            Role::Server(server) => Some((&mut **server, &mut handshake.transport)),
            Role::Client(_) => None,
        }
    }

    /// Follows the peer of a handshake to another address, with an authentic record.
    fn set_peer(&mut self, id: AssociationId, peer: SocketAddr) {
        let Some(association) = self.associations.find_mut(id) else {
            return;
        };
        if association.peer == peer {
            return;
        }
        let earlier = std::mem::replace(&mut association.peer, peer);
        unlist(&mut self.handshake_by_peer, earlier, id);
    }

    fn fail_handshake(&mut self, id: AssociationId, reason: HandshakeFailure, out: &mut Effects) {
        let Some(association) = self.associations.find(id) else {
            return;
        };
        let AssociationState::Handshaking(handshake) = &association.state else {
            return;
        };
        let is_server = matches!(handshake.role, Role::Server(_));
        let has_wrong_key = is_server && handshake.transport.has_rejected_protected();
        let reason = match reason {
            HandshakeFailure::TimedOut
            | HandshakeFailure::Replaced
            | HandshakeFailure::RefusedByPeer(_)
                if has_wrong_key =>
            {
                HandshakeFailure::WrongKey
            }
            HandshakeFailure::TimedOut
            | HandshakeFailure::Replaced
            | HandshakeFailure::RefusedByPeer(_)
            | HandshakeFailure::Refused(_)
            | HandshakeFailure::Evicted
            | HandshakeFailure::WrongKey => reason,
        };
        let peer = association.peer;
        self.counters.handshakes_failed += 1;
        self.forget(id);
        out.failed(id, peer, reason);
    }

    fn end_session(&mut self, id: AssociationId, reason: CloseReason, out: &mut Effects) {
        self.forget(id);
        out.closed(id, reason);
    }

    fn idle_deadline(&self) -> Option<Timestamp> {
        let oldest = self.associations.oldest_session()?;
        Some(oldest.heard_at.plus_ms(self.config.idle_timeout_ms))
    }
}

/// What became of a record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Handled {
    Done,
    Dropped,
    /// The peer has not received our last flight.
    Repeated(AssociationId),
}

/// Removes the entry of a peer if it is of this association.
fn unlist(by_peer: &mut BTreeMap<SocketAddr, AssociationId>, peer: SocketAddr, id: AssociationId) {
    if by_peer.get(&peer) == Some(&id) {
        by_peer.remove(&peer);
    }
}
