//! What happens to a device or a destination whose actor falls over or whose store fails, and to
//! the others?
//!
//! The real registry, supervisor of forwarders, actors, socket and store; only the way in has a
//! switch that makes a commit fail or panic.

#![allow(clippy::unwrap_used, clippy::panic)]

mod delivering;
mod faulty;
mod plain;
mod telling;
#[path = "../support/vocabulary.rs"]
mod vocabulary;
mod world;

use engine::admin_log::window::Window;
use engine::query::{LogFilter, PageWanted};
use engine::supervision::Unserved;
use faulty::Mood;
use protocol::coap::code::Code;
use store::DirectoryReads as _;
use world::{World, changing_update, register};

#[test]
fn a_panicked_device_is_restored_from_the_store() {
    let world = World::new(["meter"]);
    let mut device = world.device();
    let location = device.ask(&register("meter")).location();
    world.commits.set(Mood::PanicOnce);
    let update = changing_update(&location, 600);
    assert_eq!(device.ask_until_answered(&update).code, Code::CHANGED);
    assert_eq!(world.commits.mood(), Mood::Well);
}

#[test]
fn a_device_that_keeps_panicking_is_parked_with_a_log_entry_and_others_are_served() {
    let world = World::new(["meter", "lamp"]);
    let mut device = world.device();
    let location = device.ask(&register("meter")).location();
    world.commits.set(Mood::PanicAlwaysFor(world.key("meter")));
    world.until(|| {
        device.send(&changing_update(&location, 600));
        world
            .entries()
            .iter()
            .any(|message| message == "DeviceController[DeviceParked]")
    });
    assert_eq!(world.inspect("meter"), Err(Unserved::Busy));
    let mut other = world.device();
    assert_eq!(other.ask(&register("lamp")).code, Code::CREATED);
}

#[test]
fn a_step_that_was_not_saved_is_not_answered_and_happens_once_the_store_is_back() {
    let world = World::new(["meter"]);
    let mut device = world.device();
    world.commits.set(Mood::Unavailable);
    let message = register("meter");
    device.send(&message);
    world.until(|| world.commits.refused() > 0);
    world.until(|| world.commits.turned_back() > 0);
    assert!(device.hears_nothing_before_a_pong());
    world.commits.set(Mood::Well);
    assert_eq!(device.ask_until_answered(&message).code, Code::CREATED);
    assert_eq!(world.entries(), ["Lifecycle[DeviceFirstTimeRegistered]"]);
}

#[test]
fn a_full_store_is_told_to_devices_and_callers() {
    let world = World::new(["meter"]);
    let mut device = world.device();
    world.commits.set(Mood::Full);
    let answer = device.ask(&register("meter"));
    assert_eq!(answer.code, Code::SERVICE_UNAVAILABLE);
    assert!(answer.max_age_s.is_some_and(|max_age_s| max_age_s > 0));
    assert_eq!(world.submit("meter"), Err(Unserved::Busy));
    world.commits.set(Mood::Well);
    assert_eq!(
        device.ask_until_answered(&register("meter")).code,
        Code::CREATED
    );
}

#[test]
fn a_removed_device_is_unknown_and_its_location_gone() {
    let world = World::new(["meter"]);
    let mut device = world.device();
    let location = device.ask(&register("meter")).location();
    assert_eq!(world.retire("meter"), Ok(()));
    assert_eq!(
        device.ask(&changing_update(&location, 600)).code,
        Code::NOT_FOUND
    );
    assert_eq!(device.ask(&register("meter")).code, Code::FORBIDDEN);
    assert_eq!(world.inspect("meter").map(|_| ()), Err(Unserved::Unknown));
}

#[test]
fn a_device_that_was_removed_behind_its_back_is_unknown_and_removed_once() {
    let world = World::new(["meter"]);
    let mut device = world.device();
    device.ask(&register("meter"));
    world.remove_in_store("meter");
    assert_eq!(world.retire("meter"), Err(Unserved::Unknown));
    // Until the registry hears that the actor ended, whoever asks is told to come again.
    world.until(|| match world.inspect("meter") {
        Err(Unserved::Unknown) => true,
        Err(Unserved::Busy) => false,
        other => panic!("{other:?}"),
    });
    assert_eq!(device.ask(&register("meter")).code, Code::FORBIDDEN);
}

#[test]
fn a_device_need_not_be_in_memory_to_be_named_anew_but_must_be_known() {
    let world = World::new(["meter"]);
    assert_eq!(world.take_new_names("meter"), Ok(()));
    assert_eq!(world.take_new_names("stranger"), Err(Unserved::Unknown));
    let mut device = world.device();
    device.ask(&register("meter"));
    assert_eq!(world.take_new_names("meter"), Ok(()));
    assert_eq!(world.retire("meter"), Ok(()));
    assert_eq!(world.take_new_names("meter"), Err(Unserved::Unknown));
}

#[test]
fn a_change_of_names_waits_for_no_device_that_is_parked_or_falls_over() {
    let world = World::new(["meter"]);
    let mut device = world.device();
    let location = device.ask(&register("meter")).location();
    world.commits.set(Mood::PanicAlwaysFor(world.key("meter")));
    world.until(|| {
        device.send(&changing_update(&location, 600));
        // It falls over again and again meanwhile, and is parked in the end.
        assert_eq!(world.take_new_names("meter"), Ok(()));
        world.inspect("meter") == Err(Unserved::Busy)
    });
    assert_eq!(world.take_new_names("meter"), Ok(()));
}

impl World {
    /// The messages of the customer's log, newest first.
    pub(crate) fn entries(&self) -> Vec<String> {
        let now = self.clock.now();
        let window = Window::of(now, None, None).unwrap();
        let customer = world::customer();
        let filter = LogFilter {
            customer,
            window,
            iccid: None,
            category: None,
            subject: None,
        };
        let page = PageWanted {
            number: 1,
            size: 100,
        };
        let entries = world::wait_for(self.store.entries(filter, page)).unwrap();
        entries
            .items
            .iter()
            .map(|entry| entry.message.to_string())
            .collect()
    }
}
