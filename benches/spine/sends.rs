//! How many Sends per second are durable before their 2.04, and how many would the store alone
//! commit in that time?
//!
//! Rounds alternate between the service's arbiter, whose devices are those of `signalbox load`, and
//! the store with the batches of the same Sends, with as many writers as Sends are in flight.

use std::time::{Duration, Instant};

use engine::change::Batch;
use harness::load::figures::Figures;

use crate::callers::percentile_ms;
use crate::event_batches::EventBatches;
use crate::line::ApiLessService;
use crate::load::{Senders, WINDOW};
use crate::shelf::TempStore;

/// The default numbers of registered devices.
pub(crate) const FLEETS: [u32; 3] = [1_000, 10_000, 100_000];

/// Measured rounds, an odd number.
const ROUNDS: usize = 5;

/// The duration of a round.
const ROUND: Duration = Duration::from_secs(4);

/// Measures and prints.
pub(crate) async fn run(fleets: &[u32]) {
    println!("## Durable Sends, {WINDOW} under way\n");
    println!("| devices | | per second | p50, ms | p99, ms |");
    println!("|---|---|---|---|---|");
    for &devices in fleets {
        let (service, store) = measure(devices).await;
        show(devices, "service", &service);
        show(devices, "store alone", &store);
        let ratio = rates(&service).over(&rates(&store));
        println!("| {devices} | ratio | {} | | |", ratio.shown(2));
    }
    println!();
}

/// The result of one round.
struct Round {
    rate: f64,
    p50_ms: f64,
    p99_ms: f64,
}

async fn measure(devices: u32) -> (Vec<Round>, Vec<Round>) {
    let shelf = TempStore::with_devices(devices).await;
    let line = ApiLessService::start(&shelf, shelf.store.clone()).await;
    let mut senders = Senders::register(devices, line.coap, ROUND).await;
    let event_batches = EventBatches::at(shelf.clock.now());
    sending(&mut senders).await;
    let (mut service, mut store) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let sent = sending(&mut senders).await;
        // About as many as fill a round.
        let count = (sent.rate * ROUND.as_secs_f64()) as u32;
        let batches =
            (0..count).map(|number| event_batches.batch(&shelf, number % devices, number as f32));
        service.push(sent);
        store.push(writing(&shelf, batches.collect()).await);
    }
    line.stop().await;
    (service, store)
}

async fn sending(senders: &mut Senders) -> Round {
    let tally = senders.send().await;
    let percentile_ms = |percent| tally.latencies.percentile_ns(percent) as f64 / 1e6;
    Round {
        rate: tally.in_time as f64 / ROUND.as_secs_f64(),
        p50_ms: percentile_ms(50.0),
        p99_ms: percentile_ms(99.0),
    }
}

async fn writing(shelf: &TempStore, batches: Vec<Batch>) -> Round {
    let begun_at = Instant::now();
    let waits = shelf.commit_all(batches, WINDOW as usize).await;
    let took = begun_at.elapsed();
    Round {
        rate: waits.len() as f64 / took.as_secs_f64(),
        p50_ms: percentile_ms(&waits, 50),
        p99_ms: percentile_ms(&waits, 99),
    }
}

fn rates(rounds: &[Round]) -> Figures {
    rounds.iter().map(|round| round.rate).collect()
}

fn show(devices: u32, who: &str, rounds: &[Round]) {
    let p50: Figures = rounds.iter().map(|round| round.p50_ms).collect();
    let p99: Figures = rounds.iter().map(|round| round.p99_ms).collect();
    println!(
        "| {devices} | {who} | {} | {} | {} |",
        rates(rounds).shown(0),
        p50.shown(1),
        p99.shown(1)
    );
}
