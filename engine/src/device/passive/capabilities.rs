//! Which reads did a device refuse, so that they are not requested at each update?
//!
//! Most devices refuse nothing, and there are a million of them: what is learned is boxed.

use protocol::coap::content::ContentFormat;

use crate::device::codec::Codec;
use crate::device::formats::FormatSet;
use crate::moment::Timestamp;

/// Objects whose missing answers are counted: many times what devices leave unanswered. Beyond it
/// the oldest is forgotten first.
const SILENCES_MAX: usize = 64;

/// What was learned about a device while its objects were read.
#[derive(Default)]
pub(in crate::device) struct LearnedCapabilities(Option<Box<Capabilities>>);

#[derive(Default)]
struct Capabilities {
    composite: Composite,
    /// Objects the device does not permit to be read, or not in any format.
    refused: Box<[u16]>,
    /// Objects for which an answer was missing.
    silent: Box<[Silence]>,
    /// When the last failure to read an object was logged.
    logged_at: Option<Timestamp>,
    /// The object the next round begins with, if the device has more objects than fit one round.
    next_in_turn: u16,
}

/// An object for which an answer was missing.
#[derive(Clone, Copy)]
struct Silence {
    object: u16,
    /// How often in a row, while the device was there.
    count: u8,
}

/// Whether several objects are requested at once, if the device seems to support it.
#[derive(Clone, Copy, Default)]
enum Composite {
    #[default]
    Asked,
    Refused,
}

impl LearnedCapabilities {
    /// Requests one object at a time from now on.
    pub(super) fn stop_composing(&mut self) {
        self.boxed().composite = Composite::Refused;
    }

    /// Does not request an object any more.
    pub(super) fn refuse(&mut self, object: u16) {
        let refused = &mut self.boxed().refused;
        let others = std::mem::take(refused).into_iter();
        *refused = others.chain([object]).collect();
    }

    /// Requests an object after all others from now on.
    pub(super) fn read_last(&mut self, object: u16) {
        let count = self.silences_about(object);
        self.note_silence(Silence { object, count });
    }

    /// Counts a missing answer for an object while the device was there. Returns how many there
    /// were in a row.
    pub(super) fn count_silence(&mut self, object: u16) -> u8 {
        let count = self.silences_about(object).saturating_add(1);
        self.note_silence(Silence { object, count });
        count
    }

    /// Resets the count of an object: the device answered.
    pub(super) fn reset_silence(&mut self, object: u16) {
        if self.silences_about(object) > 0 {
            self.note_silence(Silence { object, count: 0 });
        }
    }

    /// Whether a failure to read an object may be logged; if so, it counts as logged now.
    pub(super) fn may_log(&mut self, now: Timestamp, apart_ms: i64) -> bool {
        let logged_at = &mut self.boxed().logged_at;
        let is_apart = |at: Timestamp| !(0..apart_ms).contains(&now.since_ms(at));
        let may_log = logged_at.is_none_or(is_apart);
        if may_log {
            *logged_at = Some(now);
        }
        may_log
    }

    /// The object the next round begins with, if the device has more objects than fit one round.
    pub(super) fn next_in_turn(&self) -> u16 {
        self.0.as_ref().map_or(0, |learned| learned.next_in_turn)
    }

    /// Begins the next round with this object.
    pub(super) fn continue_at(&mut self, object: u16) {
        self.boxed().next_in_turn = object;
    }

    /// Forgets what belongs to a registration: at the next, the device may have other firmware. The
    /// objects stay in turn, because a device may register whenever it wakes.
    pub(super) fn forget_registration(&mut self) {
        let Some(learned) = self.0.take() else {
            return;
        };
        if learned.logged_at.is_some() || learned.next_in_turn > 0 {
            *self.boxed() = Capabilities {
                logged_at: learned.logged_at,
                next_in_turn: learned.next_in_turn,
                ..Capabilities::default()
            };
        }
    }

    pub(super) fn is_refused(&self, object: u16) -> bool {
        let learned = self.0.as_ref();
        learned.is_some_and(|learned| learned.refused.contains(&object))
    }

    /// Whether an answer for the object was missing.
    pub(super) fn is_read_last(&self, object: u16) -> bool {
        self.silent().iter().any(|it| it.object == object)
    }

    /// The format to request for several objects at once; none if they are requested one by one.
    pub(super) fn format_to_compose(
        &self,
        codec: Codec<'_>,
        refused: FormatSet,
    ) -> Option<ContentFormat> {
        let learned = self.0.as_ref();
        let composite = learned.map_or(Composite::default(), |learned| learned.composite);
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

    fn note_silence(&mut self, silence: Silence) {
        let silent = &mut self.boxed().silent;
        let others = silent.iter().filter(|it| it.object != silence.object);
        let mut noted: Vec<Silence> = others.copied().collect();
        noted.push(silence);
        let surplus = noted.len().saturating_sub(SILENCES_MAX);
        *silent = noted.into_iter().skip(surplus).collect();
    }

    fn silent(&self) -> &[Silence] {
        let learned = self.0.as_ref();
        learned.map_or(&[], |learned| &learned.silent)
    }

    fn boxed(&mut self) -> &mut Capabilities {
        self.0.get_or_insert_default()
    }
}
