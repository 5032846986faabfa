//! How do the nodes reach the database? Each by links of its own, one to each server, which can be
//! cut or slowed.
//!
//! A cut link loses no octet and ends no connection: like a network that is partitioned, it
//! delivers nothing until it is mended.

use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::{LocalSet, spawn_local};

use super::machine::{MACHINES, Machine};
use super::pause;

/// What a slow link adds in each direction: to a server on another continent.
const DELAY: Duration = Duration::from_millis(100);

/// The most that is passed at once.
const CHUNK_BYTES: usize = 64 * 1_024;

/// The port of a server.
const PORT: u16 = 5_432;

/// What the links of a node do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LinkState {
    /// They deliver at once.
    Open,
    /// They deliver nothing.
    Cut,
    /// They deliver late.
    Slow,
}

/// The links of all nodes.
pub(crate) struct Links(Vec<watch::Sender<LinkState>>);

impl Links {
    /// Starts the links, which end with the process.
    pub(crate) fn start() -> Self {
        let (states, followed): (Vec<_>, Vec<_>) = (0..MACHINES)
            .map(|_| watch::channel(LinkState::Open))
            .unzip();
        let (bound, is_bound) = mpsc::sync_channel(1);
        std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime can be had");
            LocalSet::new().block_on(&runtime, async {
                for (node, state) in (1..).zip(followed) {
                    for server in 1..=MACHINES {
                        let address = IpAddr::V4(Machine::link(node, server));
                        let listener = TcpListener::bind((address, PORT)).await;
                        let listener = listener.expect("the address of a link is free");
                        let server = SocketAddr::new(Machine::database(server).into(), PORT);
                        spawn_local(serve(listener, server, state.clone()));
                    }
                }
                bound.send(()).expect("the bench waits");
                std::future::pending::<()>().await;
            });
        });
        is_bound.recv().expect("the links start");
        Self(states)
    }

    /// Changes the links of a node.
    pub(crate) fn set(&self, node: usize, state: LinkState) {
        self.0[node].send_replace(state);
    }

    /// Changes the links of all nodes.
    pub(crate) fn set_all(&self, state: LinkState) {
        for node in 0..self.0.len() {
            self.set(node, state);
        }
    }
}

async fn serve(listener: TcpListener, server: SocketAddr, state: watch::Receiver<LinkState>) {
    loop {
        let (node, _) = listener.accept().await.expect("the link listens");
        spawn_local(pass(node, server, state.clone()));
    }
}

/// Passes a connection until either side ends it.
async fn pass(node: TcpStream, server: SocketAddr, mut state: watch::Receiver<LinkState>) {
    deliverable(&mut state).await;
    // A server that is down refuses it, and the node gets the end of its connection.
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    // It fails for a connection that has ended, which the copy then finds.
    let _ = (node.set_nodelay(true), server.set_nodelay(true));
    let ((from_node, to_node), (from_server, to_server)) = (node.into_split(), server.into_split());
    tokio::select! {
        () = copy(from_node, to_server, state.clone()) => {}
        () = copy(from_server, to_node, state.clone()) => {}
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut state: watch::Receiver<LinkState>,
) {
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(length @ 1..) = from.read(&mut chunk).await {
        if deliverable(&mut state).await == LinkState::Slow {
            pause(DELAY).await;
        }
        if to.write_all(&chunk[..length]).await.is_err() {
            return;
        }
    }
    // The end of a connection is not delivered either.
    deliverable(&mut state).await;
}

/// Returns once the link delivers.
async fn deliverable(state: &mut watch::Receiver<LinkState>) -> LinkState {
    let delivers = state.wait_for(|state| *state != LinkState::Cut).await;
    // Once the bench has ended nothing is awaited any more.
    delivers.map_or(LinkState::Open, |state| *state)
}
