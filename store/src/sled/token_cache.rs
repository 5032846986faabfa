//! Which access tokens are in memory, each with its API client? Those that calls presented last: a
//! call is authorised without a reader thread.
//!
//! Everything in memory is dropped once a group that changes tokens or clients is written, before
//! the group is acknowledged, and a read that began before keeps nothing.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::customer::{AccessToken, ApiClient, SecretDigest};
use sled::Db;

use super::ask::customers;
use super::fault::Fault;
use super::key;
use super::overlay::Overlay;

/// The tokens in memory: those of all callers of an hour, in at most 4 MB. One more drops the
/// others, which are read again when they are presented.
const TOKENS_MAX: usize = 4_096;

/// The tokens in memory.
#[derive(Default)]
pub(super) struct TokenCache {
    kept: Mutex<KeptTokens>,
}

#[derive(Default)]
struct KeptTokens {
    by_digest: HashMap<SecretDigest, (AccessToken, ApiClient)>,
    /// Counts the groups that changed tokens or clients.
    changes: u64,
}

impl TokenCache {
    /// A token and its API client, if they are in memory.
    pub(super) fn find(&self, digest: &SecretDigest) -> Option<(AccessToken, ApiClient)> {
        self.lock().by_digest.get(digest).cloned()
    }

    /// A token and its API client, from the store.
    pub(super) fn read(
        &self,
        db: &Db,
        digest: &SecretDigest,
    ) -> Result<Option<(AccessToken, ApiClient)>, Fault> {
        let changes = self.lock().changes;
        let found = customers::token(db, digest)?;
        if let Some(found) = &found {
            self.lock().keep(found.clone(), changes);
        }
        Ok(found)
    }

    /// Drops everything, because a group was written that changes tokens or clients.
    pub(super) fn forget(&self) {
        let mut kept = self.lock();
        kept.changes += 1;
        kept.by_digest.clear();
    }

    /// The lock may be poisoned: what is kept is what is stored at any moment.
    fn lock(&self) -> MutexGuard<'_, KeptTokens> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptTokens {
    /// Keeps a token that was read after so many changes.
    fn keep(&mut self, found: (AccessToken, ApiClient), changes: u64) {
        if self.changes != changes {
            return;
        }
        if self.by_digest.len() >= TOKENS_MAX {
            self.by_digest.clear();
        }
        self.by_digest.insert(found.0.digest, found);
    }
}

/// Whether a group changes tokens or clients.
pub(super) fn is_changed_by(rows: &Overlay<'_>) -> bool {
    rows.changes_under(&key::token::tokens()) || rows.changes_under(&key::clients())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::samples::{acme, at, client, token};
    use crate::record::customer::{write_client, write_token};

    #[test]
    fn a_token_that_was_read_is_in_memory_until_something_changes() {
        let (db, cache, kept) = stored();
        let digest = kept.0.digest;
        assert_eq!(cache.find(&digest), None);
        assert_eq!(cache.read(&db, &digest).unwrap(), Some(kept.clone()));
        assert_eq!(cache.find(&digest), Some(kept));
        cache.forget();
        assert_eq!(cache.find(&digest), None);
        let unknown = SecretDigest::of("unknown");
        assert_eq!(cache.read(&db, &unknown).unwrap(), None);
    }

    #[test]
    fn a_read_from_before_a_change_keeps_nothing() {
        let (_db, cache, found) = stored();
        let before = cache.lock().changes;
        cache.forget();
        cache.lock().keep(found.clone(), before);
        assert_eq!(cache.find(&found.0.digest), None);
    }

    #[test]
    fn a_group_that_writes_a_token_or_a_client_changes_them() {
        let (db, _, (token, client)) = stored();
        let keys = [key::token::token(&token.digest), key::client(&client.id)];
        for key in keys {
            let mut rows = Overlay::new(&db);
            assert!(!is_changed_by(&rows));
            rows.put(key::customer(&acme()).into(), "".into());
            assert!(!is_changed_by(&rows));
            rows.remove(key);
            assert!(is_changed_by(&rows));
        }
    }

    /// A tree with one token and its client.
    fn stored() -> (Db, TokenCache, (AccessToken, ApiClient)) {
        let db = sled::Config::new().temporary(true).open().unwrap();
        let client = client(&acme(), "script");
        let token = token(&client, "one", at(100));
        let key = key::token::token(&token.digest);
        db.insert(key, write_token(&token)).unwrap();
        db.insert(key::client(&client.id), write_client(&client))
            .unwrap();
        (db, TokenCache::default(), (token, client))
    }
}
