//! Is a device woken by one SMS at a time, and not too often, whatever becomes of the SMS and
//! however old the facts are that a request was decided with?

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "sms/tracker.rs"]
mod tracker;

use std::collections::BTreeMap;

use engine::change::{Batch, Change};
use engine::directory::sms::waking::{SleepingDevice, WakeUpFacts, WakeUpSms, wake};
use engine::directory::sms::{lapse, report, take};
use engine::ids::SmsId;
use engine::limits::{SmsRules, WAKE_UPS_MS};
use engine::moment::{Moment, Timestamp};
use engine::sms::address::AddressType;
use engine::sms::{ReportedStatus, Sms, SmsStatus};
use engine::wake_up::{WakeUpContent, WakeUpMessage};
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, prop_oneof, proptest};
use proptest::sample::select;

use tracker::tracker;

const NUMBER: &str = "882285100000001";

const RULES: SmsRules = SmsRules {
    validity_ms: 600_000,
    open_max: 100,
    wake_ups_max: 3,
};

/// One input.
#[derive(Clone, Copy, Debug)]
enum WakeUpInput {
    /// A caller wants the device woken: the facts are read.
    Read,
    /// The device decides with the oldest facts that were read.
    Decide,
    /// The network takes what waits.
    Take,
    /// The network reports a status of the last SMS.
    Report(ReportedStatus),
    /// The device is heard: its requests are released.
    Hear,
    /// Time passes, and what is due is settled.
    Pass(i64),
}

/// A device, and the SMS that woke it.
#[derive(Default)]
struct WakeUpWorld {
    now_ms: i64,
    step: u16,
    sms: BTreeMap<SmsId, Sms>,
    /// Facts of requests that the device has not decided yet, the oldest first.
    read: Vec<WakeUpFacts>,
    /// The SMS of requests that wait.
    waiting: Vec<SmsId>,
    heard_at: Option<Timestamp>,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_device_is_woken_by_one_sms_at_a_time_and_not_too_often(
        inputs in vec(input(), 1..200),
    ) {
        let mut world = WakeUpWorld::default();
        for input in inputs {
            world.perform(input);
            world.hold();
        }
    }
}

impl WakeUpWorld {
    fn perform(&mut self, input: WakeUpInput) {
        match input {
            WakeUpInput::Read => self.read.push(self.facts()),
            WakeUpInput::Decide => self.decide(),
            WakeUpInput::Take => {
                let waiting = self.sms.values().filter(|sms| sms.state().task.is_some());
                let taken = take(self.now(), waiting.cloned().collect());
                self.commit(taken.batch);
            }
            WakeUpInput::Report(status) => {
                if let Some(sms) = self.sms.values().last().cloned() {
                    let reported = report(&mut self.moment(), &tracker(Some(NUMBER)), sms, status);
                    self.commit(reported.batch);
                }
            }
            WakeUpInput::Hear => {
                self.heard_at = Some(self.now());
                self.waiting.clear();
                // No command is on its way to a device for longer than moments.
                self.read.clear();
            }
            WakeUpInput::Pass(ms) => {
                self.now_ms += ms;
                for sms in self.sms.values().cloned().collect::<Vec<_>>() {
                    let lapsed = lapse(&mut self.moment(), &tracker(Some(NUMBER)), sms);
                    self.commit(lapsed.batch);
                }
                self.read.clear();
            }
        }
    }

    fn decide(&mut self) {
        if self.read.is_empty() {
            return;
        }
        let facts = self.read.remove(0);
        let device = SleepingDevice {
            heard_at: self.heard_at,
            woken_by: self.waiting.iter().max().copied(),
        };
        let expires_at = self.now().plus_ms(2 * RULES.validity_ms);
        let mut m = self.moment();
        let id = SmsId::new(&m);
        match wake(&mut m, (&facts, id), device, expires_at, RULES) {
            Ok(WakeUpSms::UnderWay(id)) => self.waiting.push(id),
            Ok(WakeUpSms::New(sms)) => {
                assert_eq!(self.under_way(), None, "one is on its way");
                self.waiting.push(sms.id);
                self.sms.insert(sms.id, *sms);
            }
            Err(_) => {}
        }
    }

    /// What every sequence of inputs must keep.
    fn hold(&self) {
        let max = usize::try_from(RULES.wake_ups_max).unwrap();
        let sent: Vec<_> = self.sms.values().map(|sms| sms.submitted_at).collect();
        for several in sent.windows(max + 1) {
            let span = several[max].since_ms(several[0]);
            assert!(span >= WAKE_UPS_MS, "{max} within an hour: {several:?}");
        }
    }

    fn under_way(&self) -> Option<SmsId> {
        let is_open = |sms: &&Sms| {
            let status = sms.submitted().unwrap().status;
            matches!(
                status,
                SmsStatus::Pending | SmsStatus::InProgress | SmsStatus::Buffered
            )
        };
        self.sms.values().find(is_open).map(|sms| sms.id)
    }

    fn facts(&self) -> WakeUpFacts {
        let newest = self.sms.values().rev().cloned();
        let most = usize::try_from(RULES.wake_ups_max).unwrap();
        WakeUpFacts {
            device: tracker(Some(NUMBER)),
            of_customer: Some(WakeUpMessage {
                source: "1234".into(),
                source_type: AddressType::International,
                content: WakeUpContent::RegistrationUpdateTrigger,
            }),
            newest: newest.take(most).collect(),
            open: 0,
        }
    }

    fn commit(&mut self, batch: Batch) {
        for change in batch.changes {
            if let Change::PutSms { sms, .. } = change {
                self.sms.insert(sms.id, *sms);
            }
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_ms(1_795_521_600_000 + self.now_ms)
    }

    fn moment(&mut self) -> Moment {
        self.step += 1;
        Moment::new(self.now(), u128::from(self.step)).at_step(self.step)
    }
}

fn input() -> impl Strategy<Value = WakeUpInput> {
    let reported = select(&ReportedStatus::ALL[..]);
    prop_oneof![
        4 => Just(WakeUpInput::Read),
        4 => Just(WakeUpInput::Decide),
        2 => Just(WakeUpInput::Take),
        3 => reported.prop_map(WakeUpInput::Report),
        1 => Just(WakeUpInput::Hear),
        2 => (1_i64..1_200_000).prop_map(WakeUpInput::Pass),
    ]
}
