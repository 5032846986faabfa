//! How long does it take to catch up after an outage? A store is filled with waiting events, the
//! program an operator runs is started on it while the endpoint is unavailable, and then the
//! endpoint returns. Halfway the program is killed and started again with the smallest cache, which
//! shows how much of its memory is the store's.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::bare;
use crate::endpoint::Endpoint;
use crate::event_batches::EventBatches;
use crate::service::{self, CACHE_MIB, CACHE_MIB_MIN, Service};
use crate::shelf::TempStore;
use crate::webhook::destination;

/// Delays between attempts: an endpoint that is unavailable for half a minute does not fail the
/// destination, and one that returns is found soon.
const RETRY_MS: &str = "2000,2000,2000,2000,2000,2000,2000,2000,2000,2000,2000,2000,2000,2000";

/// The default numbers of waiting events: few and many, for the memory of both.
pub(crate) const EVENTS: [u32; 2] = [10_000, 1_000_000];

/// The devices of the events.
const DEVICES: u32 = 10_000;

/// Batches in flight while the store is filled.
const WRITERS: usize = 1_024;

/// How long the program runs while the endpoint is unavailable.
const AWAY: Duration = Duration::from_secs(8);

/// How long the bare client posts.
const BARE: Duration = Duration::from_secs(5);

/// How long a million events may take on a machine with other work.
const PATIENCE: Duration = Duration::from_secs(1_200);

/// The interval at which memory and endpoint are polled.
const LOOK: Duration = Duration::from_millis(20);

/// Measures and prints.
pub(crate) async fn run(events: &[u32]) {
    println!("## Catching up after an outage, {DEVICES} devices\n");
    println!("| events that wait | | |");
    println!("|---|---|---|");
    for &events in events {
        measure(events).await;
    }
    println!();
}

async fn measure(events: u32) {
    let endpoint = Endpoint::start();
    let shelf = TempStore::with_devices(DEVICES).await;
    let event_batches = EventBatches::at(shelf.clock.now());
    shelf
        .commit(destination(&shelf, endpoint.address, None))
        .await;
    let filling_at = Instant::now();
    fill(&shelf, event_batches, events).await;
    let filled_in = filling_at.elapsed();
    let directory = shelf.close();

    endpoint.go_away();
    let mut service = start(directory.path(), CACHE_MIB);
    let away = watch(&service, || false, AWAY).await;
    assert_eq!(endpoint.posts(), 0, "the endpoint is away");
    endpoint.come_back();
    let begun_at = Instant::now();
    let half = u64::from(events) / 2;
    let first = watch(&service, || endpoint.events() >= half, PATIENCE).await;
    let first_rate = endpoint.posts() as f64 / first.took.as_secs_f64();

    drop(service);
    let (there, started_at) = (endpoint.posts(), Instant::now());
    service = start(directory.path(), CACHE_MIB_MIN);
    let next = watch(&service, || endpoint.posts() > there, PATIENCE).await;
    let resumed_in = started_at.elapsed();
    let all = u64::from(events);
    let last = watch(&service, || endpoint.events() >= all, PATIENCE).await;
    let last_rate = (endpoint.posts() - there) as f64 / last.took.as_secs_f64();
    assert_eq!(endpoint.events(), all, "every event comes");
    let posted_twice = endpoint.posts() - all;
    let caught_up_in = begun_at.elapsed();
    drop(service);
    let bare = bare::post(&endpoint, BARE).await.rate;
    let show = |what: &str, figure: String| println!("| {events} | {what} | {figure} |");
    let seconds = |time: Duration| format!("{:.2}", time.as_secs_f64());
    let mib = |mib: f64| format!("{mib:.0}");
    show("filled in, s", seconds(filled_in));
    show("memory while it is away, MiB", mib(away.resident_mib));
    let with = |what: &str, cache_mib: u32| format!("{what} (cache of {cache_mib})");
    show(
        &with("the most until the kill, MiB", CACHE_MIB),
        mib(first.resident_mib),
    );
    let resident_mib = last.resident_mib.max(next.resident_mib);
    show(
        &with("the most after it, MiB", CACHE_MIB_MIN),
        mib(resident_mib),
    );
    show("events/s until the kill", format!("{first_rate:.0}"));
    show("events/s after it", format!("{last_rate:.0}"));
    show(
        "from the next start to the next event, s",
        seconds(resumed_in),
    );
    show("until the last event, s", seconds(caught_up_in));
    show("posted twice", posted_twice.to_string());
    show("posts/s of the bare client", format!("{bare:.0}"));
    show("ratio until the kill", format!("{:.2}", first_rate / bare));
    show("ratio after it", format!("{:.2}", last_rate / bare));
}

/// Starts the program on the directory of a store, and waits until it listens.
pub(crate) fn start(data: &Path, cache_mib: u32) -> Service {
    let settings = [
        ("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true"),
        ("SIGNALBOX_DELIVERY_RETRY_MS", RETRY_MS),
    ];
    let mut service = Service::start(service::PROGRAM.as_ref(), data, cache_mib, &settings);
    service.coap();
    service
}

/// Commits what the store gets when the devices send in turn: one batch per Send.
async fn fill(shelf: &TempStore, event_batches: EventBatches, events: u32) {
    const AT_ONCE: u32 = 20_000;
    for first in (0..events).step_by(AT_ONCE as usize) {
        let numbers = first..events.min(first + AT_ONCE);
        let batch = |number: u32| event_batches.batch(shelf, number % DEVICES, number as f32);
        let batches: Vec<_> = numbers.map(batch).collect();
        shelf.commit_all(batches, WRITERS).await;
    }
}

struct Watched {
    took: Duration,
    /// The peak memory of the program.
    resident_mib: f64,
}

/// Watches the program until a condition holds, or this long.
async fn watch(service: &Service, is_so: impl Fn() -> bool, at_most: Duration) -> Watched {
    let begun_at = Instant::now();
    let mut resident_mib: f64 = 0.0;
    let mut looks = tokio::time::interval(LOOK);
    while !is_so() && begun_at.elapsed() < at_most {
        resident_mib = resident_mib.max(service.resident_mib());
        looks.tick().await;
    }
    Watched {
        took: begun_at.elapsed(),
        resident_mib,
    }
}
