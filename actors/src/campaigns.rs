//! How does the rest of the service reach running firmware campaigns? By their ids.

mod messages;
mod runner;
mod supervisor;

use std::sync::Arc;

use actix::{Actor as _, Addr};
use engine::firmware::campaign::{Campaign, CampaignCommand};
use engine::firmware::runner::CampaignRefusal;
use engine::idempotency::IdempotencyRecord;
use engine::ids::{CampaignId, CustomerId};
use engine::supervision::Unserved;
use store::{Commit, Reads};
use tokio::sync::oneshot;
use tracing::warn;

use crate::clock::Clock;
use crate::devices::Devices;

use messages::{CampaignMessage, CampaignReply};
use supervisor::CampaignSupervisor;

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

/// The handle to all running campaigns.
#[derive(Clone)]
pub struct Campaigns {
    supervisor: Addr<CampaignSupervisor>,
}

impl Campaigns {
    /// Starts the supervisor, which continues these campaigns.
    pub fn start(parts: CampaignParts, open: Vec<Campaign>) -> Self {
        Self {
            supervisor: CampaignSupervisor::new(parts, open).start(),
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
        self.ask(|reply| CampaignMessage::Create {
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
        self.ask(|reply| CampaignMessage::Command { id, command, reply })
            .await
    }

    /// Stops the campaigns of a customer that is being removed.
    pub async fn forget(&self, customer: CustomerId) {
        let forgotten = self.ask(|reply| CampaignMessage::Forget { customer, reply });
        if let Err(error) = forgotten.await {
            warn!(%error, "campaigns of a removed customer stop when they are saved");
        }
    }

    /// Begins nothing new from then on; the next start continues every running campaign.
    pub async fn quiesce(&self) -> Result<(), CampaignRefusal> {
        self.ask(|reply| CampaignMessage::Quiesce { reply }).await
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(CampaignReply<T>) -> CampaignMessage,
    ) -> Result<T, CampaignRefusal> {
        let (reply, answer) = oneshot::channel();
        let sent = self.supervisor.try_send(command(reply));
        sent.map_err(|_| CampaignRefusal::Unserved(Unserved::Busy))?;
        let failed = Err(CampaignRefusal::Unserved(Unserved::Failed));
        answer.await.unwrap_or(failed)
    }
}
