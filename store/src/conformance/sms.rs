//! What is stored of SMS, and for how long?

use engine::change::{Batch, Change, Expect};
use engine::customer::Customer;
use engine::directory::sms::FoundParts;
use engine::directory::sms::waking::WakeUpFacts;
use engine::ids::SmsId;
use engine::limits::SmsRules;
use engine::profile::Profile;
use engine::query::PageRequest;
use engine::smpp_pdu::receipt::message_id_keys;
use engine::sms::address::AddressType;
use engine::sms::{
    JoinedSms, NetworkTask, PartsKey, ReceivedPart, ReportedStatus, Sms, SmsPurpose, SmsStatus,
    SmsWay, SubmittedPart, SubmittedSms,
};
use engine::wake_up::{WakeUpContent, WakeUpMessage};

use super::samples::{acme, at, batch, customer, device, forgotten, known, moment};
use super::{TestBed, commit, put, wait};
use crate::{CommitError, Retention, Store};

pub(super) fn come_back(ground: &TestBed<'_>) {
    let mut store = ground.open();
    let tracker = stored(&*store, 1);
    let other = stored(&*store, 2);
    let all = [
        of_device(&tracker, 10, &[(11, 1, "hello "), (10, 2, "world")]),
        full(&tracker, 20),
        to_device(&tracker, 30, SmsStatus::Pending),
    ];
    for sms in &all {
        put(&*store, vec![added(sms)]);
    }
    put(
        &*store,
        vec![added(&to_device(&other, 40, SmsStatus::Pending))],
    );
    for _ in 0..2 {
        for sms in &all {
            for id in sms.ids() {
                assert_eq!(wait(store.sms(id)), Ok(Some(sms.clone())));
            }
        }
        assert_eq!(page(&*store, &tracker, 1), (vec![id(30), id(20)], 3));
        assert_eq!(page(&*store, &tracker, 2), (vec![id(10)], 3));
        assert_eq!(page(&*store, &tracker, 3), (vec![], 3));
        let parts = all[0].parts_key().expect("it has parts");
        let found = FoundParts {
            id: Some(id(10)),
            sms: Some(all[0].clone()),
        };
        assert_eq!(wait(store.sms_of_parts(parts)), Ok(found));
        let identifier = parts.identifier + 1;
        let others = PartsKey {
            identifier,
            ..parts
        };
        assert_eq!(wait(store.sms_of_parts(others)), Ok(FoundParts::default()));
        assert_eq!(wait(store.sms(id(99))), Ok(None));
        drop(store);
        store = ground.open();
    }
}

pub(super) fn that_wake_a_device_are_found(ground: &TestBed<'_>) {
    let store = ground.open();
    let tracker = stored(&*store, 1);
    let rules = SmsRules {
        validity_ms: 60_000,
        open_max: 2,
        wake_ups_max: 2,
    };
    let facts = || wait(store.wake_up_facts(tracker.key(), rules));
    let of_customer = WakeUpMessage {
        source: "1234".into(),
        source_type: AddressType::National,
        content: WakeUpContent::Data([0, 0xff].into()),
    };
    let acme = Customer {
        wake_up: Some(of_customer.clone()),
        ..customer("acme")
    };
    let message = to_device(&tracker, 5, SmsStatus::Pending);
    put(&*store, vec![Change::PutCustomer(acme), added(&message)]);
    let none = WakeUpFacts {
        device: tracker.clone(),
        of_customer: Some(of_customer),
        newest: Vec::new(),
        open: 1,
    };
    assert_eq!(facts(), Ok(Some(none.clone())));
    let first = waking(&tracker, 10, SmsStatus::Failed);
    let second = waking(&tracker, 20, SmsStatus::Delivered);
    let third = waking(&tracker, 30, SmsStatus::Pending);
    let all = [&first, &second, &third];
    put(&*store, all.map(added).into());
    let some = WakeUpFacts {
        newest: vec![third, second],
        open: 2,
        ..none
    };
    assert_eq!(facts(), Ok(Some(some)));
    let unknown = device(&self::acme(), 2);
    assert_eq!(
        wait(store.wake_up_facts(unknown.key(), rules)),
        Ok(None),
        "there is no such device"
    );
}

pub(super) fn are_listed_as_their_state_says(ground: &TestBed<'_>) {
    let store = ground.open();
    let tracker = stored(&*store, 1);
    let first = to_device(&tracker, 10, SmsStatus::Pending);
    let second = to_device(&tracker, 20, SmsStatus::Pending);
    put(&*store, vec![added(&first), added(&second)]);
    assert_eq!(lists(&*store, &tracker), ([id(10), id(20)].into(), 2, 2));
    let taken = to_device(&tracker, 10, SmsStatus::InProgress);
    put(&*store, vec![changed(&first, &taken)]);
    assert_eq!(lists(&*store, &tracker), ([id(20)].into(), 2, 2));
    assert_eq!(wait(store.open_sms(tracker.number, 1)), Ok(1));
    let both = vec![taken.clone(), second.clone()];
    assert_eq!(wait(store.open_sms_of(tracker.number, 9)), Ok(both));
    let oldest = vec![taken.clone()];
    assert_eq!(wait(store.open_sms_of(tracker.number, 1)), Ok(oldest));
    let done = to_device(&tracker, 10, SmsStatus::Delivered);
    put(&*store, vec![changed(&taken, &done)]);
    assert_eq!(lists(&*store, &tracker), ([id(20)].into(), 1, 1));
    let named = |id: &str| wait(store.open_sms_by_message(message_id_keys(id), 9));
    assert_eq!(named("f3a1"), Ok(vec![]));
    let accepted = with_message_ids(&second, &["00F3A1", "7"]);
    put(&*store, vec![changed(&second, &accepted)]);
    for id in ["f3a1", "0000F3A1", "62369", "7"] {
        assert_eq!(named(id), Ok(vec![accepted.clone()]), "{id}");
    }
    assert_eq!(named("f3"), Ok(vec![]));
    let second = accepted;
    assert_eq!(wait(store.sms_due(at(119), 9)), Ok(vec![]));
    assert_eq!(wait(store.sms_due(at(120), 9)), Ok(vec![second.clone()]));
    assert_eq!(wait(store.sms_for_network(0)), Ok(vec![]));
    assert_eq!(wait(store.sms(id(10))), Ok(Some(done)));
    assert_eq!(page(&*store, &tracker, 1).1, 2, "a change counts nothing");
    let settled = to_device(&tracker, 20, SmsStatus::Delivered);
    let settled = with_message_ids(&settled, &["00F3A1", "7"]);
    put(&*store, vec![changed(&second, &settled)]);
    assert_eq!(named("f3a1"), Ok(vec![]), "its status is final");
}

pub(super) fn change_only_as_expected(ground: &TestBed<'_>) {
    let store = ground.open();
    let tracker = stored(&*store, 1);
    let first = of_device(&tracker, 10, &[(10, 2, "world")]);
    let parts = first.parts_key().expect("it has parts");
    let begun = |sms: &Sms, is| Batch {
        expects: vec![Expect::SmsIdFree(sms.id), Expect::SmsOfParts { parts, is }],
        ..batch(vec![added(sms)])
    };
    assert_eq!(commit(&*store, begun(&first, None)), Ok(()));
    let again = of_device(&tracker, 20, &[(20, 2, "again")]);
    assert_eq!(commit(&*store, begun(&again, None)), CONFLICT);
    assert_eq!(commit(&*store, begun(&first, Some(id(10)))), CONFLICT);
    let joined = of_device(&tracker, 10, &[(11, 1, "hello "), (10, 2, "world")]);
    let join = Batch {
        expects: vec![
            Expect::SmsIdFree(id(11)),
            Expect::Sms(Box::new(first.clone())),
        ],
        ..batch(vec![changed(&first, &joined)])
    };
    assert_eq!(commit(&*store, join.clone()), Ok(()));
    assert_eq!(commit(&*store, join), CONFLICT);
    assert_eq!(commit(&*store, begun(&again, Some(id(10)))), Ok(()));
    let found = wait(store.sms_of_parts(parts)).expect("an answer");
    assert_eq!(found.id, Some(id(20)));
    assert_eq!(wait(store.sms(id(11))), Ok(Some(joined)));
}

pub(super) fn go_when_they_are_old(ground: &TestBed<'_>) {
    let store = ground.open();
    let tracker = stored(&*store, 1);
    let old = of_device(&tracker, 10, &[(40, 1, "hello "), (10, 2, "world")]);
    let waiting = to_device(&tracker, 20, SmsStatus::Pending);
    let recent = to_device(&tracker, 30, SmsStatus::Pending);
    put(&*store, [&old, &waiting, &recent].map(added).into());
    let mut due = vec![old.clone(), waiting];
    for number in 0..4 {
        let second = i64::from(2 * number);
        let parts = [(second, 1, "hello "), (second + 1, 2, "world")];
        let mut sms = of_device(&tracker, second, &parts);
        if let SmsWay::FromDevice(joined) = &mut sms.way {
            joined.identifier = number;
        }
        put(&*store, vec![added(&sms)]);
        due.push(sms);
    }
    let retention = Retention {
        sms_before: at(30),
        ..Retention::NOTHING
    };
    // Not all at once: some sweeps remove a part of them.
    while wait(store.sweep(retention, 32)).expect("it is swept").more {}
    for id in due.iter().flat_map(Sms::ids) {
        assert_eq!(wait(store.sms(id)), Ok(None));
    }
    assert_eq!(page(&*store, &tracker, 1), (vec![id(30)], 1));
    assert_eq!(lists(&*store, &tracker), ([id(30)].into(), 1, 1));
    let parts = old.parts_key().expect("it has parts");
    assert_eq!(wait(store.sms_of_parts(parts)), Ok(FoundParts::default()));
}

pub(super) fn go_with_their_device(ground: &TestBed<'_>) {
    let store = ground.open();
    let (tracker, other) = (stored(&*store, 1), stored(&*store, 2));
    let kept = to_device(&other, 90, SmsStatus::Pending);
    put(&*store, vec![added(&kept)]);
    for second in 10..30 {
        put(
            &*store,
            vec![added(&to_device(&tracker, second, SmsStatus::Pending))],
        );
    }
    assert_eq!(commit(&*store, forgotten(&tracker)), Ok(()));
    // They are not swept yet, and not found any more.
    assert_eq!(wait(store.sms(id(10))), Ok(None));
    assert_eq!(wait(store.sms_for_network(9)), Ok(vec![kept.clone()]));
    assert_eq!(wait(store.sms_due(at(900), 9)), Ok(vec![kept.clone()]));
    let again = Profile {
        number: 3,
        ..tracker.clone()
    };
    assert_eq!(commit(&*store, known(&again)), Ok(()));
    assert_eq!(page(&*store, &again, 1), (vec![], 0));
    while wait(store.sweep(Retention::NOTHING, 3))
        .expect("it is swept")
        .more
    {}
    assert_eq!(page(&*store, &tracker, 1), (vec![], 0), "nothing is left");
    assert_eq!(lists(&*store, &tracker), ([id(90)].into(), 1, 0));
    assert_eq!(wait(store.sms(id(90))), Ok(Some(kept)));
}

const CONFLICT: Result<(), CommitError> = Err(CommitError::Conflict);

/// An SMS that a device sent; of each part the second it came in, its number and its text.
pub(crate) fn of_device(device: &Profile, second: i64, parts: &[(i64, u8, &str)]) -> Sms {
    let part = |(second, number, text): &(i64, u8, &str)| ReceivedPart {
        number: *number,
        id: id(*second),
        text: (*text).into(),
    };
    let way = SmsWay::FromDevice(JoinedSms {
        total: 2,
        identifier: 42,
        parts: parts.iter().map(part).collect(),
    });
    Sms {
        dest: Some("1234".into()),
        ..sms(device, second, way)
    }
}

/// An SMS to a device; it is valid for 100 seconds.
pub(crate) fn to_device(device: &Profile, second: i64, status: SmsStatus) -> Sms {
    let submitted = SubmittedSms {
        payload: "open".into(),
        source_type: AddressType::National,
        udh: None,
        expires_at: at(second + 100),
        status,
        task: (status == SmsStatus::Pending).then_some(NetworkTask::Send),
        taken_at: None,
        buffered_at: None,
        final_at: None,
        reason: None,
        parts: Vec::new(),
        purpose: SmsPurpose::Message,
    };
    sms(device, second, SmsWay::ToDevice(Box::new(submitted)))
}

/// The same SMS, whose parts were accepted under these ids.
pub(crate) fn with_message_ids(sms: &Sms, ids: &[&str]) -> Sms {
    let mut submitted = sms.submitted().expect("an SMS to a device").clone();
    let part = |id: &&str| SubmittedPart {
        message_id: Some((*id).into()),
        status: None,
    };
    submitted.parts = ids.iter().map(part).collect();
    let way = SmsWay::ToDevice(Box::new(submitted));
    Sms { way, ..sms.clone() }
}

/// An SMS that wakes a device.
pub(crate) fn waking(device: &Profile, second: i64, status: SmsStatus) -> Sms {
    let message = to_device(device, second, status);
    let submitted = message.submitted().expect("it is one to a device");
    let submitted = SubmittedSms {
        purpose: SmsPurpose::WakeUp,
        ..submitted.clone()
    };
    Sms {
        way: SmsWay::ToDevice(Box::new(submitted)),
        ..message
    }
}

/// A change that adds an SMS.
pub(crate) fn added(sms: &Sms) -> Change {
    Change::PutSms {
        was: None,
        sms: Box::new(sms.clone()),
    }
}

fn changed(was: &Sms, sms: &Sms) -> Change {
    Change::PutSms {
        was: Some(was.state()),
        sms: Box::new(sms.clone()),
    }
}

/// An SMS with something in every field, and longer than a row.
fn full(device: &Profile, second: i64) -> Sms {
    let way = SmsWay::ToDevice(Box::new(SubmittedSms {
        payload: "größer ".repeat(900).into(),
        source_type: AddressType::Alphanumeric,
        udh: Some([0, 1, 0xff].into()),
        expires_at: at(second + 1),
        status: SmsStatus::Failed,
        task: Some(NetworkTask::Withdraw),
        taken_at: Some(at(second + 2)),
        buffered_at: Some(at(second + 3)),
        final_at: Some(at(second + 4)),
        reason: Some("outcome unknown".into()),
        parts: vec![
            SubmittedPart::default(),
            SubmittedPart {
                message_id: Some("00f3a1".into()),
                status: Some(ReportedStatus::Expired),
            },
        ],
        purpose: SmsPurpose::WakeUp,
    }));
    Sms {
        dest: Some("882285100000001".into()),
        dcs: 0xf4,
        pid: 0x41,
        ..sms(device, second, way)
    }
}

fn sms(device: &Profile, second: i64, way: SmsWay) -> Sms {
    Sms {
        id: id(second),
        customer: device.customer.clone(),
        device: device.key(),
        device_number: device.number,
        iccid: device.iccid.clone(),
        source: "Größe".into(),
        dest: None,
        dcs: 0,
        pid: 0,
        submitted_at: at(second),
        way,
    }
}

fn id(second: i64) -> SmsId {
    SmsId::new(&moment(second, 0))
}

fn stored(store: &dyn Store, number: u64) -> Profile {
    let device = device(&acme(), number);
    assert_eq!(commit(store, known(&device)), Ok(()));
    device
}

/// The ids on a page of two SMS of a device, and how many it has.
fn page(store: &dyn Store, device: &Profile, number: u32) -> (Vec<SmsId>, u64) {
    let page = wait(store.sms_of(device.number, PageRequest { number, size: 2 }));
    let page = page.expect("an answer");
    (page.items.iter().map(|sms| sms.id).collect(), page.total)
}

/// Which SMS the network has something to do for, how many are due at last, and how many of a
/// device are open.
fn lists(store: &dyn Store, device: &Profile) -> (Vec<SmsId>, usize, u32) {
    let waiting = wait(store.sms_for_network(9)).expect("an answer");
    let due = wait(store.sms_due(at(1_000), 9)).expect("an answer");
    let open = wait(store.open_sms(device.number, 9)).expect("an answer");
    (waiting.iter().map(|sms| sms.id).collect(), due.len(), open)
}
