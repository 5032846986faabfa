//! Which devices do running campaigns begin next, and when does a campaign change or end?
//!
//! ```text
//!            its time, or a command            read
//!  Resting ----------------------------> Looking --> Asking ---------> Resting
//!     ^                                    |           all answered
//!     |                                    v
//!     '--------- saved, or not --------- Saving
//! ```
//!
//! A campaign looks at the counts of its devices, which the devices change themselves, and decides
//! from them alone. So nothing is lost in a crash, and no outcome is counted twice. Devices that
//! begin are waited for before the next look: what is under way is never underestimated.

use std::collections::{BTreeMap, VecDeque};

use crate::change::{Batch, Change, Expect, UniqueName};
use crate::device::update::UpdateEnd;
use crate::directory::firmware::put_device;
use crate::firmware::campaign::{
    Campaign, CampaignCommand, CampaignCounts, CampaignDevice, CampaignState, CampaignStep,
    ImageSource, NewUpdate,
};
use crate::firmware::image_key::ImageKey;
use crate::firmware::update::{FirmwareUpdate, UpdateImage, UpdateState, UpdateStep};
use crate::idempotency::IdempotencyRecord;
use crate::ids::{CampaignId, CustomerId, DeviceKey};
use crate::limits::{CAMPAIGN_LOOK_MS, CAMPAIGN_ROWS_READ};
use crate::moment::Timestamp;
use crate::supervision::Unserved;

/// The length of the window of a rate.
const RATE_WINDOW_MS: i64 = 60_000;

/// An effect of the runner, performed in order; `R` takes the reply to a command.
#[derive(Clone, Debug, PartialEq)]
pub enum CampaignEffect<R> {
    /// Read the counts of a campaign, and the first devices from a place on that are in such
    /// states; pass the result to [`CampaignRunner::handle_look`].
    Look {
        /// The campaign.
        campaign: CampaignId,
        /// Which devices.
        wanted: WantedRows,
    },
    /// Have a device begin, and pass the answer to [`CampaignRunner::handle_answer`].
    Begin {
        /// The device.
        device: DeviceKey,
        /// What it is to do.
        new: Box<NewUpdate>,
    },
    /// Tell a device that its campaign ended, and pass the answer to
    /// [`CampaignRunner::handle_answer`].
    Stop {
        /// The campaign.
        campaign: CampaignId,
        /// The place of the device.
        place: u32,
        /// The device.
        device: DeviceKey,
        /// How it ended.
        end: UpdateEnd,
    },
    /// Commit a batch, and pass the receipt to [`CampaignRunner::handle_receipt`].
    Commit(CampaignId, Batch),
    /// Reply to a caller.
    Answer(R, Result<Campaign, CampaignRefusal>),
}

/// Which devices of a campaign are read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WantedRows {
    /// Those that have not begun, from a place on.
    PendingFrom(u32),
    /// Those under way.
    Active,
}

impl WantedRows {
    /// Where they begin.
    pub fn first(self) -> u32 {
        match self {
            Self::PendingFrom(place) => place,
            Self::Active => 0,
        }
    }

    /// Whether a device in this state is one of them.
    pub fn includes(self, state: UpdateState) -> bool {
        match self {
            Self::PendingFrom(_) => state == UpdateState::Pending,
            Self::Active => state.is_active(),
        }
    }
}

/// What a campaign sees of its devices.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CampaignLook {
    /// How many devices are in each state.
    pub counts: CampaignCounts,
    /// The first of the devices that it wants to see, with their places.
    pub rows: Vec<(u32, CampaignDevice)>,
}

/// Why a command for a campaign is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CampaignRefusal {
    /// The command does not fit the state of the campaign.
    #[error("the campaign is not in a state in which that is possible")]
    WrongState,
    /// The campaign could not be saved.
    #[error(transparent)]
    Unserved(#[from] Unserved),
}

/// The store could not be read for a campaign.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CampaignUnreadable;

/// All running campaigns.
#[derive(Debug)]
pub struct CampaignRunner<R> {
    campaigns: BTreeMap<CampaignId, RunningCampaign<R>>,
    /// Whether nothing new is begun, because the service stops.
    quiescent: bool,
}

/// A campaign that has not ended, or whose devices are still to be told.
#[derive(Debug)]
struct RunningCampaign<R> {
    campaign: Campaign,
    phase: Phase<R>,
    /// What callers want, one after the other.
    commands: VecDeque<(CampaignCommand, R)>,
    /// No device before this place is pending.
    first_pending: u32,
    rate: RateWindow,
}

/// What a campaign is doing.
#[derive(Debug)]
enum Phase<R> {
    /// Nothing, until this time.
    Resting(Timestamp),
    /// The counts are being read.
    Looking,
    /// So many devices are being asked.
    Asking {
        left: usize,
        /// The devices that are asked.
        rows: BTreeMap<u32, CampaignDevice>,
        /// Devices that do not exist.
        gone: Vec<u32>,
        /// The first place whose device gave no answer.
        unanswered: Option<u32>,
    },
    /// It is being saved as it will be.
    Saving(Box<Campaign>, Option<R>),
    /// That devices do not exist is being saved.
    SavingRows,
}

/// The devices that began lately.
#[derive(Debug, Default)]
struct RateWindow {
    since: Timestamp,
    begun: u32,
}

impl<R> Default for CampaignRunner<R> {
    fn default() -> Self {
        Self {
            campaigns: BTreeMap::new(),
            quiescent: false,
        }
    }
}

impl<R> CampaignRunner<R> {
    /// Continues the campaigns that were running when the service ended.
    pub fn restore(&mut self, campaigns: Vec<Campaign>) {
        for campaign in campaigns {
            self.add(campaign, Phase::Resting(Timestamp::default()));
        }
    }

    /// Creates a campaign whose devices are stored, and the idempotency record of its call with it.
    pub fn create(
        &mut self,
        campaign: Campaign,
        record: Option<IdempotencyRecord>,
        reply: R,
        out: &mut Vec<CampaignEffect<R>>,
    ) {
        let mut batch = saving(&campaign);
        if let Some(record) = record {
            batch.add_record(record);
        }
        out.push(CampaignEffect::Commit(campaign.id, batch));
        let phase = Phase::Saving(Box::new(campaign.clone()), Some(reply));
        self.add(campaign, phase);
    }

    /// Does with a campaign what a caller wants, who is answered when that is durable.
    pub fn command(
        &mut self,
        id: CampaignId,
        command: CampaignCommand,
        reply: R,
        out: &mut Vec<CampaignEffect<R>>,
    ) {
        match self.campaigns.get_mut(&id) {
            Some(running) => {
                running.commands.push_back((command, reply));
                if let Phase::Resting(_) = running.phase {
                    running.look(out);
                }
            }
            None => {
                out.push(CampaignEffect::Answer(
                    reply,
                    Err(CampaignRefusal::WrongState),
                ));
            }
        }
    }

    /// Stops the campaigns of a customer that is being removed.
    pub fn forget(&mut self, customer: &CustomerId) {
        self.campaigns
            .retain(|_, running| running.campaign.customer != *customer);
    }

    /// Begins nothing new from then on.
    pub fn quiesce(&mut self) {
        self.quiescent = true;
    }

    /// Handles what a campaign sees of its devices.
    pub fn handle_look(
        &mut self,
        now: Timestamp,
        id: CampaignId,
        look: Result<CampaignLook, CampaignUnreadable>,
        out: &mut Vec<CampaignEffect<R>>,
    ) {
        let Some(running) = self.campaigns.get_mut(&id) else {
            return;
        };
        let Ok(look) = look else {
            return running.rest(now, out);
        };
        if let Some((command, reply)) = running.commands.pop_front() {
            match running.campaign.commanded(command) {
                Some(state) => running.save(state, &look.counts, Some(reply), out),
                None => {
                    out.push(CampaignEffect::Answer(
                        reply,
                        Err(CampaignRefusal::WrongState),
                    ));
                    running.rest(now, out);
                }
            }
            return;
        }
        match running.campaign.next(&look.counts, now) {
            CampaignStep::Wait => running.rest(now, out),
            CampaignStep::Begin(_) if self.quiescent => running.rest(now, out),
            CampaignStep::Begin(room) => running.begin(now, room, look.rows, out),
            CampaignStep::Become(state) => running.save(state, &look.counts, None, out),
            CampaignStep::Stop => running.stop(now, look.rows, out),
            CampaignStep::Close => {
                let state = running.campaign.state;
                running.save(state, &look.counts, None, out);
            }
        }
    }

    /// Handles the answer of a device.
    pub fn handle_answer(
        &mut self,
        now: Timestamp,
        (id, place): (CampaignId, u32),
        answer: Result<(), Unserved>,
        out: &mut Vec<CampaignEffect<R>>,
    ) {
        let Some(running) = self.campaigns.get_mut(&id) else {
            return;
        };
        let Phase::Asking {
            left,
            gone,
            unanswered,
            ..
        } = &mut running.phase
        else {
            return;
        };
        *left = left.saturating_sub(1);
        match answer {
            Ok(()) => {}
            Err(Unserved::Unknown) => gone.push(place),
            Err(Unserved::Busy | Unserved::Failed) => {
                *unanswered = Some(unanswered.map_or(place, |before| before.min(place)));
            }
        }
        if *left == 0 {
            running.end_round(now, out);
        }
    }

    /// Handles the receipt of a commit; `Unknown` means that the customer is removed.
    pub fn handle_receipt(
        &mut self,
        now: Timestamp,
        id: CampaignId,
        receipt: Result<(), Unserved>,
        out: &mut Vec<CampaignEffect<R>>,
    ) {
        let Some(running) = self.campaigns.get_mut(&id) else {
            return;
        };
        let phase = std::mem::replace(&mut running.phase, Phase::Resting(now));
        let Phase::Saving(campaign, reply) = phase else {
            return running.rest(now, out);
        };
        let is_new = running.campaign == *campaign;
        if receipt.is_ok() {
            running.campaign = (*campaign).clone();
        }
        if let Some(reply) = reply {
            let answer = receipt.map(|()| *campaign);
            let answer = answer.map_err(CampaignRefusal::Unserved);
            out.push(CampaignEffect::Answer(reply, answer));
        }
        let is_over = match receipt {
            Ok(()) => !running.campaign.is_open(),
            Err(Unserved::Unknown) => true,
            Err(Unserved::Busy | Unserved::Failed) => is_new,
        };
        match is_over {
            true => self.remove(id, out),
            false if receipt.is_ok() => running.look(out),
            false => running.rest(now, out),
        }
    }

    /// Looks at the campaigns whose time has come.
    pub fn handle_timeout(&mut self, now: Timestamp, out: &mut Vec<CampaignEffect<R>>) {
        for running in self.campaigns.values_mut() {
            match running.phase {
                Phase::Resting(until) if until <= now => running.look(out),
                Phase::Resting(_)
                | Phase::Looking
                | Phase::Asking { .. }
                | Phase::Saving(..)
                | Phase::SavingRows => {}
            }
        }
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        let resting = self.campaigns.values();
        let resting = resting.filter_map(|running| match running.phase {
            Phase::Resting(until) => Some(until),
            Phase::Looking | Phase::Asking { .. } | Phase::Saving(..) | Phase::SavingRows => None,
        });
        resting.min().filter(|_| !self.quiescent)
    }

    /// How many campaigns are running.
    pub fn running(&self) -> usize {
        self.campaigns.len()
    }

    fn add(&mut self, campaign: Campaign, phase: Phase<R>) {
        let running = RunningCampaign {
            phase,
            commands: VecDeque::new(),
            first_pending: 0,
            rate: RateWindow::default(),
            campaign,
        };
        self.campaigns.insert(running.campaign.id, running);
    }

    fn remove(&mut self, id: CampaignId, out: &mut Vec<CampaignEffect<R>>) {
        if let Some(running) = self.campaigns.remove(&id) {
            for (_, reply) in running.commands {
                let refusal = Err(CampaignRefusal::WrongState);
                out.push(CampaignEffect::Answer(reply, refusal));
            }
        }
    }
}

impl<R> RunningCampaign<R> {
    fn look(&mut self, out: &mut Vec<CampaignEffect<R>>) {
        self.phase = Phase::Looking;
        out.push(CampaignEffect::Look {
            campaign: self.campaign.id,
            wanted: match self.campaign.state.is_final() {
                true => WantedRows::Active,
                false => WantedRows::PendingFrom(self.first_pending),
            },
        });
    }

    /// Looks again after a while, or at once if a caller waits.
    fn rest(&mut self, now: Timestamp, out: &mut Vec<CampaignEffect<R>>) {
        match self.commands.is_empty() {
            true => self.phase = Phase::Resting(now.plus_ms(CAMPAIGN_LOOK_MS)),
            false => self.look(out),
        }
    }

    fn save(
        &mut self,
        state: CampaignState,
        counts: &CampaignCounts,
        reply: Option<R>,
        out: &mut Vec<CampaignEffect<R>>,
    ) {
        let campaign = self.campaign.after(state, counts);
        let batch = saving(&campaign);
        out.push(CampaignEffect::Commit(campaign.id, batch));
        self.phase = Phase::Saving(Box::new(campaign), reply);
    }

    /// Has the first of these devices begin, as many as there is room for.
    fn begin(
        &mut self,
        now: Timestamp,
        room: u32,
        rows: Vec<(u32, CampaignDevice)>,
        out: &mut Vec<CampaignEffect<R>>,
    ) {
        let room = self
            .rate
            .room(now, self.campaign.rules.rate_per_minute, room);
        let room = usize::try_from(room).unwrap_or(CAMPAIGN_ROWS_READ);
        let rows: BTreeMap<_, _> = rows.into_iter().take(room).collect();
        if rows.is_empty() {
            return self.rest(now, out);
        }
        self.rate.begun += u32::try_from(rows.len()).unwrap_or(u32::MAX);
        for (place, row) in &rows {
            out.push(CampaignEffect::Begin {
                device: DeviceKey::of(&self.campaign.customer, &row.device),
                new: Box::new(NewUpdate {
                    update: self.update_at(*place),
                    row: row.clone(),
                }),
            });
        }
        self.phase = Phase::asking(rows);
    }

    fn update_at(&self, place: u32) -> FirmwareUpdate {
        FirmwareUpdate {
            campaign: self.campaign.id,
            place,
            image: match &self.campaign.source {
                ImageSource::Stored { image, bytes } => UpdateImage::Stored {
                    image: *image,
                    bytes: *bytes,
                    key: ImageKey::of(&self.campaign.secret, place),
                },
                ImageSource::Elsewhere(uri) => UpdateImage::Elsewhere(uri.clone()),
            },
            method: self.campaign.method,
            retries_left: self.campaign.rules.retries,
            step: UpdateStep::Offers,
            version_before: None,
        }
    }

    /// Tells the devices under way that the campaign ended.
    fn stop(
        &mut self,
        now: Timestamp,
        rows: Vec<(u32, CampaignDevice)>,
        out: &mut Vec<CampaignEffect<R>>,
    ) {
        if rows.is_empty() {
            return self.rest(now, out);
        }
        let end = self.end();
        for (place, row) in &rows {
            out.push(CampaignEffect::Stop {
                campaign: self.campaign.id,
                place: *place,
                device: DeviceKey::of(&self.campaign.customer, &row.device),
                end,
            });
        }
        self.phase = Phase::asking(rows.into_iter().collect());
    }

    fn end(&self) -> UpdateEnd {
        match self.campaign.state {
            CampaignState::Cancelled => UpdateEnd::Cancelled,
            CampaignState::Running
            | CampaignState::Paused
            | CampaignState::Halted
            | CampaignState::Done => UpdateEnd::TimeOver,
        }
    }

    /// Goes on after every device answered. Those that do not exist end here.
    fn end_round(&mut self, now: Timestamp, out: &mut Vec<CampaignEffect<R>>) {
        let phase = std::mem::replace(&mut self.phase, Phase::Resting(now));
        let Phase::Asking {
            rows,
            gone,
            unanswered,
            ..
        } = phase
        else {
            return;
        };
        if !self.campaign.state.is_final() {
            let behind = rows.keys().next_back().map_or(0, |last| last + 1);
            self.first_pending = unanswered.unwrap_or(behind);
        }
        let mut batch = Batch::default();
        for place in gone {
            let Some(row) = rows.get(&place) else {
                continue;
            };
            let at = (self.campaign.id, place);
            batch.expects.push(Expect::CampaignDevice {
                campaign: self.campaign.id,
                place,
                row: Box::new(row.clone()),
            });
            let (state, reason) = match row.state.is_active() {
                true => (UpdateState::Failed, "the device was removed"),
                false => (UpdateState::Skipped, "there is no such device"),
            };
            let ended = CampaignDevice {
                state,
                reason: Some(reason.into()),
                updated_at: now,
                ..row.clone()
            };
            put_device(&mut batch, at, Some(row.state), ended);
        }
        match batch.is_empty() {
            // Their commits are durable: the next look sees them.
            true if unanswered.is_none() => self.look(out),
            true => self.rest(now, out),
            false => {
                out.push(CampaignEffect::Commit(self.campaign.id, batch));
                self.phase = Phase::SavingRows;
            }
        }
    }
}

impl<R> Phase<R> {
    fn asking(rows: BTreeMap<u32, CampaignDevice>) -> Self {
        Self::Asking {
            left: rows.len(),
            rows,
            gone: Vec::new(),
            unanswered: None,
        }
    }
}

impl RateWindow {
    /// How many devices may begin now.
    fn room(&mut self, now: Timestamp, per_minute: Option<u32>, wanted: u32) -> u32 {
        let Some(max) = per_minute else {
            return wanted;
        };
        if !(0..RATE_WINDOW_MS).contains(&now.since_ms(self.since)) {
            *self = Self {
                since: now,
                begun: 0,
            };
        }
        wanted.min(max.saturating_sub(self.begun))
    }
}

/// The batch that saves a campaign, unless its customer was removed.
fn saving(campaign: &Campaign) -> Batch {
    Batch {
        expects: vec![Expect::Taken(UniqueName::Customer(
            campaign.customer.clone(),
        ))],
        changes: vec![Change::PutCampaign(Box::new(campaign.clone()))],
        ..Batch::default()
    }
}

#[cfg(test)]
mod tests;
