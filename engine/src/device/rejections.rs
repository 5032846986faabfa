//! Which rejected messages of a device are not in its customer's log yet?
//!
//! One message is logged per [`REJECTION_LOG_MS`], so that a stranger who knows a device cannot
//! fill the log. Of those in between, the last one is kept and the others are counted: both are
//! logged at the end of the interval, even if nothing more is rejected. Then the device may be
//! unloaded.

use protocol::coap::code::Code;
use protocol::coap::message::Message;
use protocol::lwm2m::registration::RegistrationRefusal;

use crate::limits::REJECTION_LOG_MS;
use crate::moment::Timestamp;
use crate::peer::Peer;
use crate::route::DeviceOperation;

/// The characters of a parameter that a log entry quotes.
const QUOTED_CHARS_MAX: usize = 64;

/// A message that was rejected, as the log describes it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RejectedMessage {
    /// What the sender wanted.
    pub operation: DeviceOperation,
    /// Where the message came from.
    pub from: Peer,
    /// Where the device was registered at that time.
    pub registered_at: Option<Peer>,
    /// The code of the answer; none if there was none.
    pub answer: Option<Code>,
    /// What was expected, and what came instead.
    pub why: Box<str>,
}

/// Rejected messages that are not logged one by one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnloggedRejections {
    /// How many.
    pub count: u32,
    /// When the first of them was received.
    pub since: Timestamp,
}

/// What was logged lately, and what has yet to be.
#[derive(Default)]
pub(super) struct RejectionTally {
    logged_at: Option<Timestamp>,
    unlogged: Option<Box<(RejectedMessage, UnloggedRejections)>>,
}

impl RejectionTally {
    /// Takes a rejected message. Returns it if it has to be logged now, with those before it that
    /// were not.
    pub(super) fn take(
        &mut self,
        now: Timestamp,
        rejected: RejectedMessage,
    ) -> Option<(RejectedMessage, Option<UnloggedRejections>)> {
        if self.may_log(now) {
            self.logged_at = Some(now);
            let unlogged = self.unlogged.take().map(|unlogged| unlogged.1);
            return Some((rejected, unlogged));
        }
        let none = UnloggedRejections {
            count: 0,
            since: now,
        };
        let mut unlogged = self.unlogged.take().map_or(none, |before| before.1);
        unlogged.count = unlogged.count.saturating_add(1);
        self.unlogged = Some(Box::new((rejected, unlogged)));
        None
    }

    /// Ends the interval if it is over. Returns the last message that was not logged in it, with
    /// the others; it has to be logged now.
    pub(super) fn end(
        &mut self,
        now: Timestamp,
    ) -> Option<(RejectedMessage, Option<UnloggedRejections>)> {
        if self.until().is_none_or(|until| now < until) {
            return None;
        }
        self.logged_at = None;
        let (last, mut others) = *self.unlogged.take()?;
        self.logged_at = Some(now);
        others.count -= 1;
        Some((last, (others.count > 0).then_some(others)))
    }

    /// When the interval ends; none if nothing was logged lately.
    pub(super) fn until(&self) -> Option<Timestamp> {
        self.logged_at.map(|at| at.plus_ms(REJECTION_LOG_MS))
    }

    fn may_log(&self, now: Timestamp) -> bool {
        let is_apart = |at: Timestamp| !(0..REJECTION_LOG_MS).contains(&now.since_ms(at));
        self.logged_at.is_none_or(is_apart)
    }
}

/// What is wrong with a registration or update, and what the device sent instead.
pub(super) fn registration_fault(refusal: RegistrationRefusal, message: &Message) -> String {
    let sent = match refusal {
        RegistrationRefusal::Links(_) => {
            let start = message.payload.get(..4 * QUOTED_CHARS_MAX);
            let start = start.unwrap_or(&message.payload);
            Some(quoted(&String::from_utf8_lossy(start)))
        }
        RegistrationRefusal::UnsupportedVersion
        | RegistrationRefusal::MissingEndpoint
        | RegistrationRefusal::EndpointTooLong
        | RegistrationRefusal::InvalidLifetime
        | RegistrationRefusal::InvalidBinding
        | RegistrationRefusal::SmsTooLong
        | RegistrationRefusal::Repeated => {
            let is_it = |query: &&str| query.split('=').next() == refusal.parameter();
            message.uri_query().find(is_it).map(quoted)
        }
    };
    match sent {
        Some(sent) => format!("{refusal}; it has {sent}"),
        None => refusal.to_string(),
    }
}

/// The beginning of what a device sent, for a log entry.
pub(super) fn quoted(text: &str) -> String {
    let start: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    format!("{start:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rejection_is_logged_or_counted_once() {
        let mut tally = RejectionTally::default();
        let first = tally.take(at(0), rejected(0));
        assert_eq!(first, Some((rejected(0), None)));
        for s in [1, 2, 3] {
            assert_eq!(tally.take(at(s), rejected(s)), None);
        }
        assert_eq!(tally.until(), Some(at(60)));
        assert_eq!(tally.end(at(59)), None);
        let others = Some(UnloggedRejections {
            count: 2,
            since: at(1),
        });
        assert_eq!(tally.end(at(60)), Some((rejected(3), others)));
        assert_eq!(
            tally.take(at(61), rejected(61)),
            None,
            "it was logged just now"
        );
        assert_eq!(tally.end(at(120)), Some((rejected(61), None)));
        assert_eq!(tally.end(at(180)), None);
        assert_eq!(tally.until(), None);
    }

    #[test]
    fn a_rejection_after_the_interval_names_those_before_it() {
        let mut tally = RejectionTally::default();
        tally.take(at(0), rejected(0));
        tally.take(at(1), rejected(1));
        let before = Some(UnloggedRejections {
            count: 1,
            since: at(1),
        });
        let logged = tally.take(at(60), rejected(60));
        assert_eq!(logged, Some((rejected(60), before)));
        assert_eq!(tally.end(at(120)), None);
    }

    #[test]
    fn a_clock_that_goes_back_does_not_keep_rejections_from_the_log() {
        let mut tally = RejectionTally::default();
        tally.take(at(100), rejected(100));
        assert!(tally.take(at(10), rejected(10)).is_some());
    }

    fn at(s: i64) -> Timestamp {
        Timestamp::from_ms(1_700_000_000_000).plus_s(s)
    }

    fn rejected(s: i64) -> RejectedMessage {
        RejectedMessage {
            operation: DeviceOperation::Register,
            from: Peer::plain("10.0.0.2:5683".parse().unwrap()),
            registered_at: None,
            answer: Some(Code::FORBIDDEN),
            why: format!("it came at {s}").into(),
        }
    }
}
