//! The bootstrap of a device: what it is sent in which order, and how that went (LwM2M Core 1.2
//! section 6.1).
//!
//! ```text
//!           POST /bs             prepared               each was answered          2.04
//!  (none) -----------> Requested --------> Delete > Discover > Write ... > Finish ------> (none)
//!                          ^                  |                                succeeded
//!                          +------------------+-- refused, or not answered --> (none): failed
//!                            POST /bs, again
//! ```
//!
//! A device that requests a Bootstrap-Pack (`GET /bspack`, section 6.1.7.7) is sent everything in
//! one response instead, once it is prepared.
//!
//! The requests go to the peer that asked. Nothing else is requested of the device meanwhile. What
//! was not finished when the process ends is over: the device asks again.

use std::collections::{BTreeSet, VecDeque};

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;
use protocol::lwm2m::bootstrap::{self, BootstrapRequest, SECURITY_OBJECT};
use protocol::lwm2m::operation::ExchangeLabel;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{self, Reading, Unencodable};

use crate::bootstrap::{
    BootstrapOperation, BootstrapPath, BootstrapPlan, BootstrapRecord, BootstrapState,
    BootstrapStep,
};
use crate::datagram::Datagram;
use crate::device::bootstrap_pack::ServedPack;
use crate::device::exchange::is_refusal_of_format;
use crate::diagnostic;
use crate::moment::Timestamp;
use crate::peer::Peer;

/// A bootstrap that is under way.
pub(super) struct RunningBootstrap {
    request: Datagram,
    /// What is asked for, if that is a pack.
    pack: Option<PackRequest>,
    /// The formats that are left to write in, the next one first.
    formats: VecDeque<ContentFormat>,
    phase: Phase,
    record: BootstrapRecord,
}

/// A request for everything in one response.
struct PackRequest {
    format: ContentFormat,
    /// Says which accounts stay.
    request: BootstrapRequest,
}

/// How far it is.
enum Phase {
    /// The service prepares it.
    Requested,
    /// The device is to be sent this next, or was just sent it.
    Running(Task, Box<BootstrapPlan>),
}

/// A request to the device.
enum Task {
    Delete,
    Discover,
    /// The instances that are left to write, the next one first.
    Write(VecDeque<(Path, Reading)>),
    Finish,
}

/// What follows an answer.
pub(super) enum AfterAnswer {
    /// The next request.
    Goes,
    /// Nothing: the device has everything.
    Succeeds,
    /// Nothing: the device refused it.
    Fails(String),
}

impl RunningBootstrap {
    /// A bootstrap that a device asks for, which prefers a format.
    pub(super) fn requested(
        request: &Datagram,
        preferred: Option<ContentFormat>,
        now: Timestamp,
    ) -> Self {
        Self {
            pack: None,
            formats: bootstrap::formats_to_write(preferred).collect(),
            phase: Phase::Requested,
            record: BootstrapRecord::begun(now, request.peer),
            request: request.clone(),
        }
    }

    /// Has it sent in one response in a format.
    pub(super) fn in_pack(self, request: BootstrapRequest, format: ContentFormat) -> Self {
        let pack = Some(PackRequest { format, request });
        Self { pack, ..self }
    }

    /// The pack that it is sent in, if the device asks for one.
    pub(super) fn pack_of(
        &mut self,
        plan: &BootstrapPlan,
        now: Timestamp,
    ) -> Option<Result<ServedPack, Unencodable>> {
        let PackRequest { format, request } = self.pack.as_ref()?;
        let writes = plan.writes(|instance| request.may_be_own_account(instance));
        let values = writes.into_iter().flat_map(|(_, values)| values).collect();
        let body = match payload::encode_all(*format, &values) {
            Ok(body) => body,
            Err(unencodable) => return Some(Err(unencodable)),
        };
        self.record.note(BootstrapStep {
            operation: BootstrapOperation::Pack,
            path: None,
            format: Some(format.0),
            at: now,
            answer: Some(Code::CONTENT),
        });
        let pack = ServedPack::new(&self.request, (*format, body), self.record.clone(), now);
        Some(Ok(pack))
    }

    /// Takes what the device is to be written.
    pub(super) fn begin(&mut self, plan: BootstrapPlan) {
        self.phase = Phase::Running(Task::Delete, Box::new(plan));
    }

    /// Whether the service still prepares it.
    pub(super) fn is_being_prepared(&self) -> bool {
        matches!(self.phase, Phase::Requested)
    }

    /// The next request; none while the bootstrap is being prepared, or if no format can carry it.
    pub(super) fn next_message(&mut self, label: ExchangeLabel, now: Timestamp) -> Option<Message> {
        let Phase::Running(task, _) = &self.phase else {
            return None;
        };
        let (operation, path, format, message) = match task {
            Task::Delete => {
                let message = bootstrap::delete_all(label);
                let path = Some(BootstrapPath::Root);
                (BootstrapOperation::Delete, path, None, message)
            }
            Task::Discover => {
                let message = bootstrap::discover(label, SECURITY_OBJECT);
                let path = Some(BootstrapPath::At(Path::object(SECURITY_OBJECT)));
                (BootstrapOperation::Discover, path, None, message)
            }
            Task::Write(left) => {
                let (instance, values) = left.front()?;
                let format = self.formats.front().copied()?;
                let message = bootstrap::write(label, *instance, values, format).ok()?;
                let path = Some(BootstrapPath::At(*instance));
                (BootstrapOperation::Write, path, Some(format), message)
            }
            Task::Finish => {
                let message = bootstrap::finish(label);
                (BootstrapOperation::Finish, None, None, message)
            }
        };
        self.record.note(BootstrapStep {
            operation,
            path,
            format: format.map(|format| format.0),
            at: now,
            answer: None,
        });
        Some(message)
    }

    /// Takes the answer to the last request.
    ///
    /// The device may have nothing to delete, and may not support Discover: an account is then
    /// written beside instance 0, where that of the bootstrap server is by convention.
    pub(super) fn answered(&mut self, answer: &Message) -> AfterAnswer {
        let code = answer.code;
        self.record.note_answer(code);
        let Phase::Running(task, plan) = &mut self.phase else {
            return AfterAnswer::Goes;
        };
        match task {
            Task::Delete if code.is_success() || code == Code::NOT_FOUND => *task = Task::Discover,
            Task::Discover => {
                let taken = match code.is_success() {
                    true => bootstrap::instances_in(SECURITY_OBJECT, &answer.payload),
                    false => BTreeSet::new(),
                };
                *task = Task::Write(plan.writes(|instance| taken.contains(&instance)).into());
            }
            Task::Write(left) if code.is_success() => {
                left.pop_front();
                if left.is_empty() {
                    *task = Task::Finish;
                }
            }
            Task::Write(_) if is_refusal_of_format(code) && self.formats.len() > 1 => {
                self.formats.pop_front();
            }
            Task::Finish if code.is_success() => return AfterAnswer::Succeeds,
            Task::Delete | Task::Write(_) | Task::Finish => {
                return AfterAnswer::Fails(self.refusal(answer));
            }
        }
        AfterAnswer::Goes
    }

    /// Ends it. Returns its record.
    pub(super) fn end(
        mut self,
        now: Timestamp,
        state: BootstrapState,
        error: Option<&str>,
    ) -> BootstrapRecord {
        self.record.end(now, state, error);
        self.record
    }

    /// The request it began with.
    pub(super) fn request(&self) -> &Datagram {
        &self.request
    }

    /// The peer that asked.
    pub(super) fn peer(&self) -> Peer {
        self.request.peer
    }

    /// How it is going.
    pub(super) fn record(&self) -> &BootstrapRecord {
        &self.record
    }

    /// The last request, as a sentence names it.
    pub(super) fn current(&self) -> String {
        let Some(step) = self.record.steps.last() else {
            return "the request".to_owned();
        };
        let operation = match step.operation {
            BootstrapOperation::Delete => "Delete",
            BootstrapOperation::Discover => "Discover",
            BootstrapOperation::Write => "Write",
            BootstrapOperation::Finish => "Finish",
            BootstrapOperation::Pack => "the pack",
        };
        match step.path {
            Some(path) => format!("{operation} {path}"),
            None => operation.to_owned(),
        }
    }

    fn refusal(&self, answer: &Message) -> String {
        let (what, code) = (self.current(), answer.code);
        match diagnostic::text_of(answer) {
            Some(text) => format!("the device answered {what} with {code}: {text}"),
            None => format!("the device answered {what} with {code}"),
        }
    }
}
