//! What do the handlers of webhooks, brokers, plugins and SMS forwarders have in common?
//!
//! Changes go to the forwarders; reads go to the store.

pub(super) mod dead_letters;
pub(super) mod described;
mod sealing;

use std::marker::PhantomData;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::customer::Customer;
use engine::delivery::backlog::Backlog;
use engine::delivery::command::TestOutcome;
use engine::delivery::destination::{Destination, DestinationAmendment};
use engine::delivery::mqtt::link::MqttLinkStatus;
use engine::directory::DirectoryRefusal;
use engine::directory::destination::{SealedField, destination_of};
use engine::ids::{CustomerId, DestinationId};
use engine::moment::Moment;
use engine::query::{Page, PageRequest};
use engine::sealed::Sealed;
use engine::supervision::Unserved;

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::Query;
use super::error::ApiError;
use super::fields::Fields;
use super::idempotency::{self, CallIdentity, CreatedResponse, ResponseKeeper};
use super::page::{PageBody, wanted};
use super::records::to_its_end;
use super::segment::{PathSegment, Segment};

/// What is shown instead of a secret.
pub(super) const MASKED: &str = "***";

/// A kind of destination, with a representation and paths of its own. Under the paths of one kind
/// there is no destination of another.
pub(super) trait DestinationKind: 'static {
    /// The name of its path parameter, and in the message of a 404.
    const NAME: &'static str;

    /// The path of all destinations of the kind.
    const PATH: &'static str;

    /// Its representation.
    type Body: Serialize;

    /// The representation of a destination, if it is of this kind.
    fn body(destination: &Destination) -> Option<Self::Body>;

    /// Its connection, if destinations of the kind have one.
    fn connection(_: &Api, _: DestinationId) -> Option<ConnectionBody> {
        None
    }
}

/// What a new destination is decided on.
pub(super) struct Circumstances<'a> {
    pub(super) moment: &'a mut Moment,
    pub(super) customer_id: &'a CustomerId,
    /// None for a customer that was removed.
    pub(super) customer: Option<&'a Customer>,
    /// The other destinations of the customer.
    pub(super) others: &'a [Destination],
    /// Encrypts a field of a destination.
    pub(super) seal: &'a dyn Fn(DestinationId, SealedField<'_>, &str) -> Sealed,
}

/// The id of a destination in a path.
pub(super) struct DestinationSegment<K> {
    pub(super) id: DestinationId,
    kind: PhantomData<K>,
}

impl<K: DestinationKind> Segment for DestinationSegment<K> {
    const NAME: &'static str = K::NAME;

    fn read(text: &str) -> Option<Self> {
        let id = DestinationId::parse(text).ok()?;
        let kind = PhantomData;
        Some(Self { id, kind })
    }
}

/// A destination with its backlog.
#[derive(Serialize)]
pub(super) struct WithBacklogBody<T> {
    #[serde(flatten)]
    destination: T,
    #[serde(flatten)]
    connection: Option<ConnectionBody>,
    backlog: BacklogBody,
}

/// The connection of a destination.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConnectionBody {
    connected: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
}

/// The number of undelivered events.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BacklogBody {
    waiting: u64,
    dead_letters: u64,
}

/// The result of a test event.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct TestedBody {
    delivered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_code: Option<u16>,
    message: String,
}

impl<T> WithBacklogBody<T> {
    /// The destination with its backlog.
    pub(super) fn of(destination: T, backlog: Backlog) -> Self {
        let backlog = BacklogBody {
            waiting: backlog.waiting,
            dead_letters: backlog.dead,
        };
        Self {
            destination,
            connection: None,
            backlog,
        }
    }

    /// The same with its connection.
    pub(super) fn with_connection(self, connection: Option<ConnectionBody>) -> Self {
        Self { connection, ..self }
    }
}

impl ConnectionBody {
    /// The connection.
    pub(super) fn of(status: MqttLinkStatus) -> Self {
        Self {
            connected: status.is_connected,
            last_error: status.fault.map(Into::into),
        }
    }
}

impl TestedBody {
    /// The result.
    pub(in crate::api) fn of(tested: TestOutcome) -> Self {
        Self {
            delivered: tested.accepted,
            status_code: tested.status,
            message: tested.message,
        }
    }
}

/// GET: lists the destinations of the caller that are of this kind, oldest first.
pub(super) async fn list<K: DestinationKind>(
    caller: AuthenticatedCaller,
    Query(fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    listed::<K>(&api, caller, fields, |_| true).await
}

/// GET one, with its backlog.
pub(super) async fn show<K: DestinationKind>(
    caller: AuthenticatedCaller,
    PathSegment(segment): PathSegment<DestinationSegment<K>>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    Ok(HttpResponse::Ok().json(followed::<K>(&api, &caller, segment.id).await?))
}

/// DELETE: deletes a destination with its backlog.
pub(super) async fn delete<K: DestinationKind>(
    caller: AuthenticatedCaller,
    PathSegment(segment): PathSegment<DestinationSegment<K>>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    to_its_end(removed::<K>(api, caller, segment.id)).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// POST: restarts a failed destination.
pub(super) async fn restart<K: DestinationKind>(
    caller: AuthenticatedCaller,
    PathSegment(segment): PathSegment<DestinationSegment<K>>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    owned::<K>(&api, &caller, segment.id).await?;
    let restarted = api.deliveries.restart(segment.id).await;
    let restarted = restarted.map_err(unserved::<K>)?;
    Ok(HttpResponse::Ok().json(shown::<K>(&restarted)?))
}

/// POST: sends a test event and returns the result.
pub(super) async fn test<K: DestinationKind>(
    caller: AuthenticatedCaller,
    PathSegment(segment): PathSegment<DestinationSegment<K>>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    owned::<K>(&api, &caller, segment.id).await?;
    let tested = api.deliveries.test(segment.id).await;
    let tested = tested.map_err(unserved::<K>)?;
    Ok(HttpResponse::Ok().json(TestedBody::of(tested)))
}

/// Creates the destination that `decide` decides on, only once if the call has a key.
pub(super) async fn create<K: DestinationKind>(
    api: &web::Data<Api>,
    caller: AuthenticatedCaller,
    identity: Option<CallIdentity>,
    decide: impl FnOnce(Circumstances<'_>) -> Result<Destination, DirectoryRefusal> + 'static,
) -> Result<HttpResponse, ApiError> {
    let (made_by, of) = (api.clone(), caller.clone());
    let act = move |keeper| to_its_end(made::<K>(made_by, of, keeper, decide));
    idempotency::create(api, Some(&caller), identity, act).await
}

async fn made<K: DestinationKind>(
    api: web::Data<Api>,
    caller: AuthenticatedCaller,
    keeper: ResponseKeeper,
    decide: impl FnOnce(Circumstances<'_>) -> Result<Destination, DirectoryRefusal>,
) -> Result<CreatedResponse, ApiError> {
    // One at a time, so that what was decided holds.
    let _turn = api.changing_destinations.lock().await;
    let customer = api.store.customer(caller.customer.clone()).await?;
    let others = api.store.destinations_of(caller.customer.clone()).await?;
    let drafted = decide(Circumstances {
        moment: &mut api.clock.moment(),
        customer_id: &caller.customer,
        customer: customer.as_ref(),
        others: &others,
        seal: &|id, field, text| api.seal_for(id, field, text),
    })?;
    let location = format!("{}/{}", K::PATH, drafted.id);
    let response = CreatedResponse::of(Some(location), &shown::<K>(&drafted)?)?;
    let record = keeper.record(&response)?;
    let created = api.deliveries.create(drafted, record).await;
    created.map_err(|why| match why {
        Unserved::Unknown => ApiError::from(DirectoryRefusal::CustomerUnknown),
        Unserved::Busy | Unserved::Failed => unserved::<K>(why),
    })?;
    api.devices.take_policy(caller.customer).await?;
    Ok(response)
}

/// PATCH: changes a destination.
pub(super) async fn amend<K: DestinationKind>(
    api: web::Data<Api>,
    caller: AuthenticatedCaller,
    id: DestinationId,
    change: impl FnOnce(Destination) -> Result<Destination, ApiError> + 'static,
) -> Result<HttpResponse, ApiError> {
    let amended = to_its_end(amended::<K>(api, caller, id, change)).await?;
    Ok(HttpResponse::Ok().json(shown::<K>(&amended)?))
}

async fn amended<K: DestinationKind>(
    api: web::Data<Api>,
    caller: AuthenticatedCaller,
    id: DestinationId,
    change: impl FnOnce(Destination) -> Result<Destination, ApiError>,
) -> Result<Destination, ApiError> {
    // One at a time, so that concurrent updates do not overwrite each other.
    let _turn = api.changing_destinations.lock().await;
    let amended = change(owned::<K>(&api, &caller, id).await?)?;
    let amended = DestinationAmendment {
        name: Some(amended.name),
        target: Some(amended.target),
        event_types: Some(amended.event_types),
    };
    let amended = api.deliveries.amend(id, amended).await;
    let amended = amended.map_err(unserved::<K>)?;
    api.devices.take_policy(caller.customer).await?;
    Ok(amended)
}

/// The wanted page of the destinations of the caller that are of this kind and meet a condition,
/// oldest first.
pub(super) async fn listed<K: DestinationKind>(
    api: &Api,
    caller: AuthenticatedCaller,
    mut fields: Fields,
    is_wanted: impl Fn(&Destination) -> bool,
) -> Result<HttpResponse, ApiError> {
    let wanted = wanted(&mut fields);
    fields.finish(Some(()))?;
    let mut all = api.store.destinations_of(caller.customer).await?;
    all.retain(is_wanted);
    all.sort_by_key(|it| (it.created_at, it.id));
    let bodies = all.iter().filter_map(K::body).collect();
    Ok(HttpResponse::Ok().json(PageBody::of(wanted, page_of(bodies, wanted), |it| it)))
}

/// The destination, if it is the caller's and of this kind.
pub(super) async fn owned<K: DestinationKind>(
    api: &Api,
    caller: &AuthenticatedCaller,
    id: DestinationId,
) -> Result<Destination, ApiError> {
    let found = api.store.destination(id).await?;
    let found = destination_of(&caller.customer, found).filter(|it| K::body(it).is_some());
    found.ok_or_else(|| ApiError::unknown(K::NAME))
}

/// The representation of a destination of this kind.
pub(super) fn shown<K: DestinationKind>(destination: &Destination) -> Result<K::Body, ApiError> {
    K::body(destination).ok_or_else(|| ApiError::unknown(K::NAME))
}

/// The destination with its backlog. The state is read last: with an empty backlog, it is the state
/// after the last delivery.
pub(super) async fn followed<K: DestinationKind>(
    api: &Api,
    caller: &AuthenticatedCaller,
    id: DestinationId,
) -> Result<WithBacklogBody<K::Body>, ApiError> {
    let backlog = api.store.backlog(id).await?;
    let found = owned::<K>(api, caller, id).await?;
    let body = WithBacklogBody::of(shown::<K>(&found)?, backlog);
    Ok(body.with_connection(K::connection(api, id)))
}

/// Removes a destination with its backlog.
pub(super) async fn removed<K: DestinationKind>(
    api: web::Data<Api>,
    caller: AuthenticatedCaller,
    id: DestinationId,
) -> Result<(), ApiError> {
    owned::<K>(&api, &caller, id).await?;
    api.deliveries.remove(id).await.map_err(unserved::<K>)?;
    Ok(api.devices.take_policy(caller.customer).await?)
}

/// The forwarder of the destination did not respond.
pub(super) fn unserved<K: DestinationKind>(unserved: Unserved) -> ApiError {
    match unserved {
        Unserved::Unknown => ApiError::unknown(K::NAME),
        Unserved::Busy => ApiError::busy(),
        Unserved::Failed => ApiError::internal("the forwarder of the destination failed"),
    }
}

/// A page of a short list.
fn page_of<T>(all: Vec<T>, wanted: PageRequest) -> Page<T> {
    let total = all.len() as u64;
    let size = usize::try_from(wanted.size).unwrap_or(usize::MAX);
    let pages_before = usize::try_from(wanted.number).unwrap_or(usize::MAX) - 1;
    let items = all.into_iter().skip(pages_before.saturating_mul(size));
    Page {
        items: items.take(size).collect(),
        total,
    }
}
