//! How does the number of existing action requests affect their creation and their lists?
//!
//! A store is filled with requests of the last days, all of them final; then callers create more,
//! and another one reads the lists, page 1 and page 1,000.

use engine::action::{Action, Outcome, Status};
use engine::change::{Batch, Change, Owner};
use engine::effect::Effects;
use engine::ids::ActionId;
use engine::moment::Moment;
use signalbox::telemetry;

use crate::callers::{CALLERS, Called, Shown, create, list};
use crate::creates::{DEVICES, batch, config, credentials, serve};
use crate::line::ApiLessService;
use crate::shelf::{BATCHES_OPEN, TempStore};

/// The default number of existing requests.
pub(crate) const EXISTING: [u32; 1] = [100_000];

/// Measured rounds, an odd number.
const ROUNDS: usize = 3;

/// Requests created per round: a device accepts ten waiting ones, in all rounds together.
const CREATED: usize = 40_000;

/// List requests per round.
const LISTED: usize = 500;

/// Requests in memory at once while the store is filled, and those of one batch.
const AT_ONCE: usize = 20_000;
const BATCH: usize = 100;

/// The period in which the existing requests were created, in milliseconds.
const AGE_MS: i64 = 3 * 86_400_000;

const LIST: &str = "/management-api/v1/integrate/devices/actions/requests";

/// The lists.
const LISTS: [(&str, &str); 7] = [
    ("page 1", "?page=1"),
    ("page 1,000", "?page=1000"),
    ("page 1 by the last change", "?sort=-updated&page=1"),
    ("page 1,000 by the last change", "?sort=-updated&page=1000"),
    ("page 1 of those that failed", "?status=FAILED&page=1"),
    ("page 1 of 100 requests a page", "?pageSize=100&page=1"),
    (
        "page 1,000 of 100 requests a page",
        "?pageSize=100&page=1000",
    ),
];

/// Measures and prints a table for each store.
pub(crate) async fn run(existing: &[u32]) {
    let config = config();
    // Logging costs as much as in the service.
    telemetry::start(&config.log, config.log_format).expect("the process has no log yet");
    for existing in existing {
        let shelf = TempStore::with_devices(DEVICES).await;
        shelf.commit(credentials(&shelf)).await;
        fill(&shelf, *existing).await;
        let line = ApiLessService::start(&shelf, shelf.store.clone()).await;
        let api = serve(&config, &shelf, shelf.store.clone(), &line);
        create(&api, DEVICES as usize, DEVICES).await;
        let mut created = Vec::new();
        let mut listed: Vec<Vec<Called>> = LISTS.iter().map(|_| Vec::new()).collect();
        for _ in 0..ROUNDS {
            created.push(create(&api, CREATED, DEVICES).await);
            for (rounds, (_, query)) in listed.iter_mut().zip(LISTS) {
                rounds.push(list(&api, &format!("{LIST}{query}"), LISTED).await);
            }
        }
        show(*existing, &created, &listed);
    }
}

fn show(existing: u32, created: &[Called], listed: &[Vec<Called>]) {
    println!("## With {existing} action requests there before\n");
    println!("| | per second | p50, ms | p99, ms |");
    println!("|---|---|---|---|");
    Shown::of(created).print(&format!("created by {CALLERS} callers"));
    for (rounds, (name, _)) in listed.iter().zip(LISTS) {
        Shown::of(rounds).print(&format!("{name}, one caller"));
    }
    println!();
}

/// Commits this many requests, as if devices had answered most of them over the last days.
async fn fill(shelf: &TempStore, existing: u32) {
    let numbers: Vec<u32> = (0..existing).collect();
    let batch = |numbers: &[u32]| {
        let mut out = Effects::new();
        for number in numbers {
            out.save_action(None, &past(shelf, *number, existing));
        }
        out.settle(Owner::Nobody).0
    };
    for numbers in numbers.chunks(AT_ONCE) {
        let batches: Vec<Batch> = numbers.chunks(BATCH).map(batch).collect();
        shelf.commit_all(batches, BATCHES_OPEN).await;
    }
}

/// A request of the last days; eight of ten succeeded.
fn past(shelf: &TempStore, number: u32, existing: u32) -> Action {
    let made = created_by(batch(shelf, number as usize));
    let ago_ms = AGE_MS - AGE_MS * i64::from(number) / i64::from(existing);
    let created_at = shelf.clock.now().plus_ms(-ago_ms);
    let mut m = Moment::new(created_at, u128::from(number) << 64 | 0xa5a5_5a5a);
    let status = match number % 10 {
        0 => Status::Failed,
        1 => Status::Cancelled,
        _ => Status::Succeeded,
    };
    let outcome = Outcome {
        code: Some("205".into()),
        ..Outcome::default()
    };
    Action {
        id: ActionId::new(m.uuid()),
        status,
        created_at,
        updated_at: created_at.plus_ms(i64::from(number % 997) * 1_000),
        outcome: Some(outcome),
        ..made
    }
}

/// The request that a batch creates.
fn created_by(batch: Batch) -> Action {
    let made = batch.changes.into_iter().find_map(|change| {
        if let Change::PutAction { action, .. } = change {
            Some(*action)
        } else {
            None
        }
    });
    made.expect("the batch makes a request")
}
