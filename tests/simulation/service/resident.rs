//! What state is a device's actor in, and what waits for it?

use std::collections::VecDeque;

use engine::device::Device;
use engine::effect::{Effects, Speech};
use engine::moment::{Moment, Timestamp};

use super::{Act, Input, Question, Reply, Turn};

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

/// A running actor.
pub(super) struct Live {
    pub(super) device: Device,
    pub(super) mailbox: VecDeque<Input>,
    /// The step whose receipt it waits for.
    pub(super) open: Option<Open>,
    armed_at: Option<Timestamp>,
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
            armed_at: None,
        }
    }

    /// Puts an input to the machine, and returns who is to be told what.
    pub(super) fn take(
        &mut self,
        input: Input,
        m: &mut Moment,
        out: &mut Effects,
    ) -> Option<(u64, Reply)> {
        match input {
            Input::Heard(datagram) => {
                self.device.handle_datagram(m, &datagram, out);
                None
            }
            Input::Due => {
                self.armed_at.take_if(|armed_at| *armed_at <= m.now());
                self.device.handle_timeout(m, out);
                None
            }
            Input::Asked(call, question) => Some((call, self.ask(question, m, out))),
        }
    }

    fn ask(&mut self, question: Question, m: &mut Moment, out: &mut Effects) -> Reply {
        match question {
            Question::Submit(new) => Reply::Submitted(self.device.submit(m, new, out)),
            Question::Cancel(id) => Reply::Cancelled(self.device.cancel(m, id, out)),
            Question::CancelAll => Reply::CancelledAll(self.device.cancel_all(m, out)),
        }
    }

    pub(super) fn wait(&mut self, input: Input, turn: &mut Turn<'_>) {
        wait(&mut self.mailbox, input, turn);
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

pub(super) fn wait(waiting: &mut VecDeque<Input>, input: Input, turn: &mut Turn<'_>) {
    if waiting.len() < WAITING_MAX || matches!(input, Input::Due) {
        waiting.push_back(input);
    } else {
        turn_away(input, turn);
    }
}

/// What finds no place: the network repeats a datagram, a caller is told.
pub(super) fn turn_away(input: Input, turn: &mut Turn<'_>) {
    match input {
        Input::Heard(_) | Input::Due => {}
        Input::Asked(call, _) => {
            let reply = Reply::Unserved;
            turn.acts.push(Act::Reply {
                call,
                step: None,
                reply,
            });
        }
    }
}
