//! Which effects does each input leave?

use super::*;
use crate::firmware::campaign::CampaignRules;
use crate::firmware::update::DeliveryMethod;
use crate::ids::DeviceId;

const NOW: Timestamp = Timestamp::from_ms(1_700_000_000_000);

#[test]
fn a_campaign_is_saved_then_answered_then_looks_at_its_devices() {
    let mut fixture = Fixture::new();
    let created = fixture.step(|it, out| it.create(campaign(2), None, "caller", out));
    assert_eq!(created, ["commit Running"]);
    assert_eq!(
        fixture.saved(Ok(())),
        ["answer caller: Running", "look PendingFrom(0)"]
    );
    let begun = fixture.look([2, 0, 0, 0, 0, 0, 0], &[(0, "a"), (1, "b")]);
    assert_eq!(begun, ["begin 0: a", "begin 1: b"]);
    assert_eq!(fixture.answer(0, Ok(())), Vec::<String>::new());
    assert_eq!(fixture.answer(1, Ok(())), ["look PendingFrom(2)"]);
    assert_eq!(
        fixture.look([0, 2, 0, 0, 0, 0, 0], &[]),
        Vec::<String>::new()
    );
    assert_eq!(fixture.timeout(), ["look PendingFrom(2)"]);
    assert_eq!(fixture.look([0, 0, 0, 0, 1, 1, 0], &[]), ["commit Done"]);
    assert_eq!(fixture.saved(Ok(())), Vec::<String>::new());
    assert_eq!(fixture.runner.running(), 0);
}

#[test]
fn a_device_that_does_not_exist_is_skipped_and_one_without_answer_is_asked_again() {
    let mut fixture = Fixture::running(2);
    fixture.look([2, 0, 0, 0, 0, 0, 0], &[(0, "a"), (1, "b")]);
    fixture.answer(0, Err(Unserved::Busy));
    assert_eq!(
        fixture.answer(1, Err(Unserved::Unknown)),
        ["commit place 1 Skipped"]
    );
    assert_eq!(fixture.saved(Ok(())), Vec::<String>::new());
    assert_eq!(fixture.timeout(), ["look PendingFrom(0)"]);
}

#[test]
fn a_campaign_that_is_not_saved_does_not_run() {
    let mut fixture = Fixture::new();
    fixture.step(|it, out| it.create(campaign(2), None, "caller", out));
    let saved = fixture.saved(Err(Unserved::Busy));
    assert_eq!(saved, ["answer caller: the service is overloaded"]);
    assert_eq!(fixture.runner.running(), 0);
}

#[test]
fn a_cancelled_campaign_tells_the_devices_under_way() {
    let mut fixture = Fixture::running(3);
    fixture.look([3, 0, 0, 0, 0, 0, 0], &[(0, "a")]);
    let waits = fixture.command(CampaignCommand::Cancel);
    assert_eq!(waits, Vec::<String>::new(), "a device is being asked");
    assert_eq!(fixture.answer(0, Ok(())), ["look PendingFrom(1)"]);
    assert_eq!(
        fixture.look([2, 1, 0, 0, 0, 0, 0], &[(1, "b")]),
        ["commit Cancelled"]
    );
    assert_eq!(
        fixture.saved(Ok(())),
        ["answer caller: Cancelled", "look Active"]
    );
    assert_eq!(
        fixture.look([2, 1, 0, 0, 0, 0, 0], &[(0, "a")]),
        ["stop 0: a Cancelled"]
    );
    assert_eq!(fixture.answer(0, Ok(())), ["look Active"]);
    assert_eq!(
        fixture.look([2, 0, 0, 0, 0, 0, 1], &[]),
        ["commit Cancelled"]
    );
    fixture.saved(Ok(()));
    assert_eq!(fixture.runner.running(), 0);
}

#[test]
fn a_command_that_does_not_fit_the_state_is_refused() {
    let mut fixture = Fixture::running(3);
    fixture.look([3, 0, 0, 0, 0, 0, 0], &[]);
    assert_eq!(
        fixture.command(CampaignCommand::Resume),
        ["look PendingFrom(0)"]
    );
    let refused = "answer caller: the campaign is not in a state in which that is possible";
    assert_eq!(fixture.look([3, 0, 0, 0, 0, 0, 0], &[]), [refused]);
    let unknown = CampaignId::from_bytes([9; 16]);
    let refused_at_once =
        fixture.step(|it, out| it.command(unknown, CampaignCommand::Pause, "caller", out));
    assert_eq!(refused_at_once, [refused]);
}

#[test]
fn a_halted_campaign_forgives_its_failures_when_it_is_resumed() {
    let mut fixture = Fixture::running(10);
    assert_eq!(fixture.look([7, 0, 0, 0, 0, 3, 0], &[]), ["commit Halted"]);
    assert_eq!(fixture.saved(Ok(())), ["look PendingFrom(0)"]);
    assert_eq!(
        fixture.look([7, 0, 0, 0, 0, 3, 0], &[(3, "d")]),
        Vec::<String>::new()
    );
    fixture.command(CampaignCommand::Resume);
    assert_eq!(fixture.look([7, 0, 0, 0, 0, 3, 0], &[]), ["commit Running"]);
    fixture.saved(Ok(()));
    let begun = fixture.look([7, 0, 0, 0, 0, 3, 0], &[(3, "d")]);
    assert_eq!(begun, ["begin 3: d"]);
}

struct Fixture {
    now: Timestamp,
    runner: CampaignRunner<&'static str>,
}

impl Fixture {
    fn new() -> Self {
        Self {
            now: NOW,
            runner: CampaignRunner::default(),
        }
    }

    /// A campaign of so many devices that is about to look at them.
    fn running(devices: u32) -> Self {
        let mut fixture = Self::new();
        fixture.step(|it, _| it.restore(vec![campaign(devices)]));
        assert_eq!(fixture.timeout(), ["look PendingFrom(0)"]);
        fixture
    }

    fn command(&mut self, command: CampaignCommand) -> Vec<String> {
        self.step(|it, out| it.command(id(), command, "caller", out))
    }

    fn look(&mut self, counts: [u32; 7], rows: &[(u32, &str)]) -> Vec<String> {
        let row = |(place, device): &(u32, &str)| {
            let device = DeviceId::parse(device).unwrap();
            (*place, CampaignDevice::new(device, NOW))
        };
        let look = CampaignLook {
            counts: CampaignCounts::restored(counts),
            rows: rows.iter().map(row).collect(),
        };
        let now = self.now;
        self.step(|it, out| it.handle_look(now, id(), Ok(look), out))
    }

    fn answer(&mut self, place: u32, answer: Result<(), Unserved>) -> Vec<String> {
        let now = self.now;
        self.step(|it, out| it.handle_answer(now, (id(), place), answer, out))
    }

    fn saved(&mut self, receipt: Result<(), Unserved>) -> Vec<String> {
        let now = self.now;
        self.step(|it, out| it.handle_receipt(now, id(), receipt, out))
    }

    fn timeout(&mut self) -> Vec<String> {
        let at = self.runner.next_timeout().expect("there is a deadline");
        self.now = self.now.max(at);
        let now = self.now;
        self.step(|it, out| it.handle_timeout(now, out))
    }

    fn step(
        &mut self,
        input: impl FnOnce(&mut CampaignRunner<&'static str>, &mut Vec<Effect>),
    ) -> Vec<String> {
        let mut out = Vec::new();
        input(&mut self.runner, &mut out);
        out.iter().map(line).collect()
    }
}

type Effect = CampaignEffect<&'static str>;

fn line(effect: &Effect) -> String {
    match effect {
        CampaignEffect::Look { wanted, .. } => format!("look {wanted:?}"),
        CampaignEffect::Begin { new, .. } => {
            format!("begin {}: {}", new.update.place, new.row.device)
        }
        CampaignEffect::Stop {
            place, device, end, ..
        } => {
            let named = ["a", "b", "c"].into_iter().find(|name| {
                let name = DeviceId::parse(name).unwrap();
                DeviceKey::of(&customer(), &name) == *device
            });
            format!("stop {place}: {} {end:?}", named.unwrap())
        }
        CampaignEffect::Commit(_, batch) => {
            let changes = batch.changes.iter().map(|change| {
                if let Change::PutCampaign(campaign) = change {
                    format!("{:?}", campaign.state)
                } else if let Change::PutCampaignDevice { place, row, .. } = change {
                    format!("place {place} {:?}", row.state)
                } else {
                    panic!("{change:?}")
                }
            });
            format!("commit {}", changes.collect::<Vec<_>>().join(", "))
        }
        CampaignEffect::Answer(who, Ok(campaign)) => format!("answer {who}: {:?}", campaign.state),
        CampaignEffect::Answer(who, Err(refusal)) => format!("answer {who}: {refusal}"),
    }
}

fn id() -> CampaignId {
    CampaignId::from_bytes([7; 16])
}

fn customer() -> CustomerId {
    CustomerId::parse("acme").unwrap()
}

fn campaign(devices: u32) -> Campaign {
    Campaign {
        id: id(),
        customer: customer(),
        state: CampaignState::Running,
        created_at: NOW,
        source: ImageSource::Elsewhere("http://10.0.0.9/image".into()),
        secret: [0; 16],
        method: DeliveryMethod::Auto,
        devices,
        rules: CampaignRules {
            concurrency: 2,
            rate_per_minute: None,
            retries: 0,
            canary_percent: None,
            halt_at_failed_percent: Some(30),
            not_before: None,
            not_after: NOW.plus_ms(3_600_000),
        },
        failures_accepted: 0,
        is_stopping: false,
    }
}
