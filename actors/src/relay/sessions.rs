//! How does the node that takes a partition get the sessions over DTLS of the one that had it? It
//! asks the others for their file, which is sealed for its epoch, before its arbiter begins.

use std::net::SocketAddr;
use std::time::Duration;

use engine::ids::Partition;
use reqwest::{Client, Error, Method};
use tracing::{debug, info};

use super::client_of;
use super::identity::NodeIdentity;
use crate::kept_sessions::HandedOver;

/// Where a node hands over the sessions of an arbiter, by a POST with its number.
pub const SESSIONS: &str = "/v1/sessions";

/// Where it shows with what sessions are resumed by their ids.
pub const CACHED_SESSIONS: &str = "/v1/cached-sessions";

/// How long a node that takes a partition waits for a file: two hundred bytes for each session.
const FILE_MAX: Duration = Duration::from_secs(2);

/// Asks other nodes for the sessions of their devices.
#[derive(Clone)]
pub struct SessionTaker(Client);

impl SessionTaker {
    /// Asks with this identity.
    pub fn new(identity: &NodeIdentity) -> Result<Self, Error> {
        client_of(identity).map(Self)
    }

    /// Takes the sessions of a partition from whichever of these nodes have kept some, and with
    /// what sessions are resumed by their ids from the first that answers, if that is wanted. What
    /// cannot be had is left out: its devices resume their sessions, or make a handshake.
    pub async fn take(
        &self,
        partition: Partition,
        from: &[SocketAddr],
        with_cached: bool,
    ) -> HandedOver {
        let mut taken = HandedOver::default();
        for node in from {
            let path = format!("{SESSIONS}/{}", partition.0);
            match self.file(Method::POST, *node, &path).await {
                Ok(file) if !file.is_empty() => {
                    info!(partition = partition.0, %node, "DTLS sessions were handed over");
                    taken.sessions.push(file);
                }
                Ok(_) => {}
                Err(error) => debug!(%error, %node, "a node hands over no DTLS sessions"),
            }
            if with_cached && taken.cached.is_empty() {
                let cached = self.file(Method::GET, *node, CACHED_SESSIONS).await;
                taken.cached = cached.unwrap_or_default();
            }
        }
        taken
    }

    async fn file(&self, method: Method, node: SocketAddr, path: &str) -> Result<Vec<u8>, Error> {
        let request = self.0.request(method, format!("https://{node}{path}"));
        let response = request.timeout(FILE_MAX).send().await?;
        Ok(response.error_for_status()?.bytes().await?.into())
    }
}
