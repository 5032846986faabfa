//! Which messages and receipts of the SMS centre wait to be stored? Those of one device are handed
//! in one after the other, so that they keep their order.

use std::collections::{BTreeMap, VecDeque};

use protocol::smpp::receipt::Receipt;

use super::effect::{InboundKind, SmsTask};
use crate::directory::sms::NewReceivedSms;
use crate::ids::Msisdn;

/// A message or a receipt that is not answered yet.
#[derive(Debug)]
pub(super) struct InboundDelivery {
    /// The sequence number of its PDU; none if its connection has ended.
    pub(super) sequence: Option<u32>,
    /// What it is.
    pub(super) content: InboundContent,
}

/// What an SMS centre delivered.
#[derive(Debug)]
pub(super) enum InboundContent {
    Message(Box<NewReceivedSms>),
    Receipt(Box<Receipt>),
}

/// What waits, by device.
#[derive(Debug, Default)]
pub(super) struct InboundQueues {
    by_device: BTreeMap<Msisdn, DeviceInbound>,
    count: usize,
}

/// What waits of one device.
#[derive(Debug, Default)]
struct DeviceInbound {
    queue: VecDeque<InboundDelivery>,
    /// Whether its first one is a receipt that waits for the response to a submission.
    is_held: bool,
}

impl InboundDelivery {
    pub(super) fn kind(&self) -> InboundKind {
        match self.content {
            InboundContent::Message(_) => InboundKind::Message,
            InboundContent::Receipt(_) => InboundKind::Receipt,
        }
    }

    fn task(&self, device: &Msisdn) -> SmsTask {
        match &self.content {
            InboundContent::Message(new) => SmsTask::Receive(device.clone(), new.clone()),
            InboundContent::Receipt(receipt) => SmsTask::Apply(device.clone(), receipt.clone()),
        }
    }
}

impl InboundQueues {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Appends one, and returns what is to be done if it is the first of its device.
    pub(super) fn push(&mut self, device: &Msisdn, inbound: InboundDelivery) -> Option<SmsTask> {
        self.count += 1;
        let of_device = self.by_device.entry(device.clone()).or_default();
        let task = inbound.task(device);
        of_device.queue.push_back(inbound);
        (of_device.queue.len() == 1).then_some(task)
    }

    /// The first one of a device, which was handed in.
    pub(super) fn first(&self, device: &Msisdn) -> Option<&InboundDelivery> {
        self.by_device.get(device)?.queue.front()
    }

    /// Holds the first one of a device until [`Self::resume`].
    pub(super) fn hold(&mut self, device: &Msisdn) {
        if let Some(of_device) = self.by_device.get_mut(device) {
            of_device.is_held = true;
        }
    }

    /// What is to be done again for a device whose first one is held.
    pub(super) fn resume(&mut self, device: &Msisdn) -> Option<SmsTask> {
        let of_device = self.by_device.get_mut(device)?;
        if !std::mem::take(&mut of_device.is_held) {
            return None;
        }
        of_device.queue.front().map(|first| first.task(device))
    }

    /// Removes the first one of a device, and returns what is to be done for the next.
    pub(super) fn pop(&mut self, device: &Msisdn) -> Option<SmsTask> {
        let of_device = self.by_device.get_mut(device)?;
        if of_device.queue.pop_front().is_some() {
            self.count -= 1;
        }
        let next = of_device.queue.front().map(|next| next.task(device));
        if next.is_none() {
            self.by_device.remove(device);
        }
        next
    }

    /// Forgets all but those that are being stored: the SMS centre delivers them again.
    pub(super) fn disconnect(&mut self) {
        self.by_device.retain(|_, of_device| {
            of_device.queue.truncate(usize::from(!of_device.is_held));
            for inbound in &mut of_device.queue {
                inbound.sequence = None;
            }
            !of_device.queue.is_empty()
        });
        self.count = self.by_device.len();
    }
}
