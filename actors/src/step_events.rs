//! What is logged of a step? Its events, under the trace of the call behind it, which its caller
//! knows.

use engine::arbiter::cell::StepReport;
use engine::ids::{DeviceKey, TraceId};
use engine::step_event::{ExchangePurpose, StepEventKind};
use tracing::{Level, Span, debug, enabled, error_span};

use crate::meters::ArbiterMeters;
use crate::meters::words;

/// Counts the events of a durable step, and logs them.
pub(crate) fn trace_events(report: &StepReport, device: DeviceKey, meters: &ArbiterMeters) {
    meters.events(&report.events);
    if !enabled!(Level::DEBUG) {
        return;
    }
    for step_event in &report.events {
        let span = step_event.trace.map_or_else(Span::current, span_of);
        span.in_scope(|| trace_event(device, step_event.kind));
    }
    for (trace, entry) in &report.entries {
        let line = "the administration log has an entry";
        span_of(*trace).in_scope(|| debug!(%device, %entry, "{line}"));
    }
}

/// The span for everything about the call with this trace. It exists at every log level, so that
/// even a single line shows which call it is about.
pub(crate) fn span_of(trace: TraceId) -> Span {
    error_span!("request", %trace)
}

fn trace_event(device: DeviceKey, what: StepEventKind) {
    match what {
        StepEventKind::Created(request) => {
            let operation = words::task(request.task);
            debug!(%device, action = %request.action, operation, "a request was created");
        }
        StepEventKind::Concluded(request, status) => {
            let status = words::status(status);
            debug!(%device, action = %request.action, status, "a request is final");
        }
        StepEventKind::Begun(ExchangePurpose::Action) => debug!(%device, "an attempt began"),
        StepEventKind::Begun(ExchangePurpose::Observation) => {
            debug!(%device, "an observation is being restarted")
        }
        StepEventKind::Begun(ExchangePurpose::FirmwareUpdate) => {
            debug!(%device, "a request of a firmware update began");
        }
        StepEventKind::Begun(ExchangePurpose::Report) => {
            debug!(%device, "passive reporting reads the device")
        }
        StepEventKind::Begun(ExchangePurpose::Bootstrap) => {
            debug!(%device, "a request of a bootstrap began")
        }
        StepEventKind::Repeated => debug!(%device, "a datagram was retransmitted"),
        StepEventKind::Acknowledged => debug!(%device, "a datagram was acknowledged"),
        StepEventKind::Ended(ending) => {
            let ending = words::ending(ending);
            debug!(%device, ending, "an exchange is over");
        }
        StepEventKind::Notified(news) => {
            let worth = words::news(news);
            debug!(%device, worth, "a notification was received");
        }
        StepEventKind::Sent(news) => {
            let worth = words::news(news);
            debug!(%device, worth, "a Send was received");
        }
        StepEventKind::DataSent(over, news) => {
            let (protocol, worth) = (words::protocol(over), words::news(news));
            debug!(%device, protocol, worth, "data was received");
        }
        StepEventKind::ObservationLost => debug!(%device, "an observation was lost"),
    }
}
