//! What does a thread cost? Its processor time as the kernel counts it, and the core it is pinned
//! to.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A thread of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thread {
    id: u32,
}

impl Thread {
    /// The calling thread.
    pub(crate) fn current() -> Self {
        let path = fs::read_link("/proc/thread-self").expect("the kernel is Linux");
        let id = path
            .file_name()
            .and_then(|name| name.to_str()?.parse().ok());
        Self {
            id: id.expect("the link ends with the number of the thread"),
        }
    }

    /// Its processor time; the kernel updates it at each tick, a few milliseconds apart.
    pub(crate) fn processor_time(&self) -> Duration {
        let path = format!("/proc/self/task/{}/schedstat", self.id);
        let text = fs::read_to_string(path).expect("the thread is there and the kernel counts");
        let ns = text.split(' ').next().and_then(|ns| ns.parse().ok());
        Duration::from_nanos(ns.expect("the first number is the time on a core"))
    }

    /// Pins it to one core, so that it is not moved while it is measured.
    pub(crate) fn keep_to(&self, core: u32) {
        let pinned = Command::new("taskset")
            .args(["-pc", &core.to_string(), &self.id.to_string()])
            .stdout(Stdio::null())
            .status();
        let pinned = pinned.is_ok_and(|status| status.success());
        assert!(pinned, "taskset (util-linux) keeps a thread to core {core}");
    }
}
