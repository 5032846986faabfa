//! Do campaigns keep their laws, whatever becomes of devices, answers and the process?
//!
//! The world has a store, devices that end as chance wants, answers that are lost, kills, and
//! callers that pause, resume and cancel.

use std::collections::VecDeque;

use engine::change::{Batch, Change, Expect};
use engine::firmware::campaign::{
    Campaign, CampaignCommand, CampaignCounts, CampaignDevice, CampaignRules, CampaignState,
    ImageSource,
};
use engine::firmware::runner::{CampaignEffect, CampaignLook, CampaignRunner, WantedRows};
use engine::firmware::update::{DeliveryMethod, UpdateState};
use engine::ids::{CampaignId, CustomerId, DeviceId};
use engine::limits::CAMPAIGN_ROWS_READ;
use engine::moment::{Moment, Timestamp};
use engine::supervision::Unserved;

const START: Timestamp = Timestamp::from_ms(1_700_000_000_000);
const MINUTE: i64 = 60_000;

#[test]
fn a_campaign_ends_and_its_failure_limit_is_not_overshot_by_more_than_the_concurrency() {
    for seed in 1..400 {
        let mut world = World::new(seed);
        world.run();
        world.check_end();
    }
}

#[test]
fn the_rest_begins_only_after_the_canary() {
    for seed in 1..100 {
        let mut world = World::new(seed);
        world.campaign.rules.canary_percent = Some(10);
        world.campaign.rules.halt_at_failed_percent = None;
        world.campaign.rules.concurrency = 40;
        world.commands = 0;
        world.run();
        world.check_end();
    }
}

#[test]
fn no_more_devices_begin_within_a_minute_than_the_rate_permits() {
    let mut world = World::new(7);
    world.campaign.rules = CampaignRules {
        rate_per_minute: Some(3),
        concurrency: 40,
        canary_percent: None,
        halt_at_failed_percent: None,
        ..world.campaign.rules
    };
    world.commands = 0;
    world.is_calm = true;
    world.run();
    assert_eq!(world.count(UpdateState::Pending), 0);
    for (index, at) in world.begun_at.iter().enumerate() {
        let before = world.begun_at[..index].iter();
        let lately = before.filter(|other| at.since_ms(**other) < MINUTE);
        assert!(lately.count() < 6, "a window has two minutes at most");
    }
    let last = world.begun_at.last().expect("devices began");
    assert!(
        last.since_ms(START) >= 12 * MINUTE,
        "40 devices, 3 a minute"
    );
}

#[test]
fn nothing_begins_before_its_time_and_everything_ends_after_it() {
    let mut world = World::new(3);
    world.campaign.rules.not_before = Some(START.plus_ms(10 * MINUTE));
    world.never_ends = true;
    world.commands = 0;
    world.is_calm = true;
    world.run();
    assert!(
        world
            .begun_at
            .iter()
            .all(|at| *at >= START.plus_ms(10 * MINUTE))
    );
    assert_eq!(world.campaign.state, CampaignState::Done);
    assert_eq!(world.active(), 0, "devices under way were told");
}

struct World {
    now: Timestamp,
    chance: Moment,
    runner: CampaignRunner<CampaignCommand>,
    /// As it is stored.
    campaign: Campaign,
    rows: Vec<CampaignDevice>,
    effects: VecDeque<CampaignEffect<CampaignCommand>>,
    begun: Vec<u32>,
    begun_at: Vec<Timestamp>,
    /// How many commands callers still give.
    commands: u32,
    /// Nothing is lost, and nothing is killed.
    is_calm: bool,
    /// No device reports a result.
    never_ends: bool,
}

impl World {
    fn new(seed: u128) -> Self {
        let mut chance = Moment::new(START, seed.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060));
        let mut one_of = |max: u32| chance.next_u32() % max;
        let rules = CampaignRules {
            concurrency: 1 + one_of(6),
            rate_per_minute: None,
            retries: 0,
            canary_percent: (one_of(2) == 0).then_some(10),
            halt_at_failed_percent: (one_of(3) > 0).then(|| 5 + one_of(30) as u8),
            not_before: None,
            not_after: START.plus_ms(60 * MINUTE),
        };
        let devices = 40;
        let campaign = Campaign {
            id: CampaignId::from_bytes([7; 16]),
            customer: CustomerId::parse("acme").expect("an id"),
            state: CampaignState::Running,
            created_at: START,
            source: ImageSource::Elsewhere("http://10.0.0.9/image".into()),
            secret: [0; 16],
            method: DeliveryMethod::Auto,
            devices,
            rules,
            failures_accepted: 0,
            is_stopping: false,
        };
        let row = |number: u32| {
            let device = DeviceId::parse(&format!("meter-{number}")).expect("an id");
            CampaignDevice::new(device, START)
        };
        Self {
            now: START,
            runner: CampaignRunner::default(),
            rows: (0..devices).map(row).collect(),
            campaign,
            effects: VecDeque::new(),
            begun: vec![0; devices as usize],
            begun_at: Vec::new(),
            commands: 3,
            is_calm: false,
            never_ends: false,
            chance,
        }
    }

    fn run(&mut self) {
        self.restart();
        let is_over = (0..20_000).any(|_| {
            self.step();
            self.check();
            let is_idle = self.effects.is_empty() && self.runner.running() == 0;
            is_idle && !self.campaign.is_open()
        });
        assert!(is_over, "the campaign does not end: {:?}", self.campaign);
    }

    fn step(&mut self) {
        let mut out = Vec::new();
        match self.effects.pop_front() {
            Some(effect) => self.perform(effect, &mut out),
            None => {
                if let Some(at) = self.runner.next_timeout() {
                    self.now = self.now.max(at);
                }
                self.runner.handle_timeout(self.now, &mut out);
            }
        }
        self.effects.extend(out);
        self.devices_go_on();
        if self.chance(40) && self.commands > 0 {
            self.commands -= 1;
            let commands = [
                CampaignCommand::Pause,
                CampaignCommand::Resume,
                CampaignCommand::Resume,
                CampaignCommand::Cancel,
            ];
            let command = commands[self.chance.next_u32() as usize % commands.len()];
            let mut out = Vec::new();
            self.runner
                .command(self.campaign.id, command, command, &mut out);
            self.effects.extend(out);
        }
        if self.chance(200) {
            self.restart();
        }
    }

    /// The process is killed: what was under way is forgotten.
    fn restart(&mut self) {
        self.effects.clear();
        self.runner = CampaignRunner::default();
        if self.campaign.is_open() {
            self.runner.restore(vec![self.campaign.clone()]);
        }
    }

    fn perform(
        &mut self,
        effect: CampaignEffect<CampaignCommand>,
        out: &mut Vec<CampaignEffect<CampaignCommand>>,
    ) {
        match effect {
            CampaignEffect::Look { campaign, wanted } => {
                let look = self.look(wanted);
                self.runner.handle_look(self.now, campaign, Ok(look), out);
            }
            CampaignEffect::Begin { new, .. } => {
                let place = new.update.place;
                let row = &mut self.rows[place as usize];
                // The batch expects the row as it was read.
                let answer = match *row == new.row {
                    true => {
                        row.state = UpdateState::Transferring;
                        self.begun[place as usize] += 1;
                        self.begun_at.push(self.now);
                        Ok(())
                    }
                    false => Err(Unserved::Failed),
                };
                let answer = self.or_lost(answer);
                let at = (new.update.campaign, place);
                self.runner.handle_answer(self.now, at, answer, out);
            }
            CampaignEffect::Stop {
                campaign, place, ..
            } => {
                let row = &mut self.rows[place as usize];
                if row.state.is_active() {
                    row.state = UpdateState::Skipped;
                }
                let answer = self.or_lost(Ok(()));
                self.runner
                    .handle_answer(self.now, (campaign, place), answer, out);
            }
            CampaignEffect::Commit(campaign, batch) => {
                let receipt = match self.chance(50) {
                    true => Err(Unserved::Busy),
                    false => {
                        self.commit(batch);
                        Ok(())
                    }
                };
                self.runner.handle_receipt(self.now, campaign, receipt, out);
            }
            CampaignEffect::Answer(command, Ok(campaign)) => {
                assert_eq!(
                    campaign, self.campaign,
                    "{command:?} is answered when durable"
                );
            }
            CampaignEffect::Answer(_, Err(_)) => {}
        }
    }

    fn look(&self, wanted: WantedRows) -> CampaignLook {
        let mut counts = [0; UpdateState::ALL.len()];
        for row in &self.rows {
            counts[row.state as usize] += 1;
        }
        let rows = (0..).zip(self.rows.iter().cloned());
        let rows = rows.skip(wanted.first() as usize);
        let rows = rows.filter(|(_, row)| wanted.includes(row.state));
        CampaignLook {
            counts: CampaignCounts::restored(counts),
            rows: rows.take(CAMPAIGN_ROWS_READ).collect(),
        }
    }

    fn commit(&mut self, batch: Batch) {
        for expect in batch.expects {
            assert!(matches!(expect, Expect::Taken(_)), "{expect:?}");
        }
        for change in batch.changes {
            let Change::PutCampaign(campaign) = change else {
                unreachable!("every device exists: {change:?}");
            };
            let was = self.campaign.state;
            assert!(
                !was.is_final() || was == campaign.state,
                "a final state never changes"
            );
            self.campaign = *campaign;
        }
    }

    /// Devices under way end, as chance wants.
    fn devices_go_on(&mut self) {
        if self.never_ends {
            return;
        }
        for place in 0..self.rows.len() {
            if self.rows[place].state.is_active() && self.chance(6) {
                self.rows[place].state = match self.chance.next_u32() % 3 {
                    0 => UpdateState::Failed,
                    _ => UpdateState::Succeeded,
                };
            }
        }
    }

    fn or_lost(&mut self, answer: Result<(), Unserved>) -> Result<(), Unserved> {
        match self.chance(20) {
            true => Err(Unserved::Busy),
            false => answer,
        }
    }

    fn chance(&mut self, one_in: u32) -> bool {
        let drawn = self.chance.next_u32().is_multiple_of(one_in);
        drawn && (!self.is_calm || one_in < 10)
    }

    fn count(&self, state: UpdateState) -> u32 {
        let rows = self.rows.iter().filter(|row| row.state == state);
        u32::try_from(rows.count()).expect("a few")
    }

    fn active(&self) -> usize {
        let rows = self.rows.iter().filter(|row| row.state.is_active());
        rows.count()
    }

    fn check(&self) {
        let rules = &self.campaign.rules;
        assert!(self.begun.iter().all(|times| *times <= 1), "at most once");
        assert!(self.active() <= rules.concurrency as usize);
        if let Some(percent) = rules.halt_at_failed_percent {
            let max = (self.campaign.devices * u32::from(percent)).div_ceil(100);
            let failed = self.count(UpdateState::Failed);
            let failed = failed.saturating_sub(self.campaign.failures_accepted);
            assert!(failed < max + rules.concurrency, "{failed} of {max} failed");
        }
        if let Some(percent) = rules.canary_percent {
            let canary = (self.campaign.devices * u32::from(percent)).div_ceil(100) as usize;
            let is_over = self.rows[..canary].iter().all(|row| row.state.is_final());
            let others = self.rows[canary..].iter();
            let mut begun = others.filter(|row| row.state != UpdateState::Pending);
            assert!(is_over || begun.next().is_none(), "the canary goes first");
        }
    }

    fn check_end(&self) {
        assert!(self.campaign.state.is_final());
        assert_eq!(self.active(), 0);
        if self.campaign.state == CampaignState::Done {
            let is_over = self.now >= self.campaign.rules.not_after;
            assert!(is_over || self.count(UpdateState::Pending) == 0);
        }
    }
}
