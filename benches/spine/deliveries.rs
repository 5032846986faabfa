//! How many events per second get from an acknowledged Send to a 200, and how many posts would the
//! bare HTTP client make in that time?
//!
//! Rounds alternate between the program an operator runs, whose devices send as fast as they are
//! answered, and the client alone, which posts the same body to the same endpoint with as many
//! posts in flight. Load, program and endpoint share the machine.

use std::time::{Duration, Instant};

use engine::delivery::destination::EventBatching;
use harness::load::figures::Figures;

use crate::bare::{self, Bare, PARALLEL};
use crate::endpoint::Endpoint;
use crate::load::Senders;
use crate::outage::start;
use crate::service::CACHE_MIB;
use crate::shelf::TempStore;
use crate::webhook::destination;

/// Requests of many events, as a webhook may ask for them.
const BATCHING: EventBatching = EventBatching {
    events_max: 100,
    wait_ms_max: 20,
};

/// The default numbers of registered devices.
pub(crate) const FLEETS: [u32; 2] = [1_000, 10_000];

/// Measured rounds, an odd number.
const ROUNDS: usize = 3;

/// The duration of a round.
const ROUND: Duration = Duration::from_secs(5);

/// The interval at which the endpoint's count is polled.
const LOOK: Duration = Duration::from_millis(5);

/// If no event arrives for this long, some are lost.
const PATIENCE: Duration = Duration::from_secs(20);

/// Measures and prints.
pub(crate) async fn run(fleets: &[u32]) {
    println!("## From an acknowledged Send to 200, {PARALLEL} posts under way\n");
    println!("| devices | | per second | connections a round |");
    println!("|---|---|---|---|");
    for &devices in fleets {
        let (service, bare) = measure(devices, None).await;
        let figures = |of: fn(&Round) -> f64| -> Figures { service.iter().map(of).collect() };
        let client: Figures = bare.iter().map(|bare| bare.rate).collect();
        let connections = figures(|round| round.connections);
        let whole = figures(|round| round.whole);
        let meanwhile = figures(|round| round.meanwhile);
        let row = |what: &str, figures: Figures, decimals, more: String| {
            let shown = figures.shown(decimals);
            println!("| {devices} | {what} | {shown} | {more} |");
        };
        let opened: Figures = bare.iter().map(|bare| bare.connections).collect();
        let sends = figures(|round| round.sends);
        let after = figures(|round| round.after);
        let ratios = (meanwhile.over(&client), whole.over(&client));
        row("Sends", sends, 0, String::new());
        row("events, while devices send", meanwhile, 0, String::new());
        let connections = connections.shown(0).to_string();
        row("events, first Send to last 200", whole, 0, connections);
        row("events, once no device sends", after, 0, String::new());
        row("bare client", client, 0, opened.shown(0).to_string());
        row("ratio, while devices send", ratios.0, 2, String::new());
        row("ratio, first to last", ratios.1, 2, String::new());
        let (batched, _) = measure(devices, Some(BATCHING)).await;
        let batched: Figures = batched.iter().map(|round| round.whole).collect();
        let most = BATCHING.events_max;
        row(
            &format!("events, {most} in a request"),
            batched,
            0,
            String::new(),
        );
    }
    println!();
}

/// The result of a round of the service, per second.
pub(crate) struct Round {
    sends: f64,
    meanwhile: f64,
    /// Events from the first Send to the last 200.
    pub(crate) whole: f64,
    after: f64,
    connections: f64,
}

async fn measure(devices: u32, batching: Option<EventBatching>) -> (Vec<Round>, Vec<Bare>) {
    let endpoint = Endpoint::start();
    let shelf = TempStore::with_devices(devices).await;
    shelf
        .commit(destination(&shelf, endpoint.address, batching))
        .await;
    let directory = shelf.close();
    let mut service = start(directory.path(), CACHE_MIB);
    let mut senders = Senders::register(devices, service.coap(), ROUND).await;
    await_posts(&endpoint, u64::from(devices)).await;
    deliver(&mut senders, &endpoint).await;
    let (mut rounds, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        rounds.push(deliver(&mut senders, &endpoint).await);
        bare.push(bare::post(&endpoint, ROUND).await);
    }
    (rounds, bare)
}

/// Lets devices send, and waits until the endpoint has accepted every event.
pub(crate) async fn deliver(senders: &mut Senders, endpoint: &Endpoint) -> Round {
    let (before, connections) = (endpoint.events_posted(), endpoint.connections());
    let begun_at = Instant::now();
    let tally = senders.send().await;
    let meanwhile = endpoint.events_posted() - before;
    let sent_in = begun_at.elapsed();
    await_posts(endpoint, before + tally.answered).await;
    let took = begun_at.elapsed();
    assert_eq!(
        endpoint.events_posted() - before,
        tally.answered,
        "each comes once"
    );
    let after = tally.answered.saturating_sub(meanwhile) as f64;
    Round {
        sends: tally.in_time as f64 / senders.each().as_secs_f64(),
        meanwhile: meanwhile as f64 / sent_in.as_secs_f64(),
        whole: tally.answered as f64 / took.as_secs_f64(),
        after: after / (took - sent_in).as_secs_f64(),
        connections: (endpoint.connections() - connections) as f64,
    }
}

/// Waits until the endpoint received this many posts.
async fn await_posts(endpoint: &Endpoint, posts: u64) {
    let (mut last, mut moved_at) = (endpoint.events_posted(), Instant::now());
    let mut looks = tokio::time::interval(LOOK);
    while endpoint.events_posted() < posts {
        looks.tick().await;
        if endpoint.events_posted() > last {
            (last, moved_at) = (endpoint.events_posted(), Instant::now());
        }
        assert!(
            moved_at.elapsed() < PATIENCE,
            "{last} of {posts} events came"
        );
    }
}
