//! Callers ask things of devices, add them again, and have old requests forgotten.

use engine::arbiter::input::DeviceCommand;
use engine::moment::Timestamp;
use engine::supervision::Unserved;

use super::{Activity, World};
use crate::event::Event;
use crate::trace::TraceEvent;

impl World {
    /// Somebody calls, and somebody will call later.
    pub(super) fn call(&mut self) {
        let at_ms = self.later_ms();
        self.queue.push(at_ms, Event::Call);
        if self.mood == Activity::Lively {
            let who = self.anybody();
            match self.rng.below(30) {
                0 => self.readdress(who),
                _ => self.ask_something(who),
            }
        }
    }

    fn ask_something(&mut self, who: usize) {
        let whom = (who, self.speaks(who));
        let question = self.callers.invent(whom, &self.settings, &mut self.rng);
        self.count_silent_sleeper(who, &question);
        self.ask(who, question);
    }

    /// Somebody does once what he could not do while the service was down.
    pub(super) fn rush(&mut self, run: u64) {
        if self.mood != Activity::Lively || !self.service.is_up_since(run) {
            return;
        }
        let who = self.anybody();
        match self.rng.below(8) {
            0 => {
                self.ask(who, DeviceCommand::Retire);
            }
            1 => self.readdress(who),
            2 => {
                let for_ms = i64::from(self.rng.below(2_000));
                self.fill_the_disk_for(for_ms);
            }
            3..5 => self.ask_something(who),
            _ => self.indulge(who),
        }
    }

    /// Puts a question to a device, and returns the number of the call.
    pub(crate) fn ask(&mut self, who: usize, question: DeviceCommand) -> u64 {
        let what = match &question {
            DeviceCommand::Submit(_) => "do something",
            DeviceCommand::Cancel(_) => "cancel one",
            DeviceCommand::CancelAll => "cancel all",
            DeviceCommand::Retire => "be gone",
            DeviceCommand::Inspect => "say how it is",
            DeviceCommand::ReadProfile => "go by its new address",
        };
        let call = self.callers.ask(who, question.clone());
        self.note(TraceEvent::Asked { who, call, what });
        if self.service.is_up() {
            let at = self.service.arbiter_of(who);
            self.serve(at, |arbiter, turn| {
                arbiter.ask(who, call, question, turn);
            });
        } else {
            self.callers.hear(call, &Err(Unserved::Failed));
        }
        call
    }

    /// Somebody adds a device that was removed.
    pub(crate) fn add(&mut self, who: usize) {
        if !self.disk.durable.exists(who) {
            self.census.added += 1;
            self.note(TraceEvent::Device {
                who,
                does: "is added",
            });
            self.disk.durable.add(who);
        }
    }

    /// What is too old is removed, and later what is too old by then.
    pub(crate) fn sweep(&mut self) {
        let at_ms = self.later_ms();
        self.queue.push(at_ms, Event::Sweep);
        let before = Timestamp::from_ms(self.now_ms - self.settings.retention_ms);
        let swept = self.disk.durable.sweep(before);
        self.census.swept += swept.len() as u64;
        let verdict = self.laws.swept(&swept, &self.disk.durable);
        self.check(verdict);
    }
}
