//! Decisions about SMS: those of devices are stored and published part by part, those to devices
//! have a status until it is final.

pub mod submitting;
pub mod waking;

use crate::change::{Batch, Change, Expect};
use crate::directory::Decision;
use crate::event::{DeviceInfo, Event, EventContent};
use crate::ids::{EventId, SmsId};
use crate::limits::{SMS_PARTS_MS, SmsRules};
use crate::moment::{Moment, Timestamp};
use crate::profile::Profile;
use crate::sms::address::AddressType;
use crate::sms::{
    JoinedSms, MultiPartInfo, NetworkTask, PartsKey, ReceivedPart, ReceivedSms, ReportedStatus,
    Sms, SmsEndpoint, SmsPurpose, SmsReport, SmsState, SmsStatus, SmsWay, SubmittedPart,
    SubmittedSms,
};

/// A message of a device that the network hands in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewReceivedSms {
    /// The address of the sender.
    pub source: Box<str>,
    /// The address of the recipient.
    pub dest: Box<str>,
    /// The text; of 8-bit data, its bytes in hexadecimal.
    pub payload: Box<str>,
    /// The data coding scheme.
    pub dcs: u8,
    /// The protocol identifier.
    pub pid: u8,
    /// Which part it is.
    pub part: MultiPartInfo,
}

/// The last SMS with the same parts as a new one.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FoundParts {
    /// Its id.
    pub id: Option<SmsId>,
    /// The SMS, if it is still stored.
    pub sms: Option<Sms>,
}

/// An SMS that a customer sends to a device.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewSms {
    /// The address of the sender.
    pub source: Box<str>,
    /// Its type.
    pub source_type: AddressType,
    /// The text; of 8-bit data, its bytes in hexadecimal.
    pub payload: Box<str>,
    /// The data coding scheme.
    pub dcs: u8,
    /// The user data header of the customer.
    pub udh: Option<Box<[u8]>>,
    /// When its validity is over; by default as the rules say.
    pub expires_at: Option<Timestamp>,
    /// What it is for.
    pub purpose: SmsPurpose,
}

/// Why an SMS is refused or stays as it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SmsRefusal {
    /// Too many SMS to the device wait.
    #[error("at most {max} messages to a device may be without a final status")]
    TooManyOpen {
        /// The most allowed.
        max: u32,
    },
    /// Its status does not allow that it is cancelled.
    #[error("a message can be cancelled while it is PENDING or BUFFERED")]
    NotCancellable,
}

impl NewReceivedSms {
    /// What its further parts have in common with it, if there are several.
    pub fn parts_key(&self, device: &Profile) -> Option<PartsKey> {
        (self.part.total > 1).then_some(PartsKey {
            device_number: device.number,
            total: self.part.total,
            identifier: self.part.identifier,
        })
    }
}

/// Stores a message of a device, joined with its other parts, and publishes it.
pub fn receive(
    m: &mut Moment,
    device: &Profile,
    new: NewReceivedSms,
    found: FoundParts,
) -> Decision<SmsId> {
    let id = SmsId::new(m);
    let parts_key = new.parts_key(device);
    let was = found.sms.filter(|sms| is_joined_by(sms, &new, m.now()));
    let mut expects = vec![
        Expect::Profile(Box::new(device.clone())),
        Expect::SmsIdFree(id),
    ];
    match (&was, parts_key) {
        (Some(was), _) => expects.push(Expect::Sms(Box::new(was.clone()))),
        (None, Some(parts)) => expects.push(Expect::SmsOfParts {
            parts,
            is: found.id,
        }),
        (None, None) => {}
    }
    let part = ReceivedPart {
        number: new.part.number,
        id,
        text: new.payload.clone(),
    };
    let state = was.as_ref().map(Sms::state);
    let sms = match was {
        Some(was) => joined(was, part),
        None => first_of(m.now(), device, &new, part),
    };
    let event = event_of(
        m,
        device,
        EventContent::SmsReceived(Box::new(event_content(m.now(), id, device, new))),
    );
    let put = put(state, sms);
    Decision {
        batch: Batch {
            expects,
            changes: vec![put, Change::AppendEvent(Box::new(event))],
            ..Batch::default()
        },
        answer: id,
    }
}

/// Accepts an SMS to a device that has this many without a final status.
pub fn submit(
    m: &mut Moment,
    device: &Profile,
    new: NewSms,
    open: u32,
    rules: SmsRules,
) -> Result<Decision<Sms>, SmsRefusal> {
    if open >= rules.open_max {
        return Err(SmsRefusal::TooManyOpen {
            max: rules.open_max,
        });
    }
    let expires_at = new.expires_at.unwrap_or(m.now().plus_ms(rules.validity_ms));
    let sms = submitted((SmsId::new(m), m.now()), device, new, expires_at);
    let expects = vec![
        Expect::Profile(Box::new(device.clone())),
        Expect::SmsIdFree(sms.id),
    ];
    Ok(Decision {
        batch: Batch {
            expects,
            changes: vec![put(None, sms.clone())],
            ..Batch::default()
        },
        answer: sms,
    })
}

/// An SMS to a device that is accepted under an id.
fn submitted(
    (id, now): (SmsId, Timestamp),
    device: &Profile,
    new: NewSms,
    expires_at: Timestamp,
) -> Sms {
    let submitted = SubmittedSms {
        payload: new.payload,
        source_type: new.source_type,
        udh: new.udh,
        expires_at,
        status: SmsStatus::Pending,
        task: Some(NetworkTask::Send),
        taken_at: None,
        buffered_at: None,
        final_at: None,
        reason: None,
        parts: Vec::new(),
        purpose: new.purpose,
    };
    Sms {
        id,
        customer: device.customer.clone(),
        device: device.key(),
        device_number: device.number,
        iccid: device.iccid.clone(),
        source: new.source,
        dest: device.msisdn.as_ref().map(|it| it.as_str().into()),
        dcs: new.dcs,
        pid: 0,
        submitted_at: now,
        way: SmsWay::ToDevice(Box::new(submitted)),
    }
}

/// Hands SMS to the network: once this is durable they are never handed to it again. Those whose
/// validity is over, or for which the network has nothing to do, are left out.
pub fn take(now: Timestamp, waiting: Vec<Sms>) -> Decision<Vec<(NetworkTask, Sms)>> {
    let mut batch = Batch::default();
    let mut taken = Vec::new();
    for was in waiting {
        let SmsWay::ToDevice(submitted) = &was.way else {
            continue;
        };
        let mut submitted = submitted.clone();
        let Some(task) = submitted.task.take() else {
            continue;
        };
        match task {
            NetworkTask::Send if submitted.expires_at <= now => continue,
            NetworkTask::Send => {
                submitted.status = SmsStatus::InProgress;
                submitted.taken_at = Some(now);
            }
            NetworkTask::Withdraw => {}
        }
        let sms = Sms {
            way: SmsWay::ToDevice(submitted),
            ..was.clone()
        };
        batch.changes.push(put(Some(was.state()), sms.clone()));
        batch.expects.push(Expect::Sms(Box::new(was)));
        taken.push((task, sms));
    }
    Decision {
        batch,
        answer: taken,
    }
}

/// Applies a report of the network. One that comes too late, or says nothing new, changes nothing.
pub fn report(
    m: &mut Moment,
    device: &Profile,
    was: Sms,
    reported: ReportedStatus,
) -> Decision<()> {
    let status = reported.into();
    let is_news = was.submitted().is_some_and(|submitted| {
        let is_known = submitted.status == status;
        !submitted.status.is_final() && !is_known
    });
    match is_news {
        true => settled(m, device, was, Settlement::reported(status)),
        false => unchanged(),
    }
}

/// Cancels an SMS that the network does not send at this moment.
pub fn cancel(m: &mut Moment, device: &Profile, was: Sms) -> Result<Decision<()>, SmsRefusal> {
    let status = was.submitted().map(|submitted| submitted.status);
    let task = match status {
        Some(SmsStatus::Pending) => None,
        Some(SmsStatus::Buffered) => Some(NetworkTask::Withdraw),
        Some(
            SmsStatus::InProgress
            | SmsStatus::Delivered
            | SmsStatus::Failed
            | SmsStatus::Expired
            | SmsStatus::Canceled,
        )
        | None => return Err(SmsRefusal::NotCancellable),
    };
    let settlement = Settlement {
        task,
        ..Settlement::reported(SmsStatus::Canceled)
    };
    Ok(settled(m, device, was, settlement))
}

/// Settles an SMS whose validity is over. What became of one that the network took is unknown.
pub fn lapse(m: &mut Moment, device: &Profile, was: Sms) -> Decision<()> {
    let Some(due_at) = was.state().due_at else {
        return unchanged();
    };
    let status = was.submitted().map(|submitted| submitted.status);
    let settlement = match status {
        _ if due_at > m.now() => return unchanged(),
        Some(SmsStatus::Pending) => Settlement::reported(SmsStatus::Expired),
        Some(SmsStatus::InProgress | SmsStatus::Buffered) => Settlement {
            reason: Some("outcome unknown".into()),
            ..Settlement::reported(SmsStatus::Failed)
        },
        Some(
            SmsStatus::Delivered | SmsStatus::Failed | SmsStatus::Expired | SmsStatus::Canceled,
        )
        | None => return unchanged(),
    };
    settled(m, device, was, settlement)
}

/// What a status changes to.
struct Settlement {
    status: SmsStatus,
    task: Option<NetworkTask>,
    reason: Option<Box<str>>,
    /// What is known of the parts, if it changes.
    parts: Option<Vec<SubmittedPart>>,
}

impl Settlement {
    fn reported(status: SmsStatus) -> Self {
        Self {
            status,
            task: None,
            reason: None,
            parts: None,
        }
    }
}

/// Changes the status of an SMS, and publishes it if it is final.
fn settled(m: &mut Moment, device: &Profile, was: Sms, to: Settlement) -> Decision<()> {
    let SmsWay::ToDevice(submitted) = &was.way else {
        return unchanged();
    };
    let mut submitted = submitted.clone();
    submitted.status = to.status;
    submitted.task = to.task;
    submitted.reason = to.reason;
    if let Some(parts) = to.parts {
        submitted.parts = parts;
    }
    let mut events = Vec::new();
    if to.status.is_final() {
        submitted.final_at = Some(m.now());
        let report = SmsReport {
            id: was.id,
            submitted_at: was.submitted_at,
            final_at: m.now(),
            status: to.status,
            endpoint: SmsEndpoint::of(device),
        };
        let event = event_of(m, device, EventContent::SmsReport(Box::new(report)));
        events.push(Change::AppendEvent(Box::new(event)));
    } else if to.status == SmsStatus::Buffered {
        submitted.buffered_at = Some(m.now());
    }
    let sms = Sms {
        way: SmsWay::ToDevice(submitted),
        ..was.clone()
    };
    let mut changes = vec![put(Some(was.state()), sms)];
    changes.extend(events);
    Decision {
        batch: Batch {
            expects: vec![
                Expect::Profile(Box::new(device.clone())),
                Expect::Sms(Box::new(was)),
            ],
            changes,
            ..Batch::default()
        },
        answer: (),
    }
}

fn unchanged() -> Decision<()> {
    Decision {
        batch: Batch::default(),
        answer: (),
    }
}

/// Whether a message is the missing part of an SMS.
fn is_joined_by(sms: &Sms, new: &NewReceivedSms, now: Timestamp) -> bool {
    let SmsWay::FromDevice(joined) = &sms.way else {
        return false;
    };
    let is_there = joined
        .parts
        .iter()
        .any(|part| part.number == new.part.number);
    let has_same_ends = sms.source == new.source && sms.dest.as_ref() == Some(&new.dest);
    !is_there && has_same_ends && now.since_ms(sms.submitted_at) < SMS_PARTS_MS
}

fn joined(was: Sms, part: ReceivedPart) -> Sms {
    let way = match was.way {
        SmsWay::FromDevice(mut joined) => {
            let behind = joined.parts.partition_point(|it| it.number < part.number);
            joined.parts.insert(behind, part);
            SmsWay::FromDevice(joined)
        }
        way @ SmsWay::ToDevice(_) => way,
    };
    Sms { way, ..was }
}

fn first_of(now: Timestamp, device: &Profile, new: &NewReceivedSms, part: ReceivedPart) -> Sms {
    Sms {
        id: part.id,
        customer: device.customer.clone(),
        device: device.key(),
        device_number: device.number,
        iccid: device.iccid.clone(),
        source: new.source.clone(),
        dest: Some(new.dest.clone()),
        dcs: new.dcs,
        pid: new.pid,
        submitted_at: now,
        way: SmsWay::FromDevice(JoinedSms {
            total: new.part.total,
            identifier: new.part.identifier,
            parts: vec![part],
        }),
    }
}

fn event_content(now: Timestamp, id: SmsId, device: &Profile, new: NewReceivedSms) -> ReceivedSms {
    ReceivedSms {
        id,
        payload: new.payload,
        submitted_at: now,
        dest: new.dest,
        source: new.source,
        dcs: new.dcs,
        pid: new.pid,
        part: new.part,
        endpoint: SmsEndpoint::of(device),
    }
}

fn event_of(m: &mut Moment, device: &Profile, content: EventContent) -> Event {
    Event {
        id: EventId::new(m.uuid()),
        customer: device.customer.clone(),
        device: device.key(),
        device_info: DeviceInfo {
            device: device.device.clone(),
            iccid: device.iccid.clone(),
            imsi: device.imsi.clone(),
            ip: device.ip,
        },
        at: m.now(),
        content,
    }
}

fn put(was: Option<SmsState>, sms: Sms) -> Change {
    Change::PutSms {
        was,
        sms: Box::new(sms),
    }
}

#[cfg(test)]
mod tests;
