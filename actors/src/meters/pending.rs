//! How many commands wait? Each counts from its creation until it is dropped, wherever that
//! happens.

use engine::dispatch::shard_map::ArbiterId;
use metrics::{Gauge, describe_gauge, gauge};

const QUESTIONS: &str = "signalbox_registry_commands_waiting";

/// A command that waits.
pub(crate) struct PendingQuestion(Gauge);

impl PendingQuestion {
    /// Counts one more that waits.
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

/// The gauge of the callers' commands that wait for the registry of an arbiter.
pub(crate) fn questions_for(arbiter: ArbiterId) -> Gauge {
    describe_gauge!(
        QUESTIONS,
        "API calls waiting for the registry of the arbiter."
    );
    let waiting = gauge!(QUESTIONS, "arbiter" => arbiter.index().to_string());
    waiting.set(0.0);
    waiting
}
