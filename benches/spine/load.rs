//! Which load is applied? That of `signalbox load`, in this process.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::time::Duration;

use harness::load::tally::TaskTally;
use signalbox::load::options::LoadOptions;
use signalbox::load::{Load, import_lines};
use tokio::task::spawn_blocking;

/// Sends in flight: enough that every group of commits is full, and few enough that no buffer on
/// the way overflows.
pub(crate) const WINDOW: u32 = 256;

/// Runs blocking work on a thread of its own.
pub(crate) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    spawn_blocking(work)
        .await
        .expect("nothing fails that is measured")
}

/// Registers this many devices with a server, for a scenario of `signalbox load`.
pub(crate) fn begin(server: SocketAddr, devices: u32, scenario: &str, words: &[&str]) -> Load {
    begin_at(&format!("coap://{server}"), devices, scenario, words)
}

/// The same with a server that is named by its CoAP address.
pub(crate) fn begin_at(target: &str, devices: u32, scenario: &str, words: &[&str]) -> Load {
    let count = devices.to_string();
    let fleet = ["load", "--target", target, "--devices", &count];
    let all = [&fleet[..], &["--scenario", scenario], words].concat();
    let options = LoadOptions::parse(all.iter().map(OsString::from));
    let options = options.expect("the command line makes sense");
    let load = Load::begin(&options).expect("the load can be applied");
    assert_eq!(load.registered(), devices, "every device is registered");
    load
}

/// The timeout of an import of any fleet.
pub(crate) const IMPORT_TIMEOUT: Duration = Duration::from_secs(1_800);

/// The lines that import the devices of a load, each with its name and its address.
pub(crate) fn lines(devices: u32) -> String {
    let pattern = "{:019}".parse().expect("a pattern");
    let network = "127.64.0.0/10".parse().expect("a network");
    import_lines(&pattern, network, None, 0..devices)
}

/// The fleet's devices, which send one after the other.
pub(crate) struct Senders {
    load: Option<Load>,
    each: Duration,
}

impl Senders {
    /// Registers the first devices of the fleet; each later `send` takes this long.
    pub(crate) async fn register(devices: u32, server: SocketAddr, each: Duration) -> Self {
        let load = aside(move || {
            let time = format!("{}ms", each.as_millis());
            let window = WINDOW.to_string();
            let fleet = ["--endpoint-pattern", "urn:dev:{:09}", "--seed", "1"];
            let arrivals = ["--duration", &time, "--window", &window];
            begin(server, devices, "send", &[fleet, arrivals].concat())
        });
        Self::of(load.await, each)
    }

    /// The devices of a load whose measurements are Sends and take this long.
    pub(crate) fn of(load: Load, each: Duration) -> Self {
        Self {
            load: Some(load),
            each,
        }
    }

    /// How long each `send` takes.
    pub(crate) fn each(&self) -> Duration {
        self.each
    }

    /// Sends for that long; returns the results.
    pub(crate) async fn send(&mut self) -> TaskTally {
        let mut load = self.load.take().expect("one thing is done at a time");
        let (load, tally) = aside(move || {
            let report = load.measure().expect("the socket works");
            (load, report.measurement.tally)
        })
        .await;
        self.load = Some(load);
        assert_eq!(tally.failed(), 0, "every Send is answered: {tally:?}");
        tally
    }
}
