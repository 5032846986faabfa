//! Which events does a destination receive, in which order and with how many tries, and what
//! remains after the service crashed?

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "forwarding/batches.rs"]
mod batches;
#[path = "forwarding/fixture.rs"]
mod fixture;

use engine::delivery::destination::{DestinationState, EventTypes};
use engine::delivery::forwarding::{DeliveryOutcome, ReplayUnderWay};
use engine::event::EventType;
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_oneof, proptest};

use fixture::{DELAYS_MS, ForwardingFixture, SMS_DELAYS_MS, paused, refused};

#[test]
fn events_of_a_device_are_delivered_one_by_one_and_those_of_many_in_parallel() {
    let mut fixture = ForwardingFixture::open();
    fixture.emit(1, 3);
    fixture.emit(2, 2);
    assert_eq!(fixture.in_flight(), ["1/1", "2/1"]);
    fixture.end("1/1", DeliveryOutcome::Delivered);
    assert_eq!(fixture.in_flight(), ["1/2", "2/1"]);
    fixture.end("2/1", DeliveryOutcome::Delivered);
    fixture.end("2/2", DeliveryOutcome::Delivered);
    assert_eq!(fixture.in_flight(), ["1/2"]);
    fixture.end_all(&DeliveryOutcome::Delivered);
    assert_eq!(fixture.accepted(), ["1/1", "2/1", "2/2", "1/2", "1/3"]);
    assert_eq!(fixture.state(), DestinationState::Active);
}

#[test]
fn an_sms_is_given_up_and_logged_and_the_next_one_is_tried() {
    let mut fixture = ForwardingFixture::of_sms();
    fixture.emit_as(1, EventType::SmsReceived);
    fixture.emit_as(1, EventType::SmsReport);
    fixture.emit_as(2, EventType::SmsReceived);
    fixture.end("2/1", DeliveryOutcome::Delivered);
    fixture.end("1/1", refused());
    for delay_ms in SMS_DELAYS_MS {
        assert!(fixture.in_flight().is_empty() && fixture.dead().is_empty());
        fixture.pass_time(delay_ms);
        fixture.end("1/1", refused());
    }
    assert_eq!(fixture.dead(), ["1/1 after 4"]);
    assert_eq!(fixture.state(), DestinationState::Active, "it never fails");
    assert_eq!(fixture.log, ["SmsForwarder[DeliveryFailed]"]);
    // It is older than all tries take together, so it has one.
    fixture.end("1/2", refused());
    assert_eq!(fixture.dead(), ["1/1 after 4", "1/2 after 1"]);
    assert_eq!(fixture.log.len(), 2);
    fixture.emit_as(1, EventType::SmsReceived);
    fixture.end("1/3", DeliveryOutcome::Delivered);
    fixture.replay();
    fixture.heal();
    fixture.assert_complete();
}

#[test]
fn an_sms_that_waited_has_the_tries_that_are_left_for_its_age() {
    let mut fixture = ForwardingFixture::of_sms();
    fixture.emit_as(1, EventType::SmsReceived);
    fixture.end("1/1", refused());
    fixture.pass_time(2_000);
    fixture.emit_as(1, EventType::SmsReceived);
    fixture.restart_service();
    fixture.end("1/1", refused());
    fixture.pass_time(1_000);
    fixture.end("1/1", refused());
    assert_eq!(fixture.dead(), ["1/1 after 3"], "its time is over");
    fixture.end("1/2", refused());
    fixture.pass_time(300);
    fixture.end("1/2", DeliveryOutcome::Delivered);
    assert_eq!(fixture.accepted(), ["1/2"]);
}

#[test]
fn deliveries_in_flight_have_a_bound() {
    let mut fixture = ForwardingFixture::open();
    for device in 0..50 {
        fixture.emit(device, 2);
    }
    assert_eq!(fixture.in_flight().len(), fixture::PARALLEL_MAX);
    fixture.end_all(&DeliveryOutcome::Delivered);
    assert_eq!(fixture.accepted().len(), 100);
    assert_eq!(fixture.most_in_flight, fixture::PARALLEL_MAX);
}

#[test]
fn events_of_unwanted_types_are_skipped() {
    let mut fixture = ForwardingFixture::with_types([EventType::Lifecycle].into_iter().collect());
    fixture.emit_as(1, EventType::TelemetryData);
    fixture.emit_as(1, EventType::Lifecycle);
    fixture.emit_as(1, EventType::TelemetryData);
    assert_eq!(fixture.in_flight(), ["1/2"]);
    fixture.end_all(&DeliveryOutcome::Delivered);
    fixture.pass_time(1_000);
    assert_eq!(fixture.passed(), 3);
    fixture.restart_service();
    assert!(fixture.in_flight().is_empty(), "nothing is left to be read");
}

#[test]
fn a_refused_event_is_retried_while_other_devices_go_on() {
    let mut fixture = ForwardingFixture::open();
    fixture.emit(1, 2);
    fixture.emit(2, 2);
    fixture.end("1/1", refused());
    fixture.end_all(&DeliveryOutcome::Delivered);
    assert_eq!(fixture.accepted(), ["2/1", "2/2"], "1/2 waits behind 1/1");
    fixture.pass_time(DELAYS_MS[0] - 1);
    assert!(fixture.in_flight().is_empty());
    fixture.pass_time(1);
    assert_eq!(fixture.in_flight(), ["1/1"]);
    fixture.end_all(&DeliveryOutcome::Delivered);
    assert_eq!(fixture.accepted(), ["2/1", "2/2", "1/1", "1/2"]);
    fixture.pass_time(1_000);
    assert!(fixture.stored.retrying.is_empty());
}

#[test]
fn a_pause_that_the_destination_asks_for_delays_the_retry_within_a_bound() {
    const HOUR_MS: i64 = 3_600_000;
    for (asked_ms, expected_ms) in [
        (0, DELAYS_MS[0]),
        (DELAYS_MS[0] - 1, DELAYS_MS[0]),
        (DELAYS_MS[0] + 1, DELAYS_MS[0] + 1),
        (HOUR_MS, HOUR_MS),
        (i64::MAX, HOUR_MS),
    ] {
        let mut fixture = ForwardingFixture::open();
        fixture.emit(1, 1);
        fixture.end("1/1", paused(asked_ms));
        fixture.restart_service();
        fixture.pass_time(expected_ms - 1);
        assert!(fixture.in_flight().is_empty(), "{asked_ms}");
        fixture.pass_time(1);
        assert_eq!(fixture.in_flight(), ["1/1"], "{asked_ms}");
    }
}

#[test]
fn tries_are_counted_across_a_crash() {
    let mut fixture = ForwardingFixture::open();
    fixture.emit(1, 1);
    fixture.end("1/1", refused());
    for delay_ms in DELAYS_MS {
        fixture.restart_service();
        fixture.pass_time(delay_ms);
        fixture.end("1/1", refused());
    }
    assert_eq!(fixture.state(), DestinationState::Failed);
    assert_eq!(fixture.dead(), ["1/1 after 5"]);
    assert_eq!(fixture.log, ["CloudIntegrator[IntegrationDisabled]"]);
}

#[test]
fn a_retry_ahead_of_the_cursor_is_counted_once() {
    let mut fixture = ForwardingFixture::open();
    let neighbour = fixture::neighbour_of(1);
    fixture.emit(1, 1);
    fixture.emit(neighbour, 1);
    let of_neighbour = format!("{neighbour}/1");
    fixture.end(&of_neighbour, refused());
    fixture.pass_time(DELAYS_MS[0]);
    fixture.end(&of_neighbour, DeliveryOutcome::Delivered);
    fixture.pass_time(1_000);
    assert!(fixture.stored.retrying.is_empty() && fixture.passed() == 0);
    fixture.restart_service();
    fixture.end_all(&DeliveryOutcome::Delivered);
    fixture.pass_time(1_000);
    assert_eq!(fixture.passed(), 2);
}

#[test]
fn an_event_behind_one_that_would_be_read_again_does_not_become_a_retry() {
    let mut fixture = ForwardingFixture::open();
    fixture.fail();
    fixture.restart();
    fixture.emit(1, 1);
    assert_eq!(fixture.in_flight(), ["1/2"]);
    fixture.replay();
    fixture.emit(1, 1);
    assert_eq!(fixture.stored.retrying.len(), 1, "1/1 alone");
    fixture.end_all(&DeliveryOutcome::Delivered);
    fixture.pass_time(1_000);
    assert_eq!(fixture.accepted(), ["1/2", "1/1", "1/3"]);
    assert_eq!(fixture.passed(), 3);
}

#[test]
fn a_failed_destination_gets_dead_letters_until_it_is_restarted() {
    let mut fixture = ForwardingFixture::open();
    fixture.fail();
    fixture.emit(2, 2);
    assert!(fixture.in_flight().is_empty());
    assert_eq!(
        fixture.dead(),
        ["1/1 after 5", "2/1 after 0", "2/2 after 0"]
    );
    assert_eq!(fixture.failure(), Some("the endpoint answered 500"));

    fixture.restart();
    assert_eq!(fixture.state(), DestinationState::Active);
    assert_eq!(fixture.failure(), None);
    assert_eq!(
        fixture.log.last().unwrap(),
        "CloudIntegrator[IntegrationRestarted]"
    );
    fixture.emit(2, 1);
    fixture.end_all(&DeliveryOutcome::Delivered);
    assert_eq!(fixture.accepted(), ["2/3"]);
    assert_eq!(fixture.dead().len(), 3, "they wait for a replay");
}

#[test]
fn a_replay_of_a_failed_destination_begins_at_its_restart_and_nothing_overtakes_it() {
    let mut fixture = ForwardingFixture::open();
    fixture.fail();
    fixture.emit(1, 2);
    fixture.replay();
    fixture.emit(1, 1);
    assert!(fixture.in_flight().is_empty());
    let dead = ["1/1 after 5", "1/2 after 0", "1/3 after 0", "1/4 after 0"];
    assert_eq!(fixture.dead(), dead);
    assert_eq!(fixture.discard("1/1"), Ok(()), "none of them is queued yet");
    fixture.restart_service();

    fixture.restart();
    fixture.emit(1, 1);
    fixture.end_all(&DeliveryOutcome::Delivered);
    assert_eq!(fixture.accepted(), ["1/2", "1/3", "1/4", "1/5"]);
    assert!(fixture.dead().is_empty());
}

#[test]
fn an_event_in_flight_at_the_failure_becomes_a_dead_letter_after_a_crash() {
    let mut fixture = ForwardingFixture::open();
    fixture.emit(2, 1);
    fixture.fail();
    assert_eq!(fixture.in_flight(), ["2/1"]);
    fixture.restart_service();
    assert_eq!(fixture.dead(), ["2/1 after 0", "1/1 after 5"]);
    assert!(fixture.stored.retrying.is_empty() && fixture.in_flight().is_empty());
    assert_eq!(fixture.passed(), 2);
}

#[test]
fn a_discarded_dead_letter_is_not_delivered_and_delays_nothing() {
    let mut fixture = ForwardingFixture::open();
    fixture.fail();
    fixture.emit(1, 2);
    assert_eq!(fixture.dead().len(), 3);
    assert_eq!(fixture.discard("1/1"), Ok(()));
    assert_eq!(fixture.dead(), ["1/2 after 0", "1/3 after 0"]);
    assert_eq!(fixture.passed(), 3);
    fixture.restart_service();
    fixture.restart();
    fixture.replay();
    fixture.heal();
    assert_eq!(fixture.accepted(), ["1/2", "1/3"]);
    fixture.assert_complete();
}

#[test]
fn nothing_is_discarded_during_a_replay() {
    let mut fixture = ForwardingFixture::open();
    fixture.fail();
    fixture.restart();
    assert_eq!(fixture.discard_in_replay(), Err(ReplayUnderWay));
}

#[test]
fn a_replay_delivers_dead_letters_in_order_and_before_anything_new() {
    let mut fixture = ForwardingFixture::open();
    fixture.fail();
    fixture.emit(2, 600);
    fixture.restart();
    fixture.replay();
    fixture.emit(2, 1);
    fixture.end_all(&DeliveryOutcome::Delivered);
    let mut expected = vec!["1/1".to_owned()];
    expected.extend((1..=601).map(|number| format!("2/{number}")));
    let mut accepted = fixture.accepted();
    accepted.sort_by_key(|name| name.starts_with("2/"));
    assert_eq!(accepted, expected);
    fixture.pass_time(1_000);
    assert!(fixture.dead().is_empty() && fixture.stored.retrying.is_empty());
}

#[test]
fn a_replay_ends_before_events_that_were_read_earlier_go_on() {
    let mut fixture = ForwardingFixture::open();
    fixture.fail();
    fixture.emit(2, 1);
    fixture.emit(3, 600);
    fixture.emit(2, 1);
    fixture.restart();
    fixture.emit(2, 2);
    fixture.replay();
    for number in [3, 1] {
        fixture.end(&format!("2/{number}"), DeliveryOutcome::Delivered);
    }
    assert!(!fixture.in_flight().contains(&"2/4".to_owned()));
    fixture.heal();
    let mut accepted = fixture.accepted();
    accepted.retain(|name| name.starts_with("2/"));
    assert_eq!(accepted, ["2/3", "2/1", "2/2", "2/4"]);
    assert!(fixture.dead().is_empty());
}

#[test]
fn a_replay_goes_on_after_a_crash() {
    let mut fixture = ForwardingFixture::open();
    fixture.fail();
    fixture.emit(2, 600);
    fixture.restart();
    fixture.replay();
    fixture.end("2/1", DeliveryOutcome::Delivered);
    fixture.restart_service();
    fixture.end_all(&DeliveryOutcome::Delivered);
    assert!(fixture.dead().is_empty());
    assert_eq!(fixture.accepted_once().len(), 601);
}

#[test]
fn a_replay_ends_even_if_every_device_has_a_retry() {
    let mut fixture = ForwardingFixture::open();
    fixture.fail();
    for device in 1..=8 {
        fixture.emit(device, 1);
    }
    fixture.restart();
    for device in 1..=8 {
        fixture.emit(device, 1);
    }
    fixture.end_all(&refused());
    fixture.replay();
    fixture.heal();
    assert!(fixture.dead().is_empty() && fixture.stored.retrying.is_empty());
    assert_eq!(fixture.accepted_once().len(), 17);
}

#[test]
fn an_endpoint_that_is_down_is_not_called_for_each_device() {
    let mut fixture = ForwardingFixture::open();
    for device in 0..400 {
        fixture.emit(device, 1);
    }
    fixture.end_all(&refused());
    let tried = fixture.tries;
    assert!(tried < 2 * fixture::PARALLEL_MAX, "{tried} tries");
    fixture.pass_time(DELAYS_MS[0]);
    fixture.end_all(&DeliveryOutcome::Delivered);
    assert_eq!(fixture.accepted_once().len(), 400);
}

#[test]
fn beyond_the_bound_the_oldest_become_dead_letters_and_that_is_logged_once() {
    let mut fixture = ForwardingFixture::open();
    for device in 0..200 {
        fixture.emit(device, 2);
    }
    fixture.note_backlog(fixture::BACKLOG_MAX + 50);
    fixture.note_backlog(fixture::BACKLOG_MAX + 40);
    assert_eq!(fixture.log, ["CloudIntegrator[EventsDeadLettered]"]);
    fixture.emit(7, 300);
    fixture.end_all(&DeliveryOutcome::Delivered);
    let dead_lettered = 50 + usize::try_from(fixture::BACKLOG_MAX / 10).unwrap();
    assert_eq!(fixture.dead().len(), dead_lettered);
    assert_eq!(fixture.accepted_once().len() + dead_lettered, 700);
}

#[test]
fn events_after_the_backlog_was_accepted_do_not_become_dead_letters() {
    let mut fixture = ForwardingFixture::with_types([EventType::Lifecycle].into_iter().collect());
    for _ in 0..150 {
        fixture.emit_as(1, EventType::TelemetryData);
    }
    fixture.note_backlog(fixture::BACKLOG_MAX + 50);
    fixture.note_backlog(0);
    for _ in 0..80 {
        fixture.emit_as(2, EventType::Lifecycle);
    }
    fixture.end_all(&DeliveryOutcome::Delivered);
    assert!(fixture.dead().is_empty());
    assert_eq!(fixture.accepted_once().len(), 80);
}

#[test]
fn events_of_unwanted_types_count_for_the_backlog() {
    let mut fixture = ForwardingFixture::with_types([EventType::Lifecycle].into_iter().collect());
    fixture.note_backlog(fixture::BACKLOG_MAX + 50);
    for _ in 0..60 {
        fixture.emit_as(1, EventType::TelemetryData);
    }
    fixture.emit_as(1, EventType::Lifecycle);
    assert_eq!(fixture.in_flight(), ["1/61"]);
}

#[test]
fn a_device_whose_events_are_refused_does_not_delay_others_however_many_it_has() {
    let mut fixture = ForwardingFixture::open();
    fixture.emit(1, 1);
    fixture.end("1/1", refused());
    fixture.emit(1, 5_000);
    fixture.emit(2, 3);
    fixture.end_all(&DeliveryOutcome::Delivered);
    assert_eq!(fixture.accepted(), ["2/1", "2/2", "2/3"]);
    fixture.pass_time(DELAYS_MS[0]);
    fixture.end_all(&DeliveryOutcome::Delivered);
    assert_eq!(fixture.accepted_once().len(), 5_004);
}

#[test]
fn an_event_that_is_no_longer_stored_is_skipped() {
    let mut fixture = ForwardingFixture::open();
    fixture.emit(1, 2);
    fixture.end("1/1", DeliveryOutcome::Gone);
    fixture.end_all(&DeliveryOutcome::Delivered);
    fixture.pass_time(1_000);
    assert_eq!(fixture.accepted(), ["1/2"]);
    assert_eq!(fixture.passed(), 2);
}

#[test]
fn a_restarted_service_does_not_deliver_accepted_events_again() {
    let usual = EventTypes::usual();
    assert!(usual.has(EventType::TelemetryData) && !usual.has(EventType::ActionResult));
    let mut fixture = ForwardingFixture::open();
    fixture.emit(1, 1);
    fixture.end_all(&DeliveryOutcome::Delivered);
    fixture.pass_time(1_000);
    fixture.restart_service();
    assert!(fixture.in_flight().is_empty());
}

/// A transition of the world of a destination.
#[derive(Clone, Debug)]
enum Transition {
    Emit(u8, u8),
    Accept(u8),
    Refuse(u8),
    Lose(u8),
    PassTime(u16),
    Crash,
    Restart,
    Replay,
    Backlog(u8),
}

fn transitions() -> impl Strategy<Value = Vec<Transition>> {
    let transition = prop_oneof![
        6 => (0..20u8, 1..60u8).prop_map(|(device, count)| Transition::Emit(device, count)),
        8 => any::<u8>().prop_map(Transition::Accept),
        5 => any::<u8>().prop_map(Transition::Refuse),
        1 => any::<u8>().prop_map(Transition::Lose),
        4 => any::<u16>().prop_map(Transition::PassTime),
        2 => proptest::strategy::Just(Transition::Crash),
        1 => proptest::strategy::Just(Transition::Restart),
        1 => proptest::strategy::Just(Transition::Replay),
        1 => any::<u8>().prop_map(Transition::Backlog),
    ];
    vec(transition, 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// After any transitions, once a destination accepts everything again, it has received each
    /// event or has a dead letter of it, and after a replay it has received every event; always in
    /// order for each device.
    #[test]
    fn nothing_is_lost_and_nothing_is_out_of_order(
        events_max in 0..5_u8,
        transitions in transitions(),
    ) {
        let mut fixture = match events_max {
            0 => ForwardingFixture::open(),
            events_max => ForwardingFixture::of_batches(events_max, 40),
        };
        for transition in transitions {
            match transition {
                Transition::Emit(device, count) => fixture.emit(device.into(), count.into()),
                Transition::Accept(which) => fixture.end_one(which, DeliveryOutcome::Delivered),
                Transition::Refuse(which) => fixture.end_one(which, refused()),
                Transition::Lose(which) => fixture.end_one(which, DeliveryOutcome::Gone),
                Transition::PassTime(ms) => fixture.pass_time(ms.into()),
                Transition::Crash => fixture.restart_service(),
                Transition::Restart => fixture.restart(),
                Transition::Replay => fixture.replay(),
                Transition::Backlog(over) => {
                    fixture.note_backlog(fixture::BACKLOG_MAX + u64::from(over));
                }
            }
            fixture.assert_sound();
        }
        fixture.restart();
        fixture.heal();
        fixture.replay();
        fixture.heal();
        fixture.assert_complete();
    }
}
