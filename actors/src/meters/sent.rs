//! What are the metrics of the sockets of a thread?

use engine::dispatch::datagram_form::DatagramForm;
use metrics::counter;

use super::family::{Count, DatagramCounts};
use super::words;

/// What left through the sockets of a thread. The thread has the number of its first arbiter if
/// each has a thread of its own.
pub(crate) struct SentMeters {
    /// Datagrams the kernel accepted.
    pub(crate) sent: DatagramCounts,
    /// Datagrams it did not accept.
    pub(crate) unsent: Count,
}

impl SentMeters {
    /// The metrics of a thread, all at zero.
    pub(crate) fn of(thread: u16) -> Self {
        words::describe();
        let thread = thread.to_string();
        let ours = DatagramForm::all().filter(|it| it.can_be_ours());
        Self {
            sent: DatagramCounts::new(words::SENT, &thread, ours),
            unsent: Count::new(counter!(words::UNSENT, "arbiter" => thread)),
        }
    }

    /// Publishes the counts.
    pub(crate) fn publish(&self) {
        self.sent.publish();
        self.unsent.publish();
    }
}
