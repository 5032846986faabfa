//! How is an uplink handled? The device registers, updates, deregisters (LwM2M Core 1.2 section
//! 6.2), notifies, sends values or data.
//!
//! Every uplink releases the requests that wait for the device.

use protocol::coap::assembly::AssemblyOutcome;
use protocol::coap::code::Code;
use protocol::lwm2m::registration::{Register, RegistrationRefusal, Update};

use super::Step;
use crate::action::Protocol;
use crate::admin_log::entry::{DeviceSighting, Entry};
use crate::datagram::{Datagram, UdpDatagram};
use crate::device::exchange::ExchangeTarget;
use crate::device::ingest::IngestOutcome;
use crate::device::observations::NotificationKind;
use crate::device::reachability::DTLS_REQUIRED;
use crate::device::rejections::{quoted, registration_fault};
use crate::diagnostic;
use crate::dispatch;
use crate::event::{EventContent, Lifecycle};
use crate::limits::{DATA_REMEMBERED_MS, DEREGISTRATION_REPEATED_MS};
use crate::location::Location;
use crate::moment::Moment;
use crate::peer::{Peer, Transport};
use crate::route::{CoapRoute, DeviceOperation};
use crate::step_event::{ExchangeOutcome, NotificationOutcome, StepEventKind, UplinkKind};

/// The answer to a registration that is not accepted from its sender.
const FORBIDDEN: (Code, &str) = (Code::FORBIDDEN, diagnostic::NAME_NOT_ACCEPTED);

/// The answer to an update or deregistration of a registration that is not the sender's.
const NO_REGISTRATION: (Code, &str) = (Code::NOT_FOUND, diagnostic::REGISTER_AGAIN);

/// The answer to data from an address that is not exactly this device's.
const UNAUTHORIZED: (Code, &str) = (Code::UNAUTHORIZED, diagnostic::UNKNOWN_ADDRESS);

/// Why values beyond the rate of a device are rejected.
const TOO_MANY_VALUES: &str = "the device sent more values within a minute than are accepted";

impl Step<'_> {
    pub(super) fn register(&mut self, datagram: &Datagram) {
        let message = &datagram.message;
        // Checked first: for a sender who may not register no body is assembled, so the message may
        // be a single block, which must not be decoded.
        if let Err(why) = self.cx.reachability().admit(datagram.peer) {
            return self.refuse(datagram, FORBIDDEN, why);
        }
        let name = self.cx.registration.identity().endpoint();
        let (queries, links) = (message.uri_query(), &message.payload);
        let decoded = match datagram.peer.association {
            Some(_) => Register::decode_authenticated(queries, links, name),
            None => Register::decode(queries, links),
        };
        let register = match decoded {
            Ok(register) => register,
            Err(refusal) => return self.refuse_parameters(datagram, refusal),
        };
        let name = self.cx.registration.identity().endpoint();
        if *register.endpoint != *name {
            let sent = quoted(&register.endpoint);
            let why = format!("it has the endpoint name {sent}, and the device has {name:?}");
            return self.refuse(datagram, FORBIDDEN, &why);
        }
        let now = self.cx.now();
        let weight = self.cx.rules().limits.registration_weight();
        if !self.ingest.take(&self.cx, weight) {
            let why = "the device registered more often within a minute than is accepted";
            return self.put_off(datagram, why);
        }
        let from = self.cx.registration.bound_peer();
        self.messages.move_to(&mut self.cx, datagram.peer);
        self.end_reading();
        let salt = self.cx.m.next_u32();
        self.cx.registration.begin(register, salt, now);
        let is_first = self.cx.registration.note_first_contact(now);
        if is_first {
            self.publish(Lifecycle::FirstContact);
        }
        self.observations.renew_all();
        self.note_uplink(Protocol::Lwm2m);
        self.note_registered_for_update();
        self.save_record();
        self.publish(Lifecycle::Registered);
        if is_first {
            self.cx.log(Entry::first_registered);
        }
        self.passive.renew(&mut self.cx);
        self.hasten_update();
        self.rebind(from);
        self.answer(datagram, Code::CREATED);
    }

    /// Answers that the parameters or objects of a registration or update are invalid.
    fn refuse_parameters(&mut self, datagram: &Datagram, refusal: RegistrationRefusal) {
        let why = registration_fault(refusal, &datagram.message);
        let text = refusal.to_string();
        self.refuse(datagram, (refusal.code(), &text), &why);
    }

    pub(super) fn update(&mut self, datagram: &Datagram, location: Location) {
        let message = &datagram.message;
        if let Err(why) = self.cx.reachability().speaks_for(location, datagram.peer) {
            return self.refuse(datagram, NO_REGISTRATION, why);
        }
        let update = match Update::decode(message.uri_query(), &message.payload) {
            Ok(update) => update,
            Err(refusal) => return self.refuse_parameters(datagram, refusal),
        };
        let now = self.cx.now();
        let from = self.cx.registration.bound_peer();
        let moved = from != Some(datagram.peer) && self.observations.renew_all();
        self.messages.move_to(&mut self.cx, datagram.peer);
        self.note_uplink(Protocol::Lwm2m);
        let changed = self.cx.registration.update(update, now);
        if changed || moved || self.cx.registration.is_stale(now) {
            self.save_record();
        }
        if changed {
            self.publish(Lifecycle::Updated);
        }
        self.passive.renew(&mut self.cx);
        self.hasten_update();
        self.rebind(from);
        self.answer(datagram, Code::CHANGED);
    }

    pub(super) fn deregister(&mut self, datagram: &Datagram, location: Location) {
        if let Err(why) = self.cx.reachability().speaks_for(location, datagram.peer) {
            return self.refuse(datagram, NO_REGISTRATION, why);
        }
        let from = self.cx.registration.bound_peer();
        self.messages.move_to(&mut self.cx, datagram.peer);
        self.cx.note_heard();
        self.end_registration(from, "the device deregistered");
        self.publish(Lifecycle::Deregistered);
        self.ingest
            .linger(self.cx.now().plus_ms(DEREGISTRATION_REPEATED_MS));
        self.answer(datagram, Code::DELETED);
    }

    /// Ends a registration that expired, and notes that the device is offline if it was silent for
    /// too long.
    pub(in crate::device) fn note_absence(&mut self) {
        let (now, customer_s) = (self.cx.now(), self.cx.policy.offline_after_s);
        self.cx.registration.watch(customer_s);
        let is_offline = self.cx.registration.note_offline(now, customer_s);
        let registration = self.cx.registration.registration();
        if registration.is_some_and(|it| it.expires_at <= now) {
            if !is_offline {
                self.cx.registration.keep_lifetime();
            }
            let from = self.cx.registration.bound_peer();
            self.end_registration(from, "the registration of the device expired");
            self.publish(Lifecycle::Expired);
        }
        if is_offline {
            self.publish(Lifecycle::Offline);
        }
    }

    /// Notes that the awake window of a device in queue mode is over, if somebody wants to know.
    pub(in crate::device) fn note_asleep(&mut self) {
        if let Some(asleep_at) = self.cx.asleep_at()
            && asleep_at <= self.cx.now()
        {
            self.cx.registration.note_asleep();
            self.publish(Lifecycle::Asleep);
        }
    }

    /// Handles a response that answers no exchange: a notification, if something is observed under
    /// its token.
    pub(super) fn take_notification(&mut self, datagram: &Datagram) -> UplinkKind {
        let message = &datagram.message;
        // A device that deregistered has forgotten its observations, so a late notification is
        // rejected too.
        let observed = self.observations.key_observed_as(message.token);
        let is_registered = self.cx.registration.is_registered();
        let Some(key) = observed.filter(|_| is_registered) else {
            // A confirmable notification is repeated, and its path may be observed by then. If the
            // exchange in flight goes to this peer, the message may be for another device.
            let is_ambiguous = self.exchange.is_to_other_peer(&self.cx, datagram.peer);
            if !is_ambiguous && !self.exchange.is_about_to_observe(message.token) {
                self.messages.reject(&mut self.cx, datagram);
            }
            return UplinkKind::Unsolicited;
        };
        let (cx, ingest) = (&mut self.cx, &mut self.ingest);
        match self.observations.judge(cx, ingest, (key, datagram)) {
            NotificationKind::Unsupported => {
                self.cx
                    .note(StepEventKind::Notified(NotificationOutcome::Unusable));
                self.messages.reject(&mut self.cx, datagram);
            }
            NotificationKind::Excessive => {
                self.cx
                    .note(StepEventKind::Notified(NotificationOutcome::Excessive));
                self.log_rejection(datagram, None, TOO_MANY_VALUES);
            }
            NotificationKind::GoesOn => {
                self.cx.note_heard();
                self.messages.acknowledge(&mut self.cx, datagram);
                return UplinkKind::BlockPart;
            }
            NotificationKind::Whole => {
                self.note_uplink(Protocol::Lwm2m);
                let (cx, ingest) = (&mut self.cx, &mut self.ingest);
                let outcome = self.observations.take(cx, ingest, (key, message));
                self.cx.note(StepEventKind::Notified(outcome));
                self.save_stale_record();
                self.messages.acknowledge(&mut self.cx, datagram);
            }
        }
        UplinkKind::Notification
    }

    /// Handles a Send.
    pub(super) fn take_send(&mut self, datagram: &Datagram) {
        let (now, peer) = (self.cx.now(), datagram.peer);
        if let Err(why) = self.cx.reachability().is_registered_at(peer, now) {
            let answer = (Code::NOT_FOUND, diagnostic::NOT_REGISTERED_HERE);
            return self.refuse(datagram, answer, why);
        }
        if !self.ingest.take(&self.cx, 1) {
            self.cx
                .note(StepEventKind::Sent(NotificationOutcome::Excessive));
            return self.put_off(datagram, TOO_MANY_VALUES);
        }
        self.note_uplink(Protocol::Lwm2m);
        let outcome = self.ingest.take_send(&mut self.cx, &datagram.message);
        self.cx.note(StepEventKind::Sent(outcome.of_notification()));
        self.save_stale_record();
        self.answer_ingest(datagram, outcome);
    }

    /// Answers values or data that were stored before the service was restarted. Publishing them
    /// again would be a second event; as an uplink the message counts all the same, because what it
    /// released was not stored.
    pub(super) fn accept_again(&mut self, route: CoapRoute, datagram: &Datagram) -> UplinkKind {
        let kind = if route == CoapRoute::Send {
            self.note_uplink(Protocol::Lwm2m);
            self.save_stale_record();
            UplinkKind::Send
        } else {
            self.note_contact(datagram.peer, Protocol::Coap);
            self.messages.remember_other_peer(&self.cx, datagram.peer);
            UplinkKind::CoapData
        };
        self.answer(datagram, Code::CHANGED);
        kind
    }

    /// Answers values or data.
    fn answer_ingest(&mut self, datagram: &Datagram, outcome: IngestOutcome) {
        match outcome {
            IngestOutcome::Accepted(_) => self.answer(datagram, Code::CHANGED),
            IngestOutcome::Empty => {
                let text = "there is no data";
                self.refuse(datagram, (Code::BAD_REQUEST, text), text);
            }
            // It is logged with its bytes.
            IngestOutcome::Unusable(code, text) => {
                self.messages.refuse(&mut self.cx, datagram, (code, &text));
            }
        }
    }

    /// Handles data over plain CoAP. Its sender needs no registration: it is known by its address
    /// alone.
    pub(super) fn take_data(&mut self, datagram: &Datagram) {
        if !self.cx.reachability().is_home(datagram.peer) {
            let why = match self.cx.reachability().lacks_dtls(datagram.peer) {
                true => DTLS_REQUIRED,
                false => "it did not come from the IP address of the device",
            };
            return self.refuse(datagram, UNAUTHORIZED, why);
        }
        if !self.ingest.take(&self.cx, 1) {
            self.cx.note(StepEventKind::DataSent(
                Protocol::Coap,
                NotificationOutcome::Excessive,
            ));
            return self.put_off(datagram, TOO_MANY_VALUES);
        }
        self.note_contact(datagram.peer, Protocol::Coap);
        self.messages.remember_other_peer(&self.cx, datagram.peer);
        if self.is_too_long(&datagram.message) {
            self.cx.note(StepEventKind::DataSent(
                Protocol::Coap,
                NotificationOutcome::Unusable,
            ));
            return self.refuse_length(datagram);
        }
        let outcome = self.ingest.take_data(&mut self.cx, &datagram.message);
        let noted = StepEventKind::DataSent(Protocol::Coap, outcome.of_notification());
        self.cx.note(noted);
        self.answer_ingest(datagram, outcome);
    }

    /// Handles a bare datagram if it is the device's. Returns whether it is.
    pub(in crate::device) fn handle_udp(&mut self, bare: &UdpDatagram) -> bool {
        if self.cx.reachability().lacks_dtls(bare.peer) {
            let data = (DeviceOperation::Data, bare.peer);
            self.note_rejected(data, None, DTLS_REQUIRED);
            return false;
        }
        if !self.cx.reachability().is_home(bare.peer) {
            return false;
        }
        let outcome = if self.ingest.take(&self.cx, 1) {
            self.note_contact(bare.peer, Protocol::Udp);
            self.ingest.take_udp(&mut self.cx, &bare.bytes)
        } else {
            let why = "the device sent more data per minute than allowed";
            self.ingest.keep_rejected(&mut self.cx, why, &bare.bytes);
            NotificationOutcome::Excessive
        };
        self.cx
            .note(StepEventKind::DataSent(Protocol::Udp, outcome));
        true
    }

    /// Refuses a message that any of several devices may have sent, and logs that for one of them.
    pub(in crate::device) fn refuse_ambiguous(&mut self, datagram: &Datagram) {
        let why = "several devices have the address it came from, and nothing else tells which \
                   of them sent it";
        self.refuse(datagram, dispatch::refusal_of(&datagram.message), why);
    }

    /// Whether a peer may send such a request in blocks: no body is assembled for a sender who
    /// would be rejected.
    pub(super) fn may_send_blocks(&self, route: CoapRoute, datagram: &Datagram) -> bool {
        let (reach, peer) = (self.cx.reachability(), datagram.peer);
        match route {
            CoapRoute::Register => reach.admit(peer).is_ok(),
            CoapRoute::Update(location) => reach.speaks_for(location, peer).is_ok(),
            CoapRoute::Send => reach.is_registered_at(peer, self.cx.now()).is_ok(),
            CoapRoute::Data => reach.is_home(peer),
            CoapRoute::Deregister(_)
            | CoapRoute::Bootstrap
            | CoapRoute::Download(..)
            | CoapRoute::BootstrapPack
            | CoapRoute::NotAllowed(_)
            | CoapRoute::UnknownLocation
            | CoapRoute::Unknown => false,
        }
    }

    /// Adds a block to a body. Returns the whole message after the last block.
    pub(super) fn gather(&mut self, datagram: &Datagram) -> Option<Datagram> {
        let peer = datagram.peer;
        self.cx.note_heard();
        self.messages.remember_other_peer(&self.cx, peer);
        self.linger(DATA_REMEMBERED_MS);
        match self.ingest.gather(&self.cx, datagram) {
            AssemblyOutcome::Whole(message) => return Some(datagram.with(message)),
            AssemblyOutcome::Continue => self.answer(datagram, Code::CONTINUE),
            AssemblyOutcome::Incomplete => {
                let text = "the blocks before this one are missing";
                self.refuse(datagram, (Code::REQUEST_ENTITY_INCOMPLETE, text), text);
            }
            AssemblyOutcome::TooLarge { .. } => self.refuse_length(datagram),
            AssemblyOutcome::Malformed => {
                let text = "the block does not have the size it states";
                self.refuse(datagram, (Code::BAD_REQUEST, text), text);
            }
        }
        None
    }

    /// Answers that a body is too long.
    pub(super) fn refuse_length(&mut self, datagram: &Datagram) {
        let max = self.cx.rules().limits.data_bytes_max;
        let why = format!("the body exceeds the limit of {max} bytes");
        let bytes = &datagram.message.payload;
        self.ingest.keep_rejected(&mut self.cx, &why, bytes);
        self.messages.refuse_length(&mut self.cx, datagram, &why);
    }

    /// Notes an uplink, which releases whatever waits for the device. Returns whether it is the
    /// first uplink over the protocol.
    pub(super) fn note_uplink(&mut self, protocol: Protocol) -> bool {
        self.cx.note_heard();
        self.observations.release(self.exchange.target());
        let in_flight = self.exchange.action();
        self.queue.release(self.cx.now(), in_flight);
        self.release_update();
        self.cx.registration.note_protocol_seen(protocol)
    }

    /// Notes an uplink that needs no registration. Over any protocol it may be the first contact.
    fn note_contact(&mut self, peer: Peer, protocol: Protocol) {
        let now = self.cx.now();
        let is_first = self.cx.registration.note_first_contact(now);
        self.linger(DATA_REMEMBERED_MS);
        // A bare datagram has no message id, so its port does not matter.
        let current_ip = self.cx.registration.peer().map(|it| it.ip());
        let is_same_ip = peer.transport == Transport::Udp && current_ip == Some(peer.ip());
        if !self.cx.registration.is_registered() && !is_same_ip {
            self.messages.move_to(&mut self.cx, peer);
        }
        if is_first {
            self.publish(Lifecycle::FirstContact);
        }
        let is_new = self.note_uplink(protocol);
        if is_first || is_new || self.cx.registration.is_stale(now) {
            self.save_record();
        }
        if is_first {
            let entry = |m: &mut Moment, sighting: DeviceSighting<'_>| {
                Entry::first_heard(m, sighting, protocol)
            };
            self.cx.log_at(Some(peer), entry);
        }
    }

    /// Keeps the device from being idle.
    pub(super) fn linger(&mut self, for_ms: i64) {
        self.ingest.linger(self.cx.now().plus_ms(for_ms));
        self.messages.keep_other_peers();
    }

    /// Ends the registration of a device that was at `from`. `event` says how it ended.
    fn end_registration(&mut self, from: Option<Peer>, event: &str) {
        self.end_reading();
        self.cx.registration.end(self.cx.policy.offline_after_s);
        self.observations.renew_all();
        self.save_record();
        if self.exchange.is_to_registered_peer() {
            let why = format!("{event} before it answered");
            self.unanswered(ExchangeOutcome::DeviceGone, &why);
        }
        let why = format!("{event} before the request was sent");
        self.queue.end_registration(&mut self.cx, &why);
        self.cx.out.rebind(from, None);
        // A request over another protocol may have gone to the same peer.
        self.exchange.route_answers(&mut self.cx);
    }

    fn publish(&mut self, what: Lifecycle) {
        self.cx.publish(EventContent::Lifecycle(what));
    }

    /// Ends the reads for passive reporting, which belong to a registration.
    fn end_reading(&mut self) {
        if let Some(ExchangeTarget::Report(_)) = self.exchange.target() {
            self.exchange
                .note_ending(ExchangeOutcome::DeviceGone, self.cx.out);
            self.end_exchange();
        }
        self.passive.end_registration();
    }

    /// Binds the device to its peer on each uplink, even if it did not move: another device that
    /// had the peer before may have been restored since and have taken the binding.
    fn rebind(&mut self, from: Option<Peer>) {
        let to = self.cx.registration.bound_peer();
        self.cx.out.rebind(from.or(to), to);
        if from != to {
            self.exchange.route_answers(&mut self.cx);
        }
    }
}
