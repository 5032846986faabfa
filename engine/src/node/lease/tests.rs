//! What does the machine do with each answer, and when?

use super::*;

const RULES: LeaseRules = LeaseRules {
    lease_ms: 10_000,
    heartbeat_ms: 2_000,
};

#[test]
fn a_free_lease_is_taken_and_renewed() {
    let mut node = Fixture::new();
    assert_eq!(node.due(0), [ask(LeaseRequest::Look, 2_000)]);
    let acquire = LeaseRequest::Acquire { seen: 6 };
    assert_eq!(node.answer(10, free(6)), [ask(acquire, 9_000)]);
    assert_eq!(
        node.answer(40, LeaseAnswer::Granted(7)),
        [hold_until(10 + 9_000), LeaseEffect::Begin(7)]
    );
    assert_eq!(node.due(2_009), []);
    assert_eq!(node.due(2_010), [ask(renew(7), 2_000)]);
    assert_eq!(node.answer(2_300, renewed()), [hold_until(2_010 + 9_000)]);
    assert_eq!(node.next(), Some(4_010));
}

#[test]
fn a_lease_of_another_node_is_looked_at_until_it_is_free() {
    let mut node = Fixture::new();
    node.due(0);
    let held = LeaseSight {
        is_free: false,
        ..sight(3)
    };
    assert_eq!(node.answer(10, LeaseAnswer::Seen(held)), []);
    assert_eq!(node.due(509), []);
    assert_eq!(node.due(510), [ask(LeaseRequest::Look, 2_000)]);
    node.answer(520, free(3));
    assert_eq!(node.answer(540, LeaseAnswer::Taken), []);
    assert_eq!(node.role(540), NodeRole::Standby);
    assert_eq!(node.due(1_040), [ask(LeaseRequest::Look, 2_000)]);
}

#[test]
fn a_holder_that_cannot_renew_falls_silent_and_goes_on_if_nobody_was_in_between() {
    let mut node = active(7);
    assert_eq!(node.due(2_000), [ask(renew(7), 2_000)]);
    assert_eq!(node.answer(4_000, LeaseAnswer::None), []);
    assert_eq!(node.role(8_999), NodeRole::Active);
    assert_eq!(node.role(9_000), NodeRole::Silent);
    assert_eq!(node.due(9_500), [ask(renew(7), 2_000)]);
    assert_eq!(node.answer(9_600, renewed()), [hold_until(18_500)]);
    assert_eq!(node.role(9_600), NodeRole::Active);
}

#[test]
fn a_holder_that_was_superseded_ends() {
    let mut node = active(7);
    node.due(2_000);
    assert_eq!(
        node.answer(2_010, LeaseAnswer::Superseded),
        [hold_until(0), LeaseEffect::End]
    );
    assert_eq!((node.next(), node.due(60_000)), (None, vec![]));
    assert_eq!(node.role(2_010), NodeRole::Ended);
}

#[test]
fn a_lease_that_is_granted_too_late_is_renewed_before_it_is_used() {
    let mut node = Fixture::new();
    node.due(0);
    node.answer(0, free(6));
    assert_eq!(
        node.answer(9_000, LeaseAnswer::Granted(7)),
        [hold_until(9_000)]
    );
    assert_eq!(node.due(9_500), [ask(renew(7), 2_000)]);
    assert_eq!(
        node.answer(9_510, renewed()),
        [hold_until(18_500), LeaseEffect::Begin(7)]
    );
}

#[test]
fn nothing_leaves_any_more_when_the_lease_is_given_up() {
    let mut node = active(7);
    node.due(2_000);
    let release = || [hold_until(0), ask(LeaseRequest::Release, 2_000)];
    assert_eq!(node.release(2_100), release());
    assert_eq!(node.release(2_200), []);
    assert_eq!(
        node.answer(2_300, LeaseAnswer::Released),
        [LeaseEffect::Left]
    );
    let mut node = Fixture::new();
    assert_eq!(node.release(0), release());
    assert_eq!(node.answer(2_000, LeaseAnswer::None), [LeaseEffect::Left]);
}

#[test]
fn what_was_given_up_in_its_place_is_left_to_others() {
    let given_up = LeaseSight {
        was_given_up_here: true,
        ..sight(7)
    };
    let with_others = LeaseSight {
        has_others: true,
        ..given_up
    };
    let mut node = Fixture::new();
    node.due(0);
    assert_eq!(node.answer(10, LeaseAnswer::Seen(with_others)), []);
    node.due(510);
    assert_eq!(
        node.answer(520, LeaseAnswer::Seen(given_up)),
        [ask(LeaseRequest::Acquire { seen: 7 }, 9_000)]
    );
}

#[test]
fn a_node_is_drained_once_whether_it_is_active_or_stands_by() {
    let mut node = active(7);
    node.due(2_000);
    let drained = LeaseAnswer::Renewed { is_draining: true };
    assert_eq!(
        node.answer(2_010, drained),
        [hold_until(11_000), LeaseEffect::Drain]
    );
    let request = LeaseRequest::Renew {
        epoch: 7,
        is_draining: true,
    };
    assert_eq!(node.due(4_000), [ask(request, 2_000)]);
    assert_eq!(node.answer(4_010, drained), [hold_until(13_000)]);
    let mut node = Fixture::new();
    node.due(0);
    let sight = LeaseSight {
        is_draining: true,
        ..sight(7)
    };
    assert_eq!(
        node.answer(10, LeaseAnswer::Seen(sight)),
        [LeaseEffect::Drain]
    );
}

#[test]
fn a_short_lease_has_a_margin_too() {
    for (lease_ms, term_ms) in [(10_000, 9_000), (1_000, 900), (15, 13), (1, 0)] {
        let rules = LeaseRules {
            lease_ms,
            heartbeat_ms: 1,
        };
        assert_eq!(rules.term_ms(), term_ms);
    }
}

struct Fixture(NodeLease);

impl Fixture {
    fn new() -> Self {
        Self(NodeLease::new(SteadyTime(0), RULES))
    }

    fn due(&mut self, at: u64) -> Vec<LeaseEffect> {
        let mut out = vec![];
        self.0.handle_timeout(SteadyTime(at), &mut out);
        out
    }

    fn answer(&mut self, at: u64, answer: LeaseAnswer) -> Vec<LeaseEffect> {
        let mut out = vec![];
        self.0.handle_answer(SteadyTime(at), answer, &mut out);
        out
    }

    fn release(&mut self, at: u64) -> Vec<LeaseEffect> {
        let mut out = vec![];
        self.0.release(SteadyTime(at), &mut out);
        out
    }

    fn role(&self, at: u64) -> NodeRole {
        self.0.role(SteadyTime(at))
    }

    fn next(&self) -> Option<u64> {
        self.0.next_timeout().map(|at| at.0)
    }
}

/// A node that was granted the lease at 0.
fn active(epoch: u64) -> Fixture {
    let mut node = Fixture::new();
    node.due(0);
    node.answer(0, free(epoch - 1));
    node.answer(0, LeaseAnswer::Granted(epoch));
    node
}

fn sight(epoch: u64) -> LeaseSight {
    LeaseSight {
        epoch,
        is_free: true,
        was_given_up_here: false,
        has_others: false,
        is_draining: false,
    }
}

fn free(epoch: u64) -> LeaseAnswer {
    LeaseAnswer::Seen(sight(epoch))
}

fn renewed() -> LeaseAnswer {
    LeaseAnswer::Renewed { is_draining: false }
}

fn renew(epoch: u64) -> LeaseRequest {
    LeaseRequest::Renew {
        epoch,
        is_draining: false,
    }
}

fn ask(request: LeaseRequest, patience_ms: u64) -> LeaseEffect {
    LeaseEffect::Ask(request, patience_ms)
}

fn hold_until(at: u64) -> LeaseEffect {
    LeaseEffect::HoldUntil(SteadyTime(at))
}
