//! Does an SMS to a device leave at most once, whatever calls race and whichever answers are lost?

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "sms/tracker.rs"]
mod tracker;

use std::collections::BTreeMap;

use engine::change::{Batch, Change, Expect};
use engine::directory::Decision;
use engine::directory::sms::{
    FoundParts, NewReceivedSms, NewSms, cancel, lapse, receive, report, submit, take,
};
use engine::event::{Event, EventContent};
use engine::ids::SmsId;
use engine::limits::SmsRules;
use engine::moment::{Moment, Timestamp};
use engine::sms::address::AddressType;
use engine::sms::{
    MultiPartInfo, NetworkTask, PartsKey, ReportedStatus, Sms, SmsPurpose, SmsStatus, SmsWay,
};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::sample::select;

use tracker::tracker;

const VALIDITY_MS: i64 = 1_000;

const REPORTED: [ReportedStatus; 4] = [
    ReportedStatus::Buffered,
    ReportedStatus::Delivered,
    ReportedStatus::Failed,
    ReportedStatus::Expired,
];

/// One input. A choice selects one of the SMS to devices.
#[derive(Clone, Debug)]
enum SmsInput {
    /// A caller sends an SMS.
    Submit,
    /// The network takes SMS, and may not get the answer.
    Take(u8),
    /// The network reports a status.
    Report(u8, ReportedStatus),
    /// A caller cancels an SMS.
    Cancel(u8),
    /// What is due is settled.
    Lapse(u8),
    /// Two calls decide on the same records, and one commits after the other.
    Race(Box<[SmsInput; 2]>),
    /// Time passes.
    Pass(i64),
    /// The device sends a part of an SMS.
    Receive(u8, u16),
}

/// A store of SMS, and what the network and the customer saw of them.
#[derive(Default)]
struct SmsWorld {
    now_ms: i64,
    step: u16,
    sms: BTreeMap<SmsId, Sms>,
    last_of_parts: BTreeMap<(u8, u16), SmsId>,
    /// How often the network was told to send an SMS.
    sent: BTreeMap<SmsId, u32>,
    /// The final statuses that were published.
    published: BTreeMap<SmsId, Vec<SmsStatus>>,
    /// The messages of the device that were published, in order.
    received: Vec<SmsId>,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn an_sms_leaves_at_most_once_and_has_one_final_status(
        inputs in vec(input(), 1..200),
    ) {
        let mut world = SmsWorld::default();
        for input in &inputs {
            world.perform(input);
            world.hold();
        }
        world.now_ms += VALIDITY_MS;
        for choice in 0..=u8::MAX {
            world.perform(&SmsInput::Lapse(choice));
        }
        world.hold();
        world.hold_at_the_end();
    }
}

impl SmsWorld {
    fn perform(&mut self, input: &SmsInput) {
        if let SmsInput::Pass(ms) = input {
            self.now_ms += ms;
            return;
        }
        let decided = if let SmsInput::Race(both) = input {
            both.iter().map(|one| self.decide(one)).collect()
        } else {
            vec![self.decide(input)]
        };
        for (batch, taken) in decided.into_iter().flatten() {
            self.commit(batch, taken);
        }
    }

    /// The batch of a call, and the SMS that the network would take by it.
    fn decide(&mut self, input: &SmsInput) -> Option<(Batch, Vec<(NetworkTask, Sms)>)> {
        let mut m = self.moment();
        let device = tracker(None);
        let batch = match input {
            SmsInput::Submit => {
                let rules = SmsRules {
                    validity_ms: VALIDITY_MS,
                    open_max: 1_000,
                    wake_ups_max: 4,
                };
                submit(&mut m, &device, new_sms(), 0, rules).unwrap().batch
            }
            SmsInput::Take(max) => {
                let waiting = self.sms.values().filter(|it| it.state().task.is_some());
                let waiting = waiting.take(usize::from(*max)).cloned().collect();
                let Decision { batch, answer } = take(m.now(), waiting);
                return Some((batch, answer));
            }
            SmsInput::Report(choice, status) => {
                report(&mut m, &device, self.chosen(*choice)?, *status).batch
            }
            SmsInput::Cancel(choice) => cancel(&mut m, &device, self.chosen(*choice)?).ok()?.batch,
            SmsInput::Lapse(choice) => lapse(&mut m, &device, self.chosen(*choice)?).batch,
            SmsInput::Receive(number, identifier) => {
                let new = part(*number, *identifier);
                let found = self.found(&new.parts_key(&device)?);
                receive(&mut m, &device, new, found).batch
            }
            SmsInput::Race(_) | SmsInput::Pass(_) => return None,
        };
        Some((batch, Vec::new()))
    }

    fn commit(&mut self, batch: Batch, taken: Vec<(NetworkTask, Sms)>) {
        if !batch.expects.iter().all(|expect| self.holds(expect)) {
            return;
        }
        for (task, sms) in taken {
            if task == NetworkTask::Send {
                *self.sent.entry(sms.id).or_default() += 1;
            }
        }
        for change in batch.changes {
            if let Change::PutSms { was, sms } = change {
                let before = self.sms.insert(sms.id, (*sms).clone());
                assert_eq!(was, before.as_ref().map(Sms::state));
                if let (None, Some(parts)) = (before, sms.parts_key()) {
                    let place = (parts.total, parts.identifier);
                    self.last_of_parts.insert(place, sms.id);
                }
            } else if let Change::AppendEvent(event) = change {
                self.publish(*event);
            }
        }
    }

    fn publish(&mut self, event: Event) {
        if let EventContent::SmsReport(report) = event.content {
            self.published
                .entry(report.id)
                .or_default()
                .push(report.status);
        } else if let EventContent::SmsReceived(received) = event.content {
            self.received.push(received.id);
        }
    }

    fn holds(&self, expect: &Expect) -> bool {
        if let Expect::Sms(sms) = expect {
            self.sms.get(&sms.id) == Some(sms)
        } else if let Expect::SmsIdFree(id) = expect {
            self.sms.values().all(|sms| !sms.ids().contains(id))
        } else if let Expect::SmsOfParts { parts, is } = expect {
            self.found(parts).id == *is
        } else {
            true
        }
    }

    /// What holds at any time.
    fn hold(&self) {
        for (id, times) in &self.sent {
            assert_eq!(*times, 1, "{id} left more than once");
        }
        for (id, sms) in &self.sms {
            let statuses = self.published.get(id).cloned().unwrap_or_default();
            match sms.submitted().map(|it| it.status) {
                Some(status) if status.is_final() => assert_eq!(statuses, [status], "{id}"),
                Some(_) | None => assert!(statuses.is_empty(), "{id}: {statuses:?}"),
            }
        }
    }

    /// What holds once the validity of every SMS is over.
    fn hold_at_the_end(&self) {
        for (id, sms) in &self.sms {
            match &sms.way {
                SmsWay::ToDevice(submitted) => {
                    assert!(submitted.status.is_final(), "{id}: {submitted:?}");
                    let is_known = submitted.taken_at.or(submitted.buffered_at).is_some();
                    assert!(
                        submitted.reason.is_none() || is_known,
                        "{id}: {submitted:?}"
                    );
                }
                SmsWay::FromDevice(joined) => {
                    assert!(joined.parts.is_sorted_by_key(|it| it.number))
                }
            }
        }
        assert!(self.received.is_sorted(), "in order");
        for id in &self.received {
            assert!(self.holds_part(*id), "{id} is stored");
        }
    }

    fn holds_part(&self, id: SmsId) -> bool {
        self.sms.values().any(|sms| sms.ids().contains(&id))
    }

    fn found(&self, parts: &PartsKey) -> FoundParts {
        let id = self.last_of_parts.get(&(parts.total, parts.identifier));
        FoundParts {
            id: id.copied(),
            sms: id.and_then(|id| self.sms.get(id)).cloned(),
        }
    }

    fn chosen(&self, choice: u8) -> Option<Sms> {
        let to_device = self.sms.values().filter(|sms| sms.submitted().is_some());
        let all: Vec<&Sms> = to_device.collect();
        let place = usize::from(choice).checked_rem(all.len())?;
        Some(all[place].clone())
    }

    fn moment(&mut self) -> Moment {
        self.step = self.step.saturating_add(1);
        let now = Timestamp::from_ms(1_795_521_600_000 + self.now_ms);
        Moment::new(now, u128::from(self.step)).at_step(self.step)
    }
}

fn input() -> impl Strategy<Value = SmsInput> {
    let one = || {
        prop_oneof![
            3 => (0..1_u8).prop_map(|_| SmsInput::Submit),
            3 => (1..5_u8).prop_map(SmsInput::Take),
            4 => (any::<u8>(), select(REPORTED.to_vec()))
                .prop_map(|(choice, status)| SmsInput::Report(choice, status)),
            2 => any::<u8>().prop_map(SmsInput::Cancel),
            2 => any::<u8>().prop_map(SmsInput::Lapse),
            2 => (1..=3_u8, 0..2_u16).prop_map(|(number, of)| SmsInput::Receive(number, of)),
            1 => (0..VALIDITY_MS).prop_map(SmsInput::Pass),
        ]
    };
    prop_oneof![
        3 => one(),
        2 => (one(), one()).prop_map(|(a, b)| SmsInput::Race(Box::new([a, b]))),
    ]
}

fn part(number: u8, identifier: u16) -> NewReceivedSms {
    NewReceivedSms {
        source: "882285100000001".into(),
        dest: "1234".into(),
        payload: "part".into(),
        dcs: 0,
        pid: 0,
        part: MultiPartInfo {
            number,
            total: 3,
            identifier,
        },
    }
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
