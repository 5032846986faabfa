//! What is read of a device whenever it registers or updates its registration, where its customer
//! wants that: its objects, one after the other, or all at once where it can be asked so (LwM2M
//! Core 1.2 sections 6.3.2 and 6.3.8).
//!
//! ```text
//!           registers, updates           every object was asked for
//!  (none) ----------------------> Round ----------------------------> (none)
//!                                 |   ^
//!                                 +---+ updated meanwhile: once more
//! ```
//!
//! Nothing of it is kept: what is left of a round is dropped when the device falls silent or
//! asleep, when its registration ends and when the service stops. The next update begins another.

mod capabilities;

use protocol::coap::code::Code;
use protocol::coap::message::Message;
use protocol::lwm2m::links::OfferedObject;
use protocol::lwm2m::operation;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::Scope;

use crate::admin_log::entry::Entry;
use crate::device::context::Context;
use crate::device::exchange::{ExchangeTarget, ReadPart};
use crate::device::formats::FormatSet;
use crate::device::ingest::Ingest;
use crate::device::observations::Observations;
use crate::device::samples::Measurement;
use crate::event::Cause;
use crate::limits::{REPORT_FAILURE_LOG_MS, REPORT_OBJECTS_MAX, REPORT_SILENCES_MAX};
use crate::moment::Timestamp;
use crate::setting::SettingState;

pub(super) use capabilities::LearnedCapabilities;

/// Objects that are never read: 1, 2 and 3 as the seed says (section 1.3); 0 and 21 hold the keys
/// of the device, which nobody may read.
const UNREAD: [u16; 5] = [0, 1, 2, 3, 21];

/// What is to be read of a device because it registered or updated its registration.
pub(super) struct Round {
    /// The objects that were not asked for yet, the next one last.
    left: Vec<u16>,
    then: NextRound,
    heard: RoundAnswer,
}

/// Whether the device answered any part of a round.
#[derive(Clone, Copy, Eq, PartialEq)]
enum RoundAnswer {
    Nothing,
    Something,
}

/// What follows a round.
enum NextRound {
    Rest,
    /// The device updated its registration meanwhile. However often it did, one more round says
    /// what is so by now.
    Again,
}

/// What is read, and what was learned while it was.
pub(super) struct PassiveReading<'s> {
    capabilities: &'s mut LearnedCapabilities,
    round: &'s mut Option<Box<Round>>,
}

impl<'s> PassiveReading<'s> {
    pub(super) fn new(
        learned: &'s mut LearnedCapabilities,
        round: &'s mut Option<Box<Round>>,
    ) -> Self {
        Self {
            capabilities: learned,
            round,
        }
    }

    /// The device registered or updated its registration: its objects are to be read, or, if they
    /// are just being read, read once more.
    pub(super) fn renew(&mut self, cx: &Context<'_>) {
        match (cx.policy.passive_reporting, self.round.as_mut()) {
            (SettingState::Disabled, _) => {}
            (SettingState::Enabled, Some(round)) => round.then = NextRound::Again,
            (SettingState::Enabled, None) => self.begin(cx),
        }
    }

    /// What is to be asked next, and how.
    pub(super) fn next_request(
        &mut self,
        cx: &mut Context<'_>,
        observations: &Observations<'_>,
    ) -> Option<(ExchangeTarget, Message)> {
        while let Some(part) = self.next_part(cx) {
            let refused = FormatSet::default();
            if let Some(message) = self.message_of(cx, observations, (part, refused)) {
                return Some((ExchangeTarget::Report(part), message));
            }
        }
        None
    }

    /// The message that asks for a part of a round, in none of the formats the device refused in
    /// this attempt; none if it cannot be asked for so.
    pub(super) fn message_of(
        &mut self,
        cx: &mut Context<'_>,
        observations: &Observations<'_>,
        (part, refused): (ReadPart, FormatSet),
    ) -> Option<Message> {
        let label = observations.label(cx);
        let codec = cx.codec();
        match part {
            ReadPart::Object(id) => {
                let path = Path::object(id);
                let format = codec.format_to_read(path, refused);
                Some(operation::read(label, codec.root(), path, format))
            }
            ReadPart::Rest => {
                let left = self.round.as_ref().map_or(&[][..], |round| &round.left);
                let paths: Vec<Path> = left.iter().rev().map(|id| Path::object(*id)).collect();
                let format = self.capabilities.format_to_compose(codec, refused);
                let compose = |format| {
                    operation::read_composite(label, codec.root(), &paths, format, format).ok()
                };
                let message = format.and_then(compose);
                if message.is_none() {
                    self.capabilities.stop_composing();
                }
                message
            }
        }
    }

    /// Takes the answer to a part of a round. Its values are those of the objects asked for, as
    /// far as more are taken of the device by now.
    pub(super) fn answered(
        &mut self,
        cx: &mut Context<'_>,
        ingest: &mut Ingest<'_>,
        (part, answer): (ReadPart, &Message),
    ) {
        let asked = match part {
            ReadPart::Object(id) => Scope::Within(Path::object(id)),
            ReadPart::Rest => Scope::All,
        };
        let read = cx.codec().values_in(cx.now(), asked, answer);
        self.note_heard(part);
        let Some(round) = self.round.as_mut() else {
            return;
        };
        match (part, read) {
            (ReadPart::Object(_), Ok(told)) => self.report(cx, ingest, told),
            (ReadPart::Rest, Ok(mut told)) => {
                let asked = std::mem::take(&mut round.left);
                let is_asked = |path: &Path| asked.contains(&path.object_id());
                told.iter_mut()
                    .for_each(|told| told.values.retain(|path, _| is_asked(path)));
                told.retain(|told| !told.values.is_empty());
                self.report(cx, ingest, told);
            }
            (ReadPart::Object(id), Err(why)) => {
                self.note_unread(cx, id, &why, Some(&answer.payload));
            }
            // One by one, it shows of which object it is.
            (ReadPart::Rest, Err(_)) => self.capabilities.stop_composing(),
        }
    }

    /// Takes the device's refusal of a part of a round. That an object is not there, or not to be
    /// read, is nothing to tell anybody. What is not to be read, or in no format, is not asked for
    /// again.
    pub(super) fn refused(
        &mut self,
        cx: &mut Context<'_>,
        part: ReadPart,
        (code, why): (Code, &str),
    ) {
        self.note_heard(part);
        let id = match part {
            ReadPart::Object(id) => id,
            ReadPart::Rest => return self.capabilities.stop_composing(),
        };
        match code {
            Code::NOT_FOUND => {}
            Code::METHOD_NOT_ALLOWED => self.capabilities.refuse(id),
            Code::NOT_ACCEPTABLE | Code::UNSUPPORTED_CONTENT_FORMAT => {
                self.note_unread(cx, id, why, None);
                self.capabilities.refuse(id);
            }
            _ => self.note_unread(cx, id, why, None),
        }
    }

    /// Takes it that the device does not answer a part of a round now, and says so.
    pub(super) fn missed(&mut self, cx: &mut Context<'_>, part: ReadPart, why: &str) {
        self.note_heard(part);
        match part {
            ReadPart::Object(id) => self.note_unread(cx, id, why, None),
            ReadPart::Rest => self.capabilities.stop_composing(),
        }
    }

    /// Takes it that the device is silent about a part of a round since it was asked.
    ///
    /// An object it is silent about comes last from then on: it must not keep the others from
    /// being read. If the device is heard otherwise, it is the object that fails; if not, the
    /// device may be gone. Of what fails so again and again it is not asked any more.
    pub(super) fn unanswered(
        &mut self,
        cx: &mut Context<'_>,
        (part, asked_at): (ReadPart, Timestamp),
        why: &str,
    ) {
        let id = match part {
            ReadPart::Object(id) => id,
            ReadPart::Rest => return self.capabilities.stop_composing(),
        };
        let Some(round) = self.round.as_ref() else {
            return;
        };
        if round.heard == RoundAnswer::Nothing && !cx.registration.is_heard_since(asked_at) {
            return self.capabilities.ask_last(id);
        }
        if self.capabilities.count_silence(id) >= REPORT_SILENCES_MAX {
            self.capabilities.refuse(id);
        }
        self.note_unread(cx, id, why, None);
    }

    /// Reads no more; what is in flight is not told on.
    pub(super) fn stop(&mut self) {
        *self.round = None;
    }

    /// Ends what is read with the registration it is read for, and what was learned of it.
    pub(super) fn end_registration(&mut self) {
        self.capabilities.forget_registration();
        self.stop();
    }

    fn begin(&mut self, cx: &Context<'_>) {
        let left = self.objects_to_report(cx);
        if !left.is_empty() {
            let then = NextRound::Rest;
            let heard = RoundAnswer::Nothing;
            *self.round = Some(Box::new(Round { left, then, heard }));
        }
    }

    fn next_part(&mut self, cx: &Context<'_>) -> Option<ReadPart> {
        if let Some(over) = self.round.take_if(|round| round.left.is_empty()) {
            match over.then {
                NextRound::Rest => {}
                NextRound::Again => self.begin(cx),
            }
        }
        let round = self.round.as_mut()?;
        let format = |learned: &LearnedCapabilities| {
            learned.format_to_compose(cx.codec(), FormatSet::default())
        };
        match round.left.len() {
            2.. if format(self.capabilities).is_some() => Some(ReadPart::Rest),
            _ => round.left.pop().map(ReadPart::Object),
        }
    }

    /// Tells the values of a part of a round, unless more than that are taken of the device by
    /// now: then it is asked for nothing more either.
    fn report(&mut self, cx: &mut Context<'_>, ingest: &mut Ingest<'_>, told: Vec<Measurement>) {
        if ingest.take(cx.now(), 1) {
            ingest.count_further(cx.now(), told.iter().map(|told| told.values.len()).sum());
            cx.publish_measurements(Cause::PassiveReport, told);
        } else {
            self.stop();
        }
    }

    /// Tells the customer that an object cannot be read, but not each time: most of a fleet is of
    /// one kind and fails alike.
    fn note_unread(&mut self, cx: &mut Context<'_>, id: u16, why: &str, bytes: Option<&[u8]>) {
        if self.round.is_none() || !self.capabilities.may_log(cx.now(), REPORT_FAILURE_LOG_MS) {
            return;
        }
        let path = Path::object(id);
        cx.log(|m, seen| Entry::passive_reporting_failed(m, seen, &path, why, bytes));
    }

    /// The device answers: it is there, and if it was silent about the object, it is not any more.
    fn note_heard(&mut self, part: ReadPart) {
        if let Some(round) = self.round.as_mut() {
            round.heard = RoundAnswer::Something;
        }
        match part {
            ReadPart::Object(id) => self.capabilities.excuse_silence(id),
            ReadPart::Rest => {}
        }
    }

    /// The objects to read, the first one last.
    fn objects_to_report(&self, cx: &Context<'_>) -> Vec<u16> {
        let Some(registration) = cx.registration.registration() else {
            return Vec::new();
        };
        let links = &registration.links;
        // An object without instance has nothing to read. A list without any instance does not
        // name them: every device has one of the objects 1 and 3.
        let has_instances = |object: &OfferedObject<'_>| !object.instances.is_empty();
        let names_instances = links.objects().any(|object| has_instances(&object));
        let codec = cx.codec();
        let is_to_read = |object: &OfferedObject<'_>| {
            !UNREAD.contains(&object.id)
                && (has_instances(object) || !names_instances)
                && !self.capabilities.is_refused(object.id)
                && codec.object_at(object.id).is_none_or(|it| it.is_readable())
        };
        let objects = links.objects().filter(is_to_read);
        let mut ids: Vec<u16> = objects.map(|it| it.id).take(REPORT_OBJECTS_MAX).collect();
        ids.sort_by_key(|id| self.capabilities.is_asked_last(*id));
        ids.reverse();
        ids
    }
}
