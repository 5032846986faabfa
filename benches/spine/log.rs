//! What do entries of the administration log that are there cost those who read it?
//!
//! Two stores are filled with entries of the last seven days, few and many, and both are asked the
//! same over HTTP, in turns.

use engine::admin_log::entry::{AboutDevice, Category, Entry, Subject};
use engine::change::{Batch, Change};
use engine::ids::{EntryId, TraceId};
use engine::moment::{Moment, Timestamp};
use signalbox::config::Config;
use signalbox::telemetry;
use store::Commit as _;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::callers::{self, Api, Called};
use crate::creates::{config, credentials, serve, waits};
use crate::figures::Figures;
use crate::fleet;
use crate::line::Line;
use crate::shelf::Shelf;

/// How many entries there are, where nothing is said.
pub(crate) const ENTRIES: [u32; 2] = [10_000, 5_000_000];

/// Devices the entries are about.
const DEVICES: u32 = 20_000;

/// The time over which the entries were written, in milliseconds.
const AGE_MS: i64 = 7 * 86_400_000;

/// Rounds that count, an odd number.
const ROUNDS: usize = 9;

/// How often something is asked in a round.
const ASKED: usize = 200;

/// Entries in one batch, and batches that wait for the disk at any time.
const BATCH: u32 = 100;
const BATCHES_OPEN: usize = 64;

const LOG: &str = "/management-api/v1/administrationLogs";

/// What is asked.
const QUESTIONS: [(&str, &str); 6] = [
    ("page 1", ""),
    ("page 1 of one category", "?category=info"),
    ("page 1 of one type", "?type=INTEGRATION"),
    ("page 1,000", "?page=1000"),
    ("statistics", "/stats?timezone=America/New_York"),
    (
        "statistics of one category",
        "/stats?timezone=Asia/Kathmandu&category=error",
    ),
];

/// Measures and prints: each of several stores beside the first.
pub(crate) async fn run(entries: &[u32]) {
    let config = config();
    // The log costs what it costs in the service.
    telemetry::start(&config.log, config.log_format).expect("the process has no log yet");
    let mut logs = Vec::new();
    for entries in entries {
        logs.push(Log::with(*entries, &config).await);
    }
    for (name, query) in QUESTIONS {
        let mut rounds: Vec<Vec<Called>> = logs.iter().map(|_| Vec::new()).collect();
        for log in &logs {
            ask(&log.api, query).await;
        }
        for _ in 0..ROUNDS {
            for (log, rounds) in logs.iter().zip(&mut rounds) {
                rounds.push(ask(&log.api, query).await);
            }
        }
        show(name, entries, &rounds);
    }
}

fn show(name: &str, entries: &[u32], rounds: &[Vec<Called>]) {
    println!("## {name}\n");
    println!("| entries | p50, ms | p99, ms | p50 : first | p99 : first |");
    println!("|---|---|---|---|---|");
    let figures = |rounds: &Vec<Called>| (waits(rounds, 50), waits(rounds, 99));
    let figures: Vec<(Figures, Figures)> = rounds.iter().map(figures).collect();
    for (entries, (p50, p99)) in entries.iter().zip(&figures) {
        println!(
            "| {entries} | {} | {} | {} | {} |",
            p50.shown(3),
            p99.shown(3),
            p50.over(&figures[0].0).shown(2),
            p99.over(&figures[0].1).shown(2),
        );
    }
    println!();
}

/// A store with entries, and the API over it.
struct Log {
    api: Api,
    _line: Line,
    _shelf: Shelf,
}

impl Log {
    async fn with(entries: u32, config: &Config) -> Self {
        let shelf = Shelf::with_devices(0).await;
        shelf.commit(credentials(&shelf)).await;
        fill(&shelf, entries).await;
        let line = Line::start(&shelf, shelf.store.clone());
        let api = serve(config, &shelf, shelf.store.clone(), &line);
        Self {
            api,
            _line: line,
            _shelf: shelf,
        }
    }
}

async fn ask(api: &Api, query: &str) -> Called {
    let (told, called) = oneshot::channel();
    let (api, path) = (api.clone(), format!("{LOG}{query}"));
    std::thread::spawn(move || {
        let called = callers::list(&api, &path, ASKED);
        assert!(told.send(called).is_ok(), "who asked waits");
    });
    called.await.expect("every question is answered 200")
}

/// Writes so many entries, spread over the last days.
async fn fill(shelf: &Shelf, entries: u32) {
    let now = shelf.clock.now();
    let mut receipts = JoinSet::new();
    for first in (0..entries).step_by(BATCH as usize) {
        if receipts.len() == BATCHES_OPEN {
            let receipt = receipts.join_next().await.expect("some are open");
            assert!(matches!(receipt, Ok(Ok(_))), "the entries are kept");
        }
        let numbers = first..entries.min(first + BATCH);
        let append = |number| {
            let ago_ms = AGE_MS - AGE_MS * i64::from(number) / i64::from(entries);
            Change::AppendEntry(Box::new(entry(number, now.plus_ms(-ago_ms))))
        };
        receipts.spawn(shelf.store.commit(Batch {
            changes: numbers.map(append).collect(),
            ..Batch::default()
        }));
    }
    for receipt in receipts.join_all().await {
        receipt.expect("the entries are kept");
    }
}

/// An entry as services write them: most tell of failed requests, some of devices that come, few of
/// anything else.
fn entry(number: u32, at: Timestamp) -> Entry {
    let mut m = Moment::new(at, u128::from(number) << 64 | 0xa5a5_5a5a);
    let (subject, category, message) = match number % 20 {
        0..4 => (
            Subject::Lifecycle,
            Category::Info,
            "Lifecycle[DeviceFirstTimeRegistered]",
        ),
        4 => (
            Subject::Integration,
            Category::Error,
            "SmsForwarder[DeliveryFailed]",
        ),
        _ => (
            Subject::Device,
            Category::Error,
            "DeviceController[ActionRequestFailed]",
        ),
    };
    // Neighbours in time are not neighbours in the fleet.
    let profile = fleet::profile(number.wrapping_mul(2_654_435_761) % DEVICES);
    let about = AboutDevice {
        key: profile.key(),
        iccid: profile.iccid,
        imsi: None,
        ip: profile.ip,
    };
    Entry {
        id: EntryId::new(m.uuid()),
        customer: profile.customer,
        at,
        subject,
        category,
        message: message.into(),
        description: "The device did not answer within the time a request has.".into(),
        trace: TraceId::new(m.uuid()),
        about: Some(about),
        payload: None,
    }
}
