//! How the rest of the service reaches a device: by key, without knowing where it lives.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use actix::Addr;
use engine::action::NewAction;
use engine::arbiter::input::{DeviceCommand, DeviceReply, PendingCommand};
use engine::device::queue::{Accepted, CancelRefusal, Cancelled, SubmitRefusal};
use engine::device::snapshot::Snapshot;
use engine::dispatch::shard_map::ShardMap;
use engine::ids::{ActionId, CustomerId, DeviceKey};
use engine::rules::Rules;
use engine::supervision::Unserved;
use metrics::Gauge;
use store::{Commit, DeviceReads, Pressure, Unavailable};
use tokio::sync::{Mutex, oneshot};
use tracing::{Span, error};

use crate::meters::pending::{PendingQuestion, questions_for};
use crate::policy::{PolicyChanged, policy_of};
use crate::registry::context::ArbiterParts;
use crate::registry::{AskDevice, Registry};
use crate::reply::ReplyTo;

/// How often a busy device is told who it is by now: what is durable has to reach it, so that it
/// takes some seconds of a full mailbox before the caller is asked to say it again.
const TELLING_TRIES: u32 = 50;

/// How long a full mailbox is left alone.
const TELLING_PAUSE: Duration = Duration::from_millis(100);

/// The door to all devices.
#[derive(Clone)]
pub struct Devices {
    shard_map: ShardMap,
    /// One registry per arbiter.
    registries: Arc<[Addr<Registry>]>,
    /// How many questions wait for each.
    waiting: Arc<[Gauge]>,
    commits: Arc<dyn Commit>,
    store: Arc<dyn DeviceReads>,
    rules: Arc<Rules>,
    /// Whoever tells terms tells the newest: one at a time.
    telling: Arc<Mutex<()>>,
}

impl Devices {
    /// The door to the devices of these registries.
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
            telling: Arc::default(),
        }
    }

    /// Creates an action request for a device; when this answers Ok it is durable. The device is
    /// asked now, and not when the answer is awaited.
    pub fn submit(
        &self,
        device: DeviceKey,
        action: NewAction,
    ) -> impl Future<Output = Result<Result<Accepted, SubmitRefusal>, Unserved>> + use<> {
        let asked = match self.commits.pressure() {
            Pressure::Full => Err(Unserved::Busy),
            Pressure::Open => self.put(device, DeviceCommand::Submit(action)),
        };
        async move {
            let answer = asked?.await.unwrap_or(Err(Unserved::Failed))?;
            let DeviceReply::Submitted(submitted) = answer else {
                return Err(misfit(&answer));
            };
            Ok(submitted)
        }
    }

    /// Takes back a request that was not sent.
    pub async fn cancel(
        &self,
        device: DeviceKey,
        action: ActionId,
    ) -> Result<Result<Cancelled, CancelRefusal>, Unserved> {
        let answer = self.ask(device, DeviceCommand::Cancel(action)).await?;
        let DeviceReply::Cancelled(cancelled) = answer else {
            return Err(misfit(&answer));
        };
        Ok(cancelled)
    }

    /// Takes back every request of a device that was not sent.
    pub async fn cancel_all(&self, device: DeviceKey) -> Result<Vec<Cancelled>, Unserved> {
        let answer = self.ask(device, DeviceCommand::CancelAll).await?;
        let DeviceReply::CancelledAll(cancelled) = answer else {
            return Err(misfit(&answer));
        };
        Ok(cancelled)
    }

    /// Forgets a device with all that belongs to it.
    pub async fn retire(&self, device: DeviceKey) -> Result<(), Unserved> {
        self.ask(device, DeviceCommand::Retire).await.map(|_| ())
    }

    /// What a device is doing right now.
    pub async fn inspect(&self, device: DeviceKey) -> Result<Snapshot, Unserved> {
        let answer = self.ask(device, DeviceCommand::Inspect).await?;
        let DeviceReply::Inspected(snapshot) = answer else {
            return Err(misfit(&answer));
        };
        Ok(*snapshot)
    }

    /// Has a device go by what its customer made of it, once that is durable.
    ///
    /// A device whose actor ends meanwhile is brought back as what it is by then.
    pub async fn take_identity(&self, device: DeviceKey) -> Result<(), Unserved> {
        let mut tries_left = TELLING_TRIES;
        loop {
            match self.ask(device, DeviceCommand::ReadProfile).await {
                Ok(_) | Err(Unserved::Failed) => return Ok(()),
                Err(Unserved::Busy) if tries_left > 0 => {
                    tries_left -= 1;
                    tokio::time::sleep(TELLING_PAUSE).await;
                }
                Err(unserved) => return Err(unserved),
            }
        }
    }

    /// Has the devices of a customer go by what it chose, once that is durable.
    pub async fn take_policy(&self, customer: CustomerId) -> Result<(), Unserved> {
        let _turn = self.telling.lock().await;
        let chosen = self.store.customer_settings(customer.clone()).await;
        let chosen = chosen.map_err(|Unavailable| Unserved::Failed)?;
        let terms = policy_of(&self.rules, &chosen);
        for registry in &*self.registries {
            let (customer, terms) = (customer.clone(), Arc::clone(&terms));
            let told = registry
                .send(PolicyChanged {
                    customer,
                    policy: terms,
                })
                .await;
            told.map_err(|_| Unserved::Failed)?;
        }
        Ok(())
    }

    async fn ask(&self, key: DeviceKey, question: DeviceCommand) -> Result<DeviceReply, Unserved> {
        let answer = self.put(key, question)?;
        answer.await.unwrap_or(Err(Unserved::Failed))
    }

    fn put(
        &self,
        key: DeviceKey,
        question: DeviceCommand,
    ) -> Result<oneshot::Receiver<Result<DeviceReply, Unserved>>, Unserved> {
        let (sender, answer) = oneshot::channel();
        let span = Span::current();
        let reply = ReplyTo { sender, span };
        let ask = AskDevice {
            key,
            asked: Box::new(PendingCommand {
                command: question,
                reply,
            }),
            waiting: PendingQuestion::new(self.waiting_at(key)),
        };
        let asked = self.registry_of(key).try_send(ask);
        asked.map_err(|_| Unserved::Busy)?;
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

/// An answer to another question: the device is not understood.
fn misfit(answer: &DeviceReply) -> Unserved {
    error!(?answer, "a device actor sent an unexpected answer");
    Unserved::Failed
}
