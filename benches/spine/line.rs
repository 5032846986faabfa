//! What serves the devices? One arbiter with the real registry, its devices and its socket.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, mpsc};

use actix::{Actor as _, Addr};
use actix_rt::Arbiter;
use actors::arbiters::Arbiters;
use actors::devices::Devices;
use actors::image_files::ImageFiles;
use actors::logging::Logging;
use actors::policy::PolicyCache;
use actors::registry::context::ArbiterParts;
use actors::socket::{self, Open};
use engine::arbiter::ArbiterLimits;
use engine::associations::server_key::ServerKey;
use engine::associations::{AssociationLimits, AssociationSecrets};
use engine::limits::Limits;
use engine::rules::{EndpointTrust, Rules, TransmissionRules};
use store::Commit;
use store::sealed::MasterKey;

use crate::shelf::TempStore;
use crate::thread::Thread;

/// SCHEDULED requests per device: as many as the setting allows, so that none is refused.
const SCHEDULED_MAX: u32 = 10_000;

/// The service without its HTTP API.
pub(crate) struct ApiLessService {
    /// The address for CoAP devices.
    pub(crate) coap: SocketAddr,
    /// Sends calls to the actors of devices.
    pub(crate) devices: Devices,
    /// The actor that writes the log.
    pub(crate) logging: Addr<Logging>,
    /// The arbiter's thread.
    pub(crate) thread: Thread,
    arbiters: Arbiters,
    commits: Arc<dyn Commit>,
}

impl ApiLessService {
    /// Starts an arbiter with the devices of a store and this commit.
    pub(crate) async fn start(shelf: &TempStore, commits: Arc<dyn Commit>) -> Self {
        let (clock, store) = (shelf.clock.clone(), shelf.store.clone());
        let logging = Logging::new(clock, Arc::clone(&commits), store).start();
        let parts = ArbiterParts {
            clock: shelf.clock.clone(),
            commits,
            store: shelf.store.clone(),
            policies: PolicyCache::of(&Arc::new(rules()), &[]),
            epoch: shelf.epoch,
            limits: ArbiterLimits::default(),
            association_limits: AssociationLimits::default(),
            secrets: AssociationSecrets {
                cookies: [1; 32],
                tickets: [2; 32],
                server_key: ServerKey::from_scalar(&[3; 32]).expect("a key"),
            },
            kept_sessions: None,
            master_key: Arc::new(MasterKey::from_bytes(&[3; 32])),
            images: ImageFiles::at(""),
        };
        let open = || socket::open((Ipv4Addr::LOCALHOST, 0).into()).expect("a port is free");
        let (plain, coaps, udp) = (open(), open(), open());
        let coap = plain.local_addr().expect("a bound socket has an address");
        let open = Open {
            coap: plain,
            coaps,
            udp,
        };
        let arbiters = Arbiters::start(parts.clone(), vec![open], &logging).await;
        let thread = arbiters.handles().map(thread_of).next();
        Self {
            coap,
            devices: arbiters.devices(&parts),
            logging,
            thread: thread.expect("one was started"),
            arbiters,
            commits: parts.commits,
        }
    }

    /// Stops the arbiter with its devices.
    pub(crate) async fn stop(self) {
        self.arbiters.stop(&*self.commits).await;
    }
}

/// The rules for every device: the defaults, with room for many requests.
pub(crate) fn rules() -> Rules {
    let limits = Limits {
        scheduled_max: SCHEDULED_MAX,
        ..Limits::default()
    };
    let patience = TransmissionRules {
        ack_timeout_ms: 2_000,
        max_retransmit: 4,
        response_timeout_ms: 93_000,
    };
    Rules::new(limits, patience, EndpointTrust::AddressRequired)
}

fn thread_of(arbiter: &Arbiter) -> Thread {
    let (sender, thread) = mpsc::channel();
    arbiter.spawn_fn(move || sender.send(Thread::current()).expect("who asked waits"));
    thread.recv().expect("the arbiter runs")
}
