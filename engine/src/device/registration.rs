//! The registration of a device: its lifetime and binding (LwM2M Core 1.2 section 6.2), its
//! identity, and when and from where it was last received.
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
//! `reachability` answers where datagrams of the device are accepted from and where requests to it
//! go.

use std::num::NonZeroU32;
use std::sync::Arc;

use protocol::coap::content::ContentFormat;
use protocol::lwm2m::links::ObjectLinks;
use protocol::lwm2m::registration::{Register, Update};

use crate::action::Protocol;
use crate::change::Change;
use crate::device::formats::FormatSet;
use crate::device::identity::Identity;
use crate::device::log_quota::LogQuota;
use crate::device::objects::ObjectLists;
use crate::device::record::{
    Connectivity, DeviceRecord, Logged, Observation, ProtocolsSeen, Registration, Wakefulness,
};
use crate::effect::{Effect, Effects};
use crate::firmware::update::FirmwareUpdate;
use crate::ids::DeviceKey;
use crate::limits::{LIFETIME_S_MAX, PRESENCE_SAVE_MS};
use crate::location::Location;
use crate::moment::Timestamp;
use crate::peer::{Peer, Transport};
use crate::profile::{Profile, SecurityRequirement};

impl Registration {
    /// The lifetime in force, in seconds: as requested, but at most a day; 0 or none means a day.
    pub fn lifetime_s(&self) -> u32 {
        match self.lifetime_asked_s {
            None | Some(0) => LIFETIME_S_MAX,
            Some(asked_s) => asked_s.min(LIFETIME_S_MAX),
        }
    }

    /// A digest (32-bit FNV-1a) of the version and the formats that the device announces: what the
    /// device can do may differ once this does.
    pub(super) fn announcement(&self) -> NonZeroU32 {
        let formats = self.links.content_formats().iter();
        let formats = formats.flat_map(|format| format.to_be_bytes());
        let bytes = self.version.to_string().into_bytes().into_iter();
        let digest = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        let digest = bytes.chain(formats).fold(0x811c_9dc5, digest);
        NonZeroU32::new(digest).unwrap_or(NonZeroU32::MAX)
    }

    fn renew(&mut self, now: Timestamp) {
        self.expires_at = now.plus_s(i64::from(self.lifetime_s()));
    }

    /// Applies an update. Returns whether anything changed.
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

/// What is known of a device, registered or not.
pub(super) struct RegistrationState {
    identity: Box<Identity>,
    /// The key of the identity: a digest, too expensive to compute for every update.
    key: DeviceKey,
    first_contact_at: CompactTime,
    last_seen_at: CompactTime,
    /// When it may have been heard last before the start of the process, in seconds since 1970:
    /// presence is saved now and then.
    unsaved_seen_s: u32,
    /// How long it may be silent before it is offline, in seconds, if its profile says so or its
    /// registration expired.
    silence_max_s: Option<NonZeroU32>,
    silence_max_of: SilenceMaxOf,
    connectivity: Connectivity,
    wakefulness: Wakefulness,
    /// Where its last message came from.
    peer: Option<Peer>,
    /// Its association has no session since the start of the process, so it cannot be sent anything
    /// before it is heard.
    awaits_session: bool,
    /// Its customer accepts nothing from it without DTLS.
    requires_dtls: bool,
    registration: Option<Registration>,
    protocols_seen: ProtocolsSeen,
    unknown_object: Logged,
    composite_unanswered: Option<NonZeroU32>,
    log_quota: LogQuota,
    /// The formats it has refused since it registered.
    refused: FormatSet,
    /// When the record was last saved, in seconds since 1970; 0 if it has to be saved in this step.
    /// Between saves presence is only in memory.
    saved_s: u32,
    /// It did not answer, and nothing was received from it since.
    silent: bool,
    /// The list of its objects may be a copy of its own.
    objects_unshared: bool,
}

impl RegistrationState {
    /// Restores the state and its observations from a record.
    ///
    /// Updates that change nothing are saved only now and then. So a registration gets what remains
    /// of its saved lifetime, extended by as much as may not have been saved, and silence counts
    /// from as much later.
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
        let seen_by = |seen_at: Timestamp| now.min(seen_at.plus_ms(PRESENCE_SAVE_MS));
        let seen_by = record.last_seen_at.map(seen_by);
        let connectivity = match (record.connectivity, &record.registration) {
            (Connectivity::Unknown, Some(_)) => Connectivity::Online,
            (stored, _) => stored,
        };
        let state = Self {
            unsaved_seen_s: seen_by.map_or(0, |it| it.plus_s(1).as_short_s()),
            silence_max_s: profile.offline_after_s.or(record.expired_lifetime_s),
            silence_max_of: SilenceMaxOf::given(profile.offline_after_s, record.expired_lifetime_s),
            connectivity,
            wakefulness: record.wakefulness,
            key: profile.key(),
            identity: Box::new(Identity::of(profile)),
            first_contact_at: CompactTime::of(record.first_contact_at),
            last_seen_at: CompactTime::of(record.last_seen_at),
            awaits_session: record
                .peer
                .is_some_and(|it| it.transport == Transport::Coaps && it.association.is_none()),
            peer: record.peer.map(|peer| match peer.transport {
                Transport::Coaps => peer.of_device(profile.key()),
                Transport::Coap | Transport::Udp => peer,
            }),
            requires_dtls: profile.security == SecurityRequirement::Dtls,
            registration: record.registration,
            protocols_seen: record.protocols_seen,
            unknown_object: record.unknown_object,
            composite_unanswered: record.composite_unanswered,
            log_quota: record.log_quota,
            refused: FormatSet::default(),
            saved_s: record.last_seen_at.unwrap_or_default().as_short_s().max(1),
            silent: false,
            objects_unshared: true,
        };
        (state, record.observations)
    }

    /// Replaces the identity after the customer changed the profile. An existing registration
    /// stays, wherever it came from; the next register, update or deregister is checked against the
    /// new identity.
    pub(super) fn adopt(&mut self, profile: &Profile) {
        *self.identity = Identity::of(profile);
        self.requires_dtls = profile.security == SecurityRequirement::Dtls;
        if profile.offline_after_s.is_some() || self.silence_max_of == SilenceMaxOf::Profile {
            self.silence_max_s = profile.offline_after_s;
            self.silence_max_of = SilenceMaxOf::Profile;
        }
    }

    /// Notes that the device was heard. An answer to a request shows no more than that. Returns
    /// whether it was offline. `customer_s` is the silence that its customer allows every device.
    pub(super) fn note_heard(&mut self, now: Timestamp, customer_s: Option<NonZeroU32>) -> bool {
        self.last_seen_at = CompactTime::of(Some(now));
        self.silent = false;
        self.awaits_session = false;
        let was = self.connectivity;
        if was == Connectivity::Offline {
            self.connectivity = Connectivity::Unknown;
            self.saved_s = 0;
        }
        self.watch(customer_s);
        was == Connectivity::Offline
    }

    /// Begins to count the silence of a device that was heard before it was known how long it may
    /// be silent. The record has to be saved, so that the device is restored at a start.
    pub(super) fn watch(&mut self, customer_s: Option<NonZeroU32>) {
        if self.is_to_be_watched(customer_s) {
            self.connectivity = Connectivity::Online;
            self.saved_s = 0;
        }
    }

    /// Notes that the device is offline, if it was silent for too long. Returns whether it was.
    pub(super) fn note_offline(&mut self, now: Timestamp, customer_s: Option<NonZeroU32>) -> bool {
        let is_offline = self.offline_at(customer_s).is_some_and(|at| at <= now);
        if is_offline {
            self.connectivity = Connectivity::Offline;
            self.forget_lifetime();
            self.saved_s = 0;
        }
        is_offline
    }

    /// When the device is offline unless it is heard.
    pub(super) fn offline_at(&self, customer_s: Option<NonZeroU32>) -> Option<Timestamp> {
        let unsaved = Timestamp::default().plus_s(self.unsaved_seen_s.into());
        let seen_at = self.last_seen_at.time()?.max(unsaved);
        let max_s = self.silence_max_s(customer_s)?;
        let is_online = self.connectivity == Connectivity::Online;
        is_online.then(|| seen_at.plus_s(i64::from(max_s.get())))
    }

    /// Whether the silence of the device has to be counted from now on.
    pub(super) fn is_to_be_watched(&self, customer_s: Option<NonZeroU32>) -> bool {
        self.connectivity == Connectivity::Unknown
            && self.first_contact_at.time().is_some()
            && self.silence_max_s(customer_s).is_some()
    }

    /// How long the device may be silent: as its profile says, or else its customer, or else as
    /// long as its registration lasts.
    fn silence_max_s(&self, customer_s: Option<NonZeroU32>) -> Option<NonZeroU32> {
        let lifetime_s = || NonZeroU32::new(self.registration.as_ref()?.lifetime_s());
        match self.silence_max_of {
            SilenceMaxOf::Profile => self.silence_max_s.or(customer_s).or_else(lifetime_s),
            SilenceMaxOf::ExpiredRegistration => customer_s.or(self.silence_max_s),
        }
    }

    fn forget_lifetime(&mut self) {
        if self.silence_max_of == SilenceMaxOf::ExpiredRegistration {
            self.silence_max_s = None;
            self.silence_max_of = SilenceMaxOf::Profile;
        }
    }

    /// Notes that the device listens, if it is in queue mode. Returns whether that is not published
    /// yet.
    pub(super) fn note_awake(&mut self) -> bool {
        let is_new = self.is_in_queue_mode() && self.wakefulness != Wakefulness::Awake;
        if is_new {
            self.wakefulness = Wakefulness::Awake;
            self.saved_s = 0;
        }
        is_new
    }

    /// Notes that the device does not listen any more.
    pub(super) fn note_asleep(&mut self) {
        self.wakefulness = Wakefulness::Asleep;
        self.saved_s = 0;
    }

    /// Whether it was published that the device listens, and it will fall asleep.
    pub(super) fn is_published_awake(&self) -> bool {
        self.wakefulness == Wakefulness::Awake && self.is_in_queue_mode()
    }

    fn is_in_queue_mode(&self) -> bool {
        let registration = self.registration.as_ref();
        registration.is_some_and(|it| it.binding.queue_mode())
    }

    /// Notes the protocol of an uplink. Returns whether it is the first uplink over that protocol.
    pub(super) fn note_protocol_seen(&mut self, protocol: Protocol) -> bool {
        self.protocols_seen.note(protocol)
    }

    /// Notes an uplink. Returns whether it is the first contact.
    pub(super) fn note_first_contact(&mut self, now: Timestamp) -> bool {
        let is_first = self.first_contact_at.time().is_none();
        if is_first {
            self.first_contact_at = CompactTime::of(Some(now));
        }
        is_first
    }

    /// Notes that the device did not answer a request made at `requested_at`. Returns whether
    /// nothing else was received since: then the device is considered gone, and one in queue mode
    /// asleep.
    pub(super) fn note_silence(&mut self, requested_at: Timestamp) -> bool {
        let is_gone = !self.is_seen_since(requested_at);
        self.silent |= is_gone;
        is_gone
    }

    /// The device is at another peer. Only `messages` calls this: message ids belong to an address.
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
        self.forget_lifetime();
        self.objects_unshared = true;
        self.refused = FormatSet::default();
    }

    /// Renews the registration and applies an update. Returns whether anything changed.
    pub(super) fn update(&mut self, update: Update, now: Timestamp) -> bool {
        let Some(registration) = &mut self.registration else {
            return false;
        };
        let changed = registration.amend(update);
        registration.renew(now);
        self.objects_unshared |= changed;
        changed
    }

    /// Ends the registration.
    pub(super) fn end(&mut self, customer_s: Option<NonZeroU32>) {
        self.registration = None;
        self.wakefulness = Wakefulness::Unreported;
        if self.connectivity == Connectivity::Online && self.silence_max_s(customer_s).is_none() {
            self.connectivity = Connectivity::Unknown;
        }
    }

    /// Keeps how long the device may be silent, because its registration expires while it is heard.
    pub(super) fn keep_lifetime(&mut self) {
        if self.silence_max_s.is_none()
            && let Some(registration) = &self.registration
        {
            self.silence_max_s = NonZeroU32::new(registration.lifetime_s());
            self.silence_max_of = SilenceMaxOf::ExpiredRegistration;
        }
    }

    /// Does not use this format again until the device registers again.
    pub(super) fn refuse(&mut self, format: ContentFormat) {
        self.refused.add(format);
    }

    /// The log reports once that the device sends values of an unknown object. Returns whether it
    /// has to be logged now; the record has to be saved then.
    pub(super) fn note_unknown_object(&mut self) -> bool {
        let is_new = std::mem::replace(&mut self.unknown_object, Logged::Yes) == Logged::No;
        if is_new {
            self.saved_s = 0;
        }
        is_new
    }

    /// The device does not answer requests for several objects at once. The record has to be saved.
    pub(super) fn note_composite_unanswered(&mut self) {
        self.composite_unanswered = self.registration().map(Registration::announcement);
        self.saved_s = 0;
    }

    /// Uses the quota of log payloads. Returns whether it has room for as many bytes; the record
    /// has to be saved then.
    pub(super) fn use_log_quota(
        &mut self,
        now: Timestamp,
        bytes: usize,
        bytes_per_day: u32,
    ) -> bool {
        let has_room = self.log_quota.take(now, bytes, bytes_per_day);
        if has_room {
            self.saved_s = 0;
        }
        has_room
    }

    /// Whether the record has to be saved in this step.
    pub(super) fn must_be_saved(&self) -> bool {
        self.saved_s == 0
    }

    /// Replaces the device's own copy of its object list by the shared one.
    pub(super) fn share_objects(&mut self, lists: &mut ObjectLists) {
        if std::mem::take(&mut self.objects_unshared)
            && let Some(registration) = &mut self.registration
        {
            lists.share(&mut registration.links);
        }
    }

    /// Saves the record of the device, with what other parts store in it.
    pub(super) fn save(
        &mut self,
        observed: &[Observation],
        update: Option<&FirmwareUpdate>,
        now: Timestamp,
        out: &mut Effects,
    ) {
        self.saved_s = now.as_short_s().max(1);
        out.push(Effect::Save(Change::PutRecord {
            device: self.key,
            record: Box::new(self.record(observed, update)),
        }));
    }

    /// The record of the device, with its observations and its firmware update.
    pub(super) fn record(
        &self,
        observed: &[Observation],
        update: Option<&FirmwareUpdate>,
    ) -> DeviceRecord {
        DeviceRecord {
            first_contact_at: self.first_contact_at.time(),
            last_seen_at: self.last_seen_at.time(),
            peer: self.peer,
            registration: self.registration.clone(),
            observations: observed.into(),
            protocols_seen: self.protocols_seen,
            unknown_object: self.unknown_object,
            composite_unanswered: self.composite_unanswered,
            log_quota: self.log_quota,
            connectivity: self.connectivity,
            wakefulness: self.wakefulness,
            expired_lifetime_s: match self.silence_max_of {
                SilenceMaxOf::Profile => None,
                SilenceMaxOf::ExpiredRegistration => self.silence_max_s,
            },
            update: update.cloned().map(Box::new),
        }
    }

    /// Whether the saved presence is out of date.
    pub(super) fn is_stale(&self, now: Timestamp) -> bool {
        let saved_at = Timestamp::default().plus_s(self.saved_s.into());
        now.since_ms(saved_at) >= PRESENCE_SAVE_MS
    }

    pub(super) fn is_seen_since(&self, at: Timestamp) -> bool {
        self.last_seen_at.time().is_some_and(|seen_at| seen_at > at)
    }

    pub(super) fn key(&self) -> DeviceKey {
        self.key
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Where its last message came from.
    pub(super) fn peer(&self) -> Option<Peer> {
        self.peer
    }

    /// Whether it has an association without a session.
    pub(super) fn awaits_session(&self) -> bool {
        self.awaits_session
    }

    /// Whether nothing is accepted from it without DTLS.
    pub(super) fn requires_dtls(&self) -> bool {
        self.requires_dtls
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

    /// The formats it has refused since it registered.
    pub(super) fn refused(&self) -> FormatSet {
        self.refused
    }

    /// What the device announced when it left a request for several objects unanswered.
    pub(super) fn composite_unanswered(&self) -> Option<NonZeroU32> {
        self.composite_unanswered
    }

    /// Whether it has ever used a protocol.
    pub(super) fn has_used(&self, protocol: Protocol) -> bool {
        self.protocols_seen.has(protocol)
    }

    /// When it was last heard.
    pub(super) fn last_seen_at(&self) -> Option<Timestamp> {
        self.last_seen_at.time()
    }

    /// The end of its awake window in queue mode.
    pub(super) fn awake_until(&self, window_ms: i64) -> Timestamp {
        let last_seen_at = self.last_seen_at.time().unwrap_or_default();
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

    /// The list of objects for a registration: the present one if it is equal.
    fn objects_of(&self, links: ObjectLinks) -> Arc<ObjectLinks> {
        match &self.registration {
            Some(registration) if *registration.links == links => Arc::clone(&registration.links),
            Some(_) | None => Arc::new(links),
        }
    }
}

/// Who says how long a device may be silent.
#[derive(Clone, Copy, Eq, PartialEq)]
enum SilenceMaxOf {
    /// Its profile, if anybody; then its customer, then the lifetime of its registration.
    Profile,
    /// The lifetime of its last registration, which expired while the device was heard.
    ExpiredRegistration,
}

impl SilenceMaxOf {
    /// Who says it of a device that is restored or changed.
    fn given(profile_s: Option<NonZeroU32>, expired_s: Option<NonZeroU32>) -> Self {
        match (profile_s, expired_s) {
            (None, Some(_)) => Self::ExpiredRegistration,
            (Some(_), _) | (None, None) => Self::Profile,
        }
    }
}

/// A time that may be missing, in eight bytes instead of sixteen: every device has one.
#[derive(Clone, Copy)]
struct CompactTime(i64);

impl CompactTime {
    /// Before every time of a calendar.
    const MISSING_MS: i64 = i64::MIN;

    fn of(time: Option<Timestamp>) -> Self {
        Self(time.map_or(Self::MISSING_MS, Timestamp::as_ms))
    }

    fn time(self) -> Option<Timestamp> {
        (self.0 != Self::MISSING_MS).then_some(Timestamp::from_ms(self.0))
    }
}

/// Replaces a value. Returns whether it changed.
fn amend<T: PartialEq>(place: &mut T, value: T) -> bool {
    let changed = *place != value;
    *place = value;
    changed
}
