//! How is the fleet created in a store?

use std::ops::Range;

use engine::change::{Batch, Change, Counter, CounterDelta};

use crate::fleet;

/// Devices created in one batch.
const DEVICES_PER_BATCH: usize = 100;

/// The batches that create this many devices.
pub(crate) fn batches(devices: u32) -> impl Iterator<Item = Batch> {
    let firsts = (0..devices).step_by(DEVICES_PER_BATCH);
    let ends = (0..=devices)
        .step_by(DEVICES_PER_BATCH)
        .skip(1)
        .chain([devices]);
    firsts.zip(ends).map(|(first, end)| batch(first..end))
}

fn batch(numbers: Range<u32>) -> Batch {
    let delta = i64::from(numbers.end - numbers.start);
    let put = |number| Change::PutDevice {
        was: None,
        profile: Box::new(fleet::profile(number)),
    };
    let counter = Counter::Devices(fleet::customer());
    Batch {
        changes: numbers.map(put).collect(),
        adds: vec![CounterDelta { counter, delta }],
        ..Batch::default()
    }
}
