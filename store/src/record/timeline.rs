//! How is the timeline of an action request stored?

use engine::Code;
use engine::action::timeline::{Timeline, TimelineEntry, TimelineEvent};
use engine::moment::Timestamp;
use minicbor::{Decode, Encode};

use super::{Unreadable, code};

/// One entry of a timeline: when, what, the number or code that belongs to it, and the text of the
/// device.
#[derive(Decode, Encode)]
#[cbor(array)]
pub(super) struct TimelineEntryV1 {
    #[n(0)]
    at_ms: i64,
    #[n(1)]
    what: u8,
    #[n(2)]
    detail: Option<u8>,
    #[n(3)]
    diagnostic: Option<String>,
}

/// The timeline as part of a record; nothing for an empty one.
pub(super) fn timeline_records(timeline: &Timeline) -> Option<Vec<TimelineEntryV1>> {
    let happened = timeline.as_slice();
    (!happened.is_empty()).then(|| happened.iter().map(TimelineEntryV1::of).collect())
}

/// Reads a timeline.
pub(super) fn read_timeline(records: Option<Vec<TimelineEntryV1>>) -> Result<Timeline, Unreadable> {
    let happened = records.into_iter().flatten().map(TimelineEntryV1::read);
    Ok(Timeline::restored(happened.collect::<Result<_, _>>()?))
}

impl TimelineEntryV1 {
    fn of(happened: &TimelineEntry) -> Self {
        let (what, detail) = match happened.what {
            TimelineEvent::AttemptBegun(number) => (1, Some(number)),
            TimelineEvent::DatagramSent => (2, None),
            TimelineEvent::DatagramRepeated => (3, None),
            TimelineEvent::Acknowledged => (4, None),
            TimelineEvent::Answered(code) => (5, Some(code.as_byte())),
            TimelineEvent::Rejected => (6, None),
            TimelineEvent::GaveUp => (7, None),
            TimelineEvent::AttributesWritten(code) => (9, Some(code.as_byte())),
            TimelineEvent::Waiting(why) => (8, Some(code::of_wait_reason(why))),
        };
        Self {
            at_ms: happened.at.as_ms(),
            what,
            detail,
            diagnostic: happened.diagnostic.as_deref().map(str::to_owned),
        }
    }

    fn read(self) -> Result<TimelineEntry, Unreadable> {
        let what = match (self.what, self.detail) {
            (1, Some(number)) => TimelineEvent::AttemptBegun(number),
            (2, None) => TimelineEvent::DatagramSent,
            (3, None) => TimelineEvent::DatagramRepeated,
            (4, None) => TimelineEvent::Acknowledged,
            (5, Some(code)) => TimelineEvent::Answered(Code::from_byte(code)),
            (6, None) => TimelineEvent::Rejected,
            (7, None) => TimelineEvent::GaveUp,
            (9, Some(code)) => TimelineEvent::AttributesWritten(Code::from_byte(code)),
            (8, Some(why)) => TimelineEvent::Waiting(code::wait_reason(why)?),
            _ => return Err(Unreadable::Damaged("an unknown kind of happening")),
        };
        Ok(TimelineEntry {
            at: Timestamp::from_ms(self.at_ms),
            what,
            diagnostic: self.diagnostic.map(Into::into),
        })
    }
}
