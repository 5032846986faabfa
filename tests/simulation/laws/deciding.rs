//! Which laws are checked when a machine takes a step, and what is a request it sends for?

use engine::action::Protocol;
use engine::step_event::UplinkKind;

use super::{
    Again, BegunExchange, Decision, LawChecker, Verdict, observing, passive, presence, reaching,
};
use crate::disk::Durable;
use crate::service::{Saves, StepTrigger};
use crate::wire::{AnsweredBy, AttemptKey, Continuation, FormatFound, RequestPurpose, SentRequest};

impl LawChecker {
    /// A machine took a step.
    pub(crate) fn decided(&mut self, decision: Decision, durable: &Durable) -> Verdict {
        let Decision { at_ms, who, .. } = decision;
        if decision.saves == Saves::Something {
            self.undurable.insert(decision.step);
        }
        let on = decision.took.on;
        let record = &mut self.uplinks[who];
        match on {
            StepTrigger::Uplink => {
                (record.heard_at_ms, record.uplinks) = (at_ms, record.uplinks + 1);
                record.may_be_silent = false;
                self.awaits_session[who] = false;
            }
            StepTrigger::Heard => record.heard_at_ms = at_ms,
            StepTrigger::Other => {}
        }
        if on != StepTrigger::Other
            && let Some(last_reply) = &mut record.last_reply
        {
            last_reply.received_since += 1;
        }
        if let (Some(open), Some(meets)) = (&mut self.open[who], &decision.took.meets) {
            // Neither a notification that overtakes the answer to the request that ends its
            // observation is that answer, nor one that the network repeats: all have one token.
            let meaning = decision.took.meaning;
            let is_other = matches!(
                meaning,
                Some(UplinkKind::Notification | UplinkKind::Repeated)
            );
            let is_met = open.attempt.is_met_by(meets) && !is_other;
            open.is_answered |= is_met;
            open.continues |= is_met && decision.took.meaning == Some(UplinkKind::BlockPart);
        }
        if let Some(open) = &mut self.open[who]
            && decision.took.acknowledges == Some(open.attempt.message_id)
        {
            open.acknowledged_at_ms.get_or_insert(at_ms);
        }
        // A device that asks for its bootstrap answers nothing else.
        if decision.took.is_bootstrap {
            self.open[who] = None;
        }
        if on != StepTrigger::Other {
            self.sent_samples.received(who);
        }
        self.sent_data.taken(who, &decision)?;
        reaching::any_uplink_releases_what_waits(self, &decision, durable)?;
        if let Some(action) = decision.throws {
            self.throwing[who] = Some((action, self.uplinks[who].uplinks));
            presence::a_retry_waits_for_an_uplink(self, who, action)?;
            presence::a_sleeping_device_gets_no_request(
                self,
                (at_ms, Protocol::Udp),
                who,
                durable,
            )?;
        }
        self.begun(&decision, durable)
    }

    /// Whether a device may have been silent since it was last heard: then requests over the same
    /// protocol wait.
    pub(super) fn may_be_silent(&self, who: usize) -> bool {
        let open = self.open[who].as_ref();
        self.uplinks[who].may_be_silent || open.is_some_and(|open| !open.is_answered)
    }

    /// Records the requests that a step sends to a device.
    fn begun(&mut self, decision: &Decision, durable: &Durable) -> Verdict {
        let Decision { at_ms, who, .. } = *decision;
        for sent in &decision.sends {
            let attempt = sent.attempt;
            if self.is_open(who, attempt) && !matches!(sent.purpose, RequestPurpose::Action(..)) {
                continue;
            }
            let (purpose, again) = self.purpose_of(who, sent, decision.took.meets.as_ref());
            match purpose {
                _ if again != Again::No => {}
                RequestPurpose::Rest(path) => {
                    observing::fetched_blocks_belong_to_a_partial_notification(
                        self, who, path, durable,
                    )?;
                }
                RequestPurpose::Report(_) => {
                    let reporting = decision.reporting;
                    passive::passive_reporting_needs_its_setting(who, reporting)?;
                }
                RequestPurpose::Action(action, _) => {
                    presence::a_retry_waits_for_an_uplink(self, who, action)?;
                }
                RequestPurpose::Bootstrap | RequestPurpose::Update => {}
                RequestPurpose::Unsaved(path) => {
                    observing::a_renewed_observation_waits_for_an_uplink(self, who, path)?;
                }
            }
            if again != Again::InBlocks && purpose != RequestPurpose::Bootstrap {
                let over = purpose.protocol();
                presence::a_sleeping_device_gets_no_request(self, (at_ms, over), who, durable)?;
            }
            let uplinks = self.uplinks[who].uplinks;
            let begun = BegunExchange {
                purpose,
                again,
                at_ms,
                uplinks,
            };
            // A renewed or ended observation keeps its token, and by chance the message id may
            // repeat, too.
            if self.attempts.insert(attempt, begun).is_some() {
                self.deeds.retain(|(_, done), _| *done != attempt);
            }
        }
        Ok(())
    }

    /// The purpose of a request, and whether it continues the exchange before.
    fn purpose_of(
        &self,
        who: usize,
        sent: &SentRequest,
        meets: Option<&AnsweredBy>,
    ) -> (RequestPurpose, Again) {
        if let RequestPurpose::Action(..) = sent.purpose {
            return (sent.purpose, Again::No);
        }
        let open = self.open[who].as_ref();
        let begun = open.and_then(|open| self.attempts.get(&open.attempt));
        match (sent.continues, begun) {
            // Other requests go between two blocks of an image.
            (Continuation::InBlocks, _) if sent.purpose == RequestPurpose::Update => {
                return (sent.purpose, Again::InBlocks);
            }
            (Continuation::InBlocks, Some(begun)) => return (begun.purpose, Again::InBlocks),
            (Continuation::InBlocks, None) | (Continuation::No, _) => {}
        }
        match self.refused_format(who, meets) {
            Some(before) if sent.asks_again(before) => (before, Again::InAnotherFormat),
            Some(_) | None => (sent.purpose, Again::No),
        }
    }

    /// The purpose of the open exchange with a device, if the device refuses its format.
    fn refused_format(&self, who: usize, meets: Option<&AnsweredBy>) -> Option<RequestPurpose> {
        let open = self.open[who].as_ref()?;
        let meets = meets.filter(|meets| meets.format == FormatFound::Unfit)?;
        let begun = self.attempts.get(&open.attempt)?;
        open.attempt.is_met_by(meets).then_some(begun.purpose)
    }

    pub(super) fn is_open(&self, who: usize, attempt: AttemptKey) -> bool {
        let open = self.open[who].as_ref();
        open.is_some_and(|open| open.attempt == attempt)
    }
}
