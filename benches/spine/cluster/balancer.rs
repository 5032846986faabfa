//! How do devices and callers find a node? By a balancer that asks every node whether it is ready,
//! and has one address for all of them. It spreads devices and connections over those that are, by
//! a hash of the address, and knows nothing of which one is active.
//!
//! A datagram reaches the node from the address of its device, by a socket that the device has for
//! itself, and the answer comes from the balancer's address. A connection waits until a node is
//! ready, and ends when that node has not been ready for a while, in which it answers what it has
//! accepted.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use signalbox::rest_client::{ClientCredentials, RestClient};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{interval, timeout};

/// Where devices and callers reach the cluster.
pub(crate) const COAP: SocketAddr = SocketAddr::new(ADDRESS, 5_683);
pub(crate) const HTTP: SocketAddr = SocketAddr::new(ADDRESS, 8_080);

const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 40, 3, 1));

/// The interval at which a node is asked, and how long it has to answer.
const LOOK: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a node may be not ready until its connections are ended.
const UNREADY_MAX: Duration = Duration::from_secs(5);

/// The largest datagram of a device or a node.
const DATAGRAM_BYTES: usize = 1_536;

/// The addresses of a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NodeAddresses {
    pub(crate) coap: SocketAddr,
    pub(crate) http: SocketAddr,
}

/// The nodes that are ready.
type Ready = Vec<NodeAddresses>;

/// The node for an address, if one is ready.
fn node_for(address: SocketAddr, ready: &Ready) -> Option<NodeAddresses> {
    let mut hasher = DefaultHasher::new();
    address.hash(&mut hasher);
    let nodes = u64::try_from(ready.len()).expect("they are few");
    let chosen = hasher.finish().checked_rem(nodes)?;
    ready.get(usize::try_from(chosen).ok()?).copied()
}

/// The requests that have reached each device; a retransmission is the same datagram again.
#[derive(Clone, Default)]
pub(crate) struct Attempts(Arc<Mutex<RequestsByDevice>>);

type RequestsByDevice = HashMap<IpAddr, HashSet<Box<[u8]>>>;

impl Attempts {
    /// How many requests have reached the device with this address.
    pub(crate) fn of(&self, device: IpAddr) -> u64 {
        let all = self.0.lock().expect("nobody panics with it");
        all.get(&device).map_or(0, |it| it.len() as u64)
    }

    fn note(&self, device: IpAddr, datagram: &[u8]) {
        // The second byte of a message is its code: GET (RFC 7252 section 12.1.1).
        if datagram.get(1) == Some(&1) {
            let mut all = self.0.lock().expect("nobody panics with it");
            all.entry(device).or_default().insert(datagram.into());
        }
    }
}

/// Starts the balancer, which ends with the process.
pub(crate) fn start(nodes: Vec<NodeAddresses>) -> Attempts {
    let (bound, is_bound) = mpsc::sync_channel(1);
    let attempts = Attempts::default();
    let noted = attempts.clone();
    std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime can be had");
        LocalSet::new().block_on(&runtime, async {
            let socket = UdpSocket::bind(COAP).await;
            let socket = socket.expect("the address for devices is free");
            let listener = TcpListener::bind(HTTP).await;
            let listener = listener.expect("the address for callers is free");
            bound.send(()).expect("the bench waits");
            let (becomes, ready) = watch::channel(Ready::new());
            let becomes = Rc::new(becomes);
            for node in nodes {
                spawn_local(look_at(node, Rc::clone(&becomes)));
            }
            spawn_local(pass_datagrams(Rc::new(socket), ready.clone(), noted));
            loop {
                let (caller, from) = listener.accept().await.expect("the balancer listens");
                spawn_local(pass_connection(caller, from, ready.clone()));
            }
        });
    });
    is_bound.recv().expect("the balancer starts");
    attempts
}

/// Lists a node while it is ready.
async fn look_at(node: NodeAddresses, becomes: Rc<watch::Sender<Ready>>) {
    let base = format!("http://{}", node.http);
    let api = RestClient::new(&base, ClientCredentials::None).expect("HTTP can be set up");
    let mut looks = interval(LOOK);
    loop {
        looks.tick().await;
        let answer = timeout(PATIENCE, api.read("/readyz")).await;
        let is_ready = answer.is_ok_and(|answer| answer.is_ok());
        becomes.send_if_modified(|ready| {
            let was_ready = ready.contains(&node);
            ready.retain(|it| *it != node || is_ready);
            if is_ready && !was_ready {
                ready.push(node);
            }
            was_ready != is_ready
        });
    }
}

/// A device, and the socket by which it reaches the nodes.
struct DevicePath {
    upstream: UdpSocket,
    device: Cell<SocketAddr>,
}

async fn pass_datagrams(socket: Rc<UdpSocket>, ready: watch::Receiver<Ready>, attempts: Attempts) {
    let mut paths: HashMap<IpAddr, Rc<DevicePath>> = HashMap::new();
    let mut buffer = [0; DATAGRAM_BYTES];
    loop {
        let (length, device) = socket.recv_from(&mut buffer).await.expect("a datagram");
        let path = match paths.get(&device.ip()) {
            Some(path) => Rc::clone(path),
            None => {
                let upstream = UdpSocket::bind((device.ip(), 0)).await;
                let path = Rc::new(DevicePath {
                    upstream: upstream.expect("the address of a device is local"),
                    device: Cell::new(device),
                });
                paths.insert(device.ip(), Rc::clone(&path));
                spawn_local(pass_answers(
                    Rc::clone(&path),
                    Rc::clone(&socket),
                    attempts.clone(),
                ));
                path
            }
        };
        path.device.set(device);
        let node = node_for(device, &ready.borrow());
        if let Some(node) = node {
            // The port of a node that has just ended is unreachable: the datagram is lost.
            let _ = path.upstream.send_to(&buffer[..length], node.coap).await;
        }
    }
}

async fn pass_answers(path: Rc<DevicePath>, socket: Rc<UdpSocket>, attempts: Attempts) {
    let mut buffer = [0; DATAGRAM_BYTES];
    loop {
        // An error is the report of a datagram that could not be delivered.
        if let Ok((length, _)) = path.upstream.recv_from(&mut buffer).await {
            let device = path.device.get();
            attempts.note(device.ip(), &buffer[..length]);
            let sent = socket.send_to(&buffer[..length], device).await;
            sent.expect("a device is reached");
        }
    }
}

async fn pass_connection(
    mut caller: TcpStream,
    from: SocketAddr,
    mut ready: watch::Receiver<Ready>,
) {
    let mut tries = interval(LOOK);
    let (node, mut stream) = loop {
        tries.tick().await;
        let found = ready.wait_for(|ready| !ready.is_empty()).await;
        let Ok(Some(node)) = found.map(|ready| node_for(from, &ready)) else {
            return;
        };
        // Without a connection it has just ended.
        if let Ok(stream) = TcpStream::connect(node.http).await {
            break (node, stream);
        }
    };
    let gone = async {
        loop {
            // The sender is never dropped.
            let _ = ready.wait_for(|ready| !ready.contains(&node)).await;
            let again = ready.wait_for(|ready| ready.contains(&node));
            if timeout(UNREADY_MAX, again).await.is_err() {
                return;
            }
        }
    };
    // It fails for a connection that has ended, which the copy then finds.
    let _ = (caller.set_nodelay(true), stream.set_nodelay(true));
    // The end of either connection is that of the other.
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut caller, &mut stream) => {}
        () = gone => {}
    }
}
