//! How are calls with an `Idempotency-Key` executed only once?
//!
//! The result of a call is stored with the requests it created, so a repeated call gets the same
//! response. Two calls with one key do not run concurrently: the second gets 409, because the first
//! may still be refused.

use std::collections::HashSet;
use std::future::{Future, Ready, ready};
use std::sync::{Arc, Mutex, PoisonError};

use actix_web::dev::Payload;
use actix_web::http::header::HeaderValue;
use actix_web::{FromRequest, HttpRequest, web};
use tracing::Instrument as _;

use engine::idempotency::{
    CallFingerprint, IdempotencyKey, IdempotencyKeyText, IdempotencyRecord, IdempotentCall,
};
use engine::ids::{ActionId, DeviceKey};
use store::DeviceReads;

use super::Api;
use super::access::AuthenticatedCaller;
use super::error::ApiError;
use super::fields::{FieldFault, Fields};

/// The header with the idempotency key.
pub(super) const HEADER: &str = "Idempotency-Key";

/// Concurrent calls with a key: more than a process has connections. One more gets 503.
const TURNS_MAX: usize = 65_536;

/// The unparsed `Idempotency-Key` headers of a call.
pub(super) struct IdempotencyKeyHeader(Vec<HeaderValue>);

impl FromRequest for IdempotencyKeyHeader {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let values = request.headers().get_all(HEADER);
        ready(Ok(Self(values.cloned().collect())))
    }
}

impl IdempotencyKeyHeader {
    /// The identity of a call with a key: the key and a fingerprint of the place and of all fields,
    /// none of which was taken yet. A fault of the key is added to the faults of the fields.
    pub(super) fn read(&self, place: &[&str], fields: &mut Fields) -> Option<CallIdentity> {
        match self.0.as_slice() {
            [] => None,
            [value] => match IdempotencyKeyText::parse(value.to_str().unwrap_or_default()) {
                Ok(key) => Some(CallIdentity::of(key, place, fields)),
                Err(why) => {
                    fields.fault(HEADER, why);
                    None
                }
            },
            [_, _, ..] => {
                fields.fault(HEADER, FieldFault::repeated());
                None
            }
        }
    }
}

/// The key and the fingerprint of a call.
pub(super) struct CallIdentity {
    key: IdempotencyKeyText,
    fingerprint: CallFingerprint,
}

impl CallIdentity {
    fn of(key: IdempotencyKeyText, place: &[&str], fields: &Fields) -> Self {
        let canonical = fields.canonical();
        let place = place.iter().map(|part| part.as_bytes());
        let parts: Vec<&[u8]> = place.chain([canonical.as_slice()]).collect();
        let fingerprint = CallFingerprint::of(&parts);
        Self { key, fingerprint }
    }
}

/// The results of earlier calls with the same key.
pub(super) struct KnownCall {
    /// The key and fingerprint to store with new requests.
    pub(super) once: Option<IdempotentCall>,
    records: Vec<IdempotencyRecord>,
}

impl KnownCall {
    /// The request that an earlier call created for a device.
    pub(super) fn record_of(&self, device: DeviceKey) -> Option<ActionId> {
        let record = self.records.iter().find(|it| it.device == device);
        record.map(|it| it.action)
    }
}

/// Executes a call, only once if it has a key.
pub(super) async fn call<T: 'static, F>(
    api: &web::Data<Api>,
    caller: &AuthenticatedCaller,
    identity: Option<CallIdentity>,
    act: impl FnOnce(KnownCall) -> F + 'static,
) -> Result<T, ApiError>
where
    F: Future<Output = Result<T, ApiError>> + 'static,
{
    let Some(CallIdentity { key, fingerprint }) = identity else {
        let (once, records) = (None, Vec::new());
        return act(KnownCall { once, records }).await;
    };
    let customer = api.store.customer(caller.customer.clone()).await?;
    let customer = customer.ok_or_else(ApiError::token_invalid)?;
    let once = IdempotentCall {
        key: IdempotencyKey::of(customer.number, &key),
        fingerprint,
    };
    let turn = api.idempotency_locks.take(once.key)?;
    let store = Arc::clone(&api.store);
    let acting = async move {
        let _turn = turn;
        let records = store.idempotency_records(once.key).await?;
        if records.iter().any(|record| record.call != once) {
            return Err(ApiError::key_reused(HEADER));
        }
        let records = held(&*store, records).await?;
        let once = Some(once);
        act(KnownCall { once, records }).await
    };
    // The call completes even if the caller disconnects: a repeated call must find its result.
    let acting = actix_web::rt::spawn(acting.in_current_span());
    let broken = |panicked| Err(ApiError::internal(panicked));
    acting.await.unwrap_or_else(broken)
}

/// The results whose device still exists: a new device with the same id has none.
async fn held(
    store: &dyn DeviceReads,
    records: Vec<IdempotencyRecord>,
) -> Result<Vec<IdempotencyRecord>, ApiError> {
    let mut held = Vec::with_capacity(records.len());
    for record in records {
        let profile = store.profile(record.device).await?;
        if profile.is_some_and(|it| it.number == record.number) {
            held.push(record);
        }
    }
    Ok(held)
}

/// The keys of the calls in progress.
#[derive(Clone, Default)]
pub(super) struct IdempotencyLocks(Arc<Mutex<HashSet<IdempotencyKey>>>);

impl IdempotencyLocks {
    fn take(&self, key: IdempotencyKey) -> Result<IdempotencyLock, ApiError> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.len() >= TURNS_MAX {
            return Err(ApiError::busy());
        }
        if !taken.insert(key) {
            return Err(ApiError::key_in_use(HEADER));
        }
        let turns = self.clone();
        Ok(IdempotencyLock { turns, key })
    }
}

/// The lock on a key; released on drop.
struct IdempotencyLock {
    turns: IdempotencyLocks,
    key: IdempotencyKey,
}

impl Drop for IdempotencyLock {
    fn drop(&mut self) {
        let taken = self.turns.0.lock();
        let mut taken = taken.unwrap_or_else(PoisonError::into_inner);
        taken.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> IdempotencyKey {
        IdempotencyKey::of(1, &IdempotencyKeyText::parse(text).unwrap())
    }

    #[test]
    fn a_key_is_locked_by_one_call_at_a_time() {
        let turns = IdempotencyLocks::default();
        let first = turns.take(key("one")).unwrap();
        let refused = turns.take(key("one")).err().unwrap();
        assert_eq!(refused.faults()[0].code, "IDEMPOTENCY_KEY_IN_USE");
        let other = turns.take(key("other"));
        assert!(other.is_ok());
        drop(first);
        assert!(turns.take(key("one")).is_ok());
    }
}
