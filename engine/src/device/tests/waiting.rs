//! What a request waits for: in its timeline, and in the device inspector.

use protocol::coap::message::MessageKind;

use super::vocabulary::{BATTERY, DeviceFixture, HOME, MINUTE, REPORTING, S, block, coap, read};
use crate::action::Method;
use crate::action::timeline::{TimelineEvent, WaitReason};
use crate::ids::ActionId;
use protocol::coap::block::More::Yes;

#[test]
fn a_request_waits_for_another_one() {
    let mut fixture = DeviceFixture::registered();
    let first = fixture.ask(read("/3/0/9"));
    let second = fixture.at(S).ask(read("/3/0/0"));
    check_waits(&fixture, second, WaitReason::Request);
    let snapshot = fixture.snapshot();
    let exchange = snapshot.exchange.unwrap();
    assert_eq!(exchange.purpose, WaitReason::Request);
    assert_eq!(exchange.action, Some(first));
    assert_eq!(fixture.since_start(exchange.begun_at), 0);
    assert_eq!(snapshot.pending[0].waits_for, None, "it is in flight");
    let begun = fixture.saved(first).timeline.as_slice()[0].what;
    assert_eq!(begun, TimelineEvent::AttemptBegun(1), "it did not wait");
}

#[test]
fn a_request_waits_for_a_passive_read() {
    let mut fixture = DeviceFixture::reporting();
    fixture.offer(REPORTING);
    let id = fixture.ask(read("/3/0/9"));
    check_waits(&fixture, id, WaitReason::PassiveReporting);
}

#[test]
fn a_request_waits_for_the_rest_of_a_notification() {
    let mut fixture = DeviceFixture::observed();
    let first = fixture.notification_of(BATTERY, MessageKind::NonConfirmable, 11);
    let first = first
        .with_block2(block(0, Yes))
        .with_payload("0123456789abcdef");
    fixture.receives(HOME, &first);
    let id = fixture.ask(read("/3/0/0"));
    check_waits(&fixture, id, WaitReason::Notification);
    let exchange = fixture.snapshot().exchange.unwrap();
    assert_eq!(exchange.path, Some(BATTERY.parse().unwrap()));
}

#[test]
fn a_request_waits_for_an_observation_to_be_renewed() {
    let mut fixture = DeviceFixture::observed();
    fixture.register();
    let id = fixture.ask(read("/3/0/0"));
    check_waits(&fixture, id, WaitReason::Observation);
    let exchange = fixture.snapshot().exchange.unwrap();
    assert_eq!(exchange.path, Some(BATTERY.parse().unwrap()));
}

#[test]
fn a_request_waits_until_the_device_is_awake() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    let id = fixture.at(2 * MINUTE).ask(read("/3/0/9"));
    check_waits(&fixture, id, WaitReason::Asleep);
}

#[test]
fn a_request_for_the_next_uplink_says_so_in_the_inspector_alone() {
    let mut fixture = DeviceFixture::registered();
    let id = fixture.ask(read("/3/0/9").when_active());
    assert_eq!(waits_for(&fixture, id), Some(WaitReason::Uplink));
    assert_eq!(fixture.saved(id).timeline.as_slice(), []);
    fixture.deregister();
    assert_eq!(waits_for(&fixture, id), Some(WaitReason::Unregistered));
    let id = fixture.ask(coap(Method::Get, "/a", "").when_active());
    assert_eq!(waits_for(&fixture, id), Some(WaitReason::Uplink));
}

/// The reason is in the inspector, and was saved with the request.
fn check_waits(fixture: &DeviceFixture, id: ActionId, why: WaitReason) {
    assert_eq!(waits_for(fixture, id), Some(why));
    let timeline = fixture.saved(id).timeline.as_slice();
    let happened: Vec<TimelineEvent> = timeline.iter().map(|it| it.what).collect();
    assert_eq!(happened, [TimelineEvent::Waiting(why)]);
}

fn waits_for(fixture: &DeviceFixture, id: ActionId) -> Option<WaitReason> {
    let pending = fixture.snapshot().pending;
    let found = pending.iter().find(|it| it.action.id == id);
    found.expect("it is pending").waits_for
}
