//! What is kept of a session so that it can be resumed? RFC 5246 section 7.3, RFC 5077.

use std::collections::{BTreeMap, VecDeque};

use crate::cipher_suite::CipherSuite;
use crate::identity::Identity;
use crate::key_schedule::{MASTER_SECRET_LENGTH, MasterSecret};
use crate::moment::Timestamp;
use crate::presentation::{Malformed, Reader, Writer};

/// The id of a session in the cache of a server.
pub(crate) type SessionId = [u8; 32];

/// A session that may be resumed. Only sessions with an extended master secret are: without it
/// resumption can be abused (RFC 7627 section 1).
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Resumable {
    pub(crate) master: MasterSecret,
    pub(crate) suite: CipherSuite,
    pub(crate) identity: Identity,
    /// When the peer proved its identity, in a full handshake.
    pub(crate) authenticated_at: Timestamp,
    /// When the last handshake ended, full or abbreviated: the age of a ticket.
    pub(crate) renewed_at: Timestamp,
}

/// What a client needs to resume a session. It contains the secret of the session.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Resumption {
    pub(crate) session: Resumable,
    pub(crate) by: ResumeBy,
}

/// How a client names the session.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum ResumeBy {
    SessionId(Box<[u8]>),
    Ticket(Box<[u8]>),
}

/// The sessions of a server that can be resumed by their id, a bounded number, the newest ones.
#[derive(Debug, Default)]
pub(crate) struct SessionCache {
    session_by_id: BTreeMap<SessionId, Resumable>,
    oldest_first: VecDeque<SessionId>,
}

impl Resumable {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.master.0);
        out.put_u16(self.suite.number());
        for at in [self.authenticated_at, self.renewed_at] {
            out.extend_from_slice(&at.as_ms().to_be_bytes());
        }
        self.identity.encode(out);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            master: MasterSecret(reader.array::<MASTER_SECRET_LENGTH>()?),
            suite: CipherSuite::from_number(reader.u16()?).ok_or(Malformed)?,
            authenticated_at: Timestamp::from_ms(reader.u64()?),
            renewed_at: Timestamp::from_ms(reader.u64()?),
            identity: Identity::decode(reader)?,
        })
    }
}

impl SessionCache {
    pub(crate) fn find(&self, id: &[u8]) -> Option<(SessionId, &Resumable)> {
        let id: SessionId = id.try_into().ok()?;
        Some((id, self.session_by_id.get(&id)?))
    }

    /// Keeps a session; the oldest one gives way to it.
    pub(crate) fn insert(&mut self, id: SessionId, session: Resumable, sessions_max: usize) {
        if self.session_by_id.insert(id, session).is_none() {
            self.oldest_first.push_back(id);
        }
        while self.session_by_id.len() > sessions_max {
            let Some(oldest) = self.oldest_first.pop_front() else {
                return;
            };
            self.session_by_id.remove(&oldest);
        }
    }
}
