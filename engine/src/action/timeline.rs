//! What happened to a request on its way: each attempt, each datagram and each answer, with its
//! time.
//!
//! It is kept with the request. What happens between two saves of the request (a repeated
//! datagram, an acknowledgement) is kept with the next of them.

use protocol::coap::code::Code;

use crate::limits::TIMELINE_MAX;
use crate::moment::Timestamp;

/// What happened to a request so far, oldest first.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Timeline(Vec<TimelineEntry>);

/// One thing that happened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TimelineEntry {
    /// When.
    pub at: Timestamp,
    /// What.
    pub what: TimelineEvent,
}

/// What can happen to a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimelineEvent {
    /// An attempt began: the first is number 1.
    AttemptBegun(u8),
    /// The datagram of the attempt left.
    DatagramSent,
    /// It was not acknowledged in time and left again (RFC 7252 section 4.2).
    DatagramRepeated,
    /// The device acknowledged it and answers later (RFC 7252 section 5.2.2).
    Acknowledged,
    /// The device answered.
    Answered(Code),
    /// The device rejected the message (RFC 7252 section 4.2).
    Rejected,
    /// The attempt ended without an answer.
    GaveUp,
}

impl TimelineEvent {
    /// Whether the attempt began before it and goes on after it.
    fn is_in_the_middle(self) -> bool {
        match self {
            Self::DatagramRepeated | Self::Acknowledged => true,
            Self::AttemptBegun(_)
            | Self::DatagramSent
            | Self::Answered(_)
            | Self::Rejected
            | Self::GaveUp => false,
        }
    }
}

impl Timeline {
    /// The timeline that was kept.
    pub fn restored(happened: Vec<TimelineEntry>) -> Self {
        Self(happened)
    }

    /// Notes what happened. At the bound what is in the middle of an attempt is not noted any
    /// more: who sets so many repetitions does not miss one. Attempts have a bound of their own.
    pub fn note(&mut self, at: Timestamp, what: TimelineEvent) {
        if self.0.len() < TIMELINE_MAX || !what.is_in_the_middle() {
            self.0.push(TimelineEntry { at, what });
        }
    }

    /// What happened, oldest first.
    pub fn as_slice(&self) -> &[TimelineEntry] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeline_is_in_the_order_of_what_happened_and_misses_no_end() {
        let mut timeline = Timeline::default();
        timeline.note(Timestamp::from_ms(1), TimelineEvent::AttemptBegun(1));
        timeline.note(Timestamp::from_ms(1), TimelineEvent::DatagramSent);
        for ms in 0..500 {
            timeline.note(Timestamp::from_ms(ms), TimelineEvent::DatagramRepeated);
        }
        timeline.note(Timestamp::from_ms(500), TimelineEvent::GaveUp);
        let happened = timeline.as_slice();
        assert_eq!(happened.len(), TIMELINE_MAX + 1);
        assert_eq!(
            happened.first().unwrap().what,
            TimelineEvent::AttemptBegun(1)
        );
        assert_eq!(
            happened.last().unwrap().what,
            TimelineEvent::GaveUp,
            "an end is noted"
        );
    }
}
