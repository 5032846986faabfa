//! The shell of the runner of campaigns: performs what [`CampaignRunner`] decides.

use std::rc::Rc;

use actix::{Actor, ActorFutureExt as _, AsyncContext as _, Context, Handler, WrapFuture as _};
use engine::change::Batch;
use engine::firmware::campaign::Campaign;
use engine::firmware::runner::{CampaignEffect, CampaignRunner, CampaignUnreadable};
use engine::ids::CampaignId;
use engine::moment::Timestamp;
use engine::supervision::Unserved;
use store::Unavailable;
use tracing::warn;

use super::CampaignParts;
use super::messages::{CampaignMessage, CampaignReply};
use crate::deadline_timer::{DeadlineTimer, SLEEP_MS_MAX};
use crate::reply::{answer, refusal};
use crate::runner::{PanicReport, Runner};

type Machine = CampaignRunner<CampaignReply<Campaign>>;

type Effect = CampaignEffect<CampaignReply<Campaign>>;

/// The runner of all campaigns.
pub(super) struct CampaignActor {
    parts: Rc<CampaignParts>,
    machine: Machine,
    /// What it continues.
    first: Vec<Campaign>,
    timer: DeadlineTimer,
    _report: PanicReport,
}

impl Runner for CampaignActor {
    const WHAT: &'static str = "campaigns";

    type Command = CampaignMessage;
    type Parts = CampaignParts;
    type Stored = Vec<Campaign>;

    fn new(parts: Rc<CampaignParts>, stored: Vec<Campaign>, report: PanicReport) -> Self {
        Self {
            machine: CampaignRunner::default(),
            parts,
            first: stored,
            timer: DeadlineTimer::default(),
            _report: report,
        }
    }

    async fn read(parts: Rc<CampaignParts>) -> Result<Vec<Campaign>, Unavailable> {
        parts.store.open_campaigns().await
    }
}

impl CampaignActor {
    /// Gives the machine an input, and performs its effects.
    fn take(
        &mut self,
        ctx: &mut Context<Self>,
        input: impl FnOnce(&mut Machine, Timestamp, &mut Vec<Effect>),
    ) {
        let mut out = Vec::new();
        input(&mut self.machine, self.parts.clock.now(), &mut out);
        for effect in out {
            self.perform(effect, ctx);
        }
        self.arm(ctx);
    }

    fn perform(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        match effect {
            CampaignEffect::Look { campaign, wanted } => {
                let look = self.parts.store.campaign_look(campaign, wanted);
                ctx.spawn(look.into_actor(self).map(move |look, runner, ctx| {
                    let look = look.map_err(|Unavailable| CampaignUnreadable);
                    runner.take(ctx, |machine, now, out| {
                        machine.handle_look(now, campaign, look, out);
                    });
                }));
            }
            CampaignEffect::Begin { device, new } => {
                let at = (new.update.campaign, new.update.place);
                let begun = self.parts.devices.begin_update(device, new);
                self.answered(at, begun, ctx);
            }
            CampaignEffect::Stop {
                campaign,
                place,
                device,
                end,
            } => {
                let ended = self.parts.devices.end_update(device, (campaign, end));
                self.answered((campaign, place), ended, ctx);
            }
            CampaignEffect::Commit(campaign, batch) => self.commit(campaign, batch, ctx),
            CampaignEffect::Answer(reply, answered) => answer(reply, answered),
        }
    }

    /// Hands the answer of a device to the machine.
    fn answered(
        &self,
        at: (CampaignId, u32),
        told: impl Future<Output = Result<(), Unserved>> + 'static,
        ctx: &mut Context<Self>,
    ) {
        ctx.spawn(told.into_actor(self).map(move |answer, runner, ctx| {
            runner.take(ctx, |machine, now, out| {
                machine.handle_answer(now, at, answer, out);
            });
        }));
    }

    fn commit(&self, campaign: CampaignId, batch: Batch, ctx: &mut Context<Self>) {
        let receipt = self.parts.commits.commit(batch).into_actor(self);
        ctx.spawn(receipt.map(move |receipt, runner, ctx| {
            if let Err(error) = &receipt {
                warn!(%campaign, %error, "a step of a campaign was not saved");
            }
            let receipt = receipt.map_err(refusal);
            runner.take(ctx, |machine, now, out| {
                machine.handle_receipt(now, campaign, receipt, out);
            });
        }));
    }

    /// Arms the timer for the machine's deadline.
    fn arm(&mut self, ctx: &mut Context<Self>) {
        let Some(at) = self.machine.next_timeout() else {
            return;
        };
        let at = at.min(self.parts.clock.now().plus_ms(SLEEP_MS_MAX));
        let (clock, timer) = (&self.parts.clock, &mut self.timer);
        timer.arm(ctx, clock, at, |runner, ctx| {
            runner.timer.note_fired();
            runner.take(ctx, |machine, now, out| machine.handle_timeout(now, out));
        });
    }
}

impl Actor for CampaignActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        let first = std::mem::take(&mut self.first);
        self.take(ctx, |machine, _, _| machine.restore(first));
    }
}

impl Handler<CampaignMessage> for CampaignActor {
    type Result = ();

    fn handle(&mut self, message: CampaignMessage, ctx: &mut Context<Self>) {
        match message {
            CampaignMessage::Create {
                campaign,
                record,
                reply,
            } => self.take(ctx, |machine, _, out| {
                machine.create(*campaign, record, reply, out);
            }),
            CampaignMessage::Command { id, command, reply } => {
                self.take(ctx, |machine, _, out| {
                    machine.command(id, command, reply, out);
                });
            }
            CampaignMessage::Forget { customer, reply } => {
                self.machine.forget(&customer);
                answer(reply, Ok(()));
            }
            CampaignMessage::Quiesce { reply } => {
                self.machine.quiesce();
                answer(reply, Ok(()));
            }
        }
    }
}
