//! Which handlers list the nodes of the service and drain one?

pub(super) mod described;

use actix_web::{HttpResponse, web};
use serde::Serialize;
use tracing::info;

use engine::ids::NodeId;
use engine::node::KnownNode;
use store::{DrainOutcome, Nodes};

use super::error::ApiError;
use super::page::PageBody;
use super::segment::PathSegment;
use super::words::Word;

/// A node.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NodeBody {
    id: String,
    name: String,
    state: &'static str,
    shards: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_ends_at: Option<String>,
    version: String,
    addresses: Vec<String>,
    started_at: String,
    heartbeat_at: String,
}

/// GET: lists the nodes, the one that started first first.
pub(super) async fn list(nodes: web::Data<dyn Nodes>) -> Result<HttpResponse, ApiError> {
    let nodes = nodes.nodes().await?;
    let items = nodes.into_iter().map(NodeBody::of).collect();
    Ok(HttpResponse::Ok().json(PageBody::whole(items)))
}

/// POST: has a node give up its shards.
pub(super) async fn drain(
    PathSegment(node): PathSegment<NodeId>,
    nodes: web::Data<dyn Nodes>,
) -> Result<HttpResponse, ApiError> {
    match nodes.drain(node).await? {
        DrainOutcome::Begun => {
            info!(%node, "a node is drained");
            Ok(HttpResponse::Accepted().finish())
        }
        DrainOutcome::Unknown => Err(ApiError::unknown("node")),
        DrainOutcome::OnlyNode => Err(ApiError::only_node()),
    }
}

impl NodeBody {
    pub(super) fn of(node: KnownNode) -> Self {
        Self {
            id: node.id.to_string(),
            state: node.state().word(),
            shards: node.shards(),
            name: node.name,
            lease_ends_at: node.lease_ends_at.map(|at| at.iso().to_string()),
            version: node.version,
            addresses: node.addresses,
            started_at: node.started_at.iso().to_string(),
            heartbeat_at: node.heartbeat_at.iso().to_string(),
        }
    }
}
