//! How does the device get its account? It asks the bootstrap server, which then deletes, discovers
//! and writes its objects, and finishes (LwM2M Core 1.2 section 6.1).
//!
//! ```text
//!            hold-off          2.04                    Finish, consistent
//!  Resting ----------> asks --------> Bootstrapping ----------------------> registers
//!     ^                 |                 |
//!     +-----------------+-----------------+  refused, silent, inconsistent
//! ```
//!
//! The account counts once the bootstrap is finished: a device that loses its power before that
//! asks again.

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageKind};
use protocol::lwm2m::bootstrap::BootstrapRequest;
use protocol::lwm2m::path::Path;

use super::configuration::Bootstrapping;
use super::event::{DeviceEvent, DeviceOutput, Operation};
use super::outcome::ResponseContent;
use super::session::{RegistrationPhase, RequestPurpose};
use super::uplink::next_ids;
use super::{SimulatedDevice, downlink};

/// How long the device waits for the next request of the server: EXCHANGE_LIFETIME of RFC 7252
/// section 4.8.2.
const SILENCE_MS: i64 = 247_000;

impl SimulatedDevice {
    /// Forgets the account, and asks for a bootstrap, as a person or an earlier server may want.
    pub fn bootstrap(&mut self, now_ms: i64, out: &mut Vec<DeviceOutput>) {
        if self.configuration.bootstrap.is_some() && self.is_listening() {
            self.has_account = false;
            self.session.request = None;
            self.begin_register(now_ms, out);
        }
    }

    /// How the device asks for the account that it does not have.
    pub(super) fn needed_bootstrap(&self) -> Option<Bootstrapping> {
        self.configuration.bootstrap.filter(|_| !self.has_account)
    }

    /// Whether a bootstrap is under way, and the server may still go on with it.
    pub(super) fn is_being_bootstrapped(&self, now_ms: i64) -> bool {
        match self.session.registration {
            RegistrationPhase::Bootstrapping { until_ms } => now_ms < until_ms,
            RegistrationPhase::Resting { .. }
            | RegistrationPhase::Registering
            | RegistrationPhase::Registered { .. } => false,
        }
    }

    pub(super) fn begin_bootstrap(
        &mut self,
        now_ms: i64,
        bootstrapping: Bootstrapping,
        out: &mut Vec<DeviceOutput>,
    ) {
        let (message_id, token) = next_ids(&mut self.session.message_ids, &mut self.rng);
        let queries = BootstrapRequest {
            endpoint: Some(self.configuration.endpoint.as_str().into()),
            preferred: bootstrapping.preferred,
            own_accounts: None,
        };
        let request = Message::request(MessageKind::Confirmable, Code::POST, message_id, token)
            .with_uri_path(["bs"])
            .with_uri_query(queries.queries());
        self.session.observations.forget();
        self.await_bootstrap_request(now_ms);
        self.ask(now_ms, RequestPurpose::Bootstrap, request, out);
    }

    /// Takes the answer to the request for a bootstrap; the server may have begun already.
    pub(super) fn conclude_bootstrap_request(
        &mut self,
        now_ms: i64,
        response: &Message,
    ) -> Result<(), Code> {
        if response.code == Code::CHANGED {
            return Ok(());
        }
        let wait_ms = self.wait_after_refusal_ms(response);
        self.rest_until(Some(now_ms.saturating_add(wait_ms)));
        Err(response.code)
    }

    /// Performs a request of the bootstrap server; none if no bootstrap is under way.
    pub(super) fn obey_bootstrap(
        &mut self,
        now_ms: i64,
        request: &Message,
        out: &mut Vec<DeviceOutput>,
    ) -> Option<Message> {
        let is_under_way = matches!(
            self.session.registration,
            RegistrationPhase::Bootstrapping { .. }
        );
        let bootstrapping = self.needed_bootstrap().filter(|_| is_under_way)?;
        self.await_bootstrap_request(now_ms);
        let text = downlink::path_of(request);
        let is_refused = self.rng.hits(bootstrapping.refused_percent);
        let outcome = match (request.code, text.as_str(), Path::parse(&text)) {
            (Code::DELETE, "", _) => {
                self.resources.delete_accounts();
                ResponseContent::of(Code::DELETED)
            }
            (Code::POST, "/bs", _) if is_refused || !self.resources.has_account() => {
                self.rest_after_failure(now_ms);
                ResponseContent::of(Code::NOT_ACCEPTABLE)
            }
            (Code::POST, "/bs", _) => {
                self.finish_bootstrap(now_ms, out);
                ResponseContent::of(Code::CHANGED)
            }
            (Code::GET, _, Ok(path)) if request.accept() == Some(ContentFormat::LINK_FORMAT) => {
                self.perform_for_bootstrap(request, path, Operation::Discover)
            }
            (Code::PUT, _, Ok(_)) if is_refused => {
                self.rest_after_failure(now_ms);
                ResponseContent::of(Code::BAD_REQUEST)
            }
            (Code::PUT, _, Ok(path)) if path.is_instance() => {
                self.perform_for_bootstrap(request, path, Operation::Write)
            }
            (_, _, _) => ResponseContent::of(Code::METHOD_NOT_ALLOWED),
        };
        Some(self.respond(request, outcome))
    }

    fn perform_for_bootstrap(
        &mut self,
        request: &Message,
        path: Path,
        operation: Operation,
    ) -> ResponseContent {
        let done = match operation == Operation::Write {
            true => self.resources.provision(path, request),
            false => self.resources.discover(path),
        };
        let outcome = done.unwrap_or_else(ResponseContent::of);
        if outcome.code.is_success() {
            let content = (request.content_format(), &*request.payload);
            self.performed
                .add_operation(request, (path, operation), content);
        }
        outcome
    }

    fn finish_bootstrap(&mut self, now_ms: i64, out: &mut Vec<DeviceOutput>) {
        self.has_account = true;
        self.session.failures = 0;
        self.session.request = None;
        self.rest_until(Some(now_ms));
        out.push(DeviceOutput::Report(DeviceEvent::Bootstrapped));
    }

    fn await_bootstrap_request(&mut self, now_ms: i64) {
        self.session.registration = RegistrationPhase::Bootstrapping {
            until_ms: now_ms.saturating_add(SILENCE_MS),
        };
    }
}
