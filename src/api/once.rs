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

use engine::ids::{ActionId, DeviceKey};
use engine::promise::{Fingerprint, KeyText, Once, OnceKey, Promise};
use store::DeviceReads;

use super::Api;
use super::access::Caller;
use super::error::Failure;
use super::fields::{Fields, Wrong};

/// The header with the idempotency key.
pub(super) const HEADER: &str = "Idempotency-Key";

/// Concurrent calls with a key: more than a process has connections. One more gets 503.
const TURNS_MAX: usize = 65_536;

/// The unparsed `Idempotency-Key` headers of a call.
pub(super) struct Named(Vec<HeaderValue>);

impl FromRequest for Named {
    type Error = Failure;
    type Future = Ready<Result<Self, Failure>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let values = request.headers().get_all(HEADER);
        ready(Ok(Self(values.cloned().collect())))
    }
}

impl Named {
    /// The identity of a call with a key: the key and a fingerprint of the place and of all fields,
    /// none of which was taken yet. A fault of the key is added to the faults of the fields.
    pub(super) fn read(&self, place: &[&str], fields: &mut Fields) -> Option<Identity> {
        match self.0.as_slice() {
            [] => None,
            [value] => match KeyText::parse(value.to_str().unwrap_or_default()) {
                Ok(key) => Some(Identity::of(key, place, fields)),
                Err(why) => {
                    fields.fault(HEADER, why);
                    None
                }
            },
            [_, _, ..] => {
                fields.fault(HEADER, Wrong::repeated());
                None
            }
        }
    }
}

/// The key and the fingerprint of a call.
pub(super) struct Identity {
    key: KeyText,
    fingerprint: Fingerprint,
}

impl Identity {
    fn of(key: KeyText, place: &[&str], fields: &Fields) -> Self {
        let canonical = fields.canonical();
        let place = place.iter().map(|part| part.as_bytes());
        let parts: Vec<&[u8]> = place.chain([canonical.as_slice()]).collect();
        let fingerprint = Fingerprint::of(&parts);
        Self { key, fingerprint }
    }
}

/// The results of earlier calls with the same key.
pub(super) struct Known {
    /// The key and fingerprint to store with new requests.
    pub(super) once: Option<Once>,
    promises: Vec<Promise>,
}

impl Known {
    /// The request that an earlier call created for a device.
    pub(super) fn promised(&self, device: DeviceKey) -> Option<ActionId> {
        let promise = self.promises.iter().find(|it| it.device == device);
        promise.map(|it| it.action)
    }
}

/// Executes a call, only once if it has a key.
pub(super) async fn call<T: 'static, F>(
    api: &web::Data<Api>,
    caller: &Caller,
    identity: Option<Identity>,
    act: impl FnOnce(Known) -> F + 'static,
) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>> + 'static,
{
    let Some(Identity { key, fingerprint }) = identity else {
        let (once, promises) = (None, Vec::new());
        return act(Known { once, promises }).await;
    };
    let customer = api.store.customer(caller.customer.clone()).await?;
    let customer = customer.ok_or_else(Failure::token_invalid)?;
    let once = Once {
        key: OnceKey::of(customer.number, &key),
        call: fingerprint,
    };
    let turn = api.turns.take(once.key)?;
    let store = Arc::clone(&api.store);
    let acting = async move {
        let _turn = turn;
        let promises = store.promises_under(once.key).await?;
        if promises.iter().any(|promise| promise.once != once) {
            return Err(Failure::key_reused(HEADER));
        }
        let promises = held(&*store, promises).await?;
        let once = Some(once);
        act(Known { once, promises }).await
    };
    // The call completes even if the caller disconnects: a repeated call must find its result.
    let acting = actix_web::rt::spawn(acting.in_current_span());
    let broken = |panicked| Err(Failure::internal(panicked));
    acting.await.unwrap_or_else(broken)
}

/// The results whose device still exists: a new device with the same id has none.
async fn held(store: &dyn DeviceReads, promises: Vec<Promise>) -> Result<Vec<Promise>, Failure> {
    let mut held = Vec::with_capacity(promises.len());
    for promise in promises {
        let profile = store.profile(promise.device).await?;
        if profile.is_some_and(|it| it.number == promise.number) {
            held.push(promise);
        }
    }
    Ok(held)
}

/// The keys of the calls in progress.
#[derive(Clone, Default)]
pub(super) struct Turns(Arc<Mutex<HashSet<OnceKey>>>);

impl Turns {
    fn take(&self, key: OnceKey) -> Result<Turn, Failure> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.len() >= TURNS_MAX {
            return Err(Failure::busy());
        }
        if !taken.insert(key) {
            return Err(Failure::key_in_use(HEADER));
        }
        let turns = self.clone();
        Ok(Turn { turns, key })
    }
}

/// The lock on a key; released on drop.
struct Turn {
    turns: Turns,
    key: OnceKey,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let taken = self.turns.0.lock();
        let mut taken = taken.unwrap_or_else(PoisonError::into_inner);
        taken.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> OnceKey {
        OnceKey::of(1, &KeyText::parse(text).unwrap())
    }

    #[test]
    fn a_key_is_taken_by_one_call_at_a_time() {
        let turns = Turns::default();
        let first = turns.take(key("one")).unwrap();
        let refused = turns.take(key("one")).err().unwrap();
        assert_eq!(refused.faults()[0].code, "IDEMPOTENCY_KEY_IN_USE");
        let other = turns.take(key("other"));
        assert!(other.is_ok());
        drop(first);
        assert!(turns.take(key("one")).is_ok());
    }
}
