//! Firmware campaigns: customers create and command them, and the service performs the effects of
//! their runner.

use engine::arbiter::input::DeviceCommand;
use engine::change::Batch;
use engine::device::update::UpdateEnd;
use engine::directory::firmware::devices_of;
use engine::firmware::campaign::{
    Campaign, CampaignCommand, CampaignRules, CampaignState, ImageSource,
};
use engine::firmware::runner::{
    CampaignEffect, CampaignRefusal, CampaignRunner, CampaignUnreadable, WantedRows,
};
use engine::firmware::update::DeliveryMethod;
use engine::firmware::{ImageRange, ImageUnreadable};
use engine::ids::{CampaignId, ImageId};
use engine::moment::Timestamp;
use engine::supervision::Unserved;
use harness::device::resource::{FIRMWARE_RESULT, FIRMWARE_UPDATE};
use protocol::lwm2m::value::Value;

use super::World;
use super::customers::customer;
use crate::disk::campaigns::stored_image;
use crate::disk::{Author, CustomerChange};
use crate::event::{DeviceStep, Event};
use crate::service::{CommitResult, Reply};
use crate::settings::pick;
use crate::trace::TraceEvent;

/// How many campaigns run at a time, at most.
const CAMPAIGNS_MAX: usize = 2;

/// The result of a download during which the device had no power.
const CONNECTION_LOST: i64 = 4;

type Machine = CampaignRunner<u64>;

type Effect = CampaignEffect<u64>;

impl World {
    /// The customer creates a campaign or does something with one.
    pub(super) fn act_on_campaigns(&mut self) {
        let open = self.disk.durable.open_campaigns();
        let open: Vec<CampaignId> = open.map(|campaign| campaign.id).collect();
        let one = match open.len() {
            0 => None,
            count => open.get(self.rng.below(count as u32) as usize).copied(),
        };
        let command = match self.rng.below(8) {
            0..4 if open.len() < CAMPAIGNS_MAX => return self.create_any_campaign(),
            0..4 => CampaignCommand::Resume,
            4 | 5 => CampaignCommand::Pause,
            6 => CampaignCommand::Resume,
            _ => CampaignCommand::Cancel,
        };
        if let Some(id) = one {
            self.command_campaign(id, command);
        }
    }

    fn create_any_campaign(&mut self) {
        let some = pick(&mut self.rng, [50, 100]);
        let devices = 0..self.settings.devices;
        let whom: Vec<usize> = devices.filter(|_| self.rng.hits(some)).collect();
        if whom.is_empty() {
            return;
        }
        let lasts_ms = i64::from(self.rng.below(self.campaign_ms_max() as u32));
        let now = Timestamp::from_ms(self.now_ms);
        let starts_ms = i64::from(self.rng.below(lasts_ms as u32 + 1));
        let rng = &mut self.rng;
        let rules = CampaignRules {
            concurrency: pick(rng, [1, 2, 5]),
            rate_per_minute: pick(rng, [None, None, Some(1), Some(3)]),
            retries: pick(rng, [0, 0, 1, 3]),
            canary_percent: pick(rng, [None, Some(20), Some(50)]),
            halt_at_failed_percent: pick(rng, [None, Some(10), Some(50)]),
            not_before: match rng.below(4) {
                0 => Some(now.plus_ms(starts_ms)),
                _ => None,
            },
            not_after: now.plus_ms(lasts_ms),
        };
        match self.campaigns_made % 4 {
            3 => {
                let uri = format!("http://elsewhere.example/{}", self.campaigns_made);
                self.create_campaign_of(&whom, rules, ImageSource::Elsewhere(uri.into()));
            }
            _ => drop(self.create_campaign(&whom, rules)),
        }
    }

    /// The longest time that a campaign of a random world lasts.
    pub(super) fn campaign_ms_max(&self) -> i64 {
        60_000 + 100 * self.settings.pace_ms
    }

    /// Creates a campaign of a stored image, which begins once it is durable.
    pub(crate) fn create_campaign(&mut self, whom: &[usize], rules: CampaignRules) -> CampaignId {
        let number = u128::from(self.campaigns_made + 1);
        let image = ImageId::from_bytes(number.to_be_bytes());
        let bytes = stored_image(image).len() as u64;
        self.create_campaign_of(whom, rules, ImageSource::Stored { image, bytes })
    }

    fn create_campaign_of(
        &mut self,
        whom: &[usize],
        rules: CampaignRules,
        source: ImageSource,
    ) -> CampaignId {
        self.campaigns_made += 1;
        let id = CampaignId::from_bytes(u128::from(self.campaigns_made).to_be_bytes());
        self.note_campaign(id, "is to be made");
        let now = Timestamp::from_ms(self.now_ms);
        let campaign = Campaign {
            id,
            customer: customer(),
            state: CampaignState::Running,
            created_at: now,
            source,
            secret: [0; 16],
            method: DeliveryMethod::Auto,
            devices: u32::try_from(whom.len()).expect("a world has few devices"),
            rules,
            failures_accepted: 0,
            is_stopping: false,
        };
        let profile = |who: &usize| self.disk.durable.profile(*who).device.clone();
        let devices = whom.iter().map(profile).collect();
        // The store takes the rows in several batches; the campaign follows the last of them.
        let mut rows = Batch::default();
        for batch in devices_of(now, id, devices) {
            rows.changes.extend(batch.changes);
            rows.adds.extend(batch.adds);
        }
        let change = CustomerChange::AddCampaign(Box::new(campaign));
        self.commit_as(Author::Customer(change), rows);
        id
    }

    /// The devices of a campaign are durable: the campaign begins, if its runner does.
    pub(super) fn begin_campaign(&mut self, campaign: Campaign) {
        let call = self.next_number();
        self.census.campaigns += 1;
        self.run_campaigns(|machine, _, out| machine.create(campaign, None, call, out));
    }

    pub(crate) fn command_campaign(&mut self, id: CampaignId, command: CampaignCommand) {
        self.note_campaign(
            id,
            match command {
                CampaignCommand::Pause => "is to be paused",
                CampaignCommand::Resume => "is to be resumed",
                CampaignCommand::Cancel => "is to be cancelled",
            },
        );
        let call = self.next_number();
        self.run_campaigns(|machine, _, out| machine.command(id, command, call, out));
    }

    /// The service reads the campaigns that were running when it ended.
    pub(super) fn restore_campaigns(&mut self) {
        let run = self.service.run();
        let at_ms = self.now_ms + self.read_ms();
        self.queue.push(at_ms, Event::CampaignsRead { run });
    }

    pub(super) fn campaigns_read(&mut self, run: u64) {
        if !self.service.is_up_since(run) {
            return;
        }
        if self.read().is_err() {
            let at_ms = self.now_ms + 1_000;
            return self.queue.push(at_ms, Event::CampaignsRead { run });
        }
        let open = self.disk.durable.open_campaigns().cloned().collect();
        self.service.campaigns.machine = Some(CampaignRunner::default());
        self.run_campaigns(|machine, _, _| machine.restore(open));
    }

    pub(super) fn campaigns_due(&mut self, run: u64) {
        if self.service.is_up_since(run) {
            let now = Timestamp::from_ms(self.now_ms);
            let armed_at = &mut self.service.campaigns.armed_at;
            armed_at.take_if(|armed_at| *armed_at <= now);
            self.run_campaigns(|machine, now, out| machine.handle_timeout(now, out));
        }
    }

    pub(super) fn campaign_looked(&mut self, id: CampaignId, wanted: WantedRows, run: u64) {
        if self.service.is_up_since(run) {
            let look = self.read().map_err(|_| CampaignUnreadable);
            let look = look.map(|()| self.disk.durable.campaign_look(id, wanted));
            self.run_campaigns(|machine, now, out| machine.handle_look(now, id, look, out));
        }
    }

    pub(super) fn campaign_answered(
        &mut self,
        at: (CampaignId, u32),
        answer: Result<(), Unserved>,
        run: u64,
    ) {
        if self.service.is_up_since(run) {
            self.run_campaigns(|machine, now, out| machine.handle_answer(now, at, answer, out));
        }
    }

    pub(super) fn campaign_committed(&mut self, id: CampaignId, receipt: CommitResult) {
        let receipt = match receipt {
            CommitResult::Durable => Ok(()),
            CommitResult::Unsaved => Err(Unserved::Busy),
            CommitResult::Conflict => Err(Unserved::Unknown),
        };
        self.run_campaigns(|machine, now, out| machine.handle_receipt(now, id, receipt, out));
    }

    /// A device replied to a command; the runner learns of it if the command was its own.
    pub(super) fn reply_for_campaign(&mut self, call: u64, reply: &Reply) {
        if let Some(at) = self.service.campaigns.answered(call) {
            let answer = reply.as_ref().map(|_| ()).map_err(|unserved| *unserved);
            let run = self.service.run();
            self.queue
                .push(self.now_ms, Event::CampaignAnswered { at, answer, run });
        }
    }

    /// Gives the runner an input, if it runs, and performs its effects.
    fn run_campaigns(&mut self, input: impl FnOnce(&mut Machine, Timestamp, &mut Vec<Effect>)) {
        let Some(machine) = &mut self.service.campaigns.machine else {
            return;
        };
        let mut out = Vec::new();
        input(machine, Timestamp::from_ms(self.now_ms), &mut out);
        for effect in out {
            self.perform_for_campaign(effect);
        }
        self.arm_campaigns();
    }

    fn perform_for_campaign(&mut self, effect: Effect) {
        match effect {
            CampaignEffect::Look { campaign, wanted } => {
                let run = self.service.run();
                let at_ms = self.now_ms + self.read_ms();
                self.queue.push(
                    at_ms,
                    Event::CampaignLooked {
                        campaign,
                        wanted,
                        run,
                    },
                );
            }
            CampaignEffect::Begin { device, new } => {
                let at = (new.update.campaign, new.update.place);
                let who = self.service.who(device);
                self.ask_for_campaign(at, who, DeviceCommand::BeginUpdate(new));
            }
            CampaignEffect::Stop {
                campaign,
                place,
                device,
                end,
            } => {
                self.census.updates_stopped += 1;
                let who = self.service.who(device);
                self.stop_update((campaign, place), who, end);
            }
            CampaignEffect::Commit(campaign, batch) => {
                self.commit_as(Author::Campaign(campaign), batch);
            }
            CampaignEffect::Answer(_, answer) => self.answer_of_campaign(answer),
        }
    }

    fn stop_update(&mut self, at: (CampaignId, u32), who: usize, end: UpdateEnd) {
        self.ask_for_campaign(at, who, DeviceCommand::EndUpdate(at.0, end));
    }

    fn ask_for_campaign(&mut self, at: (CampaignId, u32), who: usize, question: DeviceCommand) {
        let call = self.callers.next_call();
        self.service.campaigns.ask(call, at);
        self.ask(who, question);
    }

    fn answer_of_campaign(&mut self, answer: Result<Campaign, CampaignRefusal>) {
        match answer {
            Ok(campaign) => {
                self.census.campaigns_commanded += 1;
                self.note_campaign(campaign.id, "is answered for");
                let verdict = self.laws.campaigns.answered(&campaign, &self.disk.durable);
                self.check(verdict);
            }
            Err(_) => self.census.campaigns_refused += 1,
        }
    }

    fn arm_campaigns(&mut self) {
        let campaigns = &mut self.service.campaigns;
        let next = campaigns.machine.as_ref().and_then(Machine::next_timeout);
        if let Some(at) = next
            && campaigns.armed_at.is_none_or(|armed_at| at < armed_at)
        {
            campaigns.armed_at = Some(at);
            let run = self.service.run();
            let at_ms = at.as_ms().max(self.now_ms);
            self.queue.push(at_ms, Event::CampaignsDue { run });
        }
    }

    fn note_campaign(&mut self, id: CampaignId, does: &'static str) {
        self.note(TraceEvent::Campaign { id, does });
    }

    /// Reads a part of an image that a device is sent.
    pub(super) fn read_image(&mut self, of: DeviceStep, range: ImageRange) {
        let at_ms = self.now_ms + self.read_ms();
        self.queue.push(at_ms, Event::ImageRead { of, range });
    }

    pub(super) fn image_read(&mut self, of: DeviceStep, range: &ImageRange) {
        if !self.service.has(of.at) {
            return;
        }
        let read = self.read().map_err(|_| ImageUnreadable);
        let read = read.map(|()| {
            self.census.image_parts_sent += 1;
            let image = stored_image(range.image).into_iter();
            image.skip(range.from as usize).take(range.bytes).collect()
        });
        let DeviceStep { at, who, step } = of;
        self.serve(at, |arbiter, turn| {
            arbiter.image_read((who, step), read, turn);
        });
    }

    /// The next update of a device has other results: usually it succeeds.
    pub(super) fn change_update(&mut self, who: usize) {
        let (download, install) = match self.rng.below(6) {
            0 => (pick(&mut self.rng, [2, 4, 5, 9]), 1),
            1 => (0, 8),
            _ => (0, 1),
        };
        let machine = &mut self.fleet.member_mut(who).machine;
        machine.update_with_results(download, install);
    }

    /// A device that is switched off may forget its download altogether.
    pub(super) fn forget_download(&mut self, who: usize) {
        let machine = &mut self.fleet.member_mut(who).machine;
        let is_lost = machine.value(FIRMWARE_RESULT) == Some(&Value::Integer(CONNECTION_LOST));
        if is_lost && self.rng.below(2) == 0 {
            machine.set(FIRMWARE_RESULT, Value::Integer(0));
        }
    }

    /// How often a device has begun to install an image.
    pub(crate) fn installations(&self, who: usize) -> u64 {
        self.fleet.member(who).machine.executed(FIRMWARE_UPDATE)
    }
}
