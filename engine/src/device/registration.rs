//! The registration of a device: its lifetime and binding (LwM2M Core 1.2 section 6.2), when and
//! where the device was heard, and who it is.
//!
//! ```text
//!                 begin                      end (lifetime over, deregister)
//!  unregistered -------> awake <-----------> unregistered
//!                        |   ^
//!     window over (queue |   | any uplink
//!     mode only)         v   |
//!                        asleep
//! ```
//!
//! Where the device is, it alone knows: `reach` answers where its datagrams are accepted
//! from and where requests to it go.

use std::sync::Arc;

use protocol::coap::content::ContentFormat;
use protocol::lwm2m::links::ObjectLinks;
use protocol::lwm2m::registration::{Register, Update};

use crate::action::Protocol;
use crate::change::Change;
use crate::device::formats::FormatSet;
use crate::device::identity::Identity;
use crate::device::objects::ObjectLists;
use crate::device::record::{DeviceRecord, Logged, Observation, ProtocolsSeen, Registration};
use crate::effect::{Effect, Effects};
use crate::ids::DeviceKey;
use crate::limits::{LIFETIME_S_MAX, PRESENCE_SAVE_MS};
use crate::location::Location;
use crate::moment::Timestamp;
use crate::peer::Peer;
use crate::profile::Profile;

impl Registration {
    /// The lifetime in force, in seconds: as asked for, but never above a day; 0 or none means a
    /// day.
    pub fn lifetime_s(&self) -> u32 {
        match self.lifetime_asked_s {
            None | Some(0) => LIFETIME_S_MAX,
            Some(asked_s) => asked_s.min(LIFETIME_S_MAX),
        }
    }

    fn renew(&mut self, now: Timestamp) {
        self.expires_at = now.plus_s(i64::from(self.lifetime_s()));
    }

    /// Takes over what an update names and says whether that changed anything.
    fn amend(&mut self, update: Update) -> bool {
        let lifetime_s = update.lifetime_s.or(self.lifetime_asked_s);
        let binding = update.binding_after(self.binding, self.version);
        let mut changed = amend(&mut self.lifetime_asked_s, lifetime_s);
        changed |= amend(&mut self.binding, binding);
        if update.sms.is_some() {
            changed |= amend(&mut self.sms, update.sms);
        }
        if let Some(links) = update.links
            && *self.links != links
        {
            self.links = Arc::new(links);
            changed = true;
        }
        changed
    }
}

/// What is known of a device that registers, or may.
pub(super) struct RegistrationState {
    identity: Box<Identity>,
    /// The key of the identity, which is a digest and dear to compute for every update.
    key: DeviceKey,
    first_heard_at: Option<Timestamp>,
    last_seen_at: Option<Timestamp>,
    /// Where it was last heard.
    peer: Option<Peer>,
    registration: Option<Registration>,
    protocols_seen: ProtocolsSeen,
    unknown_object: Logged,
    /// The formats it refused since it registered.
    refused: FormatSet,
    /// When the record was last saved, in seconds since 1970, 0 if it never was; between saves
    /// presence lives here alone.
    saved_s: u32,
    /// It did not answer, and was not heard since.
    silent: bool,
    /// The list of its objects may be a copy of its own.
    objects_unshared: bool,
}

impl RegistrationState {
    /// What was kept, and the observations that were kept with it.
    ///
    /// A registration gets what remains of its lifetime and, because updates that change nothing
    /// are saved only now and then, as much longer as may have gone unsaved.
    pub(super) fn restored(
        profile: &Profile,
        mut record: DeviceRecord,
        now: Timestamp,
    ) -> (Self, Box<[Observation]>) {
        if let Some(registration) = &mut record.registration {
            let whole = now.plus_s(i64::from(registration.lifetime_s()));
            let unsaved = registration.expires_at.plus_ms(PRESENCE_SAVE_MS);
            registration.expires_at = registration.expires_at.max(whole.min(unsaved));
        }
        let state = Self {
            key: profile.key(),
            identity: Box::new(Identity::of(profile)),
            first_heard_at: record.first_heard_at,
            last_seen_at: record.last_seen_at,
            peer: record.peer,
            registration: record.registration,
            protocols_seen: record.protocols_seen,
            unknown_object: record.unknown_object,
            refused: FormatSet::default(),
            saved_s: record.last_seen_at.unwrap_or_default().as_short_s(),
            silent: false,
            objects_unshared: true,
        };
        (state, record.observations)
    }

    /// Takes over who its customer says it is by now. A registration stays, wherever it came from:
    /// the next register, update or deregister is judged by what the device is from now on.
    pub(super) fn adopt(&mut self, profile: &Profile) {
        *self.identity = Identity::of(profile);
    }

    /// Notes that the device is there; an answer says no more than that.
    pub(super) fn note_awake(&mut self, now: Timestamp) {
        self.last_seen_at = Some(now);
        self.silent = false;
    }

    /// Notes what it was heard over, and says whether it never was before.
    pub(super) fn note_protocol_seen(&mut self, protocol: Protocol) -> bool {
        self.protocols_seen.note(protocol)
    }

    /// Notes that it was heard, and says whether that is for the first time ever.
    pub(super) fn note_first_heard(&mut self, now: Timestamp) -> bool {
        let is_first = self.first_heard_at.is_none();
        self.first_heard_at.get_or_insert(now);
        is_first
    }

    /// It did not answer what it was asked at `asked_at`. Says whether it was not heard since
    /// either: then it is taken to be gone, and one in queue mode sleeps from now on.
    pub(super) fn note_silence(&mut self, asked_at: Timestamp) -> bool {
        let is_gone = !self.is_heard_since(asked_at);
        self.silent |= is_gone;
        is_gone
    }

    /// It is at another peer. Only `messages` says so: message ids belong to an address.
    pub(super) fn move_to(&mut self, peer: Peer) {
        self.peer = Some(peer);
    }

    /// Begins a registration; the salt makes its location hard to guess.
    pub(super) fn begin(&mut self, register: Register, salt: u32, now: Timestamp) {
        let mut registration = Registration {
            salt,
            lifetime_asked_s: register.lifetime_s,
            expires_at: now,
            registered_at: now,
            version: register.version,
            binding: register.binding,
            sms: register.sms,
            links: self.objects_of(register.links),
        };
        registration.renew(now);
        self.registration = Some(registration);
        self.objects_unshared = true;
        self.refused = FormatSet::default();
    }

    /// Renews the registration and takes over what an update names; says whether that changed
    /// anything.
    pub(super) fn update(&mut self, update: Update, now: Timestamp) -> bool {
        let Some(registration) = &mut self.registration else {
            return false;
        };
        let changed = registration.amend(update);
        registration.renew(now);
        self.objects_unshared |= changed;
        changed
    }

    pub(super) fn end(&mut self) {
        self.registration = None;
    }

    /// Asks in this format no more until the device registers anew.
    pub(super) fn refuse(&mut self, format: ContentFormat) {
        self.refused.add(format);
    }

    /// The log says once that the device sends values of what nobody knows: whether it is to now,
    /// which is to be saved then.
    pub(super) fn note_unknown_object(&mut self) -> bool {
        let is_new = std::mem::replace(&mut self.unknown_object, Logged::Yes) == Logged::No;
        if is_new {
            self.saved_s = 0;
        }
        is_new
    }

    /// Takes the list of objects that others offer, too, instead of a copy of its own.
    pub(super) fn share_objects(&mut self, lists: &mut ObjectLists) {
        if std::mem::take(&mut self.objects_unshared)
            && let Some(registration) = &mut self.registration
        {
            lists.share(&mut registration.links);
        }
    }

    pub(super) fn save(&mut self, observed: &[Observation], now: Timestamp, out: &mut Effects) {
        self.saved_s = now.as_short_s();
        out.push(Effect::Save(Change::PutRecord {
            device: self.key,
            record: Box::new(self.record(observed)),
        }));
    }

    /// What is kept of the device, with what is observed of it.
    pub(super) fn record(&self, observed: &[Observation]) -> DeviceRecord {
        DeviceRecord {
            first_heard_at: self.first_heard_at,
            last_seen_at: self.last_seen_at,
            peer: self.peer,
            registration: self.registration.clone(),
            observations: observed.into(),
            protocols_seen: self.protocols_seen,
            unknown_object: self.unknown_object,
        }
    }

    /// Whether presence has gone unsaved for long.
    pub(super) fn is_stale(&self, now: Timestamp) -> bool {
        let saved_at = Timestamp::default().plus_s(self.saved_s.into());
        now.since_ms(saved_at) >= PRESENCE_SAVE_MS
    }

    pub(super) fn is_heard_since(&self, at: Timestamp) -> bool {
        self.last_seen_at.is_some_and(|seen_at| seen_at > at)
    }

    pub(super) fn key(&self) -> DeviceKey {
        self.key
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Where it was last heard.
    pub(super) fn peer(&self) -> Option<Peer> {
        self.peer
    }

    /// Where its datagrams come from, while it is registered.
    pub(super) fn bound_peer(&self) -> Option<Peer> {
        self.registration.as_ref().and(self.peer)
    }

    pub(super) fn is_registered(&self) -> bool {
        self.registration.is_some()
    }

    pub(super) fn registration(&self) -> Option<&Registration> {
        self.registration.as_ref()
    }

    /// The formats it refused since it registered.
    pub(super) fn refused(&self) -> FormatSet {
        self.refused
    }

    /// Until when it listens in queue mode.
    pub(super) fn awake_until(&self, window_ms: i64) -> Timestamp {
        let last_seen_at = self.last_seen_at.unwrap_or_default();
        match self.silent {
            true => last_seen_at,
            false => last_seen_at.plus_ms(window_ms),
        }
    }

    /// The location of its registration.
    pub(super) fn location(&self) -> Option<Location> {
        let registration = self.registration.as_ref();
        registration.map(|it| Location::new(self.key, it.salt))
    }

    /// The list of objects a device registers with: the one there is, if it says nothing new.
    fn objects_of(&self, links: ObjectLinks) -> Arc<ObjectLinks> {
        match &self.registration {
            Some(registration) if *registration.links == links => Arc::clone(&registration.links),
            Some(_) | None => Arc::new(links),
        }
    }
}

/// Takes over a value and says whether it is another.
fn amend<T: PartialEq>(place: &mut T, value: T) -> bool {
    let changed = *place != value;
    *place = value;
    changed
}
