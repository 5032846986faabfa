//! Is a sound store without findings, and is damage to a row found by name?

use std::fs;
use std::path::Path;

use engine::admin_log::payload::EntryPayload;
use engine::change::Change;
use engine::delivery::backlog::Sequence;
use engine::directory::job::removal_of;
use engine::limits::JOB_PART_DEVICES;
use engine::profile::Profile;
use engine::schedule::Rhythm;
use engine::setting::{Setting, SettingName, SettingState};
use engine::sms::SmsStatus;
use sled::Db;

use super::*;
use crate::conformance::idempotency::{once, record_of};
use crate::conformance::jobs::made;
use crate::conformance::samples::{
    acme, at, batch, client, customer, device, entry, event, forgotten, token,
};
use crate::conformance::sms::{added, of_device, to_device, waking, with_message_ids};
use crate::conformance::wait;
use crate::conformance::{firmware, schedules};
use crate::record::entry::{link, write_entry};
use crate::record::entry_place::EntryPlace;
use crate::record::heads::{CheckpointV2, SECTIONS, write_checkpoint, write_page};
use crate::record::number::{write_count, write_name_owner, write_sequence};
use crate::record::outbox::{DestinationCounts, write_tally};
use crate::sled::key::Key;
use crate::sled::tests::{commit, deliver_in_part, live};
use crate::{Maintenance, Options, Retention, SledStore};

/// What is done to a row.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Removed,
    Overwritten,
}

use Damage::{Overwritten, Removed};

/// What happens to the first row of a table, and what is found.
const DAMAGED: [(Table, Damage, &str, Problem); 65] = [
    (Table::Format, Overwritten, "", Problem::Unreadable),
    (
        Table::Customer,
        Overwritten,
        "customers",
        Problem::Unreadable,
    ),
    (Table::Customer, Removed, COUNTS, Problem::Different),
    (
        Table::Client,
        Overwritten,
        "API clients",
        Problem::Unreadable,
    ),
    (
        Table::Client,
        Removed,
        "rows of API clients by owner",
        Problem::Surplus,
    ),
    (
        Table::ClientOfOwner,
        Removed,
        "rows of API clients by owner",
        Problem::Missing,
    ),
    (
        Table::Token,
        Removed,
        "rows of access tokens by client",
        Problem::Surplus,
    ),
    (
        Table::TokenOfClient,
        Removed,
        "rows of access tokens by client",
        Problem::Missing,
    ),
    (
        Table::TokenByExpiry,
        Removed,
        "rows of access tokens by expiry",
        Problem::Missing,
    ),
    (Table::Setting, Overwritten, "settings", Problem::Unreadable),
    (
        Table::Name,
        Removed,
        "unique names of devices",
        Problem::Missing,
    ),
    (Table::Device, Overwritten, "devices", Problem::Unreadable),
    (
        Table::Device,
        Removed,
        "rows of the list of devices",
        Problem::Surplus,
    ),
    (
        Table::DeviceOfCustomer,
        Removed,
        "rows of the list of devices",
        Problem::Missing,
    ),
    (
        Table::DeviceOfTag,
        Removed,
        "rows of devices by tag",
        Problem::Missing,
    ),
    (
        Table::DevicesOfTagCounted,
        Removed,
        "counts of devices by tag",
        Problem::Different,
    ),
    (
        Table::Record,
        Overwritten,
        "states of devices",
        Problem::Unreadable,
    ),
    (Table::Counter, Removed, COUNTS, Problem::Different),
    (
        Table::Pending,
        Removed,
        "rows of requests that are not final",
        Problem::Missing,
    ),
    (
        Table::FinalByAge,
        Removed,
        "rows of final requests by age",
        Problem::Missing,
    ),
    (Table::Action, Overwritten, "requests", Problem::Unreadable),
    (
        Table::Action,
        Removed,
        "rows of requests by customer",
        Problem::Surplus,
    ),
    (
        Table::ActionOfCustomer,
        Removed,
        "rows of requests by customer",
        Problem::Missing,
    ),
    (
        Table::ActionOfDevice,
        Removed,
        "rows of requests by device",
        Problem::Missing,
    ),
    (
        Table::ActionOfCustomerByUpdate,
        Removed,
        "rows of requests by customer and change",
        Problem::Missing,
    ),
    (
        Table::Entry,
        Removed,
        "counts of log entries",
        Problem::Different,
    ),
    (
        Table::EntriesByAge,
        Removed,
        "rows of log entries by age",
        Problem::Missing,
    ),
    (
        Table::EntryPayload,
        Removed,
        "payloads of log entries",
        Problem::Missing,
    ),
    (
        Table::EntryCount,
        Removed,
        "counts of log entries",
        Problem::Missing,
    ),
    (
        Table::DeviceInLog,
        Overwritten,
        "last log entries of devices",
        Problem::Different,
    ),
    (
        Table::DevicesCounted,
        Removed,
        "counts of devices in the log",
        Problem::Missing,
    ),
    (
        Table::Idempotency,
        Overwritten,
        "idempotency records",
        Problem::Unreadable,
    ),
    (
        Table::IdempotencyByAge,
        Removed,
        "rows of idempotency records by age",
        Problem::Missing,
    ),
    (Table::Piece, Removed, "devices", Problem::Unreadable),
    (
        Table::Definition,
        Removed,
        "texts of object definitions",
        Problem::Surplus,
    ),
    (
        Table::Destination,
        Removed,
        "counts of destinations",
        Problem::Surplus,
    ),
    (
        Table::Tally,
        Removed,
        "counts of destinations",
        Problem::Missing,
    ),
    (Table::Retry, Overwritten, "retries", Problem::Unreadable),
    (
        Table::Dead,
        Removed,
        "rows of dead letters by age",
        Problem::Surplus,
    ),
    (
        Table::DeadByAge,
        Removed,
        "rows of dead letters by age",
        Problem::Missing,
    ),
    (
        Table::EventBlock,
        Overwritten,
        "blocks of events",
        Problem::Unreadable,
    ),
    (
        Table::Job,
        Removed,
        "rows of jobs by customer",
        Problem::Surplus,
    ),
    (
        Table::JobRequest,
        Removed,
        "requests of jobs",
        Problem::Missing,
    ),
    (Table::JobPart, Removed, "parts of jobs", Problem::Missing),
    (
        Table::JobPart,
        Overwritten,
        "parts of jobs",
        Problem::Unreadable,
    ),
    (
        Table::JobOfCustomer,
        Removed,
        "rows of jobs by customer",
        Problem::Missing,
    ),
    (
        Table::JobsCounted,
        Removed,
        "counts of jobs",
        Problem::Different,
    ),
    (
        Table::RunningJob,
        Removed,
        "rows of running jobs",
        Problem::Missing,
    ),
    (
        Table::Schedule,
        Removed,
        "requests of schedules",
        Problem::Surplus,
    ),
    (
        Table::Schedule,
        Overwritten,
        "schedules",
        Problem::Unreadable,
    ),
    (
        Table::ScheduleContents,
        Removed,
        "requests of schedules",
        Problem::Missing,
    ),
    (
        Table::ScheduleContents,
        Overwritten,
        "requests of schedules",
        Problem::Unreadable,
    ),
    (
        Table::Campaign,
        Removed,
        "rows of firmware campaigns that have not ended",
        Problem::Surplus,
    ),
    (
        Table::Campaign,
        Overwritten,
        "firmware campaigns",
        Problem::Unreadable,
    ),
    (
        Table::OpenCampaign,
        Removed,
        "rows of firmware campaigns that have not ended",
        Problem::Missing,
    ),
    (
        Table::CampaignDevice,
        Overwritten,
        "devices of firmware campaigns",
        Problem::Unreadable,
    ),
    (Table::Sms, Overwritten, "SMS", Problem::Unreadable),
    (Table::Sms, Removed, "rows of SMS by id", Problem::Surplus),
    (
        Table::SmsOfId,
        Removed,
        "rows of SMS by id",
        Problem::Missing,
    ),
    (
        Table::SmsForNetwork,
        Removed,
        "rows of SMS for the network",
        Problem::Missing,
    ),
    (
        Table::SmsDue,
        Removed,
        "rows of SMS by validity",
        Problem::Missing,
    ),
    (
        Table::SmsOpen,
        Removed,
        "rows of SMS that are not final",
        Problem::Missing,
    ),
    (
        Table::SmsOfMessage,
        Removed,
        "rows of SMS by message id",
        Problem::Missing,
    ),
    (
        Table::WakeUpSms,
        Removed,
        "rows of SMS that wake devices",
        Problem::Missing,
    ),
    (
        Table::SmsCounted,
        Removed,
        "counts of SMS",
        Problem::Different,
    ),
];

const COUNTS: &str = "counts of customers, devices and requests";

#[test]
fn a_sound_store_has_no_findings() {
    let home = tempfile::tempdir().unwrap();
    drop(filled(home.path()));
    assert_eq!(found(home.path()), []);
    assert_eq!(found(home.path()), [], "a check changes nothing");

    let store = SledStore::open(Options::at(home.path())).unwrap();
    commit(&store, forgotten(&device(&acme(), 1)));
    let old = Retention {
        actions_before: at(15),
        entries_before: at(15),
        events_before: at(22),
        ..Retention::NOTHING
    };
    while wait(store.sweep(old, 100)).unwrap().more {}
    drop(store);
    assert_eq!(found(home.path()), [], "after a device was removed");

    let store = SledStore::open(Options::at(home.path())).unwrap();
    commit(&store, forgotten(&device(&acme(), 2)));
    commit(&store, batch(vec![Change::RemoveCustomer(acme())]));
    drop(store);
    assert_eq!(
        found(home.path()),
        [],
        "before the rest of a customer is removed"
    );
}

#[test]
fn jobs_that_are_removed_bit_by_bit_have_no_findings() {
    let home = tempfile::tempdir().unwrap();
    let store = SledStore::open(Options::at(home.path())).unwrap();
    for (second, devices) in (10..).zip([0, 0, 0, 300, 300, 300]) {
        made(&store, &acme(), second, devices);
    }
    let removed = made(&store, &acme(), 90, 300);
    commit(&store, removal_of(&[removed]));
    drop(store);
    let old = Retention {
        jobs_before: at(20),
        ..Retention::NOTHING
    };
    loop {
        assert_eq!(found(home.path()), []);
        let store = SledStore::open(Options::at(home.path())).unwrap();
        if !wait(store.sweep(old, 1)).unwrap().more {
            break;
        }
    }
    assert_eq!(found(home.path()), []);
}

#[test]
fn a_damaged_row_is_found_by_name() {
    for (table, damage, of, problem) in DAMAGED {
        let home = tempfile::tempdir().unwrap();
        drop(filled(home.path()));
        change(home.path(), |db| {
            let key = db
                .scan_prefix(table.prefix())
                .keys()
                .next()
                .unwrap()
                .unwrap();
            match damage {
                Damage::Removed => db.remove(key).unwrap(),
                Damage::Overwritten => db.insert(key, b"damaged").unwrap(),
            };
        });
        if matches!(table, Table::Format) {
            let refused = OfflineStore::open(home.path()).err();
            assert!(matches!(refused, Some(OpenError::Damaged { .. })));
            continue;
        }
        let found = found(home.path());
        let is_named = found.iter().any(|it| (it.of, it.problem) == (of, problem));
        assert!(is_named, "{table:?} {damage:?}: {found:?}");
    }
}

#[test]
fn a_row_that_says_something_else_is_found_by_name() {
    let other = device(&acme(), 7).key();
    let unlinked = entry(&device(&acme(), 1), 500, 13);
    let cases: [(Key, Vec<u8>, &str, Problem); 7] = [
        (
            key::log::entry(&acme(), EntryPlace::of(&unlinked)),
            link(None, &write_entry(&unlinked)),
            "last log entries of devices",
            Problem::Different,
        ),
        (
            key::customers_counted(),
            write_count(7).into(),
            COUNTS,
            Problem::Different,
        ),
        (
            key::name(&engine::change::UniqueName::Iccid(device(&acme(), 1).iccid)),
            write_name_owner(other).into(),
            "unique names of devices",
            Problem::Different,
        ),
        (
            key::outbox::tally(crate::conformance::samples::destination(&acme(), 1).id),
            write_tally(&DestinationCounts::default()).into(),
            "counts of destinations",
            Problem::Different,
        ),
        (
            key::event::newest_number(),
            write_sequence(Sequence(1)).into(),
            "newest numbers of events",
            Problem::Different,
        ),
        (
            key::event::head_page(0),
            write_page(&[(device(&acme(), 1).key(), Sequence(1_000))]),
            "newest events of devices",
            Problem::Dangling,
        ),
        (
            key::event::checkpoint(),
            write_checkpoint(&CheckpointV2 {
                sections: [1_000; SECTIONS],
                ..CheckpointV2::default()
            }),
            "newest events of devices",
            Problem::Missing,
        ),
    ];
    for (key, row, of, problem) in cases {
        let home = tempfile::tempdir().unwrap();
        drop(filled(home.path()));
        change(home.path(), |db| drop(db.insert(&key, row).unwrap()));
        let found = found(home.path());
        let is_named = found.iter().any(|it| (it.of, it.problem) == (of, problem));
        assert!(is_named, "{of}: {found:?}");
    }
}

#[test]
fn events_missing_between_others_are_counted() {
    let home = tempfile::tempdir().unwrap();
    let meter = device(&acme(), 1);
    let store = SledStore::open(Options::at(home.path())).unwrap();
    for second in 1..=3 {
        let events = (0..second).map(|rng| appended(&meter, second, rng.unsigned_abs()));
        commit(&store, batch(events.collect()));
    }
    drop(store);
    change(home.path(), |db| {
        let block = db.scan_prefix(key::event::blocks()).keys().nth(1).unwrap();
        db.remove(block.unwrap()).unwrap();
    });
    let found = found(home.path());
    let [missing] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(
        (missing.of, missing.problem, missing.count),
        ("events", Problem::Missing, 2)
    );
}

#[test]
fn lost_groups_are_found_and_still_refused_at_the_next_start() {
    let home = tempfile::tempdir().unwrap();
    let store = filled(home.path());
    let meter = device(&acme(), 3);
    let path = home.path().join("store-before");
    drop(store);
    let rows = home.path().join("rows");
    fs::create_dir(&path).unwrap();
    for file in fs::read_dir(&rows).unwrap().map(Result::unwrap) {
        if file.path().is_file() {
            fs::copy(file.path(), path.join(file.file_name())).unwrap();
        }
    }
    let store = SledStore::open(Options::at(home.path())).unwrap();
    commit(&store, batch(vec![appended(&meter, 1, 1)]));
    drop(store);
    fs::remove_dir_all(&rows).unwrap();
    fs::rename(&path, &rows).unwrap();
    for _ in 0..2 {
        let found = found(home.path());
        let [lost] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!((lost.of, lost.count), ("groups of commits", 1));
    }
    let refused = SledStore::open(Options::at(home.path())).err();
    assert!(matches!(refused, Some(OpenError::EndLost { .. })));
}

#[test]
fn a_row_of_no_table_is_found() {
    let home = tempfile::tempdir().unwrap();
    drop(filled(home.path()));
    change(home.path(), |db| {
        drop(db.insert(b"\xf0strange", "").unwrap())
    });
    let found = found(home.path());
    let texts: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        ["rows of unknown tables: 1 without a record, first strange"]
    );
}

#[test]
fn a_store_that_is_in_use_or_not_there_is_not_checked() {
    let home = tempfile::tempdir().unwrap();
    let absent = OfflineStore::open(home.path()).err();
    assert!(matches!(absent, Some(OpenError::Absent { .. })));
    assert!(fs::read_dir(home.path()).unwrap().next().is_none());
    let store = filled(home.path());
    let held = OfflineStore::open(home.path()).err();
    assert!(matches!(held, Some(OpenError::Held { .. })));
    drop(store);
    assert_eq!(found(home.path()), []);
}

/// A store with rows of every kind.
fn filled(home: &Path) -> SledStore {
    let store = SledStore::open(Options::at(home)).unwrap();
    let meters = [1, 2].map(|number| device(&acme(), number));
    for meter in &meters {
        live(&store, meter);
    }
    deliver_in_part(&store);
    let script = client(&acme(), "script");
    let mut unreadable = entry(&meters[0], 30, 7);
    unreadable.payload = Some(EntryPayload::Whole([7; 10_000].into()));
    let changes = vec![
        Change::PutCustomer(customer("acme")),
        Change::PutClient(script.clone()),
        Change::PutToken(token(&script, "good", at(500))),
        Change::PutSetting(Setting {
            customer: acme(),
            name: SettingName::Lwm2mPassiveReporting,
            state: SettingState::Enabled,
        }),
        Change::PutIdempotencyRecord(record_of(once("one"), &meters[0], 10)),
        Change::AppendEntry(Box::new(unreadable)),
        // About a device that is not known.
        Change::AppendEntry(Box::new(entry(&device(&acme(), 9), 31, 8))),
    ];
    commit(&store, batch(changes));
    made(&store, &acme(), 40, JOB_PART_DEVICES + 1);
    schedules::made(&store, &acme(), 41, Rhythm::Every { period_s: 60 });
    firmware::made(&store, 42, 2);
    for (number, second) in [(1, 50), (2, 60)] {
        let device = device(&acme(), number);
        let parts = [(second + 1, 1, "hello "), (second, 2, "world")];
        let again = [(second + 2, 2, "again")];
        let taken = to_device(&device, second + 4, SmsStatus::InProgress);
        let all = [
            of_device(&device, second, &parts),
            of_device(&device, second + 2, &again),
            to_device(&device, second + 3, SmsStatus::Pending),
            with_message_ids(&taken, &["f3a1"]),
            waking(&device, second + 5, SmsStatus::Delivered),
        ];
        commit(&store, batch(all.iter().map(added).collect()));
    }
    store
}

fn appended(device: &Profile, second: i64, rng: u64) -> Change {
    Change::AppendEvent(Box::new(event(device, second, rng)))
}

fn change(home: &Path, change: impl FnOnce(&Db)) {
    let (db, _lock) = open::open_offline(home, CACHE_BYTES).unwrap();
    change(&db);
    db.flush().unwrap();
}

fn found(home: &Path) -> Vec<Finding> {
    let report = OfflineStore::open(home).unwrap().check();
    assert_eq!(report.stopped, None);
    report.findings
}
