//! The metrics of deliveries.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Instant;

use engine::delivery::backlog::Backlog;
use engine::delivery::destination::DestinationState;
use engine::delivery::forwarding::DeliveryOutcome;
use engine::ids::DestinationId;
use metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram,
    gauge, histogram,
};

const DELIVERIES: &str = "signalbox_deliveries_total";
const SECONDS: &str = "signalbox_delivery_seconds";
const UNDER_WAY: &str = "signalbox_deliveries_under_way";
const WAITING: &str = "signalbox_events_waiting";
const DEAD: &str = "signalbox_dead_letters";
const DESTINATIONS: &str = "signalbox_destinations";

/// The metrics of all destinations together.
pub(super) struct DeliveryMeters {
    delivered: Counter,
    failed: Counter,
    gone: Counter,
    seconds: Histogram,
    under_way: Gauge,
    waiting: Gauge,
    dead: Gauge,
    backlogs: RefCell<BTreeMap<DestinationId, Backlog>>,
    in_state: [Gauge; STATES.len()],
    states: RefCell<BTreeMap<DestinationId, DestinationState>>,
}

/// The states of destinations, with their labels.
const STATES: [(DestinationState, &str); 3] = [
    (DestinationState::RolledOut, "rolled_out"),
    (DestinationState::Active, "active"),
    (DestinationState::Failed, "failed"),
];

impl DeliveryMeters {
    pub(super) fn new() -> Self {
        describe_counter!(
            DELIVERIES,
            "Delivery attempts, by result: accepted, not_accepted, or removed with its event."
        );
        describe_histogram!(
            SECONDS,
            Unit::Seconds,
            "Duration of a delivery attempt, in seconds."
        );
        describe_gauge!(UNDER_WAY, "Delivery attempts in progress.");
        describe_gauge!(
            WAITING,
            "Events waiting for delivery, over all destinations, updated every ten seconds."
        );
        describe_gauge!(
            DEAD,
            "Dead letters, over all destinations, updated every ten seconds."
        );
        describe_gauge!(DESTINATIONS, "Destinations, by state.");
        let tries = |result: &'static str| counter!(DELIVERIES, "result" => result);
        Self {
            delivered: tries("accepted"),
            failed: tries("not_accepted"),
            gone: tries("removed"),
            seconds: histogram!(SECONDS),
            under_way: gauge!(UNDER_WAY),
            waiting: gauge!(WAITING),
            dead: gauge!(DEAD),
            backlogs: RefCell::default(),
            in_state: STATES.map(|(_, word)| gauge!(DESTINATIONS, "state" => word)),
            states: RefCell::default(),
        }
    }

    /// Records the start of an attempt.
    pub(super) fn begin(&self) -> TimedAttempt {
        self.under_way.increment(1.0);
        TimedAttempt {
            since: Instant::now(),
            gauge: self.under_way.clone(),
        }
    }

    /// Records the end of an attempt.
    pub(super) fn end(&self, begun: TimedAttempt, delivered: &DeliveryOutcome) {
        self.seconds.record(begun.since.elapsed().as_secs_f64());
        match delivered {
            DeliveryOutcome::Delivered => self.delivered.increment(1),
            DeliveryOutcome::Failed(_) => self.failed.increment(1),
            DeliveryOutcome::Gone => self.gone.increment(1),
        }
    }

    /// Records the backlog of a destination.
    pub(super) fn waiting(&self, id: DestinationId, backlog: Backlog) {
        self.backlogs.borrow_mut().insert(id, backlog);
        self.show();
    }

    /// Records the state of a destination.
    pub(super) fn state(&self, id: DestinationId, state: DestinationState) {
        self.states.borrow_mut().insert(id, state);
        self.show();
    }

    /// Removes a destination that has no forwarder any more.
    pub(super) fn leave(&self, id: DestinationId) {
        self.backlogs.borrow_mut().remove(&id);
        self.states.borrow_mut().remove(&id);
        self.show();
    }

    fn show(&self) {
        let backlogs = self.backlogs.borrow();
        let sum = |of: fn(&Backlog) -> u64| backlogs.values().map(of).sum::<u64>() as f64;
        self.waiting.set(sum(|backlog| backlog.waiting));
        self.dead.set(sum(|backlog| backlog.dead));
        let states = self.states.borrow();
        for ((state, _), gauge) in STATES.iter().zip(&self.in_state) {
            let count = states.values().filter(|of| *of == state).count();
            gauge.set(count as f64);
        }
    }
}

/// An attempt in flight, also one whose forwarder ends before it does.
pub(super) struct TimedAttempt {
    since: Instant,
    gauge: Gauge,
}

impl Drop for TimedAttempt {
    fn drop(&mut self) {
        self.gauge.decrement(1.0);
    }
}
