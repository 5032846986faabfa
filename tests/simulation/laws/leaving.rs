//! Which laws are asked when a datagram leaves the service?

use engine::peer::Peer;
use protocol::coap::message::Message;

use super::{
    Again, Departure, Judge, OpenExchange, Verdict, attempts, observing, passive, presence,
    promises, sending, speech,
};
use crate::disk::Durable;
use crate::wire::{AttemptKey, Head, Purpose};

impl Judge {
    /// A datagram leaves the service.
    pub(crate) fn left(&mut self, departure: &Departure<'_>, durable: &Durable) -> Verdict {
        speech::nothing_is_said_before_it_is_saved(self, departure.step)?;
        let (Some(who), Some(head)) = (departure.who, Head::of(departure.datagram)) else {
            return Ok(());
        };
        // Message ids belong to an address: elsewhere nothing is a repetition. Who is refused may
        // be anybody, and the device where it was.
        let told = &mut self.ears[who].told;
        told.take_if(|told| told.to != departure.to && !head.is_refusal());
        if head.is_created() {
            speech::a_location_is_told_when_it_leads_somewhere(who, departure.datagram, durable)?;
            presence::a_repeated_register_gets_the_same_location(self, who, departure)?;
            self.created(who, departure.datagram);
        }
        if head.is_created() || head.is_changed() {
            self.accepted(who, head.key(), departure.to);
            sending::what_is_sent_is_kept_once(self, who, head.key(), durable)?;
        }
        if head.is_empty_acknowledgement() {
            let (to, id) = (departure.to, head.message_id);
            return observing::what_is_acknowledged_is_told(self, who, to, id, durable);
        }
        if head.is_request() {
            return self.request_left(departure, who, head.key(), durable);
        }
        Ok(())
    }

    /// A device is answered that it was taken at its word, for the first time or again.
    fn accepted(&mut self, who: usize, key: AttemptKey, to: Peer) {
        if self.answered.insert((to, key)) {
            let ear = &mut self.ears[who];
            ear.accepted_at_ms = ear.heard_at_ms;
        }
    }

    /// A device is told where its registration is. What was being read unasked belonged to the one
    /// before.
    fn created(&mut self, who: usize, datagram: &[u8]) {
        let message = Message::decode(datagram).expect("the service speaks well");
        let location: Vec<String> = message.location_path().map(str::to_owned).collect();
        let before = std::mem::replace(&mut self.ears[who].location, location);
        if before == self.ears[who].location {
            return;
        }
        let attempts = &self.attempts;
        let is_report = |open: &mut OpenExchange| {
            let begun = attempts.get(&open.attempt);
            begun.is_some_and(|begun| matches!(begun.purpose, Purpose::Report))
        };
        self.open[who].take_if(is_report);
    }

    /// A request leaves, for the first time or again.
    fn request_left(
        &mut self,
        departure: &Departure<'_>,
        who: usize,
        attempt: AttemptKey,
        durable: &Durable,
    ) -> Verdict {
        let at_ms = departure.at_ms;
        let begun = speech::a_request_leaves_as_it_was_decided(self, attempt)?;
        match begun.purpose {
            Purpose::Action(action) if begun.again == Again::InAnotherFormat => {
                promises::cancelled_action_is_never_sent(action, who, durable)?;
            }
            Purpose::Action(action) => {
                speech::an_attempt_is_saved_before_it_leaves(self, who, attempt, action, durable)?;
                promises::cancelled_action_is_never_sent(action, who, durable)?;
            }
            Purpose::Unsaved(path) => {
                observing::what_is_asked_again_is_owed(who, &attempt, path, durable)?;
            }
            Purpose::Report => {
                passive::what_is_private_is_not_read_unasked(who, departure.datagram)?;
            }
        }
        if self.is_open(who, attempt) {
            return Ok(());
        }
        if let (Purpose::Report, Again::No) = (begun.purpose, begun.again) {
            passive::callers_go_before_what_nobody_asked_for(self, at_ms, who, durable)?;
        }
        attempts::one_exchange_is_in_flight(self, who, at_ms, durable)?;
        self.open[who] = Some(OpenExchange {
            attempt,
            begun_at_ms: begun.at_ms,
            is_answered: false,
        });
        if let Purpose::Action(action) = begun.purpose {
            let known = self.known.get_mut(&action).expect("what is saved is known");
            if begun.again == Again::InAnotherFormat {
                known.otherwise.push(attempt);
                return Ok(());
            }
            known.sent.push(attempt);
            known.uplinks_at_attempt = Some(begun.uplinks);
            attempts::attempts_never_exceed_what_was_permitted(known, action, durable)?;
        }
        Ok(())
    }
}
