//! How do sessions get to the next process? As records that the caller seals.
//!
//! The record of a session contains keys, and the number that the next nonce is made of. It is used
//! once: a session that is imported twice, or imported while its origin goes on, uses a nonce
//! twice, and AES-CCM and AES-GCM then reveal what they hide.
//!
//! The record of a cached session, which can be resumed by its id, contains its master secret. A
//! handshake makes new keys of it, so it may be used as often as one likes.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::association::{Association, AssociationId, AssociationState, Established};
use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::handshake::resumption::{Resumable, SessionId};
use crate::identity::Identity;
use crate::moment::Timestamp;
use crate::presentation::{Malformed, Reader, Writer};
use crate::session::Session;

/// The format of the records; another one is not imported.
const FORMAT: u8 = 2;
const SESSION: u8 = 1;
const CACHED: u8 = 2;

/// What became of the records of an import.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ImportSummary {
    /// Sessions that go on.
    pub sessions: u64,
    /// Records that were left out: of another format, contradicting others, with a cipher that is
    /// not accepted, or too many.
    pub left_out: u64,
}

impl Endpoint {
    /// Ends the endpoint and hands over its sessions, one record at a time, those that were silent
    /// longest first. Handshakes are not among them, and what a session can be resumed with was
    /// handed over when the session began. The records contain keys: the caller seals them, and
    /// removes them before it imports them.
    pub fn export(self, mut record: impl FnMut(&[u8])) {
        let mut bytes = Zeroizing::new(Vec::with_capacity(512));
        for association in self.associations.sessions() {
            if let AssociationState::Established(established) = &association.state {
                bytes.clear();
                // An address that was not checked yet is not kept.
                let check = self.path_checks.get(&association.id());
                let peer = check.map_or(association.peer, |it| it.previous);
                encode(association, peer, established, &mut bytes);
                record(&bytes);
            }
        }
    }

    /// An endpoint that goes on with exported sessions. Its configuration has the same prefix of
    /// Connection IDs, otherwise peers cannot name their sessions.
    pub fn import<R: AsRef<[u8]>>(
        config: Arc<Config>,
        records: impl IntoIterator<Item = R>,
    ) -> (Self, ImportSummary) {
        let mut endpoint = Self::new(config);
        let mut summary = ImportSummary::default();
        for record in records {
            match endpoint.import_record(record.as_ref()) {
                Ok(()) => summary.sessions += 1,
                Err(Malformed) => summary.left_out += 1,
            }
        }
        endpoint.associations.restored();
        (endpoint, summary)
    }

    /// Takes a session that can be resumed by its id, from the `cached` of
    /// [`Effect::Established`](crate::Effect::Established): of an earlier process, or of another
    /// endpoint of the port. Returns whether the record is one. The key may have been revoked
    /// since, as with every session that is resumed.
    pub fn cache(&mut self, record: &[u8]) -> bool {
        let Ok((id, session)) = decode_cached(record) else {
            return false;
        };
        let sessions_max = self.config.cached_sessions_max;
        self.cache.insert(id, session, sessions_max);
        true
    }

    fn import_record(&mut self, record: &[u8]) -> Result<(), Malformed> {
        let mut reader = open(record, SESSION)?;
        let (slot, tag) = (reader.u24()?, reader.u24()?);
        let id = AssociationId::new(slot, tag);
        let heard_at = Timestamp::from_ms(reader.u64()?);
        let peer = decode_address(&mut reader)?;
        let session = Session::decode(&mut reader)?;
        let identity = Identity::decode(&mut reader)?;
        reader.end()?;
        let is_full = self.associations.count() >= self.config.associations_max;
        if session.has_bare_cbc() && !self.config.accepts_bare_cbc {
            return Err(Malformed);
        }
        let by_address = !session.has_connection_id;
        if is_full || by_address && self.session_by_peer.contains_key(&peer) {
            return Err(Malformed);
        }
        let established = Established {
            session,
            identity,
            last_flight: None,
        };
        if !self.associations.restore(id, peer, heard_at, established) {
            return Err(Malformed);
        }
        if by_address {
            self.session_by_peer.insert(peer, id);
        }
        Ok(())
    }

    /// The sessions, and whose they are: what a caller asks after an import.
    pub fn sessions(&self) -> impl Iterator<Item = (AssociationId, &Identity)> {
        let sessions = self.associations.sessions();
        sessions.filter_map(|association| match &association.state {
            AssociationState::Established(established) => {
                Some((association.id(), &established.identity))
            }
            AssociationState::Handshaking(_) => None,
        })
    }
}

/// What follows the format and the kind of a record.
fn open(record: &[u8], kind: u8) -> Result<Reader<'_>, Malformed> {
    match record.strip_prefix(&[FORMAT, kind]) {
        Some(rest) => Ok(Reader::new(rest)),
        None => Err(Malformed),
    }
}

pub(crate) fn encode_cached(id: &SessionId, session: &Resumable) -> Zeroizing<Vec<u8>> {
    let mut record = Zeroizing::new(Vec::with_capacity(256));
    record.extend_from_slice(&[FORMAT, CACHED]);
    record.extend_from_slice(id);
    session.encode(&mut record);
    record
}

fn decode_cached(record: &[u8]) -> Result<(SessionId, Resumable), Malformed> {
    let mut reader = open(record, CACHED)?;
    let id = reader.array()?;
    let session = Resumable::decode(&mut reader)?;
    reader.end()?;
    Ok((id, session))
}

fn encode(
    association: &Association,
    peer: SocketAddr,
    established: &Established,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(&[FORMAT, SESSION]);
    out.put_u24(association.id().slot());
    out.put_u24(association.id().tag());
    out.extend_from_slice(&association.heard_at.as_ms().to_be_bytes());
    match peer.ip() {
        IpAddr::V4(address) => out.put_vector8(&address.octets()),
        IpAddr::V6(address) => out.put_vector8(&address.octets()),
    }
    out.put_u16(peer.port());
    established.session.encode(out);
    established.identity.encode(out);
}

fn decode_address(reader: &mut Reader<'_>) -> Result<SocketAddr, Malformed> {
    let address = reader.vector8()?;
    let port = reader.u16()?;
    let v4 = <[u8; 4]>::try_from(address).map(IpAddr::from);
    let address = match v4 {
        Ok(address) => address,
        Err(_) => <[u8; 16]>::try_from(address).map_err(|_| Malformed)?.into(),
    };
    Ok(SocketAddr::new(address, port))
}
