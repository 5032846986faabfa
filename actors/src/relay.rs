//! How do nodes reach each other?
//!
//! Each has an HTTPS server for the others, who prove that they have the secret (`identity.rs`). A
//! node that stands by passes on each call to the active one as a request. Each thread that serves
//! devices has a request of its own at every other node, in whose body it sends datagrams, and what
//! is for the arbiters there, and in whose response it receives what is to leave through its
//! sockets. All are bounded: datagrams for which there is no room are lost, as they may be in the
//! network, and a body is read as it is taken. A node hands over the sessions of the devices that
//! it has no longer.

pub mod calls;
pub mod deliveries;
pub mod devices;
pub(crate) mod frame;
pub mod identity;
pub mod links;
pub mod news;
pub mod receiving;
pub mod sessions;

use std::collections::BTreeMap;
use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use engine::ids::NodeId;
use reqwest::Client;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::http::client_builder;

use identity::NodeIdentity;

/// Where the active node is reached, as far as it is known.
pub type ActiveNode = watch::Receiver<Option<SocketAddr>>;

/// How long it may take to connect to a node.
const CONNECT_FOR: Duration = Duration::from_secs(2);

/// Calls nodes that have the same secret. All requests run on the arbiter of the first one, which
/// owns the connections.
pub(crate) fn client_of(identity: &NodeIdentity) -> Result<Client, reqwest::Error> {
    client_builder(identity.client_config())
        .connect_timeout(CONNECT_FOR)
        .build()
}

/// Where a node receives for its arbiters; behind it the node that sends, and its thread.
pub const DATAGRAMS: &str = "/v1/datagrams";

/// Where the active node says that it answers calls: one that has just become active does not yet.
pub const ACTIVE: &str = "/active";

/// How long it may take to say so.
const PROBE_MAX: Duration = Duration::from_secs(1);

/// Asks whether a node answers calls.
pub struct ActiveProbe(Client);

impl ActiveProbe {
    /// Asks with this identity.
    pub fn new(identity: &NodeIdentity) -> Result<Self, reqwest::Error> {
        client_of(identity).map(Self)
    }

    /// Whether the node at this address does.
    pub async fn answers_calls(&self, address: SocketAddr) -> bool {
        let asked = self.0.get(format!("https://{address}{ACTIVE}"));
        let answered = asked.timeout(PROBE_MAX).send().await;
        answered.is_ok_and(|response| response.status().is_success())
    }
}

/// A task for each other node, until this is dropped.
#[derive(Default)]
struct NodeTasks(BTreeMap<(NodeId, SocketAddr), JoinHandle<()>>);

impl NodeTasks {
    /// Spawns tasks for nodes that are new or have moved, and ends those of all others.
    fn follow(
        &mut self,
        known: &BTreeMap<NodeId, SocketAddr>,
        spawn: impl Fn(NodeId, SocketAddr) -> JoinHandle<()>,
    ) {
        self.0.retain(|(node, address), task| {
            let is_known = known.get(node) == Some(address);
            if !is_known {
                task.abort();
            }
            is_known
        });
        for (node, address) in known {
            let task = self.0.entry((*node, *address));
            task.or_insert_with(|| spawn(*node, *address));
        }
    }
}

impl Drop for NodeTasks {
    fn drop(&mut self) {
        self.0.values().for_each(JoinHandle::abort);
    }
}

/// When another node is away for so long that the operator is told, once: one that starts or ends
/// is away for a moment.
#[derive(Default)]
struct Patience(Option<Instant>);

impl Patience {
    const LENGTH: Duration = Duration::from_secs(5);

    /// Whether it is over now, and was not before.
    fn is_over(&mut self) -> bool {
        let over_at = *self.0.get_or_insert_with(|| Instant::now() + Self::LENGTH);
        let is_over = Instant::now() >= over_at;
        if is_over {
            // Far enough not to come.
            self.0 = Some(Instant::now() + Duration::from_secs(u32::MAX.into()));
        }
        is_over
    }
}

/// An error with its causes.
fn reasons(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
