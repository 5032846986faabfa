//! How are a job, its request and a part of its devices stored?

use std::net::{IpAddr, SocketAddr};

use engine::action::NewAction;
use engine::device::refusal::{ForbiddenAddress, SubmitRefusal};
use engine::directory::sms::waking::WakeUpRefusal;
use engine::ids::{ActionId, JobId, ScheduleId, TraceId};
use engine::job::{Job, JobDevice, JobOutcome};
use engine::moment::Timestamp;
use minicbor::bytes::ByteArray;
use minicbor::{Decode, Encode};

use super::action::{RequestV1, read_request, request_record};
use super::customer::customer_id;
use super::profile::device_id;
use super::{Unreadable, code, damaged, read, write};

const VERSION: u8 = 1;

#[derive(Decode, Encode)]
#[cbor(array)]
struct JobV1<'a> {
    #[n(0)]
    id: ByteArray<16>,
    #[b(1)]
    customer: &'a str,
    #[n(2)]
    state: u8,
    #[n(3)]
    created_at_ms: i64,
    #[n(4)]
    matched: u32,
    #[n(5)]
    accepted: u32,
    #[n(6)]
    rejected: u32,
    #[n(7)]
    parts_done: u32,
    #[n(8)]
    schedule: Option<ByteArray<16>>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
pub(super) struct JobRequestV1<'a> {
    #[b(0)]
    request: RequestV1<'a>,
    #[n(1)]
    mode: u8,
    #[n(2)]
    attempts_permitted: u8,
    #[n(3)]
    expires_in_s: Option<u32>,
    #[n(4)]
    not_before_ms: Option<i64>,
    #[n(5)]
    trace: ByteArray<16>,
    #[n(6)]
    wake_up: Option<u8>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct JobDeviceV1<'a> {
    #[b(0)]
    device: &'a str,
    #[n(1)]
    outcome: Option<JobOutcomeV1>,
}

#[derive(Decode, Encode)]
pub(super) enum JobOutcomeV1 {
    #[n(0)]
    #[cbor(array)]
    Accepted(#[n(0)] ByteArray<16>),
    #[n(1)]
    NotRegistered,
    #[n(2)]
    NoAddress,
    #[n(3)]
    #[cbor(array)]
    AddressOwn(#[n(0)] SocketAddr),
    #[n(4)]
    #[cbor(array)]
    AddressUnheard(#[n(0)] IpAddr),
    #[n(5)]
    #[cbor(array)]
    QueueFull {
        #[n(0)]
        mode: u8,
        #[n(1)]
        waiting: u32,
        #[n(2)]
        max: u32,
    },
    #[n(6)]
    #[cbor(array)]
    DataFull {
        #[n(0)]
        more: u64,
        #[n(1)]
        total: u64,
        #[n(2)]
        max: u64,
    },
    #[n(7)]
    #[cbor(array)]
    Unserved(#[n(0)] u8),
    #[n(8)]
    #[cbor(array)]
    RequestOpen(#[n(0)] ByteArray<16>),
    #[n(9)]
    WithoutDtls,
    #[n(10)]
    NoNumber,
    #[n(11)]
    NoWakeUpMessage,
    #[n(12)]
    #[cbor(array)]
    WokenTooOften(#[n(0)] u32),
    #[n(13)]
    #[cbor(array)]
    TooManyOpenSms(#[n(0)] u32),
}

/// Writes a job.
pub(crate) fn write_job(job: &Job) -> Vec<u8> {
    let record = JobV1 {
        id: ByteArray::from(*job.id.as_bytes()),
        customer: job.customer.as_str(),
        state: code::of_job_state(job.state),
        created_at_ms: job.created_at.as_ms(),
        matched: job.matched,
        accepted: job.accepted,
        rejected: job.rejected,
        parts_done: job.parts_done,
        schedule: job.schedule.map(|id| ByteArray::from(*id.as_bytes())),
    };
    write(VERSION, &record)
}

/// Reads a job.
pub(crate) fn read_job(value: &[u8]) -> Result<Job, Unreadable> {
    let record: JobV1<'_> = read(VERSION, value)?;
    Ok(Job {
        id: JobId::from_bytes(record.id.into()),
        customer: customer_id(record.customer)?,
        state: code::job_state(record.state)?,
        created_at: Timestamp::from_ms(record.created_at_ms),
        matched: record.matched,
        accepted: record.accepted,
        rejected: record.rejected,
        parts_done: record.parts_done,
        schedule: record.schedule.map(|id| ScheduleId::from_bytes(id.into())),
    })
}

/// Writes the request of a job.
pub(crate) fn write_job_request(request: &NewAction) -> Vec<u8> {
    write(VERSION, &job_request_record(request))
}

/// The record of a request.
pub(super) fn job_request_record(request: &NewAction) -> JobRequestV1<'_> {
    JobRequestV1 {
        request: request_record(&request.request),
        mode: code::of_mode(request.mode),
        attempts_permitted: request.attempts_permitted,
        expires_in_s: request.expires_in_s,
        not_before_ms: request.not_before.map(Timestamp::as_ms),
        trace: ByteArray::from(*request.trace.as_bytes()),
        wake_up: request.wake_up.map(code::of_wake_up),
    }
}

/// Reads the request of a job.
pub(crate) fn read_job_request(value: &[u8]) -> Result<NewAction, Unreadable> {
    new_action_of(read(VERSION, value)?)
}

/// The request of a record.
pub(super) fn new_action_of(record: JobRequestV1<'_>) -> Result<NewAction, Unreadable> {
    Ok(NewAction {
        request: read_request(record.request)?,
        mode: code::mode(record.mode)?,
        attempts_permitted: record.attempts_permitted,
        expires_in_s: record.expires_in_s,
        not_before: record.not_before_ms.map(Timestamp::from_ms),
        wake_up: record.wake_up.map(code::wake_up).transpose()?,
        trace: TraceId::from_bytes(record.trace.into()),
        idempotent_call: None,
    })
}

/// Writes a part of the devices of a job.
pub(crate) fn write_job_part(devices: &[JobDevice]) -> Vec<u8> {
    let records: Vec<JobDeviceV1<'_>> = devices.iter().map(device_record).collect();
    write(VERSION, &records)
}

/// Reads a part of the devices of a job.
pub(crate) fn read_job_part(value: &[u8]) -> Result<Vec<JobDevice>, Unreadable> {
    let records: Vec<JobDeviceV1<'_>> = read(VERSION, value)?;
    let device = |record: JobDeviceV1<'_>| {
        Ok(JobDevice {
            device: device_id(record.device)?,
            outcome: record.outcome.map(read_job_outcome).transpose()?,
        })
    };
    records.into_iter().map(device).collect()
}

fn device_record(device: &JobDevice) -> JobDeviceV1<'_> {
    JobDeviceV1 {
        device: device.device.as_str(),
        outcome: device.outcome.map(job_outcome_record),
    }
}

/// The record of an outcome.
pub(super) fn job_outcome_record(outcome: JobOutcome) -> JobOutcomeV1 {
    let whole = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
    match outcome {
        JobOutcome::Accepted(action) => JobOutcomeV1::Accepted(ByteArray::from(*action.as_bytes())),
        JobOutcome::Refused(SubmitRefusal::NotRegistered) => JobOutcomeV1::NotRegistered,
        JobOutcome::Refused(SubmitRefusal::NoAddress) => JobOutcomeV1::NoAddress,
        JobOutcome::Refused(SubmitRefusal::AddressForbidden(why)) => match why {
            ForbiddenAddress::Own(address) => JobOutcomeV1::AddressOwn(address),
            ForbiddenAddress::Unheard(ip) => JobOutcomeV1::AddressUnheard(ip),
            ForbiddenAddress::WithoutDtls => JobOutcomeV1::WithoutDtls,
        },
        JobOutcome::Refused(SubmitRefusal::WakeUp(why)) => match why {
            WakeUpRefusal::NoNumber => JobOutcomeV1::NoNumber,
            WakeUpRefusal::NoMessage => JobOutcomeV1::NoWakeUpMessage,
            WakeUpRefusal::TooOften { max } => JobOutcomeV1::WokenTooOften(max),
            WakeUpRefusal::TooManyOpen { max } => JobOutcomeV1::TooManyOpenSms(max),
        },
        JobOutcome::Refused(SubmitRefusal::QueueFull { mode, waiting, max }) => {
            let mode = code::of_mode(mode);
            JobOutcomeV1::QueueFull { mode, waiting, max }
        }
        JobOutcome::Refused(SubmitRefusal::DataFull { more, total, max }) => {
            JobOutcomeV1::DataFull {
                more: whole(more),
                total: whole(total),
                max: whole(max),
            }
        }
        JobOutcome::Unserved(unserved) => JobOutcomeV1::Unserved(code::of_unserved(unserved)),
        JobOutcome::RequestOpen(action) => {
            JobOutcomeV1::RequestOpen(ByteArray::from(*action.as_bytes()))
        }
    }
}

/// The outcome of a record.
pub(super) fn read_job_outcome(record: JobOutcomeV1) -> Result<JobOutcome, Unreadable> {
    let whole = |bytes: u64| usize::try_from(bytes).map_err(damaged("a number of bytes"));
    let refusal = match record {
        JobOutcomeV1::Accepted(action) => {
            return Ok(JobOutcome::Accepted(ActionId::from_bytes(action.into())));
        }
        JobOutcomeV1::Unserved(unserved) => {
            return Ok(JobOutcome::Unserved(code::unserved(unserved)?));
        }
        JobOutcomeV1::RequestOpen(action) => {
            return Ok(JobOutcome::RequestOpen(ActionId::from_bytes(action.into())));
        }
        JobOutcomeV1::NoNumber => WakeUpRefusal::NoNumber.into(),
        JobOutcomeV1::NoWakeUpMessage => WakeUpRefusal::NoMessage.into(),
        JobOutcomeV1::WokenTooOften(max) => WakeUpRefusal::TooOften { max }.into(),
        JobOutcomeV1::TooManyOpenSms(max) => WakeUpRefusal::TooManyOpen { max }.into(),
        JobOutcomeV1::NotRegistered => SubmitRefusal::NotRegistered,
        JobOutcomeV1::NoAddress => SubmitRefusal::NoAddress,
        JobOutcomeV1::AddressOwn(address) => {
            SubmitRefusal::AddressForbidden(ForbiddenAddress::Own(address))
        }
        JobOutcomeV1::AddressUnheard(ip) => {
            SubmitRefusal::AddressForbidden(ForbiddenAddress::Unheard(ip))
        }
        JobOutcomeV1::WithoutDtls => SubmitRefusal::AddressForbidden(ForbiddenAddress::WithoutDtls),
        JobOutcomeV1::QueueFull { mode, waiting, max } => SubmitRefusal::QueueFull {
            mode: code::mode(mode)?,
            waiting,
            max,
        },
        JobOutcomeV1::DataFull { more, total, max } => SubmitRefusal::DataFull {
            more: whole(more)?,
            total: whole(total)?,
            max: whole(max)?,
        },
    };
    Ok(JobOutcome::Refused(refusal))
}
