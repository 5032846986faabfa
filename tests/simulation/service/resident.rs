//! What state is a device's actor in, and what waits for it?

use std::collections::VecDeque;

use engine::datagram::Arrival;
use engine::device::Device;
use engine::effect::{Effects, Speech};
use engine::moment::{Moment, Timestamp};
use engine::registry::peers::Said;

use super::{Act, End, Input, Loss, Occasion, Question, Reply, Took, Turn};
use crate::wire::Met;

/// How many inputs may wait for a device; the network repeats datagrams, and callers are told.
const WAITING_MAX: usize = 16;

pub(super) enum Resident {
    /// Its actor does not run.
    Away,
    /// It is being read from the disk; its inputs wait.
    Restoring {
        fetch: u64,
        waiting: VecDeque<Input>,
    },
    /// Its actor runs.
    Live(Box<Live>),
    /// Its actor fell over again and again.
    Parked,
}

impl Resident {
    /// What waits for the device.
    pub(super) fn waiting(&self) -> Option<&VecDeque<Input>> {
        match self {
            Self::Live(live) => Some(&live.mailbox),
            Self::Restoring { waiting, .. } => Some(waiting),
            Self::Away | Self::Parked => None,
        }
    }
}

/// A running actor.
pub(super) struct Live {
    pub(super) device: Device,
    pub(super) mailbox: VecDeque<Input>,
    /// The step whose receipt it waits for.
    pub(super) open: Option<Open>,
    pub(super) said: Said,
    /// Whether it was asked to forget the device: then it answers nobody any more.
    pub(super) is_retired: bool,
    armed_at: Option<Timestamp>,
}

/// What an input was.
pub(super) struct Taken {
    pub(super) took: Took,
    /// Who is to be told what.
    pub(super) answer: Option<(u64, Reply)>,
}

/// What is left of a step once it is durable.
pub(super) struct Open {
    pub(super) step: u64,
    pub(super) speeches: Vec<Speech>,
    pub(super) answer: Option<(u64, Reply)>,
}

impl Live {
    pub(super) fn new(device: Device) -> Self {
        Self {
            device,
            mailbox: VecDeque::new(),
            open: None,
            said: Said::default(),
            is_retired: false,
            armed_at: None,
        }
    }

    /// Puts an input to the machine, and returns what it was and who is to be told what.
    pub(super) fn take(&mut self, input: Input, m: &mut Moment, out: &mut Effects) -> Taken {
        let mut taken = Taken {
            took: Took::NOTHING,
            answer: None,
        };
        match input {
            Input::Heard(heard) => {
                taken.took = self.hear(&heard.arrival, m, out);
            }
            Input::Due => {
                self.armed_at.take_if(|armed_at| *armed_at <= m.now());
                self.device.handle_timeout(m, out);
            }
            Input::Asked(call, question) => {
                taken.answer = Some((call, self.ask(question, m, out)));
            }
        }
        taken
    }

    fn hear(&mut self, arrival: &Arrival, m: &mut Moment, out: &mut Effects) -> Took {
        let from = Some(arrival.peer());
        match arrival {
            Arrival::Message(datagram) => {
                let heard = self.device.handle_datagram(m, datagram, out);
                Took {
                    on: Occasion::of(Some(datagram), heard),
                    heard: Some(heard),
                    meets: Met::by(&datagram.message),
                    from,
                    ..Took::NOTHING
                }
            }
            Arrival::Ambiguous(datagram) => Took {
                heard: Some(self.device.handle_ambiguous(m, datagram, out)),
                from,
                is_ambiguous: true,
                ..Took::NOTHING
            },
            Arrival::Burst(..) => panic!("what is thrown here is handed over one by one"),
            Arrival::Bare(bare) => {
                let heard = self.device.handle_bare(m, bare, out);
                Took {
                    on: Occasion::of(None, heard),
                    heard: Some(heard),
                    from,
                    bare: Some(bare.bytes.clone()),
                    ..Took::NOTHING
                }
            }
        }
    }

    fn ask(&mut self, question: Question, m: &mut Moment, out: &mut Effects) -> Reply {
        match question {
            Question::Submit(new) => Reply::Submitted(self.device.submit(m, new, out)),
            Question::Cancel(id) => Reply::Cancelled(self.device.cancel(m, id, out)),
            Question::CancelAll => Reply::CancelledAll(self.device.cancel_all(m, out)),
            Question::Retire => {
                self.device.retire(out);
                self.is_retired = true;
                Reply::Retired
            }
            Question::TakeNewNames => panic!("the disk is asked who it is, and no machine"),
        }
    }

    /// Asks to be woken at the machine's deadline; an earlier wake-up does instead.
    pub(super) fn arm(&mut self, who: usize, turn: &mut Turn<'_>) {
        if let Some(at) = self.device.next_timeout()
            && self.armed_at.is_none_or(|armed_at| at < armed_at)
        {
            self.armed_at = Some(at);
            turn.acts.push(Act::Wake { who, at });
        }
    }
}

pub(super) fn wait(who: usize, waiting: &mut VecDeque<Input>, input: Input, turn: &mut Turn<'_>) {
    if waiting.len() < WAITING_MAX || matches!(input, Input::Due) {
        waiting.push_back(input);
    } else {
        turn_away(who, input, Loss::NoPlace, turn);
    }
}

pub(super) fn refuse_all(who: usize, inputs: VecDeque<Input>, how: Loss, turn: &mut Turn<'_>) {
    for input in inputs {
        turn_away(who, input, how, turn);
    }
}

/// What reaches a device that is parked: who it is by then is what it will be brought back as.
pub(super) fn leave_parked(who: usize, input: Input, turn: &mut Turn<'_>) {
    let Input::Asked(call, Question::TakeNewNames) = input else {
        return turn_away(who, input, Loss::NoPlace, turn);
    };
    turn.acts.push(Act::Reply {
        call,
        step: None,
        reply: Reply::Renamed,
    });
}

/// What finds no place: the network repeats a datagram, a caller is told.
pub(super) fn turn_away(who: usize, input: Input, how: Loss, turn: &mut Turn<'_>) {
    match input {
        Input::Due => {}
        Input::Heard(heard) => {
            let number = heard.number;
            let end = End::Lost { who, how };
            turn.acts.push(Act::Ended { number, end });
        }
        Input::Asked(call, _) => {
            let reply = match how {
                Loss::Unknown => Reply::Unknown,
                Loss::NoPlace | Loss::Abandoned => Reply::Unserved,
            };
            turn.acts.push(Act::Reply {
                call,
                step: None,
                reply,
            });
        }
    }
}
