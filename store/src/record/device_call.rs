//! How are a command to a device and its reply encoded for another node of the cluster?
//!
//! Neither is stored: both nodes have about the same version. Two fields are left out and read as
//! None. The number of the address that a peer sent to is valid at one node alone. The newest
//! notification of an observation is for the machine of the device alone.

use std::num::NonZeroU32;

use engine::action::NewAction;
use engine::arbiter::input::{DeviceCommand, DeviceReply};
use engine::device::queue::{Accepted, Cancelled};
use engine::device::record::{DeviceRecord, ProtocolsSeen};
use engine::device::refusal::SubmitRefusal;
use engine::device::snapshot::{CurrentExchange, PendingAction, Snapshot};
use engine::directory::sms::waking::{WakeUpFacts, WakingAction};
use engine::firmware::campaign::NewUpdate;
use engine::idempotency::{CallFingerprint, IdempotencyKey, IdempotentCall};
use engine::ids::{ActionId, CampaignId};
use engine::job::JobOutcome;
use engine::moment::Timestamp;
use engine::peer::{AssociationId, Peer};
use engine::supervision::Unserved;
use minicbor::bytes::{ByteArray, ByteVec};
use minicbor::{Decode, Encode};

use super::action::{read_action, write_action};
use super::bootstrap::{read_bootstrap, write_bootstrap};
use super::device::{read_device, row_of};
use super::firmware::{
    FirmwareUpdateV1, read_campaign_device, read_update, update_record, write_campaign_device,
};
use super::job::{
    JobOutcomeV1, JobRequestV1, job_outcome_record, job_request_record, new_action_of,
    read_job_outcome,
};
use super::profile::{read_profile, write_profile};
use super::sms::{read_sms, sms_id, write_sms};
use super::value::{path_record, read_path};
use super::wake_up::{WakeUpMessageV1, read_wake_up, wake_up_record};
use super::{Unreadable, code, read, write};

const VERSION: u8 = 1;

#[derive(Decode, Encode)]
enum DeviceCommandV1<'a> {
    #[n(0)]
    #[cbor(array)]
    Submit(#[b(0)] NewActionV1<'a>),
    #[n(1)]
    #[cbor(array)]
    SubmitWaking(#[b(0)] WakingActionV1<'a>),
    #[n(2)]
    #[cbor(array)]
    Cancel(#[n(0)] ByteArray<16>),
    #[n(3)]
    CancelAll,
    #[n(4)]
    #[cbor(array)]
    BeginUpdate {
        #[b(0)]
        update: FirmwareUpdateV1<'a>,
        #[n(1)]
        row: ByteVec,
    },
    #[n(5)]
    #[cbor(array)]
    EndUpdate {
        #[n(0)]
        campaign: ByteArray<16>,
        #[n(1)]
        end: u8,
    },
    #[n(6)]
    Retire,
    #[n(7)]
    Inspect,
    #[n(8)]
    ReadProfile,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct NewActionV1<'a> {
    #[b(0)]
    request: JobRequestV1<'a>,
    /// The idempotency key and the fingerprint of the call.
    #[n(1)]
    idempotent_call: Option<(ByteArray<16>, ByteArray<16>)>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct WakingActionV1<'a> {
    #[b(0)]
    new: NewActionV1<'a>,
    #[n(1)]
    device: ByteVec,
    #[b(2)]
    of_customer: Option<WakeUpMessageV1<'a>>,
    #[n(3)]
    newest: Vec<ByteVec>,
    #[n(4)]
    open: u32,
    #[n(5)]
    sms: u64,
}

#[derive(Decode, Encode)]
enum DeviceReplyV1 {
    #[n(0)]
    #[cbor(array)]
    Accepted {
        #[n(0)]
        id: ByteArray<16>,
        #[n(1)]
        status: u8,
    },
    #[n(1)]
    #[cbor(array)]
    Refused(#[n(0)] JobOutcomeV1),
    #[n(2)]
    #[cbor(array)]
    Cancelled(#[n(0)] ByteArray<16>),
    #[n(3)]
    #[cbor(array)]
    NotCancelled(#[n(0)] u8),
    #[n(4)]
    #[cbor(array)]
    CancelledAll(#[n(0)] Vec<ByteArray<16>>),
    #[n(5)]
    UpdateTaken,
    #[n(6)]
    Retired,
    #[n(7)]
    #[cbor(array)]
    Inspected(#[n(0)] SnapshotV1),
    #[n(8)]
    ProfileRead,
    #[n(9)]
    #[cbor(array)]
    Unserved(#[n(0)] u8),
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct SnapshotV1 {
    /// What a device record has of it, as such a record.
    #[n(0)]
    record: ByteVec,
    /// The security association of the peer, which a device record does not have.
    #[n(1)]
    association: Option<NonZeroU32>,
    #[n(2)]
    presence: u8,
    #[n(3)]
    pending: Vec<PendingActionV1>,
    #[n(4)]
    exchange: Option<ExchangeV1>,
    #[n(5)]
    bootstrap: Option<ByteVec>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct PendingActionV1 {
    #[n(0)]
    action: ByteVec,
    #[n(1)]
    waits_for: Option<u8>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct ExchangeV1 {
    #[n(0)]
    purpose: u8,
    #[n(1)]
    action: Option<ByteArray<16>>,
    #[n(2)]
    path: Option<ByteVec>,
    #[n(3)]
    begun_at_ms: i64,
}

/// A command to a device as bytes, for another node.
pub fn device_command_to_bytes(command: &DeviceCommand) -> Vec<u8> {
    write(VERSION, &command_record(command))
}

/// The command of such bytes; none, if they are not of a node of this version.
pub fn device_command_of_bytes(bytes: &[u8]) -> Option<DeviceCommand> {
    read_command(read(VERSION, bytes).ok()?).ok()
}

/// The reply to a command, or why there is none, as bytes for another node.
pub fn device_reply_to_bytes(reply: &Result<DeviceReply, Unserved>) -> Vec<u8> {
    write(VERSION, &reply_record(reply))
}

/// The reply of such bytes; none, if they are not of a node of this version.
pub fn device_reply_of_bytes(bytes: &[u8]) -> Option<Result<DeviceReply, Unserved>> {
    read_reply(read(VERSION, bytes).ok()?).ok()
}

fn command_record(command: &DeviceCommand) -> DeviceCommandV1<'_> {
    match command {
        DeviceCommand::Submit(new) => DeviceCommandV1::Submit(new_action_record(new)),
        DeviceCommand::SubmitWaking(waking) => DeviceCommandV1::SubmitWaking(waking_record(waking)),
        DeviceCommand::Cancel(action) => {
            DeviceCommandV1::Cancel(ByteArray::from(*action.as_bytes()))
        }
        DeviceCommand::CancelAll => DeviceCommandV1::CancelAll,
        DeviceCommand::BeginUpdate(new) => DeviceCommandV1::BeginUpdate {
            update: update_record(&new.update),
            row: ByteVec::from(write_campaign_device(&new.row)),
        },
        DeviceCommand::EndUpdate(campaign, end) => DeviceCommandV1::EndUpdate {
            campaign: ByteArray::from(*campaign.as_bytes()),
            end: code::of_update_end(*end),
        },
        DeviceCommand::Retire => DeviceCommandV1::Retire,
        DeviceCommand::Inspect => DeviceCommandV1::Inspect,
        DeviceCommand::ReadProfile => DeviceCommandV1::ReadProfile,
    }
}

fn read_command(record: DeviceCommandV1<'_>) -> Result<DeviceCommand, Unreadable> {
    Ok(match record {
        DeviceCommandV1::Submit(new) => DeviceCommand::Submit(read_new_action(new)?),
        DeviceCommandV1::SubmitWaking(waking) => {
            DeviceCommand::SubmitWaking(Box::new(read_waking(waking)?))
        }
        DeviceCommandV1::Cancel(action) => {
            DeviceCommand::Cancel(ActionId::from_bytes(action.into()))
        }
        DeviceCommandV1::CancelAll => DeviceCommand::CancelAll,
        DeviceCommandV1::BeginUpdate { update, row } => {
            DeviceCommand::BeginUpdate(Box::new(NewUpdate {
                update: read_update(&update)?,
                row: read_campaign_device(&row)?,
            }))
        }
        DeviceCommandV1::EndUpdate { campaign, end } => {
            let campaign = CampaignId::from_bytes(campaign.into());
            DeviceCommand::EndUpdate(campaign, code::update_end(end)?)
        }
        DeviceCommandV1::Retire => DeviceCommand::Retire,
        DeviceCommandV1::Inspect => DeviceCommand::Inspect,
        DeviceCommandV1::ReadProfile => DeviceCommand::ReadProfile,
    })
}

fn new_action_record(new: &NewAction) -> NewActionV1<'_> {
    let call = new.idempotent_call.map(|call| {
        let key = ByteArray::from(*call.key.as_bytes());
        (key, ByteArray::from(*call.fingerprint.as_bytes()))
    });
    NewActionV1 {
        request: job_request_record(new),
        idempotent_call: call,
    }
}

fn read_new_action(record: NewActionV1<'_>) -> Result<NewAction, Unreadable> {
    let call = |(key, fingerprint): (ByteArray<16>, ByteArray<16>)| IdempotentCall {
        key: IdempotencyKey::from_bytes(key.into()),
        fingerprint: CallFingerprint::from_bytes(fingerprint.into()),
    };
    Ok(NewAction {
        idempotent_call: record.idempotent_call.map(call),
        ..new_action_of(record.request)?
    })
}

fn waking_record(waking: &WakingAction) -> WakingActionV1<'_> {
    let facts = &waking.facts;
    let newest = facts.newest.iter().map(|sms| ByteVec::from(write_sms(sms)));
    WakingActionV1 {
        new: new_action_record(&waking.new),
        device: ByteVec::from(write_profile(&facts.device)),
        of_customer: facts.of_customer.as_ref().map(wake_up_record),
        newest: newest.collect(),
        open: facts.open,
        sms: waking.sms.number(),
    }
}

fn read_waking(record: WakingActionV1<'_>) -> Result<WakingAction, Unreadable> {
    let newest = record.newest.iter().map(|sms| read_sms(sms));
    let facts = WakeUpFacts {
        device: read_profile(&record.device)?,
        newest: newest.collect::<Result<_, _>>()?,
        of_customer: record.of_customer.map(read_wake_up).transpose()?,
        open: record.open,
    };
    Ok(WakingAction {
        new: read_new_action(record.new)?,
        facts,
        sms: sms_id(record.sms)?,
    })
}

fn reply_record(reply: &Result<DeviceReply, Unserved>) -> DeviceReplyV1 {
    match reply {
        Ok(DeviceReply::Submitted(Ok(accepted))) => DeviceReplyV1::Accepted {
            id: ByteArray::from(*accepted.id.as_bytes()),
            status: code::of_status(accepted.status),
        },
        Ok(DeviceReply::Submitted(Err(why))) => {
            DeviceReplyV1::Refused(job_outcome_record(JobOutcome::Refused(*why)))
        }
        Ok(DeviceReply::Cancelled(Ok(cancelled))) => {
            DeviceReplyV1::Cancelled(cancelled_record(cancelled))
        }
        Ok(DeviceReply::Cancelled(Err(why))) => {
            DeviceReplyV1::NotCancelled(code::of_cancel_refusal(*why))
        }
        Ok(DeviceReply::CancelledAll(all)) => {
            DeviceReplyV1::CancelledAll(all.iter().map(cancelled_record).collect())
        }
        Ok(DeviceReply::UpdateTaken) => DeviceReplyV1::UpdateTaken,
        Ok(DeviceReply::Retired) => DeviceReplyV1::Retired,
        Ok(DeviceReply::Inspected(snapshot)) => DeviceReplyV1::Inspected(snapshot_record(snapshot)),
        Ok(DeviceReply::ProfileRead) => DeviceReplyV1::ProfileRead,
        Err(why) => DeviceReplyV1::Unserved(code::of_unserved(*why)),
    }
}

fn read_reply(record: DeviceReplyV1) -> Result<Result<DeviceReply, Unserved>, Unreadable> {
    Ok(Ok(match record {
        DeviceReplyV1::Accepted { id, status } => DeviceReply::Submitted(Ok(Accepted {
            id: ActionId::from_bytes(id.into()),
            status: code::status(status)?,
        })),
        DeviceReplyV1::Refused(why) => DeviceReply::Submitted(Err(read_refusal(why)?)),
        DeviceReplyV1::Cancelled(id) => DeviceReply::Cancelled(Ok(read_cancelled(id))),
        DeviceReplyV1::NotCancelled(why) => DeviceReply::Cancelled(Err(code::cancel_refusal(why)?)),
        DeviceReplyV1::CancelledAll(ids) => {
            DeviceReply::CancelledAll(ids.into_iter().map(read_cancelled).collect())
        }
        DeviceReplyV1::UpdateTaken => DeviceReply::UpdateTaken,
        DeviceReplyV1::Retired => DeviceReply::Retired,
        DeviceReplyV1::Inspected(snapshot) => {
            DeviceReply::Inspected(Box::new(read_snapshot(snapshot)?))
        }
        DeviceReplyV1::ProfileRead => DeviceReply::ProfileRead,
        DeviceReplyV1::Unserved(why) => return Ok(Err(code::unserved(why)?)),
    }))
}

fn read_refusal(record: JobOutcomeV1) -> Result<SubmitRefusal, Unreadable> {
    match read_job_outcome(record)? {
        JobOutcome::Refused(why) => Ok(why),
        JobOutcome::Accepted(_) | JobOutcome::Unserved(_) | JobOutcome::RequestOpen(_) => {
            Err(Unreadable::Damaged("no refusal"))
        }
    }
}

fn cancelled_record(cancelled: &Cancelled) -> ByteArray<16> {
    ByteArray::from(*cancelled.id.as_bytes())
}

fn read_cancelled(id: ByteArray<16>) -> Cancelled {
    Cancelled {
        id: ActionId::from_bytes(id.into()),
    }
}

fn snapshot_record(snapshot: &Snapshot) -> SnapshotV1 {
    let protocol = snapshot.protocols_seen;
    let record = DeviceRecord {
        first_contact_at: snapshot.first_contact_at,
        last_seen_at: snapshot.last_seen_at,
        peer: snapshot.peer,
        registration: snapshot.registration.clone(),
        observations: snapshot.observations.clone().into(),
        protocols_seen: ProtocolsSeen::restored(protocol, protocol),
        connectivity: snapshot.connectivity,
        ..DeviceRecord::default()
    };
    let association = snapshot.peer.and_then(|peer| peer.association);
    let bootstrap = snapshot.bootstrap.as_ref();
    SnapshotV1 {
        record: ByteVec::from(row_of(&record)),
        association: association.map(AssociationId::number),
        presence: code::of_presence(snapshot.presence),
        pending: snapshot.pending.iter().map(pending_record).collect(),
        exchange: snapshot.exchange.as_ref().map(exchange_record),
        bootstrap: bootstrap.map(|it| ByteVec::from(write_bootstrap(it))),
    }
}

fn read_snapshot(snapshot: SnapshotV1) -> Result<Snapshot, Unreadable> {
    let record = read_device(&snapshot.record)?;
    let association = snapshot.association.map(AssociationId::from_number);
    let peer = |peer: Peer| association.map_or(peer, |association| peer.over(association));
    let pending = snapshot.pending.into_iter().map(read_pending);
    let bootstrap = snapshot.bootstrap.map(|it| read_bootstrap(&it));
    Ok(Snapshot {
        first_contact_at: record.first_contact_at,
        last_seen_at: record.last_seen_at,
        peer: record.peer.map(peer),
        protocols_seen: record.protocols_seen.last(),
        presence: code::presence(snapshot.presence)?,
        connectivity: record.connectivity,
        registration: record.registration,
        pending: pending.collect::<Result<_, _>>()?,
        exchange: snapshot.exchange.map(read_exchange).transpose()?,
        observations: record.observations.into_vec(),
        bootstrap: bootstrap.transpose()?,
    })
}

fn pending_record(pending: &PendingAction) -> PendingActionV1 {
    PendingActionV1 {
        action: ByteVec::from(write_action(&pending.action)),
        waits_for: pending.waits_for.map(code::of_wait_reason),
    }
}

fn read_pending(record: PendingActionV1) -> Result<PendingAction, Unreadable> {
    Ok(PendingAction {
        action: read_action(&record.action)?,
        waits_for: record.waits_for.map(code::wait_reason).transpose()?,
    })
}

fn exchange_record(exchange: &CurrentExchange) -> ExchangeV1 {
    ExchangeV1 {
        purpose: code::of_wait_reason(exchange.purpose),
        action: exchange.action.map(|id| ByteArray::from(*id.as_bytes())),
        path: exchange.path.map(path_record),
        begun_at_ms: exchange.begun_at.as_ms(),
    }
}

fn read_exchange(record: ExchangeV1) -> Result<CurrentExchange, Unreadable> {
    let path = record.path.map(|path| read_path(&path));
    Ok(CurrentExchange {
        purpose: code::wait_reason(record.purpose)?,
        action: record.action.map(|id| ActionId::from_bytes(id.into())),
        path: path.transpose()?,
        begun_at: Timestamp::from_ms(record.begun_at_ms),
    })
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use engine::Path;
    use engine::action::Status;
    use engine::action::timeline::WaitReason;
    use engine::bootstrap::BootstrapState;
    use engine::device::queue::CancelRefusal;
    use engine::device::record::Connectivity;
    use engine::device::snapshot::Presence;
    use engine::device::update::UpdateEnd;
    use engine::firmware::campaign::CampaignDevice;
    use engine::firmware::update::UpdateState;
    use engine::ids::SmsId;
    use engine::peer::LocalAddressId;
    use engine::sms::SmsStatus;
    use engine::sms::address::AddressType;
    use engine::wake_up::{WakeUpContent, WakeUpMessage};

    use super::*;
    use crate::conformance::bootstrap::bootstrap;
    use crate::conformance::idempotency::once;
    use crate::conformance::jobs::refusals;
    use crate::conformance::samples::{
        acme, action, at, device, moved, new_action, record, requests,
    };
    use crate::conformance::sms::waking;
    use crate::record::tests::changes;

    #[test]
    fn a_command_is_read_as_it_was_written() {
        for command in commands() {
            let read = device_command_of_bytes(&device_command_to_bytes(&command));
            assert_eq!(format!("{read:?}"), format!("{:?}", Some(command)));
        }
    }

    #[test]
    fn a_reply_is_read_as_it_was_written() {
        for reply in replies() {
            let read = device_reply_of_bytes(&device_reply_to_bytes(&reply));
            assert_eq!(format!("{read:?}"), format!("{:?}", Some(reply)));
        }
    }

    #[test]
    fn the_address_that_a_peer_sent_to_is_left_out() {
        let local = Some(LocalAddressId(NonZeroU16::MIN));
        let sent = Snapshot {
            peer: snapshot().peer.map(|peer| peer.sent_to(local)),
            ..snapshot()
        };
        let read = device_reply_of_bytes(&device_reply_to_bytes(&inspected(sent)));
        let expected = Some(inspected(snapshot()));
        assert_eq!(format!("{read:?}"), format!("{expected:?}"));
    }

    #[test]
    fn bytes_that_are_cut_off_are_neither_a_command_nor_a_reply() {
        for command in commands() {
            let bytes = device_command_to_bytes(&command);
            for end in 0..bytes.len() {
                let read = device_command_of_bytes(&bytes[..end]);
                assert!(read.is_none(), "{end} bytes of {command:?}");
            }
        }
        for reply in replies() {
            let bytes = device_reply_to_bytes(&reply);
            for end in 0..bytes.len() {
                let read = device_reply_of_bytes(&bytes[..end]);
                assert!(read.is_none(), "{end} bytes of {reply:?}");
            }
        }
    }

    #[test]
    fn changed_bytes_never_panic() {
        let waking = DeviceCommand::SubmitWaking(Box::new(waking_action()));
        for changed in changes(&device_command_to_bytes(&waking)) {
            let _ = device_command_of_bytes(&changed);
        }
        for changed in changes(&device_reply_to_bytes(&inspected(snapshot()))) {
            let _ = device_reply_of_bytes(&changed);
        }
    }

    #[test]
    fn an_outcome_of_a_job_that_is_no_refusal_is_no_reply() {
        let outcome = job_outcome_record(JobOutcome::Unserved(Unserved::Busy));
        let bytes = write(VERSION, &DeviceReplyV1::Refused(outcome));
        assert!(device_reply_of_bytes(&bytes).is_none());
    }

    /// Every command.
    fn commands() -> Vec<DeviceCommand> {
        let campaign = CampaignId::from_bytes([5; 16]);
        let mut commands = vec![
            DeviceCommand::SubmitWaking(Box::new(waking_action())),
            DeviceCommand::Cancel(id(1)),
            DeviceCommand::CancelAll,
            DeviceCommand::EndUpdate(campaign, UpdateEnd::Cancelled),
            DeviceCommand::EndUpdate(campaign, UpdateEnd::TimeOver),
            DeviceCommand::Retire,
            DeviceCommand::Inspect,
            DeviceCommand::ReadProfile,
        ];
        commands.extend(requests().map(|request| {
            DeviceCommand::Submit(NewAction {
                request,
                ..new_action()
            })
        }));
        commands.extend([0, 2].map(|second| {
            let update = record(second, "</5/0>").update;
            DeviceCommand::BeginUpdate(Box::new(NewUpdate {
                update: *update.expect("a campaign updates it"),
                row: CampaignDevice {
                    device: device(&acme(), 1).device,
                    state: UpdateState::Transferring,
                    bytes: 7,
                    reason: Some("it sleeps".into()),
                    updated_at: at(second),
                },
            }))
        }));
        commands
    }

    fn waking_action() -> WakingAction {
        let meter = device(&acme(), 1);
        let newest = [(20, SmsStatus::Pending), (10, SmsStatus::Failed)];
        WakingAction {
            new: NewAction {
                idempotent_call: Some(once("a-key")),
                ..new_action()
            },
            facts: WakeUpFacts {
                of_customer: Some(WakeUpMessage {
                    source: "1234".into(),
                    source_type: AddressType::National,
                    content: WakeUpContent::Data([0, 0xff].into()),
                }),
                newest: newest
                    .map(|(second, status)| waking(&meter, second, status))
                    .into(),
                open: 1,
                device: meter,
            },
            sms: SmsId::first_at(at(30)),
        }
    }

    /// Every reply.
    fn replies() -> Vec<Result<DeviceReply, Unserved>> {
        let mut replies = vec![
            DeviceReply::Submitted(Ok(Accepted {
                id: id(1),
                status: Status::Scheduled,
            })),
            DeviceReply::Cancelled(Ok(Cancelled { id: id(1) })),
            DeviceReply::Cancelled(Err(CancelRefusal::NotPending)),
            DeviceReply::Cancelled(Err(CancelRefusal::NotScheduled)),
            DeviceReply::CancelledAll(Vec::new()),
            DeviceReply::CancelledAll([1, 2].map(|byte| Cancelled { id: id(byte) }).into()),
            DeviceReply::UpdateTaken,
            DeviceReply::Retired,
            DeviceReply::Inspected(Box::new(snapshot())),
            DeviceReply::Inspected(Box::new(snapshot_of_silent())),
            DeviceReply::ProfileRead,
        ];
        replies.extend(refusals().map(|why| DeviceReply::Submitted(Err(why))));
        let unserved = [Unserved::Unknown, Unserved::Busy, Unserved::Failed].map(Err);
        replies.into_iter().map(Ok).chain(unserved).collect()
    }

    fn inspected(snapshot: Snapshot) -> Result<DeviceReply, Unserved> {
        Ok(DeviceReply::Inspected(Box::new(snapshot)))
    }

    /// The state of a device that has everything.
    fn snapshot() -> Snapshot {
        let meter = device(&acme(), 1);
        let [record, other] = [2, 1].map(|second| record(second, "</1/0>,</3303/0>"));
        let observations = record.observations.iter().chain(other.observations.iter());
        let peer = Peer::secured(([192, 0, 2, 7], 5_684).into());
        let waiting = action(&meter, 3, 1);
        let in_flight = moved(&waiting, Status::InProgress);
        Snapshot {
            first_contact_at: record.first_contact_at,
            last_seen_at: Some(at(5)),
            peer: Some(peer.of_device(meter.key())),
            protocols_seen: record.protocols_seen.last(),
            presence: Presence::Asleep,
            connectivity: Connectivity::Offline,
            registration: record.registration.clone(),
            exchange: Some(CurrentExchange {
                purpose: WaitReason::Request,
                action: Some(in_flight.id),
                path: Some(Path::resource(3303, 0, 5700)),
                begun_at: at(4),
            }),
            pending: vec![
                PendingAction {
                    action: in_flight,
                    waits_for: None,
                },
                PendingAction {
                    action: waiting,
                    waits_for: Some(WaitReason::Asleep),
                },
            ],
            observations: observations.cloned().collect(),
            bootstrap: Some(bootstrap(BootstrapState::Running)),
        }
    }

    /// The state of a device that was never heard.
    fn snapshot_of_silent() -> Snapshot {
        Snapshot {
            first_contact_at: None,
            last_seen_at: None,
            peer: None,
            protocols_seen: None,
            presence: Presence::Unregistered,
            connectivity: Connectivity::Unknown,
            registration: None,
            pending: Vec::new(),
            exchange: None,
            observations: Vec::new(),
            bootstrap: None,
        }
    }

    fn id(byte: u8) -> ActionId {
        ActionId::from_bytes([byte; 16])
    }
}
