//! How do devices and callers find the active node? By a balancer that asks every node whether it
//! is ready, and has one address for all of them.
//!
//! A datagram reaches the node from the address of its device, by a socket that the device has for
//! itself, and the answer comes from the balancer's address. A connection waits until a node is
//! active, and ends when another node becomes the active one.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
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

/// The largest datagram of a device or a node.
const DATAGRAM_BYTES: usize = 1_536;

/// The addresses of a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NodeAddresses {
    pub(crate) coap: SocketAddr,
    pub(crate) http: SocketAddr,
}

/// Which node is active, if one is.
type Active = Option<NodeAddresses>;

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
            let (becomes, active) = watch::channel(None);
            let becomes = Rc::new(becomes);
            for node in nodes {
                spawn_local(look_at(node, Rc::clone(&becomes)));
            }
            spawn_local(pass_datagrams(Rc::new(socket), active.clone(), noted));
            loop {
                let (caller, _) = listener.accept().await.expect("the balancer listens");
                spawn_local(pass_connection(caller, active.clone()));
            }
        });
    });
    is_bound.recv().expect("the balancer starts");
    attempts
}

/// Makes a node the active one while it is ready.
async fn look_at(node: NodeAddresses, becomes: Rc<watch::Sender<Active>>) {
    let base = format!("http://{}", node.http);
    let api = RestClient::new(&base, ClientCredentials::None).expect("HTTP can be set up");
    let mut looks = interval(LOOK);
    loop {
        looks.tick().await;
        let answer = timeout(PATIENCE, api.read("/readyz")).await;
        let is_ready = answer.is_ok_and(|answer| answer.is_ok());
        becomes.send_if_modified(|active| {
            let before = *active;
            match is_ready {
                true => *active = Some(node),
                false if before == Some(node) => *active = None,
                false => {}
            }
            *active != before
        });
    }
}

/// A device, and the socket by which it reaches the nodes.
struct DevicePath {
    upstream: UdpSocket,
    device: Cell<SocketAddr>,
}

async fn pass_datagrams(
    socket: Rc<UdpSocket>,
    active: watch::Receiver<Active>,
    attempts: Attempts,
) {
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
        let node = *active.borrow();
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

async fn pass_connection(mut caller: TcpStream, mut active: watch::Receiver<Active>) {
    let mut tries = interval(LOOK);
    let (node, mut stream) = loop {
        tries.tick().await;
        let Ok(found) = active.wait_for(Option::is_some).await.map(|it| *it) else {
            return;
        };
        let node = found.expect("it was waited for");
        // Without a connection it has just ended.
        if let Ok(stream) = TcpStream::connect(node.http).await {
            break (node, stream);
        }
    };
    let another = async {
        let is_another = |active: &Active| active.is_some_and(|it| it != node);
        // The sender is never dropped.
        let _ = active.wait_for(is_another).await;
    };
    // It fails for a connection that has ended, which the copy then finds.
    let _ = (caller.set_nodelay(true), stream.set_nodelay(true));
    // The end of either connection is that of the other.
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut caller, &mut stream) => {}
        () = another => {}
    }
}
