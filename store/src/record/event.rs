//! How is an event stored?

use std::net::IpAddr;

use engine::delivery::backlog::QueuedEvent;
use engine::event::{
    ActionResult, Cause, Data, DeviceInfo, ErrorReport, Event, EventContent, Telemetry,
};
use engine::ids::{ActionId, CustomerId, EntryId, Iccid, Imsi};
use engine::moment::Timestamp;
use engine::sms::{MultiPartInfo, ReceivedSms, SmsEndpoint, SmsReport};
use engine::topic::Topic;
use minicbor::bytes::{ByteArray, ByteSlice, ByteVec};
use minicbor::{Decode, Encode};

use super::outcome::{OutcomeV1, outcome_record, read_outcome};
use super::profile::{device_id, iccid, imsi};
use super::sms::sms_id;
use super::value::{NamedValueV1, named_value_records, path_record, read_named_value, read_path};
use super::{Unreadable, code, damaged, read, write};

const VERSION: u8 = 1;

/// What its block does not say of an event.
#[derive(Decode, Encode)]
#[cbor(array)]
struct EventV1<'a> {
    #[n(0)]
    at_ms: i64,
    #[b(1)]
    happening: EventContentV1<'a>,
    #[b(2)]
    speaker: DeviceInfoV1<'a>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct DeviceInfoV1<'a> {
    #[b(0)]
    device: &'a str,
    /// Only where it differs from the device id.
    #[b(1)]
    iccid: Option<&'a str>,
    #[b(2)]
    imsi: Option<&'a str>,
    #[n(3)]
    ip: Option<IpAddr>,
}

#[derive(Decode, Encode)]
enum EventContentV1<'a> {
    #[n(0)]
    Telemetry(#[n(0)] TelemetryV1),
    #[n(1)]
    Lifecycle(#[n(0)] u8),
    #[n(2)]
    Failure(#[b(0)] ErrorReportV1<'a>),
    #[n(3)]
    Concluded(#[b(0)] ActionResultV1<'a>),
    #[n(4)]
    Data(#[b(0)] DataV1<'a>),
    #[n(5)]
    SmsReceived(#[b(0)] ReceivedSmsV1<'a>),
    #[n(6)]
    SmsReport(#[b(0)] SmsReportV1<'a>),
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct ReceivedSmsV1<'a> {
    #[n(0)]
    id: u64,
    #[b(1)]
    payload: &'a str,
    #[n(2)]
    submitted_at_ms: i64,
    #[b(3)]
    dest: &'a str,
    #[b(4)]
    source: &'a str,
    #[n(5)]
    dcs: u8,
    #[n(6)]
    pid: u8,
    #[n(7)]
    part: u8,
    #[n(8)]
    total: u8,
    #[n(9)]
    identifier: u16,
    #[b(10)]
    endpoint: SmsEndpointV1<'a>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct SmsReportV1<'a> {
    #[n(0)]
    id: u64,
    #[n(1)]
    submitted_at_ms: i64,
    #[n(2)]
    final_at_ms: i64,
    #[n(3)]
    status: u8,
    #[b(4)]
    endpoint: SmsEndpointV1<'a>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct SmsEndpointV1<'a> {
    #[n(0)]
    number: u64,
    #[b(1)]
    name: &'a str,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct TelemetryV1 {
    #[n(0)]
    source: u8,
    #[n(1)]
    cause: CauseV1,
    #[n(2)]
    values: Vec<NamedValueV1>,
    #[n(3)]
    measured_at_ms: Option<i64>,
}

#[derive(Decode, Encode)]
enum CauseV1 {
    #[n(0)]
    Observation(#[n(0)] ByteVec),
    #[n(1)]
    Action(#[n(0)] ByteArray<16>),
    #[n(2)]
    Send,
    #[n(3)]
    PassiveReport,
    #[n(4)]
    CompositeObservation(#[n(0)] ByteArray<16>),
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct ErrorReportV1<'a> {
    #[n(0)]
    entry: ByteArray<16>,
    #[b(1)]
    message: &'a str,
    #[b(2)]
    description: &'a str,
    #[n(3)]
    payload: u8,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct ActionResultV1<'a> {
    #[n(0)]
    action: ByteArray<16>,
    #[n(1)]
    protocol: u8,
    #[n(2)]
    status: u8,
    #[b(3)]
    outcome: Option<OutcomeV1<'a>>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct DataV1<'a> {
    #[n(0)]
    source: u8,
    #[b(1)]
    topic: Option<&'a str>,
    #[b(2)]
    bytes: &'a ByteSlice,
}

/// Writes what the block of an event does not say of it.
pub(crate) fn write_event(event: &Event) -> Vec<u8> {
    let record = EventV1 {
        at_ms: event.at.as_ms(),
        happening: happening_record(&event.content),
        speaker: speaker_record(&event.device_info),
    };
    write(VERSION, &record)
}

/// Reads an event of a customer, of which its block says the rest.
pub(crate) fn read_event(
    customer: &CustomerId,
    queued: &QueuedEvent,
    value: &[u8],
) -> Result<Event, Unreadable> {
    let record: EventV1<'_> = read(VERSION, value)?;
    Ok(Event {
        id: queued.event,
        customer: customer.clone(),
        device: queued.device,
        device_info: read_speaker(&record.speaker)?,
        at: Timestamp::from_ms(record.at_ms),
        content: read_happening(record.happening)?,
    })
}

/// Reads the values that an event has, and its time; nothing of an event without values.
pub(crate) fn read_reported(value: &[u8]) -> Result<Option<(Timestamp, Telemetry)>, Unreadable> {
    let record: EventV1<'_> = read(VERSION, value)?;
    Ok(match record.happening {
        EventContentV1::Telemetry(telemetry) => {
            let at = Timestamp::from_ms(record.at_ms);
            Some((at, read_telemetry(telemetry)?))
        }
        EventContentV1::Lifecycle(_)
        | EventContentV1::Failure(_)
        | EventContentV1::Concluded(_)
        | EventContentV1::Data(_)
        | EventContentV1::SmsReceived(_)
        | EventContentV1::SmsReport(_) => None,
    })
}

fn speaker_record(speaker: &DeviceInfo) -> DeviceInfoV1<'_> {
    let (device, iccid) = (speaker.device.as_str(), speaker.iccid.as_str());
    DeviceInfoV1 {
        device,
        iccid: (iccid != device).then_some(iccid),
        imsi: speaker.imsi.as_ref().map(Imsi::as_str),
        ip: speaker.ip,
    }
}

fn read_speaker(record: &DeviceInfoV1<'_>) -> Result<DeviceInfo, Unreadable> {
    let sim: Iccid = iccid(record.iccid.unwrap_or(record.device))?;
    Ok(DeviceInfo {
        device: device_id(record.device)?,
        iccid: sim,
        imsi: record.imsi.map(imsi).transpose()?,
        ip: record.ip,
    })
}

fn happening_record(happening: &EventContent) -> EventContentV1<'_> {
    match happening {
        EventContent::Telemetry(telemetry) => {
            EventContentV1::Telemetry(telemetry_record(telemetry))
        }
        EventContent::Lifecycle(what) => EventContentV1::Lifecycle(code::of_lifecycle(*what)),
        EventContent::Error(failure) => EventContentV1::Failure(ErrorReportV1 {
            entry: ByteArray::from(*failure.entry.as_bytes()),
            message: &failure.message,
            description: &failure.description,
            payload: code::of_payload_kept(failure.payload),
        }),
        EventContent::ActionResult(conclusion) => EventContentV1::Concluded(ActionResultV1 {
            action: ByteArray::from(*conclusion.action.as_bytes()),
            protocol: code::of_protocol(conclusion.protocol),
            status: code::of_status(conclusion.status),
            outcome: conclusion.outcome.as_ref().map(outcome_record),
        }),
        EventContent::Data(data) => EventContentV1::Data(DataV1 {
            source: code::of_protocol(data.source),
            topic: data.topic.as_ref().map(Topic::as_str),
            bytes: (*data.bytes).into(),
        }),
        EventContent::SmsReceived(sms) => EventContentV1::SmsReceived(ReceivedSmsV1 {
            id: sms.id.number(),
            payload: &sms.payload,
            submitted_at_ms: sms.submitted_at.as_ms(),
            dest: &sms.dest,
            source: &sms.source,
            dcs: sms.dcs,
            pid: sms.pid,
            part: sms.part.number,
            total: sms.part.total,
            identifier: sms.part.identifier,
            endpoint: endpoint_record(&sms.endpoint),
        }),
        EventContent::SmsReport(report) => EventContentV1::SmsReport(SmsReportV1 {
            id: report.id.number(),
            submitted_at_ms: report.submitted_at.as_ms(),
            final_at_ms: report.final_at.as_ms(),
            status: code::of_sms_status(report.status),
            endpoint: endpoint_record(&report.endpoint),
        }),
    }
}

fn read_happening(record: EventContentV1<'_>) -> Result<EventContent, Unreadable> {
    Ok(match record {
        EventContentV1::Telemetry(telemetry) => EventContent::Telemetry(read_telemetry(telemetry)?),
        EventContentV1::Lifecycle(what) => EventContent::Lifecycle(code::lifecycle(what)?),
        EventContentV1::Failure(failure) => EventContent::Error(Box::new(ErrorReport {
            entry: EntryId::from_bytes(failure.entry.into()),
            message: failure.message.into(),
            description: failure.description.into(),
            payload: code::payload_kept(failure.payload)?,
        })),
        EventContentV1::Concluded(conclusion) => {
            EventContent::ActionResult(Box::new(ActionResult {
                action: ActionId::from_bytes(conclusion.action.into()),
                protocol: code::protocol(conclusion.protocol)?,
                status: code::status(conclusion.status)?,
                outcome: conclusion.outcome.map(read_outcome).transpose()?,
            }))
        }
        EventContentV1::Data(data) => EventContent::Data(Box::new(read_data(&data)?)),
        EventContentV1::SmsReceived(sms) => {
            EventContent::SmsReceived(Box::new(read_received_sms(&sms)?))
        }
        EventContentV1::SmsReport(report) => EventContent::SmsReport(Box::new(SmsReport {
            id: sms_id(report.id)?,
            submitted_at: Timestamp::from_ms(report.submitted_at_ms),
            final_at: Timestamp::from_ms(report.final_at_ms),
            status: code::sms_status(report.status)?,
            endpoint: read_endpoint(&report.endpoint),
        })),
    })
}

fn read_received_sms(record: &ReceivedSmsV1<'_>) -> Result<ReceivedSms, Unreadable> {
    Ok(ReceivedSms {
        id: sms_id(record.id)?,
        payload: record.payload.into(),
        submitted_at: Timestamp::from_ms(record.submitted_at_ms),
        dest: record.dest.into(),
        source: record.source.into(),
        dcs: record.dcs,
        pid: record.pid,
        part: MultiPartInfo {
            number: record.part,
            total: record.total,
            identifier: record.identifier,
        },
        endpoint: read_endpoint(&record.endpoint),
    })
}

fn endpoint_record(endpoint: &SmsEndpoint) -> SmsEndpointV1<'_> {
    SmsEndpointV1 {
        number: endpoint.number,
        name: &endpoint.name,
    }
}

fn read_endpoint(record: &SmsEndpointV1<'_>) -> SmsEndpoint {
    SmsEndpoint {
        number: record.number,
        name: record.name.into(),
    }
}

fn read_data(record: &DataV1<'_>) -> Result<Data, Unreadable> {
    let topic = record.topic.map(Topic::parse).transpose();
    Ok(Data {
        source: code::protocol(record.source)?,
        topic: topic.map_err(damaged("no topic"))?,
        bytes: Box::from(&**record.bytes),
    })
}

fn telemetry_record(telemetry: &Telemetry) -> TelemetryV1 {
    TelemetryV1 {
        source: code::of_protocol(telemetry.source),
        cause: match telemetry.cause {
            Cause::Observation(path) => CauseV1::Observation(path_record(path)),
            Cause::CompositeObservation(id) => {
                CauseV1::CompositeObservation(ByteArray::from(*id.as_bytes()))
            }
            Cause::Action(id) => CauseV1::Action(ByteArray::from(*id.as_bytes())),
            Cause::Send => CauseV1::Send,
            Cause::PassiveReport => CauseV1::PassiveReport,
        },
        values: named_value_records(&telemetry.values),
        measured_at_ms: telemetry.measured_at.map(Timestamp::as_ms),
    }
}

fn read_telemetry(record: TelemetryV1) -> Result<Telemetry, Unreadable> {
    Ok(Telemetry {
        source: code::protocol(record.source)?,
        cause: match record.cause {
            CauseV1::Observation(path) => Cause::Observation(read_path(&path)?),
            CauseV1::CompositeObservation(id) => {
                Cause::CompositeObservation(ActionId::from_bytes(id.into()))
            }
            CauseV1::Action(id) => Cause::Action(ActionId::from_bytes(id.into())),
            CauseV1::Send => Cause::Send,
            CauseV1::PassiveReport => Cause::PassiveReport,
        },
        measured_at: record.measured_at_ms.map(Timestamp::from_ms),
        values: read_named_value(record.values)?,
    })
}
