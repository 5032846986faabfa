//! What does a destination get, in which order, how often is it tried, and what is left after the
//! service fell?

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "forwarding/fixture.rs"]
mod fixture;

use engine::delivery::destination::{DestinationState, EventTypes};
use engine::delivery::forwarding::{DeliveryOutcome, NotActive, ReplayUnderWay};
use engine::event::EventType;
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_oneof, proptest};

use fixture::{ForwardingFixture, WAITS_MS, not_taken};

#[test]
fn events_of_a_device_are_delivered_one_by_one_and_of_many_side_by_side() {
    let mut fixture = ForwardingFixture::open();
    fixture.happen(1, 3);
    fixture.happen(2, 2);
    assert_eq!(fixture.under_way(), ["1/1", "2/1"]);
    fixture.end("1/1", DeliveryOutcome::Delivered);
    assert_eq!(fixture.under_way(), ["1/2", "2/1"]);
    fixture.end("2/1", DeliveryOutcome::Delivered);
    fixture.end("2/2", DeliveryOutcome::Delivered);
    assert_eq!(fixture.under_way(), ["1/2"]);
    fixture.end_all(&DeliveryOutcome::Delivered);
    assert_eq!(fixture.taken(), ["1/1", "2/1", "2/2", "1/2", "1/3"]);
    assert_eq!(fixture.state(), DestinationState::Active);
}

#[test]
fn no_more_are_under_way_than_may_be() {
    let mut fixture = ForwardingFixture::open();
    for device in 0..50 {
        fixture.happen(device, 2);
    }
    assert_eq!(fixture.under_way().len(), fixture::PARALLEL_MAX);
    fixture.end_all(&DeliveryOutcome::Delivered);
    assert_eq!(fixture.taken().len(), 100);
    assert_eq!(fixture.most_under_way, fixture::PARALLEL_MAX);
}

#[test]
fn what_is_not_wanted_is_passed_over() {
    let mut fixture = ForwardingFixture::telling([EventType::Lifecycle].into_iter().collect());
    fixture.happen_as(1, EventType::TelemetryData);
    fixture.happen_as(1, EventType::Lifecycle);
    fixture.happen_as(1, EventType::TelemetryData);
    assert_eq!(fixture.under_way(), ["1/2"]);
    fixture.end_all(&DeliveryOutcome::Delivered);
    fixture.pass_time(1_000);
    assert_eq!(fixture.passed(), 3);
    fixture.restart_service();
    assert!(fixture.under_way().is_empty(), "nothing is left to be read");
}

#[test]
fn what_is_not_taken_is_tried_again_while_other_devices_go_on() {
    let mut fixture = ForwardingFixture::open();
    fixture.happen(1, 2);
    fixture.happen(2, 2);
    fixture.end("1/1", not_taken());
    fixture.end_all(&DeliveryOutcome::Delivered);
    assert_eq!(fixture.taken(), ["2/1", "2/2"], "1/2 waits behind 1/1");
    fixture.pass_time(WAITS_MS[0] - 1);
    assert!(fixture.under_way().is_empty());
    fixture.pass_time(1);
    assert_eq!(fixture.under_way(), ["1/1"]);
    fixture.end_all(&DeliveryOutcome::Delivered);
    assert_eq!(fixture.taken(), ["2/1", "2/2", "1/1", "1/2"]);
    fixture.pass_time(1_000);
    assert!(fixture.kept.held.is_empty());
}

#[test]
fn tries_are_counted_across_a_fall_of_the_service() {
    let mut fixture = ForwardingFixture::open();
    fixture.happen(1, 1);
    fixture.end("1/1", not_taken());
    for wait_ms in WAITS_MS {
        fixture.restart_service();
        fixture.pass_time(wait_ms);
        fixture.end("1/1", not_taken());
    }
    assert_eq!(fixture.state(), DestinationState::Failed);
    assert_eq!(fixture.dead(), ["1/1 after 5"]);
    assert_eq!(fixture.log, ["CloudIntegrator[IntegrationDisabled]"]);
}

#[test]
fn an_exception_ahead_of_its_place_is_counted_once() {
    let mut fixture = ForwardingFixture::open();
    let neighbour = fixture::neighbour_of(1);
    fixture.happen(1, 1);
    fixture.happen(neighbour, 1);
    let of_neighbour = format!("{neighbour}/1");
    fixture.end(&of_neighbour, not_taken());
    fixture.pass_time(WAITS_MS[0]);
    fixture.end(&of_neighbour, DeliveryOutcome::Delivered);
    fixture.pass_time(1_000);
    assert!(fixture.kept.held.is_empty() && fixture.passed() == 0);
    fixture.restart_service();
    fixture.end_all(&DeliveryOutcome::Delivered);
    fixture.pass_time(1_000);
    assert_eq!(fixture.passed(), 2);
}

#[test]
fn what_waits_behind_an_event_that_would_be_read_again_is_no_exception() {
    let mut fixture = ForwardingFixture::open();
    fixture.fail();
    fixture.restart();
    fixture.happen(1, 1);
    assert_eq!(fixture.under_way(), ["1/2"]);
    assert_eq!(fixture.replay(), Ok(()));
    fixture.happen(1, 1);
    assert_eq!(fixture.kept.held.len(), 1, "1/1 alone");
    fixture.end_all(&DeliveryOutcome::Delivered);
    fixture.pass_time(1_000);
    assert_eq!(fixture.taken(), ["1/2", "1/1", "1/3"]);
    assert_eq!(fixture.passed(), 3);
}

#[test]
fn a_failed_destination_gets_dead_letters_until_it_is_restarted() {
    let mut fixture = ForwardingFixture::open();
    fixture.fail();
    fixture.happen(2, 2);
    assert!(fixture.under_way().is_empty());
    assert_eq!(
        fixture.dead(),
        ["1/1 after 5", "2/1 after 0", "2/2 after 0"]
    );
    assert_eq!(fixture.replay(), Err(NotActive));

    fixture.restart();
    assert_eq!(fixture.state(), DestinationState::Active);
    assert_eq!(
        fixture.log.last().unwrap(),
        "CloudIntegrator[IntegrationRestarted]"
    );
    fixture.happen(2, 1);
    fixture.end_all(&DeliveryOutcome::Delivered);
    assert_eq!(fixture.taken(), ["2/3"]);
    assert_eq!(fixture.dead().len(), 3, "they wait for a replay");
}

#[test]
fn what_was_under_way_at_the_failure_is_set_aside_when_the_service_falls() {
    let mut fixture = ForwardingFixture::open();
    fixture.happen(2, 1);
    fixture.fail();
    assert_eq!(fixture.under_way(), ["2/1"]);
    fixture.restart_service();
    assert_eq!(fixture.dead(), ["2/1 after 0", "1/1 after 5"]);
    assert!(fixture.kept.held.is_empty() && fixture.under_way().is_empty());
    assert_eq!(fixture.passed(), 2);
}

#[test]
fn a_discarded_dead_letter_is_not_delivered_and_holds_nothing_up() {
    let mut fixture = ForwardingFixture::open();
    fixture.fail();
    fixture.happen(1, 2);
    assert_eq!(fixture.dead().len(), 3);
    assert_eq!(fixture.discard("1/1"), Ok(()));
    assert_eq!(fixture.dead(), ["1/2 after 0", "1/3 after 0"]);
    assert_eq!(fixture.passed(), 3);
    fixture.restart_service();
    fixture.restart();
    assert_eq!(fixture.replay(), Ok(()));
    fixture.heal();
    assert_eq!(fixture.taken(), ["1/2", "1/3"]);
    fixture.assert_complete();
}

#[test]
fn nothing_is_discarded_while_dead_letters_are_taken_up_again() {
    let mut fixture = ForwardingFixture::open();
    fixture.fail();
    fixture.restart();
    assert_eq!(fixture.discard_in_replay(), Err(ReplayUnderWay));
}

#[test]
fn a_replay_delivers_dead_letters_in_order_and_before_anything_new() {
    let mut fixture = ForwardingFixture::open();
    fixture.fail();
    fixture.happen(2, 600);
    fixture.restart();
    assert_eq!(fixture.replay(), Ok(()));
    fixture.happen(2, 1);
    fixture.end_all(&DeliveryOutcome::Delivered);
    let mut expected = vec!["1/1".to_owned()];
    expected.extend((1..=601).map(|number| format!("2/{number}")));
    let mut taken = fixture.taken();
    taken.sort_by_key(|name| name.starts_with("2/"));
    assert_eq!(taken, expected);
    fixture.pass_time(1_000);
    assert!(fixture.dead().is_empty() && fixture.kept.held.is_empty());
}

#[test]
fn a_replay_is_over_before_what_was_read_before_it_goes_on() {
    let mut fixture = ForwardingFixture::open();
    fixture.fail();
    fixture.happen(2, 1);
    fixture.happen(3, 600);
    fixture.happen(2, 1);
    fixture.restart();
    fixture.happen(2, 2);
    assert_eq!(fixture.replay(), Ok(()));
    for number in [3, 1] {
        fixture.end(&format!("2/{number}"), DeliveryOutcome::Delivered);
    }
    assert!(!fixture.under_way().contains(&"2/4".to_owned()));
    fixture.heal();
    let mut taken = fixture.taken();
    taken.retain(|name| name.starts_with("2/"));
    assert_eq!(taken, ["2/3", "2/1", "2/2", "2/4"]);
    assert!(fixture.dead().is_empty());
}

#[test]
fn a_replay_goes_on_after_a_fall_of_the_service() {
    let mut fixture = ForwardingFixture::open();
    fixture.fail();
    fixture.happen(2, 600);
    fixture.restart();
    assert_eq!(fixture.replay(), Ok(()));
    fixture.end("2/1", DeliveryOutcome::Delivered);
    fixture.restart_service();
    fixture.end_all(&DeliveryOutcome::Delivered);
    assert!(fixture.dead().is_empty());
    assert_eq!(fixture.taken_once().len(), 601);
}

#[test]
fn a_replay_ends_also_where_something_of_every_device_is_being_tried_again() {
    let mut fixture = ForwardingFixture::open();
    fixture.fail();
    for device in 1..=8 {
        fixture.happen(device, 1);
    }
    fixture.restart();
    for device in 1..=8 {
        fixture.happen(device, 1);
    }
    fixture.end_all(&not_taken());
    assert_eq!(fixture.replay(), Ok(()));
    fixture.heal();
    assert!(fixture.dead().is_empty() && fixture.kept.held.is_empty());
    assert_eq!(fixture.taken_once().len(), 17);
}

#[test]
fn an_endpoint_that_is_down_is_not_called_for_each_device() {
    let mut fixture = ForwardingFixture::open();
    for device in 0..400 {
        fixture.happen(device, 1);
    }
    fixture.end_all(&not_taken());
    let tried = fixture.tries;
    assert!(tried < 2 * fixture::PARALLEL_MAX, "{tried} tries");
    fixture.pass_time(WAITS_MS[0]);
    fixture.end_all(&DeliveryOutcome::Delivered);
    assert_eq!(fixture.taken_once().len(), 400);
}

#[test]
fn beyond_its_bound_the_oldest_are_set_aside_and_the_customer_is_told_once() {
    let mut fixture = ForwardingFixture::open();
    for device in 0..200 {
        fixture.happen(device, 2);
    }
    fixture.note_backlog(fixture::BACKLOG_MAX + 50);
    fixture.note_backlog(fixture::BACKLOG_MAX + 40);
    assert_eq!(fixture.log, ["CloudIntegrator[EventsSetAside]"]);
    fixture.happen(7, 300);
    fixture.end_all(&DeliveryOutcome::Delivered);
    let aside = 50 + usize::try_from(fixture::BACKLOG_MAX / 10).unwrap();
    assert_eq!(fixture.dead().len(), aside);
    assert_eq!(fixture.taken_once().len() + aside, 700);
}

#[test]
fn what_comes_after_too_much_was_taken_is_not_set_aside() {
    let mut fixture = ForwardingFixture::telling([EventType::Lifecycle].into_iter().collect());
    for _ in 0..150 {
        fixture.happen_as(1, EventType::TelemetryData);
    }
    fixture.note_backlog(fixture::BACKLOG_MAX + 50);
    fixture.note_backlog(0);
    for _ in 0..80 {
        fixture.happen_as(2, EventType::Lifecycle);
    }
    fixture.end_all(&DeliveryOutcome::Delivered);
    assert!(fixture.dead().is_empty());
    assert_eq!(fixture.taken_once().len(), 80);
}

#[test]
fn what_is_not_wanted_is_part_of_too_much() {
    let mut fixture = ForwardingFixture::telling([EventType::Lifecycle].into_iter().collect());
    fixture.note_backlog(fixture::BACKLOG_MAX + 50);
    for _ in 0..60 {
        fixture.happen_as(1, EventType::TelemetryData);
    }
    fixture.happen_as(1, EventType::Lifecycle);
    assert_eq!(fixture.under_way(), ["1/61"]);
}

#[test]
fn a_device_whose_events_are_refused_does_not_keep_others_waiting_however_much_it_says() {
    let mut fixture = ForwardingFixture::open();
    fixture.happen(1, 1);
    fixture.end("1/1", not_taken());
    fixture.happen(1, 5_000);
    fixture.happen(2, 3);
    fixture.end_all(&DeliveryOutcome::Delivered);
    assert_eq!(fixture.taken(), ["2/1", "2/2", "2/3"]);
    fixture.pass_time(WAITS_MS[0]);
    fixture.end_all(&DeliveryOutcome::Delivered);
    assert_eq!(fixture.taken_once().len(), 5_004);
}

#[test]
fn an_event_that_is_kept_no_more_is_passed_over() {
    let mut fixture = ForwardingFixture::open();
    fixture.happen(1, 2);
    fixture.end("1/1", DeliveryOutcome::Gone);
    fixture.end_all(&DeliveryOutcome::Delivered);
    fixture.pass_time(1_000);
    assert_eq!(fixture.taken(), ["1/2"]);
    assert_eq!(fixture.passed(), 2);
}

#[test]
fn a_new_destination_wants_nothing_of_before() {
    let usual = EventTypes::usual();
    assert!(usual.has(EventType::TelemetryData) && !usual.has(EventType::ActionResult));
    let mut fixture = ForwardingFixture::open();
    fixture.happen(1, 1);
    fixture.end_all(&DeliveryOutcome::Delivered);
    fixture.pass_time(1_000);
    fixture.restart_service();
    assert!(fixture.under_way().is_empty());
}

/// What can befall a destination.
#[derive(Clone, Debug)]
enum Twist {
    Happen(u8, u8),
    Take(u8),
    Refuse(u8),
    Lose(u8),
    PassTime(u16),
    Fall,
    Restart,
    Replay,
    Backlog(u8),
}

fn twists() -> impl Strategy<Value = Vec<Twist>> {
    let twist = prop_oneof![
        6 => (0..20u8, 1..60u8).prop_map(|(device, count)| Twist::Happen(device, count)),
        8 => any::<u8>().prop_map(Twist::Take),
        5 => any::<u8>().prop_map(Twist::Refuse),
        1 => any::<u8>().prop_map(Twist::Lose),
        4 => any::<u16>().prop_map(Twist::PassTime),
        2 => proptest::strategy::Just(Twist::Fall),
        1 => proptest::strategy::Just(Twist::Restart),
        1 => proptest::strategy::Just(Twist::Replay),
        1 => any::<u8>().prop_map(Twist::Backlog),
    ];
    vec(twist, 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever befalls it, once it takes everything again a destination has every event or a dead
    /// letter of it, and after a replay every event; and each time in order, device by device.
    #[test]
    fn nothing_is_lost_and_nothing_is_out_of_order(twists in twists()) {
        let mut fixture = ForwardingFixture::open();
        for twist in twists {
            match twist {
                Twist::Happen(device, count) => fixture.happen(device.into(), count.into()),
                Twist::Take(which) => fixture.end_one(which, DeliveryOutcome::Delivered),
                Twist::Refuse(which) => fixture.end_one(which, not_taken()),
                Twist::Lose(which) => fixture.end_one(which, DeliveryOutcome::Gone),
                Twist::PassTime(ms) => fixture.pass_time(ms.into()),
                Twist::Fall => fixture.restart_service(),
                Twist::Restart => fixture.restart(),
                Twist::Replay => {
                    let _ = fixture.replay();
                }
                Twist::Backlog(over) => fixture.note_backlog(fixture::BACKLOG_MAX + u64::from(over)),
            }
            fixture.assert_sound();
        }
        fixture.restart();
        fixture.heal();
        assert!(fixture.replay().is_ok());
        fixture.heal();
        fixture.assert_complete();
    }
}
