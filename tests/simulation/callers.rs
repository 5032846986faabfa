//! The callers of the API: their calls and the replies they received.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use engine::PathAndQuery;
use engine::action::{
    CoapRequest, Content, ContentEncoding, Lwm2mRequest, Method, Mode, NewAction, Operation,
    Request, UdpRequest,
};
use engine::arbiter::input::{self, DeviceCommand};
use engine::device::queue::CancelRefusal;
use engine::device::refusal::SubmitRefusal;
use engine::ids::{ActionId, TraceId};
use engine::moment::Timestamp;
use engine::supervision::Unserved;
use harness::rng::Rng;
use protocol::lwm2m::path::Path;

use crate::fleet::{COAP_PORT, DeviceProtocols, PLAIN_PATHS};
use crate::service::Reply;
use crate::settings::{Kinds, WorldSettings, pick};

/// How many requests of a device callers remember for cancelling.
const REMEMBERED_MAX: usize = 8;

/// How many replies callers remember.
const ANSWERS_MAX: usize = 64;

/// Paths to observe, single resources more often than objects and instances.
const OBSERVED: [Path; 6] = [
    Path::resource(3303, 0, 5700),
    Path::resource(3303, 0, 5700),
    Path::resource(3, 0, 14),
    Path::resource(3, 0, 14),
    Path::instance(3303, 0),
    Path::object(3),
];

/// Paths that hold several values.
const SEVERAL: [Path; 3] = [
    Path::instance(3, 0),
    Path::instance(3303, 0),
    Path::object(3303),
];

/// The part of a reply that a caller keeps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Answer {
    Accepted(ActionId),
    Refused(SubmitRefusal),
    Cancelled,
    NotCancelled(CancelRefusal),
    Retired,
    Renamed,
    Unknown,
    Unserved,
}

impl Answer {
    fn of(reply: &Reply) -> Self {
        match reply {
            Ok(input::DeviceReply::Submitted(Ok(accepted))) => Self::Accepted(accepted.id),
            Ok(input::DeviceReply::Submitted(Err(refusal))) => Self::Refused(*refusal),
            Ok(input::DeviceReply::Cancelled(Ok(_)) | input::DeviceReply::CancelledAll(_)) => {
                Self::Cancelled
            }
            Ok(input::DeviceReply::Cancelled(Err(refusal))) => Self::NotCancelled(*refusal),
            Ok(input::DeviceReply::Retired) => Self::Retired,
            Ok(
                input::DeviceReply::ProfileRead
                | input::DeviceReply::Inspected(_)
                | input::DeviceReply::UpdateTaken,
            ) => Self::Renamed,
            Err(Unserved::Unknown) => Self::Unknown,
            Err(Unserved::Busy | Unserved::Failed) => Self::Unserved,
        }
    }
}

/// All callers.
pub(crate) struct Callers {
    calls: u64,
    open_calls: BTreeMap<u64, (usize, DeviceCommand)>,
    accepted: Vec<Vec<ActionId>>,
    /// The latest replies, by call.
    answers: BTreeMap<u64, Answer>,
    /// Makes every written text unique.
    texts: u64,
}

impl Callers {
    pub(crate) fn new(devices: usize) -> Self {
        Self {
            calls: 0,
            open_calls: BTreeMap::new(),
            accepted: vec![Vec::new(); devices],
            answers: BTreeMap::new(),
            texts: 0,
        }
    }

    /// Records a call, which gets a number.
    pub(crate) fn ask(&mut self, who: usize, question: DeviceCommand) -> u64 {
        self.calls += 1;
        self.open_calls.insert(self.calls, (who, question));
        self.calls
    }

    /// The number of the next call.
    pub(crate) fn next_call(&self) -> u64 {
        self.calls + 1
    }

    /// Records a reply, and returns the call it belongs to.
    pub(crate) fn receive(&mut self, call: u64, reply: &Reply) -> Option<(usize, DeviceCommand)> {
        let open_call = self.open_calls.remove(&call)?;
        self.answers.insert(call, Answer::of(reply));
        if self.answers.len() > ANSWERS_MAX {
            self.answers.pop_first();
        }
        if let Ok(input::DeviceReply::Submitted(Ok(accepted))) = reply {
            let remembered = &mut self.accepted[open_call.0];
            if remembered.len() >= REMEMBERED_MAX {
                remembered.remove(0);
            }
            remembered.push(accepted.id);
        }
        Some(open_call)
    }

    /// The reply to a call; None while the call is open or if the reply was lost.
    pub(crate) fn answer(&self, call: u64) -> Option<Answer> {
        self.answers.get(&call).copied()
    }

    /// The calls without a reply that are for these devices.
    pub(crate) fn open_for(&self, is_meant: impl Fn(usize) -> bool) -> Vec<u64> {
        let open = self.open_calls.iter();
        let meant = open.filter(|(_, (who, _))| is_meant(*who));
        meant.map(|(call, _)| *call).collect()
    }

    /// The service is gone; callers that wait get no reply.
    pub(crate) fn hang_up(&mut self) {
        self.open_calls.clear();
    }

    pub(crate) fn open(&self) -> usize {
        self.open_calls.len()
    }

    /// A random command for a device.
    pub(crate) fn invent(
        &mut self,
        now_ms: i64,
        (who, speaks): (usize, DeviceProtocols),
        settings: &WorldSettings,
        rng: &mut Rng,
    ) -> DeviceCommand {
        match rng.below(100) {
            0..77 => {
                let mut new = self.invent_action(settings, rng);
                let plain = match speaks {
                    DeviceProtocols::Lwm2m => 15,
                    DeviceProtocols::Plain => 90,
                    DeviceProtocols::Both => 45,
                };
                // In a world of one kind of device, all devices speak LwM2M.
                if settings.kinds == Kinds::Many && rng.hits(plain) {
                    self.ask_plainly(who, &mut new, rng);
                } else if speaks == DeviceProtocols::Plain {
                    // The device never registers, so a scheduled request would never be sent.
                    new.mode = Mode::SendNow;
                    return DeviceCommand::Submit(new);
                }
                if rng.below(6) == 0 {
                    let after_ms = rng.below(pace_s(settings) * 4_000);
                    new.not_before = Some(Timestamp::from_ms(now_ms + i64::from(after_ms)));
                }
                DeviceCommand::Submit(new)
            }
            77..94 => self.invent_cancel(who, rng),
            94..97 => DeviceCommand::CancelAll,
            _ => DeviceCommand::Retire,
        }
    }

    fn invent_cancel(&self, who: usize, rng: &mut Rng) -> DeviceCommand {
        let remembered = &self.accepted[who];
        // Mostly the latest request, which may not have been sent yet.
        let back = rng.below(3) as usize;
        let place = remembered.len().checked_sub(back + 1);
        match place.and_then(|place| remembered.get(place)) {
            Some(id) => DeviceCommand::Cancel(*id),
            None => DeviceCommand::CancelAll,
        }
    }

    fn invent_action(&mut self, settings: &WorldSettings, rng: &mut Rng) -> NewAction {
        let (operation, path, data) = self.invent_operation(settings, rng);
        let request = Lwm2mRequest::parse(operation, &path.to_string(), data.as_deref());
        let request = request.expect("it is a valid request");
        NewAction {
            request: Request::Lwm2m(request),
            mode: pick(rng, [Mode::SendNow, Mode::SendWhenActive]),
            attempts_permitted: 1 + rng.below(5) as u8,
            expires_in_s: match rng.below(4) {
                0 => Some(expiry_s(settings, rng)),
                _ => None,
            },
            not_before: None,
            wake_up: None,
            trace: TraceId::from_bytes([1; 16]),
            idempotent_call: None,
        }
    }

    /// Changes the request to one over UDP or CoAP.
    fn ask_plainly(&mut self, who: usize, new: &mut NewAction, rng: &mut Rng) {
        self.texts += 1;
        let length = pick(rng, [0, 40, 120]) as usize;
        let text = format!("ask {} {}", self.texts, "y".repeat(length));
        let content = Content::parse(ContentEncoding::String, &text).expect("a text is a text");
        let own_port = 5_001 + who as u32;
        let ports = [
            COAP_PORT,
            u16::try_from(own_port).expect("a port has 16 bits"),
        ];
        let port = NonZeroU16::new(pick(rng, ports)).expect("no port is 0");
        if rng.below(3) == 0 {
            new.attempts_permitted = 1;
            new.request = Request::Udp(UdpRequest { content, port });
            return;
        }
        let (method, content) = match rng.below(12) {
            0..5 => (Method::Get, None),
            5..8 => (Method::Put, Some(content)),
            8 | 9 => (Method::Post, Some(content)),
            10 => (Method::Patch, Some(content)),
            _ => (Method::Delete, None),
        };
        let target = format!("{}?by=7", pick(rng, PLAIN_PATHS));
        new.request = Request::Coap(CoapRequest {
            method,
            port,
            target: PathAndQuery::parse(&target).expect("a path and a query"),
            content,
        });
    }

    fn invent_operation(
        &mut self,
        settings: &WorldSettings,
        rng: &mut Rng,
    ) -> (Operation, Path, Option<Box<str>>) {
        let (shortest_s, longest_s) = settings.lifetime_s;
        match rng.below(30) {
            0..5 => (Operation::Read, Path::resource(3303, 0, 5700), None),
            5..9 => (Operation::Read, Path::resource(3, 0, 14), None),
            9..14 => {
                self.texts += 1;
                let text = format!("text {}", self.texts).into();
                (Operation::Write, Path::resource(3, 0, 14), Some(text))
            }
            14 => {
                let lifetime_s = shortest_s + rng.below(longest_s - shortest_s + 1);
                let text = lifetime_s.to_string().into();
                (Operation::Write, Path::resource(1, 0, 1), Some(text))
            }
            15 => (
                Operation::Write,
                Path::resource(1, 0, 1),
                Some("soon".into()),
            ),
            16 => (Operation::Execute, Path::resource(3, 0, 4), None),
            17 => (Operation::Execute, Path::resource(1, 0, 8), None),
            18 => (Operation::Execute, Path::resource(3, 0, 9), None),
            19 => (Operation::Read, pick(rng, SEVERAL), None),
            20..26 => (Operation::ObserveStart, pick(rng, OBSERVED), None),
            26..29 => (Operation::ObserveEnd, pick(rng, OBSERVED), None),
            _ => (Operation::Read, Path::resource(3, 0, 99), None),
        }
    }
}

fn expiry_s(settings: &WorldSettings, rng: &mut Rng) -> u32 {
    1 + rng.below(pace_s(settings) * 20)
}

fn pace_s(settings: &WorldSettings) -> u32 {
    u32::try_from(settings.pace_ms / 1_000).unwrap_or(1).max(1)
}
