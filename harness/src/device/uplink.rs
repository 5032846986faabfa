//! What does the device send to its server by itself, and how does it handle the answer?

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId};
use protocol::coap::option;
use protocol::coap::token::Token;
use protocol::coap::transfer::{FreshIds, Transfer, TransferReception, TransferTimeout};
use protocol::lwm2m::value::Value;

use super::configuration::Lwm2m;
use super::event::{DeviceEvent, DeviceOutput, RegistrationLocation, Uplink};
use super::registration;
use super::resource::LIFETIME;
use super::session::{MessageIds, OpenRequest, RegistrationPhase, RequestPurpose};
use super::{SimulatedDevice, blocks};
use crate::rng::Rng;

/// The meaning of a lifetime of 0: the default of LwM2M Core 1.1 section 6.2.1.
const LIFETIME_DEFAULT_S: u32 = 86_400;

/// The shortest interval of automatic updates, so that no configuration causes a flood.
const UPDATE_INTERVAL_MIN_MS: i64 = 100;

impl SimulatedDevice {
    pub(super) fn begin_register(&mut self, now_ms: i64, out: &mut Vec<DeviceOutput>) {
        match self.configuration.lwm2m {
            Lwm2m::Spoken => {}
            Lwm2m::Unspoken => return,
        }
        if let Some(needed) = self.needed_bootstrap() {
            return self.begin_bootstrap(now_ms, needed, out);
        }
        let (message_id, token) = next_ids(&mut self.session.message_ids, &mut self.rng);
        let mut links = registration::first_link(&self.configuration);
        self.resources.write_links(&mut links);
        let lifetime_s = self.lifetime_s();
        let request =
            registration::register(&self.configuration, lifetime_s, links, message_id, token);
        // A server forgets the observations of the previous registration (LwM2M Core 1.1 section
        // 6.4).
        self.session.observations.forget();
        self.session.registration = RegistrationPhase::Registering;
        self.ask(
            now_ms,
            RequestPurpose::Register { lifetime_s },
            request,
            out,
        );
    }

    /// Contacts the server: with an update if the device is registered, otherwise with a
    /// registration.
    pub(super) fn begin_contact(&mut self, now_ms: i64, out: &mut Vec<DeviceOutput>) {
        if self.is_being_bootstrapped(now_ms) {
            return;
        }
        let lifetime_s = self.lifetime_s();
        let interval_ms = self.update_interval_ms();
        let RegistrationPhase::Registered {
            location,
            next_update_at_ms,
            lifetime_told_s,
        } = &mut self.session.registration
        else {
            return self.begin_register(now_ms, out);
        };
        *next_update_at_ms = now_ms.saturating_add(interval_ms);
        let (message_id, token) = next_ids(&mut self.session.message_ids, &mut self.rng);
        let mut request = registration::update(location, message_id, token);
        if *lifetime_told_s != lifetime_s {
            request = request.with_uri_query([format!("lt={lifetime_s}")]);
        }
        if self.resources.take_new_links() {
            let mut links = registration::first_link(&self.configuration);
            self.resources.write_links(&mut links);
            request = request
                .with_content_format(ContentFormat::LINK_FORMAT)
                .with_payload(links);
        }
        self.ask(now_ms, RequestPurpose::Update { lifetime_s }, request, out);
    }

    /// Deregisters, and abandons any other request.
    pub(super) fn begin_deregister(
        &mut self,
        now_ms: i64,
        again_at_ms: Option<i64>,
        out: &mut Vec<DeviceOutput>,
    ) {
        self.session.request = None;
        let (message_id, token) = next_ids(&mut self.session.message_ids, &mut self.rng);
        match &self.session.registration {
            RegistrationPhase::Registered { location, .. } => {
                let request = registration::deregister(location, message_id, token);
                self.ask(
                    now_ms,
                    RequestPurpose::Deregister { again_at_ms },
                    request,
                    out,
                );
            }
            RegistrationPhase::Resting { .. }
            | RegistrationPhase::Registering
            | RegistrationPhase::Bootstrapping { .. } => {
                self.rest_until(again_at_ms);
            }
        }
    }

    /// Contacts the server if it is time to.
    pub(super) fn keep_contact(&mut self, now_ms: i64, out: &mut Vec<DeviceOutput>) {
        let next_contact_at_ms = self.session.registration.next_contact_at_ms();
        let is_due = next_contact_at_ms.is_some_and(|at_ms| at_ms <= now_ms);
        if is_due && self.session.request.is_none() {
            self.begin_contact(now_ms, out);
        }
    }

    pub(super) fn hasten_update(&mut self, now_ms: i64) {
        self.postpone_update(now_ms, 0);
    }

    pub(super) fn rest_until(&mut self, until_ms: Option<i64>) {
        self.session.observations.forget();
        self.session.registration = RegistrationPhase::Resting { until_ms };
    }

    pub(super) fn rest_after_failure(&mut self, now_ms: i64) {
        let wait_ms = self.wait_after_failure_ms();
        self.rest_until(Some(now_ms.saturating_add(wait_ms)));
    }

    /// Retransmits the open request, or gives it up.
    pub(super) fn expire_request(&mut self, now_ms: i64, out: &mut Vec<DeviceOutput>) {
        let Some(request) = &mut self.session.request else {
            return;
        };
        match request.transfer.handle_timeout(now_ms) {
            TransferTimeout::NotYet => {}
            TransferTimeout::Retransmit => {
                out.push(DeviceOutput::Send(request.transfer.datagram().to_vec()));
            }
            TransferTimeout::Again => self.send_next_block(now_ms, out),
            TransferTimeout::GaveUp(_) => {
                let purpose = request.purpose;
                self.give_up(now_ms, purpose, out);
            }
        }
    }

    /// Handles a message that may concern the open request; returns whether it did.
    pub(super) fn handle_response(
        &mut self,
        now_ms: i64,
        bytes: &[u8],
        message: &Message,
        out: &mut Vec<DeviceOutput>,
    ) -> bool {
        let Some(request) = &mut self.session.request else {
            return false;
        };
        let purpose = request.purpose;
        let rules = blocks::rules(&self.configuration);
        match request.transfer.handle(now_ms, &rules, message) {
            TransferReception::NotMine => return false,
            TransferReception::Acknowledged => {}
            TransferReception::Proceeds { acknowledge } => {
                let reply = acknowledge.map(Message::acknowledgement);
                self.settle(now_ms, message, bytes, reply, out);
                self.send_next_block(now_ms, out);
            }
            TransferReception::Answered { acknowledge, whole } => {
                let reply = acknowledge.map(Message::acknowledgement);
                self.settle(now_ms, message, bytes, reply, out);
                self.conclude(now_ms, purpose, whole.as_deref().unwrap_or(message), out);
            }
            TransferReception::Broken { acknowledge, .. } => {
                let reply = acknowledge.map(Message::acknowledgement);
                self.settle(now_ms, message, bytes, reply, out);
                self.give_up(now_ms, purpose, out);
            }
            TransferReception::Unusable { reset, .. } => {
                let reply = reset.map(Message::reset);
                self.settle(now_ms, message, bytes, reply, out);
                self.give_up(now_ms, purpose, out);
            }
            TransferReception::Reset => self.give_up(now_ms, purpose, out),
        }
        true
    }

    /// Continues a block-wise request with the next block.
    fn send_next_block(&mut self, now_ms: i64, out: &mut Vec<DeviceOutput>) {
        let (message_id, token) = next_ids(&mut self.session.message_ids, &mut self.rng);
        let fresh = FreshIds {
            message_id,
            token,
            jitter: self.rng.number_u32(),
        };
        if let Some(request) = &mut self.session.request {
            let rules = blocks::rules(&self.configuration);
            request.transfer.proceed(now_ms, &rules, fresh);
            out.push(DeviceOutput::Send(request.transfer.datagram().to_vec()));
        }
    }

    /// Acknowledges or rejects a response that requires it, also when it is repeated.
    fn settle(
        &mut self,
        now_ms: i64,
        response: &Message,
        bytes: &[u8],
        reply: Option<Message>,
        out: &mut Vec<DeviceOutput>,
    ) {
        if let Some(reply) = reply {
            let datagram = reply.encode();
            self.session
                .dedup
                .remember(now_ms, response, bytes, &datagram);
            out.push(DeviceOutput::Send(datagram));
        }
    }

    fn conclude(
        &mut self,
        now_ms: i64,
        purpose: RequestPurpose,
        response: &Message,
        out: &mut Vec<DeviceOutput>,
    ) {
        self.session.request = None;
        match purpose {
            RequestPurpose::Bootstrap => {
                if let Err(code) = self.conclude_bootstrap_request(now_ms, response) {
                    out.push(refused(Uplink::Bootstrap, code));
                }
            }
            RequestPurpose::Deregister { again_at_ms } => {
                self.rest_until(again_at_ms);
                out.push(DeviceOutput::Report(DeviceEvent::Deregistered));
            }
            RequestPurpose::Register { lifetime_s } => {
                self.conclude_register(now_ms, lifetime_s, response, out);
            }
            RequestPurpose::Data => out.push(taken(Uplink::Data, response.code)),
            RequestPurpose::Send => out.push(taken(Uplink::Send, response.code)),
            RequestPurpose::Update { lifetime_s } => {
                self.conclude_update(now_ms, lifetime_s, response, out);
            }
        }
    }

    fn conclude_register(
        &mut self,
        now_ms: i64,
        lifetime_s: u32,
        response: &Message,
        out: &mut Vec<DeviceOutput>,
    ) {
        let location = RegistrationLocation::new(response.location_path());
        let Some(location) = location.filter(|_| response.code == Code::CREATED) else {
            let wait_ms = self.wait_after_refusal_ms(response);
            self.rest_until(Some(now_ms.saturating_add(wait_ms)));
            out.push(refused(Uplink::Register, response.code));
            return;
        };
        self.session.failures = 0;
        self.session.registration = RegistrationPhase::Registered {
            location: location.clone(),
            next_update_at_ms: now_ms.saturating_add(self.update_interval_ms()),
            lifetime_told_s: lifetime_s,
        };
        out.push(DeviceOutput::Report(DeviceEvent::Registered { location }));
    }

    fn conclude_update(
        &mut self,
        now_ms: i64,
        lifetime_s: u32,
        response: &Message,
        out: &mut Vec<DeviceOutput>,
    ) {
        match response.code {
            code if code.is_success() => {
                self.session.failures = 0;
                self.take_sent_lifetime(lifetime_s);
                out.push(DeviceOutput::Report(DeviceEvent::Updated));
            }
            Code::NOT_FOUND => {
                out.push(DeviceOutput::Report(DeviceEvent::RegistrationLost));
                self.begin_register(now_ms, out);
            }
            // The registration stays valid; the server is busy.
            code @ (Code::SERVICE_UNAVAILABLE | Code::TOO_MANY_REQUESTS) => {
                let wait_ms = self.wait_after_refusal_ms(response);
                self.postpone_update(now_ms, wait_ms);
                out.push(refused(Uplink::Update, code));
            }
            code => {
                self.rest_after_failure(now_ms);
                out.push(refused(Uplink::Update, code));
            }
        }
    }

    fn give_up(&mut self, now_ms: i64, purpose: RequestPurpose, out: &mut Vec<DeviceOutput>) {
        self.session.request = None;
        let uplink = match purpose {
            RequestPurpose::Deregister { again_at_ms } => {
                self.rest_until(again_at_ms);
                Uplink::Deregister
            }
            RequestPurpose::Bootstrap => {
                self.rest_after_failure(now_ms);
                Uplink::Bootstrap
            }
            RequestPurpose::Register { .. } => {
                self.rest_after_failure(now_ms);
                Uplink::Register
            }
            // The registration stays valid: only the data was not delivered.
            RequestPurpose::Data => Uplink::Data,
            RequestPurpose::Send => Uplink::Send,
            RequestPurpose::Update { .. } => {
                self.rest_after_failure(now_ms);
                Uplink::Update
            }
        };
        out.push(DeviceOutput::Report(DeviceEvent::GaveUp(uplink)));
    }

    pub(super) fn ask(
        &mut self,
        now_ms: i64,
        purpose: RequestPurpose,
        request: Message,
        out: &mut Vec<DeviceOutput>,
    ) {
        // Request-Tags keep the blocks of consecutive bodies apart, even late ones (RFC 9175).
        let is_long = request.payload.len() > self.configuration.block.bytes();
        let request = match is_long {
            true => request.with_option(option::REQUEST_TAG, &self.rng.number_u16().to_be_bytes()),
            false => request,
        };
        let jitter = self.rng.number_u32();
        let rules = blocks::rules(&self.configuration);
        let transfer = Transfer::begin(now_ms, &rules, request, jitter);
        out.push(DeviceOutput::Send(transfer.datagram().to_vec()));
        self.session.quiet_since_ms = now_ms;
        self.session.request = Some(OpenRequest { transfer, purpose });
    }

    fn postpone_update(&mut self, now_ms: i64, by_ms: i64) {
        if let RegistrationPhase::Registered {
            next_update_at_ms, ..
        } = &mut self.session.registration
        {
            *next_update_at_ms = now_ms.saturating_add(by_ms);
        }
    }

    fn take_sent_lifetime(&mut self, lifetime_s: u32) {
        if let RegistrationPhase::Registered {
            lifetime_told_s, ..
        } = &mut self.session.registration
        {
            *lifetime_told_s = lifetime_s;
        }
    }

    // Max-Age says how long a busy server stays busy; in other responses it is about caches.
    pub(super) fn wait_after_refusal_ms(&mut self, response: &Message) -> i64 {
        let back_off_ms = self.wait_after_failure_ms();
        match (response.code, response.max_age()) {
            (Code::SERVICE_UNAVAILABLE | Code::TOO_MANY_REQUESTS, Some(max_age_s)) => {
                i64::from(max_age_s).saturating_mul(1_000)
            }
            (_, _) => back_off_ms,
        }
    }

    fn wait_after_failure_ms(&mut self) -> i64 {
        self.session.failures = self.session.failures.saturating_add(1);
        let wait_ms = self.configuration.retry.wait_ms(self.session.failures);
        i64::from(wait_ms) + i64::from(self.rng.below(wait_ms / 4))
    }

    fn lifetime_s(&self) -> u32 {
        let written_s = match self.resources.value(LIFETIME) {
            Some(Value::Integer(written_s)) => u32::try_from(*written_s).ok(),
            Some(_) | None => None,
        };
        written_s.unwrap_or(self.configuration.lifetime_s)
    }

    fn update_interval_ms(&self) -> i64 {
        let lifetime_s = match self.lifetime_s() {
            0 => LIFETIME_DEFAULT_S,
            lifetime_s => lifetime_s,
        };
        let nine_tenths_ms = i64::from(lifetime_s).saturating_mul(900);
        let chosen_ms = self.configuration.update_interval_ms.map(i64::from);
        chosen_ms
            .unwrap_or(nine_tenths_ms)
            .max(UPDATE_INTERVAL_MIN_MS)
    }
}

pub(super) fn next_ids(message_ids: &mut MessageIds, rng: &mut Rng) -> (MessageId, Token) {
    (message_ids.take(), Token::from_u64(rng.number()))
}

/// The event for the response to data.
fn taken(uplink: Uplink, code: Code) -> DeviceOutput {
    match code.is_success() {
        true => DeviceOutput::Report(DeviceEvent::Sent),
        false => refused(uplink, code),
    }
}

fn refused(uplink: Uplink, code: Code) -> DeviceOutput {
    DeviceOutput::Report(DeviceEvent::Refused { uplink, code })
}
