//! What does the network do with SMS? It hands in messages and reports, and takes what waits,
//! whether it calls the API or is reached over a link.

use std::sync::Arc;

use engine::change::UniqueName;
use engine::directory::Decision;
use engine::directory::sms::submitting::{accept_part, apply_receipt, named_by, refuse, release};
use engine::directory::sms::{FoundParts, NewReceivedSms, receive, report, take};
use engine::ids::{Msisdn, SmsId};
use engine::limits::SMS_OPEN_MAX;
use engine::profile::Profile;
use engine::smpp_pdu::receipt::{Receipt, message_id_keys};
use engine::sms::{NetworkTask, ReportedStatus, Sms, SmsStatus};
use store::{Commit, CommitError, Reads, Unavailable};
use tokio::sync::Mutex;

use crate::clock::Clock;
use crate::settle::settle;

/// Does with SMS what the network says; clones share it.
#[derive(Clone)]
pub struct SmsNetwork {
    clock: Clock,
    commits: Arc<dyn Commit>,
    store: Arc<dyn Reads>,
    /// Held while SMS are taken, so that calls do not take the same ones and conflict.
    taking: Arc<Mutex<()>>,
}

/// Why the network is not obeyed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum NetworkError {
    /// No device has the number.
    #[error("no device has the number")]
    UnknownDevice,
    /// No SMS to a device is meant.
    #[error("there is no such SMS to a device")]
    UnknownSms,
    /// The store does not accept the change.
    #[error(transparent)]
    Store(#[from] CommitError),
}

impl From<Unavailable> for NetworkError {
    fn from(_: Unavailable) -> Self {
        Self::Store(CommitError::Unavailable)
    }
}

impl SmsNetwork {
    /// Works on a store.
    pub fn new(clock: Clock, commits: Arc<dyn Commit>, store: Arc<dyn Reads>) -> Self {
        Self {
            clock,
            commits,
            store,
            taking: Arc::default(),
        }
    }

    /// Stores a message of the device with a number; `keep` adds to the decision what is stored
    /// with it.
    pub async fn receive<T, E: From<CommitError> + From<NetworkError>>(
        &self,
        sender: &Msisdn,
        new: &NewReceivedSms,
        keep: impl Fn(Decision<SmsId>) -> Result<Decision<T>, E>,
    ) -> Result<T, E> {
        settle(&*self.commits, async || {
            let device = self.device(sender).await?;
            let found = match new.parts_key(&device) {
                Some(parts) => self.store.sms_of_parts(parts).await,
                None => Ok(FoundParts::default()),
            };
            let found = found.map_err(NetworkError::from)?;
            let m = &mut self.clock.moment();
            keep(receive(m, &device, new.clone(), found))
        })
        .await
    }

    /// Applies a report about an SMS to a device, and returns the status it has then.
    pub async fn report(
        &self,
        id: SmsId,
        status: ReportedStatus,
    ) -> Result<SmsStatus, NetworkError> {
        settle(&*self.commits, async || {
            let (device, sms) = self.to_device(id).await?;
            Ok::<_, NetworkError>(report(&mut self.clock.moment(), &device, sms, status))
        })
        .await?;
        let sms = self.store.sms(id).await?;
        let status = sms.and_then(|sms| sms.submitted().map(|it| it.status));
        status.ok_or(NetworkError::UnknownSms)
    }

    /// Takes up to `max` SMS that wait, each once.
    pub async fn take(&self, max: u32) -> Result<Vec<(NetworkTask, Sms)>, NetworkError> {
        let _turn = self.taking.lock().await;
        settle(&*self.commits, async || {
            let waiting = self.store.sms_for_network(max).await?;
            Ok(take(self.clock.now(), waiting))
        })
        .await
    }

    /// The same for a caller that asks often: nothing is committed while none waits.
    pub(crate) async fn poll(&self, max: u32) -> Result<Vec<(NetworkTask, Sms)>, NetworkError> {
        match self.store.sms_for_network(1).await?.is_empty() {
            true => Ok(Vec::new()),
            false => self.take(max).await,
        }
    }

    /// Applies a receipt about an SMS to the device with the number in its address. If no device
    /// has it, as where the SMS centre writes numbers in another form, its message id tells which
    /// SMS it is about.
    pub(crate) async fn apply(
        &self,
        sender: Option<&Msisdn>,
        receipt: &Receipt,
    ) -> Result<(), NetworkError> {
        settle(&*self.commits, async || {
            let named = match sender {
                Some(number) => self.find_device(number).await?,
                None => None,
            };
            let (device, open) = match named {
                Some(device) => {
                    let open = self.store.open_sms_of(device.number, SMS_OPEN_MAX).await?;
                    (device, open)
                }
                None => {
                    let (device, sms) = self.named_by(receipt).await?;
                    (device, vec![sms])
                }
            };
            apply_receipt(&mut self.clock.moment(), &device, open, receipt)
                .ok_or(NetworkError::UnknownSms)
        })
        .await
    }

    /// Stores that a part was accepted under an id. Returns whether the next one may follow.
    pub(crate) async fn accept_part(
        &self,
        id: SmsId,
        number: u8,
        message_id: &str,
    ) -> Result<bool, NetworkError> {
        settle(&*self.commits, async || {
            let (_, sms) = self.to_device(id).await?;
            Ok(accept_part(sms, number, message_id))
        })
        .await
    }

    /// Fails an SMS that was refused.
    pub(crate) async fn refuse(&self, id: SmsId, reason: &str) -> Result<(), NetworkError> {
        settle(&*self.commits, async || {
            let (device, sms) = self.to_device(id).await?;
            Ok(refuse(&mut self.clock.moment(), &device, sms, reason))
        })
        .await
    }

    /// Lets an SMS wait for the network again, of which nothing was submitted.
    pub(crate) async fn release(&self, id: SmsId) -> Result<(), NetworkError> {
        settle(&*self.commits, async || {
            let (_, sms) = self.to_device(id).await?;
            Ok(release(sms))
        })
        .await
    }

    async fn device(&self, number: &Msisdn) -> Result<Profile, NetworkError> {
        let device = self.find_device(number).await?;
        device.ok_or(NetworkError::UnknownDevice)
    }

    async fn find_device(&self, number: &Msisdn) -> Result<Option<Profile>, NetworkError> {
        let name = UniqueName::Msisdn(number.clone());
        Ok(match self.store.device_by_name(name).await? {
            Some(device) => self.store.profile(device).await?,
            None => None,
        })
    }

    /// The SMS that a receipt names by its message id, and its device.
    async fn named_by(&self, receipt: &Receipt) -> Result<(Profile, Sms), NetworkError> {
        let keys = receipt.message_id.as_deref().map(message_id_keys);
        let found = match keys {
            Some(keys) => self.store.open_sms_by_message(keys, SMS_OPEN_MAX).await?,
            None => Vec::new(),
        };
        let sms = named_by(found, receipt).ok_or(NetworkError::UnknownSms)?;
        let device = self.store.profile(sms.device).await?;
        Ok((device.ok_or(NetworkError::UnknownSms)?, sms))
    }

    async fn to_device(&self, id: SmsId) -> Result<(Profile, Sms), NetworkError> {
        let sms = self.store.sms(id).await?;
        let sms = sms.filter(|sms| sms.submitted().is_some());
        let sms = sms.ok_or(NetworkError::UnknownSms)?;
        let device = self.store.profile(sms.device).await?;
        let device = device.ok_or(NetworkError::UnknownSms)?;
        Ok((device, sms))
    }
}
