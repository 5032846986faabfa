//! How does the node that takes over get the sessions over DTLS of the one that stopped? It asks
//! for their files, which are sealed for its epoch, before it receives anything.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::{Error, Method};
use tracing::{info, warn};

use super::client_of;
use super::identity::NodeIdentity;
use crate::kept_sessions::HandedOver;

/// Where a node that has stopped hands over the sessions of an arbiter, by a POST with its number,
/// and is told by a DELETE that no more of them are taken.
pub const SESSIONS: &str = "/v1/sessions";

/// Where it shows with what sessions are resumed by their ids.
pub const CACHED_SESSIONS: &str = "/v1/cached-sessions";

/// How long the start of a node waits for a file: two hundred bytes for each session.
const FILE_MAX: Duration = Duration::from_secs(5);

/// Takes the sessions of a node that has stopped, for so many arbiters. What cannot be had is left
/// out: its devices resume their sessions, or make a handshake.
pub async fn take(identity: &NodeIdentity, from: SocketAddr, arbiters: usize) -> HandedOver {
    let mut taken = HandedOver::default();
    match take_into(&mut taken, identity, from, arbiters).await {
        Ok(()) => info!(%from, "the DTLS sessions of the former active node were handed over"),
        Err(error) => warn!(%from, ?error, "not all DTLS sessions were handed over"),
    }
    taken
}

async fn take_into(
    taken: &mut HandedOver,
    identity: &NodeIdentity,
    from: SocketAddr,
    arbiters: usize,
) -> Result<(), Error> {
    let client = client_of(identity)?;
    let file = async |method: Method, path: &str| {
        let request = client.request(method, format!("https://{from}{path}"));
        let response = request.timeout(FILE_MAX).send().await?;
        response.error_for_status()?.bytes().await
    };
    for arbiter in 0..arbiters {
        let path = format!("{SESSIONS}/{arbiter}");
        taken
            .by_arbiter
            .push(file(Method::POST, &path).await?.into());
    }
    taken.cached = file(Method::GET, CACHED_SESSIONS).await?.into();
    file(Method::DELETE, SESSIONS).await.map(drop)
}
