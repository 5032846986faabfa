//! How is a device bootstrapped? It asks, the service prepares what it is given, and sends it one
//! request after the other, or everything in one response (LwM2M Core 1.2 section 6.1).

use protocol::coap::code::Code;
use protocol::coap::message::Message;
use protocol::coap::option;
use protocol::lwm2m::bootstrap::{BootstrapRequest, pack_format};

use super::Step;
use crate::action::Outcome;
use crate::bootstrap::{BootstrapFault, BootstrapOrder, BootstrapPlan, BootstrapState};
use crate::datagram::Datagram;
use crate::device::bootstrap::{AfterAnswer, RunningBootstrap};
use crate::device::bootstrap_pack::{ServedPack, is_for_further_block};
use crate::device::exchange::{ExchangeRequest, ExchangeTarget};
use crate::device::formats::AttemptState;
use crate::device::rejections::quoted;
use crate::diagnostic;
use crate::directory::bootstrap::host_of;
use crate::effect::{Effect, Outbound};
use crate::event::{EventContent, Lifecycle};
use crate::limits::DATA_REMEMBERED_MS;
use crate::peer::Peer;
use crate::route::DeviceOperation;
use crate::rules::NoSecBootstrap;
use crate::step_event::ExchangeOutcome;

impl Step<'_> {
    /// Handles a Bootstrap-Request. One during a bootstrap begins it anew.
    pub(super) fn request_bootstrap(&mut self, datagram: &Datagram) {
        if let Some(request) = self.accepted_request(datagram) {
            let now = self.cx.now();
            let running = RunningBootstrap::requested(datagram, request.preferred, now);
            self.prepare_bootstrap(datagram, running);
        }
    }

    /// Handles a Bootstrap-Pack-Request, or a request for a further block of the pack.
    pub(super) fn request_bootstrap_pack(&mut self, datagram: &Datagram) {
        let message = &datagram.message;
        let served = self.bootstrap_pack.as_ref();
        if served.is_some_and(|pack| pack.is_for(datagram)) {
            return self.send_bootstrap_pack(datagram);
        }
        let Some(request) = self.accepted_request(datagram) else {
            return;
        };
        let Some(format) = pack_format(message.accept()) else {
            let answer = (Code::NOT_ACCEPTABLE, diagnostic::PACK_FORMATS);
            return self.refuse(datagram, answer, "it accepts no format of a Bootstrap-Pack");
        };
        if is_for_further_block(message) {
            let answer = (Code::BAD_REQUEST, diagnostic::NO_PACK);
            let why = "it is for a further block of a Bootstrap-Pack that was not begun";
            return self.refuse(datagram, answer, why);
        }
        let running = RunningBootstrap::requested(datagram, None, self.cx.now());
        self.prepare_bootstrap(datagram, running.in_pack(request, format));
    }

    /// Reads a request for a bootstrap; one that is not accepted is refused.
    fn accepted_request(&mut self, datagram: &Datagram) -> Option<BootstrapRequest> {
        let (message, peer) = (&datagram.message, datagram.peer);
        if let Err((text, why)) = self.admit_bootstrap(peer) {
            self.refuse(datagram, (Code::FORBIDDEN, text), why);
            return None;
        }
        let request = match BootstrapRequest::decode(message.uri_query()) {
            Ok(request) => request,
            Err(refusal) => {
                let text = refusal.to_string();
                self.refuse(datagram, (Code::BAD_REQUEST, &text), &text);
                return None;
            }
        };
        let own = self.cx.registration.identity().endpoint();
        match &request.endpoint {
            Some(endpoint) if **endpoint != *own => {
                let sent = quoted(endpoint);
                let why = format!("it has the endpoint name {sent}, and the device has {own:?}");
                let answer = (Code::FORBIDDEN, diagnostic::NAME_NOT_ACCEPTED);
                self.refuse(datagram, answer, &why);
                return None;
            }
            Some(_) => {}
            // Since LwM2M 1.1 the identity of the session suffices.
            None if peer.association.is_some() => {}
            None => {
                let answer = (Code::BAD_REQUEST, diagnostic::NO_NAME);
                self.refuse(datagram, answer, "it has no endpoint name");
                return None;
            }
        }
        let weight = self.cx.rules().limits.registration_weight();
        if !self.ingest.take(&self.cx, weight) {
            let why = "the device asked for its bootstrap more often within a minute than is \
                       accepted";
            self.put_off(datagram, why);
            return None;
        }
        Some(request)
    }

    fn prepare_bootstrap(&mut self, datagram: &Datagram, running: RunningBootstrap) {
        let peer = datagram.peer;
        self.cx.note_heard();
        self.end_for_bootstrap();
        self.messages.remember_other_peer(&self.cx, peer);
        self.linger(DATA_REMEMBERED_MS);
        *self.bootstrap = Some(Box::new(running));
        *self.bootstrap_pack = None;
        let order = BootstrapOrder {
            peer,
            host: host_in(&datagram.message),
        };
        let outbound = Outbound::PrepareBootstrap(Box::new(order));
        self.cx.out.push(Effect::Send(outbound));
    }

    /// Refuses a request that was made with a key that is valid for bootstrap alone.
    pub(in crate::device) fn refuse_bootstrap_key(&mut self, datagram: &Datagram) {
        let why = "its session was made with the key that the device is bootstrapped with; since \
                   the device used the key that its bootstrap gave it, that key is for the next \
                   bootstrap alone";
        let answer = (Code::FORBIDDEN, diagnostic::BOOTSTRAP_KEY);
        self.refuse(datagram, answer, why);
    }

    /// Takes what the device is to be written: it is durable. Nothing happens if the device was
    /// not waiting for it.
    pub(in crate::device) fn take_bootstrap(
        &mut self,
        prepared: Result<BootstrapPlan, BootstrapFault>,
    ) {
        let Some(running) = self.bootstrap.as_mut() else {
            return;
        };
        let request = running.request().clone();
        let prepared = prepared.map(|plan| {
            let pack = running.pack_of(&plan, self.cx.now());
            (plan, pack)
        });
        match prepared {
            Ok((_, Some(Ok(pack)))) => {
                *self.bootstrap = None;
                *self.bootstrap_pack = Some(Box::new(pack));
                self.send_bootstrap_pack(&request);
            }
            Ok((_, Some(Err(unencodable)))) => {
                let why = unencodable.to_string();
                self.end_bootstrap(BootstrapState::Failed, Some(&why));
                self.refuse(&request, (Code::NOT_ACCEPTABLE, &why), &why);
            }
            Ok((plan, None)) => {
                running.begin(plan);
                let record = running.record().clone();
                self.cx.save_bootstrap(record);
                self.answer(&request, Code::CHANGED);
            }
            Err(fault) => {
                let why = fault.to_string();
                let code = match fault {
                    BootstrapFault::NeedsDtls => Code::FORBIDDEN,
                    BootstrapFault::UnknownHost
                    | BootstrapFault::NoCertificate
                    | BootstrapFault::Unopened => Code::INTERNAL_SERVER_ERROR,
                    BootstrapFault::Unstored => Code::SERVICE_UNAVAILABLE,
                };
                self.end_bootstrap(BootstrapState::Failed, Some(&why));
                self.refuse(
                    &request,
                    (code, "the bootstrap could not be prepared"),
                    &why,
                );
            }
        }
    }

    /// Sends the pack, or the block of it that a request is for. The response is not remembered
    /// with those of other messages: the pack has it.
    fn send_bootstrap_pack(&mut self, datagram: &Datagram) {
        let (id, now) = (self.cx.message_id(), self.cx.now());
        let Some(pack) = self.bootstrap_pack.as_mut() else {
            return;
        };
        let response = pack.response_to(&datagram.message, id, now);
        if let Some(record) = pack.take_unsaved() {
            let has_succeeded = record.state == BootstrapState::Succeeded;
            self.cx.save_bootstrap(record);
            if has_succeeded {
                let bootstrapped = Lifecycle::Bootstrapped;
                self.cx.publish(EventContent::Lifecycle(bootstrapped));
            }
        }
        self.cx.send(datagram.peer, &response);
    }

    /// Forgets the pack once a request for it is repeated no more. A bootstrap whose last blocks
    /// the device did not request has failed.
    pub(super) fn forget_bootstrap_pack(&mut self) {
        let now = self.cx.now();
        let is_over = |pack: &mut Box<ServedPack>| pack.forgotten_at() <= now;
        let Some(pack) = self.bootstrap_pack.take_if(is_over) else {
            return;
        };
        if let Some(unfinished) = pack.unfinished() {
            let why = "the device did not request all blocks of the pack";
            let mut record = unfinished.clone();
            record.end(now, BootstrapState::Failed, Some(why));
            self.cx.save_bootstrap(record);
            let why = format!("the bootstrap failed: {why}");
            self.note_rejected((DeviceOperation::Bootstrap, pack.peer()), None, &why);
        }
    }

    /// Begins the next request of the bootstrap under way. Returns whether there is one.
    pub(super) fn continue_bootstrap(&mut self) -> bool {
        let (label, now) = (self.observations.label(&mut self.cx), self.cx.now());
        let Some(running) = self.bootstrap.as_mut() else {
            return false;
        };
        if running.is_being_prepared() {
            return false;
        }
        let Some(message) = running.next_message(label, now) else {
            self.fail_bootstrap("no format can carry the values");
            return true;
        };
        let outgoing = ExchangeRequest {
            target: ExchangeTarget::Bootstrap,
            trace: None,
            to: Some(running.peer()),
            state: AttemptState::default(),
        };
        self.exchange.begin(&mut self.cx, outgoing, message);
        true
    }

    /// Takes the answer to the last request of the bootstrap.
    pub(super) fn take_bootstrap_answer(&mut self, answer: &Message) {
        self.end_exchange();
        let Some(running) = self.bootstrap.as_mut() else {
            return;
        };
        match running.answered(answer) {
            AfterAnswer::Goes => {}
            AfterAnswer::Succeeds => {
                self.end_bootstrap(BootstrapState::Succeeded, None);
                self.cx
                    .publish(EventContent::Lifecycle(Lifecycle::Bootstrapped));
            }
            AfterAnswer::Fails(why) => self.fail_bootstrap(&why),
        }
    }

    /// Ends the bootstrap because the device did not answer its last request as it should.
    pub(super) fn miss_bootstrap_answer(&mut self, outcome: &Outcome) {
        let Some(running) = self.bootstrap.as_ref() else {
            return;
        };
        let why = outcome.error.as_deref().unwrap_or("there was no answer");
        let why = format!("{}: {why}", running.current());
        self.fail_bootstrap(&why);
    }

    /// Whether a peer may be bootstrapped as this device; if not, the diagnostic text and why.
    fn admit_bootstrap(&self, peer: Peer) -> Result<(), (&'static str, &'static str)> {
        if peer.association.is_none() && self.cx.rules().bootstrap == NoSecBootstrap::Refused {
            let why = "it did not come over DTLS, and bootstrap without security is not enabled \
                       (SIGNALBOX_BOOTSTRAP_NOSEC)";
            return Err((diagnostic::BOOTSTRAP_NEEDS_DTLS, why));
        }
        let admitted = self.cx.reachability().admit(peer);
        admitted.map_err(|why| (diagnostic::NAME_NOT_ACCEPTED, why))
    }

    /// Ends the exchange in flight: a device that asks for its bootstrap answers nothing else.
    fn end_for_bootstrap(&mut self) {
        match self.exchange.target() {
            Some(ExchangeTarget::Bootstrap) => {
                self.exchange
                    .note_ending(ExchangeOutcome::DeviceGone, self.cx.out);
                self.end_exchange();
            }
            Some(
                ExchangeTarget::Action(_)
                | ExchangeTarget::Observation(_)
                | ExchangeTarget::Report(_)
                | ExchangeTarget::Notification(_)
                | ExchangeTarget::Update(_),
            ) => {
                let why = "the device asked for its bootstrap before it answered";
                self.unanswered(ExchangeOutcome::DeviceGone, why);
            }
            None => {}
        }
    }

    fn fail_bootstrap(&mut self, why: &str) {
        let peer = self.bootstrap.as_ref().map(|running| running.peer());
        self.end_bootstrap(BootstrapState::Failed, Some(why));
        if let Some(peer) = peer {
            let why = format!("the bootstrap failed: {why}");
            self.note_rejected((DeviceOperation::Bootstrap, peer), None, &why);
        }
    }

    fn end_bootstrap(&mut self, state: BootstrapState, error: Option<&str>) {
        if let Some(running) = self.bootstrap.take() {
            let record = running.end(self.cx.now(), state, error);
            self.cx.save_bootstrap(record);
        }
    }
}

/// The host name by which a device reached the service (RFC 7252 section 5.10.1).
fn host_in(message: &Message) -> Option<Box<str>> {
    let mut options = message.options();
    let (_, host) = options.find(|(number, _)| *number == option::URI_HOST)?;
    host_of(std::str::from_utf8(host).ok()?)
}
