//! A request that wakes the device: with which SMS, and when the request leaves.

use super::vocabulary::{
    DeviceFixture, Lines, S, START, all, created, datagram, moved, profile, read, sent, updated,
};
use crate::action::Status::{InProgress, Scheduled};
use crate::action::timeline::{TimelineEvent, WaitReason};
use crate::action::{NewAction, WakeUp};
use crate::device::refusal::SubmitRefusal;
use crate::directory::sms::waking::{WakeUpFacts, WakeUpRefusal};
use crate::ids::{Msisdn, SmsId};
use crate::profile::Profile;
use crate::sms::address::AddressType;
use crate::wake_up::{WakeUpContent, WakeUpMessage};

#[test]
fn the_sms_is_saved_in_the_step_that_accepts_the_request() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    let (accepted, effects) = fixture
        .at(93 * S)
        .submit_waking(waking(read("/3/0/9")), &facts());
    assert_eq!(effects, all([created("#1", Scheduled, "0/1"), sms()]));
    let id = accepted.unwrap().id;
    assert!(fixture.saved(id).woken_by.is_some());
    let expected = all([
        updated(102),
        moved("#1", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/9 accept 0 m1"),
    ]);
    assert_eq!(fixture.at(102 * S).update(), expected);
}

#[test]
fn a_second_request_shares_the_sms_that_is_not_stored_yet() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    let now = waking(read("/3/0/9"));
    let (first, _) = fixture.at(93 * S).submit_waking(now.clone(), &facts());
    assert!(first.is_ok());
    let (accepted, effects) = fixture
        .at(94 * S)
        .submit_waking(now.when_active(), &facts());
    assert_eq!(effects, created("#2", Scheduled, "0/1"));
    let id = accepted.unwrap().id;
    let first = SmsId::first_at(START.plus_ms(93 * S));
    assert_eq!(fixture.saved(id).woken_by, Some(first));
}

#[test]
fn a_device_that_listens_gets_the_request_and_no_sms() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    let (_, effects) = fixture
        .at(93 * S - 1)
        .submit_waking(waking(read("/3/0/9")), &facts());
    let expected = all([
        created("#1", InProgress, "0/1"),
        moved("#1", InProgress, InProgress, "1/1"),
        sent("CON GET /3/0/9 accept 0 m1"),
    ]);
    assert_eq!(effects, expected);
}

#[test]
fn a_datagram_waits_until_a_silent_device_is_heard_also_across_a_restart() {
    let mut fixture = DeviceFixture::new();
    let (accepted, effects) = fixture.submit_waking(waking(datagram("on")), &facts());
    assert_eq!(effects, all([created("#1", Scheduled, "0/1"), sms()]));
    let id = accepted.unwrap().id;
    let waited: Vec<_> = fixture.saved(id).timeline.as_slice().iter().collect();
    assert_eq!(waited[0].what, TimelineEvent::Waiting(WaitReason::Uplink));
    fixture.restart();
    assert_eq!(fixture.at(S).timeout(), Lines::new());
    let heard = fixture.receives_bare(b"awake");
    assert!(
        heard.iter().any(|line| line.ends_with("\"on\"")),
        "{heard:?}"
    );
}

#[test]
fn a_request_that_cannot_wake_the_device_leaves_nothing() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    let mut without_number = facts();
    without_number.device.msisdn = None;
    // Also while the device listens.
    for at in [S, 93 * S] {
        let refused = fixture
            .at(at)
            .submit_waking(waking(read("/3/0/9")), &without_number);
        let why = SubmitRefusal::WakeUp(WakeUpRefusal::NoNumber);
        assert_eq!(refused, (Err(why), Lines::new()));
    }
}

fn waking(new: NewAction) -> NewAction {
    let wake_up = Some(WakeUp::Sms);
    NewAction { wake_up, ..new }
}

fn sms() -> Lines {
    let lines = ["expect an unused SMS id", "put SMS: wake up"];
    lines.map(str::to_owned).into()
}

fn facts() -> WakeUpFacts {
    WakeUpFacts {
        device: Profile {
            msisdn: Some(Msisdn::parse("882285100000001").unwrap()),
            ..profile()
        },
        of_customer: Some(WakeUpMessage {
            source: "1234".into(),
            source_type: AddressType::International,
            content: WakeUpContent::Text("wake up".into()),
        }),
        newest: Vec::new(),
        open: 0,
    }
}
