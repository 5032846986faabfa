//! The metrics of jobs.

use metrics::{Counter, Gauge, counter, describe_counter, describe_gauge, gauge};

const RUNNING: &str = "signalbox_jobs_running";
const DEVICES: &str = "signalbox_job_devices_total";

/// The metrics of all jobs together.
pub(super) struct JobMeters {
    pub(super) running: Gauge,
    pub(super) accepted: Counter,
    pub(super) rejected: Counter,
}

impl JobMeters {
    pub(super) fn new() -> Self {
        describe_gauge!(RUNNING, "Jobs that are running.");
        describe_counter!(
            DEVICES,
            "Devices of jobs by result: accepted, with a request, or rejected."
        );
        Self {
            running: gauge!(RUNNING),
            accepted: counter!(DEVICES, "result" => "accepted"),
            rejected: counter!(DEVICES, "result" => "rejected"),
        }
    }
}
