//! Who serves? The program an operator runs, on the directory of a shelf, with a customer that has
//! one destination.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use engine::change::{Batch, Change};
use engine::delivery::destination::{
    Destination, DestinationState, EventTypes, JsonPayload, Replay, Target, Webhook,
};
use engine::ids::DestinationId;

use crate::fleet;
use crate::shelf::Shelf;

/// Waits between tries: an endpoint that is away for half a minute is in no failure, and one that
/// comes back is soon found.
const RETRY_MS: &str = "2000,2000,2000,2000,2000,2000,2000,2000,2000,2000,2000,2000,2000,2000";

/// What of the store is kept in memory unless an operator says otherwise.
pub(crate) const CACHE_MIB: u32 = 256;

/// The least of it an operator may ask for.
pub(crate) const CACHE_MIB_MIN: u32 = 16;

/// A running service, which ends with its value.
pub(crate) struct Served {
    child: Child,
    /// Where devices reach it.
    pub(crate) coap: SocketAddr,
}

impl Served {
    /// Starts it with so much cache, and waits until it listens.
    pub(crate) fn start(data: &Path, cache_mib: u32) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_signalbox"));
        let names = std::env::vars_os().map(|(name, _)| name);
        for name in names.filter(|name| name.to_string_lossy().starts_with("SIGNALBOX_")) {
            command.env_remove(name);
        }
        command
            .arg("serve")
            .arg("--data-dir")
            .arg(data)
            .args(["--http", "127.0.0.1:0", "--coap", "127.0.0.1:0"])
            .args(["--udp", "127.0.0.1:0"])
            .args(["--store-cache-mib", &cache_mib.to_string()])
            .env("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true")
            .env("SIGNALBOX_DELIVERY_RETRY_MS", RETRY_MS)
            .env(
                "SIGNALBOX_OPERATOR_TOKEN",
                "bench-operator-token-of-this-bench",
            )
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program was built");
        let mut lines = BufReader::new(child.stdout.take().expect("it was piped")).lines();
        let coap = lines.find_map(|line| {
            let line = line.expect("it says where it listens");
            line.strip_prefix("listening coap=")?.trim().parse().ok()
        });
        std::thread::spawn(move || lines.for_each(drop));
        let coap = coap.expect("it says where it listens");
        Self { child, coap }
    }

    /// The memory it holds, in MiB.
    pub(crate) fn resident_mib(&self) -> f64 {
        let path = format!("/proc/{}/status", self.child.id());
        let text = fs::read_to_string(path).expect("it runs, on Linux");
        let kib = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = kib.and_then(|kib| kib.trim().strip_suffix(" kB"));
        let kib: f64 = kib.and_then(|kib| kib.parse().ok()).expect("a number");
        kib / 1_024.0
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // As by kill -9; it may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes the customer of the fleet, with a destination at this address.
pub(crate) fn destination(shelf: &Shelf, at: SocketAddr) -> Batch {
    let now = shelf.clock.now();
    let destination = Destination {
        id: DestinationId::from_bytes([7; 16]),
        customer: fleet::customer(),
        name: "bench".into(),
        target: Target::Webhook(Webhook {
            url: format!("http://{at}/hook").into(),
            headers: Box::default(),
            secret: None,
            json: JsonPayload::AsText,
        }),
        wants: EventTypes::usual(),
        state: DestinationState::RolledOut,
        replay: Replay::None,
        created_at: now,
        updated_at: now,
    };
    let mut batch = crate::creates::credentials(shelf);
    batch
        .changes
        .push(Change::PutDestination(Box::new(destination)));
    batch
}
