//! What did a device refuse, so that it is not asked for it with each update?
//!
//! Most devices refuse nothing, and there are a million of them: what is learned is boxed.

use protocol::coap::content::ContentFormat;

use crate::device::codec::Codec;
use crate::device::formats::FormatSet;
use crate::limits::REPORT_OBJECTS_MAX;
use crate::moment::Timestamp;

/// What was learned of a device while its objects were read.
#[derive(Default)]
pub(in crate::device) struct LearnedCapabilities(Option<Box<Capabilities>>);

#[derive(Default)]
struct Capabilities {
    composite: Composite,
    /// Objects the device does not let be read, or not in any format.
    refused: Box<[u16]>,
    /// Objects the device was silent about.
    silent: Box<[Silence]>,
    /// When the customer was told last that an object cannot be read.
    logged_at: Option<Timestamp>,
}

/// An object that a device was silent about.
#[derive(Clone, Copy)]
struct Silence {
    object: u16,
    /// How often in a row, though the device was there.
    count: u8,
}

/// Whether a device is asked for several objects at once, if it seems to be able to.
#[derive(Clone, Copy, Default)]
enum Composite {
    #[default]
    Asked,
    Refused,
}

impl LearnedCapabilities {
    /// Asks for one object at a time from now on.
    pub(super) fn stop_composing(&mut self) {
        self.boxed().composite = Composite::Refused;
    }

    /// Asks no more for an object.
    pub(super) fn refuse(&mut self, object: u16) {
        let refused = &mut self.boxed().refused;
        let others = std::mem::take(refused).into_iter();
        *refused = others.chain([object]).collect();
    }

    /// Asks for an object after all others from now on.
    pub(super) fn ask_last(&mut self, object: u16) {
        let count = self.silences_about(object);
        self.note_silence(Silence { object, count });
    }

    /// Counts that the device, which was there, was silent about an object; says how often it was
    /// in a row.
    pub(super) fn count_silence(&mut self, object: u16) -> u8 {
        let count = self.silences_about(object).saturating_add(1);
        self.note_silence(Silence { object, count });
        count
    }

    /// Begins anew to count how often the device is silent about an object: it answered.
    pub(super) fn excuse_silence(&mut self, object: u16) {
        if self.silences_about(object) > 0 {
            self.note_silence(Silence { object, count: 0 });
        }
    }

    /// Whether it may be logged now that an object cannot be read; if so, it is logged.
    pub(super) fn may_log(&mut self, now: Timestamp, apart_ms: i64) -> bool {
        let logged_at = &mut self.boxed().logged_at;
        let is_apart = |at: Timestamp| !(0..apart_ms).contains(&now.since_ms(at));
        let may_log = logged_at.is_none_or(is_apart);
        if may_log {
            *logged_at = Some(now);
        }
        may_log
    }

    /// Forgets all that belongs to a registration: the next may be that of other firmware.
    pub(super) fn forget_registration(&mut self) {
        if let Some(lessons) = self.0.take()
            && lessons.logged_at.is_some()
        {
            self.boxed().logged_at = lessons.logged_at;
        }
    }

    pub(super) fn is_refused(&self, object: u16) -> bool {
        let lessons = self.0.as_ref();
        lessons.is_some_and(|lessons| lessons.refused.contains(&object))
    }

    /// Whether the device was silent about an object.
    pub(super) fn is_asked_last(&self, object: u16) -> bool {
        self.silent().iter().any(|it| it.object == object)
    }

    /// The format to ask for several objects at once in; none if the device is not asked so.
    pub(super) fn format_to_compose(
        &self,
        codec: Codec<'_>,
        refused: FormatSet,
    ) -> Option<ContentFormat> {
        let lessons = self.0.as_ref();
        let composite = lessons.map_or(Composite::default(), |lessons| lessons.composite);
        match composite {
            Composite::Asked => codec.format_to_compose(refused),
            Composite::Refused => None,
        }
    }

    fn silences_about(&self, object: u16) -> u8 {
        let mut silent = self.silent().iter();
        let known = silent.find(|it| it.object == object);
        known.map_or(0, |it| it.count)
    }

    /// No more objects than are asked for are remembered; the one that was silent first is
    /// forgotten first.
    fn note_silence(&mut self, silence: Silence) {
        let silent = &mut self.boxed().silent;
        let others = silent.iter().filter(|it| it.object != silence.object);
        let mut noted: Vec<Silence> = others.copied().collect();
        noted.push(silence);
        let surplus = noted.len().saturating_sub(REPORT_OBJECTS_MAX);
        *silent = noted.into_iter().skip(surplus).collect();
    }

    fn silent(&self) -> &[Silence] {
        let lessons = self.0.as_ref();
        lessons.map_or(&[], |lessons| &lessons.silent)
    }

    fn boxed(&mut self) -> &mut Capabilities {
        self.0.get_or_insert_default()
    }
}
