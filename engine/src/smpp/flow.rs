//! How many SMS may be submitted at a time? As many as the window has, and fewer after the SMS
//! centre refused one because they are too many.

use crate::limits::{SMPP_PAUSE_MS_MAX, SMPP_PAUSE_MS_MIN};
use crate::moment::Timestamp;

/// The flow of submissions: it halves when one is throttled, and grows by one with every round.
#[derive(Debug)]
pub(super) struct SubmitFlow {
    window: usize,
    allowed: usize,
    /// Accepted since it grew.
    accepted: usize,
    pause_ms: i64,
    paused_until: Timestamp,
}

impl SubmitFlow {
    pub(super) fn new(window: usize) -> Self {
        Self {
            window,
            allowed: window,
            accepted: 0,
            pause_ms: 0,
            paused_until: Timestamp::default(),
        }
    }

    /// How many may be under way.
    pub(super) fn allowed(&self) -> usize {
        self.allowed
    }

    /// When the next may be submitted.
    pub(super) fn paused_until(&self) -> Timestamp {
        self.paused_until
    }

    /// The SMS centre accepted one.
    pub(super) fn accepted(&mut self) {
        self.accepted += 1;
        if self.accepted >= self.allowed {
            self.accepted = 0;
            self.allowed = (self.allowed + 1).min(self.window);
            self.pause_ms /= 2;
        }
    }

    /// The SMS centre refused one for now. Those of one burst count once.
    pub(super) fn throttled(&mut self, now: Timestamp) {
        if now < self.paused_until {
            return;
        }
        self.accepted = 0;
        self.allowed = (self.allowed / 2).max(1);
        self.pause_ms = (self.pause_ms * 2).clamp(SMPP_PAUSE_MS_MIN, SMPP_PAUSE_MS_MAX);
        self.paused_until = now.plus_ms(self.pause_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_refusals_halves_the_flow_once_and_pauses_it() {
        let mut flow = SubmitFlow::new(16);
        let at = Timestamp::from_ms;
        for ms in 0..10 {
            flow.throttled(at(1_000 + ms));
        }
        assert_eq!(flow.allowed(), 8);
        assert_eq!(flow.paused_until(), at(1_000 + SMPP_PAUSE_MS_MIN));
        let later = flow.paused_until();
        flow.throttled(later);
        assert_eq!(flow.allowed(), 4);
        assert_eq!(flow.paused_until(), later.plus_ms(2 * SMPP_PAUSE_MS_MIN));
        for _ in 0..20 {
            flow.throttled(flow.paused_until());
        }
        assert_eq!(flow.allowed(), 1);
    }

    #[test]
    fn the_flow_grows_by_one_with_every_round_up_to_the_window() {
        let mut flow = SubmitFlow::new(4);
        flow.throttled(Timestamp::default());
        assert_eq!(flow.allowed(), 2);
        flow.accepted();
        assert_eq!(flow.allowed(), 2);
        flow.accepted();
        assert_eq!(flow.allowed(), 3);
        for _ in 0..100 {
            flow.accepted();
        }
        assert_eq!(flow.allowed(), 4);
    }
}
