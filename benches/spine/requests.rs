//! What do action requests that are there cost those that are made, and those who look for some?
//!
//! A store is filled with requests of the last days, most of them done; then callers create more,
//! and another turns over the lists, page 1 and page 1,000.

use engine::action::{Action, Outcome, Status};
use engine::change::{Batch, Change, Owner};
use engine::effect::Effects;
use engine::ids::ActionId;
use engine::moment::Moment;
use signalbox::telemetry;
use store::Commit as _;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::callers::{self, Api, CALLERS, Called};
use crate::creates::{self, DEVICES, batch, config, credentials, rates, serve, waits};
use crate::line::Line;
use crate::shelf::Shelf;

/// How many requests there are before it begins, where nothing is said.
pub(crate) const EXISTING: [u32; 1] = [100_000];

/// Rounds that count, an odd number.
const ROUNDS: usize = 3;

/// Requests that a round creates: a device takes ten that wait, in all rounds together.
const CREATED: usize = 40_000;

/// How often a list is asked for in a round.
const LISTED: usize = 500;

/// Requests made in one batch, and batches that wait for the disk at any time.
const BATCH: u32 = 100;
const BATCHES_OPEN: usize = 64;

/// The time over which the requests that exist were made, in milliseconds.
const AGE_MS: i64 = 3 * 86_400_000;

const LIST: &str = "/management-api/v1/integrate/devices/actions/requests";

/// The lists that are asked for.
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
    // The log costs what it costs in the service.
    telemetry::start(&config.log, config.log_format).expect("the process has no log yet");
    for existing in existing {
        let shelf = Shelf::with_devices(DEVICES).await;
        shelf.commit(credentials(&shelf)).await;
        fill(&shelf, *existing).await;
        let line = Line::start(&shelf, shelf.store.clone());
        let api = serve(&config, &shelf, shelf.store.clone(), &line);
        creates::create(&api, DEVICES as usize).await;
        let mut created = Vec::new();
        let mut listed: Vec<Vec<Called>> = LISTS.iter().map(|_| Vec::new()).collect();
        for _ in 0..ROUNDS {
            created.push(creates::create(&api, CREATED).await);
            for (rounds, (_, query)) in listed.iter_mut().zip(LISTS) {
                rounds.push(list(&api, query).await);
            }
        }
        show(*existing, &created, &listed);
    }
}

fn show(existing: u32, created: &[Called], listed: &[Vec<Called>]) {
    println!("## With {existing} action requests there before\n");
    println!("| | per second | p50, ms | p99, ms |");
    println!("|---|---|---|---|");
    row(&format!("created by {CALLERS} callers"), created);
    for (rounds, (name, _)) in listed.iter().zip(LISTS) {
        row(&format!("{name}, one caller"), rounds);
    }
    println!();
}

fn row(name: &str, rounds: &[Called]) {
    let (rate, p50, p99) = (rates(rounds), waits(rounds, 50), waits(rounds, 99));
    println!(
        "| {name} | {} | {} | {} |",
        rate.shown(0),
        p50.shown(2),
        p99.shown(2)
    );
}

async fn list(api: &Api, query: &str) -> Called {
    let (told, called) = oneshot::channel();
    let (api, path) = (api.clone(), format!("{LIST}{query}"));
    std::thread::spawn(move || {
        let called = callers::list(&api, &path, LISTED);
        assert!(told.send(called).is_ok(), "who asked waits");
    });
    called.await.expect("every list is answered 200")
}

/// Makes so many requests durable, as if devices had answered most of them over the last days.
async fn fill(shelf: &Shelf, existing: u32) {
    let mut receipts = JoinSet::new();
    let numbers: Vec<u32> = (0..existing).collect();
    for numbers in numbers.chunks(BATCH as usize) {
        if receipts.len() == BATCHES_OPEN {
            let receipt = receipts.join_next().await.expect("some are open");
            assert!(matches!(receipt, Ok(Ok(_))), "the requests are kept");
        }
        let mut out = Effects::new();
        for number in numbers {
            let made = past(shelf, *number, existing);
            out.save_action(None, &made);
        }
        receipts.spawn(shelf.store.commit(out.settle(Owner::Nobody).0));
    }
    for receipt in receipts.join_all().await {
        receipt.expect("the requests are kept");
    }
}

/// A request of the last days, eight of ten done.
fn past(shelf: &Shelf, number: u32, existing: u32) -> Action {
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

/// The request that a batch makes.
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
