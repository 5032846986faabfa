//! Callers ask things of devices.

use super::{Mood, World};
use crate::event::Event;
use crate::service::{Input, Question, Reply};
use crate::trace::What;

impl World {
    /// Somebody calls, and somebody will call later.
    pub(super) fn call(&mut self) {
        let at_ms = self.later_ms();
        self.queue.push(at_ms, Event::Call);
        if self.mood == Mood::Lively {
            let who = self.chance.below(self.nature.devices as u32) as usize;
            let question = self.callers.invent(who, &self.nature, &mut self.chance);
            self.ask(who, question);
        }
    }

    /// Puts a question to a device, and returns the number of the call.
    pub(crate) fn ask(&mut self, who: usize, question: Question) -> u64 {
        let what = match &question {
            Question::Submit(_) => "do something",
            Question::Cancel(_) => "cancel one",
            Question::CancelAll => "cancel all",
        };
        let call = self.callers.ask(who, question.clone());
        self.note(What::Asked { who, call, what });
        if self.service.is_up() {
            self.serve(|service, turn| service.hand(who, Input::Asked(call, question), turn));
        } else {
            self.callers.hear(call, &Reply::Unserved);
        }
        call
    }
}
