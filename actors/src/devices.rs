//! How does the rest of the service reach a device? By key, without knowing its arbiter, which may
//! be at another node.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use actix::{Addr, MailboxError};
use engine::action::{NewAction, WakeUp};
use engine::arbiter::input::{DeviceCommand, DeviceReply, PendingCommand};
use engine::associations::AssociationSnapshot;
use engine::associations::server_key::ServerKey;
use engine::device::queue::{Accepted, CancelRefusal, Cancelled};
use engine::device::refusal::SubmitRefusal;
use engine::device::snapshot::Snapshot;
use engine::device::update::UpdateEnd;
use engine::directory::sms::waking::{WakeUpFacts, WakingAction};
use engine::dispatch::shard_map::ArbiterId;
use engine::firmware::campaign::NewUpdate;
use engine::ids::{ActionId, CampaignId, CustomerId, DeviceKey};
use engine::query::activity::{self, ActivityMinute};
use engine::rules::Rules;
use engine::strangers::{Stranger, merged};
use engine::supervision::Unserved;
use metrics::Gauge;
use store::{Commit, DeviceReads, Pressure, ReadAnswer, Unavailable};
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};
use tokio::time::{Instant, timeout};
use tracing::{Span, debug, error};

use crate::arbiters::places::{ArbiterPlace, ArbiterPlaces};
use crate::meters::pending::{PendingQuestion, questions_for};
use crate::policy::{PolicyChanged, policy_of};
use crate::registry::context::ArbiterParts;
use crate::registry::{
    AskDevice, DescribeAssociation, EndCertified, EndSession, ListStrangers, Registry,
    ShowServerKey,
};
use crate::relay::devices::{DeviceNotice, OtherDevices};
use crate::relay::identity::NodeIdentity;
use crate::reply::ReplyTo;
use crate::sms::ids::SmsIds;

/// How long a busy device is sent its changed profile: the change is durable and has to reach the
/// device, so a mailbox must be full for some seconds before the caller is asked to repeat the
/// call.
const NOTIFY_MAX: Duration = Duration::from_secs(5);

/// How long a command waits for a node that has its device: an arbiter moves within a second.
const MOVE_MAX: Duration = Duration::from_secs(3);

/// How often it looks again.
const LOOK: Duration = Duration::from_millis(250);

/// The pause after a full mailbox.
const NOTIFY_PAUSE: Duration = Duration::from_millis(100);

/// The handle to all devices.
#[derive(Clone)]
pub struct Devices {
    places: ArbiterPlaces,
    /// The devices of other nodes.
    others: Option<OtherDevices>,
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
    /// The handle to the devices of the arbiters at these places.
    pub(crate) fn new(places: ArbiterPlaces, parts: &ArbiterParts) -> Self {
        let waiting = places.shard_map().arbiters().map(questions_for).collect();
        Self {
            places,
            others: None,
            waiting,
            commits: Arc::clone(&parts.commits),
            store: Arc::clone(&parts.store),
            rules: Arc::clone(parts.policies.rules()),
            sending_policy: Arc::default(),
            sms_ids: Arc::new(SmsIds::by(parts.clock.clone())),
        }
    }

    /// The handle to all devices, also to those of the other nodes.
    pub fn of_all_nodes(self, identity: &NodeIdentity) -> Result<Self, reqwest::Error> {
        let others = OtherDevices::new(identity, self.places.nodes().clone())?;
        Ok(Self {
            others: Some(others),
            ..self
        })
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
    pub async fn association(&self, device: DeviceKey) -> Option<AssociationSnapshot> {
        let here = self.association_here(device).await;
        let there = match &self.others {
            Some(others) => others.associations(device).await,
            None => Vec::new(),
        };
        let all = here.into_iter().chain(there);
        all.max_by_key(|it| it.established_at)
    }

    /// The same, of the arbiters of this process.
    pub async fn association_here(&self, device: DeviceKey) -> Option<AssociationSnapshot> {
        let mut latest: Option<AssociationSnapshot> = None;
        for registry in self.registries() {
            let found = registry.send(DescribeAssociation(device)).await;
            let found = found.ok().flatten();
            latest = [latest, found]
                .into_iter()
                .flatten()
                .max_by_key(|it| it.established_at);
        }
        latest
    }

    /// Ends the DTLS sessions of a device whose keys are no longer valid.
    pub async fn end_sessions(&self, device: DeviceKey) -> Result<(), Unserved> {
        self.tell(DeviceNotice::SessionsOver(device)).await
    }

    /// Ends the DTLS sessions of a customer's devices that began with a certificate, once a change
    /// of its authorities is durable.
    pub async fn end_certified(&self, customer: &CustomerId) -> Result<(), Unserved> {
        self.tell(DeviceNotice::AuthoritiesChanged(customer.clone()))
            .await
    }

    /// Has the devices of a customer adopt its changed settings, once those are durable.
    pub async fn take_policy(&self, customer: CustomerId) -> Result<(), Unserved> {
        self.tell(DeviceNotice::SettingsChanged(customer)).await
    }

    /// Sends no policy until this is dropped: an arbiter begins with those that are read meanwhile,
    /// and gets every later one.
    pub async fn hold_policies(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.sending_policy).lock_owned().await
    }

    /// Tells all arbiters of all nodes something.
    async fn tell(&self, notice: DeviceNotice) -> Result<(), Unserved> {
        self.tell_here(notice.clone()).await?;
        if let Some(others) = &self.others {
            others.tell(&notice).await;
        }
        Ok(())
    }

    /// Tells all arbiters of this process something.
    pub async fn tell_here(&self, notice: DeviceNotice) -> Result<(), Unserved> {
        match notice {
            DeviceNotice::SessionsOver(device) => {
                for registry in self.registries() {
                    note_told(registry.send(EndSession(device)).await);
                }
            }
            DeviceNotice::AuthoritiesChanged(customer) => {
                for registry in self.registries() {
                    note_told(registry.send(EndCertified(customer.clone())).await);
                }
            }
            DeviceNotice::SettingsChanged(customer) => {
                let _turn = self.sending_policy.lock().await;
                let chosen = self.store.customer_settings(customer.clone()).await;
                let chosen = chosen.map_err(|Unavailable| Unserved::Failed)?;
                let policy = policy_of(&self.rules, &chosen);
                for registry in self.registries() {
                    let (customer, policy) = (customer.clone(), Arc::clone(&policy));
                    note_told(registry.send(PolicyChanged { customer, policy }).await);
                }
            }
        }
        Ok(())
    }

    /// Shows another key of the service from the next DTLS handshake on.
    pub fn show_server_key(&self, key: &ServerKey) {
        for registry in self.registries() {
            if registry.try_send(ShowServerKey(key.clone())).is_err() {
                error!("a registry is busy; it shows the former key of the service");
            }
        }
    }

    /// How busy a customer was, as this process and all other nodes have counted.
    pub async fn activity(
        &self,
        customer: &CustomerId,
        here: Vec<ActivityMinute>,
    ) -> Vec<ActivityMinute> {
        match &self.others {
            Some(others) => activity::merged(here, others.activity(customer).await),
            None => here,
        }
    }

    /// Has a device adopt its changed profile, once that is durable.
    ///
    /// If its actor ends meanwhile, the device is restored with the new profile.
    pub async fn take_identity(&self, device: DeviceKey) -> Result<(), Unserved> {
        let until = Instant::now() + NOTIFY_MAX;
        loop {
            match self.ask(device, DeviceCommand::ReadProfile).await {
                Ok(_) | Err(Unserved::Failed) => return Ok(()),
                Err(Unserved::Busy) if Instant::now() < until => {
                    tokio::time::sleep(NOTIFY_PAUSE).await;
                }
                Err(unserved) => return Err(unserved),
            }
        }
    }

    /// The senders that are no known device, the latest first.
    pub async fn strangers(&self) -> Vec<Stranger> {
        let mut lists = match &self.others {
            Some(others) => others.strangers().await,
            None => Vec::new(),
        };
        lists.push(self.strangers_here().await);
        merged(lists)
    }

    /// Those of this process.
    pub async fn strangers_here(&self) -> Vec<Stranger> {
        let mut lists = Vec::new();
        for registry in self.registries() {
            lists.extend(registry.send(ListStrangers).await);
        }
        merged(lists)
    }

    async fn ask(&self, key: DeviceKey, question: DeviceCommand) -> Result<DeviceReply, Unserved> {
        let answer = self.put(key, question)?;
        answer.await.unwrap_or(Err(Unserved::Failed))
    }

    fn put(&self, key: DeviceKey, question: DeviceCommand) -> Result<PendingReply, Unserved> {
        let (sender, answer) = oneshot::channel();
        let span = Span::current();
        let reply = ReplyTo { sender, span };
        match (self.places.place(self.arbiter_of(key)), &self.others) {
            (ArbiterPlace::Here(registry), _) => self.put_here(&registry, key, question, reply)?,
            (ArbiterPlace::There(_) | ArbiterPlace::Nowhere, Some(_)) => {
                actix_rt::spawn(self.clone().put_elsewhere(key, question, reply));
            }
            (ArbiterPlace::There(_) | ArbiterPlace::Nowhere, None) => return Err(Unserved::Busy),
        }
        Ok(answer)
    }

    fn put_here(
        &self,
        registry: &Addr<Registry>,
        key: DeviceKey,
        command: DeviceCommand,
        reply: ReplyTo,
    ) -> Result<(), Unserved> {
        let waiting = self.waiting.get(self.arbiter_of(key).index());
        let ask = AskDevice {
            key,
            pending: Box::new(PendingCommand { command, reply }),
            waiting: PendingQuestion::new(waiting.expect("every arbiter has a gauge")),
        };
        registry.try_send(ask).map_err(|_| Unserved::Busy)
    }

    /// Gives a command to the device of another node, or of this one if it gets the device
    /// meanwhile.
    async fn put_elsewhere(self, key: DeviceKey, command: DeviceCommand, reply: ReplyTo) {
        let mut places = self.places.clone();
        let until = Instant::now() + MOVE_MAX;
        let arbiter = self.arbiter_of(key);
        loop {
            let answer = match (places.place(arbiter), &self.others) {
                (ArbiterPlace::Here(registry), _) => {
                    // Without an answer the caller learns that it failed.
                    let _ = self.put_here(&registry, key, command, reply);
                    return;
                }
                (ArbiterPlace::There(node), Some(others)) => others.ask(node, key, &command).await,
                (ArbiterPlace::There(_) | ArbiterPlace::Nowhere, _) => None,
            };
            match answer {
                Some(answer) => return reply.give(answer),
                // That node does not have the device, or not yet.
                None if Instant::now() + LOOK < until => {
                    // Whether anything has changed or not.
                    drop(timeout(LOOK, places.changed()).await);
                }
                None => return reply.give(Err(Unserved::Busy)),
            }
        }
    }

    /// Carries out a command of another node for a device; none, if it is not of this process.
    pub async fn carry_out(
        &self,
        key: DeviceKey,
        command: DeviceCommand,
    ) -> Option<Result<DeviceReply, Unserved>> {
        let ArbiterPlace::Here(registry) = self.places.place(self.arbiter_of(key)) else {
            return None;
        };
        let (sender, answer) = oneshot::channel();
        let span = Span::current();
        let put = self.put_here(&registry, key, command, ReplyTo { sender, span });
        Some(match put {
            Ok(()) => answer.await.unwrap_or(Err(Unserved::Failed)),
            Err(unserved) => Err(unserved),
        })
    }

    fn arbiter_of(&self, key: DeviceKey) -> ArbiterId {
        self.places.shard_map().arbiter_of(key.shard())
    }

    fn registries(&self) -> Vec<Addr<Registry>> {
        self.places.here().values().cloned().collect()
    }
}

/// An arbiter that has ended needs not be told: whoever has its devices next reads what is stored.
fn note_told(sent: Result<(), MailboxError>) {
    if sent.is_err() {
        debug!("an arbiter has ended before it was told of a change");
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
