//! How is an action request stored?
//!
//! Its status is right after the version, so that compare-and-set reads it without decoding.

use std::net::IpAddr;
use std::num::NonZeroU16;

use engine::action::{
    Action, Addressee, CoapRequest, Content, InstanceWrite, Lwm2mRequest, NewInstance, Operation,
    PathData, Request, Status, UdpRequest,
};
use engine::ids::{ActionId, DeviceKey, Imsi, SmsId, TraceId};
use engine::moment::Timestamp;
use engine::{Attributes, Path, PathAndQuery, WriteMethod};
use minicbor::bytes::{ByteArray, ByteVec};
use minicbor::{Decode, Encode};

use super::customer::customer_id;
use super::outcome::{OutcomeV1, outcome_record, read_outcome};
use super::profile::{device_id, iccid, imsi};
use super::sms::sms_id;
use super::timeline::{TimelineEntryV1, read_timeline, timeline_records};
use super::value::{path_record, read_path};
use super::{Unreadable, check_version, code, damaged, read_record, write_behind};

const VERSION: u8 = 1;

#[derive(Decode, Encode)]
#[cbor(array)]
struct ActionV1<'a> {
    #[n(0)]
    id: ByteArray<16>,
    #[b(1)]
    customer: &'a str,
    #[n(2)]
    device: ByteArray<16>,
    #[b(3)]
    request: RequestV1<'a>,
    #[n(4)]
    mode: u8,
    #[n(5)]
    attempts_permitted: u8,
    #[n(6)]
    attempts_made: u8,
    #[n(7)]
    created_at_ms: i64,
    #[n(8)]
    updated_at_ms: i64,
    #[n(9)]
    expires_at_ms: i64,
    #[b(10)]
    addressee: AddresseeV1<'a>,
    #[n(11)]
    trace: ByteArray<16>,
    #[b(12)]
    outcome: Option<OutcomeV1<'a>>,
    #[n(13)]
    expires_in_s: Option<u32>,
    #[n(14)]
    timeline: Option<Vec<TimelineEntryV1>>,
    #[n(15)]
    not_before_ms: Option<i64>,
    #[n(16)]
    wake_up: Option<u8>,
    #[n(17)]
    woken_by: Option<u64>,
}

#[derive(Decode, Encode)]
pub(super) enum RequestV1<'a> {
    #[n(0)]
    #[cbor(array)]
    Lwm2m {
        #[n(0)]
        operation: u8,
        /// Empty for an operation on several paths.
        #[n(1)]
        path: String,
        #[b(2)]
        data: Option<&'a str>,
        #[b(3)]
        values: Option<Vec<PathDataV1<'a>>>,
        #[n(4)]
        attributes: Option<String>,
        #[n(5)]
        paths: Option<Vec<ByteVec>>,
        /// Whether the values replace an instance.
        #[n(6)]
        replaces: Option<bool>,
    },
    #[n(1)]
    #[cbor(array)]
    Udp {
        #[b(0)]
        content: ContentV1<'a>,
        #[n(1)]
        port: NonZeroU16,
    },
    #[n(2)]
    #[cbor(array)]
    Coap {
        #[n(0)]
        method: u8,
        #[n(1)]
        port: NonZeroU16,
        #[b(2)]
        target: &'a str,
        #[b(3)]
        content: Option<ContentV1<'a>>,
    },
}

/// The value for a path, as the caller wrote it.
#[derive(Decode, Encode)]
#[cbor(array)]
pub(super) struct PathDataV1<'a> {
    #[n(0)]
    path: ByteVec,
    #[b(1)]
    data: &'a str,
}

#[derive(Decode, Encode)]
#[cbor(array)]
pub(super) struct ContentV1<'a> {
    #[n(0)]
    form: u8,
    #[b(1)]
    text: &'a str,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct AddresseeV1<'a> {
    #[b(0)]
    device: &'a str,
    #[b(1)]
    iccid: &'a str,
    #[b(2)]
    imsi: Option<&'a str>,
    #[n(3)]
    ip: Option<IpAddr>,
}

/// Writes an action request.
pub(crate) fn write_action(action: &Action) -> Vec<u8> {
    let record = ActionV1 {
        id: ByteArray::from(*action.id.as_bytes()),
        customer: action.customer.as_str(),
        device: ByteArray::from(*action.device.as_bytes()),
        request: request_record(&action.request),
        mode: code::of_mode(action.mode),
        attempts_permitted: action.attempts_permitted,
        attempts_made: action.attempts_made,
        created_at_ms: action.created_at.as_ms(),
        updated_at_ms: action.updated_at.as_ms(),
        expires_at_ms: action.expires_at.as_ms(),
        addressee: AddresseeV1 {
            device: action.addressee.device.as_str(),
            iccid: action.addressee.iccid.as_str(),
            imsi: action.addressee.imsi.as_ref().map(Imsi::as_str),
            ip: action.addressee.ip,
        },
        trace: ByteArray::from(*action.trace.as_bytes()),
        outcome: action.outcome.as_ref().map(outcome_record),
        expires_in_s: action.expires_in_s,
        timeline: timeline_records(&action.timeline),
        not_before_ms: action.not_before.map(Timestamp::as_ms),
        wake_up: action.wake_up.map(code::of_wake_up),
        woken_by: action.woken_by.map(SmsId::number),
    };
    write_behind(vec![VERSION, code::of_status(action.status)], &record)
}

/// Reads an action request.
pub(crate) fn read_action(value: &[u8]) -> Result<Action, Unreadable> {
    let (status, bytes) = part_status(value)?;
    let record: ActionV1<'_> = read_record(bytes)?;
    Ok(Action {
        id: ActionId::from_bytes(record.id.into()),
        customer: customer_id(record.customer)?,
        device: DeviceKey::from_bytes(record.device.into()),
        request: read_request(record.request)?,
        mode: code::mode(record.mode)?,
        status,
        attempts_permitted: record.attempts_permitted,
        attempts_made: record.attempts_made,
        created_at: Timestamp::from_ms(record.created_at_ms),
        updated_at: Timestamp::from_ms(record.updated_at_ms),
        expires_at: Timestamp::from_ms(record.expires_at_ms),
        expires_in_s: record.expires_in_s,
        not_before: record.not_before_ms.map(Timestamp::from_ms),
        wake_up: record.wake_up.map(code::wake_up).transpose()?,
        woken_by: record.woken_by.map(sms_id).transpose()?,
        addressee: Addressee {
            device: device_id(record.addressee.device)?,
            iccid: iccid(record.addressee.iccid)?,
            imsi: record.addressee.imsi.map(imsi).transpose()?,
            ip: record.addressee.ip,
        },
        trace: TraceId::from_bytes(record.trace.into()),
        outcome: record.outcome.map(read_outcome).transpose()?,
        timeline: read_timeline(record.timeline)?,
    })
}

/// Reads the status alone, of a whole value or of its first piece.
pub(crate) fn read_status(value: &[u8]) -> Result<Status, Unreadable> {
    part_status(value).map(|(status, _)| status)
}

fn part_status(value: &[u8]) -> Result<(Status, &[u8]), Unreadable> {
    let (status, bytes) = check_version(VERSION, value)?
        .split_first()
        .ok_or(Unreadable::Damaged("an action request without status"))?;
    Ok((code::status(*status)?, bytes))
}

pub(super) fn request_record(request: &Request) -> RequestV1<'_> {
    match request {
        Request::Lwm2m(request) => operation_record(request),
        Request::Udp(request) => RequestV1::Udp {
            content: content_record(&request.content),
            port: request.port,
        },
        Request::Coap(request) => RequestV1::Coap {
            method: code::of_method(request.method),
            port: request.port,
            target: request.target.as_str(),
            content: request.content.as_ref().map(content_record),
        },
    }
}

pub(super) fn read_request(record: RequestV1<'_>) -> Result<Request, Unreadable> {
    match record {
        RequestV1::Lwm2m { .. } => read_operation(record).map(Request::Lwm2m),
        RequestV1::Udp { content, port } => Ok(Request::Udp(UdpRequest {
            content: read_content(&content)?,
            port,
        })),
        RequestV1::Coap {
            method,
            port,
            target,
            content,
        } => Ok(Request::Coap(CoapRequest {
            method: code::method(method)?,
            port,
            target: PathAndQuery::parse(target).map_err(damaged("no path and query"))?,
            content: content.as_ref().map(read_content).transpose()?,
        })),
    }
}

fn operation_record(request: &Lwm2mRequest) -> RequestV1<'_> {
    let path = request.address().map(|path| path.to_string());
    let values = request.values();
    let values = values.map(|values| values.iter().map(record_of_value).collect());
    let paths = request.paths().map(|paths| {
        let paths = paths.iter().copied().map(path_record);
        paths.collect()
    });
    RequestV1::Lwm2m {
        operation: code::of_operation(request.operation()),
        path: path.unwrap_or_default(),
        data: request.data(),
        values,
        attributes: request.attributes().map(Attributes::query),
        paths,
        replaces: request.replaces(),
    }
}

fn record_of_value((path, data): &(Path, Box<str>)) -> PathDataV1<'_> {
    PathDataV1 {
        path: path_record(*path),
        data,
    }
}

fn read_operation(record: RequestV1<'_>) -> Result<Lwm2mRequest, Unreadable> {
    let RequestV1::Lwm2m {
        operation,
        path,
        data,
        values,
        attributes,
        paths,
        replaces,
    } = record
    else {
        return Err(Unreadable::Damaged("no operation"));
    };
    let path = || path.parse::<Path>().map_err(damaged("no resource path"));
    let attributes = || {
        let attributes = Attributes::from_query(attributes.as_deref().unwrap_or_default());
        attributes.map_err(|_| Unreadable::Damaged("no attributes"))
    };
    let values = || read_values(values);
    Ok(match code::operation(operation)? {
        Operation::Read => Lwm2mRequest::Read(path()?),
        Operation::Write => Lwm2mRequest::Write(path()?, data.unwrap_or_default().into()),
        Operation::Execute => Lwm2mRequest::Execute(path()?, data.map(Into::into)),
        Operation::ObserveStart => Lwm2mRequest::ObserveStart(path()?, attributes()?),
        Operation::ObserveEnd => Lwm2mRequest::ObserveEnd(path()?),
        Operation::Discover => Lwm2mRequest::Discover(path()?),
        Operation::Create => Lwm2mRequest::Create(NewInstance {
            object: path()?.object_id(),
            instance: path()?.instance_id(),
            values: values()?,
        }),
        Operation::Delete => Lwm2mRequest::Delete(path()?),
        Operation::WriteAttributes => Lwm2mRequest::WriteAttributes(path()?, attributes()?),
        Operation::WriteInstance => Lwm2mRequest::WriteInstance(InstanceWrite {
            path: path()?,
            method: match replaces {
                Some(true) => WriteMethod::Replace,
                Some(false) | None => WriteMethod::PartialUpdate,
            },
            values: values()?,
        }),
        Operation::ReadComposite => Lwm2mRequest::ReadComposite(read_paths(paths)?),
        Operation::WriteComposite => Lwm2mRequest::WriteComposite(values()?),
        Operation::ObserveCompositeStart => {
            Lwm2mRequest::ObserveCompositeStart(read_paths(paths)?, attributes()?)
        }
        Operation::ObserveCompositeEnd => Lwm2mRequest::ObserveCompositeEnd(read_paths(paths)?),
    })
}

fn read_values(records: Option<Vec<PathDataV1<'_>>>) -> Result<PathData, Unreadable> {
    let read = |record: PathDataV1<'_>| Ok((read_path(&record.path)?, record.data.into()));
    records.into_iter().flatten().map(read).collect()
}

fn read_paths(records: Option<Vec<ByteVec>>) -> Result<Box<[Path]>, Unreadable> {
    let records = records.iter().flatten();
    records.map(|path| read_path(path)).collect()
}

fn content_record(content: &Content) -> ContentV1<'_> {
    ContentV1 {
        form: code::of_content_form(content.form()),
        text: content.text(),
    }
}

fn read_content(record: &ContentV1<'_>) -> Result<Content, Unreadable> {
    let form = code::content_form(record.form)?;
    Content::parse(form, record.text).map_err(damaged("no content"))
}
