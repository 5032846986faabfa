//! Where is an association? A table whose slots are named by Connection IDs, and the order in which
//! associations were heard.

use std::net::SocketAddr;

use crate::connection_id::SLOTS_MAX;
use crate::handshake::client::ClientHandshake;
use crate::handshake::flight::LastFlight;
use crate::handshake::server::ServerHandshake;
use crate::handshake::transport::Transport;
use crate::identity::Identity;
use crate::key_schedule::RANDOM_LENGTH;
use crate::moment::Timestamp;
use crate::session::Session;

/// The table grows by so many slots: a million sessions are never copied.
const CHUNK: usize = 1_024;

/// No slot.
const NONE: u32 = u32::MAX;

/// Names an association of an endpoint. It is not used again for another one, with a probability of
/// all but one in 16 million for each reuse of its slot.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct AssociationId {
    slot: u32,
    tag: u32,
}

/// A handshake, or the session that it led to.
#[derive(Debug)]
pub(crate) struct Association {
    id: AssociationId,
    pub(crate) peer: SocketAddr,
    pub(crate) heard_at: Timestamp,
    older: u32,
    newer: u32,
    pub(crate) state: AssociationState,
}

#[derive(Debug)]
pub(crate) enum AssociationState {
    Handshaking(Box<Handshake>),
    Established(Established),
}

/// A handshake under way.
#[derive(Debug)]
pub(crate) struct Handshake {
    pub(crate) transport: Transport,
    pub(crate) role: Role,
    /// The deadline that the endpoint has noted.
    pub(crate) deadline: Timestamp,
}

/// Which side we are.
#[derive(Debug)]
pub(crate) enum Role {
    Server(Box<ServerHandshake>),
    Client(Box<ClientHandshake>),
}

/// A session, and what a million of them cost.
#[derive(Debug)]
pub(crate) struct Established {
    pub(crate) session: Session,
    pub(crate) identity: Identity,
    /// Our last flight, until the peer has shown that it arrived, or until its deadline.
    pub(crate) last_flight: Option<Box<RepeatableFlight>>,
}

/// The end of a handshake, of which the peer may repeat what it has sent.
#[derive(Debug)]
pub(crate) struct RepeatableFlight {
    pub(crate) last: LastFlight,
    pub(crate) until: Timestamp,
    /// Where the handshake was.
    pub(crate) peer: SocketAddr,
    /// The random of the ClientHello that it began with, if we are the server.
    pub(crate) begun_by: Option<[u8; RANDOM_LENGTH]>,
}

/// The associations of an endpoint.
#[derive(Debug)]
pub(crate) struct AssociationTable {
    chunks: Vec<Vec<Slot>>,
    /// The first free slot.
    free: u32,
    handshakes: AgeOrder,
    sessions: AgeOrder,
}

#[derive(Debug)]
enum Slot {
    Free { next: u32 },
    Used(Association),
}

/// A list in the order of age, threaded through the slots.
#[derive(Debug)]
struct AgeOrder {
    oldest: u32,
    newest: u32,
    count: usize,
}

impl AssociationId {
    pub(crate) fn new(slot: u32, tag: u32) -> Self {
        Self {
            slot,
            tag: tag & 0x00ff_ffff,
        }
    }

    /// How long [`Self::to_bytes`] is.
    pub const BYTES: usize = 6;

    /// The id as bytes, for what a caller exports with a session.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let [_, a, b, c] = self.slot.to_be_bytes();
        let [_, d, e, f] = self.tag.to_be_bytes();
        [a, b, c, d, e, f]
    }

    /// The id with these bytes.
    pub fn from_bytes([a, b, c, d, e, f]: [u8; Self::BYTES]) -> Self {
        Self {
            slot: u32::from_be_bytes([0, a, b, c]),
            tag: u32::from_be_bytes([0, d, e, f]),
        }
    }

    pub(crate) fn slot(self) -> u32 {
        self.slot
    }

    pub(crate) fn tag(self) -> u32 {
        self.tag
    }
}

impl Association {
    pub(crate) fn id(&self) -> AssociationId {
        self.id
    }
}

impl Default for AssociationTable {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            free: NONE,
            handshakes: AgeOrder::EMPTY,
            sessions: AgeOrder::EMPTY,
        }
    }
}

impl AssociationTable {
    /// The id of the next association; the entropy tells it from earlier ones in its slot. None if
    /// a Connection ID can name no further slot.
    pub(crate) fn next_id(&mut self, tag: u32) -> Option<AssociationId> {
        if self.free == NONE {
            self.grow()?;
        }
        Some(AssociationId::new(self.free, tag))
    }

    /// Adds an association under the id that [`Self::next_id`] has given.
    pub(crate) fn insert(
        &mut self,
        id: AssociationId,
        peer: SocketAddr,
        now: Timestamp,
        state: AssociationState,
    ) {
        let Some(slot) = self.slot_mut(id.slot) else {
            return;
        };
        let association = Association {
            id,
            peer,
            heard_at: now,
            older: NONE,
            newer: NONE,
            state,
        };
        let Slot::Free { next } = std::mem::replace(slot, Slot::Used(association)) else {
            return;
        };
        self.free = next;
        self.link(id.slot);
    }

    /// Adds a session of another process under its own id, if its slot is free. Until
    /// [`Self::restored`] nothing else may be added.
    pub(crate) fn restore(
        &mut self,
        id: AssociationId,
        peer: SocketAddr,
        heard_at: Timestamp,
        session: Established,
    ) -> bool {
        while id.slot as usize >= self.chunks.len() * CHUNK {
            if self.grow().is_none() {
                return false;
            }
        }
        if !matches!(self.slot(id.slot), Some(Slot::Free { .. })) {
            return false;
        }
        // The list of free slots passes through this one; `restored` makes it anew.
        self.free = id.slot;
        let state = AssociationState::Established(session);
        self.insert(id, peer, heard_at, state);
        true
    }

    /// Ends a series of [`Self::restore`].
    pub(crate) fn restored(&mut self) {
        self.free = NONE;
        for (chunk, slots) in self.chunks.iter_mut().enumerate().rev() {
            for (place, slot) in slots.iter_mut().enumerate().rev() {
                if let Slot::Free { next } = slot {
                    *next = self.free;
                    self.free = (chunk * CHUNK + place) as u32;
                }
            }
        }
    }

    pub(crate) fn remove(&mut self, id: AssociationId) -> Option<Association> {
        self.find(id)?;
        self.unlink(id.slot);
        let next = self.free;
        let slot = std::mem::replace(self.slot_mut(id.slot)?, Slot::Free { next });
        self.free = id.slot;
        match slot {
            Slot::Used(association) => Some(association),
            Slot::Free { .. } => None,
        }
    }

    /// Turns a handshake into a session.
    pub(crate) fn establish(&mut self, id: AssociationId, now: Timestamp, session: Established) {
        if self.find(id).is_none() {
            return;
        }
        self.unlink(id.slot);
        if let Some(association) = self.find_mut(id) {
            association.heard_at = now;
            association.state = AssociationState::Established(session);
        }
        self.link(id.slot);
    }

    /// Notes that an association was heard.
    pub(crate) fn touch(&mut self, id: AssociationId, now: Timestamp) {
        self.unlink(id.slot);
        if let Some(association) = self.find_mut(id) {
            association.heard_at = now;
        }
        self.link(id.slot);
    }

    pub(crate) fn find(&self, id: AssociationId) -> Option<&Association> {
        self.at(id.slot).filter(|it| it.id == id)
    }

    pub(crate) fn find_mut(&mut self, id: AssociationId) -> Option<&mut Association> {
        self.at_mut(id.slot).filter(|it| it.id == id)
    }

    pub(crate) fn at(&self, slot: u32) -> Option<&Association> {
        match self.slot(slot)? {
            Slot::Used(association) => Some(association),
            Slot::Free { .. } => None,
        }
    }

    /// The session that was silent longest.
    pub(crate) fn oldest_session(&self) -> Option<&Association> {
        self.at(self.sessions.oldest)
    }

    pub(crate) fn oldest_handshake(&self) -> Option<&Association> {
        self.at(self.handshakes.oldest)
    }

    pub(crate) fn count(&self) -> usize {
        self.handshakes.count + self.sessions.count
    }

    pub(crate) fn handshake_count(&self) -> usize {
        self.handshakes.count
    }

    /// All sessions, the one that was silent longest first.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = &Association> {
        let oldest = self.oldest_session();
        std::iter::successors(oldest, |association| self.at(association.newer))
    }

    /// Adds a chunk of free slots.
    fn grow(&mut self) -> Option<()> {
        let start = self.chunks.len() * CHUNK;
        if start + CHUNK > SLOTS_MAX {
            return None;
        }
        let first = start as u32;
        let last = (start + CHUNK - 1) as u32;
        let next = self.free;
        let slots = (first..=last).map(|slot| Slot::Free {
            next: if slot == last { next } else { slot + 1 },
        });
        self.chunks.push(slots.collect());
        self.free = first;
        Some(())
    }

    fn slot(&self, slot: u32) -> Option<&Slot> {
        let slot = slot as usize;
        self.chunks.get(slot / CHUNK)?.get(slot % CHUNK)
    }

    fn slot_mut(&mut self, slot: u32) -> Option<&mut Slot> {
        let slot = slot as usize;
        self.chunks.get_mut(slot / CHUNK)?.get_mut(slot % CHUNK)
    }

    fn at_mut(&mut self, slot: u32) -> Option<&mut Association> {
        match self.slot_mut(slot)? {
            Slot::Used(association) => Some(association),
            Slot::Free { .. } => None,
        }
    }

    fn order_of(&mut self, slot: u32) -> Option<&mut AgeOrder> {
        match self.at(slot)?.state {
            AssociationState::Handshaking(_) => Some(&mut self.handshakes),
            AssociationState::Established(_) => Some(&mut self.sessions),
        }
    }

    /// Makes an association the newest of its kind.
    fn link(&mut self, slot: u32) {
        let Some(order) = self.order_of(slot) else {
            return;
        };
        let older = std::mem::replace(&mut order.newest, slot);
        order.count += 1;
        if older == NONE {
            order.oldest = slot;
        }
        if let Some(before) = self.at_mut(older) {
            before.newer = slot;
        }
        if let Some(association) = self.at_mut(slot) {
            association.older = older;
            association.newer = NONE;
        }
    }

    fn unlink(&mut self, slot: u32) {
        let Some(association) = self.at(slot) else {
            return;
        };
        let (older, newer) = (association.older, association.newer);
        if let Some(before) = self.at_mut(older) {
            before.newer = newer;
        }
        if let Some(after) = self.at_mut(newer) {
            after.older = older;
        }
        let Some(order) = self.order_of(slot) else {
            return;
        };
        order.count -= 1;
        if order.oldest == slot {
            order.oldest = newer;
        }
        if order.newest == slot {
            order.newest = older;
        }
    }
}

impl AgeOrder {
    const EMPTY: Self = Self {
        oldest: NONE,
        newest: NONE,
        count: 0,
    };
}
