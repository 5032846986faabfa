//! How devices and the service speak over DTLS: records on the network, and a session at both ends.

use std::net::SocketAddr;

use dtls::Moment;
use engine::arbiter::input::Received;
use engine::associations::handshake::HandshakeOutcome;
use engine::associations::{
    AssociationEffect, Associations, ClaimId, ClaimedIdentity, KnownCredentials, OpenPsk,
    SecureMoment,
};
use engine::credentials::Psk;
use engine::dispatch::shard_map::ArbiterId;
use engine::ids::DeviceKey;
use engine::moment::Timestamp;
use engine::peer::Peer;
use harness::rng::Rng;
use zeroize::Zeroizing;

use super::World;
use crate::disk::Author;
use crate::event::Event;
use crate::laws::secrecy;
use crate::secured::{ClientOutput, ClientRole, SecuredClient};
use crate::service::{Arbiter, ArbiterRun};
use crate::trace::TraceEvent;

impl World {
    /// A device says something over its session.
    pub(super) fn device_seals(&mut self, who: usize, message: Vec<u8>) {
        let of = self.fleet.member(who).of;
        self.laws.sealed.said(of, &message);
        let device = (who, ClientRole::Device);
        self.let_client(device, |client, m, out| client.say(m, message, out));
    }

    /// A record reaches the client that has the address now.
    pub(super) fn record_reaches_device(&mut self, to: Peer, record: &[u8]) {
        match self.fleet.secured_at(to.address) {
            Some(of) => {
                self.let_client(of, |client, m, out| client.handle_record(m, record, out));
            }
            None => self.note(TraceEvent::NobodyHears {
                port: Self::port_of(to),
            }),
        }
    }

    pub(super) fn client_due(&mut self, who: usize) {
        let now_ms = self.now_ms;
        if let Some(client) = &mut self.fleet.member_mut(who).secured {
            client.armed_at_ms.take_if(|at_ms| *at_ms <= now_ms);
        }
        self.let_client((who, ClientRole::Device), SecuredClient::handle_timeout);
    }

    /// Lets a client act. That of the device alone is woken: others begin anew.
    pub(super) fn let_client(
        &mut self,
        (who, role): (usize, ClientRole),
        act: impl FnOnce(&mut SecuredClient, &mut Moment<'_>, &mut Vec<ClientOutput>),
    ) {
        let from = Peer::secured(self.fleet.address_of((who, role)));
        let Some(client) = self.fleet.member_mut(who).client_mut(role) else {
            return;
        };
        let mut outputs = Vec::new();
        {
            let mut entropy = entropy(&mut self.rng);
            let mut m = Moment {
                now: dtls::Timestamp::from_ms(self.now_ms as u64),
                entropy: &mut entropy,
            };
            act(client, &mut m, &mut outputs);
        }
        if role == ClientRole::Device
            && let Some(at_ms) = client.next_timeout_ms()
            && client.armed_at_ms.is_none_or(|armed_at| at_ms < armed_at)
        {
            client.armed_at_ms = Some(at_ms);
            let at_ms = at_ms.max(self.now_ms);
            self.queue.push(at_ms, Event::ClientDue { who });
        }
        for output in outputs {
            match output {
                ClientOutput::Send(record) => self.travel(|| Event::ReachesService {
                    from,
                    datagram: record.clone(),
                }),
                ClientOutput::Hear(message) => self.client_hears((who, role), &message),
                ClientOutput::Fail if role == ClientRole::Device => self.handshake_failed(who),
                ClientOutput::Fail => {}
            }
        }
    }

    fn client_hears(&mut self, (who, role): (usize, ClientRole), message: &[u8]) {
        let of = self.fleet.member(who).of;
        let verdict = match role {
            ClientRole::Device => self.laws.sealed.reached(of, message),
            ClientRole::Downloads => {
                let asked = &self.fleet.member(who).downloading;
                let is_asked =
                    secrecy::a_session_for_downloads_does_not_move_a_device(of, asked, message);
                is_asked.and_then(|()| self.laws.sealed.reached(of, message))
            }
            ClientRole::Impostor => secrecy::an_ended_key_hears_nothing(of, message),
        };
        self.check(verdict);
        if role == ClientRole::Device {
            self.device_hears(who, message);
        }
    }

    /// A record reaches a socket of the service.
    pub(super) fn record_reaches_service(&mut self, from: Peer, record: &[u8]) {
        if let Some((from, at)) = self.service.dealt_to(from) {
            self.decide_secured(at, |associations, m, out| {
                associations.handle_datagram(m, from, record, out);
            });
        }
    }

    /// A record reaches the arbiter that has its session.
    pub(super) fn record_forwarded(&mut self, at: ArbiterRun, from: Peer, record: &[u8]) {
        self.decide_secured(at, |associations, m, out| {
            associations.handle_forwarded(m, from, record, out);
        });
    }

    pub(super) fn associations_due(&mut self, at: ArbiterRun) {
        if self.service.has(at) {
            self.service.associations.disarm(at.id, self.now_ms);
            self.decide_secured(at, Associations::handle_timeout);
        }
    }

    /// The disk has been read for a handshake.
    pub(super) fn credentials_read(
        &mut self,
        at: ArbiterRun,
        (claim, identity): (ClaimId, &ClaimedIdentity),
    ) {
        if !self.service.has(at) {
            return;
        }
        let durable = &self.disk.durable;
        let mut existing = (0..durable.devices()).filter(|who| durable.exists(*who));
        let found = existing.find_map(|who| {
            let profile = durable.profile(who);
            let psks = identity.psks_of(profile).into_iter();
            let open = |psk: &Psk| OpenPsk::new(psk, Zeroizing::new(psk.key.as_bytes().to_vec()));
            let psks: Vec<OpenPsk> = psks.map(open).collect();
            (!psks.is_empty()).then(|| KnownCredentials {
                profile: Box::new(profile.clone()),
                psks,
                authorities: None,
            })
        });
        let found = self.read().map(|()| found);
        self.decide_secured(at, |associations, m, out| {
            associations.handle_credentials(m, claim, found, out);
        });
    }

    /// The service sends a device a message over its session, which another arbiter may have.
    pub(super) fn send_secured(&mut self, at: ArbiterRun, who: usize, message: Vec<u8>) {
        let key = self.disk.durable.key(who);
        let arbiter = self.service.arbiter_mut(at);
        let home = arbiter.and_then(|arbiter| arbiter.association_home(key));
        match home {
            Some(home) if home != at.id => {
                if let Some((at, at_ms)) = self.arrival_of(at.id, home) {
                    let message = Event::MessageForwarded { at, who, message };
                    self.queue.push(at_ms, message);
                }
            }
            Some(_) => self.seal(at, who, &message),
            None => {}
        }
    }

    pub(super) fn message_forwarded(&mut self, at: ArbiterRun, who: usize, message: &[u8]) {
        self.seal(at, who, message);
    }

    /// An arbiter seals a message to a device, if it has a session with it.
    fn seal(&mut self, at: ArbiterRun, who: usize, message: &[u8]) {
        let key = self.disk.durable.key(who);
        let mut is_sealed = false;
        self.decide_secured(at, |associations, m, out| {
            is_sealed = associations.send(m, key, message, out);
        });
        if is_sealed {
            self.laws.sealed.told(who, message);
        }
    }

    /// An arbiter seals an answer to a device, if it has a session with it.
    pub(super) fn seal_answer(
        &mut self,
        at: ArbiterRun,
        (who, address): (usize, SocketAddr),
        message: &[u8],
    ) {
        let to = (self.disk.durable.key(who), address);
        let mut is_sealed = false;
        self.decide_secured(at, |associations, m, out| {
            is_sealed = associations.answer(m, to, message, out);
        });
        if is_sealed {
            self.laws.sealed.told(who, message);
        }
    }

    /// The sessions of a device that was removed end.
    pub(super) fn end_sessions(&mut self, who: usize) {
        let key = self.disk.durable.key(who);
        let running = self.service.arbiters().map(Arbiter::run);
        for at in running.collect::<Vec<ArbiterRun>>() {
            self.decide_secured(at, |associations, m, out| associations.end(m, key, out));
        }
    }

    /// The service is stopped in order: it keeps its sessions for the next start.
    pub(crate) fn stop(&mut self) {
        if self.service.is_up() {
            self.note(TraceEvent::World("the service keeps its sessions"));
            for id in self.service.shard_map().arbiters() {
                self.census.sessions_kept += self.service.associations.keep(id);
            }
            self.crash();
        }
    }

    /// Counts the handshakes of an arbiter that is about to end.
    pub(super) fn count_associations(&mut self, id: ArbiterId) {
        let Some(counts) = self.service.associations.counts(id) else {
            return;
        };
        let of = |outcome: HandshakeOutcome| counts.handshakes[outcome.index()];
        self.census.sessions_made += of(HandshakeOutcome::Completed);
        self.census.sessions_resumed += of(HandshakeOutcome::Resumed);
        self.census.sessions_moved += counts.address_changes;
    }

    fn decide_secured(
        &mut self,
        at: ArbiterRun,
        input: impl FnOnce(&mut Associations, &mut SecureMoment<'_>, &mut Vec<AssociationEffect>),
    ) {
        if !self.service.has(at) {
            return;
        }
        let mut effects = Vec::new();
        let Some(associations) = self.service.associations.of(at.id) else {
            return;
        };
        {
            let mut entropy = entropy(&mut self.rng);
            let mut m = SecureMoment {
                now: Timestamp::from_ms(self.now_ms),
                entropy: &mut entropy,
            };
            input(associations, &mut m, &mut effects);
        }
        if let Some(due) = associations.next_timeout() {
            let at_ms = due.as_ms().max(self.now_ms);
            if self.service.associations.arm(at.id, at_ms) {
                self.queue.push(at_ms, Event::AssociationsDue { at });
            }
        }
        for effect in effects {
            self.perform_secured(at, effect);
        }
    }

    fn perform_secured(&mut self, at: ArbiterRun, effect: AssociationEffect) {
        match effect {
            AssociationEffect::Send(to, record) => self.leave_node(at, || Event::ReachesDevice {
                to,
                datagram: record.clone(),
            }),
            AssociationEffect::Forward(to, from, record) => {
                if let Some((at, at_ms)) = self.arrival_of(at.id, to) {
                    let record = Event::RecordForwarded { at, from, record };
                    self.queue.push(at_ms, record);
                }
            }
            AssociationEffect::LookUp(claim, identity) => {
                let at_ms = self.now_ms + self.read_ms();
                let look_up = (claim, identity);
                self.queue
                    .push(at_ms, Event::CredentialsRead { at, look_up });
            }
            AssociationEffect::Receive(device, peer, message) => {
                self.message_received(at, (device, peer), &message, Received::decode_secured);
            }
            AssociationEffect::ReceiveForBootstrap(device, peer, message) => {
                let decode = Received::decode_for_bootstrap;
                self.message_received(at, (device, peer), &message, decode);
            }
            AssociationEffect::Commit(batch) => self.commit_as(Author::KeyUse, *batch),
            AssociationEffect::Cache(record) => self.service.associations.cache(record),
            AssociationEffect::Refuse(device, peer, fault) => {
                let number = self.number_at(at);
                let refused = Received::refused_handshake(number, device, peer, fault);
                self.receive(at, (number, peer), refused);
            }
        }
    }

    fn message_received(
        &mut self,
        at: ArbiterRun,
        (device, peer): (DeviceKey, Peer),
        message: &[u8],
        decode: impl FnOnce(u64, DeviceKey, Peer, &[u8]) -> Received,
    ) {
        let who = self.service.who(device);
        let verdict = self.laws.sealed.heard(who, message);
        self.check(verdict);
        let number = self.number_at(at);
        self.note(TraceEvent::ServiceHears {
            port: Self::port_of(peer),
            at: at.id,
            number,
            datagram: message.into(),
        });
        let received = decode(number, device, peer, message);
        self.receive(at, (number, peer), received);
    }

    /// A number that says where the session of a message is, as the shell gives it.
    fn number_at(&mut self, at: ArbiterRun) -> u64 {
        at.id.datagram_number(self.next_number())
    }
}

fn entropy(rng: &mut Rng) -> impl FnMut(&mut [u8]) + '_ {
    |bytes| bytes.fill_with(|| rng.number() as u8)
}
