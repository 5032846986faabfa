//! Which laws are checked when the service sends a datagram?

use engine::action::timeline::TimelineEvent;
use engine::action::{Action, Protocol, Status};
use engine::effect::SendOutcome as Thrown;
use engine::peer::Peer;
use protocol::coap::message::Message;

use super::{
    Again, LawChecker, OpenExchange, SentDatagram, Verdict, attempts, campaigns, hold, observing,
    passive, plain, presence, promises, reaching, sending, speech,
};
use crate::disk::Durable;
use crate::wire::{AttemptKey, Head, RequestPurpose};

impl LawChecker {
    /// The service sends a datagram.
    pub(crate) fn left(&mut self, outcome: &SentDatagram<'_>, durable: &Durable) -> Verdict {
        speech::nothing_is_sent_before_it_is_saved(self, outcome.step)?;
        reaching::nothing_goes_to_another_address(self, outcome, durable)?;
        reaching::an_answer_leaves_through_the_node_that_heard_its_message(self, outcome)?;
        let (Some(who), Some(head)) = (outcome.who, Head::of(outcome.datagram)) else {
            return Ok(());
        };
        // Message ids belong to an address: a message from another address is no repetition. A
        // refused sender may be anybody, and does not move the device.
        let last_reply = &mut self.uplinks[who].last_reply;
        last_reply.take_if(|last_reply| last_reply.to != outcome.to && !head.is_refusal());
        if head.is_created() {
            speech::an_answered_location_exists(who, outcome.datagram, durable)?;
            presence::a_repeated_register_gets_the_same_location(self, who, outcome)?;
            self.created(who, outcome.datagram);
        }
        if head.is_created() || head.is_changed() {
            self.accepted(who, head.key(), outcome.to);
            sending::a_send_is_stored_once(self, who, (outcome.at_ms, head.key()), durable)?;
            plain::acknowledged_data_is_published(self, who, (outcome.at_ms, head.key()), durable)?;
        }
        if head.is_empty_acknowledgement() {
            let (to, id) = (outcome.to, head.message_id);
            return observing::what_is_acknowledged_is_stored(self, who, to, id, durable);
        }
        if head.is_request() {
            return self.request_left(outcome, who, head.key(), durable);
        }
        Ok(())
    }

    /// A registration, update or Send of a device is accepted, for the first time or again.
    fn accepted(&mut self, who: usize, key: AttemptKey, to: Peer) {
        if self.answered.insert((to, key)) {
            let record = &mut self.uplinks[who];
            record.accepted_at_ms = record.heard_at_ms;
        }
    }

    /// A device is answered with the location of its registration. Reads for passive reporting
    /// belonged to the registration before.
    fn created(&mut self, who: usize, datagram: &[u8]) {
        let message = Message::decode(datagram).expect("the service speaks well");
        let location: Vec<String> = message.location_path().map(str::to_owned).collect();
        let before = std::mem::replace(&mut self.uplinks[who].location, location);
        if before == self.uplinks[who].location {
            return;
        }
        let attempts = &self.attempts;
        let is_report = |open: &mut OpenExchange| {
            let begun = attempts.get(&open.attempt);
            begun.is_some_and(|begun| matches!(begun.purpose, RequestPurpose::Report(_)))
        };
        self.open[who].take_if(is_report);
    }

    /// A request is sent, for the first time or again.
    fn request_left(
        &mut self,
        outcome: &SentDatagram<'_>,
        who: usize,
        attempt: AttemptKey,
        durable: &Durable,
    ) -> Verdict {
        let at_ms = outcome.at_ms;
        let begun = speech::a_request_is_sent_as_decided(self, attempt)?;
        match begun.purpose {
            RequestPurpose::Action(action, _) if begun.again != Again::No => {
                promises::cancelled_action_is_never_sent(action, who, durable)?;
            }
            RequestPurpose::Action(action, _) => {
                speech::an_attempt_is_saved_before_it_is_sent(self, who, attempt, action, durable)?;
                promises::cancelled_action_is_never_sent(action, who, durable)?;
            }
            RequestPurpose::Update => {
                campaigns::an_update_is_saved_before_its_request(who, outcome.datagram, durable)?;
            }
            _ if begun.again == Again::InBlocks => {}
            RequestPurpose::Unsaved(path) => {
                observing::an_observation_requested_again_was_lost(who, &attempt, path, durable)?;
            }
            RequestPurpose::Bootstrap | RequestPurpose::Rest(_) => {}
            RequestPurpose::Report(_) => {
                passive::passive_reporting_excludes_private_objects(who, outcome.datagram)?;
            }
        }
        if self.is_open(who, attempt) {
            return Ok(());
        }
        if let (RequestPurpose::Report(_), Again::No) = (begun.purpose, begun.again) {
            passive::callers_go_before_passive_reporting(self, at_ms, who, durable)?;
        }
        let over = begun.purpose.protocol();
        if begun.again != Again::InBlocks {
            let begins = (at_ms, begun.purpose);
            attempts::one_exchange_is_in_flight(self, who, begins, durable)?;
        }
        let before = self.open[who].replace(OpenExchange {
            attempt,
            begun_at_ms: begun.at_ms,
            is_answered: false,
            acknowledged_at_ms: None,
            continues: false,
            over,
            is_part: begun.again == Again::InBlocks,
        });
        self.uplinks[who].may_be_silent |= before.is_some_and(|before| !before.is_answered);
        if let RequestPurpose::Action(action, _) = begun.purpose {
            let known = self.known.get_mut(&action).expect("what is saved is known");
            known.is_in_blocks = begun.again == Again::InBlocks;
            if begun.again != Again::No {
                known.continued.push(attempt);
                return Ok(());
            }
            known.sent.push(attempt);
            known.uplinks_at_attempt = Some(begun.uplinks);
            attempts::attempts_never_exceed_what_was_permitted(known, action, durable)?;
        }
        Ok(())
    }

    /// The service sends a bare datagram, or tries to.
    pub(crate) fn threw(
        &mut self,
        outcome: &SentDatagram<'_>,
        how: Thrown,
        durable: &Durable,
    ) -> Verdict {
        speech::nothing_is_sent_before_it_is_saved(self, outcome.step)?;
        reaching::nothing_goes_to_another_address(self, outcome, durable)?;
        let who = outcome.who.expect("a device throws");
        let thrown = self.throwing[who].take();
        let action = thrown.and_then(|(id, uplinks)| Some((durable.action(who, id)?, uplinks)));
        let action = action.filter(|(action, _)| is_thrown(action));
        let action = action.map(|(action, uplinks)| (action.id, action.attempts_made, uplinks));
        hold(
            "an_attempt_is_saved_before_it_is_sent",
            action.is_some(),
            || format!("bytes leave for device {who} that belong to no request"),
        )?;
        let Some((id, attempts_made, uplinks)) = action else {
            return Ok(());
        };
        let open = self.open[who].as_ref();
        self.uplinks[who].may_be_silent |= open.is_some_and(|open| !open.is_answered);
        let known = self.known.get_mut(&id).expect("what is saved is known");
        known.thrown += 1;
        known.uplinks_at_attempt = Some(uplinks);
        known.is_taken |= how == Thrown::Sent;
        let is_counted = usize::from(attempts_made) >= known.thrown;
        hold(
            "attempts_never_exceed_what_was_permitted",
            is_counted && known.thrown == 1,
            || {
                format!(
                    "{id} leaves {} times, {attempts_made} attempts are saved",
                    known.thrown
                )
            },
        )
    }
}

/// Whether a request is sent as a bare datagram.
pub(super) fn is_thrown(action: &Action) -> bool {
    let happened = action.timeline.as_slice().last().map(|last| last.what);
    let begins = matches!(happened, Some(TimelineEvent::AttemptBegun(_)));
    begins && action.protocol() == Protocol::Udp && action.status == Status::InProgress
}
