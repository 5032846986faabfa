//! How are calls with an `Idempotency-Key` executed only once?
//!
//! What a call created is stored with it, so a repeated call gets the same response. Two calls with
//! one key do not run concurrently: the second gets 409, because the first may still be refused.

mod described;

use std::collections::HashSet;
use std::future::{Future, Ready, ready};
use std::sync::{Arc, Mutex, PoisonError};

use actix_web::dev::Payload;
use actix_web::http::header::{ContentType, HeaderValue, LOCATION};
use actix_web::{FromRequest, HttpRequest, HttpResponse, HttpResponseBuilder, web};
use serde::{Deserialize, Serialize};
use tracing::Instrument as _;

use engine::directory::Decision;
use engine::idempotency::{
    CallFingerprint, CreatedByCall, IdempotencyKey, IdempotencyKeyText, IdempotencyRecord,
    IdempotentCall,
};
use engine::ids::{ActionId, CustomerId, DeviceKey};
use engine::sealing::SecretOwner;
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
    /// The keys of a command, which are those of a header.
    pub(super) fn of_texts(keys: &[String]) -> Self {
        // What is no text of a header is no key either.
        let unreadable = |_| HeaderValue::from_static("");
        let values = keys
            .iter()
            .map(|key| HeaderValue::from_str(key).unwrap_or_else(unreadable));
        Self(values.collect())
    }

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

    /// The call of a customer, or of the operator.
    async fn call(
        self,
        api: &Api,
        customer: Option<&CustomerId>,
    ) -> Result<IdempotentCall, ApiError> {
        let Self { key, fingerprint } = self;
        let key = match customer {
            Some(customer) => {
                let customer = api.store.customer(customer.clone()).await?;
                let customer = customer.ok_or_else(ApiError::token_invalid)?;
                IdempotencyKey::of(customer.number, &key)
            }
            None => IdempotencyKey::of_operator(&key),
        };
        Ok(IdempotentCall { key, fingerprint })
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
        self.records.iter().find_map(|record| match record.created {
            CreatedByCall::Action { device: of, action } if of.key == device => Some(action),
            CreatedByCall::Action { .. } | CreatedByCall::Answered(_) => None,
        })
    }
}

/// The response to a call that created something other than action requests: 201.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct CreatedResponse {
    location: Option<String>,
    body: String,
}

impl CreatedResponse {
    /// A response with the created object, and its path if it has one.
    pub(super) fn of(location: Option<String>, body: &impl Serialize) -> Result<Self, ApiError> {
        let body = serde_json::to_string(body).map_err(ApiError::internal)?;
        Ok(Self { location, body })
    }
}

impl CreatedResponse {
    /// The response where the creation is completed later: 202.
    pub(super) fn accepted(self) -> HttpResponse {
        self.in_response(HttpResponse::Accepted())
    }

    fn in_response(self, mut response: HttpResponseBuilder) -> HttpResponse {
        if let Some(location) = self.location {
            response.insert_header((LOCATION, location));
        }
        response.insert_header(ContentType::json()).body(self.body)
    }
}

impl From<CreatedResponse> for HttpResponse {
    fn from(created: CreatedResponse) -> Self {
        created.in_response(Self::Created())
    }
}

/// Keeps the response of a call with a key, in the batch of what it creates.
#[derive(Clone)]
pub(super) struct ResponseKeeper {
    api: web::Data<Api>,
    once: Option<IdempotentCall>,
}

impl ResponseKeeper {
    /// The record of the call, if it has a key.
    pub(super) fn record(
        &self,
        response: &CreatedResponse,
    ) -> Result<Option<IdempotencyRecord>, ApiError> {
        let Some(call) = self.once else {
            return Ok(None);
        };
        let plain = serde_json::to_vec(response).map_err(ApiError::internal)?;
        let sealed = self
            .api
            .master_key
            .seal(&plain, &SecretOwner::Call(call.key).context());
        Ok(Some(IdempotencyRecord {
            call,
            created: CreatedByCall::Answered(sealed),
            at: self.api.clock.now(),
        }))
    }

    /// The decision with the record of the call.
    pub(super) fn keep<T>(
        &self,
        decided: Decision<T>,
        respond: impl FnOnce(T) -> Result<CreatedResponse, ApiError>,
    ) -> Result<Decision<CreatedResponse>, ApiError> {
        let Decision { mut batch, answer } = decided;
        let answer = respond(answer)?;
        if let Some(record) = self.record(&answer)? {
            batch.add_record(record);
        }
        Ok(Decision { batch, answer })
    }
}

/// Executes a call that creates something other than action requests, only once if it has a key;
/// `caller` is none for the operator.
pub(super) async fn create<F>(
    api: &web::Data<Api>,
    caller: Option<&AuthenticatedCaller>,
    identity: Option<CallIdentity>,
    act: impl FnOnce(ResponseKeeper) -> F + 'static,
) -> Result<HttpResponse, ApiError>
where
    F: Future<Output = Result<CreatedResponse, ApiError>> + 'static,
{
    let created = create_once(api, caller, identity, act).await;
    created.map(Into::into)
}

/// The same, and returns the response before it has a status.
pub(super) async fn create_once<F>(
    api: &web::Data<Api>,
    caller: Option<&AuthenticatedCaller>,
    identity: Option<CallIdentity>,
    act: impl FnOnce(ResponseKeeper) -> F + 'static,
) -> Result<CreatedResponse, ApiError>
where
    F: Future<Output = Result<CreatedResponse, ApiError>> + 'static,
{
    let mut keeper = ResponseKeeper {
        api: api.clone(),
        once: None,
    };
    let Some(identity) = identity else {
        return act(keeper).await;
    };
    let once = identity.call(api, caller.map(|it| &it.customer)).await?;
    let created = execute(api, once, async move |records| {
        let earlier = records.into_iter().find_map(|record| match record.created {
            CreatedByCall::Answered(response) => Some(response),
            CreatedByCall::Action { .. } => None,
        });
        let Some(earlier) = earlier else {
            keeper.once = Some(once);
            return act(keeper).await;
        };
        let opened = keeper
            .api
            .master_key
            .open(&earlier, &SecretOwner::Call(once.key).context());
        let opened = opened.map_err(ApiError::internal)?;
        serde_json::from_slice(&opened).map_err(ApiError::internal)
    });
    created.await
}

/// Executes a call that creates action requests, only once if it has a key.
pub(super) async fn call<T: 'static, F>(
    api: &web::Data<Api>,
    customer: &CustomerId,
    identity: Option<CallIdentity>,
    act: impl FnOnce(KnownCall) -> F + 'static,
) -> Result<T, ApiError>
where
    F: Future<Output = Result<T, ApiError>> + 'static,
{
    let Some(identity) = identity else {
        let (once, records) = (None, Vec::new());
        return act(KnownCall { once, records }).await;
    };
    let once = identity.call(api, Some(customer)).await?;
    let store = Arc::clone(&api.store);
    execute(api, once, async move |records| {
        let records = held(&*store, records).await?;
        let once = Some(once);
        act(KnownCall { once, records }).await
    })
    .await
}

/// Executes a call with the records of earlier calls with the same key.
async fn execute<T: 'static, F>(
    api: &Api,
    once: IdempotentCall,
    act: impl FnOnce(Vec<IdempotencyRecord>) -> F + 'static,
) -> Result<T, ApiError>
where
    F: Future<Output = Result<T, ApiError>> + 'static,
{
    let turn = api.idempotency_locks.take(once.key)?;
    let store = Arc::clone(&api.store);
    let acting = async move {
        let _turn = turn;
        let records = store.idempotency_records(once.key).await?;
        if records.iter().any(|record| record.call != once) {
            return Err(ApiError::key_reused(HEADER));
        }
        act(records).await
    };
    // The call completes even if the caller disconnects: a repeated call must find its result.
    let acting = actix_web::rt::spawn(acting.in_current_span());
    let broken = |panicked| Err(ApiError::internal(panicked));
    acting.await.unwrap_or_else(broken)
}

/// The records whose device still exists: a new device with the same id has none.
async fn held(
    store: &dyn DeviceReads,
    records: Vec<IdempotencyRecord>,
) -> Result<Vec<IdempotencyRecord>, ApiError> {
    let mut held = Vec::with_capacity(records.len());
    for record in records {
        let Some(device) = record.device() else {
            continue;
        };
        let profile = store.profile(device.key).await?;
        if profile.is_some_and(|it| it.number == device.number) {
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
