//! Which formats does a device refuse, and how is it asked then? A refusal (4.06, 4.15) is no
//! answer yet: the attempt goes on with the next format (LwM2M Core 1.2 section 7.4).

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;
use protocol::lwm2m::operation::{self, PlannedWrite};
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::formats::{self, FORMATS};
use protocol::lwm2m::value::Value;

use crate::action::timeline::Stage;
use crate::device::Device;
use crate::device::asking::Leaving;
use crate::device::attempt::Target;
use crate::device::queue::{Failure, Unfit};
use crate::effect::Effects;
use crate::ids::ActionId;
use crate::moment::Moment;

const _: () = assert!(
    FORMATS.len() <= u16::BITS as usize,
    "each format has a bit of a set"
);

/// A set of formats, each with the bit of its place among all, in two bytes: each device has one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct FormatSet(u16);

impl FormatSet {
    /// The formats of both.
    pub(super) fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Puts a format among the others.
    pub(super) fn add(&mut self, format: ContentFormat) {
        self.0 |= mask_of(format);
    }

    /// Whether the format is among them.
    pub(super) fn has(self, format: ContentFormat) -> bool {
        self.0 & mask_of(format) != 0
    }
}

/// The bit of a format; none for one that is never asked for.
fn mask_of(format: ContentFormat) -> u16 {
    let place = FORMATS.iter().position(|known| *known == format);
    place.map_or(0, |place| 1 << place)
}

impl Device {
    /// Goes on with the next format if the device refuses the one that was asked for or written,
    /// and says whether there is one. What it refuses it is not asked again until it registers
    /// anew.
    pub(super) fn ask_otherwise(&mut self, m: &mut Moment, code: Code, out: &mut Effects) -> bool {
        if ![Code::NOT_ACCEPTABLE, Code::UNSUPPORTED_CONTENT_FORMAT].contains(&code) {
            return false;
        }
        let Some(attempt) = self.attempt_mut() else {
            return false;
        };
        let Some(format) = attempt.format() else {
            return false;
        };
        let (target, to) = (attempt.target(), attempt.to);
        attempt.refused.add(format);
        let refused = attempt.refused;
        self.refused.add(format);
        let Some(message) = self.message_otherwise(m, target, refused) else {
            return false;
        };
        self.note_in_flight(m.now(), Stage::Answered(code));
        self.note_in_flight(m.now(), Stage::DatagramSent);
        let trace = self.trace_in_flight();
        self.begin_exchange(m, (target, trace), (to, message), out);
        if let Some(attempt) = self.attempt_mut() {
            attempt.refused = refused;
        }
        true
    }

    /// The message that asks for the same in a format that was not refused in this attempt.
    fn message_otherwise(
        &mut self,
        m: &mut Moment,
        target: Target,
        refused: FormatSet,
    ) -> Option<Message> {
        match target {
            Target::Action(id) => self.action_otherwise(m, id, refused),
            Target::Observation(path) => self.observe_again(m, path, refused),
            Target::Report(part) => self.message_of_part(m, part, refused),
            // It is asked for in the format it came in.
            Target::Notification(_) => None,
        }
    }

    fn action_otherwise(
        &mut self,
        m: &mut Moment,
        id: ActionId,
        refused: FormatSet,
    ) -> Option<Message> {
        let index = self.position_of(id)?;
        let action = self.pending().get(index)?.action.clone();
        match self.leaving_of(m, &action, refused) {
            Ok(Leaving::Message(message)) => Some(message),
            Ok(Leaving::Bytes(_)) | Err(_) => None,
        }
    }

    /// The format to ask for the values of a path in: the best of those that the device does not
    /// refuse, and did not in this attempt. If it refuses them all it may answer as it likes.
    pub(super) fn format_to_read(&self, path: Path, refused: FormatSet) -> Option<ContentFormat> {
        let object = self.object_at(path.object_id());
        let wanted = formats::formats_to_read(path, object, self.announced(), self.enabler());
        let refused = self.refused.with(refused);
        wanted.iter().find(|format| !refused.has(*format))
    }

    /// How to write a value: in the best of the formats that the device did not refuse in this
    /// attempt, and if there is one, in one that it did not refuse before either.
    pub(super) fn planned_write(
        &self,
        path: Path,
        value: &Value,
        refused: FormatSet,
    ) -> Result<PlannedWrite, Unfit> {
        let resource = self.resource_at(path);
        let wanted =
            formats::formats_to_write(path, resource, value, self.announced(), self.enabler());
        let before = self.refused.with(refused);
        let best = |refused: FormatSet| wanted.iter().find(|format| !refused.has(*format));
        let format = best(before).or_else(|| best(refused));
        let planned = format.and_then(|format| {
            operation::plan_write(self.enabler(), path, resource, value, format).ok()
        });
        planned.ok_or_else(|| Unfit {
            failure: Failure::Refused,
            why: format!("no format is left to write {path} in"),
        })
    }

    /// The formats the device says it has.
    pub(super) fn announced(&self) -> &[u16] {
        let registration = self.record.registration.as_ref();
        registration.map_or(&[][..], |r| r.links.content_formats())
    }
}

/// The format that a device may refuse a request for: the one its answer is to have, or the one of
/// the value in it. One without a place could not be remembered, and would be asked for for ever.
pub(super) fn format_in(message: &Message) -> Option<ContentFormat> {
    let of_value = message.content_format();
    let named = message
        .accept()
        .or(of_value.filter(|_| message.code == Code::PUT));
    named.filter(|format| mask_of(*format) != 0)
}
