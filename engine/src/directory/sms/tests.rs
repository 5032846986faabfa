//! Which changes and events do SMS make?

use super::*;
use crate::credentials::DeviceCredentials;
use crate::event::EventType;
use crate::ids::{CustomerId, DeviceId, Endpoint, Iccid, Msisdn};
use crate::profile::SecurityRequirement;
use crate::tags::Tags;

const NOON: Timestamp = Timestamp::from_ms(1_795_521_600_000);

const REPORTED: [ReportedStatus; 4] = [
    ReportedStatus::Buffered,
    ReportedStatus::Delivered,
    ReportedStatus::Failed,
    ReportedStatus::Expired,
];

const RULES: SmsRules = SmsRules {
    validity_ms: 60_000,
    open_max: 2,
    wake_ups_max: 4,
};

#[test]
fn a_message_is_stored_and_published_in_one_batch() {
    let new = message("open", MultiPartInfo::WHOLE);
    let decided = receive(&mut at(0), &tracker(), new, FoundParts::default());
    let (was, sms) = stored(&decided.batch);
    assert_eq!((was, sms.id), (None, decided.answer));
    let SmsWay::FromDevice(joined) = &sms.way else {
        panic!("{sms:?}")
    };
    assert_eq!((joined.text().as_str(), sms.parts_key()), ("open", None));
    let expected = [
        Expect::Profile(Box::new(tracker())),
        Expect::SmsIdFree(sms.id),
    ];
    assert_eq!(decided.batch.expects, expected);
    let published = published(&decided.batch).expect("it is published");
    assert_eq!(published.device, tracker().key());
    let EventContent::SmsReceived(received) = &published.content else {
        panic!("{published:?}")
    };
    assert_eq!((received.id, &*received.payload), (sms.id, "open"));
    assert_eq!(&*received.endpoint.name, "tracker", "it has no name");
}

#[test]
fn parts_are_joined_in_their_order_whatever_order_they_come_in() {
    let mut found = FoundParts::default();
    let mut ids = Vec::new();
    for (ms, number, text) in [(0, 3, "!"), (1, 1, "hello "), (2, 2, "world")] {
        let before = found.sms.clone();
        let decided = receive(&mut at(ms), &tracker(), part(number, text), found);
        ids.push(decided.answer);
        let (was, sms) = stored(&decided.batch);
        assert_eq!(was.is_none(), before.is_none());
        match before {
            Some(before) => {
                let last = decided.batch.expects.last();
                assert_eq!(last, Some(&Expect::Sms(Box::new(before))));
            }
            None => {
                let parts = sms.parts_key().unwrap();
                let is = None;
                let last = decided.batch.expects.last();
                assert_eq!(last, Some(&Expect::SmsOfParts { parts, is }));
            }
        }
        found = FoundParts {
            id: Some(sms.id),
            sms: Some(sms),
        };
    }
    let sms = found.sms.unwrap();
    assert_eq!((sms.id, sms.ids()), (ids[0], ids));
    let SmsWay::FromDevice(joined) = sms.way else {
        panic!("{:?}", sms.way)
    };
    assert_eq!(joined.text(), "hello world!");
}

#[test]
fn a_part_of_another_sms_is_not_joined() {
    let first = receive(
        &mut at(0),
        &tracker(),
        part(1, "one"),
        FoundParts::default(),
    );
    let (_, first) = stored(&first.batch);
    let found = || FoundParts {
        id: Some(first.id),
        sms: Some(first.clone()),
    };
    let is_joined = |ms, new| {
        let decided = receive(&mut at(ms), &tracker(), new, found());
        stored(&decided.batch).1.id == first.id
    };
    assert!(is_joined(SMS_PARTS_MS - 1, part(2, "two")));
    assert!(!is_joined(SMS_PARTS_MS, part(2, "two")), "it is too late");
    assert!(!is_joined(1, part(1, "again")), "it has this part");
    let elsewhere = NewReceivedSms {
        dest: "5678".into(),
        ..part(2, "two")
    };
    assert!(!is_joined(1, elsewhere), "it has another recipient");
    let decided = receive(&mut at(1), &tracker(), part(1, "again"), found());
    let parts = first.parts_key().unwrap();
    let is = Some(first.id);
    let last = decided.batch.expects.last();
    assert_eq!(last, Some(&Expect::SmsOfParts { parts, is }));
}

#[test]
fn an_sms_is_pending_until_it_is_taken_and_then_never_taken_again() {
    let sms = submitted();
    assert_eq!(status(&sms), SmsStatus::Pending);
    let due_at = Some(NOON.plus_ms(60_000));
    let task = Some(NetworkTask::Send);
    assert_eq!(sms.state(), SmsState { due_at, task });
    let taken = take(NOON.plus_ms(5), vec![sms.clone()]);
    assert_eq!(taken.batch.expects, [Expect::Sms(Box::new(sms.clone()))]);
    let (was, is) = stored(&taken.batch);
    assert_eq!(was, Some(sms.state()));
    assert_eq!(status(&is), SmsStatus::InProgress);
    assert_eq!(is.submitted().unwrap().taken_at, Some(NOON.plus_ms(5)));
    assert_eq!(is.state(), SmsState { due_at, task: None });
    assert_eq!(taken.answer, [(NetworkTask::Send, is.clone())]);
    assert!(take(NOON.plus_ms(6), vec![is]).batch.is_empty());
    let late = take(NOON.plus_ms(60_000), vec![sms]);
    assert!(
        late.batch.is_empty() && late.answer.is_empty(),
        "its validity is over"
    );
}

#[test]
fn the_open_sms_of_a_device_have_a_bound() {
    let refused = submit(&mut at(0), &tracker(), new_sms(), 2, RULES);
    assert_eq!(refused, Err(SmsRefusal::TooManyOpen { max: 2 }));
}

#[test]
fn a_report_changes_a_status_that_is_not_final_and_publishes_one_that_is() {
    let mut sms = submitted();
    for (reported, is_published) in [
        (ReportedStatus::Buffered, false),
        (ReportedStatus::Delivered, true),
    ] {
        let decided = report(&mut at(7), &tracker(), sms.clone(), reported);
        let expected = [
            Expect::Profile(Box::new(tracker())),
            Expect::Sms(Box::new(sms)),
        ];
        assert_eq!(decided.batch.expects, expected);
        assert_eq!(published(&decided.batch).is_some(), is_published);
        sms = stored(&decided.batch).1;
        assert_eq!((status(&sms), sms.state().task), (reported.into(), None));
    }
    assert_eq!(sms.state(), SmsState::default());
    let details = sms.submitted().unwrap();
    assert_eq!(
        (details.buffered_at, details.final_at),
        (Some(at(7).now()), Some(at(7).now()))
    );
    for late in REPORTED {
        let decided = report(&mut at(8), &tracker(), sms.clone(), late);
        assert!(decided.batch.is_empty(), "{late:?}");
    }
}

#[test]
fn a_final_status_never_changes() {
    for last in SmsStatus::ALL.into_iter().filter(|it| it.is_final()) {
        let sms = with_status(last);
        let m = &mut at(90_000);
        for other in REPORTED {
            assert!(report(m, &tracker(), sms.clone(), other).batch.is_empty());
        }
        assert!(lapse(m, &tracker(), sms.clone()).batch.is_empty());
        assert!(take(m.now(), vec![sms.clone()]).batch.is_empty());
        let refused = cancel(m, &tracker(), sms);
        assert_eq!(refused, Err(SmsRefusal::NotCancellable), "{last:?}");
    }
}

#[test]
fn only_what_the_network_does_not_send_is_cancelled() {
    for (was, task) in [
        (SmsStatus::Pending, None),
        (SmsStatus::Buffered, Some(NetworkTask::Withdraw)),
    ] {
        let cancelled = cancel(&mut at(7), &tracker(), with_status(was)).unwrap();
        let (_, sms) = stored(&cancelled.batch);
        assert_eq!(
            (status(&sms), sms.state().task),
            (SmsStatus::Canceled, task)
        );
        assert!(published(&cancelled.batch).is_some());
        let taken = take(at(8).now(), vec![sms]).answer;
        let tasks: Vec<NetworkTask> = taken.into_iter().map(|(task, _)| task).collect();
        assert_eq!(tasks, task.into_iter().collect::<Vec<_>>());
    }
    let refused = cancel(&mut at(7), &tracker(), with_status(SmsStatus::InProgress));
    assert_eq!(refused, Err(SmsRefusal::NotCancellable));
}

#[test]
fn an_sms_is_settled_when_its_validity_is_over() {
    let cases = [
        (SmsStatus::Pending, SmsStatus::Expired, None),
        (
            SmsStatus::InProgress,
            SmsStatus::Failed,
            Some("outcome unknown"),
        ),
        (
            SmsStatus::Buffered,
            SmsStatus::Failed,
            Some("outcome unknown"),
        ),
    ];
    for (was, is, reason) in cases {
        let early = lapse(&mut at(59_999), &tracker(), with_status(was));
        assert!(early.batch.is_empty());
        let lapsed = lapse(&mut at(60_000), &tracker(), with_status(was));
        let (_, sms) = stored(&lapsed.batch);
        assert_eq!((status(&sms), sms.state()), (is, SmsState::default()));
        assert_eq!(sms.submitted().unwrap().reason.as_deref(), reason);
        let event = published(&lapsed.batch).expect("it is published");
        assert_eq!(event.content.event_type(), EventType::SmsReport);
    }
}

fn at(ms: i64) -> Moment {
    Moment::new(NOON.plus_ms(ms), 7)
}

fn message(text: &str, part: MultiPartInfo) -> NewReceivedSms {
    NewReceivedSms {
        source: "882285100000001".into(),
        dest: "1234".into(),
        payload: text.into(),
        dcs: 0,
        pid: 0,
        part,
    }
}

fn part(number: u8, text: &str) -> NewReceivedSms {
    let (total, identifier) = (3, 42);
    message(
        text,
        MultiPartInfo {
            number,
            total,
            identifier,
        },
    )
}

fn new_sms() -> NewSms {
    NewSms {
        source: "1234".into(),
        source_type: AddressType::International,
        payload: "open".into(),
        dcs: 0,
        udh: None,
        expires_at: None,
        purpose: SmsPurpose::Message,
    }
}

fn submitted() -> Sms {
    submit(&mut at(0), &tracker(), new_sms(), 1, RULES)
        .unwrap()
        .answer
}

fn with_status(status: SmsStatus) -> Sms {
    let mut sms = submitted();
    if let SmsWay::ToDevice(submitted) = &mut sms.way {
        submitted.status = status;
        submitted.task = (status == SmsStatus::Pending).then_some(NetworkTask::Send);
    }
    sms
}

fn status(sms: &Sms) -> SmsStatus {
    sms.submitted().unwrap().status
}

/// The SMS that a batch puts, and its previous state.
fn stored(batch: &Batch) -> (Option<SmsState>, Sms) {
    let mut puts = batch.changes.iter().filter_map(|change| {
        if let Change::PutSms { was, sms } = change {
            Some((*was, (**sms).clone()))
        } else {
            None
        }
    });
    puts.next().expect("a batch of an SMS puts it")
}

fn published(batch: &Batch) -> Option<&Event> {
    batch.changes.iter().find_map(|change| {
        if let Change::AppendEvent(event) = change {
            Some(&**event)
        } else {
            None
        }
    })
}

pub(in crate::directory::sms) fn tracker() -> Profile {
    Profile {
        customer: CustomerId::parse("acme").unwrap(),
        device: DeviceId::parse("tracker").unwrap(),
        number: 7,
        iccid: Iccid::parse("8988280666000000001").unwrap(),
        imsi: None,
        msisdn: Some(Msisdn::parse("882285100000001").unwrap()),
        ip: None,
        endpoint: Endpoint::parse("tracker").unwrap(),
        name: None,
        credentials: DeviceCredentials::default(),
        security: SecurityRequirement::Any,
        created_at: NOON,
        tags: Tags::default(),
        wake_up: None,
        offline_after_s: None,
    }
}
