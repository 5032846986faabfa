//! Which handlers manage MQTT brokers?

pub(super) mod described;
mod request_body;
mod response_body;

use actix_web::{HttpResponse, web};

use engine::customer::Scope;
use engine::delivery::destination::{BrokerCommands, Destination};
use engine::directory::destination::{SealedField, admit_integration, draft_broker};
use engine::ids::DestinationId;

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::Json;
use super::destinations::{self, ConnectionBody, DestinationKind, DestinationSegment};
use super::error::ApiError;
use super::idempotency::IdempotencyKeyHeader;
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

    fn connection(api: &Api, id: DestinationId) -> Option<ConnectionBody> {
        Some(ConnectionBody::of(api.deliveries.connection(id)))
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
    destinations::create::<Brokers>(&api, caller, identity, move |it| {
        admit_integration(it.customer, it.others)?;
        Ok(draft_broker(it.moment, it.customer_id, new, it.seal))
    })
    .await
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
    let of = caller.clone();
    destinations::amend::<Brokers>(api, caller, id, move |was| {
        let amended = amendments.apply(was);
        // Whoever changes where commands come from decides on them, too.
        expect_scope(&of, amended.target.broker().map(|it| it.commands))?;
        Ok(amended)
    })
    .await
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
