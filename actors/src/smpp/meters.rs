//! The metrics of the link to an SMS centre.

use engine::smpp::effect::{HandedIn, InboundKind, LinkEvent, SubmitOutcome};
use metrics::{Counter, Gauge, counter, describe_counter, describe_gauge, gauge};

const BOUND: &str = "signalbox_smpp_bound";
const UNANSWERED: &str = "signalbox_smpp_unanswered";
const SESSIONS: &str = "signalbox_smpp_sessions_total";
const SUBMITTED: &str = "signalbox_smpp_submitted_total";
const RECEIVED: &str = "signalbox_smpp_received_total";

/// How a session began or ended.
const SESSION_RESULTS: [&str; 3] = ["bound", "not_bound", "lost"];

/// The metrics of the link.
pub(super) struct LinkMeters {
    bound: Gauge,
    unanswered: Gauge,
}

impl LinkMeters {
    pub(super) fn new() -> Self {
        describe_gauge!(
            BOUND,
            "1 while the link to the SMS centre is bound, otherwise 0."
        );
        describe_gauge!(
            UNANSWERED,
            "Parts of SMS that were submitted and have no response yet."
        );
        describe_counter!(
            SESSIONS,
            "Attempts to bind and ends of sessions, by result: bound, not_bound or lost."
        );
        describe_counter!(
            SUBMITTED,
            "Parts of SMS submitted, by result: accepted, throttled, refused or unknown."
        );
        describe_counter!(
            RECEIVED,
            "Messages of devices and receipts received, by kind and result: stored, unknown or \
             refused."
        );
        let meters = Self {
            bound: gauge!(BOUND),
            unanswered: gauge!(UNANSWERED),
        };
        meters.show(false, 0);
        // A counter is exported before it counts.
        for result in SESSION_RESULTS {
            session(result).increment(0);
        }
        for outcome in SubmitOutcome::ALL {
            submitted(outcome).increment(0);
        }
        for kind in InboundKind::ALL {
            for outcome in HandedIn::ALL {
                received(kind, outcome).increment(0);
            }
        }
        meters
    }

    pub(super) fn show(&self, is_bound: bool, unanswered: usize) {
        self.bound.set(f64::from(u8::from(is_bound)));
        self.unanswered.set(unanswered as f64);
    }

    pub(super) fn count(&self, event: LinkEvent) {
        let [bound, not_bound, lost] = SESSION_RESULTS;
        let counted = match event {
            LinkEvent::Bound(_) => session(bound),
            LinkEvent::NotBound(..) => session(not_bound),
            LinkEvent::Lost(_) => session(lost),
            LinkEvent::Submitted(outcome) => submitted(outcome),
            LinkEvent::Answered(kind, outcome) => received(kind, outcome),
        };
        counted.increment(1);
    }
}

fn session(result: &'static str) -> Counter {
    counter!(SESSIONS, "result" => result)
}

fn submitted(outcome: SubmitOutcome) -> Counter {
    let result = match outcome {
        SubmitOutcome::Accepted => "accepted",
        SubmitOutcome::Throttled => "throttled",
        SubmitOutcome::Refused => "refused",
        SubmitOutcome::Unknown => "unknown",
    };
    counter!(SUBMITTED, "result" => result)
}

fn received(kind: InboundKind, outcome: HandedIn) -> Counter {
    let kind = match kind {
        InboundKind::Message => "message",
        InboundKind::Receipt => "receipt",
    };
    let result = match outcome {
        HandedIn::Stored => "stored",
        HandedIn::Unknown => "unknown",
        HandedIn::Refused => "refused",
    };
    counter!(RECEIVED, "kind" => kind, "result" => result)
}
