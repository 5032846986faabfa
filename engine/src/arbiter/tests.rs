//! The effects of an arbiter for an input, one by one.

pub(super) mod vocabulary;

use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId};

use super::input::{ActorExit, DeviceCommand, DeviceInput, StoreUnavailable};
use super::{CROWDED_RETRY_MS, SETTLED_AFTER_MS, STORE_RETRY_MS};
use crate::dispatch::peer_table::PeerBinding;
use crate::dispatch::{DevicesAtAddress, DropReason, RateScope};
use crate::known_devices::DeviceMark;
use crate::limits::{PANICS_MAX, STRANGER_RATE_BURST_S, STRANGERS_RATE_FACTOR};
use crate::moment::Moment;
use crate::supervision::ActorFailure;

use vocabulary::{ArbiterFixture, BOUNDS, METER, NAMES, NOTHING, OF_ANOTHER};
use vocabulary::{answer, data, key, peer, profile, register, send, update};

#[test]
fn a_registration_waits_until_its_device_is_found_and_restored() {
    let mut fixture = ArbiterFixture::new();
    assert_eq!(fixture.receives(&register()), ["look up the name meter"]);
    assert_eq!(fixture.finds(Ok(Some(key(METER)))), ["look up meter-0"]);
    assert_eq!(fixture.receives(&update()), NOTHING, "it waits as well");
    assert_eq!(fixture.arbiter.datagrams_held(), 2);
    assert_eq!(fixture.restored(), ["spawn meter-0"]);
    let delivered = [
        "deliver datagram 1 to meter-0",
        "deliver datagram 2 to meter-0",
    ];
    assert_eq!(fixture.spawned(METER), delivered);
    assert_eq!(
        fixture.receives(&update()),
        ["deliver datagram 3 to meter-0"]
    );
}

#[test]
fn a_refused_handshake_waits_until_its_device_is_restored() {
    let mut fixture = ArbiterFixture::new();
    assert_eq!(fixture.refuses_handshake(METER), ["look up meter-0"]);
    assert_eq!(fixture.arbiter.datagrams_held(), 1);
    assert_eq!(fixture.restored(), ["spawn meter-0"]);
    let refused =
        "deliver refused handshake: the sender has another key than the device to meter-0";
    assert_eq!(fixture.spawned(METER), [refused]);
    assert_eq!(fixture.arbiter.datagrams_held(), 0);
}

#[test]
fn a_registration_with_an_unknown_name_is_forbidden() {
    let mut fixture = ArbiterFixture::new();
    fixture.receives(&register());
    assert_eq!(fixture.finds(Ok(None)), ["look up 10.0.0.1"]);
    let forbidden = ["drop 1: UnknownEndpoint", "send 4.03"];
    assert_eq!(fixture.finds_devices(DevicesAtAddress::Nobody), forbidden);
}

#[test]
fn a_registration_with_an_unknown_name_goes_to_the_only_device_with_the_address() {
    let mut fixture = ArbiterFixture::new();
    fixture.runs(METER);
    fixture.receives(&register());
    fixture.finds(Ok(None));
    let found = DevicesAtAddress::One(key(METER));
    assert_eq!(
        fixture.finds_devices(found),
        ["deliver datagram 1 to meter-0"]
    );
}

#[test]
fn a_send_from_a_peer_without_a_device_goes_to_the_only_device_with_the_address() {
    let mut fixture = ArbiterFixture::new();
    fixture.runs(METER);
    assert_eq!(fixture.receives(&send()), ["look up 10.0.0.1"]);
    let found = DevicesAtAddress::One(key(METER));
    assert_eq!(
        fixture.finds_devices(found),
        ["deliver datagram 1 to meter-0"]
    );
    assert_eq!(fixture.arbiter.strangers(), []);
    fixture.receives(&send());
    let nobody = ["drop 2: UnknownPeer", "send 4.04"];
    assert_eq!(fixture.finds_devices(DevicesAtAddress::Nobody), nobody);
    let [stranger] = fixture.arbiter.strangers().try_into().unwrap();
    assert_eq!(
        (stranger.count, stranger.answer),
        (1, Some(Code::NOT_FOUND))
    );
}

#[test]
fn what_may_be_of_a_device_that_is_not_restored_is_neither_answered_nor_noted() {
    let [mut fixture] = ArbiterFixture::starting();
    let not_restored = ["drop 1: NotRestored"];
    assert_eq!(fixture.receives(&answer()), not_restored);
    assert_eq!(fixture.receives(&send()), ["look up 10.0.0.1"]);
    let not_restored = ["drop 2: NotRestored"];
    assert_eq!(
        fixture.finds_devices(DevicesAtAddress::Nobody),
        not_restored
    );
    assert_eq!(fixture.arbiter.strangers(), []);
    // Another arbiter may have restored its devices.
    let [mut here, mut there] = ArbiterFixture::starting();
    there.reads_page(&[]);
    assert_eq!(here.receives(&answer()), ["forward [1] to 1"]);
    let not_restored = ["drop 1: NotRestored"];
    assert_eq!(there.receives_forwarded(&mut here), not_restored);
}

#[test]
fn the_start_awaits_a_device_that_is_being_restored_on_demand() {
    let [mut fixture] = ArbiterFixture::starting();
    fixture.command("caller", DeviceCommand::Inspect);
    fixture.reads_page(&[METER]);
    fixture.passes(SETTLED_AFTER_MS);
    assert_eq!(fixture.receives(&answer()), ["drop 1: NotRestored"]);
    fixture.restored();
    fixture.spawned(METER);
    fixture.passes(SETTLED_AFTER_MS);
    assert_eq!(fixture.receives(&answer()), ["drop 2: NotRestored"]);
    fixture.passes(SETTLED_AFTER_MS);
    assert_eq!(fixture.receives(&answer()), ["drop 3: UnknownPeer"]);
}

#[test]
fn what_may_be_of_a_device_whose_actor_failed_is_not_answered_until_it_is_restored() {
    for failure in [ActorFailure::Panicked, ActorFailure::Unsaved] {
        let mut fixture = ArbiterFixture::new();
        let generation = fixture.runs(METER);
        assert_eq!(fixture.receives(&answer()), ["drop 1: UnknownPeer"]);
        fixture.ends(generation, ActorExit::Failed(failure));
        fixture.passes(STORE_RETRY_MS);
        fixture.passes(SETTLED_AFTER_MS);
        assert_eq!(fixture.receives(&answer()), ["drop 2: NotRestored"]);
        fixture.restored();
        fixture.spawned(METER);
        fixture.passes(SETTLED_AFTER_MS);
        assert_eq!(fixture.receives(&answer()), ["drop 3: NotRestored"]);
        fixture.passes(SETTLED_AFTER_MS);
        assert_eq!(fixture.receives(&answer()), ["drop 4: UnknownPeer"]);
    }
}

#[test]
fn the_devices_of_an_arbiter_that_ends_may_be_restored_elsewhere() {
    let mut fixture = ArbiterFixture::new();
    assert_eq!(fixture.receives(&answer()), ["drop 1: UnknownPeer"]);
    fixture.arbiter.quiesce();
    assert_eq!(fixture.receives(&answer()), ["drop 2: NotRestored"]);
}

#[test]
fn a_registration_is_deferred_if_its_look_up_fails() {
    let mut fixture = ArbiterFixture::new();
    fixture.receives(&register());
    let put_off = ["drop 1: Overloaded", "send 5.03"];
    assert_eq!(fixture.finds(Err(StoreUnavailable)), put_off);
}

#[test]
fn look_ups_are_bounded_and_further_datagrams_are_deferred() {
    let mut fixture = ArbiterFixture::new();
    for _ in 0..BOUNDS.lookups_max {
        assert_eq!(fixture.receives(&register()), ["look up the name meter"]);
    }
    let put_off = ["drop 3: Overloaded", "send 5.03"];
    assert_eq!(fixture.receives(&register()), put_off);
    fixture.finds(Ok(None));
    fixture.finds_devices(DevicesAtAddress::Nobody);
    assert_eq!(fixture.receives(&register()), ["look up the name meter"]);
}

#[test]
fn while_the_store_is_full_requests_are_deferred_and_answers_are_not() {
    let mut fixture = ArbiterFixture::new();
    fixture.runs(METER);
    fixture.announces_peer(METER);
    fixture.at.is_store_full = true;
    assert_eq!(
        fixture.receives(&update()),
        ["drop 1: Overloaded", "send 5.03"]
    );
    assert_eq!(
        fixture.receives(&answer()),
        ["deliver datagram 2 to meter-0"]
    );
}

#[test]
fn data_goes_to_the_only_device_with_the_address() {
    let mut fixture = ArbiterFixture::new();
    assert_eq!(fixture.receives(&data()), ["look up 10.0.0.1"]);
    assert_eq!(
        fixture.finds_devices(DevicesAtAddress::One(key(METER))),
        ["look up meter-0"]
    );
    assert_eq!(fixture.receives(&data()), ["look up 10.0.0.1"]);
    assert_eq!(
        fixture.finds_devices(DevicesAtAddress::Several(key(METER))),
        NOTHING
    );
    fixture.restored();
    let delivered = [
        "deliver datagram 1 to meter-0",
        "deliver ambiguous datagram 2 to meter-0",
    ];
    assert_eq!(fixture.spawned(METER), delivered);
    fixture.receives(&data());
    let nobody = ["drop 3: UnknownAddress", "send 4.01"];
    assert_eq!(fixture.finds_devices(DevicesAtAddress::Nobody), nobody);
}

#[test]
fn waiting_inputs_of_a_device_are_bounded_and_further_ones_refused() {
    let mut fixture = ArbiterFixture::new();
    assert_eq!(
        fixture.command("first", DeviceCommand::Inspect),
        ["look up meter-0"]
    );
    assert_eq!(fixture.command("second", DeviceCommand::Inspect), NOTHING);
    let busy = ["reply to first: Err(Busy)"];
    assert_eq!(fixture.command("first", DeviceCommand::Inspect), busy);
    assert_eq!(fixture.receives(&update()), ["drop 1: MailboxFull"]);
}

#[test]
fn waiting_inputs_are_refused_if_the_device_does_not_exist_or_the_store_fails() {
    let mut fixture = ArbiterFixture::new();
    fixture.command("first", DeviceCommand::Inspect);
    let unknown = ["reply to first: Err(Unknown)"];
    assert_eq!(fixture.finds_device(Ok(None)), unknown);
    assert_eq!(
        fixture.command("second", DeviceCommand::Inspect),
        ["look up meter-0"]
    );
    let failed = ["reply to second: Err(Failed)"];
    assert_eq!(fixture.finds_device(Err(StoreUnavailable)), failed);
    assert_eq!(fixture.passes(STORE_RETRY_MS), ["look up meter-0"]);
}

#[test]
fn a_page_of_the_start_does_not_replace_a_loaded_device() {
    let mut fixture = ArbiterFixture::new();
    fixture.runs(METER);
    assert_eq!(fixture.starts(), ["read 256 devices"]);
    let read = ["spawn meter-1", "restored all 2"];
    assert_eq!(fixture.reads_page(&[METER, "meter-1"]), read);
    assert_eq!(
        fixture.receives(&update()),
        ["deliver datagram 1 to meter-0"]
    );
}

#[test]
fn a_device_unloaded_while_a_page_is_read_is_not_restored_from_it() {
    let mut fixture = ArbiterFixture::new();
    let generation = fixture.runs(METER);
    fixture.starts();
    assert_eq!(
        fixture.ends(generation, ActorExit::Retired),
        ["release meter-0"]
    );
    assert_eq!(fixture.reads_page(&[METER]), ["restored all 1"]);
    assert!(!fixture.arbiter.owns(key(METER)));
}

#[test]
fn a_page_that_could_not_be_read_is_read_again() {
    let mut fixture = ArbiterFixture::new();
    fixture.starts();
    assert_eq!(fixture.gets_page(Err(StoreUnavailable)), NOTHING);
    assert_eq!(fixture.passes(STORE_RETRY_MS), ["read 256 devices"]);
}

#[test]
fn the_forwarding_arbiter_gets_a_route_hint_and_uses_it() {
    let [mut here, mut there] = ArbiterFixture::two();
    let is_at_home = |name: &&str| there.shard_map.arbiter_of(key(name).shard()) == there.here;
    let name = NAMES.into_iter().find(is_at_home);
    let name = name.expect("one of them is at home there");
    there.runs(name);
    there.announces_peer(name);

    assert_eq!(here.receives(&answer()), ["forward [1] to 1"]);
    let hint = "teach 0 that 10.0.0.1:5683 is at 1".to_owned();
    let delivered = format!("deliver datagram 1 to {name}");
    assert_eq!(there.receives_forwarded(&mut here), [delivered, hint]);

    here.arbiter.learn(there.hint.expect("it was taught"));
    assert_eq!(here.receives(&answer()), ["forward [2] to 1"]);
    let delivered = format!("deliver datagram 2 to {name}");
    assert_eq!(
        there.receives_forwarded(&mut here),
        [delivered],
        "no search"
    );
}

#[test]
fn a_refused_registration_counts_against_its_address_at_the_arbiter_that_received_it() {
    let mut fixture = ArbiterFixture::new();
    fixture.known_devices.complete();
    let admit = |fixture: &mut ArbiterFixture| fixture.arbiter.admit(fixture.at.now, peer());
    for _ in 0..STRANGER_RATE_BURST_S {
        assert_eq!(admit(&mut fixture), Ok(()));
        fixture.receives(&register());
    }
    let over = DropReason::OverRate(RateScope::Stranger);
    assert_eq!(admit(&mut fixture), Err(over));
    fixture.passes(1_100);
    assert_eq!(admit(&mut fixture), Ok(()));
}

#[test]
fn a_refusal_is_noted_where_the_datagram_was_received() {
    let [mut here, mut there] = ArbiterFixture::two();
    assert_eq!(here.receives(&answer()), ["forward [1] to 1"]);
    let refused = [
        "tell 0 that 10.0.0.1:5683 is a stranger",
        "drop 1: UnknownPeer",
    ];
    assert_eq!(there.receives_forwarded(&mut here), refused);
    here.known_devices.complete();
    for _ in 0..STRANGER_RATE_BURST_S {
        here.arbiter.note_stranger(here.at.now, peer());
    }
    let over = DropReason::OverRate(RateScope::Stranger);
    assert_eq!(here.arbiter.admit(here.at.now, peer()), Err(over));
}

#[test]
fn a_message_that_has_no_mark_of_a_device_is_refused_without_a_look_up() {
    let mut fixture = ArbiterFixture::new();
    fixture.known_devices.complete();
    let forbidden = ["drop 1: UnknownEndpoint", "send 4.03"];
    assert_eq!(fixture.receives(&register()), forbidden);
    let not_found = ["drop 2: UnknownLocation", "send 4.04"];
    assert_eq!(fixture.receives(&update()), not_found);
    let unauthorized = ["drop 3: UnknownAddress", "send 4.01"];
    assert_eq!(fixture.receives(&data()), unauthorized);
    assert_eq!(fixture.arbiter.strangers().len(), 2, "named, and not");

    let of_device = DeviceMark::Key(key(METER).prefix());
    for (mark, message, looked_up) in [
        (DeviceMark::Address(peer().ip()), register(), "10.0.0.1"),
        (DeviceMark::Endpoint("meter"), register(), "the name meter"),
        (of_device, update(), "a location"),
    ] {
        let mut fixture = ArbiterFixture::new();
        fixture.known_devices.complete();
        fixture.known_devices.add(mark);
        assert_eq!(fixture.receives(&message), [format!("look up {looked_up}")]);
    }
}

#[test]
fn beyond_the_rate_of_all_strangers_none_is_answered() {
    let mut fixture = ArbiterFixture::new();
    fixture.known_devices.complete();
    let refused = ["drop 1: UnknownEndpoint", "send 4.03"];
    assert_eq!(fixture.receives(&register()), refused);
    let mut last = Vec::new();
    for _ in 0..BOUNDS.rates.stranger * STRANGERS_RATE_FACTOR {
        last = fixture.receives(&register());
    }
    let number = BOUNDS.rates.stranger * STRANGERS_RATE_FACTOR + 1;
    assert_eq!(last, [format!("drop {number}: OverRate(Strangers)")]);
    let ping = Message::ping(MessageId(1));
    let ping = fixture.receives(&ping);
    assert_eq!(ping, [format!("drop {}: OverRate(Strangers)", number + 1)]);
}

#[test]
fn an_impostor_counts_as_a_stranger() {
    let mut fixture = ArbiterFixture::new();
    fixture.known_devices.complete();
    for number in 0..STRANGER_RATE_BURST_S as u64 {
        fixture.take(|arbiter, at, out| arbiter.handle_impostor(at.now, (number, peer()), out));
    }
    let over = DropReason::OverRate(RateScope::Stranger);
    assert_eq!(fixture.arbiter.admit(fixture.at.now, peer()), Err(over));
}

#[test]
fn customers_that_send_at_the_same_time_share_an_arbiter() {
    let mut fixture = ArbiterFixture::new();
    fixture.runs_all(&[METER, OF_ANOTHER]);
    fixture.announces_peer(OF_ANOTHER);
    assert_eq!(fixture.receives(&send()), ["deliver datagram 1 to meter-5"]);
    fixture.announces_peer(METER);
    for number in 2..=4 {
        let delivered = format!("deliver datagram {number} to meter-0");
        assert_eq!(fixture.receives(&send()), [delivered]);
    }
    assert_eq!(fixture.receives(&send()), ["drop 5: OverRate(Customer)"]);
    let answered = ["deliver datagram 6 to meter-0"];
    assert_eq!(
        fixture.receives(&answer()),
        answered,
        "an answer is never dropped"
    );
    fixture.passes(1_000);
    assert_eq!(fixture.receives(&send()), ["deliver datagram 7 to meter-0"]);
}

#[test]
fn an_actor_is_idle_only_if_it_handled_all_that_was_delivered() {
    let mut fixture = ArbiterFixture::new();
    let generation = fixture.runs(METER);
    fixture.receives(&update());
    let early = ActorExit::Idle { handled: 0 };
    assert_eq!(fixture.ends(generation, early), NOTHING);
    let idle = ActorExit::Idle { handled: 1 };
    assert_eq!(fixture.ends(generation, idle), ["release meter-0"]);
    assert_eq!(fixture.receives(&register()), ["look up the name meter"]);
    assert_eq!(fixture.finds(Ok(Some(key(METER)))), ["look up meter-0"]);
}

#[test]
fn the_report_of_an_earlier_actor_does_not_end_the_present_one() {
    let mut fixture = ArbiterFixture::new();
    let early = fixture.runs(METER);
    fixture.ends(early, ActorExit::Failed(ActorFailure::Panicked));
    fixture.restored();
    fixture.spawned(METER);
    assert_eq!(fixture.ends(early, ActorExit::Retired), NOTHING);
    assert_eq!(
        fixture.receives(&update()),
        ["deliver datagram 1 to meter-0"]
    );
}

#[test]
fn a_device_whose_step_was_not_saved_is_restored_after_a_pause() {
    let mut fixture = ArbiterFixture::new();
    let generation = fixture.runs(METER);
    let failed = ["meter-0 failed: Unsaved, Restore", "release meter-0"];
    let unsaved = ActorExit::Failed(ActorFailure::Unsaved);
    assert_eq!(fixture.ends(generation, unsaved), failed);
    assert!(fixture.arbiter.owns(key(METER)));
    assert_eq!(fixture.passes(STORE_RETRY_MS - 1), NOTHING);
    assert_eq!(fixture.passes(1), ["look up meter-0"]);
}

#[test]
fn a_device_whose_actor_panicked_is_restored_at_once_and_parked_if_it_panics_too_often() {
    let mut fixture = ArbiterFixture::new();
    let mut generation = fixture.runs(METER);
    let panicked = ActorExit::Failed(ActorFailure::Panicked);
    for _ in 0..PANICS_MAX {
        let failed = "meter-0 failed: Panicked, Restore";
        let restored = [failed, "release meter-0", "look up meter-0"];
        assert_eq!(fixture.ends(generation, panicked), restored);
        fixture.restored();
        fixture.spawned(METER);
        generation = fixture.generation.expect("its actor was spawned");
    }
    let failed = "meter-0 failed: Panicked, Park";
    let parked = [failed, "release meter-0", "look up parked meter-0"];
    assert_eq!(fixture.ends(generation, panicked), parked);
    let logged = fixture.take(|arbiter, at, out| {
        arbiter.handle_parked(&mut Moment::new(at.now, 1), &profile(METER), out);
    });
    assert_eq!(logged, ["log DeviceController[DeviceParked]"]);
    let busy = ["reply to first: Err(Busy)"];
    assert_eq!(fixture.command("first", DeviceCommand::Inspect), busy);
    let read = ["reply to second: Ok(ProfileRead)"];
    assert_eq!(fixture.command("second", DeviceCommand::ReadProfile), read);
}

#[test]
fn a_timeout_that_met_a_full_mailbox_is_delivered_again() {
    let mut fixture = ArbiterFixture::new();
    fixture.runs(METER);
    fixture.arbiter.arm(fixture.at.now.plus_ms(10), key(METER));
    let woken = ["deliver a timeout to meter-0"];
    assert_eq!(fixture.passes(10), woken);
    let refused = fixture.take(|arbiter, at, out| {
        arbiter.handle_undelivered(at.now, key(METER), DeviceInput::Timeout, out);
    });
    assert_eq!(refused, NOTHING);
    assert_eq!(fixture.passes(CROWDED_RETRY_MS), woken);
}

#[test]
fn after_a_stop_began_no_device_is_woken_or_restored_except_on_demand() {
    let mut fixture = ArbiterFixture::new();
    fixture.runs(METER);
    fixture.starts();
    fixture.arbiter.arm(fixture.at.now.plus_ms(10), key(METER));
    fixture.arbiter.quiesce();
    fixture.arbiter.arm(fixture.at.now.plus_ms(20), key(METER));
    assert_eq!(fixture.arbiter.next_timeout(), None);
    assert_eq!(fixture.reads_page(&["meter-1"]), NOTHING);
    let delivered = ["deliver the first question to meter-0"];
    assert_eq!(fixture.command("first", DeviceCommand::Inspect), delivered);
}

#[test]
fn the_oldest_unfinished_bodies_give_way_once_all_exceed_the_bound() {
    let mut fixture = ArbiterFixture::new();
    fixture.runs_all(&NAMES[..3]);
    let max = BOUNDS.unfinished_bytes_max;
    assert_eq!(fixture.holds(NAMES[0], max / 2), NOTHING);
    assert_eq!(fixture.holds(NAMES[1], max / 4), NOTHING);
    assert_eq!(
        fixture.holds(NAMES[0], max / 2 + 1),
        NOTHING,
        "it is the oldest still"
    );
    let dropped = ["deliver the end of its bodies to meter-0"];
    assert_eq!(fixture.holds(NAMES[2], max / 4), dropped);
    assert_eq!(
        fixture.holds(NAMES[2], max / 2),
        NOTHING,
        "those of meter-0 are gone soon"
    );
    assert_eq!(fixture.holds(NAMES[0], 0), NOTHING);
    assert_eq!(fixture.holds(NAMES[0], max / 4), NOTHING);
    let dropped = ["deliver the end of its bodies to meter-1"];
    assert_eq!(fixture.holds(NAMES[0], max / 2), dropped);
}

#[test]
fn unfinished_bodies_that_met_a_full_mailbox_or_an_ended_actor_are_not_counted_wrongly() {
    let mut fixture = ArbiterFixture::new();
    fixture.runs_all(&NAMES[..2]);
    let max = BOUNDS.unfinished_bytes_max;
    fixture.holds(METER, max);
    let dropped = ["deliver the end of its bodies to meter-0"];
    assert_eq!(fixture.holds(NAMES[1], 1), dropped);
    let refused = fixture.take(|arbiter, at, out| {
        arbiter.handle_undelivered(at.now, key(METER), DeviceInput::DropUnfinished, out);
    });
    assert_eq!(refused, NOTHING);
    assert_eq!(fixture.passes(CROWDED_RETRY_MS), dropped);
    let mut binding = PeerBinding::default();
    fixture.arbiter.abandon(key(METER), &mut binding);
    assert_eq!(fixture.holds(NAMES[1], max), NOTHING);
}
