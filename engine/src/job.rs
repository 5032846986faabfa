//! What is a job? One request for many devices, created device by device in the background.
//!
//! ```text
//!             every device was asked
//!  RUNNING ---------------------------> DONE
//!     |
//!     '--DELETE--> CANCELLED: the other devices are not asked
//! ```
//!
//! Its devices are fixed when it is created, in parts of equal size. A part is through when each of
//! its devices has an outcome; the outcomes and the counts of the job are then saved in one batch.
//! The requests of a part are created under an idempotency key of its own, so that after a crash
//! the records under that key say which of its devices have theirs.

pub mod runner;

use crate::action::NewAction;
use crate::device::refusal::SubmitRefusal;
use crate::idempotency::{CallFingerprint, IdempotencyKey, IdempotentCall};
use crate::ids::{ActionId, CustomerId, DeviceId, DeviceKey, JobId, ScheduleId};
use crate::limits::JOB_PART_DEVICES;
use crate::moment::{Moment, Timestamp};
use crate::supervision::Unserved;

/// A job, without its devices and its request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Job {
    /// Its id; ids sort by creation time.
    pub id: JobId,
    /// The customer that owns it.
    pub customer: CustomerId,
    /// The schedule that created it, if none of the customer's calls did.
    pub schedule: Option<ScheduleId>,
    /// Its state.
    pub state: JobState,
    /// When it was created.
    pub created_at: Timestamp,
    /// How many devices it has.
    pub matched: u32,
    /// How many of them have a request.
    pub accepted: u32,
    /// How many of them have none, for a reason.
    pub rejected: u32,
    /// How many of its parts are through.
    pub parts_done: u32,
}

/// The state of a job.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum JobState {
    /// Devices are still to be asked.
    Running,
    /// Every device was asked.
    Done,
    /// The caller cancelled it before every device was asked.
    Cancelled,
}

/// A device of a job.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JobDevice {
    /// The device.
    pub device: DeviceId,
    /// What became of its request; nothing if it was not asked, or its part is not through.
    pub outcome: Option<JobOutcome>,
}

/// What became of the request of a job for one device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum JobOutcome {
    /// It was created.
    Accepted(ActionId),
    /// The device refused it.
    Refused(SubmitRefusal),
    /// The device gave no answer: it does not exist any more, or it kept failing.
    Unserved(Unserved),
    /// The device was not asked: this request of an earlier run of the schedule was not final.
    RequestOpen(ActionId),
}

/// What a caller is shown of a device of a job.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum JobDeviceStatus {
    /// It was not asked yet, or its outcome is not stored yet.
    Pending,
    /// It has a request.
    Accepted,
    /// It has none, for a reason.
    Rejected,
    /// It was not asked because the job was cancelled.
    Cancelled,
}

impl Job {
    /// A new job for so many devices. Without devices there is nothing left to do.
    pub fn new(m: &mut Moment, customer: CustomerId, matched: u32) -> Self {
        Self {
            id: JobId::new(m.uuid()),
            customer,
            schedule: None,
            state: match matched {
                0 => JobState::Done,
                _ => JobState::Running,
            },
            created_at: m.now(),
            matched,
            accepted: 0,
            rejected: 0,
            parts_done: 0,
        }
    }

    /// How many parts it has.
    pub fn parts(&self) -> u32 {
        self.matched.div_ceil(JOB_PART_DEVICES)
    }

    /// The call by which a part of it creates requests.
    pub fn call(&self, part: u32) -> IdempotentCall {
        IdempotentCall {
            key: IdempotencyKey::of_job(self.id, part),
            fingerprint: CallFingerprint::of(&[self.id.as_bytes()]),
        }
    }

    /// Counts the outcomes of a part.
    fn count(&mut self, devices: &[JobDevice]) {
        for device in devices {
            match device.outcome {
                Some(JobOutcome::Accepted(_)) => self.accepted += 1,
                Some(JobOutcome::Refused(_) | JobOutcome::Unserved(_)) => self.rejected += 1,
                // An open request was counted when the job was created.
                Some(JobOutcome::RequestOpen(_)) | None => {}
            }
        }
    }
}

impl JobDevice {
    /// A device that was not asked.
    pub fn new(device: DeviceId) -> Self {
        Self {
            device,
            outcome: None,
        }
    }
}

impl JobDeviceStatus {
    /// The status of a device with this outcome, of a job in this state.
    pub fn of(outcome: Option<JobOutcome>, state: JobState) -> Self {
        match (outcome, state) {
            (Some(JobOutcome::Accepted(_)), _) => Self::Accepted,
            (
                Some(JobOutcome::Refused(_) | JobOutcome::Unserved(_) | JobOutcome::RequestOpen(_)),
                _,
            ) => Self::Rejected,
            (None, JobState::Cancelled) => Self::Cancelled,
            (None, JobState::Running | JobState::Done) => Self::Pending,
        }
    }
}

/// A part of a running job, as it is read to be worked on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RestoredPart {
    /// Its devices. Unless it is through, only those have outcomes that are not to be asked.
    pub devices: Vec<JobDevice>,
    /// What each of them is to be requested.
    pub request: NewAction,
    /// The requests that were created for it.
    pub created: Vec<(DeviceKey, ActionId)>,
}
