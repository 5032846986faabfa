//! What happens to a device, a destination or the jobs whose actor panics or whose store fails, and
//! to the others?
//!
//! The real registry, supervisor of forwarders, actors, socket and store; only commits have a
//! switch that makes them fail or panic.

#![allow(clippy::unwrap_used, clippy::panic)]

mod delivering;
mod faulty;
mod jobs;
mod operator_log;
mod plain;
mod test_service;
#[path = "../support/vocabulary.rs"]
mod vocabulary;

use engine::admin_log::window::TimeWindow;
use engine::query::{LogFilter, PageRequest};
use engine::supervision::Unserved;
use faulty::FaultMode;
use protocol::coap::code::Code;
use store::DirectoryReads as _;
use test_service::{TestService, changing_update, register};

#[test]
fn a_panicked_device_is_restored_from_the_store() {
    let setup = TestService::new(["meter"]);
    let mut device = setup.device();
    let location = device.ask(&register("meter")).location();
    setup.commits.set(FaultMode::PanicOnce);
    let update = changing_update(&location, 600);
    assert_eq!(device.ask_until_answered(&update).code, Code::CHANGED);
    assert_eq!(setup.commits.mode(), FaultMode::Well);
}

#[test]
fn a_device_that_keeps_panicking_is_parked_with_a_log_entry_and_others_are_served() {
    let setup = TestService::new(["meter", "lamp"]);
    let mut device = setup.device();
    let location = device.ask(&register("meter")).location();
    setup
        .commits
        .set(FaultMode::PanicAlwaysFor(setup.key("meter")));
    setup.until(|| {
        device.send(&changing_update(&location, 600));
        setup
            .entries()
            .iter()
            .any(|message| message == "DeviceController[DeviceParked]")
    });
    assert_eq!(setup.inspect("meter"), Err(Unserved::Busy));
    let mut other = setup.device();
    assert_eq!(other.ask(&register("lamp")).code, Code::CREATED);
}

#[test]
fn an_unsaved_step_is_not_answered_and_happens_once_the_store_is_back() {
    let setup = TestService::new(["meter"]);
    let mut device = setup.device();
    setup.commits.set(FaultMode::Unavailable);
    let message = register("meter");
    device.send(&message);
    setup.until(|| setup.commits.refused() > 0);
    setup.until(|| setup.commits.times_full() > 0);
    assert!(device.receives_nothing_before_a_pong());
    setup.commits.set(FaultMode::Well);
    assert_eq!(device.ask_until_answered(&message).code, Code::CREATED);
    assert_eq!(setup.entries(), ["Lifecycle[DeviceFirstTimeRegistered]"]);
}

#[test]
fn a_full_store_is_answered_to_devices_and_callers() {
    let setup = TestService::new(["meter"]);
    let mut device = setup.device();
    setup.commits.set(FaultMode::Full);
    let answer = device.ask(&register("meter"));
    assert_eq!(answer.code, Code::SERVICE_UNAVAILABLE);
    assert!(answer.max_age_s.is_some_and(|max_age_s| max_age_s > 0));
    assert_eq!(setup.submit("meter"), Err(Unserved::Busy));
    setup.commits.set(FaultMode::Well);
    assert_eq!(
        device.ask_until_answered(&register("meter")).code,
        Code::CREATED
    );
}

#[test]
fn on_a_slow_disk_what_was_accepted_completes_and_the_rest_is_told_when_to_return() {
    let setup = TestService::new(["one", "two", "three"]);
    let [mut one, mut two, mut three] = [(); 3].map(|()| setup.device());
    setup.commits.set(FaultMode::SlowUpTo(2));
    let accepted = [register("one"), register("two")];
    one.send(&accepted[0]);
    two.send(&accepted[1]);
    setup.until(|| setup.commits.waiting() == 2);
    let answer = three.ask(&register("three"));
    assert_eq!(answer.code, Code::SERVICE_UNAVAILABLE);
    assert!(answer.max_age_s.is_some_and(|max_age_s| max_age_s > 0));
    assert_eq!(setup.submit("three"), Err(Unserved::Busy));
    assert_eq!(setup.commits.waiting(), 2, "nothing more waits");
    assert!(one.receives_nothing_before_a_pong());

    setup.commits.set(FaultMode::Well);
    assert_eq!(one.ask_until_answered(&accepted[0]).code, Code::CREATED);
    assert_eq!(two.ask_until_answered(&accepted[1]).code, Code::CREATED);
    let answer = three.ask_until_answered(&register("three"));
    assert_eq!(answer.code, Code::CREATED);
}

#[test]
fn a_removed_device_is_unknown_and_its_location_gone() {
    let setup = TestService::new(["meter"]);
    let mut device = setup.device();
    let location = device.ask(&register("meter")).location();
    assert_eq!(setup.retire("meter"), Ok(()));
    assert_eq!(
        device.ask(&changing_update(&location, 600)).code,
        Code::NOT_FOUND
    );
    assert_eq!(device.ask(&register("meter")).code, Code::FORBIDDEN);
    assert_eq!(setup.inspect("meter").map(|_| ()), Err(Unserved::Unknown));
}

#[test]
fn a_device_removed_in_the_store_is_unknown_and_unloaded_once() {
    let setup = TestService::new(["meter"]);
    let mut device = setup.device();
    device.ask(&register("meter"));
    setup.remove_in_store("meter");
    assert_eq!(setup.retire("meter"), Err(Unserved::Unknown));
    // Until the registry handles the end of the actor, callers are asked to try again.
    setup.until(|| match setup.inspect("meter") {
        Err(Unserved::Unknown) => true,
        Err(Unserved::Busy) => false,
        other => panic!("{other:?}"),
    });
    assert_eq!(device.ask(&register("meter")).code, Code::FORBIDDEN);
}

#[test]
fn a_profile_change_needs_a_known_device_but_not_a_loaded_one() {
    let setup = TestService::new(["meter"]);
    assert_eq!(setup.read_profile("meter"), Ok(()));
    assert_eq!(setup.read_profile("stranger"), Err(Unserved::Unknown));
    let mut device = setup.device();
    device.ask(&register("meter"));
    assert_eq!(setup.read_profile("meter"), Ok(()));
    assert_eq!(setup.retire("meter"), Ok(()));
    assert_eq!(setup.read_profile("meter"), Err(Unserved::Unknown));
}

#[test]
fn a_profile_change_does_not_wait_for_a_parked_or_panicking_device() {
    let setup = TestService::new(["meter"]);
    let mut device = setup.device();
    let location = device.ask(&register("meter")).location();
    setup
        .commits
        .set(FaultMode::PanicAlwaysFor(setup.key("meter")));
    setup.until(|| {
        device.send(&changing_update(&location, 600));
        // The device panics repeatedly meanwhile, and is parked in the end.
        assert_eq!(setup.read_profile("meter"), Ok(()));
        setup.inspect("meter") == Err(Unserved::Busy)
    });
    assert_eq!(setup.read_profile("meter"), Ok(()));
}

impl TestService {
    /// The messages of the customer's log, newest first.
    pub(crate) fn entries(&self) -> Vec<String> {
        let now = self.clock.now();
        let window = TimeWindow::of(now, None, None).unwrap();
        let customer = test_service::customer();
        let filter = LogFilter {
            customer,
            window,
            iccid: None,
            category: None,
            subject: None,
        };
        let page = PageRequest {
            number: 1,
            size: 100,
        };
        let entries = test_service::wait_for(self.store.entries(filter, page)).unwrap();
        entries
            .items
            .iter()
            .map(|entry| entry.message.to_string())
            .collect()
    }
}
