//! The runner of firmware campaigns in the simulation.

use std::collections::BTreeMap;

use engine::firmware::runner::CampaignRunner;
use engine::ids::CampaignId;
use engine::moment::Timestamp;

/// The runner of all campaigns, which answers callers by the number of their call.
#[derive(Default)]
pub(crate) struct Campaigns {
    /// None until the disk was read.
    pub(crate) machine: Option<CampaignRunner<u64>>,
    pub(crate) armed_at: Option<Timestamp>,
    /// Which device of which campaign each command is for.
    asked: BTreeMap<u64, (CampaignId, u32)>,
}

impl Campaigns {
    /// Records the call by which a device of a campaign is asked.
    pub(crate) fn ask(&mut self, call: u64, device: (CampaignId, u32)) {
        self.asked.insert(call, device);
    }

    /// The device of a campaign that a call was for.
    pub(crate) fn answered(&mut self, call: u64) -> Option<(CampaignId, u32)> {
        self.asked.remove(&call)
    }
}
