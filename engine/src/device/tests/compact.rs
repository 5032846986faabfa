//! The memory of an idle device: there are a million of them.

use std::sync::Arc;

use protocol::coap::code::Code;
use protocol::lwm2m::links::ObjectLinks;

use super::vocabulary::{DeviceFixture, HOME, S, read};
use crate::device::Device;
use crate::device::identity::Identity;
use crate::device::objects::ObjectLists;

/// The fields that an update reads and writes are stored side by side, within five cache lines.
const DEVICE_BYTES_MAX: usize = 320;

/// With the eight bytes of the allocator, one cache line. The text of the names is one more block:
/// 32 bytes if one name of the length of an ICCID is used for everything.
const IDENTITY_BYTES_MAX: usize = 56;

/// The objects of another kind of device.
const OTHERS: &str = "</1/0>,</3/0>,</3303/0>,</3303/1>";

#[test]
fn a_device_stays_within_its_memory_bounds() {
    let bytes = size_of::<Device>();
    assert!(bytes <= DEVICE_BYTES_MAX, "{bytes} bytes");
    assert!(size_of::<Identity>() <= IDENTITY_BYTES_MAX);
}

#[test]
fn a_registered_device_has_nothing_in_progress() {
    let mut fixture = DeviceFixture::registered();
    assert!(fixture.device().busy.is_none());
    fixture.at(S).update();
    assert!(fixture.device().busy.is_none());
    fixture.restart();
    assert!(fixture.device().busy.is_none());
}

#[test]
fn a_request_leaves_memory_when_it_is_final() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9"));
    assert!(fixture.device().busy.is_some());
    fixture.at(S).answer(Code::CONTENT, "87");
    assert!(fixture.device().busy.is_none());
    let waiting = fixture.ask(read("/3/0/9").when_active());
    assert!(fixture.device().busy.is_some());
    fixture.cancel(waiting).0.unwrap();
    assert!(fixture.device().busy.is_none());
    fixture.ask(read("/3/0/9").when_active());
    fixture.cancel_all();
    assert!(fixture.device().busy.is_none());
}

#[test]
fn a_rejection_leaves_memory_when_it_would_be_logged_again() {
    let mut fixture = DeviceFixture::new();
    let registration = fixture.registration(&["lwm2m=1.1"], "</3/0>");
    fixture.receives("10.6.6.6:5683", &registration);
    assert!(fixture.device().busy.is_some());
    fixture.next_deadline();
    assert!(fixture.device().busy.is_none());
}

#[test]
fn devices_that_offer_the_same_have_one_list() {
    let mut lists = ObjectLists::default();
    let (mut one, mut other) = (DeviceFixture::registered(), DeviceFixture::registered());
    assert!(!Arc::ptr_eq(&list_of(&one), &list_of(&other)));
    one.share_objects(&mut lists);
    other.share_objects(&mut lists);
    assert!(Arc::ptr_eq(&list_of(&one), &list_of(&other)));
    for fixture in [&mut one, &mut other] {
        let update = fixture.updating(&[], OTHERS);
        fixture.at(S).receives(HOME, &update);
        fixture.share_objects(&mut lists);
    }
    assert!(Arc::ptr_eq(&list_of(&one), &list_of(&other)));
    assert_eq!(list_of(&one).encode(), OTHERS);
    one.restart();
    one.share_objects(&mut lists);
    assert!(Arc::ptr_eq(&list_of(&one), &list_of(&other)));
}

#[test]
fn a_device_that_registers_again_with_equal_objects_keeps_its_list() {
    let mut fixture = DeviceFixture::registered();
    let before = list_of(&fixture);
    fixture.at(S).register();
    assert!(Arc::ptr_eq(&before, &list_of(&fixture)));
}

fn list_of(fixture: &DeviceFixture) -> Arc<ObjectLinks> {
    fixture.snapshot().registration.unwrap().links
}
