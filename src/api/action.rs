//! What is the JSON of an action request? (seed 2.1)

pub(super) mod described;

use std::collections::BTreeMap;

use serde::Serialize;

use engine::action::timeline::{TimelineEntry, TimelineEvent};
use engine::action::{Action, CoapRequest, Lwm2mRequest, NewAction, Request, UdpRequest};
use engine::delivery::body::ResultData;
use engine::moment::Timestamp;
use engine::query::listed::{ListedAction, Omitted};
use engine::sms::{Sms, SmsStatus};
use engine::{Attributes, Path};

use super::words::Word;

/// An action request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ActionBody {
    id: String,
    status: &'static str,
    device_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<String>,
    protocol: &'static str,
    created: String,
    updated: String,
    mode: &'static str,
    request_data: RequestDataBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_data: Option<ResultData>,
    send_attempts: u8,
    send_attempts_left: u8,
    /// The properties that are too long for a list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    omitted: Vec<&'static str>,
}

/// An action request with its timeline.
#[derive(Serialize)]
pub(super) struct ActionWithTimelineBody {
    #[serde(flatten)]
    action: ActionBody,
    timeline: Vec<TimelineEntryBody>,
}

/// An event of the timeline.
#[derive(Serialize)]
struct TimelineEntryBody {
    time: String,
    event: &'static str,
    /// The number of the attempt that started.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u8>,
    /// The response code of the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// The diagnostic text of the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    diagnostic: Option<Box<str>>,
    /// Why the request is not sent yet.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    waits_for: Option<&'static str>,
    /// The SMS that wakes the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    sms: Option<u64>,
    /// The status that the SMS got.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    /// Why the SMS failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Box<str>>,
}

/// The body of a call that creates requests, without the devices.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewActionBody {
    #[serde(flatten)]
    request: RequestBody,
    request_mode: &'static str,
    /// Absent for UDP, which does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    send_attempts: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_in: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wake_up: Option<&'static str>,
}

/// The body of the call, with the identifiers of the device at that time.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RequestDataBody {
    #[serde(flatten)]
    request: RequestBody,
    request_mode: &'static str,
    /// Absent for UDP, which does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    send_attempts: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_in: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wake_up: Option<&'static str>,
    iccid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    imsi1: Option<String>,
    trace_id: String,
    device_id: String,
    request_id: String,
    customer_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_ip_address: Option<String>,
}

/// The body of the call.
#[derive(Serialize)]
#[serde(untagged)]
enum RequestBody {
    Udp(UdpBody),
    Coap(CoapBody),
    Lwm2m(Lwm2mBody),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UdpBody {
    payload: String,
    payload_type: &'static str,
    port: u16,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CoapBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_type: Option<&'static str>,
    port: u16,
    path: String,
    request_type: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Lwm2mBody {
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_addresses: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<DataBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attributes: Option<BTreeMap<&'static str, Option<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replace: Option<bool>,
}

/// One value, or several by name.
#[derive(Serialize)]
#[serde(untagged)]
enum DataBody {
    Text(String),
    Values(BTreeMap<String, String>),
}

impl ActionBody {
    /// The request.
    pub(super) fn of(action: &Action) -> Self {
        Self {
            id: action.id.to_string(),
            status: action.status.word(),
            device_id: action.addressee.device.to_string(),
            ip: action.addressee.ip.map(|ip| ip.to_string()),
            protocol: action.protocol().word(),
            created: action.created_at.spaced().to_string(),
            updated: action.updated_at.spaced().to_string(),
            mode: action.mode.word(),
            request_data: RequestDataBody::of(action),
            result_data: action.outcome.as_ref().map(ResultData::of),
            send_attempts: action.attempts_permitted,
            send_attempts_left: action.attempts_left(),
            omitted: Vec::new(),
        }
    }

    /// The request in a list.
    pub(super) fn listed(listed: &ListedAction) -> Self {
        let mut body = Self::of(&listed.action);
        if listed.omitted.contains(&Omitted::RequestData) {
            body.request_data.omit_data();
        }
        let omitted = listed.omitted.iter();
        body.omitted = omitted
            .map(|it| omitted_word(*it, &listed.action))
            .collect();
        body
    }
}

/// The properties that a list can leave out of a request.
pub(super) const OMITTED_WORDS: [&str; 3] = [
    "requestData.payload",
    "requestData.data",
    "resultData.payload",
];

fn omitted_word(omitted: Omitted, action: &Action) -> &'static str {
    let [payload, data, result] = OMITTED_WORDS;
    match (omitted, &action.request) {
        (Omitted::RequestData, Request::Udp(_) | Request::Coap(_)) => payload,
        (Omitted::RequestData, Request::Lwm2m(_)) => data,
        (Omitted::ResultPayload, _) => result,
    }
}

impl ActionWithTimelineBody {
    /// The request with its timeline, and the SMS that wakes its device, if there is one.
    pub(super) fn of(action: &Action, woken_by: Option<&Sms>) -> Self {
        let happened = action.timeline.as_slice().iter();
        let happened = happened.map(|it| (it.at, TimelineEntryBody::of(it)));
        let of_sms = woken_by.map(wake_up_entries).unwrap_or_default();
        let mut timeline: Vec<_> = happened.chain(of_sms).collect();
        timeline.sort_by_key(|(at, _)| *at);
        Self {
            action: ActionBody::of(action),
            timeline: timeline.into_iter().map(|(_, entry)| entry).collect(),
        }
    }
}

/// What happened to the SMS that wakes a device.
fn wake_up_entries(sms: &Sms) -> Vec<(Timestamp, TimelineEntryBody)> {
    let Some(submitted) = sms.submitted() else {
        return Vec::new();
    };
    let final_at = submitted.final_at.map(|at| (at, submitted.status));
    let statuses = [
        Some((sms.submitted_at, SmsStatus::Pending)),
        submitted.taken_at.map(|at| (at, SmsStatus::InProgress)),
        submitted.buffered_at.map(|at| (at, SmsStatus::Buffered)),
        final_at,
    ];
    let entry = |(at, status): (Timestamp, SmsStatus)| {
        let reason = submitted.reason.clone().filter(|_| status.is_final());
        let entry = TimelineEntryBody {
            sms: Some(sms.id.number()),
            status: Some(status.word()),
            reason,
            ..TimelineEntryBody::at(at, WAKE_UP_EVENT)
        };
        (at, entry)
    };
    statuses.into_iter().flatten().map(entry).collect()
}

impl TimelineEntryBody {
    fn of(happened: &TimelineEntry) -> Self {
        let (attempt, code, waits_for) = match happened.what {
            TimelineEvent::Waiting(why) => (None, None, Some(why.word())),
            TimelineEvent::AttemptBegun(number) => (Some(number), None, None),
            TimelineEvent::AttributesWritten(code) | TimelineEvent::Answered(code) => {
                (None, Some(code.digits()), None)
            }
            TimelineEvent::DatagramSent
            | TimelineEvent::DatagramRepeated
            | TimelineEvent::Acknowledged
            | TimelineEvent::Rejected
            | TimelineEvent::GaveUp => (None, None, None),
        };
        Self {
            attempt,
            code,
            diagnostic: happened.diagnostic.clone(),
            waits_for,
            ..Self::at(happened.at, event_word(happened.what))
        }
    }

    fn at(at: Timestamp, event: &'static str) -> Self {
        Self {
            time: at.spaced().to_string(),
            event,
            attempt: None,
            code: None,
            diagnostic: None,
            waits_for: None,
            sms: None,
            status: None,
            reason: None,
        }
    }
}

/// The event type of the SMS that wakes the device.
pub(super) const WAKE_UP_EVENT: &str = "WAKE_UP_SMS";

/// The event types of a request in its timeline.
pub(super) const EVENT_WORDS: [&str; 9] = [
    "WAITING",
    "ATTEMPT_BEGUN",
    "DATAGRAM_SENT",
    "DATAGRAM_REPEATED",
    "ACKNOWLEDGED",
    "ATTRIBUTES_WRITTEN",
    "ANSWERED",
    "REJECTED",
    "GAVE_UP",
];

fn event_word(what: TimelineEvent) -> &'static str {
    let [
        waiting,
        begun,
        sent,
        repeated,
        acknowledged,
        attributes_written,
        answered,
        rejected,
        gave_up,
    ] = EVENT_WORDS;
    match what {
        TimelineEvent::Waiting(_) => waiting,
        TimelineEvent::AttemptBegun(_) => begun,
        TimelineEvent::DatagramSent => sent,
        TimelineEvent::DatagramRepeated => repeated,
        TimelineEvent::Acknowledged => acknowledged,
        TimelineEvent::AttributesWritten(_) => attributes_written,
        TimelineEvent::Answered(_) => answered,
        TimelineEvent::Rejected => rejected,
        TimelineEvent::GaveUp => gave_up,
    }
}

impl RequestDataBody {
    /// Leaves out the data of an operation.
    fn omit_data(&mut self) {
        match &mut self.request {
            RequestBody::Lwm2m(request) => request.data = None,
            RequestBody::Udp(_) | RequestBody::Coap(_) => {}
        }
    }

    fn of(action: &Action) -> Self {
        let send_attempts = match action.request {
            Request::Udp(_) => None,
            Request::Coap(_) | Request::Lwm2m(_) => Some(action.attempts_permitted),
        };
        Self {
            request: RequestBody::of(&action.request),
            request_mode: action.mode.word(),
            send_attempts,
            expires_in: action.expires_in_s,
            not_before: action.not_before.map(|at| at.iso().to_string()),
            wake_up: action.wake_up.map(Word::word),
            iccid: action.addressee.iccid.to_string(),
            imsi1: action.addressee.imsi.as_ref().map(ToString::to_string),
            trace_id: action.trace.to_string(),
            device_id: action.addressee.device.to_string(),
            request_id: action.id.to_string(),
            customer_id: action.customer.to_string(),
            device_ip_address: action.addressee.ip.map(|ip| ip.to_string()),
        }
    }
}

impl NewActionBody {
    /// The request.
    pub(super) fn of(new: &NewAction) -> Self {
        let send_attempts = match new.request {
            Request::Udp(_) => None,
            Request::Coap(_) | Request::Lwm2m(_) => Some(new.attempts_permitted),
        };
        Self {
            request: RequestBody::of(&new.request),
            request_mode: new.mode.word(),
            send_attempts,
            expires_in: new.expires_in_s,
            wake_up: new.wake_up.map(Word::word),
        }
    }
}

impl RequestBody {
    fn of(request: &Request) -> Self {
        match request {
            Request::Udp(request) => Self::Udp(UdpBody::of(request)),
            Request::Coap(request) => Self::Coap(CoapBody::of(request)),
            Request::Lwm2m(request) => Self::Lwm2m(Lwm2mBody::of(request)),
        }
    }
}

impl UdpBody {
    fn of(request: &UdpRequest) -> Self {
        Self {
            payload: request.content.text().to_owned(),
            payload_type: request.content.form().word(),
            port: request.port.get(),
        }
    }
}

impl CoapBody {
    fn of(request: &CoapRequest) -> Self {
        let content = request.content.as_ref();
        Self {
            payload: content.map(|content| content.text().to_owned()),
            payload_type: content.map(|content| content.form().word()),
            port: request.port.get(),
            path: request.target.to_string(),
            request_type: request.method.word(),
        }
    }
}

impl Lwm2mBody {
    fn of(request: &Lwm2mRequest) -> Self {
        let text = request.data().map(|data| DataBody::Text(data.to_owned()));
        let values = request.values().map(|values| DataBody::of(request, values));
        Self {
            action: request.operation().word(),
            resource_address: request.address().map(|path| path.to_string()),
            resource_addresses: addresses_of(request),
            data: text.or(values),
            attributes: attributes_of(request),
            replace: request.replaces(),
        }
    }
}

impl DataBody {
    /// The values of an instance are named by what is below it, others by their path.
    fn of(request: &Lwm2mRequest, values: &[(Path, Box<str>)]) -> Self {
        let is_in_instance = request.address().is_some();
        let name = |path: &Path| match is_in_instance {
            true => {
                let below: Vec<String> = path.segments().skip(2).map(|id| id.to_string()).collect();
                below.join("/")
            }
            false => path.to_string(),
        };
        let named = values
            .iter()
            .map(|(path, data)| (name(path), data.to_string()));
        Self::Values(named.collect())
    }
}

fn addresses_of(request: &Lwm2mRequest) -> Option<Vec<String>> {
    request.paths().map(addresses)
}

/// Paths of a composite operation: without one it is about everything.
pub(super) fn addresses(paths: &[Path]) -> Vec<String> {
    match paths {
        [] => vec!["/".to_owned()],
        paths => paths.iter().map(Path::to_string).collect(),
    }
}

fn attributes_of(request: &Lwm2mRequest) -> Option<BTreeMap<&'static str, Option<String>>> {
    request.attributes().map(by_name)
}

/// Attributes by name; one to remove has no value.
pub(super) fn by_name(attributes: &Attributes) -> BTreeMap<&'static str, Option<String>> {
    let named = attributes.iter().map(|attribute| {
        let value = attribute.value.as_ref().map(ToString::to_string);
        (attribute.name.as_str(), value)
    });
    named.collect()
}
