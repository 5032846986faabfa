//! What does the machine do with each answer, and when?

use std::ops::Range;

use super::*;

const RULES: LeaseRules = LeaseRules {
    lease_ms: 10_000,
    heartbeat_ms: 2_000,
};

/// All leases: that of the active node, and those of deliveries.
const ALL: usize = 1 + PARTITIONS as usize;

const FREE: LeaseHolder = LeaseHolder::Nobody {
    was_given_up_here: false,
    is_overdue: false,
};

#[test]
fn free_leases_are_taken_and_renewed() {
    let mut node = Fixture::new();
    assert_eq!(node.due(0), [beat()]);
    assert_eq!(node.see(10, &alone(FREE, 6)), [acquire(0..ALL, 6, 9_000)]);
    assert_eq!(
        node.answer(40, acquired(0..ALL, 7)),
        [hold_until(10 + 9_000), begin(0..ALL, 7)]
    );
    assert_eq!(node.due(539), []);
    assert_eq!(node.due(540), [beat()]);
    assert_eq!(node.see(600, &held(ALL, 7)), [hold_until(540 + 9_000)]);
    assert_eq!(node.next(), Some(2_540));
}

#[test]
fn leases_of_another_node_are_looked_at_until_they_are_free() {
    let mut node = Fixture::new();
    node.due(0);
    assert_eq!(node.see(10, &alone(LeaseHolder::Other, 3)), []);
    assert_eq!(node.due(509), []);
    assert_eq!(node.due(510), [beat()]);
    node.see(520, &alone(FREE, 3));
    assert_eq!(node.answer(540, acquired(0..0, 4)), []);
    assert_eq!(node.role(540), NodeRole::Standby);
    assert_eq!(node.due(1_040), [beat()]);
}

#[test]
fn a_holder_that_cannot_renew_falls_silent_and_goes_on_if_nobody_was_in_between() {
    let mut node = active(7);
    assert_eq!(node.due(2_000), [beat()]);
    assert_eq!(node.answer(4_000, LeaseAnswer::None), []);
    assert_eq!(node.role(8_999), NodeRole::Active);
    assert_eq!(node.role(9_000), NodeRole::Silent);
    assert_eq!(node.due(9_500), [beat()]);
    assert_eq!(node.see(9_600, &held(ALL, 7)), [hold_until(18_500)]);
    assert_eq!(node.role(9_600), NodeRole::Active);
}

#[test]
fn a_holder_ends_if_another_node_has_one_of_its_leases_or_had_it() {
    let mut by_another = held(ALL, 7);
    by_another.leases[ALL - 1].holder = LeaseHolder::Other;
    let mut in_another_epoch = held(ALL, 7);
    in_another_epoch.leases[3].epoch = 9;
    for seen in [by_another, in_another_epoch] {
        let mut node = active(7);
        node.due(2_000);
        let ends = [hold_until(0), LeaseEffect::End];
        assert_eq!(node.see(2_010, &seen), ends);
        assert_eq!((node.next(), node.due(60_000)), (None, vec![]));
        assert_eq!(node.role(2_010), NodeRole::Ended);
    }
}

#[test]
fn leases_that_are_granted_too_late_are_renewed_before_they_are_used() {
    let mut node = Fixture::new();
    node.due(0);
    node.see(0, &alone(FREE, 6));
    assert_eq!(node.answer(9_000, acquired(0..ALL, 7)), [hold_until(9_000)]);
    assert_eq!(node.due(9_500), [beat()]);
    assert_eq!(
        node.see(9_510, &held(ALL, 7)),
        [hold_until(18_500), begin(0..ALL, 7)]
    );
}

#[test]
fn leases_whose_grant_was_not_answered_are_used_once_they_are_seen() {
    let mut node = Fixture::new();
    node.due(0);
    node.see(0, &alone(FREE, 6));
    assert_eq!(node.answer(9_000, LeaseAnswer::None), []);
    assert_eq!(node.due(9_500), [beat()]);
    assert_eq!(
        node.see(9_510, &held(ALL, 7)),
        [hold_until(18_500), begin(0..ALL, 7)]
    );
}

#[test]
fn nothing_leaves_any_more_when_the_leases_are_given_up() {
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
        sharing: vec![],
        ..alone(
            LeaseHolder::Nobody {
                was_given_up_here: true,
                is_overdue: false,
            },
            7,
        )
    };
    let with_others = LeaseSight {
        has_others: true,
        ..given_up.clone()
    };
    let mut node = Fixture::new();
    node.due(0);
    assert_eq!(node.see(10, &with_others), []);
    node.due(510);
    assert_eq!(node.see(520, &given_up).len(), 1);
    // Nodes that share deliveries take their part of those all the same.
    let mut node = Fixture::new();
    node.due(0);
    let shared = LeaseSight {
        sharing: vec![id(1), id(2)],
        ..with_others
    };
    assert_eq!(node.see(10, &shared), [acquire(1..9, 7, 9_000)]);
}

#[test]
fn a_node_that_others_cannot_reach_takes_everything_or_nothing() {
    let unreachable = |sight: LeaseSight| LeaseSight {
        sharing: vec![],
        ..sight
    };
    let mut node = Fixture::new();
    node.due(0);
    let mut one_is_held = unreachable(alone(FREE, 6));
    one_is_held.leases[5].holder = LeaseHolder::Other;
    assert_eq!(node.see(10, &one_is_held), []);
    node.due(510);
    let request = LeaseRequest::Acquire {
        leases: leases(0..ALL, 6),
        is_whole: true,
    };
    assert_eq!(
        node.see(520, &unreachable(alone(FREE, 6))),
        [ask(request, 9_000)]
    );
}

#[test]
fn the_active_node_takes_the_leases_that_a_newer_schema_brings_whether_others_reach_it_or_not() {
    for sharing in [vec![], vec![id(1)]] {
        let mut node = Fixture::new();
        node.due(0);
        let mut before = LeaseSight {
            sharing: vec![],
            ..alone(FREE, 6)
        };
        before.leases.truncate(1);
        node.see(0, &before);
        node.answer(0, acquired(0..1, 7));
        node.due(500);
        let mut after = LeaseSight {
            sharing,
            ..alone(FREE, 0)
        };
        after.leases[0] = held(1, 7).leases[0];
        assert_eq!(
            node.see(510, &after),
            [hold_until(9_500), acquire(1..ALL, 0, 2_000)]
        );
    }
}

#[test]
fn a_node_gives_up_the_next_partition_when_the_last_one_is_taken() {
    let mut node = active(7);
    node.due(2_000);
    let mut shared = shared(12);
    node.0.held.retain(|it, _| *it < lease(12));
    shared.leases[12].holder = FREE;
    assert_eq!(node.see(2_010, &shared), [hold_until(11_000)]);
    assert_eq!(node.due(2_510), [beat()]);
    shared.leases[12].holder = LeaseHolder::Other;
    assert_eq!(
        node.see(2_520, &shared),
        [hold_until(11_510), LeaseEffect::Give(Partition(10))]
    );
}

#[test]
fn a_node_gives_up_one_partition_after_the_other_while_it_has_more_than_its_part() {
    let mut node = active(7);
    node.due(2_000);
    let gives = |partition| LeaseEffect::Give(Partition(partition));
    assert_eq!(
        node.see(2_010, &shared(ALL)),
        [hold_until(11_000), gives(15)]
    );
    // It goes on to renew its leases while it stops.
    assert_eq!(node.due(4_000), [beat()]);
    assert_eq!(node.see(4_010, &shared(ALL)), [hold_until(13_000)]);
    for partition in (8..16).rev() {
        let now = 5_000 + 100 * u64::from(16 - partition);
        node.given(now, Partition(partition));
        let give_up = LeaseRequest::GiveUp(LeaseId::Partition(Partition(partition)), 7);
        assert_eq!(node.due(now), [ask(give_up, 2_000)]);
        assert_eq!(node.answer(now + 10, LeaseAnswer::GivenUp), []);
        assert_eq!(node.due(now + 10), [beat()]);
        let next = match partition {
            8 => vec![hold_until(now + 9_010)],
            _ => vec![hold_until(now + 9_010), gives(partition - 1)],
        };
        let left = 1 + usize::from(partition);
        assert_eq!(node.see(now + 20, &shared(left)), next);
    }
}

#[test]
fn a_partition_that_may_not_be_given_up_yet_is_neither_held_nor_lost() {
    let mut node = active(7);
    node.due(2_000);
    node.see(2_010, &shared(ALL));
    node.due(4_000);
    // The renewal under way still has it.
    node.given(4_005, Partition(15));
    assert_eq!(node.see(4_010, &shared(ALL)), [hold_until(13_000)]);
    let last = LeaseId::Partition(Partition(15));
    let give_up = || [ask(LeaseRequest::GiveUp(last, 7), 2_000)];
    assert_eq!(node.due(4_510), give_up());
    assert_eq!(node.answer(6_510, LeaseAnswer::None), []);
    assert_eq!(node.due(7_010), give_up());
}

#[test]
fn a_node_takes_its_part_of_what_is_free_and_becomes_active_first() {
    let mut node = Fixture::new();
    node.due(0);
    let three = LeaseSight {
        sharing: vec![id(0), id(1), id(2)],
        has_others: true,
        ..alone(FREE, 6)
    };
    assert_eq!(node.see(10, &three), [acquire(0..6, 6, 9_000)]);
    node.answer(20, acquired(0..3, 7));
    assert_eq!(node.due(520), [beat()]);
    let mut three_left = three;
    for own in &mut three_left.leases[..3] {
        *own = SeenLease {
            epoch: 7,
            holder: LeaseHolder::Own,
            ..*own
        };
    }
    // Its own are to be renewed meanwhile.
    assert_eq!(
        node.see(530, &three_left),
        [hold_until(9_520), acquire(3..6, 6, 2_000)]
    );
}

#[test]
fn what_nobody_takes_is_taken_by_a_node_that_has_its_part() {
    let mut node = active(7);
    node.due(2_000);
    let mut sight = shared(9);
    node.0.held.retain(|it, _| *it < lease(9));
    for other in &mut sight.leases[9..] {
        other.holder = FREE;
    }
    assert_eq!(node.see(2_010, &sight), [hold_until(11_000)]);
    node.due(4_000);
    sight.leases[12].holder = LeaseHolder::Nobody {
        was_given_up_here: false,
        is_overdue: true,
    };
    assert_eq!(
        node.see(4_010, &sight),
        [hold_until(13_000), acquire(12..13, 7, 2_000)]
    );
}

#[test]
fn a_node_that_only_delivers_looks_often_whether_it_may_become_active() {
    let mut node = Fixture::new();
    node.due(0);
    let mut sight = LeaseSight {
        sharing: vec![id(0), id(1)],
        has_others: true,
        ..alone(LeaseHolder::Other, 7)
    };
    for own in &mut sight.leases[9..] {
        own.holder = LeaseHolder::Own;
    }
    node.see(10, &sight);
    assert_eq!(node.role(10), NodeRole::Standby);
    assert_eq!(node.due(510), [beat()]);
    sight.leases[0].holder = FREE;
    assert_eq!(
        node.see(520, &sight),
        [hold_until(9_510), acquire(0..1, 7, 2_000)]
    );
    let began = LeaseEffect::Begin(leases(0..1, 8));
    assert_eq!(
        node.answer(530, acquired(0..1, 8)),
        [hold_until(9_510), began]
    );
    assert_eq!(node.role(530), NodeRole::Active);
}

#[test]
fn the_parts_of_all_nodes_are_all_partitions() {
    for count in 1..=20 {
        let nodes: Vec<NodeId> = (0..count).map(id).collect();
        let parts = nodes.iter().map(|node| {
            let lease = NodeLease::new(SteadyTime(0), *node, RULES);
            lease.quota(&nodes)
        });
        let parts: Vec<usize> = parts.collect();
        assert_eq!(parts.iter().sum::<usize>(), ALL - 1, "{count}");
        let (least, most) = (parts.iter().min(), parts.iter().max());
        assert!(most.unwrap() - least.unwrap() <= 1, "{count}");
    }
}

#[test]
fn a_node_is_drained_once_whether_it_is_active_or_stands_by() {
    let drained = |sight| LeaseSight {
        is_draining: true,
        sharing: vec![],
        ..sight
    };
    let mut node = active(7);
    node.due(2_000);
    assert_eq!(
        node.see(2_010, &drained(held(ALL, 7))),
        [hold_until(11_000), LeaseEffect::Drain]
    );
    let request = LeaseRequest::Beat { is_draining: true };
    assert_eq!(node.due(4_000), [ask(request, 2_000)]);
    assert_eq!(
        node.see(4_010, &drained(held(ALL, 7))),
        [hold_until(13_000)]
    );
    let mut node = Fixture::new();
    node.due(0);
    assert_eq!(node.see(10, &drained(alone(FREE, 7))), [LeaseEffect::Drain]);
}

#[test]
fn a_node_that_is_drained_gives_up_its_deliveries_first_if_others_share_them() {
    let mut node = active(7);
    let drained = |own| LeaseSight {
        is_draining: true,
        sharing: vec![id(2)],
        has_others: true,
        ..held(own, 7)
    };
    let mut now = 2_000;
    for left in (1..ALL).rev() {
        node.due(now);
        let partition = Partition(left as u8 - 1);
        let seen = node.see(now, &drained(left + 1));
        assert_eq!(
            seen,
            [hold_until(now + 9_000), LeaseEffect::Give(partition)]
        );
        now += 100;
        node.given(now, partition);
        node.due(now);
        node.answer(now, LeaseAnswer::GivenUp);
    }
    node.due(now);
    assert_eq!(
        node.see(now, &drained(1)),
        [hold_until(now + 9_000), LeaseEffect::Drain]
    );
}

#[test]
fn a_drain_does_not_wait_for_nodes_that_take_nothing() {
    let mut node = active(7);
    node.due(2_000);
    let mut sight = LeaseSight {
        is_draining: true,
        sharing: vec![id(2)],
        has_others: true,
        ..held(ALL - 1, 7)
    };
    node.0.held.remove(&lease(ALL - 1));
    sight.leases[ALL - 1].holder = FREE;
    assert_eq!(node.see(2_010, &sight), [hold_until(11_000)]);
    node.due(2_510);
    sight.leases[ALL - 1].holder = LeaseHolder::Nobody {
        was_given_up_here: true,
        is_overdue: true,
    };
    assert_eq!(
        node.see(2_520, &sight),
        [hold_until(11_510), LeaseEffect::Drain]
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

/// The node with the id 1.
struct Fixture(NodeLease);

impl Fixture {
    fn new() -> Self {
        Self(NodeLease::new(SteadyTime(0), id(1), RULES))
    }

    fn due(&mut self, at: u64) -> Vec<LeaseEffect> {
        let mut out = vec![];
        self.0.handle_timeout(SteadyTime(at), &mut out);
        out
    }

    fn see(&mut self, at: u64, sight: &LeaseSight) -> Vec<LeaseEffect> {
        self.answer(at, LeaseAnswer::Seen(sight.clone()))
    }

    fn answer(&mut self, at: u64, answer: LeaseAnswer) -> Vec<LeaseEffect> {
        let mut out = vec![];
        self.0.handle_answer(SteadyTime(at), answer, &mut out);
        out
    }

    fn given(&mut self, at: u64, partition: Partition) {
        self.0.given(SteadyTime(at), partition);
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

/// A node that was granted all leases at 0, and has its next beat at 2,000.
fn active(epoch: u64) -> Fixture {
    let mut node = Fixture::new();
    node.due(0);
    node.see(0, &held(ALL, epoch));
    node
}

fn id(number: u8) -> NodeId {
    NodeId::from_bytes([number; 16])
}

/// What the only node sees of leases that all are of the same.
fn alone(holder: LeaseHolder, epoch: u64) -> LeaseSight {
    let seen = |place| SeenLease {
        id: lease(place),
        epoch,
        holder,
    };
    LeaseSight {
        leases: (0..ALL).map(seen).collect(),
        sharing: vec![id(1)],
        has_others: false,
        is_draining: false,
    }
}

/// What the only node sees that has so many, the first ones; the others are those of another one.
fn held(count: usize, epoch: u64) -> LeaseSight {
    let mut sight = alone(LeaseHolder::Own, epoch);
    for other in &mut sight.leases[count..] {
        other.holder = LeaseHolder::Other;
    }
    sight
}

/// What one of two nodes sees that share the deliveries, and that has so many leases.
fn shared(count: usize) -> LeaseSight {
    LeaseSight {
        sharing: vec![id(1), id(2)],
        has_others: true,
        ..held(count, 7)
    }
}

/// The lease at a place in the order.
fn lease(place: usize) -> LeaseId {
    match place.checked_sub(1) {
        None => LeaseId::Active,
        Some(partition) => LeaseId::Partition(Partition(partition as u8)),
    }
}

fn leases(range: Range<usize>, epoch: u64) -> Vec<(LeaseId, u64)> {
    range.map(|place| (lease(place), epoch)).collect()
}

fn beat() -> LeaseEffect {
    ask(LeaseRequest::Beat { is_draining: false }, 2_000)
}

fn acquire(range: Range<usize>, seen: u64, patience_ms: u64) -> LeaseEffect {
    let request = LeaseRequest::Acquire {
        leases: leases(range, seen),
        is_whole: false,
    };
    ask(request, patience_ms)
}

fn acquired(range: Range<usize>, epoch: u64) -> LeaseAnswer {
    LeaseAnswer::Acquired(leases(range, epoch))
}

fn begin(range: Range<usize>, epoch: u64) -> LeaseEffect {
    LeaseEffect::Begin(leases(range, epoch))
}

fn ask(request: LeaseRequest, patience_ms: u64) -> LeaseEffect {
    LeaseEffect::Ask(request, patience_ms)
}

fn hold_until(at: u64) -> LeaseEffect {
    LeaseEffect::HoldUntil(SteadyTime(at))
}
