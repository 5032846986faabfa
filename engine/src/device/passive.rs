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

mod learned;

use protocol::coap::code::Code;
use protocol::coap::message::Message;
use protocol::lwm2m::links::OfferedObject;
use protocol::lwm2m::operation::{self, Label};
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::Scope;

use crate::admin_log::entry::Entry;
use crate::device::Device;
use crate::device::formats::FormatSet;
use crate::device::samples::Measurement;
use crate::effect::Effects;
use crate::event::Cause;
use crate::limits::{REPORT_FAILURE_LOG_MS, REPORT_OBJECTS_MAX, REPORT_SILENCES_MAX};
use crate::moment::{Moment, Timestamp};
use crate::occurrence::Ending;
use crate::setting::SettingState;

pub(super) use learned::Learned;

/// Objects that are never read: 1, 2 and 3 as the seed says (section 1.3); 0 and 21 hold the keys
/// of the device, which nobody may read.
const UNREAD: [u16; 5] = [0, 1, 2, 3, 21];

/// What is to be read of a device because it registered or updated its registration.
pub(super) struct Round {
    /// The objects that were not asked for yet, the next one last.
    left: Vec<u16>,
    then: Then,
    heard: Heard,
}

/// Whether the device answered any part of a round.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Heard {
    Nothing,
    Something,
}

/// What follows a round.
enum Then {
    Rest,
    /// The device updated its registration meanwhile. However often it did, one more round says
    /// what is so by now.
    Again,
}

/// What one request of a round asks for.
#[derive(Clone, Copy)]
pub(super) enum Part {
    /// One object.
    Object(u16),
    /// All that are left.
    Rest,
}

impl Device {
    /// The device registered or updated its registration: its objects are to be read, or, if they
    /// are just being read, read once more.
    pub(super) fn owe_round(&mut self) {
        match (self.terms.passive_reporting, self.round_mut()) {
            (SettingState::Disabled, _) => {}
            (SettingState::Enabled, Some(round)) => round.then = Then::Again,
            (SettingState::Enabled, None) => self.begin_round(),
        }
    }

    /// What is to be asked for next.
    pub(super) fn next_part(&mut self) -> Option<Part> {
        if self.round_mut()?.left.is_empty() {
            let over = self.busy.as_mut()?.round.take()?;
            match over.then {
                Then::Rest => {}
                Then::Again => self.begin_round(),
            }
        }
        let is_composed = self.format_to_compose(FormatSet::default()).is_some();
        let round = self.round_mut()?;
        match round.left.len() {
            2.. if is_composed => Some(Part::Rest),
            _ => round.left.pop().map(Part::Object),
        }
    }

    /// The message that asks for a part of a round, in none of the formats the device refused in
    /// this attempt; none if it cannot be asked for so.
    pub(super) fn message_of_part(
        &mut self,
        m: &mut Moment,
        part: Part,
        refused: FormatSet,
    ) -> Option<Message> {
        let label = Label {
            message_id: self.take_message_id(),
            token: self.draw_token(m),
        };
        match part {
            Part::Object(id) => {
                let path = Path::object(id);
                let format = self.format_to_read(path, refused);
                Some(operation::read(label, self.root(), path, format))
            }
            Part::Rest => {
                let left = self.round_mut().map_or(&[][..], |round| &round.left);
                let paths: Vec<Path> = left.iter().rev().map(|id| Path::object(*id)).collect();
                let message = self.composite_of(label, &paths, refused);
                if message.is_none() {
                    self.learned.stop_composing();
                }
                message
            }
        }
    }

    /// Takes the answer to a part of a round. Its values are those of the objects asked for, as
    /// far as more are taken of the device by now.
    pub(super) fn part_answered(
        &mut self,
        m: &mut Moment,
        part: Part,
        answer: &Message,
        out: &mut Effects,
    ) {
        let asked = match part {
            Part::Object(id) => Scope::Within(Path::object(id)),
            Part::Rest => Scope::All,
        };
        let read = self.values_in(m, asked, answer);
        self.note_part_heard(part);
        let Some(round) = self.round_mut() else {
            return;
        };
        match (part, read) {
            (Part::Object(_), Ok(told)) => self.report(m, told, out),
            (Part::Rest, Ok(mut told)) => {
                let asked = std::mem::take(&mut round.left);
                let is_asked = |path: &Path| asked.contains(&path.object_id());
                told.iter_mut()
                    .for_each(|told| told.values.retain(|path, _| is_asked(path)));
                told.retain(|told| !told.values.is_empty());
                self.report(m, told, out);
            }
            (Part::Object(id), Err(why)) => {
                self.note_unread(m, id, &why, Some(&answer.payload), out);
            }
            // One by one, it shows of which object it is.
            (Part::Rest, Err(_)) => self.learned.stop_composing(),
        }
    }

    /// Takes the device's refusal of a part of a round. That an object is not there, or not to be
    /// read, is nothing to tell anybody. What is not to be read, or in no format, is not asked for
    /// again.
    pub(super) fn part_refused(
        &mut self,
        m: &mut Moment,
        part: Part,
        (code, why): (Code, &str),
        out: &mut Effects,
    ) {
        self.note_part_heard(part);
        let id = match part {
            Part::Object(id) => id,
            Part::Rest => return self.learned.stop_composing(),
        };
        match code {
            Code::NOT_FOUND => {}
            Code::METHOD_NOT_ALLOWED => self.learned.refuse(id),
            Code::NOT_ACCEPTABLE | Code::UNSUPPORTED_CONTENT_FORMAT => {
                self.note_unread(m, id, why, None, out);
                self.learned.refuse(id);
            }
            _ => self.note_unread(m, id, why, None, out),
        }
    }

    /// Takes it that the device does not answer a part of a round now, and says so.
    pub(super) fn part_missed(&mut self, m: &mut Moment, part: Part, why: &str, out: &mut Effects) {
        self.note_part_heard(part);
        match part {
            Part::Object(id) => self.note_unread(m, id, why, None, out),
            Part::Rest => self.learned.stop_composing(),
        }
    }

    /// Takes it that the device is silent about a part of a round since it was asked.
    ///
    /// An object it is silent about comes last from then on: it must not keep the others from
    /// being read. If the device is heard otherwise, it is the object that fails; if not, the
    /// device may be gone. Of what fails so again and again it is not asked any more.
    pub(super) fn part_unanswered(
        &mut self,
        m: &mut Moment,
        (part, asked_at): (Part, Timestamp),
        why: &str,
        out: &mut Effects,
    ) {
        let id = match part {
            Part::Object(id) => id,
            Part::Rest => return self.learned.stop_composing(),
        };
        let Some(heard) = self.round_mut().map(|round| round.heard) else {
            return;
        };
        let is_heard_since = self.record.last_seen_at.is_some_and(|at| at > asked_at);
        if heard == Heard::Nothing && !is_heard_since {
            return self.learned.ask_last(id);
        }
        if self.learned.count_silence(id) >= REPORT_SILENCES_MAX {
            self.learned.refuse(id);
        }
        self.note_unread(m, id, why, None, out);
    }

    /// Drops what is left of a round when nothing of it is in flight: the device cannot be asked
    /// now.
    pub(super) fn drop_what_cannot_be_asked(&mut self) {
        if let Some(busy) = &mut self.busy
            && busy.attempt.is_none()
        {
            busy.notified.clear();
            busy.round = None;
        }
    }

    /// Ends what is read with the registration it is read for, and what was learned of it.
    pub(super) fn end_reporting(&mut self, out: &mut Effects) {
        self.learned.forget_registration();
        let attempt = self.attempt_mut();
        if attempt.is_some_and(|attempt| attempt.part().is_some()) {
            self.note_ending(Ending::DeviceGone, out);
            self.end_exchange(out);
        }
        self.stop_reporting();
    }

    /// Reads no more; what is in flight is not told on.
    pub(super) fn stop_reporting(&mut self) {
        if let Some(busy) = &mut self.busy {
            busy.round = None;
        }
    }

    fn begin_round(&mut self) {
        let left = self.objects_to_report();
        if !left.is_empty() {
            let then = Then::Rest;
            let heard = Heard::Nothing;
            let round = Some(Box::new(Round { left, then, heard }));
            self.busy.get_or_insert_default().round = round;
        }
    }

    /// Tells the values of a part of a round, unless more than that are taken of the device by
    /// now: then it is asked for nothing more either.
    fn report(&mut self, m: &mut Moment, told: Vec<Measurement>, out: &mut Effects) {
        if self.pace.take(m.now(), 1) {
            self.count_further(m.now(), told.iter().map(|told| told.values.len()).sum());
            self.tell_measurements(m, Cause::PassiveReport, told, out);
        } else {
            self.stop_reporting();
        }
    }

    /// Tells the customer that an object cannot be read, but not each time: most of a fleet is of
    /// one kind and fails alike.
    fn note_unread(
        &mut self,
        m: &mut Moment,
        id: u16,
        why: &str,
        bytes: Option<&[u8]>,
        out: &mut Effects,
    ) {
        let now = m.now();
        if self.round_mut().is_none() || !self.learned.may_log(now, REPORT_FAILURE_LOG_MS) {
            return;
        }
        let (seen, path) = (self.seen_at(self.record.peer), Path::object(id));
        let entry = Entry::passive_reporting_failed(m, seen, &path, why, bytes);
        self.log(m, entry, out);
    }

    /// The device answers: it is there, and if it was silent about the object, it is not any more.
    fn note_part_heard(&mut self, part: Part) {
        if let Some(round) = self.round_mut() {
            round.heard = Heard::Something;
        }
        match part {
            Part::Object(id) => self.learned.excuse_silence(id),
            Part::Rest => {}
        }
    }

    fn round_mut(&mut self) -> Option<&mut Round> {
        self.busy.as_mut()?.round.as_deref_mut()
    }

    /// The objects to read, the first one last.
    fn objects_to_report(&self) -> Vec<u16> {
        let Some(registration) = &self.record.registration else {
            return Vec::new();
        };
        let links = &registration.links;
        // An object without instance has nothing to read. A list without any instance does not
        // name them: every device has one of the objects 1 and 3.
        let has_instances = |object: &OfferedObject<'_>| !object.instances.is_empty();
        let names_instances = links.objects().any(|object| has_instances(&object));
        let is_to_read = |object: &OfferedObject<'_>| {
            !UNREAD.contains(&object.id)
                && (has_instances(object) || !names_instances)
                && !self.learned.is_refused(object.id)
                && self.object_at(object.id).is_none_or(|it| it.is_readable())
        };
        let objects = links.objects().filter(is_to_read);
        let mut ids: Vec<u16> = objects.map(|it| it.id).take(REPORT_OBJECTS_MAX).collect();
        ids.sort_by_key(|id| self.learned.is_asked_last(*id));
        ids.reverse();
        ids
    }
}
