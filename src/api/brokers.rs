//! Which handlers manage MQTT brokers?

pub(super) mod described;
mod request_body;
mod response_body;

use actix_web::{HttpResponse, web};

use engine::customer::Scope;
use engine::delivery::destination::{BrokerCommands, Destination, DestinationAmendment};
use engine::directory::destination::{
    BrokerAmendments, SealedField, admit_integration, draft_broker,
};
use engine::ids::DestinationId;

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::{Json, Query};
use super::destinations::{
    DestinationKind, DestinationSegment, listed, made, owned, shown, unserved,
};
use super::error::ApiError;
use super::idempotency::{self, IdempotencyKeyHeader};
use super::records::to_its_end;
use super::segment::PathSegment;
use super::words::Word as _;

pub(super) use response_body::BrokerBody;

/// MQTT brokers as a kind of destination.
pub(super) struct Brokers;

impl DestinationKind for Brokers {
    const NAME: &'static str = "broker";
    const PATH: &'static str = "/management-api/v1/integrate/clouds/mqtt";

    type Body = BrokerBody;

    fn body(destination: &Destination) -> Option<BrokerBody> {
        let broker = destination.target.broker()?;
        Some(BrokerBody::of(destination, broker))
    }
}

/// POST: creates a broker.
pub(super) async fn create(
    caller: AuthenticatedCaller,
    named: IdempotencyKeyHeader,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let identity = named.read(&["broker"], &mut fields);
    let new = request_body::new_broker(fields, api.policy)?;
    expect_scope(&caller, Some(new.commands))?;
    let (made_by, of) = (api.clone(), caller.clone());
    let act = move |keeper| {
        let (sealing, customer) = (made_by.clone(), of.customer.clone());
        to_its_end(made::<Brokers>(
            made_by,
            of,
            keeper,
            move |m, known, others| {
                admit_integration(known, others)?;
                let seal =
                    |id, field: SealedField<'_>, text: &str| sealing.seal_for(id, field, text);
                Ok(draft_broker(m, &customer, new, seal))
            },
        ))
    };
    idempotency::create(&api, Some(&caller), identity, act).await
}

/// GET: lists the brokers of the caller, oldest first.
pub(super) async fn list(
    caller: AuthenticatedCaller,
    Query(fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    listed::<Brokers>(&api, caller, fields, |_| true).await
}

/// PATCH: updates a broker.
pub(super) async fn amend(
    caller: AuthenticatedCaller,
    PathSegment(DestinationSegment { id, .. }): PathSegment<DestinationSegment<Brokers>>,
    Json(fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let seal = |field: SealedField<'_>, text: &str| api.seal_for(id, field, text);
    let amendments = request_body::amendments(fields, api.policy, seal)?;
    let before = owned::<Brokers>(&api, &caller, id).await?;
    // Whoever changes where commands come from decides on them, too.
    let commands = amendments.commands;
    expect_scope(
        &caller,
        commands.or(before.target.broker().map(|it| it.commands)),
    )?;
    let amended = to_its_end(amended(api.clone(), caller, id, amendments)).await?;
    Ok(HttpResponse::Ok().json(shown::<Brokers>(&amended)?))
}

/// Refuses commands of a caller that may not create action requests itself.
fn expect_scope(
    caller: &AuthenticatedCaller,
    commands: Option<BrokerCommands>,
) -> Result<(), ApiError> {
    const SCOPE: Scope = Scope::ActionsWrite;
    match commands {
        Some(BrokerCommands::On) if !caller.scopes.has(SCOPE) => {
            Err(ApiError::scope_missing(SCOPE.word()))
        }
        Some(BrokerCommands::On | BrokerCommands::Off) | None => Ok(()),
    }
}

async fn amended(
    api: web::Data<Api>,
    caller: AuthenticatedCaller,
    id: DestinationId,
    amendments: BrokerAmendments,
) -> Result<Destination, ApiError> {
    // One at a time, so that concurrent updates do not overwrite each other.
    let _turn = api.changing_destinations.lock().await;
    let amended = amendments.apply(owned::<Brokers>(&api, &caller, id).await?);
    let amended = DestinationAmendment {
        name: Some(amended.name),
        target: Some(amended.target),
        event_types: Some(amended.event_types),
    };
    let amended = api.deliveries.amend(id, amended).await;
    let amended = amended.map_err(unserved::<Brokers>)?;
    api.devices.take_policy(caller.customer).await?;
    Ok(amended)
}
