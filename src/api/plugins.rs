//! Which handlers install, list and restart the plugins of partners?

pub(super) mod described;
mod request_body;
mod response_body;

use actix_web::{HttpResponse, web};

use engine::delivery::destination::Destination;
use engine::delivery::partner::Partner;
use engine::directory::destination::{admit_plugin, draft_plugin};

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::{Json, Query};
use super::destinations::{
    self, DestinationKind, DestinationSegment, listed, owned, shown, unserved,
};
use super::error::ApiError;
use super::idempotency::IdempotencyKeyHeader;
use super::segment::PathSegment;

pub(super) use response_body::{PluginBody, RestartedPluginBody};

/// Plugins as a kind of destination.
pub(super) struct Plugins;

impl DestinationKind for Plugins {
    const NAME: &'static str = "plugin";
    const PATH: &'static str = "/management-api/v1/partners/plugins";

    type Body = PluginBody;

    fn body(destination: &Destination) -> Option<PluginBody> {
        let plugin = destination.target.plugin()?;
        Some(PluginBody::of(destination, plugin))
    }
}

/// POST: installs the plugin of a partner.
pub(super) async fn install(
    caller: AuthenticatedCaller,
    PathSegment(partner): PathSegment<&'static Partner>,
    named: IdempotencyKeyHeader,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let identity = named.read(&["plugin", partner.id], &mut fields);
    let new = request_body::new_plugin(fields, partner, api.policy)?;
    destinations::create::<Plugins>(&api, caller, identity, move |it| {
        admit_plugin(it.customer, it.others, partner)?;
        Ok(draft_plugin(it.moment, it.customer_id, new, it.seal))
    })
    .await
}

/// GET: lists the plugins of a partner that the caller has.
pub(super) async fn list_of_partner(
    caller: AuthenticatedCaller,
    PathSegment(partner): PathSegment<&'static Partner>,
    Query(fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let is_of_partner = |it: &Destination| {
        let plugin = it.target.plugin();
        plugin.is_some_and(|plugin| *plugin.partner == *partner.id)
    };
    listed::<Plugins>(&api, caller, fields, is_of_partner).await
}

/// POST: restarts a failed plugin.
pub(super) async fn restart(
    caller: AuthenticatedCaller,
    PathSegment(DestinationSegment { id, .. }): PathSegment<DestinationSegment<Plugins>>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let before = owned::<Plugins>(&api, &caller, id).await?;
    let restarted = api.deliveries.restart(id).await;
    let restarted = restarted.map_err(unserved::<Plugins>)?;
    let plugin = shown::<Plugins>(&restarted)?;
    Ok(HttpResponse::Ok().json(RestartedPluginBody::of(plugin, before.state)))
}
