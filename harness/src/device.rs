//! What does a device do next? A simulated LwM2M device without a clock, randomness or a socket of
//! its own.
//!
//! Time and datagrams come in as arguments, datagrams and events go out into the caller's buffer,
//! and the seed decides everything random, so that a run with many devices is reproducible. There
//! are four kinds of calls: inputs (`handle_*`), orders a person could give (`update`, `sleep`,
//! `reboot`, ...), `next_timeout`, and getters. After each input or order, `next_timeout` returns
//! when to call `handle_timeout`.
//!
//! The device has one server, whose account it may have to get from a bootstrap. It registers,
//! keeps its registration alive, obeys read, write, execute and observe, notifies changes of
//! observed values, and in queue mode sleeps between its updates. It encodes values in the
//! configured formats. It sends measured values on order. Without LwM2M it serves a few CoAP paths,
//! posts data and sends bare datagrams. Long bodies are transferred block-wise.

mod answers;
mod blocks;
mod bootstrap;
mod composing;
pub mod configuration;
mod dedup;
mod downlink;
pub mod event;
mod firmware;
mod observations;
pub mod operation_log;
mod outcome;
mod payload_formats;
pub mod plain;
mod plain_uplink;
mod registration;
pub mod resource;
mod resources;
pub mod sending;
mod session;
mod uplink;

use protocol::coap::message::{Message, MessageKind};
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;

use self::configuration::{Configuration, Reachability};
use self::event::{DeviceEvent, DeviceOutput, RegistrationLocation};
use self::operation_log::{PerformedLog, PerformedOperation, PerformedRequest};
use self::payload_formats::PayloadFormats;
use self::plain::PlainPaths;
use self::resource::{AnswerMode, Consequence, LIFETIME};
use self::resources::{Resources, accounts};
use self::session::{Radio, RegistrationPhase, RequestPurpose, Session};
use crate::rng::Rng;

/// The delay between the response and a requested reboot or deregistration: long enough for the
/// server to repeat the request if the response is lost.
const CONSEQUENCE_AFTER_MS: i64 = 1_000;

/// How long a disabled device stays away: the default of resource 1/x/5.
const DISABLED_FOR_MS: i64 = 86_400_000;

/// A device that speaks LwM2M, plain CoAP, or both, and sends bare datagrams on order.
#[derive(Clone, Debug)]
pub struct SimulatedDevice {
    configuration: Configuration,
    resources: Resources,
    paths: PlainPaths,
    /// Whether a bootstrap gave it an account.
    has_account: bool,
    performed: PerformedLog<PerformedOperation>,
    plain_performed: PerformedLog<PerformedRequest>,
    rng: Rng,
    session: Session,
}

impl SimulatedDevice {
    /// A device that is switched off.
    pub fn new(mut configuration: Configuration, seed: u64) -> Self {
        if configuration.bootstrap.is_some() {
            let own = accounts::bootstrap_account("coap://bootstrap.example");
            configuration.resources.extend(own);
        }
        let speech = PayloadFormats::new(&configuration.formats);
        let mut resources = Resources::new(
            std::mem::take(&mut configuration.resources),
            speech,
            configuration.version,
        );
        resources.replace(LIFETIME, Value::Integer(configuration.lifetime_s.into()));
        let paths = PlainPaths::new(std::mem::take(&mut configuration.paths));
        let mut rng = Rng::from_seed(seed);
        let session = Session::new(rng.number_u16());
        Self {
            configuration,
            resources,
            paths,
            has_account: false,
            performed: PerformedLog::default(),
            plain_performed: PerformedLog::default(),
            rng,
            session,
        }
    }

    /// Switches the device on, or makes a deregistered one register again.
    pub fn handle_start(&mut self, now_ms: i64, out: &mut Vec<DeviceOutput>) {
        match (self.session.radio, &self.session.registration) {
            (Radio::Off, _) | (Radio::Awake, RegistrationPhase::Resting { .. }) => {
                self.session.radio = Radio::Awake;
                match self.needed_bootstrap() {
                    Some(needed) if needed.hold_off_ms > 0 => {
                        self.rest_until(Some(now_ms.saturating_add(needed.hold_off_ms.into())));
                    }
                    Some(_) | None => self.begin_register(now_ms, out),
                }
            }
            (Radio::Asleep, RegistrationPhase::Resting { .. }) => self.wake(now_ms, out),
            (Radio::Asleep | Radio::Awake, _) => {}
        }
    }

    /// Handles a datagram of the server, which is lost if the radio is off.
    pub fn handle_datagram(&mut self, now_ms: i64, bytes: &[u8], out: &mut Vec<DeviceOutput>) {
        if self.session.radio != Radio::Awake {
            return;
        }
        self.session.quiet_since_ms = now_ms;
        match Message::decode(bytes) {
            Ok(message) => self.handle_message(now_ms, bytes, &message, out),
            Err(malformed) => {
                let reset = malformed.reset.map(Message::reset);
                out.extend(reset.map(|reset| DeviceOutput::Send(reset.encode())));
            }
        }
        self.notify(now_ms, out);
    }

    /// Performs what is due.
    pub fn handle_timeout(&mut self, now_ms: i64, out: &mut Vec<DeviceOutput>) {
        if self.next_timeout().is_none_or(|next_ms| now_ms < next_ms) {
            return;
        }
        let told_before = out.len();
        match self.session.radio {
            Radio::Off => return,
            Radio::Asleep => self.awaken(now_ms, out),
            Radio::Awake => {}
        }
        self.expire_request(now_ms, out);
        let transmission = &self.configuration.transmission;
        self.session
            .answers
            .handle_timeout(now_ms, transmission, &mut self.rng, out);
        self.session.observations.handle_timeout(now_ms, out);
        self.take_consequence(now_ms, out);
        self.proceed_with_update(now_ms, out);
        self.keep_contact(now_ms, out);
        self.notify(now_ms, out);
        if out
            .iter()
            .skip(told_before)
            .any(|output| matches!(output, DeviceOutput::Send(_)))
        {
            self.session.quiet_since_ms = now_ms;
        }
        if self
            .sleeps_at_ms()
            .is_some_and(|sleeps_at_ms| sleeps_at_ms <= now_ms)
        {
            self.fall_asleep(now_ms, out);
        }
    }

    /// Sends an update, or a registration if the device has none. A sleeping device wakes first.
    pub fn update(&mut self, now_ms: i64, out: &mut Vec<DeviceOutput>) {
        if self.session.radio == Radio::Asleep {
            self.awaken(now_ms, out);
        }
        if self.session.radio == Radio::Awake && self.session.request.is_none() {
            self.begin_contact(now_ms, out);
        }
    }

    /// Wakes a sleeping device, which then contacts the server.
    pub fn wake(&mut self, now_ms: i64, out: &mut Vec<DeviceOutput>) {
        if self.session.radio == Radio::Asleep {
            self.update(now_ms, out);
        }
    }

    /// Switches the radio off until the next update is due. The exchange in progress is abandoned;
    /// nothing is forgotten.
    pub fn sleep(&mut self, now_ms: i64, out: &mut Vec<DeviceOutput>) {
        if self.session.radio != Radio::Awake {
            return;
        }
        if let Some(request) = self.session.request.take() {
            match request.purpose {
                RequestPurpose::Deregister { again_at_ms } => self.rest_until(again_at_ms),
                RequestPurpose::Bootstrap | RequestPurpose::Register { .. } => {
                    self.rest_after_failure(now_ms);
                }
                RequestPurpose::Data | RequestPurpose::Send | RequestPurpose::Update { .. } => {}
            }
        }
        self.session.answers = answers::PendingAnswers::default();
        self.session.observations.abandon();
        self.fall_asleep(now_ms, out);
    }

    /// Cuts the power without sending anything: the device forgets everything but its resources.
    pub fn power_off(&mut self) {
        self.interrupt_update();
        self.session = Session::new(self.rng.number_u16());
    }

    /// Cuts the power and switches the device on again, which then registers anew.
    pub fn reboot(&mut self, now_ms: i64, out: &mut Vec<DeviceOutput>) {
        self.power_off();
        out.push(DeviceOutput::Report(DeviceEvent::Rebooted));
        self.handle_start(now_ms, out);
    }

    /// Deregisters. The device stays on and sends nothing until an order starts or updates it.
    pub fn deregister(&mut self, now_ms: i64, out: &mut Vec<DeviceOutput>) {
        match self.session.radio {
            Radio::Off => return,
            Radio::Asleep => self.awaken(now_ms, out),
            Radio::Awake => {}
        }
        self.begin_deregister(now_ms, None, out);
    }

    /// Presses the button that the resource represents: a switch toggles, a counter increments.
    /// Returns the new value; None if it is neither.
    pub fn press(&mut self, path: Path) -> Option<Value> {
        let pressed = pressed(self.resources.value(path)?)?;
        self.set(path, pressed.clone())?;
        Some(pressed)
    }

    /// Sets a measured value and returns the previous one; None, without a change, if the device
    /// has no such resource of that type. An observed change is notified at the next timeout, which
    /// is then due; a sleeping device wakes for it.
    pub fn set(&mut self, path: Path, value: Value) -> Option<Value> {
        let before = self.resources.replace(path, value)?;
        self.session.observations.look(&self.resources);
        Some(before)
    }

    /// Changes the update interval, from the next contact on.
    pub fn update_every(&mut self, interval_ms: u32) {
        self.configuration.update_interval_ms = Some(interval_ms);
    }

    /// Changes how the device answers requests for a resource, and returns the previous mode.
    pub fn answer_with(&mut self, path: Path, answer: AnswerMode) -> Option<AnswerMode> {
        let resource = self.resources.find_mut(path)?;
        Some(std::mem::replace(&mut resource.answer, answer))
    }

    /// Changes how the device answers requests for a CoAP path, and returns the previous mode.
    pub fn answer_plain_with(&mut self, path: &str, answer: AnswerMode) -> Option<AnswerMode> {
        let there = self.paths.find_mut(path)?;
        Some(std::mem::replace(&mut there.answer, answer))
    }

    /// When to call `handle_timeout`; None if nothing happens by itself.
    pub fn next_timeout(&self) -> Option<i64> {
        let session = &self.session;
        match session.radio {
            Radio::Off => None,
            Radio::Asleep => {
                let times = [
                    session.registration.next_contact_at_ms(),
                    self.notifies_at_ms(),
                ];
                times.into_iter().flatten().min()
            }
            Radio::Awake => {
                let says = match &session.request {
                    Some(request) => Some(request.transfer.next_timeout()),
                    None => session.registration.next_contact_at_ms(),
                };
                let consequence = session.consequence.map(|(due_at_ms, _)| due_at_ms);
                let times = [
                    says,
                    session.update.map(|(due_at_ms, _)| due_at_ms),
                    session.answers.next_timeout(),
                    session.observations.next_timeout(),
                    consequence,
                    self.notifies_at_ms(),
                    self.sleeps_at_ms(),
                ];
                times.into_iter().flatten().min()
            }
        }
    }

    /// The endpoint name.
    pub fn endpoint(&self) -> &str {
        &self.configuration.endpoint
    }

    /// The location of the registration, as far as the device knows.
    pub fn location(&self) -> Option<&RegistrationLocation> {
        match &self.session.registration {
            RegistrationPhase::Registered { location, .. } => Some(location),
            RegistrationPhase::Resting { .. }
            | RegistrationPhase::Registering
            | RegistrationPhase::Bootstrapping { .. } => None,
        }
    }

    /// Whether the device sleeps.
    pub fn is_asleep(&self) -> bool {
        self.session.radio == Radio::Asleep
    }

    /// Whether the device receives datagrams.
    pub fn is_listening(&self) -> bool {
        self.session.radio == Radio::Awake
    }

    /// The value of a resource.
    pub fn value(&self, path: Path) -> Option<&Value> {
        self.resources.value(path)
    }

    /// The content of a CoAP path.
    pub fn content(&self, path: &str) -> Option<&[u8]> {
        self.paths.find(path).map(|there| there.content.as_slice())
    }

    /// How often the server has actually written or executed a resource. A duplicate does not
    /// count, unless the device rebooted in between and could not recognise it.
    pub fn executed(&self, path: Path) -> u64 {
        self.resources.executed(path)
    }

    /// The operations that the device carried out, oldest first, as far as it remembers them.
    pub fn performed(&self) -> impl DoubleEndedIterator<Item = &PerformedOperation> {
        self.performed.iter()
    }

    /// The CoAP requests without LwM2M that the device carried out, oldest first, as far as it
    /// remembers them.
    pub fn plain_performed(&self) -> impl DoubleEndedIterator<Item = &PerformedRequest> {
        self.plain_performed.iter()
    }

    /// The number of CoAP requests without LwM2M that the device carried out.
    pub fn plain_performed_count(&self) -> u64 {
        self.plain_performed.count()
    }

    /// The number of operations that the device carried out.
    pub fn performed_count(&self) -> u64 {
        self.performed.count()
    }

    fn handle_message(
        &mut self,
        now_ms: i64,
        bytes: &[u8],
        message: &Message,
        out: &mut Vec<DeviceOutput>,
    ) {
        if message.code.is_request() {
            self.handle_request(now_ms, bytes, message, out);
        } else if !self.handle_response(now_ms, bytes, message, out)
            && !self.session.observations.handle(message, out)
        {
            self.session.answers.handle(now_ms, message);
            self.reject(now_ms, bytes, message, out);
        }
    }

    /// Answers a Confirmable message that is no request: a duplicate as the first time, and a
    /// message without a meaning for the device, such as a ping, with a Reset.
    fn reject(&self, now_ms: i64, bytes: &[u8], message: &Message, out: &mut Vec<DeviceOutput>) {
        if message.kind != MessageKind::Confirmable {
            return;
        }
        let datagram = match self.session.dedup.find(now_ms, message, bytes) {
            Some(reply) => reply.to_vec(),
            None => Message::reset(message.message_id).encode(),
        };
        out.push(DeviceOutput::Send(datagram));
    }

    fn take_consequence(&mut self, now_ms: i64, out: &mut Vec<DeviceOutput>) {
        let is_due = |&mut (due_at_ms, _): &mut (i64, Consequence)| due_at_ms <= now_ms;
        match self.session.consequence.take_if(is_due) {
            None
            | Some((
                _,
                Consequence::Nothing
                | Consequence::Download { .. }
                | Consequence::Receive { .. }
                | Consequence::Install { .. },
            )) => {}
            Some((_, Consequence::Update)) => self.hasten_update(now_ms),
            Some((_, Consequence::Reboot)) => self.reboot(now_ms, out),
            Some((_, Consequence::Disable)) => {
                let again_at_ms = now_ms.saturating_add(DISABLED_FOR_MS);
                self.begin_deregister(now_ms, Some(again_at_ms), out);
            }
        }
    }

    fn awaken(&mut self, now_ms: i64, out: &mut Vec<DeviceOutput>) {
        self.session.radio = Radio::Awake;
        self.session.quiet_since_ms = now_ms;
        out.push(DeviceOutput::Report(DeviceEvent::Awake));
    }

    fn fall_asleep(&mut self, now_ms: i64, out: &mut Vec<DeviceOutput>) {
        self.session.radio = Radio::Asleep;
        let wakes_at_ms = self.next_timeout();
        let wakes_in_ms = wakes_at_ms.map(|wakes_at_ms| wakes_at_ms.saturating_sub(now_ms).max(0));
        out.push(DeviceOutput::Report(DeviceEvent::Asleep { wakes_in_ms }));
    }

    // Changes are due immediately, since any time in the past, unless an attribute says otherwise.
    fn notifies_at_ms(&self) -> Option<i64> {
        let observations = &self.session.observations;
        match observations.has_pending(&self.resources) {
            true => Some(self.session.quiet_since_ms),
            false => observations.notifies_at(&self.resources),
        }
    }

    // A device sleeps by itself only if it is registered and has no pending answer.
    fn sleeps_at_ms(&self) -> Option<i64> {
        let session = &self.session;
        let is_busy = session.request.is_some()
            || session.consequence.is_some()
            || session.update.is_some()
            || session.observations.is_waiting()
            || !session.answers.is_empty();
        match (self.configuration.reachability, self.location()) {
            (Reachability::Queue { awake_window_ms }, Some(_)) if !is_busy => Some(
                session
                    .quiet_since_ms
                    .saturating_add(awake_window_ms.into()),
            ),
            (Reachability::Queue { .. } | Reachability::Always, _) => None,
        }
    }
}

fn pressed(value: &Value) -> Option<Value> {
    match value {
        Value::Boolean(on) => Some(Value::Boolean(!on)),
        Value::Float(number) => Some(Value::Float(number + 1.0)),
        Value::Integer(number) => Some(Value::Integer(number.wrapping_add(1))),
        Value::UnsignedInteger(number) => Some(Value::UnsignedInteger(number.wrapping_add(1))),
        Value::CoreLink(_)
        | Value::ObjectLink(_)
        | Value::Opaque(_)
        | Value::String(_)
        | Value::Time(_) => None,
    }
}
