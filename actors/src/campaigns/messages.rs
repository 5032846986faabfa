//! The messages between the handle of campaigns and their runner.

use actix::Message;
use engine::firmware::campaign::{Campaign, CampaignCommand};
use engine::firmware::runner::CampaignRefusal;
use engine::idempotency::IdempotencyRecord;
use engine::ids::{CampaignId, CustomerId};
use tokio::sync::oneshot;

/// Where the answer to a command goes.
pub(super) type CampaignReply<T> = oneshot::Sender<Result<T, CampaignRefusal>>;

/// A command for campaigns, which the supervisor hands to the runner.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) enum CampaignMessage {
    /// Create a campaign.
    Create {
        campaign: Box<Campaign>,
        record: Option<IdempotencyRecord>,
        reply: CampaignReply<Campaign>,
    },
    /// Do this with a campaign.
    Command {
        id: CampaignId,
        command: CampaignCommand,
        reply: CampaignReply<Campaign>,
    },
    /// Stop the campaigns of a customer that is being removed.
    Forget {
        customer: CustomerId,
        reply: CampaignReply<()>,
    },
    /// Begin nothing new, because the service stops.
    Quiesce { reply: CampaignReply<()> },
}
