//! How much disk does a Send take that is kept, while retention removes as many as devices send?
//!
//! The store alone gets the batches that the machine of a device commits for a Send. Time passes
//! with them: retention keeps as many as are named here, whatever they took to write. Every block
//! of the first of them has been removed before the first round is measured.

use engine::moment::{Moment, Timestamp};
use harness::load::figures::Figures;
use store::{Maintenance as _, Retention};

use crate::event_batches::EventBatches;
use crate::load::WINDOW;
use crate::shelf::TempStore;

/// The devices that send.
const DEVICES: u32 = 10_000;

/// The Sends that retention keeps.
const KEPT: u32 = 1_000_000;

/// How long it keeps them: the default.
const KEPT_FOR_MS: i64 = 7 * 86_400_000;

/// The Sends between two sweeps; a registration is valid for longer than they take.
const SENDS_PER_SWEEP: u32 = 50_000;

/// The Sends of a round.
const SENDS_PER_ROUND: u32 = 250_000;

/// The bytes of disk for each Send that is kept, in these rounds.
pub(crate) async fn measure(rounds: u32) -> Figures {
    let shelf = TempStore::with_devices(DEVICES).await;
    let begun_at = shelf.clock.now();
    let mut sent = 0;
    let mut figures = Figures::default();
    for round in 0..=rounds {
        let count = match round {
            0 => 2 * KEPT,
            _ => SENDS_PER_ROUND,
        };
        let until = sent + count;
        while sent < until {
            send(&shelf, begun_at, sent).await;
            sent += SENDS_PER_SWEEP;
            sweep(&shelf, time_of(begun_at, sent)).await;
        }
        if round > 0 {
            figures.push(shelf.bytes() as f64 / f64::from(KEPT));
        }
    }
    figures
}

/// Commits the Sends from this number on, up to the next sweep.
async fn send(shelf: &TempStore, begun_at: Timestamp, first: u32) {
    let event_batches = EventBatches::at(time_of(begun_at, first));
    let batch = |number: u32| {
        let mut entropy = shelf.clock.moment();
        let entropy = u128::from(entropy.next_u64()) << 64 | u128::from(entropy.next_u64());
        let mut m = Moment::new(time_of(begun_at, number), entropy);
        event_batches.batch_at(&mut m, shelf.epoch, number % DEVICES, number as f32)
    };
    let batches: Vec<_> = (first..first + SENDS_PER_SWEEP).map(batch).collect();
    shelf.commit_all(batches, WINDOW as usize).await;
}

/// Removes everything that is too old at this time.
async fn sweep(shelf: &TempStore, now: Timestamp) {
    let due = Retention {
        events_before: now.plus_ms(-KEPT_FOR_MS),
        ..Retention::NOTHING
    };
    loop {
        let swept = shelf.store.sweep(due, u32::MAX).await;
        if !swept.expect("the store sweeps").more {
            break;
        }
    }
}

/// When a Send is sent.
fn time_of(begun_at: Timestamp, number: u32) -> Timestamp {
    begun_at.plus_ms(KEPT_FOR_MS * i64::from(number) / i64::from(KEPT))
}
