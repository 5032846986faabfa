//! One device: what it is heard to say and what is asked of it, decided.
//!
//! [`Device`] has four kinds of calls: `restore` begins it; `handle_datagram` and
//! `handle_timeout` tell it what happened; `submit`, `cancel`, `cancel_all` and `retire` ask
//! something of it; the rest looks. Each call leaves all its effects in the buffer it is given.
//! `next_timeout` says when `handle_timeout` is due; calling it early does no harm.
//!
//! ```text
//!              register                    lifetime over, deregister
//!  unregistered -------> awake <---------> unregistered
//!                        |   ^
//!     window over (queue |   | any uplink
//!     mode only)         v   |
//!                        asleep
//! ```

mod asking;
mod attempt;
mod busy;
mod data;
mod exchange;
mod fetching;
mod formats;
pub mod identity;
mod incoming;
pub mod objects;
mod observation;
mod pace;
mod passive;
mod plain;
pub mod queue;
mod reach;
pub mod record;
mod registering;
mod samples;
mod sending;
pub mod snapshot;
pub mod standing;
mod telling;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;

use protocol::coap::exchange::Transmission;
use protocol::coap::message::{Message, MessageId};
use protocol::coap::recent::Recent;
use protocol::coap::transfer::TransferRules;

use crate::action::Protocol;
use crate::change::{Add, Change, Counter, Expect, Name};
use crate::datagram::Datagram;
use crate::effect::{Effect, Effects};
use crate::ids::DeviceKey;
use crate::limits::{Limits, PRESENCE_SAVE_MS, TRANSFER_IDLE_MS};
use crate::location::Location;
use crate::moment::{Moment, Timestamp};
use crate::occurrence::{Asked, Ending, Heard, What};
use crate::peer::Peer;
use crate::setting::SettingState;
use crate::terms::Terms;

use busy::Busy;
use formats::FormatSet;
use identity::Identity;
use objects::ObjectLists;
use pace::Pace;
use passive::Learned;
use queue::Pending;
use record::{DeviceRecord, Registration, Restored};
use snapshot::{Presence, Snapshot};

/// What holds for every device alike.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The bounds.
    pub limits: Limits,
    /// The transmission parameters of requests to devices (RFC 7252 section 4.8).
    pub transmission: Transmission,
    /// Whether an endpoint name alone proves who registers.
    pub names: NameTrust,
    /// Where the service itself is heard; nothing is sent there.
    pub own: Box<[SocketAddr]>,
}

impl Rules {
    /// The rules with these bounds, this patience, and this trust.
    pub fn new(limits: Limits, patience: Patience, names: NameTrust) -> Self {
        let transmission = Transmission {
            ack_timeout_ms: patience.ack_timeout_ms,
            max_retransmit: patience.max_retransmit,
            response_timeout_ms: patience.response_timeout_ms,
            ..Transmission::STANDARD
        };
        Self {
            limits,
            transmission,
            names,
            own: Box::default(),
        }
    }

    /// How requests to devices go, whatever number of messages they take.
    pub fn transfers(&self) -> TransferRules<'_> {
        TransferRules {
            transmission: &self.transmission,
            block: self.limits.block,
            answer_bytes_max: self.limits.answer_bytes_max,
            idle_ms: TRANSFER_IDLE_MS,
        }
    }

    /// Whether somebody at an address would be the service itself.
    pub fn is_own(&self, address: SocketAddr) -> bool {
        let is_at = |own: &SocketAddr| {
            let is_everywhere = own.ip().is_unspecified() && address.ip().is_loopback();
            own.port() == address.port() && (own.ip() == address.ip() || is_everywhere)
        };
        self.own.iter().any(is_at)
    }
}

/// How long and how often the service tries to get a message across.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The shortest first wait for an acknowledgement: ACK_TIMEOUT.
    pub ack_timeout_ms: u32,
    /// How often an unacknowledged message is repeated: MAX_RETRANSMIT.
    pub max_retransmit: u8,
    /// How long an acknowledged request waits for its response.
    pub response_timeout_ms: u32,
}

/// Whether the name a device registers with proves anything without DTLS.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum NameTrust {
    /// A name alone proves nothing: the device must come from its own address.
    #[default]
    AddressRequired,
    /// A device without an address of its own is believed.
    NameSuffices,
}

/// One device.
///
/// There are a million of them: what an update needs lies here, what is rare or asked for rarely
/// is boxed.
pub struct Device {
    terms: Arc<Terms>,
    identity: Box<Identity>,
    /// The key of the identity, which is a digest and dear to compute for every update.
    key: DeviceKey,
    record: DeviceRecord,
    /// When the record was last saved, in seconds since 1970, 0 if it never was; between saves
    /// presence lives here alone.
    record_saved_s: u32,
    /// What its peer sent lately, so that a repeated datagram is answered and not done again.
    recent: Recent,
    /// What it is at; an idle device is at nothing.
    busy: Option<Box<Busy>>,
    next_message_id: u16,
    /// How much of what it says was taken lately.
    pace: Pace,
    /// The formats it refused since it registered.
    refused: FormatSet,
    /// What it refused when its objects were read.
    learned: Learned,
    /// The list of its objects may be a copy of its own.
    objects_unshared: bool,
    /// It did not answer, and was not heard since.
    silent: bool,
}

impl Device {
    /// Brings a device back from what was kept of it.
    ///
    /// An attempt that was in flight counts as made. A registration gets what remains of its
    /// lifetime and, because updates that change nothing are saved only now and then, as much
    /// longer as may have gone unsaved.
    pub fn restore(m: &mut Moment, terms: Arc<Terms>, restored: Restored) -> Self {
        let Restored {
            profile,
            mut record,
            pending,
        } = restored;
        let now = m.now();
        if let Some(registration) = &mut record.registration {
            let whole = now.plus_s(i64::from(registration.lifetime_s()));
            let unsaved = registration.expires_at.plus_ms(PRESENCE_SAVE_MS);
            registration.expires_at = registration.expires_at.max(whole.min(unsaved));
        }
        let last_seen_at = record.last_seen_at.unwrap_or_default();
        let pending: Vec<Pending> = pending.into_iter().map(Pending::restored).collect();
        Self {
            key: profile.key(),
            identity: Box::new(Identity::of(&profile)),
            record_saved_s: last_seen_at.as_short_s(),
            recent: Recent::default(),
            busy: (!pending.is_empty()).then(|| Box::new(Busy::restored(pending))),
            next_message_id: u16::try_from(m.next_u32() >> 16).expect("shifted to 16 bits"),
            pace: Pace::default(),
            learned: Learned::default(),
            refused: FormatSet::default(),
            objects_unshared: true,
            silent: false,
            record,
            terms,
        }
    }

    /// Takes in a message of this device, or of somebody who claims to be it, and says for what it
    /// was taken.
    pub fn handle_datagram(
        &mut self,
        m: &mut Moment,
        datagram: &Datagram,
        out: &mut Effects,
    ) -> Heard {
        if self.repeat_answer(m, datagram, out) {
            return Heard::Repeated;
        }
        let heard = self.hear(m, datagram, out);
        self.begin_attempt(m, out);
        self.rest();
        heard
    }

    /// Does what time asks for.
    pub fn handle_timeout(&mut self, m: &mut Moment, out: &mut Effects) {
        self.settle_restored(m, out);
        // First, so that nothing is repeated to a device that is gone.
        self.expire_registration(m, out);
        self.drive_attempt(m, out);
        self.expire_actions(m, out);
        self.begin_attempt(m, out);
        if let Some(busy) = &mut self.busy {
            busy.end_lingering(m.now());
        }
        self.rest();
    }

    /// Forgets the device with all that belongs to it.
    pub fn retire(&mut self, out: &mut Effects) {
        let there = Expect::Taken(Name::Device(self.key()));
        out.push(Effect::Expect(there));
        out.push(Effect::Save(Change::RemoveDevice(self.key())));
        let counter = Counter::Devices(self.identity.customer());
        out.push(Effect::Count(Add { counter, delta: -1 }));
        let from = self.bound_peer();
        self.note_ending(Ending::DeviceGone, out);
        self.end_exchange(out);
        for Pending { action, .. } in self.pending() {
            out.note(Some(action.trace), What::Removed(Asked::by(action)));
        }
        self.record.registration = None;
        self.busy = None;
        out.rebind(from, None);
    }

    /// Takes the list of objects that others offer, too, instead of a copy of its own; to be
    /// called when the device was restored and when a step is over.
    pub fn share_objects(&mut self, lists: &mut ObjectLists) {
        if std::mem::take(&mut self.objects_unshared)
            && let Some(registration) = &mut self.record.registration
        {
            lists.share(&mut registration.links);
        }
    }

    /// Goes by these terms from now on, because its customer chose anew.
    pub fn take_terms(&mut self, terms: Arc<Terms>) {
        match terms.passive_reporting {
            SettingState::Enabled => {}
            SettingState::Disabled => self.stop_reporting(),
        }
        self.terms = terms;
    }

    /// The terms it goes by.
    pub fn terms(&self) -> &Arc<Terms> {
        &self.terms
    }

    /// When `handle_timeout` is due.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        let registration = self.record.registration.as_ref().map(|r| r.expires_at);
        let busy = self.busy.as_ref().and_then(|busy| busy.next_timeout());
        [registration, busy].into_iter().flatten().min()
    }

    /// The key of the device.
    pub fn key(&self) -> DeviceKey {
        self.key
    }

    /// Where datagrams of this device come from, while it is registered.
    pub fn bound_peer(&self) -> Option<Peer> {
        self.record.registration.as_ref().and(self.record.peer)
    }

    /// Whether nothing would be lost if the device were brought back from the store instead.
    pub fn is_idle(&self) -> bool {
        self.record.registration.is_none() && self.busy.is_none()
    }

    /// Whether the device listens now.
    pub fn presence(&self, now: Timestamp) -> Presence {
        match &self.record.registration {
            None => Presence::Unregistered,
            // The wake-up that ends it may come late.
            Some(r) if r.expires_at <= now => Presence::Unregistered,
            Some(r) if r.binding.queue_mode() && now >= self.awake_until() => Presence::Asleep,
            Some(_) => Presence::Awake,
        }
    }

    /// What the device is doing right now.
    pub fn snapshot(&self, now: Timestamp) -> Snapshot {
        Snapshot {
            first_heard_at: self.record.first_heard_at,
            last_seen_at: self.record.last_seen_at,
            peer: self.record.peer,
            heard_over: self.record.heard_over.last(),
            presence: self.presence(now),
            registration: self.record.registration.clone(),
            pending: self
                .pending()
                .iter()
                .map(|pending| pending.action.clone())
                .collect(),
            observations: self.record.observations.to_vec(),
        }
    }

    /// Requests that are not final, oldest first.
    fn pending(&self) -> &[Pending] {
        self.busy.as_ref().map_or(&[], |busy| &busy.pending)
    }

    /// Keeps nothing of what is over: a step ends so.
    fn rest(&mut self) {
        self.busy.take_if(|busy| busy.is_over());
    }

    /// Notes that the device was heard: whatever waits for it may go out. Says whether it was never
    /// heard over the protocol before.
    fn note_uplink(&mut self, now: Timestamp, protocol: Protocol) -> bool {
        self.note_awake(now);
        self.release_pending();
        self.record.heard_over.note(protocol)
    }

    /// Notes that the device is there; an answer says no more than that.
    fn note_awake(&mut self, now: Timestamp) {
        self.record.last_seen_at = Some(now);
        self.silent = false;
    }

    /// Until when a queue-mode device listens.
    fn awake_until(&self) -> Timestamp {
        let last_seen_at = self.record.last_seen_at.unwrap_or_default();
        if self.silent {
            return last_seen_at;
        }
        last_seen_at.plus_ms(self.terms.rules.limits.awake_window_ms)
    }

    /// Keeps the device from being idle: what it remembers now counts until then.
    fn linger(&mut self, until: Timestamp) {
        let lingers_until = &mut self.busy.get_or_insert_default().lingers_until;
        *lingers_until = (*lingers_until).max(Some(until));
    }

    fn save_record(&mut self, now: Timestamp, out: &mut Effects) {
        self.record_saved_s = now.as_short_s();
        let record = Box::new(self.record.clone());
        out.push(Effect::Save(Change::PutRecord {
            device: self.key(),
            record,
        }));
    }

    fn location(&self, registration: &Registration) -> Location {
        Location::new(self.key(), registration.salt)
    }

    fn take_message_id(&mut self) -> MessageId {
        let id = MessageId(self.next_message_id);
        self.next_message_id = self.next_message_id.wrapping_add(1);
        id
    }

    fn send(to: Peer, message: &Message, out: &mut Effects) {
        out.send(to, message.encode());
    }
}
