//! What must every engine behind [`Store`] do? A suite that each engine has to pass.
//!
//! An engine's tests call [`run_all`] with a function that opens it. Every law gets a directory of
//! its own and may open the store there several times. A law that fails panics and names itself; a
//! law that draws random data prints its seed, which the environment variable `STORE_SEED`
//! reproduces.

mod addresses;
pub(crate) mod bootstrap;
mod commits;
mod counting;
mod customers;
mod definitions;
mod delivering;
mod destinations;
mod devices;
mod events;
pub(crate) mod firmware;
mod fleet;
pub(crate) mod idempotency;
pub(crate) mod jobs;
mod lists;
mod model;
mod outbox;
mod owners;
mod paging;
mod payloads;
mod plain;
mod restoring;
pub mod rng;
pub mod samples;
pub(crate) mod schedules;
mod sim_logs;
pub(crate) mod sms;
mod sweeping;
mod unique_names;
mod waiting;

use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use engine::change::{Batch, Change};

use crate::{CommitError, Store};

/// Opens an engine in a directory.
pub type Open<'a> = &'a dyn Fn(&Path) -> Box<dyn Store>;

/// Where a law is checked.
pub struct TestBed<'a> {
    directory: PathBuf,
    open: Open<'a>,
}

/// A property that must hold.
type Law = fn(&TestBed<'_>);

const LAWS: [(&str, Law); 102] = [
    (
        "a batch is applied whole or not at all",
        commits::whole_or_not_at_all,
    ),
    (
        "a batch happens only if what it expects holds",
        commits::only_if_expectations_hold,
    ),
    (
        "of racing batches that expect the same one wins",
        commits::one_racer_wins,
    ),
    (
        "of racing changes of a status one wins",
        commits::one_status_change_wins,
    ),
    ("adds commute", commits::adds_commute),
    (
        "what is acknowledged is there when the store is opened again",
        commits::reopening_keeps,
    ),
    (
        "customers, clients, tokens and settings come back",
        customers::come_back,
    ),
    ("customers are listed by id", customers::listed_by_id),
    (
        "a removed client takes its tokens along",
        customers::client_takes_tokens,
    ),
    (
        "a removed customer takes everything along",
        customers::customer_takes_everything,
    ),
    (
        "a customer never sees the log of a former one with its id",
        customers::log_is_not_inherited,
    ),
    (
        "a device has its names and no other's",
        devices::have_their_names,
    ),
    (
        "many names are looked up at once as one by one",
        unique_names::many_names_at_once,
    ),
    (
        "a text may be several names of a device, and each of them is unique",
        unique_names::one_text_for_several_names,
    ),
    (
        "a replaced profile frees the names it gave up",
        devices::free_names,
    ),
    (
        "a device is found by the first half of its key",
        devices::found_by_prefix,
    ),
    (
        "an address of one device is distinguished from a shared one",
        addresses::are_distinguished_from_shared_ones,
    ),
    (
        "an address follows its device",
        addresses::follow_their_devices,
    ),
    (
        "an address is one however it is written",
        addresses::are_one_however_they_are_written,
    ),
    (
        "a device is restored with record and pending requests",
        devices::restored,
    ),
    (
        "the last reports of a device are known once the store was opened again",
        events::last_reports_are_known,
    ),
    (
        "a value of any size comes back, and smaller ones after it",
        devices::any_size,
    ),
    (
        "live devices are those with a registration or a request",
        restoring::live,
    ),
    (
        "the pages of a range of keys agree with each device",
        restoring::pages_agree,
    ),
    (
        "pages of large devices end early and lose none",
        restoring::large_devices,
    ),
    (
        "a page is right about every device that is left alone",
        restoring::right_about_those_left_alone,
    ),
    (
        "a removed device leaves its final requests and its log",
        devices::removed,
    ),
    ("lists agree with a naive model", lists::agree_with_model),
    (
        "a search of the log for a kind is bounded",
        lists::search_of_log_is_bounded,
    ),
    (
        "no list shows a request twice while requests change",
        paging::nothing_twice,
    ),
    (
        "devices are found as a naive model finds them",
        fleet::agrees_with_model,
    ),
    (
        "a search for devices ends at its bound and says so",
        fleet::search_is_bounded,
    ),
    (
        "a list of devices examines a bounded number and says so",
        fleet::list_is_bounded,
    ),
    (
        "a device changes only if it is what it was",
        fleet::profiles_are_compared_and_set,
    ),
    (
        "the statistics of the log equal a recount",
        counting::agree_with_a_recount,
    ),
    (
        "devices are counted once while their entries are written",
        counting::count_devices_once_while_they_move,
    ),
    (
        "the bytes an entry is about come back, and lists have none of them",
        payloads::of_any_size,
    ),
    (
        "the bytes an entry is about go with it",
        payloads::go_with_their_entries,
    ),
    (
        "the log of a SIM has the entries of every device that had it",
        sim_logs::have_every_device,
    ),
    (
        "idempotency records are found by their keys",
        idempotency::come_back,
    ),
    (
        "a call has one request for each device",
        idempotency::once_for_each_device,
    ),
    (
        "idempotency records are removed when they are old",
        idempotency::go_when_they_are_old,
    ),
    ("jobs come back and are listed", jobs::come_back),
    (
        "jobs have their devices in order",
        jobs::have_their_devices_in_order,
    ),
    (
        "jobs have outcomes of every kind",
        jobs::have_outcomes_of_every_kind,
    ),
    (
        "jobs are removed when they are old",
        jobs::go_when_they_are_old,
    ),
    (
        "jobs are removed with their devices",
        jobs::are_removed_with_their_devices,
    ),
    (
        "bootstrap configurations come back until they are removed",
        bootstrap::configurations_come_back_until_they_are_removed,
    ),
    (
        "the last bootstrap goes with its device",
        bootstrap::the_last_one_goes_with_its_device,
    ),
    ("schedules come back and are listed", schedules::come_back),
    (
        "schedules have their requests",
        schedules::have_their_requests,
    ),
    (
        "schedules are removed with their requests",
        schedules::are_removed_with_their_requests,
    ),
    (
        "the open requests of a job are known",
        schedules::know_the_open_requests_of_a_job,
    ),
    ("firmware images come back", firmware::images_come_back),
    (
        "the image of an open campaign is offered",
        firmware::the_image_of_an_open_campaign_is_offered,
    ),
    ("campaigns come back", firmware::campaigns_come_back),
    (
        "devices of a campaign are counted by their state",
        firmware::devices_are_counted_by_state,
    ),
    (
        "campaigns are removed with their devices",
        firmware::campaigns_are_removed_with_their_devices,
    ),
    ("SMS come back and are listed", sms::come_back),
    (
        "SMS are listed as their state says",
        sms::are_listed_as_their_state_says,
    ),
    (
        "SMS change only as a batch expects",
        sms::change_only_as_expected,
    ),
    (
        "SMS that wake a device are found",
        sms::that_wake_a_device_are_found,
    ),
    ("SMS go when they are old", sms::go_when_they_are_old),
    ("SMS go with their device", sms::go_with_their_device),
    (
        "events are read newest first from any point",
        events::are_read_newest_first_from_any_point,
    ),
    (
        "events are found by time, type and path",
        events::are_found_by_time_type_and_path,
    ),
    (
        "events have samples of a path, read page by page",
        events::have_samples_of_a_path,
    ),
    (
        "events that are durable have numbers up to the newest",
        events::that_are_durable_have_numbers_up_to_the_newest,
    ),
    (
        "events of every kind are read as they were written",
        events::of_every_kind_are_read_as_they_were_written,
    ),
    (
        "events contain the ids of their device",
        events::contain_the_ids_of_their_device,
    ),
    (
        "events leave the last value of each path",
        events::leave_the_last_value_of_each_path,
    ),
    (
        "events leave the value that was measured last",
        events::leave_the_value_that_was_measured_last,
    ),
    (
        "events leave no more values than a device may have",
        events::leave_no_more_values_than_a_device_may_have,
    ),
    (
        "a value that is too long leaves no known value",
        events::leave_no_value_that_is_too_long,
    ),
    (
        "last values agree with a naive model, whatever is removed",
        events::leave_values_that_agree_with_a_naive_model,
    ),
    (
        "events are removed when they are too old, and hidden with their device",
        events::go_when_they_are_too_old_and_hide_with_their_device,
    ),
    (
        "a device never sees the events of a former one with its key",
        events::are_not_inherited,
    ),
    (
        "histories agree with a naive model",
        events::agree_with_a_naive_model,
    ),
    (
        "requests of every protocol come back",
        plain::requests_come_back,
    ),
    (
        "data of any form comes back and is no known value",
        plain::data_comes_back_and_is_no_known_value,
    ),
    (
        "the protocols a device used come back",
        plain::protocols_seen_come_back,
    ),
    (
        "an earlier epoch is fenced off",
        owners::earlier_epoch_is_fenced,
    ),
    (
        "an earlier epoch of deliveries is fenced off",
        owners::earlier_epoch_of_deliveries_is_fenced,
    ),
    (
        "the first key of the service stays",
        owners::first_server_key_stays,
    ),
    (
        "a sweep removes what is due and nothing else",
        sweeping::removes_what_is_due,
    ),
    (
        "a sweep stops at its bound and goes on later",
        sweeping::stops_at_its_bound,
    ),
    (
        "a sweep removes some of every kind, however much there is of others",
        sweeping::takes_of_every_kind,
    ),
    (
        "definitions of any size come back",
        definitions::of_any_size,
    ),
    (
        "definitions go with their customer",
        definitions::go_with_their_customer,
    ),
    (
        "the settings of all customers are read",
        definitions::settings_of_all_customers,
    ),
    ("destinations come back and go", destinations::come_back),
    (
        "destinations are listed by customer",
        destinations::are_listed_by_customer,
    ),
    (
        "destinations keep their place in each partition",
        destinations::keep_their_place,
    ),
    (
        "events that are not accepted become dead letters, are counted and removed when old",
        destinations::dead_letter_what_is_not_accepted,
    ),
    (
        "a removed destination takes everything along and does not come back",
        destinations::take_everything_along,
    ),
    (
        "destinations go with their customer",
        destinations::go_with_their_customer,
    ),
    (
        "events are queued in order, partition by partition",
        waiting::are_queued_in_order_partition_by_partition,
    ),
    (
        "a destination begins behind the events there are",
        waiting::begin_behind_what_there_is,
    ),
    (
        "the sequence numbers of queued events always rise",
        waiting::numbers_always_rise,
    ),
    (
        "an event may be removed before it is delivered",
        waiting::may_be_removed_before_delivery,
    ),
    (
        "notifiers report where events begin to wait",
        waiting::notifiers_report,
    ),
    (
        "the outbox and its counts agree with a naive model",
        delivering::agrees_with_model,
    ),
];

/// Checks every law, each in a folder of `directory`.
pub fn run_all(directory: &Path, open: Open<'_>) {
    for ((name, law), number) in LAWS.into_iter().zip(1..) {
        eprintln!("law {number}: {name}");
        let directory = directory.join(format!("law-{number}"));
        fs::create_dir_all(&directory).expect("a directory for the law");
        law(&TestBed { directory, open });
    }
}

impl TestBed<'_> {
    /// Opens the store of this law, with everything written to it before.
    pub fn open(&self) -> Box<dyn Store> {
        (self.open)(&self.directory)
    }
}

/// Waits on this thread for a receipt or an answer.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// Commits and waits.
fn commit(store: &dyn Store, batch: Batch) -> Result<(), CommitError> {
    wait(store.commit(batch))
}

/// Commits changes that must succeed.
fn put(store: &dyn Store, changes: Vec<Change>) {
    let batch = Batch {
        changes,
        ..Batch::default()
    };
    assert_eq!(commit(store, batch), Ok(()));
}
