//! How do the sessions of an arbiter get to the next process? As records that the shell seals, and
//! that are used once: see `dtls::Endpoint::export`.
//!
//! Whose a session is is looked up at its first message, as for a resumed one: the keys of its
//! device may have changed since. Until then the device has no session that is known.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use dtls::{AssociationId, CipherSuite, Config, Endpoint, Security};
use zeroize::Zeroizing;

use super::{Associations, Begun, Carries, Owner, Session};
use crate::credentials::KeyUse;
use crate::moment::Timestamp;

/// What a record begins with: one of the endpoint, or one of ours.
const OF_ENDPOINT: u8 = 1;
const OF_SESSION: u8 = 2;

/// Our part of a session: its id, two times, a number, a suite and flags.
const SESSION_BYTES: usize = 1 + AssociationId::BYTES + 8 + 8 + 4 + 2 + 1;

const HAS_CONNECTION_ID: u8 = 1;
const HAS_EXTENDED_MASTER_SECRET: u8 = 2;
const IS_RESUMED: u8 = 4;
const IS_FOR_BOOTSTRAP: u8 = 8;

/// A record of a session, which contains its keys.
pub type SessionRecord = Zeroizing<Vec<u8>>;

impl Associations {
    /// Ends every session here and hands it over as records. Nothing is received or sent any more.
    pub fn export(&mut self, mut record: impl FnMut(&[u8])) {
        for (id, session) in &self.sessions {
            record(&encode(*id, session));
        }
        self.sessions.clear();
        self.session_by_device.clear();
        self.second_by_device.clear();
        self.claims.clear();
        self.changed_by_look_up.clear();
        let mut config = Config::new([0; 32]);
        config.accepts_clients = false;
        let ended = mem::replace(&mut self.endpoint, Endpoint::new(Arc::new(config)));
        let mut bytes = Zeroizing::new(Vec::with_capacity(512));
        ended.export(|of_endpoint| {
            bytes.clear();
            bytes.push(OF_ENDPOINT);
            bytes.extend_from_slice(of_endpoint);
            record(&bytes);
        });
    }
}

/// The sessions of an earlier process whose records are complete.
pub(super) fn import(
    config: Arc<Config>,
    records: &[SessionRecord],
) -> (Endpoint, HashMap<AssociationId, Session>) {
    let mut of_sessions = HashMap::new();
    let mut of_endpoint = Vec::new();
    for record in records {
        match record.split_first() {
            Some((&OF_ENDPOINT, rest)) => of_endpoint.push(rest),
            Some((&OF_SESSION, _)) => of_sessions.extend(decode(record)),
            Some(_) | None => {}
        }
    }
    let (mut endpoint, _) = Endpoint::import(config, of_endpoint);
    let ids: Vec<_> = endpoint.sessions().map(|(id, _)| id).collect();
    let mut sessions = HashMap::new();
    for id in ids {
        match of_sessions.remove(&id) {
            Some(session) => drop(sessions.insert(id, session)),
            None => endpoint.forget(id),
        }
    }
    (endpoint, sessions)
}

fn encode(id: AssociationId, session: &Session) -> Vec<u8> {
    let security = &session.security;
    let mut flags = 0;
    for (is_set, flag) in [
        (security.has_connection_id, HAS_CONNECTION_ID),
        (
            security.has_extended_master_secret,
            HAS_EXTENDED_MASTER_SECRET,
        ),
        (security.is_resumed, IS_RESUMED),
        (session.key_use == KeyUse::Bootstrap, IS_FOR_BOOTSTRAP),
    ] {
        flags |= if is_set { flag } else { 0 };
    }
    let mut record = Vec::with_capacity(SESSION_BYTES);
    record.push(OF_SESSION);
    record.extend_from_slice(&id.to_bytes());
    record.extend_from_slice(&session.established_at.as_ms().to_be_bytes());
    record.extend_from_slice(&security.authenticated_at.as_ms().to_be_bytes());
    record.extend_from_slice(&session.address_changes.to_be_bytes());
    record.extend_from_slice(&security.suite.number().to_be_bytes());
    record.push(flags);
    record
}

fn decode(record: &[u8]) -> Option<(AssociationId, Session)> {
    let (_, rest) = record.split_first_chunk::<1>()?;
    let (id, rest) = rest.split_first_chunk()?;
    let (established_at, rest) = rest.split_first_chunk()?;
    let (authenticated_at, rest) = rest.split_first_chunk()?;
    let (address_changes, rest) = rest.split_first_chunk()?;
    let (suite, rest) = rest.split_first_chunk()?;
    let [flags] = rest else {
        return None;
    };
    let authenticated_at = u64::from_be_bytes(*authenticated_at);
    let security = Security {
        suite: CipherSuite::from_number(u16::from_be_bytes(*suite))?,
        has_connection_id: flags & HAS_CONNECTION_ID != 0,
        has_extended_master_secret: flags & HAS_EXTENDED_MASTER_SECRET != 0,
        is_resumed: flags & IS_RESUMED != 0,
        authenticated_at: dtls::Timestamp::from_ms(authenticated_at),
        psk_index: 0,
    };
    let session = Session {
        owner: Owner::Kept,
        local: None,
        security,
        established_at: Timestamp::from_ms(i64::from_be_bytes(*established_at)),
        address_changes: u32::from_be_bytes(*address_changes),
        key_use: match flags & IS_FOR_BOOTSTRAP {
            0 => KeyUse::All,
            _ => KeyUse::Bootstrap,
        },
        begun: Begun::Before,
        carries: Carries::Nothing,
    };
    Some((AssociationId::from_bytes(*id), session))
}
