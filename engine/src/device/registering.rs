//! The registration of a device: register, update, deregister, expiry, and who may
//! (LwM2M Core 1.2 section 6.2).

use std::sync::Arc;

use protocol::coap::code::Code;
use protocol::lwm2m::links::ObjectLinks;
use protocol::lwm2m::registration::{Register, Update};

use crate::action::Protocol;
use crate::admin_log::entry::Entry;
use crate::datagram::Datagram;
use crate::device::formats::FormatSet;
use crate::device::record::Registration;
use crate::device::{Device, NameTrust};
use crate::effect::Effects;
use crate::event::Lifecycle;
use crate::limits::{
    FAREWELL_MS, LIFETIME_S_MAX, OVERLOAD_MAX_AGE_S, PRESENCE_SAVE_MS, REGISTRATION_PACE,
    REJECTION_LOG_MS,
};
use crate::location::Location;
use crate::moment::{Moment, Timestamp};
use crate::occurrence::Ending;
use crate::peer::Peer;

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

impl Device {
    pub(super) fn register(&mut self, m: &mut Moment, datagram: &Datagram, out: &mut Effects) {
        let message = &datagram.message;
        // First, because of somebody who may not, a part is not put together with the others.
        if let Err(why) = self.admit(datagram.peer) {
            return self.forbid(m, datagram, why, out);
        }
        let register = match Register::decode(message.uri_query(), &message.payload) {
            Ok(register) => register,
            Err(refusal) => return self.answer(m, datagram, refusal.code(), out),
        };
        let now = m.now();
        if !self.pace.take(now, REGISTRATION_PACE) {
            return self.put_off(datagram, out);
        }
        let from = self.bound_peer();
        self.move_to(datagram.peer);
        self.objects_unshared = true;
        let mut registration = Registration {
            salt: m.next_u32(),
            lifetime_asked_s: register.lifetime_s,
            expires_at: now,
            registered_at: now,
            version: register.version,
            binding: register.binding,
            sms: register.sms,
            links: self.objects_of(register.links),
        };
        registration.renew(now);
        self.end_reporting(out);
        self.record.registration = Some(registration);
        let first_ever = self.record.first_heard_at.is_none();
        self.record.first_heard_at.get_or_insert(now);
        self.owe_observations();
        self.refused = FormatSet::default();
        self.note_uplink(now, Protocol::Lwm2m);
        self.save_record(now, out);
        self.tell_lifecycle(m, Lifecycle::Registered, out);
        if first_ever {
            let entry = Entry::first_registered(m, self.seen_at(Some(datagram.peer)));
            self.log(m, entry, out);
        }
        self.owe_round();
        self.rebind(from, out);
        self.answer(m, datagram, Code::CREATED, out);
    }

    pub(super) fn update(
        &mut self,
        m: &mut Moment,
        datagram: &Datagram,
        location: Location,
        out: &mut Effects,
    ) {
        let message = &datagram.message;
        if !self.is_at(location, datagram.peer) {
            return self.answer(m, datagram, Code::NOT_FOUND, out);
        }
        let update = match Update::decode(message.uri_query(), &message.payload) {
            Ok(update) => update,
            Err(refusal) => return self.answer(m, datagram, refusal.code(), out),
        };
        let now = m.now();
        let from = self.bound_peer();
        let moved = from != Some(datagram.peer) && self.owe_observations();
        self.move_to(datagram.peer);
        self.note_uplink(now, Protocol::Lwm2m);
        let changed = self
            .record
            .registration
            .as_mut()
            .is_some_and(|registration| {
                let changed = registration.amend(update);
                registration.renew(now);
                changed
            });
        self.objects_unshared |= changed;
        if changed || moved || self.record_is_stale(now) {
            self.save_record(now, out);
        }
        self.owe_round();
        self.rebind(from, out);
        self.answer(m, datagram, Code::CHANGED, out);
    }

    pub(super) fn deregister(
        &mut self,
        m: &mut Moment,
        datagram: &Datagram,
        location: Location,
        out: &mut Effects,
    ) {
        if !self.is_at(location, datagram.peer) {
            return self.answer(m, datagram, Code::NOT_FOUND, out);
        }
        let from = self.bound_peer();
        self.move_to(datagram.peer);
        self.record.last_seen_at = Some(m.now());
        let why = "the device deregistered before it answered";
        self.end_registration(m, from, why, out);
        self.tell_lifecycle(m, Lifecycle::Deregistered, out);
        self.linger(m.now().plus_ms(FAREWELL_MS));
        self.answer(m, datagram, Code::DELETED, out);
    }

    pub(super) fn expire_registration(&mut self, m: &mut Moment, out: &mut Effects) {
        let due = |registration: &Registration| registration.expires_at <= m.now();
        if self.record.registration.as_ref().is_some_and(due) {
            let why = "the registration of the device expired before it answered";
            self.end_registration(m, self.bound_peer(), why, out);
            self.tell_lifecycle(m, Lifecycle::RegistrationExpired, out);
        }
    }

    /// Ends the registration of a device that was behind `from`.
    fn end_registration(
        &mut self,
        m: &mut Moment,
        from: Option<Peer>,
        why: &str,
        out: &mut Effects,
    ) {
        self.end_reporting(out);
        self.record.registration = None;
        self.owe_observations();
        self.save_record(m.now(), out);
        if self.is_asked_as_registered() {
            self.note_ending(Ending::DeviceGone, out);
            self.attempt_unanswered(m, why, out);
        }
        out.rebind(from, None);
        // What it was asked over another protocol may have been asked there.
        self.await_elsewhere(out);
    }

    /// The list of objects a device registers with: the one there is, if it says nothing new.
    fn objects_of(&self, links: ObjectLinks) -> Arc<ObjectLinks> {
        match &self.record.registration {
            Some(registration) if *registration.links == links => Arc::clone(&registration.links),
            Some(_) | None => Arc::new(links),
        }
    }

    /// Whether the location names the registration, and the peer may speak for it.
    pub(super) fn is_at(&self, location: Location, peer: Peer) -> bool {
        let named = self.record.registration.as_ref().map(|r| self.location(r));
        named == Some(location) && self.may_speak(peer)
    }

    /// Whether a peer may speak for the registration. A device that has an address has to come from
    /// it, even if it was given that address after it registered.
    pub(super) fn may_speak(&self, peer: Peer) -> bool {
        let is_where_it_was = self.record.peer == Some(peer);
        (is_where_it_was && self.identity.ip().is_none()) || self.admit(peer).is_ok()
    }

    /// Whether a peer without DTLS may be this device: a name alone proves nothing.
    pub(super) fn admit(&self, peer: Peer) -> Result<(), &'static str> {
        match (self.identity.ip(), self.terms.rules.names) {
            (Some(ip), _) if ip.to_canonical() == peer.ip() => Ok(()),
            (Some(_), _) => Err("it did not come from the device's address"),
            (None, NameTrust::NameSuffices) => Ok(()),
            (None, NameTrust::AddressRequired) => {
                Err("the device has no address of its own, and a name alone proves nothing")
            }
        }
    }

    /// Answers 4.03 and logs it, but not each time: strangers must not fill the log.
    fn forbid(&mut self, m: &mut Moment, datagram: &Datagram, why: &str, out: &mut Effects) {
        if self.may_log_rejection(m.now()) {
            let entry = Entry::registration_rejected(m, self.seen_at(Some(datagram.peer)), why);
            self.log(m, entry, out);
        }
        self.answer(m, datagram, Code::FORBIDDEN, out);
    }

    /// Whether somebody who was turned away is logged, which is then logged.
    pub(super) fn may_log_rejection(&mut self, now: Timestamp) -> bool {
        let logged_at = &mut self.busy.get_or_insert_default().rejection_logged_at;
        let is_due = logged_at.is_none_or(|at| !(0..REJECTION_LOG_MS).contains(&now.since_ms(at)));
        if is_due {
            *logged_at = Some(now);
            self.linger(now.plus_ms(REJECTION_LOG_MS));
        }
        is_due
    }

    /// Answers that the device comes too often. It is not remembered: it may try again.
    pub(super) fn put_off(&mut self, datagram: &Datagram, out: &mut Effects) {
        let answer = self.respond(&datagram.message, Code::SERVICE_UNAVAILABLE);
        let answer = answer.with_max_age(OVERLOAD_MAX_AGE_S);
        Self::send(datagram.peer, &answer, out);
    }

    /// Says where the device is each time it is heard, also when it did not move: another that was
    /// there before, brought back meanwhile, may be taken for it.
    fn rebind(&self, from: Option<Peer>, out: &mut Effects) {
        out.rebind(from.or(self.bound_peer()), self.bound_peer());
        if from != self.bound_peer() {
            self.await_elsewhere(out);
        }
    }

    pub(super) fn record_is_stale(&self, now: Timestamp) -> bool {
        let saved_at = Timestamp::default().plus_s(self.record_saved_s.into());
        now.since_ms(saved_at) >= PRESENCE_SAVE_MS
    }
}

/// Takes over a value and says whether it is another.
fn amend<T: PartialEq>(place: &mut T, value: T) -> bool {
    let changed = *place != value;
    *place = value;
    changed
}
