//! How does the rest of the service reach running firmware campaigns? By their ids.

mod messages;
mod runner;

use std::sync::Arc;

use engine::firmware::campaign::{Campaign, CampaignCommand};
use engine::firmware::runner::CampaignRefusal;
use engine::idempotency::IdempotencyRecord;
use engine::ids::{CampaignId, CustomerId};
use store::{Commit, Reads};
use tracing::warn;

use crate::clock::Clock;
use crate::devices::Devices;
use crate::runner::{RunnerHandle, RunnerParts};

use messages::CampaignMessage;
use runner::CampaignActor;

/// What campaigns need.
#[derive(Clone)]
pub struct CampaignParts {
    /// The clock.
    pub clock: Clock,
    /// Commits what becomes of campaigns.
    pub commits: Arc<dyn Commit>,
    /// Reads campaigns and their devices.
    pub store: Arc<dyn Reads>,
    /// Tells devices.
    pub devices: Devices,
}

impl RunnerParts for CampaignParts {
    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn commits(&self) -> &dyn Commit {
        &*self.commits
    }
}

/// The handle to all running campaigns.
#[derive(Clone)]
pub struct Campaigns {
    runner: RunnerHandle<CampaignActor>,
}

impl Campaigns {
    /// Starts the supervisor, which continues these campaigns.
    pub fn start(parts: CampaignParts, open: Vec<Campaign>) -> Self {
        Self {
            runner: RunnerHandle::start(parts, open),
        }
    }

    /// Creates a campaign whose devices are stored, and the idempotency record of its call with it;
    /// when this answers Ok it is durable and runs.
    pub async fn create(
        &self,
        campaign: Campaign,
        record: Option<IdempotencyRecord>,
    ) -> Result<Campaign, CampaignRefusal> {
        let campaign = Box::new(campaign);
        self.runner
            .ask(|reply| CampaignMessage::Create {
                campaign,
                record,
                reply,
            })
            .await
    }

    /// Pauses, resumes or cancels a campaign; when this answers Ok, that is durable.
    pub async fn command(
        &self,
        id: CampaignId,
        command: CampaignCommand,
    ) -> Result<Campaign, CampaignRefusal> {
        self.runner
            .ask(|reply| CampaignMessage::Command { id, command, reply })
            .await
    }

    /// Stops the campaigns of a customer that is being removed.
    pub async fn forget(&self, customer: CustomerId) {
        let forgotten = self
            .runner
            .ask(|reply| CampaignMessage::Forget { customer, reply });
        if let Err(error) = forgotten.await {
            warn!(%error, "campaigns of a removed customer stop when they are saved");
        }
    }

    /// Begins nothing new from then on; the next start continues every running campaign.
    pub async fn quiesce(&self) -> Result<(), CampaignRefusal> {
        self.runner
            .ask(|reply| CampaignMessage::Quiesce { reply })
            .await
    }
}
