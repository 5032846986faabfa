//! What does a whole device cost: its actor, its mailbox, its machine and its entry in each map?

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::Actor as _;
use actix_rt::time;
use actors::arbiters::Arbiters;
use actors::clock::Clock;
use actors::image_files::ImageFiles;
use actors::logging::Logging;
use actors::policy::PolicyCache;
use actors::registry::context::ArbiterParts;
use actors::socket::{self, Open};
use engine::arbiter::ArbiterLimits;
use engine::associations::server_key::ServerKey;
use engine::associations::{AssociationLimits, AssociationSecrets};
use store::sealed::MasterKey;

use crate::made::SyntheticStore;
use crate::{kept, resident, show};

/// The fleet is restored when the process did not grow for this long.
const STILL_FOR: Duration = Duration::from_secs(2);

/// The polling interval.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Measures and prints.
pub(crate) async fn run(devices: u32) {
    let clock = Clock::new();
    let made = Arc::new(SyntheticStore::new(devices, clock.now()));
    let logging = Logging::new(clock.clone(), made.clone(), made.clone()).start();
    let parts = ArbiterParts {
        clock,
        commits: made.clone(),
        store: made.clone(),
        policies: PolicyCache::of(&Arc::new(kept::rules()), &[]),
        epoch: 1,
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
    let (coap, coaps, udp) = (open(), open(), open());
    let before = resident();
    let arbiters = Arbiters::start(parts, vec![Open { coap, coaps, udp }], &logging).await;
    settle(&made).await;
    show("actor, restored", before, devices);
    arbiters.stop(&*made).await;
}

/// Waits until all devices are restored and the process stops growing.
async fn settle(made: &SyntheticStore) {
    let mut looks = time::interval(LOOK_EVERY);
    let (mut most, mut since) = (0, Instant::now());
    while !made.all_read() || since.elapsed() < STILL_FOR {
        looks.tick().await;
        let now = resident();
        if now > most {
            (most, since) = (now, Instant::now());
        }
    }
}
