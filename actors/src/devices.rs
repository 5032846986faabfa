//! How does the rest of the service reach a device? By key, without knowing its arbiter.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use actix::Addr;
use engine::action::{NewAction, WakeUp};
use engine::arbiter::input::{DeviceCommand, DeviceReply, PendingCommand};
use engine::associations::AssociationSnapshot;
use engine::associations::server_key::ServerKey;
use engine::device::queue::{Accepted, CancelRefusal, Cancelled};
use engine::device::refusal::SubmitRefusal;
use engine::device::snapshot::Snapshot;
use engine::device::update::UpdateEnd;
use engine::directory::sms::waking::{WakeUpFacts, WakingAction};
use engine::dispatch::shard_map::ShardMap;
use engine::firmware::campaign::NewUpdate;
use engine::ids::{ActionId, CampaignId, CustomerId, DeviceKey};
use engine::peer::Peer;
use engine::rules::Rules;
use engine::strangers::{Stranger, merged};
use engine::supervision::Unserved;
use metrics::Gauge;
use store::{Commit, DeviceReads, Pressure, ReadAnswer, Unavailable};
use tokio::sync::{Mutex, oneshot};
use tracing::{Span, debug, error};

use crate::meters::pending::{PendingQuestion, questions_for};
use crate::policy::{PolicyChanged, policy_of};
use crate::registry::context::ArbiterParts;
use crate::registry::{
    AskDevice, DescribeAssociation, EndCertified, EndSession, ListStrangers, Registry,
    RelayedDatagrams, ShowServerKey,
};
use crate::reply::ReplyTo;
use crate::sms::ids::SmsIds;

/// How often a busy device is sent its changed profile: the change is durable and has to reach the
/// device, so a mailbox must be full for some seconds before the caller is asked to repeat the
/// call.
const NOTIFY_TRIES: u32 = 50;

/// The pause after a full mailbox.
const NOTIFY_PAUSE: Duration = Duration::from_millis(100);

/// The handle to all devices.
#[derive(Clone)]
pub struct Devices {
    shard_map: ShardMap,
    /// One registry per arbiter.
    registries: Arc<[Addr<Registry>]>,
    /// How many commands wait for each.
    waiting: Arc<[Gauge]>,
    commits: Arc<dyn Commit>,
    store: Arc<dyn DeviceReads>,
    rules: Arc<Rules>,
    /// Held while a policy is sent, so that the newest one is sent last.
    sending_policy: Arc<Mutex<()>>,
    /// The ids of SMS that wake devices.
    sms_ids: Arc<SmsIds>,
}

impl Devices {
    /// The handle to the devices of these registries.
    pub fn new(
        shard_map: ShardMap,
        registries: Arc<[Addr<Registry>]>,
        parts: &ArbiterParts,
    ) -> Self {
        let waiting = shard_map.arbiters().map(questions_for).collect();
        Self {
            shard_map,
            registries,
            waiting,
            commits: Arc::clone(&parts.commits),
            store: Arc::clone(&parts.store),
            rules: Arc::clone(parts.policies.rules()),
            sending_policy: Arc::default(),
            sms_ids: Arc::new(SmsIds::by(parts.clock.clone())),
        }
    }

    /// Creates an action request for a device; when this answers Ok it is durable. The command is
    /// sent now, and not when the answer is awaited, unless the request may wake the device.
    pub fn submit(
        &self,
        device: DeviceKey,
        action: NewAction,
    ) -> impl Future<Output = Result<Result<Accepted, SubmitRefusal>, Unserved>> + use<> {
        let submitted = match self.commits.pressure() {
            Pressure::Full | Pressure::DiskFull | Pressure::Unreachable | Pressure::Failed => {
                Err(Unserved::Busy)
            }
            Pressure::Open => self.begin_submission(device, action),
        };
        async move {
            let sent = match submitted? {
                Submission::Sent(answer) => answer,
                Submission::Waking(waking) => waking.send().await?,
            };
            let answer = sent.await.unwrap_or(Err(Unserved::Failed))?;
            let DeviceReply::Submitted(submitted) = answer else {
                return Err(unexpected(&answer));
            };
            Ok(submitted)
        }
    }

    fn begin_submission(
        &self,
        device: DeviceKey,
        action: NewAction,
    ) -> Result<Submission, Unserved> {
        match action.wake_up {
            None => {
                let sent = self.put(device, DeviceCommand::Submit(action))?;
                Ok(Submission::Sent(sent))
            }
            Some(WakeUp::Sms) => Ok(Submission::Waking(Box::new(WakingSubmission {
                devices: self.clone(),
                device,
                facts: self.store.wake_up_facts(device, self.rules.limits.sms),
                action,
            }))),
        }
    }

    /// Has an arbiter receive datagrams that another node relays over one of its streams. Whatever
    /// it has no room for is lost, as it may be in the network.
    pub(crate) fn receive_relayed(&self, stream: u16, datagrams: Vec<(Peer, Vec<u8>)>) {
        let arbiter = usize::from(stream) % self.registries.len();
        if let Some(registry) = self.registries.get(arbiter)
            && registry.try_send(RelayedDatagrams(datagrams)).is_err()
        {
            debug!(stream, "an arbiter has no room for relayed datagrams");
        }
    }

    /// Cancels a request that was not sent.
    pub async fn cancel(
        &self,
        device: DeviceKey,
        action: ActionId,
    ) -> Result<Result<Cancelled, CancelRefusal>, Unserved> {
        let answer = self.ask(device, DeviceCommand::Cancel(action)).await?;
        let DeviceReply::Cancelled(cancelled) = answer else {
            return Err(unexpected(&answer));
        };
        Ok(cancelled)
    }

    /// Cancels every request of a device that was not sent.
    pub async fn cancel_all(&self, device: DeviceKey) -> Result<Vec<Cancelled>, Unserved> {
        let answer = self.ask(device, DeviceCommand::CancelAll).await?;
        let DeviceReply::CancelledAll(cancelled) = answer else {
            return Err(unexpected(&answer));
        };
        Ok(cancelled)
    }

    /// Begins the firmware update of a campaign; when this answers Ok it is durable. The command is
    /// sent now, and not when the answer is awaited.
    pub fn begin_update(
        &self,
        device: DeviceKey,
        new: Box<NewUpdate>,
    ) -> impl Future<Output = Result<(), Unserved>> + use<> {
        let sent = match self.commits.pressure() {
            Pressure::Full | Pressure::DiskFull | Pressure::Unreachable | Pressure::Failed => {
                Err(Unserved::Busy)
            }
            Pressure::Open => self.put(device, DeviceCommand::BeginUpdate(new)),
        };
        taken(sent)
    }

    /// Ends the firmware update of a campaign that ended; when this answers Ok it is durable. The
    /// command is sent now, and not when the answer is awaited.
    pub fn end_update(
        &self,
        device: DeviceKey,
        (campaign, end): (CampaignId, UpdateEnd),
    ) -> impl Future<Output = Result<(), Unserved>> + use<> {
        taken(self.put(device, DeviceCommand::EndUpdate(campaign, end)))
    }

    /// Removes a device with everything that belongs to it.
    pub async fn retire(&self, device: DeviceKey) -> Result<(), Unserved> {
        self.ask(device, DeviceCommand::Retire).await.map(|_| ())
    }

    /// What a device is doing right now.
    pub async fn inspect(&self, device: DeviceKey) -> Result<Snapshot, Unserved> {
        let answer = self.ask(device, DeviceCommand::Inspect).await?;
        let DeviceReply::Inspected(snapshot) = answer else {
            return Err(unexpected(&answer));
        };
        Ok(*snapshot)
    }

    /// The DTLS session of a device: of several arbiters, the one that began last.
    pub async fn association(
        &self,
        device: DeviceKey,
    ) -> Result<Option<AssociationSnapshot>, Unserved> {
        let mut latest: Option<AssociationSnapshot> = None;
        for registry in &*self.registries {
            let found = registry.send(DescribeAssociation(device)).await;
            let found = found.map_err(|_| Unserved::Failed)?;
            latest = [latest, found]
                .into_iter()
                .flatten()
                .max_by_key(|it| it.established_at);
        }
        Ok(latest)
    }

    /// Ends the DTLS sessions of a device whose keys are no longer valid.
    pub async fn end_sessions(&self, device: DeviceKey) -> Result<(), Unserved> {
        for registry in &*self.registries {
            let ended = registry.send(EndSession(device)).await;
            ended.map_err(|_| Unserved::Failed)?;
        }
        Ok(())
    }

    /// Ends the DTLS sessions of a customer's devices that began with a certificate, once a change
    /// of its authorities is durable.
    pub async fn end_certified(&self, customer: &CustomerId) -> Result<(), Unserved> {
        for registry in &*self.registries {
            let ended = registry.send(EndCertified(customer.clone())).await;
            ended.map_err(|_| Unserved::Failed)?;
        }
        Ok(())
    }

    /// Shows another key of the service from the next DTLS handshake on.
    pub fn show_server_key(&self, key: &ServerKey) {
        for registry in &*self.registries {
            if registry.try_send(ShowServerKey(key.clone())).is_err() {
                error!("a registry is busy; it shows the former key of the service");
            }
        }
    }

    /// Has a device adopt its changed profile, once that is durable.
    ///
    /// If its actor ends meanwhile, the device is restored with the new profile.
    pub async fn take_identity(&self, device: DeviceKey) -> Result<(), Unserved> {
        let mut tries_left = NOTIFY_TRIES;
        loop {
            match self.ask(device, DeviceCommand::ReadProfile).await {
                Ok(_) | Err(Unserved::Failed) => return Ok(()),
                Err(Unserved::Busy) if tries_left > 0 => {
                    tries_left -= 1;
                    tokio::time::sleep(NOTIFY_PAUSE).await;
                }
                Err(unserved) => return Err(unserved),
            }
        }
    }

    /// Has the devices of a customer adopt its changed settings, once those are durable.
    pub async fn take_policy(&self, customer: CustomerId) -> Result<(), Unserved> {
        let _turn = self.sending_policy.lock().await;
        let chosen = self.store.customer_settings(customer.clone()).await;
        let chosen = chosen.map_err(|Unavailable| Unserved::Failed)?;
        let policy = policy_of(&self.rules, &chosen);
        for registry in &*self.registries {
            let (customer, policy) = (customer.clone(), Arc::clone(&policy));
            let sent = registry.send(PolicyChanged { customer, policy }).await;
            sent.map_err(|_| Unserved::Failed)?;
        }
        Ok(())
    }

    /// The senders that are no known device, the latest first.
    pub async fn strangers(&self) -> Result<Vec<Stranger>, Unserved> {
        let mut lists = Vec::new();
        for registry in &*self.registries {
            let list = registry.send(ListStrangers).await;
            lists.push(list.map_err(|_| Unserved::Failed)?);
        }
        Ok(merged(lists))
    }

    async fn ask(&self, key: DeviceKey, question: DeviceCommand) -> Result<DeviceReply, Unserved> {
        let answer = self.put(key, question)?;
        answer.await.unwrap_or(Err(Unserved::Failed))
    }

    fn put(&self, key: DeviceKey, question: DeviceCommand) -> Result<PendingReply, Unserved> {
        let (sender, answer) = oneshot::channel();
        let span = Span::current();
        let reply = ReplyTo { sender, span };
        let ask = AskDevice {
            key,
            pending: Box::new(PendingCommand {
                command: question,
                reply,
            }),
            waiting: PendingQuestion::new(self.waiting_at(key)),
        };
        let sent = self.registry_of(key).try_send(ask);
        sent.map_err(|_| Unserved::Busy)?;
        Ok(answer)
    }

    fn waiting_at(&self, key: DeviceKey) -> &Gauge {
        self.waiting
            .get(self.shard_map.arbiter_of(key.shard()).index())
            .expect("every arbiter has a registry")
    }

    fn registry_of(&self, key: DeviceKey) -> &Addr<Registry> {
        self.registries
            .get(self.shard_map.arbiter_of(key.shard()).index())
            .expect("every arbiter has a registry")
    }
}

/// The reply to a command that was sent.
type PendingReply = oneshot::Receiver<Result<DeviceReply, Unserved>>;

/// A request on its way to its device.
enum Submission {
    /// It was sent.
    Sent(PendingReply),
    /// It is sent when what is stored for waking the device was read.
    Waking(Box<WakingSubmission>),
}

/// A request that may wake its device.
struct WakingSubmission {
    devices: Devices,
    device: DeviceKey,
    facts: ReadAnswer<Option<WakeUpFacts>>,
    action: NewAction,
}

impl WakingSubmission {
    async fn send(self) -> Result<PendingReply, Unserved> {
        let facts = self.facts.await.map_err(|Unavailable| Unserved::Failed)?;
        let facts = facts.ok_or(Unserved::Unknown)?;
        let waking = Box::new(WakingAction {
            new: self.action,
            facts,
            sms: self.devices.sms_ids.next(),
        });
        self.devices
            .put(self.device, DeviceCommand::SubmitWaking(waking))
    }
}

/// Waits until a device has taken a command for its update.
async fn taken(sent: Result<PendingReply, Unserved>) -> Result<(), Unserved> {
    let answer = sent?.await.unwrap_or(Err(Unserved::Failed))?;
    let DeviceReply::UpdateTaken = answer else {
        return Err(unexpected(&answer));
    };
    Ok(())
}

/// The error of an answer of the wrong kind.
fn unexpected(answer: &DeviceReply) -> Unserved {
    error!(?answer, "a device actor sent an unexpected answer");
    Unserved::Failed
}
