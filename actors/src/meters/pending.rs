//! What waits its turn? Counted from when it begins to wait until it is dropped, whoever drops it.

use engine::dispatch::shard_map::ArbiterId;
use metrics::{Gauge, describe_gauge, gauge};

const QUESTIONS: &str = "signalbox_registry_questions_waiting";

/// One that waits.
pub(crate) struct PendingQuestion(Gauge);

impl PendingQuestion {
    /// From now on it waits.
    pub(crate) fn new(among: &Gauge) -> Self {
        among.increment(1.0);
        Self(among.clone())
    }
}

impl Drop for PendingQuestion {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

/// How many questions of callers wait for the registry of an arbiter.
pub(crate) fn questions_for(arbiter: ArbiterId) -> Gauge {
    describe_gauge!(
        QUESTIONS,
        "API calls waiting for the registry of the arbiter."
    );
    let waiting = gauge!(QUESTIONS, "arbiter" => arbiter.index().to_string());
    waiting.set(0.0);
    waiting
}
