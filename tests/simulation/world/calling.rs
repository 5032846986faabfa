//! Callers send commands to devices, add removed devices again, and have old requests deleted.

use engine::arbiter::input::DeviceCommand;
use engine::moment::Timestamp;
use engine::supervision::Unserved;

use super::{Activity, World};
use crate::event::Event;
use crate::trace::TraceEvent;

impl World {
    /// A caller makes a call, and schedules the next one.
    pub(super) fn call(&mut self) {
        let at_ms = self.later_ms();
        self.queue.push(at_ms, Event::Call);
        if self.activity == Activity::Lively {
            let who = self.anybody();
            match self.rng.below(30) {
                0 => self.readdress(who),
                _ => self.ask_something(who),
            }
        }
    }

    fn ask_something(&mut self, who: usize) {
        let whom = (who, self.speaks(who));
        let (settings, rng) = (&self.settings, &mut self.rng);
        let question = self.callers.invent(self.now_ms, whom, settings, rng);
        self.count_silent_sleeper(who, &question);
        self.ask(who, question);
    }

    /// A device or a caller acts once that could not while the service was down.
    pub(super) fn rush(&mut self, run: u64) {
        if self.activity != Activity::Lively || !self.service.is_up_since(run) {
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
            _ => self.act_randomly(who),
        }
    }

    /// Sends a command to a device, and returns the number of the call.
    pub(crate) fn ask(&mut self, who: usize, question: DeviceCommand) -> u64 {
        let what = match &question {
            DeviceCommand::Submit(_) | DeviceCommand::SubmitWaking(_) => "do something",
            DeviceCommand::Cancel(_) => "cancel one",
            DeviceCommand::CancelAll => "cancel all",
            DeviceCommand::BeginUpdate(_) => "begin an update",
            DeviceCommand::EndUpdate(..) => "end an update",
            DeviceCommand::Retire => "be gone",
            DeviceCommand::Inspect => "say how it is",
            DeviceCommand::ReadProfile => "go by its new address",
        };
        let call = self.callers.ask(who, question.clone());
        self.note(TraceEvent::Asked { who, call, what });
        let home = self.service.arbiter_of(who);
        match self.service.open_run_of(home) {
            Some(at) if !self.service.nodes.is_silent(home) => self.serve(at, |arbiter, turn| {
                arbiter.ask(who, call, question, turn);
            }),
            Some(_) | None if self.service.is_up() => {
                self.reply(call, None, &Err(Unserved::Busy));
            }
            Some(_) | None => {
                self.callers.receive(call, &Err(Unserved::Failed));
            }
        }
        call
    }

    /// Adds a removed device again.
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

    /// Removes old requests, and schedules the next removal.
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
