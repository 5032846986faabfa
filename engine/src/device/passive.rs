//! Passive reporting: what is read of a device whenever it registers or updates its registration,
//! if its customer wants that. Its objects are read one after the other, or all at once if the
//! device supports that (LwM2M Core 1.2 sections 6.3.2 and 6.3.8).
//!
//! ```text
//!           registers, updates           every object was requested
//!  (none) ----------------------> Round ----------------------------> (none)
//!                                 |   ^
//!                                 +---+ updated during the round: once more
//! ```
//!
//! Nothing of it is stored, except that the device acknowledged a Read-Composite and did not answer
//! it: none is sent again until the device announces another version or other formats. What is left
//! of a round is dropped when the device falls silent or asleep, when its registration ends and
//! when the service stops. The next update begins another.

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
use crate::device::samples::ReadValues;
use crate::event::Cause;
use crate::limits::{REPORT_FAILURE_LOG_MS, REPORT_SILENCES_MAX};
use crate::moment::Timestamp;
use crate::setting::SettingState;
use crate::step_event::ExchangeOutcome;

pub(super) use capabilities::LearnedCapabilities;

/// Objects that are never read: 1, 2 and 3 as the seed says (section 1.3); 0 and 21 hold the keys
/// of the device, which nobody may read.
const UNREAD: [u16; 5] = [0, 1, 2, 3, 21];

/// One pass of reads over the objects of a device.
pub(super) struct Round {
    /// The objects that were not requested yet, the next one last.
    left: Vec<u16>,
    then: NextRound,
    answered: RoundAnswer,
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
    /// The device updated its registration during the round. However often it did, one more round
    /// reads the present values.
    Again,
}

/// The round in progress, and what was learned from earlier reads.
pub(super) struct PassiveReading<'s> {
    capabilities: &'s mut LearnedCapabilities,
    round: &'s mut Option<Box<Round>>,
}

impl<'s> PassiveReading<'s> {
    pub(super) fn new(
        capabilities: &'s mut LearnedCapabilities,
        round: &'s mut Option<Box<Round>>,
    ) -> Self {
        Self {
            capabilities,
            round,
        }
    }

    /// The device registered or updated its registration: a round begins, or, if one is in
    /// progress, another follows.
    pub(super) fn renew(&mut self, cx: &mut Context<'_>) {
        match (cx.policy.passive_reporting, self.round.as_mut()) {
            (SettingState::Disabled, _) => {}
            (SettingState::Enabled, Some(round)) => round.then = NextRound::Again,
            (SettingState::Enabled, None) => self.begin(cx),
        }
    }

    /// The next request to the device.
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

    /// The message that requests a part of a round, in none of the formats the device refused in
    /// this attempt; none if the device does not support such a request.
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

    /// Handles the answer to a part of a round. Only values of the requested objects are published,
    /// as far as the rate of the device permits.
    pub(super) fn answered(
        &mut self,
        cx: &mut Context<'_>,
        ingest: &mut Ingest<'_>,
        (part, answer): (ReadPart, &Message),
    ) {
        let scope = match part {
            ReadPart::Object(id) => Scope::Within(Path::object(id)),
            ReadPart::Rest => Scope::All,
        };
        let read = cx.codec().values_in(cx.now(), scope, answer);
        self.note_answered(part);
        let Some(round) = self.round.as_mut() else {
            return;
        };
        match (part, read) {
            (ReadPart::Object(_), Ok(read)) => self.report(cx, ingest, (read, answer)),
            (ReadPart::Rest, Ok(mut read)) => {
                let requested = std::mem::take(&mut round.left);
                read.retain(|path| requested.contains(&path.object_id()));
                self.report(cx, ingest, (read, answer));
            }
            (ReadPart::Object(id), Err(why)) => {
                self.note_unread(cx, id, &why, Some(&answer.payload));
            }
            // Read one by one, the objects show which of them cannot be decoded.
            (ReadPart::Rest, Err(_)) => self.capabilities.stop_composing(),
        }
    }

    /// Handles a refusal of a part of a round. An object that does not exist, or must not be read,
    /// is not logged. An object that must not be read, or is available in no format, is not
    /// requested again.
    pub(super) fn refused(
        &mut self,
        cx: &mut Context<'_>,
        part: ReadPart,
        (code, why): (Code, &str),
    ) {
        self.note_answered(part);
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

    /// Handles a temporary failure of a part of a round, and logs it.
    pub(super) fn missed(&mut self, cx: &mut Context<'_>, part: ReadPart, why: &str) {
        self.note_answered(part);
        match part {
            ReadPart::Object(id) => self.note_unread(cx, id, why, None),
            ReadPart::Rest => self.capabilities.stop_composing(),
        }
    }

    /// Handles a missing answer to a part of a round.
    ///
    /// The object without an answer is requested last from then on: it must not keep the others
    /// from being read. If anything else was received from the device, the object failed; if not,
    /// the device may be gone. An object that fails like this repeatedly is not requested again.
    pub(super) fn unanswered(
        &mut self,
        cx: &mut Context<'_>,
        (part, requested_at): (ReadPart, Timestamp),
        (ending, why): (ExchangeOutcome, &str),
    ) {
        let id = match part {
            ReadPart::Object(id) => id,
            // It acknowledged the request: it is there, and does not answer such requests.
            ReadPart::Rest if ending == ExchangeOutcome::NotAnswered => {
                return cx.registration.note_composite_unanswered();
            }
            ReadPart::Rest => return self.capabilities.stop_composing(),
        };
        let Some(round) = self.round.as_ref() else {
            return;
        };
        if round.answered == RoundAnswer::Nothing && !cx.registration.is_seen_since(requested_at) {
            return self.capabilities.read_last(id);
        }
        if self.capabilities.count_silence(id) >= REPORT_SILENCES_MAX {
            self.capabilities.refuse(id);
        }
        self.note_unread(cx, id, why, None);
    }

    /// Ends the round; the answer to a read in flight is not published.
    pub(super) fn stop(&mut self) {
        *self.round = None;
    }

    /// Ends the round with its registration, and forgets what was learned about it.
    pub(super) fn end_registration(&mut self) {
        self.capabilities.forget_registration();
        self.stop();
    }

    fn begin(&mut self, cx: &mut Context<'_>) {
        let left = self.objects_of_round(cx);
        if !left.is_empty() {
            let then = NextRound::Rest;
            let answered = RoundAnswer::Nothing;
            *self.round = Some(Box::new(Round {
                left,
                then,
                answered,
            }));
        }
    }

    fn next_part(&mut self, cx: &mut Context<'_>) -> Option<ReadPart> {
        if let Some(over) = self.round.take_if(|round| round.left.is_empty()) {
            match over.then {
                NextRound::Rest => {}
                NextRound::Again => self.begin(cx),
            }
        }
        let round = self.round.as_mut()?;
        let format = |capabilities: &LearnedCapabilities| {
            capabilities.format_to_compose(cx.codec(), FormatSet::default())
        };
        match round.left.len() {
            2.. if format(self.capabilities).is_some() => Some(ReadPart::Rest),
            _ => round.left.pop().map(ReadPart::Object),
        }
    }

    /// Publishes the values of a part of a round. If the rate of the device is exceeded, they are
    /// dropped and the round ends. Values that cannot be read are logged as rarely as objects that
    /// cannot.
    fn report(
        &mut self,
        cx: &mut Context<'_>,
        ingest: &mut Ingest<'_>,
        (read, answer): (ReadValues, &Message),
    ) {
        if !ingest.take(cx, 1) {
            return self.stop();
        }
        ingest.count_further(cx, read.count());
        cx.publish_measurements(Cause::PassiveReport, read.measurements);
        if !read.unreadable.is_empty() && self.capabilities.may_log(cx.now(), REPORT_FAILURE_LOG_MS)
        {
            let what = "a response to passive reporting";
            ingest.name_unreadable(cx, (what, &answer.payload), &read.unreadable);
        }
    }

    /// Logs that an object cannot be read, but not each time: most devices of a fleet are of one
    /// kind and fail alike.
    fn note_unread(&mut self, cx: &mut Context<'_>, id: u16, why: &str, bytes: Option<&[u8]>) {
        if self.round.is_none() || !self.capabilities.may_log(cx.now(), REPORT_FAILURE_LOG_MS) {
            return;
        }
        let path = Path::object(id);
        let bytes = bytes.and_then(|bytes| cx.within_log_quota(bytes));
        cx.log(|m, sighting| Entry::passive_reporting_failed(m, sighting, &path, why, bytes));
    }

    /// Notes that the device answered: it is there, and no longer silent about the object.
    fn note_answered(&mut self, part: ReadPart) {
        if let Some(round) = self.round.as_mut() {
            round.answered = RoundAnswer::Something;
        }
        match part {
            ReadPart::Object(id) => self.capabilities.reset_silence(id),
            ReadPart::Rest => {}
        }
    }

    /// The objects to read in a round, the first one last.
    fn objects_of_round(&mut self, cx: &mut Context<'_>) -> Vec<u16> {
        let mut ids = self.objects_to_read(cx);
        let max = cx.rules().limits.passive_objects_max;
        if ids.len() > max {
            let next = self.capabilities.next_in_turn();
            let first = ids.partition_point(|id| *id < next) % ids.len();
            ids.rotate_left(first);
            let later = ids.split_off(max);
            self.capabilities.continue_at(later[0]);
            if self.capabilities.may_log(cx.now(), REPORT_FAILURE_LOG_MS) {
                cx.log(|m, sighting| Entry::passive_objects_left(m, sighting, max, &later));
            }
        }
        ids.sort_by_key(|id| self.capabilities.is_read_last(*id));
        ids.reverse();
        ids
    }

    /// The objects that are read, in the order of their numbers.
    fn objects_to_read(&self, cx: &Context<'_>) -> Vec<u16> {
        let Some(registration) = cx.registration.registration() else {
            return Vec::new();
        };
        let links = &registration.links;
        // An object without instances has nothing to read. A list without any instance does not
        // name instances at all: every device has one of the objects 1 and 3.
        let has_instances = |object: &OfferedObject<'_>| !object.instances.is_empty();
        let names_instances = links.objects().any(|object| has_instances(&object));
        let codec = cx.codec();
        let is_to_read = |object: &OfferedObject<'_>| {
            !UNREAD.contains(&object.id)
                && (has_instances(object) || !names_instances)
                && !self.capabilities.is_refused(object.id)
                && codec.object_at(object.id).is_none_or(|it| it.is_readable())
        };
        links.objects().filter(is_to_read).map(|it| it.id).collect()
    }
}
