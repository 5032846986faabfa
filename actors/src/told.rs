//! What is the operator told of a step? What came of it, under the trace of the call behind it, by
//! which its caller knows it.

use engine::arbiter::cell::StepReport;
use engine::ids::{DeviceKey, TraceId};
use engine::occurrence::{Purpose, What};
use tracing::{Level, Span, debug, enabled, error_span};

use crate::meters::Meters;
use crate::meters::words;

/// Counts what happened in a step that is durable, and tells it.
pub(crate) fn tell(report: &StepReport, device: DeviceKey, meters: &Meters) {
    meters.occurred(&report.occurred);
    if !enabled!(Level::DEBUG) {
        return;
    }
    for occurrence in &report.occurred {
        let span = occurrence.trace.map_or_else(Span::current, span_of);
        span.in_scope(|| tell_one(device, occurrence.what));
    }
    for (trace, entry) in &report.entries {
        let line = "the administration log has an entry";
        span_of(*trace).in_scope(|| debug!(%device, %entry, "{line}"));
    }
}

/// What concerns the call with this trace is told in this span. It is there whatever is logged, so
/// that the one line there may be says which call it is about.
pub(crate) fn span_of(trace: TraceId) -> Span {
    error_span!("request", %trace)
}

fn tell_one(device: DeviceKey, what: What) {
    match what {
        What::Created(asked) => {
            let operation = words::task(asked.task);
            debug!(%device, action = %asked.action, operation, "a request was created");
        }
        What::Concluded(asked, status) => {
            let status = words::status(status);
            debug!(%device, action = %asked.action, status, "a request is final");
        }
        What::Removed(asked) => {
            debug!(%device, action = %asked.action, "a request was deleted with its device");
        }
        What::Begun(Purpose::Action) => debug!(%device, "an attempt began"),
        What::Begun(Purpose::Observation) => debug!(%device, "an observation is being restarted"),
        What::Begun(Purpose::Report) => debug!(%device, "passive reporting reads the device"),
        What::Repeated => debug!(%device, "a datagram was retransmitted"),
        What::Acknowledged => debug!(%device, "a datagram was acknowledged"),
        What::Ended(ending) => {
            let ending = words::ending(ending);
            debug!(%device, ending, "an exchange is over");
        }
        What::Notified(news) => {
            let worth = words::news(news);
            debug!(%device, worth, "a notification was received");
        }
        What::Sent(news) => {
            let worth = words::news(news);
            debug!(%device, worth, "a Send was received");
        }
        What::DataSent(over, news) => {
            let (protocol, worth) = (words::protocol(over), words::news(news));
            debug!(%device, protocol, worth, "data was received");
        }
        What::ObservationLost => debug!(%device, "an observation was lost"),
    }
}
