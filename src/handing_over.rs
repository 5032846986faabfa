//! What does a node that has stopped leave to those that take over? The sessions of its devices
//! over DTLS, which are in files that only the next owners can open.

use std::time::Duration;

use actors::kept_sessions::KeptSessions;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::config::Config;
use crate::for_nodes::SessionRoutes;
use crate::listeners::{NodeListener, stopped};
use crate::node::JoinedNode;

/// How long it waits for the others: they look for leases every half second, and open their store
/// before they take the last file.
const HAND_OVER_MAX: Duration = Duration::from_secs(3);

/// How often it looks whether all files are taken.
const LOOK: Duration = Duration::from_millis(50);

/// Gives up all leases of a node that has stopped, and hands the sessions of its devices over to
/// the nodes that take them, if there are any. Then it leaves the others.
pub(crate) async fn leave(config: &Config, mut node: JoinedNode, kept: Option<KeptSessions>) {
    let transport = match node.has_successor().await {
        true => node.transport.clone(),
        false => None,
    };
    let kept = kept.filter(|kept| !kept.are_taken());
    let handing_over = transport.zip(kept).and_then(|(transport, kept)| {
        let routes = SessionRoutes(kept.clone()).routes();
        NodeListener::open(config, &transport)
            .and_then(|listener| listener.start(routes))
            .inspect_err(|error| warn!(%error, "the DTLS sessions cannot be handed over"))
            .ok()
            .map(|listener| (listener, kept))
    });
    node.keeper.release().await;
    info!("all leases are given up");
    if let Some((listener, kept)) = handing_over {
        taken(&kept).await;
        stopped(vec![listener]).await;
    }
    node.keeper.leave().await;
}

/// Returns once all sessions are taken, or if they were not for a while.
async fn taken(kept: &KeptSessions) {
    let until = Instant::now() + HAND_OVER_MAX;
    while !kept.are_taken() {
        if Instant::now() > until {
            return warn!("not all DTLS sessions were taken: devices resume theirs");
        }
        sleep(LOOK).await;
    }
    info!("the DTLS sessions are handed over");
}
