//! Laws about firmware campaigns: which devices begin, what is counted, what is installed.

use std::collections::{BTreeMap, HashSet};

use engine::firmware::campaign::{Campaign, CampaignState};
use engine::firmware::update::{UpdateState, UpdateStep};
use engine::ids::CampaignId;
use harness::device::event::Operation;
use harness::device::operation_log::PerformedOperation;
use harness::device::resource::{FIRMWARE_PACKAGE, FIRMWARE_UPDATE, FIRMWARE_URI};
use protocol::coap::code::Code;
use protocol::coap::message::Message;

use super::{Verdict, hold};
use crate::disk::{Durable, RowMove};
use crate::wire::AttemptKey;

const LIMITS: &str =
    "a_campaign_ends_and_its_failure_limit_is_not_overshot_by_more_than_the_concurrency";

const ONCE: &str = "an_image_is_not_installed_again_after_a_restart";

/// How a device got the image that it has.
#[derive(Debug)]
pub(crate) enum GivenImage<'d> {
    Uri(&'d str),
    Bytes(&'d [u8]),
}

/// What is known of campaigns.
#[derive(Default)]
pub(crate) struct CampaignRecords {
    begun: HashSet<(CampaignId, u32)>,
    /// The devices in each state, counted from the moves.
    recount: BTreeMap<CampaignId, [u32; UpdateState::ALL.len()]>,
    /// The requests by which each device was given a URI or the last block of an image.
    offers: HashSet<(usize, AttemptKey)>,
    /// The devices whose last URI or block came in a message that the network had repeated.
    repeated: HashSet<usize>,
    /// The requests by which each device installed an image.
    requests: HashSet<(usize, AttemptKey)>,
    /// How often each device installed the image of each campaign, as it was requested: a message
    /// that the network repeats after a loss of power is not another request.
    installed: BTreeMap<(usize, CampaignId), u32>,
}

impl CampaignRecords {
    /// A batch changed the states of devices in campaigns.
    pub(crate) fn moved(&mut self, at_ms: i64, moves: &[RowMove], durable: &Durable) -> Verdict {
        for moved in moves {
            self.count(moved);
            let Some(campaign) = durable.campaign(moved.campaign) else {
                hold(ONCE, moved.from.is_none(), || {
                    format!("{moved:?} of a campaign that does not exist")
                })?;
                continue;
            };
            a_final_state_stays(moved)?;
            if moved.from == Some(UpdateState::Pending) && moved.to.is_active() {
                let is_first = self.begun.insert((moved.campaign, moved.place));
                hold(LIMITS, is_first, || format!("{moved:?} begins again"))?;
                a_device_begins_while_its_campaign_runs(at_ms, campaign, moved)?;
            }
        }
        for moved in moves {
            let recount = self.recount[&moved.campaign];
            if let Some(campaign) = durable.campaign(moved.campaign) {
                a_campaign_keeps_its_limits(campaign, &recount)?;
                counts_equal_a_recount(campaign, &recount, durable)?;
            }
        }
        Ok(())
    }

    fn count(&mut self, moved: &RowMove) {
        let recount = self.recount.entry(moved.campaign).or_default();
        if let Some(from) = moved.from {
            recount[from as usize] -= 1;
        }
        recount[moved.to as usize] += 1;
    }

    /// A campaign is about to be saved.
    pub(crate) fn will_write(campaign: &Campaign, durable: &Durable) -> Verdict {
        let before = durable.campaign(campaign.id).map(|before| before.state);
        let is_over = before.filter(|before| before.is_final());
        hold(
            LIMITS,
            is_over.is_none_or(|it| it == campaign.state),
            || {
                format!(
                    "campaign {} was {before:?} and becomes {:?}",
                    campaign.id, campaign.state
                )
            },
        )
    }

    /// A caller is told what became of a campaign.
    pub(crate) fn answered(&self, campaign: &Campaign, durable: &Durable) -> Verdict {
        hold(
            "an_answer_waits_until_what_it_shows_is_durable",
            durable.campaign(campaign.id) == Some(campaign),
            || format!("{campaign:?} is answered and not durable"),
        )
    }

    /// A device was given a URI or an image, or installs an image.
    pub(crate) fn performed(
        &mut self,
        who: usize,
        performed: &PerformedOperation,
        given: &GivenImage<'_>,
        durable: &Durable,
    ) -> Verdict {
        let attempt = AttemptKey::new(performed.message_id.0, performed.token.as_bytes());
        match (performed.path, performed.operation) {
            (FIRMWARE_URI | FIRMWARE_PACKAGE, Operation::Write) => {
                match self.offers.insert((who, attempt)) {
                    true => self.repeated.remove(&who),
                    false => self.repeated.insert(who),
                };
                Ok(())
            }
            (FIRMWARE_UPDATE, Operation::Execute)
                if !self.repeated.contains(&who) && self.requests.insert((who, attempt)) =>
            {
                self.installs(who, given, durable)
            }
            (_, _) => Ok(()),
        }
    }

    /// An image is installed once, and once more for each other try that its campaign permits.
    fn installs(&mut self, who: usize, given: &GivenImage<'_>, durable: &Durable) -> Verdict {
        let campaign = match given {
            GivenImage::Uri(uri) => durable.campaign_with(uri),
            GivenImage::Bytes(bytes) => durable.campaign_with_image(bytes),
        };
        let Some(campaign) = campaign else {
            return hold(ONCE, false, || {
                format!("device {who} installs {given:?}, which no campaign has")
            });
        };
        let times = self.installed.entry((who, campaign.id)).or_default();
        *times += 1;
        let max = 1 + u32::from(campaign.rules.retries);
        hold(ONCE, *times <= max, || {
            format!("device {who} installs {given:?} {times} times, {max} are permitted")
        })
    }
}

/// What became of a device in a campaign never changes.
fn a_final_state_stays(moved: &RowMove) -> Verdict {
    let is_over = moved.from.is_some_and(UpdateState::is_final);
    let is_back = moved.to == UpdateState::Pending && moved.from.is_some();
    hold(LIMITS, !is_over && !is_back, || {
        format!("{moved:?} after the end")
    })
}

/// A device begins only while its campaign runs, and not before its time.
fn a_device_begins_while_its_campaign_runs(
    at_ms: i64,
    campaign: &Campaign,
    moved: &RowMove,
) -> Verdict {
    let is_early = campaign
        .rules
        .not_before
        .is_some_and(|it| it.as_ms() > at_ms);
    let runs = campaign.state == CampaignState::Running && !is_early;
    hold(LIMITS, runs, || {
        format!("{moved:?} begins, and its campaign is {:?}", campaign.state)
    })
}

/// No more devices are under way than a campaign permits; the others wait for its canary; and those
/// that failed exceed the limit by less than the concurrency.
fn a_campaign_keeps_its_limits(
    campaign: &Campaign,
    counts: &[u32; UpdateState::ALL.len()],
) -> Verdict {
    let of = |is_it: fn(UpdateState) -> bool| -> u32 {
        let states = UpdateState::ALL.into_iter().filter(|state| is_it(*state));
        states.map(|state| counts[state as usize]).sum()
    };
    let rules = &campaign.rules;
    let (active, ended) = (of(UpdateState::is_active), of(UpdateState::is_final));
    hold(LIMITS, active <= rules.concurrency, || {
        format!("{active} devices are under way: {campaign:?}")
    })?;
    let begun = active + ended;
    let canary = rules.canary_percent.map(|it| share(campaign.devices, it));
    let waited = canary.is_none_or(|canary| begun <= canary || ended >= canary);
    hold(LIMITS, waited, || {
        format!("{begun} devices began before the canary ended: {campaign:?}")
    })?;
    let Some(percent) = rules.halt_at_failed_percent else {
        return Ok(());
    };
    let of_canary = canary.filter(|canary| begun <= *canary);
    let limit = share(of_canary.unwrap_or(campaign.devices), percent);
    let failed = counts[UpdateState::Failed as usize].saturating_sub(campaign.failures_accepted);
    hold(LIMITS, failed < limit + rules.concurrency, || {
        format!("{failed} devices failed, and the limit is {limit}: {campaign:?}")
    })
}

/// The counts that a campaign decides from are those of its devices.
fn counts_equal_a_recount(
    campaign: &Campaign,
    recount: &[u32; UpdateState::ALL.len()],
    durable: &Durable,
) -> Verdict {
    let counts = durable.campaign_counts(campaign.id);
    let counted = UpdateState::ALL.map(|state| counts.of(state));
    hold("counters_equal_a_recount", counted == *recount, || {
        format!(
            "campaign {} counts {counted:?}, and has {recount:?}",
            campaign.id
        )
    })
}

/// A request of an update leaves when the step that it follows from is durable.
pub(super) fn an_update_is_saved_before_its_request(
    who: usize,
    datagram: &[u8],
    durable: &Durable,
) -> Verdict {
    let message = Message::decode(datagram).expect("the service speaks well");
    let step = durable.record(who).update.as_ref().map(|it| it.step);
    let is_right = match (message.code, step) {
        (_, None) => false,
        (Code::PUT, Some(step)) => matches!(
            step,
            UpdateStep::Offers | UpdateStep::Pushes | UpdateStep::Downloads
        ),
        (Code::POST, Some(step)) => step == UpdateStep::Applies,
        (_, Some(_)) => true,
    };
    hold("nothing_is_sent_before_it_is_saved", is_right, || {
        format!("device {who} is sent {} at {step:?}", message.code)
    })
}

/// A healed world has no campaign that has not ended, and none of its devices is under way.
pub(crate) fn a_campaign_ends(durable: &Durable) -> Verdict {
    let open = durable.open_campaigns().next();
    hold(LIMITS, open.is_none(), || format!("{open:?} has not ended"))?;
    for campaign in durable.campaigns() {
        let active = durable.campaign_states(campaign.id);
        let active = active.filter(|state| state.is_active()).count();
        hold(LIMITS, active == 0, || {
            format!("{active} devices are under way: {campaign:?}")
        })?;
    }
    let mut devices = 0..durable.devices();
    let updated = devices.find(|who| durable.record(*who).update.is_some());
    hold(LIMITS, updated.is_none(), || {
        format!("device {updated:?} is updated by no campaign")
    })
}

/// The share of a number, rounded up: at least one.
fn share(of: u32, percent: u8) -> u32 {
    (of * u32::from(percent)).div_ceil(100).max(1)
}
