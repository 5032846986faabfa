//! What is a firmware campaign? One image for many devices, given to a few of them at a time.
//!
//! ```text
//!               every device ended, or notAfter
//!  RUNNING --------------------------------------> DONE
//!   |  ^  '--- too many failed ---> HALTED           ^
//!   |  |                              |  notAfter    |
//!   v  '------------- resume ---------+--------------+
//!  PAUSED                                            |
//!   '--------------------- notAfter -----------------'
//!  RUNNING, PAUSED, HALTED ---- cancel ----> CANCELLED
//! ```
//!
//! Its devices are fixed when it is created, each with a place. They begin in the order of their
//! places. What became of them is counted by state, in the batches of the devices themselves; what
//! a campaign does next follows from these counts alone.

use crate::firmware::update::{DeliveryMethod, FirmwareUpdate, UpdateState};
use crate::ids::{CampaignId, CustomerId, DeviceId, ImageId};
use crate::moment::Timestamp;

/// A campaign, without its devices.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Campaign {
    /// Its id; ids sort by creation time.
    pub id: CampaignId,
    /// The customer that owns it.
    pub customer: CustomerId,
    /// Its state.
    pub state: CampaignState,
    /// When it was created.
    pub created_at: Timestamp,
    /// Where the image is.
    pub source: ImageSource,
    /// Makes the keys in the paths at which its devices download the image.
    pub secret: [u8; 16],
    /// How devices get the image.
    pub method: DeliveryMethod,
    /// How many devices it has.
    pub devices: u32,
    /// Its rules.
    pub rules: CampaignRules,
    /// How many failures a caller accepted by resuming a halted campaign.
    pub failures_accepted: u32,
    /// It has ended, and devices are still to be told.
    pub is_stopping: bool,
}

/// How a campaign proceeds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CampaignRules {
    /// The most devices under way at a time.
    pub concurrency: u32,
    /// The most devices that begin within a minute.
    pub rate_per_minute: Option<u32>,
    /// How often a device may try again.
    pub retries: u8,
    /// The percentage of devices that have to end before the others begin.
    pub canary_percent: Option<u8>,
    /// The percentage of failed devices at which it halts.
    pub halt_at_failed_percent: Option<u8>,
    /// No device begins before.
    pub not_before: Option<Timestamp>,
    /// When it ends, whatever became of its devices.
    pub not_after: Timestamp,
}

/// Where the image of a campaign is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ImageSource {
    /// The service has it.
    Stored {
        /// The image.
        image: ImageId,
        /// Its length.
        bytes: u64,
    },
    /// Devices are given this URI of another server.
    Elsewhere(Box<str>),
}

/// The state of a campaign.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CampaignState {
    /// Devices begin.
    Running,
    /// A caller paused it: no device begins.
    Paused,
    /// Too many devices failed: no device begins.
    Halted,
    /// Every device ended, or its time is over.
    Done,
    /// A caller cancelled it.
    Cancelled,
}

/// A device of a campaign.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CampaignDevice {
    /// The device.
    pub device: DeviceId,
    /// Its state.
    pub state: UpdateState,
    /// How much of the image the device has, as far as that is known.
    pub bytes: u64,
    /// Why it is in this state.
    pub reason: Option<Box<str>>,
    /// Since when.
    pub updated_at: Timestamp,
}

/// A device that is to begin.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewUpdate {
    /// Its update.
    pub update: FirmwareUpdate,
    /// Its row in the campaign, which must still be this.
    pub row: CampaignDevice,
}

/// How many devices of a campaign are in each state.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CampaignCounts([u32; UpdateState::ALL.len()]);

/// What a campaign does next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CampaignStep {
    /// At most so many devices begin.
    Begin(u32),
    /// Nothing, for now.
    Wait,
    /// It becomes this.
    Become(CampaignState),
    /// Devices under way are told that it ended.
    Stop,
    /// Nothing is left to be done.
    Close,
}

/// What a caller does with a campaign.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CampaignCommand {
    /// No further device begins.
    Pause,
    /// Devices begin again.
    Resume,
    /// End it.
    Cancel,
}

impl Campaign {
    /// What it does next.
    pub fn next(&self, counts: &CampaignCounts, now: Timestamp) -> CampaignStep {
        let active = counts.active();
        match self.state {
            CampaignState::Done | CampaignState::Cancelled if active == 0 => CampaignStep::Close,
            CampaignState::Done | CampaignState::Cancelled => CampaignStep::Stop,
            _ if now >= self.rules.not_after || counts.ended() >= self.devices => {
                CampaignStep::Become(CampaignState::Done)
            }
            CampaignState::Paused | CampaignState::Halted => CampaignStep::Wait,
            CampaignState::Running if self.has_failed(counts) => {
                CampaignStep::Become(CampaignState::Halted)
            }
            CampaignState::Running if self.rules.not_before.is_some_and(|it| now < it) => {
                CampaignStep::Wait
            }
            CampaignState::Running => match self.room(counts) {
                0 => CampaignStep::Wait,
                room => CampaignStep::Begin(room),
            },
        }
    }

    /// The campaign in another state.
    pub fn after(&self, state: CampaignState, counts: &CampaignCounts) -> Self {
        let is_resumed = self.state == CampaignState::Halted && state == CampaignState::Running;
        Self {
            state,
            failures_accepted: match is_resumed {
                true => counts.of(UpdateState::Failed),
                false => self.failures_accepted,
            },
            is_stopping: state.is_final() && counts.active() > 0,
            ..self.clone()
        }
    }

    /// The state after a command; none if the command does not fit the present one.
    pub fn commanded(&self, command: CampaignCommand) -> Option<CampaignState> {
        match (command, self.state) {
            (CampaignCommand::Pause, CampaignState::Running) => Some(CampaignState::Paused),
            (CampaignCommand::Resume, CampaignState::Paused | CampaignState::Halted) => {
                Some(CampaignState::Running)
            }
            (
                CampaignCommand::Cancel,
                CampaignState::Running | CampaignState::Paused | CampaignState::Halted,
            ) => Some(CampaignState::Cancelled),
            _ => None,
        }
    }

    /// Whether the runner has something left to do with it.
    pub fn is_open(&self) -> bool {
        !self.state.is_final() || self.is_stopping
    }

    /// How many failures halt it, as long as no more than the canary has begun, and after.
    fn failures_max(&self, counts: &CampaignCounts) -> Option<u32> {
        let percent = self.rules.halt_at_failed_percent?;
        let begun = self.devices.saturating_sub(counts.of(UpdateState::Pending));
        let of = self.canary().filter(|canary| begun <= *canary);
        Some(share(of.unwrap_or(self.devices), percent))
    }

    fn has_failed(&self, counts: &CampaignCounts) -> bool {
        let failed = counts.of(UpdateState::Failed);
        let failed = failed.saturating_sub(self.failures_accepted);
        self.failures_max(counts).is_some_and(|max| failed >= max)
    }

    /// How many devices begin first.
    fn canary(&self) -> Option<u32> {
        let percent = self.rules.canary_percent?;
        Some(share(self.devices, percent))
    }

    /// How many devices may begin now.
    fn room(&self, counts: &CampaignCounts) -> u32 {
        let pending = counts.of(UpdateState::Pending);
        let begun = self.devices.saturating_sub(pending);
        let free = self.rules.concurrency.saturating_sub(counts.active());
        let of_canary = match self.canary() {
            Some(canary) if begun < canary => canary - begun,
            // The canary is under way.
            Some(canary) if begun == canary && counts.active() > 0 => 0,
            Some(_) | None => pending,
        };
        free.min(of_canary).min(pending)
    }
}

/// The share of a number, rounded up: at least one.
fn share(of: u32, percent: u8) -> u32 {
    let share = (u64::from(of) * u64::from(percent)).div_ceil(100).max(1);
    u32::try_from(share).unwrap_or(u32::MAX)
}

impl CampaignState {
    /// Whether it never changes again.
    pub fn is_final(self) -> bool {
        match self {
            Self::Running | Self::Paused | Self::Halted => false,
            Self::Done | Self::Cancelled => true,
        }
    }
}

impl CampaignDevice {
    /// A device that has not begun.
    pub fn new(device: DeviceId, now: Timestamp) -> Self {
        Self {
            device,
            state: UpdateState::Pending,
            bytes: 0,
            reason: None,
            updated_at: now,
        }
    }

    /// The device with what is known of its transfer, as long as that lasts.
    pub fn with_transferred(mut self, bytes: Option<u64>) -> Self {
        if self.state == UpdateState::Transferring {
            self.bytes = bytes.unwrap_or(self.bytes);
        }
        self
    }

    /// As a caller is shown it: once its campaign has ended, a device that did not begin never
    /// will.
    pub fn shown(mut self, campaign: CampaignState) -> Self {
        if self.state == UpdateState::Pending && campaign.is_final() {
            self.state = UpdateState::Skipped;
            self.reason = Some("the campaign ended before the device began".into());
        }
        self
    }
}

impl CampaignCounts {
    /// The counts, in the order of the states.
    pub fn restored(counts: [u32; UpdateState::ALL.len()]) -> Self {
        Self(counts)
    }

    /// The devices in a state.
    pub fn of(&self, state: UpdateState) -> u32 {
        self.0[state as usize]
    }

    /// The devices under way.
    pub fn active(&self) -> u32 {
        let states = UpdateState::ALL.into_iter().filter(|it| it.is_active());
        states.map(|state| self.of(state)).sum()
    }

    /// The devices in a final state.
    pub fn ended(&self) -> u32 {
        let states = UpdateState::ALL.into_iter().filter(|it| it.is_final());
        states.map(|state| self.of(state)).sum()
    }

    /// As a caller is shown them.
    pub fn shown(mut self, campaign: CampaignState) -> Self {
        if campaign.is_final() {
            let pending = std::mem::take(&mut self.0[UpdateState::Pending as usize]);
            self.0[UpdateState::Skipped as usize] += pending;
        }
        self
    }
}
