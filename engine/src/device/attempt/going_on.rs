//! How an attempt goes on: it is repeated, goes on with the next block, or is given up, as time and
//! the device ask.

use std::sync::Arc;

use protocol::coap::exchange::GiveUp;
use protocol::coap::transfer::{Expiry, Fresh};

use super::{Attempt, Way};
use crate::action::timeline::Stage;
use crate::device::Device;
use crate::effect::Effects;
use crate::moment::{Moment, Timestamp};
use crate::occurrence::{Ending, What};

impl Device {
    /// Repeats the datagram in flight, or gives up on it, as time asks.
    pub(in crate::device) fn drive_attempt(&mut self, m: &mut Moment, out: &mut Effects) {
        let Some(attempt) = self.attempt_mut() else {
            return;
        };
        let transfer = match &mut attempt.way {
            Way::Transfer(transfer) => transfer,
            Way::Departure { gives_up_at } if *gives_up_at <= m.now() => {
                let why = "it is not known whether the datagram left";
                return self.not_departed(m, why, out);
            }
            Way::Departure { .. } => return,
        };
        match transfer.handle_timeout(m.now().as_ms()) {
            Expiry::NotYet => {}
            Expiry::Retransmit => {
                if !transfer.is_under_way() {
                    self.note_in_flight(m.now(), Stage::DatagramRepeated);
                }
                self.send_again(out);
            }
            Expiry::Again if self.has_expired_in_flight(m.now()) => self.expire_in_flight(m, out),
            Expiry::Again => {
                self.proceed(m);
                self.send_again(out);
            }
            Expiry::GaveUp(GiveUp::NotAcknowledged) => {
                self.note_ending(Ending::NotAcknowledged, out);
                self.attempt_unanswered(m, "the device did not acknowledge the message", out);
            }
            Expiry::GaveUp(GiveUp::NotAnswered) => {
                self.note_ending(Ending::NotAnswered, out);
                self.attempt_unanswered(m, "the device did not answer in time", out);
            }
        }
    }

    /// Goes on with the next block. A request that expired ends instead: each block renews the
    /// patience, and a slow device must not keep it open for months.
    pub(in crate::device) fn send_next(&mut self, m: &mut Moment, out: &mut Effects) {
        if self.has_expired_in_flight(m.now()) {
            return self.expire_in_flight(m, out);
        }
        self.proceed(m);
        self.send_in_flight(out);
    }

    fn has_expired_in_flight(&self, now: Timestamp) -> bool {
        self.pending_in_flight()
            .is_some_and(|pending| pending.action.expires_at <= now)
    }

    fn expire_in_flight(&mut self, m: &mut Moment, out: &mut Effects) {
        self.note_in_flight(m.now(), Stage::GaveUp);
        self.note_ending(Ending::NotAnswered, out);
        self.end_exchange(out);
        self.expire_actions(m, out);
    }

    fn proceed(&mut self, m: &mut Moment) {
        let fresh = Fresh {
            message_id: self.take_message_id(),
            token: self.draw_token(m),
            jitter: m.next_u32(),
        };
        let terms = Arc::clone(&self.terms);
        if let Some(transfer) = self.attempt_mut().and_then(Attempt::transfer_mut) {
            transfer.proceed(m.now().as_ms(), &terms.rules.transfers(), fresh);
        }
    }

    fn send_again(&mut self, out: &mut Effects) {
        out.note(self.trace_in_flight(), What::Repeated);
        self.send_in_flight(out);
    }

    /// Sends the datagram in flight. The device may have moved since it was sent before: what it is
    /// asked where it is registered goes to where that is by now. Nothing goes to an address that
    /// its customer took away from it, nor is let through from there: somebody else may have that.
    pub(in crate::device) fn send_in_flight(&mut self, out: &mut Effects) {
        let registered_at = self.bound_peer();
        let own = self.attempt_mut().and_then(|attempt| attempt.to);
        let Some(to) = own.or(registered_at).filter(|to| self.may_be_at(*to)) else {
            return;
        };
        self.await_elsewhere(out);
        if let Some(transfer) = self.attempt_mut().and_then(Attempt::transfer_mut) {
            out.send(to, transfer.datagram().to_vec());
        }
    }
}
