//! What happened to a request so far: each attempt, datagram and answer, with its time.
//!
//! The timeline is stored with the request. What happens between two saves (a retransmission, an
//! acknowledgement) is stored with the later one.

use protocol::coap::code::Code;

use crate::limits::TIMELINE_MAX;
use crate::moment::Timestamp;

/// What happened to a request so far, oldest first.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Timeline(Vec<TimelineEntry>);

/// One thing that happened.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TimelineEntry {
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub what: TimelineEvent,
    /// The diagnostic text of an answer that is an error (RFC 7252 section 5.5.2).
    pub diagnostic: Option<Box<str>>,
}

/// Why a request is not sent yet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WaitReason {
    /// Another request is in flight.
    Request,
    /// A read for passive reporting is in flight.
    PassiveReporting,
    /// An observation is being renewed.
    Observation,
    /// The further blocks of a notification are being requested.
    Notification,
    /// The device is being bootstrapped.
    Bootstrap,
    /// The device sleeps.
    Asleep,
    /// The device is not registered.
    Unregistered,
    /// It waits for the next uplink.
    Uplink,
    /// The time before which it must not be sent is still to come.
    NotBefore,
    /// A request of a firmware update is in flight.
    FirmwareUpdate,
}

/// What can happen to a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimelineEvent {
    /// It could not be sent at once.
    Waiting(WaitReason),
    /// An attempt began; the first has number 1.
    AttemptBegun(u8),
    /// The datagram of the attempt was sent.
    DatagramSent,
    /// It was not acknowledged in time and was retransmitted (RFC 7252 section 4.2).
    DatagramRepeated,
    /// The device acknowledged it and answers later (RFC 7252 section 5.2.2).
    Acknowledged,
    /// The device took the attributes of an observation, which is requested next.
    AttributesWritten(Code),
    /// The device answered.
    Answered(Code),
    /// The device rejected the message (RFC 7252 section 4.2).
    Rejected,
    /// The attempt ended without an answer.
    GaveUp,
}

impl TimelineEvent {
    /// Whether it neither begins nor ends an attempt.
    fn is_in_the_middle(self) -> bool {
        match self {
            Self::DatagramRepeated | Self::Acknowledged => true,
            Self::Waiting(_)
            | Self::AttemptBegun(_)
            | Self::DatagramSent
            | Self::AttributesWritten(_)
            | Self::Answered(_)
            | Self::Rejected
            | Self::GaveUp => false,
        }
    }
}

impl Timeline {
    /// The timeline as it was stored.
    pub fn restored(entries: Vec<TimelineEntry>) -> Self {
        Self(entries)
    }

    /// Adds an entry. At the bound, retransmissions and acknowledgements are no longer added: an
    /// operator that configures so many retransmissions does not miss one. Attempts have a bound of
    /// their own.
    pub fn note(&mut self, at: Timestamp, what: TimelineEvent) {
        if self.0.len() < TIMELINE_MAX || !what.is_in_the_middle() {
            self.push(at, what, None);
        }
    }

    /// Adds an answer that is an error, with its diagnostic text.
    pub fn note_error(&mut self, at: Timestamp, code: Code, diagnostic: Option<Box<str>>) {
        self.push(at, TimelineEvent::Answered(code), diagnostic);
    }

    /// What happened, oldest first.
    pub fn as_slice(&self) -> &[TimelineEntry] {
        &self.0
    }

    fn push(&mut self, at: Timestamp, what: TimelineEvent, diagnostic: Option<Box<str>>) {
        self.0.push(TimelineEntry {
            at,
            what,
            diagnostic,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeline_is_in_order_and_a_full_one_still_records_the_end() {
        let mut timeline = Timeline::default();
        timeline.note(Timestamp::from_ms(1), TimelineEvent::AttemptBegun(1));
        timeline.note(Timestamp::from_ms(1), TimelineEvent::DatagramSent);
        for ms in 0..500 {
            timeline.note(Timestamp::from_ms(ms), TimelineEvent::DatagramRepeated);
        }
        timeline.note(Timestamp::from_ms(500), TimelineEvent::GaveUp);
        let entries = timeline.as_slice();
        assert_eq!(entries.len(), TIMELINE_MAX + 1);
        assert_eq!(
            entries.first().unwrap().what,
            TimelineEvent::AttemptBegun(1)
        );
        assert_eq!(
            entries.last().unwrap().what,
            TimelineEvent::GaveUp,
            "an end is noted"
        );
    }
}
