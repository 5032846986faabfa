//! How is it kept what happened to an action request?

use engine::Code;
use engine::action::timeline::{Happened, Stage, Timeline};
use engine::moment::Timestamp;
use minicbor::{Decode, Encode};

use super::Unreadable;

/// One thing that happened: when, what, and the number or code that goes with it.
#[derive(Decode, Encode)]
#[cbor(array)]
pub(super) struct HappenedV1 {
    #[n(0)]
    at_ms: i64,
    #[n(1)]
    what: u8,
    #[n(2)]
    detail: Option<u8>,
}

/// The timeline as part of a record; nothing while nothing happened.
pub(super) fn timeline_records(timeline: &Timeline) -> Option<Vec<HappenedV1>> {
    let happened = timeline.as_slice();
    (!happened.is_empty()).then(|| happened.iter().map(HappenedV1::of).collect())
}

/// Reads a timeline.
pub(super) fn read_timeline(records: Option<Vec<HappenedV1>>) -> Result<Timeline, Unreadable> {
    let happened = records.into_iter().flatten().map(HappenedV1::read);
    Ok(Timeline::restored(happened.collect::<Result<_, _>>()?))
}

impl HappenedV1 {
    fn of(happened: &Happened) -> Self {
        let (what, detail) = match happened.what {
            Stage::AttemptBegun(number) => (1, Some(number)),
            Stage::DatagramSent => (2, None),
            Stage::DatagramRepeated => (3, None),
            Stage::Acknowledged => (4, None),
            Stage::Answered(code) => (5, Some(code.as_byte())),
            Stage::Rejected => (6, None),
            Stage::GaveUp => (7, None),
        };
        Self {
            at_ms: happened.at.as_ms(),
            what,
            detail,
        }
    }

    fn read(self) -> Result<Happened, Unreadable> {
        let what = match (self.what, self.detail) {
            (1, Some(number)) => Stage::AttemptBegun(number),
            (2, None) => Stage::DatagramSent,
            (3, None) => Stage::DatagramRepeated,
            (4, None) => Stage::Acknowledged,
            (5, Some(code)) => Stage::Answered(Code::from_byte(code)),
            (6, None) => Stage::Rejected,
            (7, None) => Stage::GaveUp,
            _ => return Err(Unreadable::Damaged("an unknown kind of happening")),
        };
        Ok(Happened {
            at: Timestamp::from_ms(self.at_ms),
            what,
        })
    }
}
