//! Which entries of the log are found by a SIM, whichever devices had it?

use engine::admin_log::window::TimeWindow;
use engine::change::Change;
use engine::ids::{EntryId, Iccid};
use engine::profile::Profile;
use engine::query::{LogFilter, PageRequest};

use super::samples::{acme, at, customer, device, entry, forgotten, known, links, record};
use super::{TestBed, commit, put, wait};
use crate::{Retention, Store};

const EVERY: PageRequest = PageRequest {
    number: 1,
    size: 100,
};

pub(super) fn have_every_device(ground: &TestBed<'_>) {
    let store = ground.open();
    let [one, other] = [1, 2].map(|number| device(&acme(), number));
    commit(&*store, known(&one)).expect("a commit");
    // Before the first record, with it, and after it; the second was committed late.
    let of_one =
        [(10, 1), (40, 2), (30, 3)].map(|(second, rng)| append(&*store, &one, second, rng));
    let put_record = Change::PutRecord {
        device: one.key(),
        record: Box::new(record(10, &links(100))),
    };
    put(&*store, vec![put_record.clone()]);
    let late = append(&*store, &one, 20, 4);
    let newest = append(&*store, &one, 50, 5);
    let [oldest, fourth, third] = of_one;
    let expected = vec![newest, fourth, third, late, oldest];
    assert_eq!(log_of(&*store, &one.iccid), expected);

    // The device gets another SIM, and another device its old one.
    let renewed = Profile {
        iccid: Iccid::parse("8949999999999999999").expect("an ICCID"),
        ..one.clone()
    };
    put(&*store, vec![replaced(&one, &renewed)]);
    let with_new = append(&*store, &renewed, 60, 6);
    let successor = Profile {
        iccid: one.iccid.clone(),
        ..other.clone()
    };
    commit(&*store, known(&successor)).expect("a commit");
    let of_successor = append(&*store, &successor, 55, 7);
    let of_old: Vec<EntryId> = [of_successor].into_iter().chain(expected).collect();
    assert_eq!(log_of(&*store, &one.iccid), of_old);
    assert_eq!(log_of(&*store, &renewed.iccid), [with_new]);

    // Both devices are removed, and an entry about one is committed after that.
    drop(store);
    let store = ground.open();
    commit(&*store, forgotten(&renewed)).expect("a commit");
    commit(&*store, forgotten(&successor)).expect("a commit");
    let last = append(&*store, &renewed, 70, 8);
    assert_eq!(log_of(&*store, &one.iccid), of_old);
    assert_eq!(log_of(&*store, &renewed.iccid), [last, with_new]);

    // A device that is created again goes on where it was.
    commit(&*store, known(&renewed)).expect("a commit");
    put(&*store, vec![put_record]);
    let again = append(&*store, &renewed, 80, 9);
    assert_eq!(log_of(&*store, &renewed.iccid), [again, last, with_new]);
    assert_eq!(log_of(&*store, &one.iccid), of_old);

    // What is too old goes, whichever device it is about.
    let due = Retention {
        entries_before: at(45),
        ..Retention::NOTHING
    };
    while wait(store.sweep(due, 2)).expect("an answer").more {}
    assert_eq!(log_of(&*store, &one.iccid), of_old[..2]);
    let foreign = LogFilter {
        customer: customer("globex").id,
        ..filter(&one.iccid)
    };
    let none = wait(store.entries(foreign, EVERY)).expect("an answer");
    assert_eq!((none.items, none.total), (vec![], 0));
}

fn append(store: &dyn Store, about: &Profile, second: i64, rng: u64) -> EntryId {
    let entry = entry(about, second, rng);
    let id = entry.id;
    put(store, vec![Change::AppendEntry(Box::new(entry))]);
    id
}

fn replaced(was: &Profile, is: &Profile) -> Change {
    Change::PutDevice {
        was: Some(Box::new(was.clone())),
        profile: Box::new(is.clone()),
    }
}

fn log_of(store: &dyn Store, iccid: &Iccid) -> Vec<EntryId> {
    let page = wait(store.entries(filter(iccid), EVERY)).expect("an answer");
    assert_eq!(page.total, page.items.len() as u64);
    page.items.iter().map(|entry| entry.id).collect()
}

fn filter(iccid: &Iccid) -> LogFilter {
    LogFilter {
        customer: acme(),
        window: TimeWindow {
            from: at(-1_000),
            until: at(1_000),
        },
        iccid: Some(iccid.clone()),
        category: None,
        subject: None,
    }
}
