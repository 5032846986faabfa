//! One line for each effect: how the effects of a step are written, and how a test states what it
//! expects.
//!
//! Random ids are replaced by numbers in order of their first appearance: requests are `#1`, `#2`,
//! messages of the service `m1`, `m2`, locations `L1`, `L2`.

use protocol::coap::block::Block;
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageKind};
use protocol::coap::option;

use crate::action::{Action, Outcome, ResultPayload, Status};
use crate::admin_log::entry::Entry;
use crate::admin_log::payload::EntryPayload as Bytes;
use crate::change::{Change, Counter, CounterDelta, Expect, UniqueName};
use crate::device::record::{DeviceRecord, Logged};
use crate::effect::{Effect, Outbound};
use crate::event::{Cause, Data, Event, EventContent};
use crate::idempotency::CreatedByCall;
use crate::peer::{Peer, Transport};

use super::START;

/// The effects of a step, a line each.
pub(in crate::device::tests) type Lines = Vec<String>;

/// Names by order of appearance.
#[derive(Default)]
pub(super) struct Names {
    actions: Vec<String>,
    messages: Vec<String>,
    locations: Vec<String>,
}

impl Names {
    pub(super) fn line(&mut self, effect: &Effect) -> String {
        match effect {
            Effect::Save(change) => self.change(change),
            Effect::Expect(Expect::Status { action, is }) => {
                format!("expect {} {is:?}", self.action(&action.to_string()))
            }
            Effect::Expect(Expect::IdempotencyKeyUnused { .. }) => "expect no record".to_owned(),
            Effect::Expect(Expect::Taken(UniqueName::Device(_))) => "expect device".to_owned(),
            Effect::Expect(Expect::CampaignDevice { place, row, .. }) => {
                format!("expect place {place} {:?}", row.state)
            }
            Effect::Expect(Expect::SmsIdFree(_)) => "expect an unused SMS id".to_owned(),
            Effect::Expect(
                other @ (Expect::Free(_)
                | Expect::Taken(_)
                | Expect::Profile(_)
                | Expect::JobRunning(_)
                | Expect::Schedule(_)
                | Expect::Customer(_)
                | Expect::Sms(_)
                | Expect::SmsOfParts { .. }
                | Expect::Client(_)),
            ) => {
                panic!("not a device's to expect: {other:?}")
            }
            Effect::Count(add) => count(add),
            Effect::Log(entry) => self.log(entry),
            Effect::Send(Outbound::Rebind { from, to }) => {
                format!("rebind {} -> {}", end(*from), end(*to))
            }
            Effect::Send(Outbound::Send { to, datagram }) => {
                let message = Message::decode(datagram).expect("we send well-formed messages");
                format!("send {to}: {}", self.message(&message))
            }
            Effect::Send(Outbound::NoteTransferred { place, bytes, .. }) => {
                format!("place {place} has {bytes} bytes")
            }
            Effect::Send(Outbound::ReadImage(range)) => {
                format!(
                    "read {} bytes of the image from {}",
                    range.bytes, range.from
                )
            }
            Effect::Send(Outbound::PrepareBootstrap(order)) => {
                format!("prepare bootstrap of {}", order.peer)
            }
            Effect::Send(Outbound::SendUdp { to, bytes, .. }) => {
                format!("send bare {to}: {:?}", String::from_utf8_lossy(bytes))
            }
        }
    }

    fn change(&mut self, change: &Change) -> String {
        match change {
            Change::PutSms { was: None, sms } => {
                let submitted = sms.submitted().expect("a device sends none in a step");
                format!("put SMS: {}", submitted.payload)
            }
            Change::PutAction { was, action } => {
                let name = self.action(&action.id.to_string());
                let was = was
                    .map(|was| format!("{:?} -> ", was.status))
                    .unwrap_or_default();
                format!("save {name} {was}{:?} {}", action.status, progress(action))
            }
            Change::PutRecord { record, .. } => self.record(record),
            Change::PutIdempotencyRecord(record) => match &record.created {
                CreatedByCall::Action { action, .. } => {
                    format!("record of {}", self.action(&action.to_string()))
                }
                CreatedByCall::Answered(_) => "record of a response".to_owned(),
            },
            Change::AppendEvent(event) => self.event(event),
            Change::RemoveDevice(_) => "remove device".to_owned(),
            Change::PutBootstrap { bootstrap, .. } => {
                format!("bootstrap {:?}", bootstrap.state)
            }
            Change::PutCampaignDevice { place, row, .. } => {
                let why = row.reason.as_deref().map(|why| format!(": {why}"));
                let why = why.unwrap_or_default();
                format!(
                    "save place {place} {:?} {} bytes{why}",
                    row.state, row.bytes
                )
            }
            Change::PutCustomer(_)
            | Change::RemoveCustomer(_)
            | Change::RemoveActions(_)
            | Change::PutClient(_)
            | Change::RemoveClient(_)
            | Change::PutToken(_)
            | Change::PutSetting(_)
            | Change::PutDevice { .. }
            | Change::PutDestination(_)
            | Change::RemoveDestination { .. }
            | Change::PutProgress(_)
            | Change::PutDefinition(_)
            | Change::RemoveDefinition(_)
            | Change::PutJob(_)
            | Change::PutJobRequest { .. }
            | Change::PutJobPart { .. }
            | Change::RemoveJob(_)
            | Change::PutSchedule(_)
            | Change::PutScheduleContents { .. }
            | Change::RemoveSchedule { .. }
            | Change::PutBootstrapConfig { .. }
            | Change::RemoveBootstrapConfig(_)
            | Change::PutImage(_)
            | Change::RemoveImage { .. }
            | Change::PutCampaign(_)
            | Change::RemoveCampaignDevices(_)
            | Change::RemoveCampaign { .. }
            | Change::PutSms { was: Some(_), .. }
            | Change::AppendEntry(_) => panic!("not a device's to change: {change:?}"),
        }
    }

    fn record(&mut self, record: &DeviceRecord) -> String {
        let seen_at_ms = record.last_seen_at.map_or(-1, |at| at.since_ms(START));
        let at = format!("seen at {seen_at_ms} from {}", end(record.peer));
        let mut line = match &record.registration {
            None => format!("save record: unregistered, {at}"),
            Some(registration) => {
                let expires_at_ms = registration.expires_at.since_ms(START);
                format!("save record: registered until {expires_at_ms}, {at}")
            }
        };
        for observation in &record.observations {
            line.push_str(&format!(", {} {:?}", observation.target, observation.state));
        }
        match record.unknown_object {
            Logged::Yes => line.push_str(", an unknown object logged"),
            Logged::No => {}
        }
        if record.composite_unanswered.is_some() {
            line.push_str(", composite unanswered");
        }
        line
    }

    fn event(&mut self, event: &Event) -> String {
        let telemetry = match &event.content {
            EventContent::Lifecycle(what) => return format!("publish {what:?}"),
            EventContent::Telemetry(telemetry) => telemetry,
            EventContent::Data(data) => return data_line(data),
            EventContent::Error(failure) => return format!("publish failure {}", failure.message),
            EventContent::SmsReceived(_) | EventContent::SmsReport(_) => {
                unreachable!("the machine of a device publishes no SMS")
            }
            EventContent::ActionResult(done) => {
                let action = self.action(&done.action.to_string());
                return format!(
                    "publish {action} {:?}{}",
                    done.status,
                    outcome_text(&done.outcome)
                );
            }
        };
        let values = telemetry.values.iter();
        let values: Vec<_> = values
            .map(|(path, value)| format!("{path}={value}"))
            .collect();
        let cause = match telemetry.cause {
            Cause::Observation(path) => format!("observed {path}"),
            Cause::CompositeObservation(id) => {
                format!("observed since {}", self.action(&id.to_string()))
            }
            Cause::Action(id) => self.action(&id.to_string()),
            Cause::Send => "sent".to_owned(),
            Cause::PassiveReport => "reported".to_owned(),
        };
        let measured = telemetry.measured_at.map(|at| at.since_ms(START));
        let measured = measured.map_or(String::new(), |ms| format!(" measured at {ms}"));
        format!("publish {} for {cause}{measured}", values.join(" "))
    }

    fn message(&mut self, message: &Message) -> String {
        let kind = match message.kind {
            MessageKind::Confirmable => "CON",
            MessageKind::NonConfirmable => "NON",
            MessageKind::Acknowledgement => "ACK",
            MessageKind::Reset => "RST",
        };
        let mut words = vec![kind.to_owned()];
        if message.code.is_request() {
            words.push(method(message.code).to_owned());
            words.push(path(message.uri_path()));
            words.extend(message.uri_query().map(|query| format!("?{query}")));
            words.extend(message.observe().map(|value| format!("observe {value}")));
            words.extend(message.accept().map(|format| format!("accept {format}")));
        } else if message.code != Code::EMPTY {
            words.push(message.code.to_string());
        }
        words.extend(blocks_of(message));
        words.extend(message.max_age().map(|age| format!("max-age {age}")));
        if message.location_path().next().is_some() {
            let location = path(message.location_path());
            words.push(format!("L{}", name(&mut self.locations, location)));
        }
        let format = message.content_format();
        words.extend(format.map(|format| format!("format {format}")));
        if !message.payload.is_empty() {
            words.push(format!("{:?}", String::from_utf8_lossy(&message.payload)));
        }
        if message.code.is_request() {
            let own = format!("{:?} {}", message.message_id, message.token);
            words.push(format!("m{}", name(&mut self.messages, own)));
        } else {
            words.push(format!("to {}", message.message_id.0));
        }
        assert!(message.options().all(|(number, _)| is_shown(number)));
        words.join(" ")
    }

    fn log(&mut self, entry: &Entry) -> String {
        let mut description = entry.description.to_string();
        for (place, id) in self.actions.iter().enumerate() {
            description = description.replace(id.as_str(), &format!("#{}", place + 1));
        }
        let line = format!("log {} {:?}: {description}", entry.message, entry.category);
        match &entry.payload {
            Some(Bytes::Whole(bytes)) => {
                format!("{line} Kept: {:?}", String::from_utf8_lossy(bytes))
            }
            Some(Bytes::Kept { .. }) => panic!("an entry is written with all its bytes"),
            None => line,
        }
    }

    fn action(&mut self, id: &str) -> String {
        format!("#{}", name(&mut self.actions, id.to_owned()))
    }
}

/// Whether a line shows the option: no option that is sent may go unnoticed.
fn is_shown(number: u16) -> bool {
    [
        option::URI_PATH,
        option::OBSERVE,
        option::MAX_AGE,
        option::ACCEPT,
        option::CONTENT_FORMAT,
        option::LOCATION_PATH,
        option::URI_QUERY,
        option::BLOCK1,
        option::BLOCK2,
        option::SIZE1,
        option::SIZE2,
    ]
    .contains(&number)
}

fn blocks_of(message: &Message) -> Vec<String> {
    let block = |name: &str, block: Option<Block>| {
        block.map(|block| {
            let size = block.size().expect("we send no reserved size").bytes();
            let more = if block.has_more() { " more" } else { "" };
            format!("{name} {}/{size}{more}", block.number())
        })
    };
    let size = |name: &str, bytes: Option<u32>| bytes.map(|bytes| format!("{name} {bytes}"));
    let words = [
        block("block1", message.block1()),
        block("block2", message.block2()),
        size("size1", message.size1()),
        size("size2", message.size2()),
    ];
    words.into_iter().flatten().collect()
}

fn name(known: &mut Vec<String>, what: String) -> usize {
    let place = known.iter().position(|it| *it == what);
    place.unwrap_or_else(|| {
        known.push(what);
        known.len() - 1
    }) + 1
}

fn path<'a>(segments: impl Iterator<Item = &'a str>) -> String {
    segments.map(|segment| format!("/{segment}")).collect()
}

fn method(code: Code) -> &'static str {
    match code {
        Code::GET => "GET",
        Code::PUT => "PUT",
        Code::POST => "POST",
        Code::DELETE => "DELETE",
        Code::FETCH => "FETCH",
        Code::PATCH => "PATCH",
        _ => "an unexpected method",
    }
}

fn end(peer: Option<Peer>) -> String {
    let end = |peer: Peer| match peer.transport {
        Transport::Coap | Transport::Coaps => peer.to_string(),
        Transport::Udp => format!("bare {peer}"),
    };
    peer.map_or("nowhere".to_owned(), end)
}

fn progress(action: &Action) -> String {
    let made = format!("{}/{}", action.attempts_made, action.attempts_permitted);
    made + &outcome_text(&action.outcome)
}

/// The outcome of a request.
fn outcome_text(outcome: &Option<Outcome>) -> String {
    let mut text = String::new();
    if let Some(outcome) = outcome {
        let payload = outcome.payload.as_ref().map(shown);
        let parts = [outcome.code.clone(), payload, outcome.error.clone()];
        for part in parts.into_iter().flatten() {
            text.push_str(&format!(" {part:?}"));
        }
    }
    text
}

fn shown(payload: &ResultPayload) -> Box<str> {
    match payload {
        ResultPayload::Text(text) => text.clone(),
        ResultPayload::Values(values) => {
            let values = values.iter();
            let values: Vec<_> = values
                .map(|(path, value)| format!("{path}={value}"))
                .collect();
            values.join(" ").into()
        }
        ResultPayload::Links(links) => protocol::lwm2m::links::discovery::encode(links).into(),
    }
}

fn count(add: &CounterDelta) -> String {
    let what = match &add.counter {
        Counter::CustomerActions { status, .. } => format!("of customer {status:?}"),
        Counter::Devices(_) => "devices".to_owned(),
        Counter::CampaignDevices { state, .. } => format!("of campaign {state:?}"),
    };
    format!("count {what} {:+}", add.delta)
}

// What a test expects, in the lines above.

/// One list after the other.
pub(in crate::device::tests) fn all<const N: usize>(parts: [Lines; N]) -> Lines {
    parts.concat()
}

/// A request is created.
pub(in crate::device::tests) fn created(name: &str, status: Status, progress: &str) -> Lines {
    vec![
        format!("count of customer {status:?} +1"),
        format!("save {name} {status:?} {progress}"),
    ]
}

/// A request changes its status.
pub(in crate::device::tests) fn moved(
    name: &str,
    was: Status,
    status: Status,
    progress: &str,
) -> Lines {
    if was == status {
        return vec![format!("save {name} {was:?} -> {status:?} {progress}")];
    }
    vec![
        format!("expect {name} {was:?}"),
        format!("count of customer {was:?} -1"),
        format!("count of customer {status:?} +1"),
        format!("save {name} {was:?} -> {status:?} {progress}"),
    ]
}

/// A request in progress ends.
pub(in crate::device::tests) fn ended(name: &str, status: Status, progress: &str) -> Lines {
    moved(name, Status::InProgress, status, progress)
}

/// A request in progress succeeds with values, which are published first.
pub(in crate::device::tests) fn answered(name: &str, values: &str, progress: &str) -> Lines {
    all([
        published(&format!("{values} for {name}")),
        ended(name, Status::Succeeded, progress),
    ])
}

/// A request is created and fails in the same step, so the batch expects no earlier status.
pub(in crate::device::tests) fn refused_at_once(
    name: &str,
    status: Status,
    progress: &str,
) -> Lines {
    let mut failed = moved(name, status, Status::Failed, progress);
    failed.remove(0);
    all([created(name, status, "0/1"), failed])
}

/// An attempt ends, and further attempts are left.
pub(in crate::device::tests) fn put_off(name: &str, progress: &str) -> Lines {
    ended(name, Status::InProgress, progress)
}

/// An entry is logged; an error entry is also published.
pub(in crate::device::tests) fn logged(line: &str) -> Lines {
    let failed = line.split_once(" Error: ").map(|(message, _)| message);
    let published = failed.map(|message| format!("publish failure {message}"));
    [format!("log {line}")]
        .into_iter()
        .chain(published)
        .collect()
}

/// A payload about something is rejected with its reason, and its bytes are kept.
pub(in crate::device::tests) fn undecodable(what: &str, bytes: &[u8]) -> Lines {
    let bytes = String::from_utf8_lossy(bytes);
    logged(&format!(
        "Translator[UserPayloadError] Error: A payload was rejected: {what}. Kept: {bytes:?}"
    ))
}

/// An event is published.
pub(in crate::device::tests) fn published(line: &str) -> Lines {
    vec![format!("publish {line}")]
}

/// The record is saved.
pub(in crate::device::tests) fn recorded(line: &str) -> Lines {
    vec![format!("save record: {line}")]
}

/// The effects without the record, which is saved because it has the quota of the log.
pub(in crate::device::tests) fn without_record(effects: Lines) -> Lines {
    let others = effects.into_iter();
    others
        .filter(|line| !line.starts_with("save record"))
        .collect()
}

/// A message is sent to the device at its address.
pub(in crate::device::tests) fn sent(line: &str) -> Lines {
    vec![format!("send {}: {line}", super::HOME)]
}

/// A request of the device is refused.
pub(in crate::device::tests) fn refused(code: &str, text: &str, id: u16) -> Lines {
    sent(&format!("ACK {code} {text:?} to {id}"))
}

/// The datagrams among the effects.
pub(in crate::device::tests) fn answers(effects: &[String]) -> Lines {
    let sent = effects.iter().filter(|line| line.starts_with("send"));
    sent.cloned().collect()
}

/// An update of the device is answered.
pub(in crate::device::tests) fn updated(message_id: u16) -> Lines {
    let home = super::HOME;
    vec![
        format!("rebind {home} -> {home}"),
        format!("send {home}: ACK 2.04 to {message_id}"),
    ]
}

fn data_line(data: &Data) -> String {
    let topic = data.topic.as_ref().map_or("", |topic| topic.as_str());
    let text = String::from_utf8_lossy(&data.bytes);
    format!("publish {:?} data {topic:?} {text:?}", data.source)
}
