//! How does the number of entries in the administration log affect its readers?
//!
//! Two stores are filled with entries of the last seven days, few and many, and both get the same
//! HTTP requests, in turns.

use engine::admin_log::entry::{AboutDevice, Category, Entry, Subject};
use engine::change::{Batch, Change};
use engine::ids::{EntryId, TraceId};
use engine::moment::{Moment, Timestamp};
use signalbox::config::Config;
use signalbox::telemetry;

use crate::callers::{self, Api, Called, Shown};
use crate::creates::{config, credentials, serve};
use crate::fleet;
use crate::line::ApiLessService;
use crate::shelf::{BATCHES_OPEN, TempStore};

/// The default numbers of entries.
pub(crate) const ENTRIES: [u32; 2] = [10_000, 5_000_000];

/// The devices of the entries.
const DEVICES: u32 = 20_000;

/// The period in which the entries were written, in milliseconds.
const AGE_MS: i64 = 7 * 86_400_000;

/// Measured rounds, an odd number.
const ROUNDS: usize = 9;

/// Requests of each kind per round.
const REQUESTS: usize = 200;

/// Entries per batch.
const BATCH: u32 = 100;

const LOG: &str = "/management-api/v1/administrationLogs";

/// The requests.
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

/// Measures and prints: each store beside the first one.
pub(crate) async fn run(entries: &[u32]) {
    let config = config();
    // Logging costs as much as in the service.
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
    let shown: Vec<Shown> = rounds.iter().map(|rounds| Shown::of(rounds)).collect();
    for (entries, Shown { p50_ms, p99_ms, .. }) in entries.iter().zip(&shown) {
        println!(
            "| {entries} | {} | {} | {} | {} |",
            p50_ms.shown(3),
            p99_ms.shown(3),
            p50_ms.over(&shown[0].p50_ms).shown(2),
            p99_ms.over(&shown[0].p99_ms).shown(2),
        );
    }
    println!();
}

/// A store with entries, and the API over it.
struct Log {
    api: Api,
    _line: ApiLessService,
    _shelf: TempStore,
}

impl Log {
    async fn with(entries: u32, config: &Config) -> Self {
        let shelf = TempStore::with_devices(0).await;
        shelf.commit(credentials(&shelf)).await;
        fill(&shelf, entries).await;
        let line = ApiLessService::start(&shelf, shelf.store.clone()).await;
        let api = serve(config, &shelf, shelf.store.clone(), &line);
        Self {
            api,
            _line: line,
            _shelf: shelf,
        }
    }
}

async fn ask(api: &Api, query: &str) -> Called {
    callers::list(api, &format!("{LOG}{query}"), REQUESTS).await
}

/// Writes this many entries, spread over the last days.
async fn fill(shelf: &TempStore, entries: u32) {
    let now = shelf.clock.now();
    let append = move |number| {
        let ago_ms = AGE_MS - AGE_MS * i64::from(number) / i64::from(entries);
        Change::AppendEntry(Box::new(entry(number, now.plus_ms(-ago_ms))))
    };
    let batch = move |first: u32| Batch {
        changes: (first..entries.min(first + BATCH)).map(append).collect(),
        ..Batch::default()
    };
    let batches = (0..entries).step_by(BATCH as usize).map(batch);
    shelf.commit_all(batches, BATCHES_OPEN).await;
}

/// An entry as services write them: most are failed requests, some first contacts, few of any other
/// type.
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
    // Consecutive entries are not about neighbouring devices.
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
