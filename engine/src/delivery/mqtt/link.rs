//! When does the service connect to a broker, and what does it send there?
//!
//! A link publishes one message after the other and reports for each whether the broker has it.
//! Messages that the broker has not acknowledged when a connection ends are sent again on the next
//! one, in order, as long as their time is not over. Commands are handed on one at a time, and
//! acknowledged with their answer.
//!
//! ```text
//!            wanted, and the back-off is over           opened
//!   Down ------------------------------------> Opening -------> Open: CONNECT sent
//!    ^                                            |               |  ready: messages are sent
//!    |            not opened                      |               |
//!    +--------------------------------------------+---------------+
//!                 refused, closed, silent, or a message is not acknowledged in time
//! ```

use std::collections::{BTreeMap, HashMap, VecDeque};

use protocol::mqtt::{
    MqttConnection, MqttEvent, MqttLogin, MqttMessage, MqttReason, Overload, ReceivedMessage,
    Retained, Unsendable,
};

use super::{CommandTopic, TopicPrefix, TopicPrefixFault};
use crate::back_off::back_off_ms;
use crate::delivery::destination::{Broker, BrokerCommands};
use crate::ids::DestinationId;
use crate::limits::BROKER_COMMANDS_MAX;
use crate::moment::{Moment, Timestamp};

/// The first and the longest pause between two connections. Half of each is random, so that the
/// clients of a broker that restarts do not come back at once.
const BACK_OFF_MS: i64 = 1_000;
const BACK_OFF_MAX_MS: i64 = 60_000;

/// The user property of a command with its idempotency key, as HTTP names it.
const KEY_PROPERTY: &str = "Idempotency-Key";

/// Why a message was not published in time, if nothing else is known.
const LATE: &str = "the broker did not acknowledge the event in time";

/// Why a message of a closed link was not published.
const CHANGED: &str = "the integration was changed or stopped during the delivery";

/// After how many seconds without another packet the service asks whether the broker is there.
const KEEP_ALIVE_S: u16 = 30;

/// What a link does.
#[derive(Clone, Debug)]
pub struct MqttLinkRules {
    /// What the service connects with.
    login: MqttLogin,
    /// The prefix of the topics.
    prefix: TopicPrefix,
    /// How long a message may take, and a CONNACK.
    timeout_ms: i64,
}

/// What is published.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Publication {
    /// The topic.
    pub topic: String,
    /// What it says, in JSON.
    pub payload: Vec<u8>,
}

/// An effect of a link, performed in order; `T` takes the outcome of a message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum MqttLinkEffect<T> {
    /// Connect, and call [`MqttLink::handle_opened`] or [`MqttLink::handle_unopened`].
    Open,
    /// Write these bytes to the connection.
    Write(Vec<u8>),
    /// Close the connection, once everything is written.
    Close,
    /// Report the outcome of a message.
    Settle(T, Result<(), Box<str>>),
    /// Perform a command, and call [`MqttLink::handle_answer`].
    Perform(Box<BrokerCommand>),
}

/// A command of a customer from its broker.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BrokerCommand {
    /// Its topic.
    pub topic: CommandTopic,
    /// What is requested, in JSON.
    pub body: Vec<u8>,
    /// Its idempotency keys: none, one, or too many.
    pub keys: Vec<String>,
}

impl MqttLinkRules {
    /// The rules of the link to the broker of a destination, with the password opened.
    pub fn of(
        (id, broker): (DestinationId, &Broker),
        password: Option<String>,
        timeout_ms: i64,
    ) -> Result<Self, TopicPrefixFault> {
        let prefix = TopicPrefix::parse(&broker.topic_prefix)?;
        let subscription = match broker.commands {
            BrokerCommands::Off => None,
            BrokerCommands::On => Some(prefix.command_filter()),
        };
        let login = MqttLogin {
            version: broker.version,
            client_id: client_id(id),
            username: broker.username.as_deref().map(Into::into),
            password,
            keep_alive_s: KEEP_ALIVE_S,
            subscription,
        };
        Ok(Self {
            login,
            prefix,
            timeout_ms,
        })
    }

    /// The prefix of the topics.
    pub fn prefix(&self) -> &TopicPrefix {
        &self.prefix
    }
}

/// The client identifier of a destination: `s` and its id in base 62. Every broker of MQTT 3.1.1
/// accepts 23 letters and digits (section 3.1.3.1).
fn client_id(id: DestinationId) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut left = u128::from_be_bytes(*id.as_bytes());
    let mut digits = [0; 22];
    for digit in digits.iter_mut().rev() {
        let value = usize::try_from(left % 62).expect("it is less than 62");
        *digit = DIGITS[value];
        left /= 62;
    }
    let digits = digits.into_iter().map(char::from);
    std::iter::once('s').chain(digits).collect()
}

/// Whether a link is connected.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct MqttLinkStatus {
    /// Whether the broker has accepted the service, and the connection is open.
    pub is_connected: bool,
    /// Why the last connection ended or was not established, until a later one was of use.
    pub fault: Option<Box<str>>,
}

/// Why there is no connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unopened {
    /// The broker is away: messages wait for the next connection.
    Away,
    /// The broker refuses the service, or the service the broker: messages do not wait.
    Refused,
}

/// The link to one broker.
pub struct MqttLink<T> {
    rules: MqttLinkRules,
    phase: Phase,
    /// Messages whose outcome is not known, in order.
    pending: BTreeMap<u64, PendingMessage<T>>,
    /// The number of the next message.
    next: u64,
    /// Those that were not sent on this connection, in order.
    unsent: VecDeque<u64>,
    /// Those that were, by packet identifier.
    sent: HashMap<u16, u64>,
    commands: VecDeque<QueuedCommand>,
    performing: Option<Performing>,
    /// Answers that are not sent yet, with the commands they acknowledge.
    answers: VecDeque<(MqttMessage, Option<u16>)>,
    /// Connections in a row that ended without an acknowledgement.
    failures: u32,
    /// Why the last one ended.
    fault: Option<Box<str>>,
    /// Until when the broker is told to forget the session, if that is all that is left to do.
    forget_by: Option<Timestamp>,
}

enum Phase {
    Down {
        retry_at: Timestamp,
    },
    Opening,
    Open {
        connection: Box<MqttConnection>,
        /// When the broker must have accepted the client; none once it has.
        ready_by: Option<Timestamp>,
    },
}

struct PendingMessage<T> {
    message: MqttMessage,
    due_at: Timestamp,
    reply: T,
}

struct QueuedCommand {
    command: Box<BrokerCommand>,
    correlation: Option<Vec<u8>>,
    packet_id: Option<u16>,
}

/// The command that is performed.
struct Performing {
    /// The topic of its answer.
    topic: String,
    correlation: Option<Vec<u8>>,
    packet_id: Option<u16>,
    origin: Origin,
}

/// Whether the connection that a command came on is still open.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Origin {
    Open,
    Gone,
}

impl<T> MqttLink<T> {
    /// A link that is not connected yet.
    pub fn new(rules: MqttLinkRules) -> Self {
        Self {
            rules,
            phase: Phase::Down {
                retry_at: Timestamp::from_ms(0),
            },
            pending: BTreeMap::new(),
            next: 0,
            unsent: VecDeque::new(),
            sent: HashMap::new(),
            commands: VecDeque::new(),
            performing: None,
            answers: VecDeque::new(),
            failures: 0,
            fault: None,
            forget_by: None,
        }
    }

    /// Publishes a message.
    pub fn publish(
        &mut self,
        m: &mut Moment,
        publication: Publication,
        reply: T,
        out: &mut Vec<MqttLinkEffect<T>>,
    ) {
        let due_at = m.now().plus_ms(self.rules.timeout_ms);
        let pending = PendingMessage {
            message: MqttMessage {
                topic: publication.topic,
                payload: publication.payload,
                correlation: None,
            },
            due_at,
            reply,
        };
        self.pending.insert(self.next, pending);
        self.unsent.push_back(self.next);
        self.next += 1;
        self.advance(m, out);
    }

    /// A connection was established.
    pub fn handle_opened(&mut self, m: &mut Moment, out: &mut Vec<MqttLinkEffect<T>>) {
        let mut events = Vec::new();
        let opened = MqttConnection::open(&self.rules.login, m.now().as_ms(), &mut events);
        self.phase = Phase::Open {
            connection: Box::new(opened),
            ready_by: Some(m.now().plus_ms(self.rules.timeout_ms)),
        };
        self.take(m, events, out);
    }

    /// No connection was established.
    pub fn handle_unopened(
        &mut self,
        m: &mut Moment,
        (why, unopened): (&str, Unopened),
        out: &mut Vec<MqttLinkEffect<T>>,
    ) {
        self.end(m, why, unopened, out);
        self.advance(m, out);
    }

    /// Bytes came from the broker.
    pub fn handle_bytes(&mut self, m: &mut Moment, bytes: &[u8], out: &mut Vec<MqttLinkEffect<T>>) {
        let mut events = Vec::new();
        if let Phase::Open { connection, .. } = &mut self.phase {
            connection.handle_bytes(bytes, m.now().as_ms(), &mut events);
        }
        self.take(m, events, out);
    }

    /// The connection was closed or broke.
    pub fn handle_closed(&mut self, m: &mut Moment, out: &mut Vec<MqttLinkEffect<T>>) {
        let events = vec![MqttEvent::Ended(MqttReason::Closed)];
        self.take(m, events, out);
    }

    /// The command that was to be performed was, with this answer.
    pub fn handle_answer(
        &mut self,
        m: &mut Moment,
        payload: Vec<u8>,
        out: &mut Vec<MqttLinkEffect<T>>,
    ) {
        // The broker sends a command again that came on an earlier connection.
        if let Some(done) = self.performing.take()
            && done.origin == Origin::Open
        {
            let answer = MqttMessage {
                topic: done.topic,
                payload,
                correlation: done.correlation,
            };
            self.answers.push_back((answer, done.packet_id));
        }
        self.advance(m, out);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, m: &mut Moment, out: &mut Vec<MqttLinkEffect<T>>) {
        let mut events = Vec::new();
        if let Phase::Open {
            connection,
            ready_by,
        } = &mut self.phase
        {
            connection.handle_timeout(m.now().as_ms(), &mut events);
            if ready_by.is_some_and(|at| at <= m.now()) {
                events.push(MqttEvent::Ended(MqttReason::Silent));
            }
        }
        self.take(m, events, out);
    }

    /// Ends the link: its messages are not published any more.
    pub fn close(&mut self, m: &Moment, out: &mut Vec<MqttLinkEffect<T>>) {
        if let Phase::Open { connection, .. } = &mut self.phase {
            let mut events = Vec::new();
            connection.disconnect(m.now().as_ms(), &mut events);
            out.extend(events.into_iter().filter_map(written));
            out.push(MqttLinkEffect::Close);
        }
        self.phase = Phase::Down {
            retry_at: Timestamp::from_ms(i64::MAX),
        };
        self.commands.clear();
        self.answers.clear();
        self.performing = None;
        self.settle_all(CHANGED, out);
    }

    /// Ends the link as [`MqttLink::close`] does, and for good: the broker is to keep no session
    /// for it. A connection with a clean start ends the session, if one is made in time.
    pub fn retire(&mut self, m: &mut Moment, out: &mut Vec<MqttLinkEffect<T>>) {
        self.close(m, out);
        if self.rules.login.subscription.take().is_some() {
            self.forget_by = Some(m.now().plus_ms(self.rules.timeout_ms));
            self.phase = Phase::Down { retry_at: m.now() };
            self.failures = 0;
            self.advance(m, out);
        }
    }

    /// Whether nothing is left to do after [`MqttLink::close`] or [`MqttLink::retire`].
    pub fn is_over(&self) -> bool {
        self.forget_by.is_none()
    }

    /// Whether it is connected.
    pub fn status(&self) -> MqttLinkStatus {
        MqttLinkStatus {
            is_connected: matches!(self.phase, Phase::Open { ready_by: None, .. }),
            fault: self.fault.clone().filter(|_| self.failures > 0),
        }
    }

    /// When [`MqttLink::handle_timeout`] is due.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        let (first, second) = match &self.phase {
            Phase::Down { retry_at } => (self.is_wanted().then_some(*retry_at), None),
            Phase::Opening => (None, None),
            Phase::Open {
                connection,
                ready_by,
            } => {
                let at = connection.next_timeout_ms().map(Timestamp::from_ms);
                (at, *ready_by)
            }
        };
        let oldest = self.pending.values().next().map(|it| it.due_at);
        let ends = [first, second, oldest, self.forget_by];
        ends.into_iter().flatten().min()
    }

    /// Whether a connection has a purpose.
    fn is_wanted(&self) -> bool {
        let has_subscription = self.rules.login.subscription.is_some();
        !self.pending.is_empty() || has_subscription || self.forget_by.is_some()
    }

    fn take(&mut self, m: &mut Moment, events: Vec<MqttEvent>, out: &mut Vec<MqttLinkEffect<T>>) {
        for event in events {
            match event {
                MqttEvent::Write(bytes) => out.push(MqttLinkEffect::Write(bytes)),
                MqttEvent::Ready if self.forget_by.is_some() => {
                    self.forget_by = None;
                    self.close(m, out);
                }
                MqttEvent::Ready => self.note_ready(),
                MqttEvent::Acknowledged(packet_id, outcome) => {
                    self.note_acknowledged(packet_id, outcome, out);
                }
                MqttEvent::Received(received) => self.receive(m, received, out),
                MqttEvent::Ended(reason) => {
                    self.end(m, &reason.to_string(), unopened(&reason), out);
                }
            }
        }
        self.advance(m, out);
    }

    fn note_ready(&mut self) {
        if let Phase::Open { ready_by, .. } = &mut self.phase {
            *ready_by = None;
        }
        // With a subscription there may never be anything to acknowledge.
        if self.rules.login.subscription.is_some() {
            self.failures = 0;
        }
    }

    fn note_acknowledged(
        &mut self,
        packet_id: u16,
        outcome: Result<(), MqttReason>,
        out: &mut Vec<MqttLinkEffect<T>>,
    ) {
        // It may be an answer, or a message whose time is over.
        let number = self.sent.remove(&packet_id);
        if let Some(acknowledged) = number.and_then(|number| self.pending.remove(&number)) {
            self.failures = 0;
            let outcome = outcome.map_err(|reason| reason.to_string().into());
            out.push(MqttLinkEffect::Settle(acknowledged.reply, outcome));
        }
    }

    fn receive(
        &mut self,
        m: &mut Moment,
        received: ReceivedMessage,
        out: &mut Vec<MqttLinkEffect<T>>,
    ) {
        let ReceivedMessage {
            message,
            packet_id,
            retained,
            properties,
        } = received;
        // What was retained may have been performed before this subscription.
        let topic = match retained {
            Retained::No => self.rules.prefix.command(&message.topic),
            Retained::Yes => None,
        };
        let Some(topic) = topic else {
            return self.acknowledge(m, packet_id, out);
        };
        if self.commands.len() >= BROKER_COMMANDS_MAX {
            let why = "the broker sends commands faster than they are performed";
            return self.end(m, why, Unopened::Away, out);
        }
        let keys = properties.into_iter();
        let keys = keys.filter(|(name, _)| name.eq_ignore_ascii_case(KEY_PROPERTY));
        let command = BrokerCommand {
            topic,
            body: message.payload,
            keys: keys.map(|(_, key)| key).collect(),
        };
        self.commands.push_back(QueuedCommand {
            command: Box::new(command),
            correlation: message.correlation,
            packet_id,
        });
    }

    fn acknowledge(
        &mut self,
        m: &Moment,
        packet_id: Option<u16>,
        out: &mut Vec<MqttLinkEffect<T>>,
    ) {
        if let Phase::Open { connection, .. } = &mut self.phase {
            acknowledge(connection, m, packet_id, out);
        }
    }

    /// The connection ended, or was not established.
    fn end(
        &mut self,
        m: &mut Moment,
        why: &str,
        unopened: Unopened,
        out: &mut Vec<MqttLinkEffect<T>>,
    ) {
        match &self.phase {
            Phase::Down { .. } => return,
            Phase::Opening => {}
            Phase::Open { .. } => out.push(MqttLinkEffect::Close),
        }
        // Each message has a connection tried for it within the time that it may take.
        let most_ms = BACK_OFF_MAX_MS.min(self.rules.timeout_ms / 2);
        let pause_ms = back_off_ms(m, BACK_OFF_MS, most_ms, self.failures);
        let retry_at = m.now().plus_ms(pause_ms);
        self.failures = self.failures.saturating_add(1);
        self.phase = Phase::Down { retry_at };
        self.sent.clear();
        self.commands.clear();
        self.answers.clear();
        if let Some(performing) = &mut self.performing {
            performing.origin = Origin::Gone;
        }
        match unopened {
            Unopened::Refused => {
                self.settle_all(why, out);
                self.forget_by = None;
            }
            Unopened::Away => self.unsent = self.pending.keys().copied().collect(),
        }
        self.fault = Some(why.into());
    }

    fn settle_all(&mut self, why: &str, out: &mut Vec<MqttLinkEffect<T>>) {
        self.unsent.clear();
        self.sent.clear();
        let pending = std::mem::take(&mut self.pending).into_values();
        out.extend(pending.map(|it| MqttLinkEffect::Settle(it.reply, Err(why.into()))));
    }

    /// Does what is possible now.
    fn advance(&mut self, m: &mut Moment, out: &mut Vec<MqttLinkEffect<T>>) {
        self.expire(m, out);
        if self.forget_by.take_if(|at| *at <= m.now()).is_some() {
            self.close(m, out);
        }
        if let Phase::Down { retry_at } = self.phase
            && retry_at <= m.now()
            && self.is_wanted()
        {
            self.phase = Phase::Opening;
            out.push(MqttLinkEffect::Open);
        }
        self.send_answers(m, out);
        self.send_messages(m, out);
        self.perform_next(out);
    }

    /// Settles messages whose time is over. A broker that does not acknowledge one is connected to
    /// anew: the places of unacknowledged messages in its window would be lost.
    fn expire(&mut self, m: &mut Moment, out: &mut Vec<MqttLinkEffect<T>>) {
        let mut is_stuck = false;
        while let Some(first) = self.pending.first_entry()
            && first.get().due_at <= m.now()
        {
            let (number, late) = first.remove_entry();
            is_stuck |= self.sent.values().any(|sent| *sent == number);
            let fault = match self.phase {
                Phase::Open { ready_by: None, .. } => None,
                Phase::Open { .. } | Phase::Down { .. } | Phase::Opening => self.fault.clone(),
            };
            let why = fault.unwrap_or_else(|| LATE.into());
            out.push(MqttLinkEffect::Settle(late.reply, Err(why)));
        }
        if is_stuck {
            self.end(m, LATE, Unopened::Away, out);
        }
    }

    fn send_answers(&mut self, m: &Moment, out: &mut Vec<MqttLinkEffect<T>>) {
        let Phase::Open {
            connection,
            ready_by: None,
        } = &mut self.phase
        else {
            return;
        };
        while let Some((answer, packet_id)) = self.answers.pop_front() {
            match send(connection, m, &answer, out) {
                Err(Unsendable::Window) => return self.answers.push_front((answer, packet_id)),
                // An answer that cannot be sent is of no use to a repeated command either.
                Ok(_) | Err(Unsendable::Never(_)) => acknowledge(connection, m, packet_id, out),
            }
        }
    }

    fn send_messages(&mut self, m: &Moment, out: &mut Vec<MqttLinkEffect<T>>) {
        let Phase::Open {
            connection,
            ready_by: None,
        } = &mut self.phase
        else {
            return;
        };
        while let Some(number) = self.unsent.pop_front() {
            let Some(pending) = self.pending.get(&number) else {
                continue;
            };
            match send(connection, m, &pending.message, out) {
                Ok(packet_id) => {
                    self.sent.insert(packet_id, number);
                }
                Err(Unsendable::Window) => return self.unsent.push_front(number),
                Err(Unsendable::Never(reason)) => {
                    let refused = self.pending.remove(&number);
                    let why = reason.to_string().into();
                    out.extend(refused.map(|it| MqttLinkEffect::Settle(it.reply, Err(why))));
                }
            }
        }
    }

    fn perform_next(&mut self, out: &mut Vec<MqttLinkEffect<T>>) {
        if self.performing.is_some() {
            return;
        }
        if let Some(next) = self.commands.pop_front() {
            self.performing = Some(Performing {
                topic: self.rules.prefix.of_answers(&next.command.topic.level),
                correlation: next.correlation,
                packet_id: next.packet_id,
                origin: Origin::Open,
            });
            out.push(MqttLinkEffect::Perform(next.command));
        }
    }
}

fn send<T>(
    connection: &mut MqttConnection,
    m: &Moment,
    message: &MqttMessage,
    out: &mut Vec<MqttLinkEffect<T>>,
) -> Result<u16, Unsendable> {
    let mut events = Vec::new();
    let sent = connection.publish(message, m.now().as_ms(), &mut events);
    out.extend(events.into_iter().filter_map(written));
    sent
}

fn acknowledge<T>(
    connection: &mut MqttConnection,
    m: &Moment,
    packet_id: Option<u16>,
    out: &mut Vec<MqttLinkEffect<T>>,
) {
    if let Some(packet_id) = packet_id {
        let mut events = Vec::new();
        connection.acknowledge(packet_id, m.now().as_ms(), &mut events);
        out.extend(events.into_iter().filter_map(written));
    }
}

/// Whether another connection may succeed soon.
fn unopened(reason: &MqttReason) -> Unopened {
    match reason {
        MqttReason::ClientRefused(_, Overload::No) | MqttReason::SubscriptionRefused(_) => {
            Unopened::Refused
        }
        MqttReason::ClientRefused(_, Overload::Yes)
        | MqttReason::MessageRefused(_)
        | MqttReason::Disconnected(_)
        | MqttReason::TooLong
        | MqttReason::Protocol(_)
        | MqttReason::Silent
        | MqttReason::Closed => Unopened::Away,
    }
}

fn written<T>(event: MqttEvent) -> Option<MqttLinkEffect<T>> {
    match event {
        MqttEvent::Write(bytes) => Some(MqttLinkEffect::Write(bytes)),
        MqttEvent::Ready
        | MqttEvent::Acknowledged(..)
        | MqttEvent::Received(_)
        | MqttEvent::Ended(_) => None,
    }
}

#[cfg(test)]
mod tests;
