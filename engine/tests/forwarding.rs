//! What does a destination get, in which order, how often is it tried, and what is left after the
//! service fell?

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "forwarding/office.rs"]
mod office;

use engine::delivery::destination::{DestinationState, EventTypes};
use engine::delivery::forwarding::{Delivered, NotActive, ReplayUnderWay};
use engine::event::EventType;
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_oneof, proptest};

use office::{Office, WAITS_MS, not_taken};

#[test]
fn events_of_a_device_are_delivered_one_by_one_and_of_many_side_by_side() {
    let mut office = Office::open();
    office.happen(1, 3);
    office.happen(2, 2);
    assert_eq!(office.under_way(), ["1/1", "2/1"]);
    office.end("1/1", Delivered::Taken);
    assert_eq!(office.under_way(), ["1/2", "2/1"]);
    office.end("2/1", Delivered::Taken);
    office.end("2/2", Delivered::Taken);
    assert_eq!(office.under_way(), ["1/2"]);
    office.end_all(&Delivered::Taken);
    assert_eq!(office.taken(), ["1/1", "2/1", "2/2", "1/2", "1/3"]);
    assert_eq!(office.state(), DestinationState::Active);
}

#[test]
fn no_more_are_under_way_than_may_be() {
    let mut office = Office::open();
    for device in 0..50 {
        office.happen(device, 2);
    }
    assert_eq!(office.under_way().len(), office::PARALLEL_MAX);
    office.end_all(&Delivered::Taken);
    assert_eq!(office.taken().len(), 100);
    assert_eq!(office.most_under_way, office::PARALLEL_MAX);
}

#[test]
fn what_is_not_wanted_is_passed_over() {
    let mut office = Office::telling([EventType::Lifecycle].into_iter().collect());
    office.happen_as(1, EventType::TelemetryData);
    office.happen_as(1, EventType::Lifecycle);
    office.happen_as(1, EventType::TelemetryData);
    assert_eq!(office.under_way(), ["1/2"]);
    office.end_all(&Delivered::Taken);
    office.pass_time(1_000);
    assert_eq!(office.passed(), 3);
    office.restart_service();
    assert!(office.under_way().is_empty(), "nothing is left to be read");
}

#[test]
fn what_is_not_taken_is_tried_again_while_other_devices_go_on() {
    let mut office = Office::open();
    office.happen(1, 2);
    office.happen(2, 2);
    office.end("1/1", not_taken());
    office.end_all(&Delivered::Taken);
    assert_eq!(office.taken(), ["2/1", "2/2"], "1/2 waits behind 1/1");
    office.pass_time(WAITS_MS[0] - 1);
    assert!(office.under_way().is_empty());
    office.pass_time(1);
    assert_eq!(office.under_way(), ["1/1"]);
    office.end_all(&Delivered::Taken);
    assert_eq!(office.taken(), ["2/1", "2/2", "1/1", "1/2"]);
    office.pass_time(1_000);
    assert!(office.kept.held.is_empty());
}

#[test]
fn tries_are_counted_across_a_fall_of_the_service() {
    let mut office = Office::open();
    office.happen(1, 1);
    office.end("1/1", not_taken());
    for wait_ms in WAITS_MS {
        office.restart_service();
        office.pass_time(wait_ms);
        office.end("1/1", not_taken());
    }
    assert_eq!(office.state(), DestinationState::Failed);
    assert_eq!(office.dead(), ["1/1 after 5"]);
    assert_eq!(office.log, ["CloudIntegrator[IntegrationDisabled]"]);
}

#[test]
fn an_exception_ahead_of_its_place_is_counted_once() {
    let mut office = Office::open();
    let neighbour = office::neighbour_of(1);
    office.happen(1, 1);
    office.happen(neighbour, 1);
    let of_neighbour = format!("{neighbour}/1");
    office.end(&of_neighbour, not_taken());
    office.pass_time(WAITS_MS[0]);
    office.end(&of_neighbour, Delivered::Taken);
    office.pass_time(1_000);
    assert!(office.kept.held.is_empty() && office.passed() == 0);
    office.restart_service();
    office.end_all(&Delivered::Taken);
    office.pass_time(1_000);
    assert_eq!(office.passed(), 2);
}

#[test]
fn what_waits_behind_an_event_that_would_be_read_again_is_no_exception() {
    let mut office = Office::open();
    office.fail();
    office.restart();
    office.happen(1, 1);
    assert_eq!(office.under_way(), ["1/2"]);
    assert_eq!(office.replay(), Ok(()));
    office.happen(1, 1);
    assert_eq!(office.kept.held.len(), 1, "1/1 alone");
    office.end_all(&Delivered::Taken);
    office.pass_time(1_000);
    assert_eq!(office.taken(), ["1/2", "1/1", "1/3"]);
    assert_eq!(office.passed(), 3);
}

#[test]
fn a_failed_destination_gets_dead_letters_until_it_is_restarted() {
    let mut office = Office::open();
    office.fail();
    office.happen(2, 2);
    assert!(office.under_way().is_empty());
    assert_eq!(office.dead(), ["1/1 after 5", "2/1 after 0", "2/2 after 0"]);
    assert_eq!(office.replay(), Err(NotActive));

    office.restart();
    assert_eq!(office.state(), DestinationState::Active);
    assert_eq!(
        office.log.last().unwrap(),
        "CloudIntegrator[IntegrationRestarted]"
    );
    office.happen(2, 1);
    office.end_all(&Delivered::Taken);
    assert_eq!(office.taken(), ["2/3"]);
    assert_eq!(office.dead().len(), 3, "they wait for a replay");
}

#[test]
fn what_was_under_way_at_the_failure_is_set_aside_when_the_service_falls() {
    let mut office = Office::open();
    office.happen(2, 1);
    office.fail();
    assert_eq!(office.under_way(), ["2/1"]);
    office.restart_service();
    assert_eq!(office.dead(), ["2/1 after 0", "1/1 after 5"]);
    assert!(office.kept.held.is_empty() && office.under_way().is_empty());
    assert_eq!(office.passed(), 2);
}

#[test]
fn a_discarded_dead_letter_is_not_delivered_and_holds_nothing_up() {
    let mut office = Office::open();
    office.fail();
    office.happen(1, 2);
    assert_eq!(office.dead().len(), 3);
    assert_eq!(office.discard("1/1"), Ok(()));
    assert_eq!(office.dead(), ["1/2 after 0", "1/3 after 0"]);
    assert_eq!(office.passed(), 3);
    office.restart_service();
    office.restart();
    assert_eq!(office.replay(), Ok(()));
    office.heal();
    assert_eq!(office.taken(), ["1/2", "1/3"]);
    office.assert_complete();
}

#[test]
fn nothing_is_discarded_while_dead_letters_are_taken_up_again() {
    let mut office = Office::open();
    office.fail();
    office.restart();
    assert_eq!(office.discard_in_replay(), Err(ReplayUnderWay));
}

#[test]
fn a_replay_delivers_dead_letters_in_order_and_before_anything_new() {
    let mut office = Office::open();
    office.fail();
    office.happen(2, 600);
    office.restart();
    assert_eq!(office.replay(), Ok(()));
    office.happen(2, 1);
    office.end_all(&Delivered::Taken);
    let mut expected = vec!["1/1".to_owned()];
    expected.extend((1..=601).map(|number| format!("2/{number}")));
    let mut taken = office.taken();
    taken.sort_by_key(|name| name.starts_with("2/"));
    assert_eq!(taken, expected);
    office.pass_time(1_000);
    assert!(office.dead().is_empty() && office.kept.held.is_empty());
}

#[test]
fn a_replay_is_over_before_what_was_read_before_it_goes_on() {
    let mut office = Office::open();
    office.fail();
    office.happen(2, 1);
    office.happen(3, 600);
    office.happen(2, 1);
    office.restart();
    office.happen(2, 2);
    assert_eq!(office.replay(), Ok(()));
    for number in [3, 1] {
        office.end(&format!("2/{number}"), Delivered::Taken);
    }
    assert!(!office.under_way().contains(&"2/4".to_owned()));
    office.heal();
    let mut taken = office.taken();
    taken.retain(|name| name.starts_with("2/"));
    assert_eq!(taken, ["2/3", "2/1", "2/2", "2/4"]);
    assert!(office.dead().is_empty());
}

#[test]
fn a_replay_goes_on_after_a_fall_of_the_service() {
    let mut office = Office::open();
    office.fail();
    office.happen(2, 600);
    office.restart();
    assert_eq!(office.replay(), Ok(()));
    office.end("2/1", Delivered::Taken);
    office.restart_service();
    office.end_all(&Delivered::Taken);
    assert!(office.dead().is_empty());
    assert_eq!(office.taken_once().len(), 601);
}

#[test]
fn a_replay_ends_also_where_something_of_every_device_is_being_tried_again() {
    let mut office = Office::open();
    office.fail();
    for device in 1..=8 {
        office.happen(device, 1);
    }
    office.restart();
    for device in 1..=8 {
        office.happen(device, 1);
    }
    office.end_all(&not_taken());
    assert_eq!(office.replay(), Ok(()));
    office.heal();
    assert!(office.dead().is_empty() && office.kept.held.is_empty());
    assert_eq!(office.taken_once().len(), 17);
}

#[test]
fn an_endpoint_that_is_down_is_not_called_for_each_device() {
    let mut office = Office::open();
    for device in 0..400 {
        office.happen(device, 1);
    }
    office.end_all(&not_taken());
    let tried = office.tries;
    assert!(tried < 2 * office::PARALLEL_MAX, "{tried} tries");
    office.pass_time(WAITS_MS[0]);
    office.end_all(&Delivered::Taken);
    assert_eq!(office.taken_once().len(), 400);
}

#[test]
fn beyond_its_bound_the_oldest_are_set_aside_and_the_customer_is_told_once() {
    let mut office = Office::open();
    for device in 0..200 {
        office.happen(device, 2);
    }
    office.note_backlog(office::BACKLOG_MAX + 50);
    office.note_backlog(office::BACKLOG_MAX + 40);
    assert_eq!(office.log, ["CloudIntegrator[EventsSetAside]"]);
    office.happen(7, 300);
    office.end_all(&Delivered::Taken);
    let aside = 50 + usize::try_from(office::BACKLOG_MAX / 10).unwrap();
    assert_eq!(office.dead().len(), aside);
    assert_eq!(office.taken_once().len() + aside, 700);
}

#[test]
fn what_comes_after_too_much_was_taken_is_not_set_aside() {
    let mut office = Office::telling([EventType::Lifecycle].into_iter().collect());
    for _ in 0..150 {
        office.happen_as(1, EventType::TelemetryData);
    }
    office.note_backlog(office::BACKLOG_MAX + 50);
    office.note_backlog(0);
    for _ in 0..80 {
        office.happen_as(2, EventType::Lifecycle);
    }
    office.end_all(&Delivered::Taken);
    assert!(office.dead().is_empty());
    assert_eq!(office.taken_once().len(), 80);
}

#[test]
fn what_is_not_wanted_is_part_of_too_much() {
    let mut office = Office::telling([EventType::Lifecycle].into_iter().collect());
    office.note_backlog(office::BACKLOG_MAX + 50);
    for _ in 0..60 {
        office.happen_as(1, EventType::TelemetryData);
    }
    office.happen_as(1, EventType::Lifecycle);
    assert_eq!(office.under_way(), ["1/61"]);
}

#[test]
fn a_device_whose_events_are_refused_does_not_keep_others_waiting_however_much_it_says() {
    let mut office = Office::open();
    office.happen(1, 1);
    office.end("1/1", not_taken());
    office.happen(1, 5_000);
    office.happen(2, 3);
    office.end_all(&Delivered::Taken);
    assert_eq!(office.taken(), ["2/1", "2/2", "2/3"]);
    office.pass_time(WAITS_MS[0]);
    office.end_all(&Delivered::Taken);
    assert_eq!(office.taken_once().len(), 5_004);
}

#[test]
fn an_event_that_is_kept_no_more_is_passed_over() {
    let mut office = Office::open();
    office.happen(1, 2);
    office.end("1/1", Delivered::Gone);
    office.end_all(&Delivered::Taken);
    office.pass_time(1_000);
    assert_eq!(office.taken(), ["1/2"]);
    assert_eq!(office.passed(), 2);
}

#[test]
fn a_new_destination_wants_nothing_of_before() {
    let usual = EventTypes::usual();
    assert!(usual.has(EventType::TelemetryData) && !usual.has(EventType::ActionResult));
    let mut office = Office::open();
    office.happen(1, 1);
    office.end_all(&Delivered::Taken);
    office.pass_time(1_000);
    office.restart_service();
    assert!(office.under_way().is_empty());
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
        let mut office = Office::open();
        for twist in twists {
            match twist {
                Twist::Happen(device, count) => office.happen(device.into(), count.into()),
                Twist::Take(which) => office.end_one(which, Delivered::Taken),
                Twist::Refuse(which) => office.end_one(which, not_taken()),
                Twist::Lose(which) => office.end_one(which, Delivered::Gone),
                Twist::PassTime(ms) => office.pass_time(ms.into()),
                Twist::Fall => office.restart_service(),
                Twist::Restart => office.restart(),
                Twist::Replay => {
                    let _ = office.replay();
                }
                Twist::Backlog(over) => office.note_backlog(office::BACKLOG_MAX + u64::from(over)),
            }
            office.assert_sound();
        }
        office.restart();
        office.heal();
        assert!(office.replay().is_ok());
        office.heal();
        office.assert_complete();
    }
}
