//! Which messages and receipts of the SMS centre wait to be stored? Those of one sender are handed
//! in one after the other, so that they keep their order. A receipt may have an address that is no
//! number: these have one queue.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use protocol::smpp::receipt::Receipt;

use super::effect::{InboundKind, Sender, SmsTask};
use crate::directory::sms::NewReceivedSms;
use crate::ids::SmsId;

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

/// What waits, by sender.
#[derive(Debug, Default)]
pub(super) struct InboundQueues {
    by_sender: BTreeMap<Sender, SenderInbound>,
    count: usize,
}

/// What waits of one sender.
#[derive(Debug, Default)]
struct SenderInbound {
    queue: VecDeque<InboundDelivery>,
    /// Whether its first one waits.
    hold: Hold,
}

/// Whether a receipt that is about no known SMS waits for the responses to submissions: it may be
/// about one of them.
#[derive(Debug, Default)]
enum Hold {
    /// It was not held yet.
    #[default]
    Never,
    /// It waits for what becomes of these SMS.
    For(BTreeSet<SmsId>),
    /// It was held, and is not held again.
    Over,
}

impl InboundDelivery {
    pub(super) fn kind(&self) -> InboundKind {
        match self.content {
            InboundContent::Message(_) => InboundKind::Message,
            InboundContent::Receipt(_) => InboundKind::Receipt,
        }
    }

    fn task(&self, sender: &Sender) -> SmsTask {
        match &self.content {
            InboundContent::Message(new) => SmsTask::Receive(sender.clone(), new.clone()),
            InboundContent::Receipt(receipt) => SmsTask::Apply(sender.clone(), receipt.clone()),
        }
    }
}

impl InboundQueues {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Appends one, and returns what is to be done if it is the first of its sender.
    pub(super) fn push(&mut self, sender: &Sender, inbound: InboundDelivery) -> Option<SmsTask> {
        self.count += 1;
        let of_sender = self.by_sender.entry(sender.clone()).or_default();
        let task = inbound.task(sender);
        of_sender.queue.push_back(inbound);
        (of_sender.queue.len() == 1).then_some(task)
    }

    /// The first one of a sender, which was handed in.
    pub(super) fn first(&self, sender: &Sender) -> Option<&InboundDelivery> {
        self.by_sender.get(sender)?.queue.front()
    }

    /// Holds the first one of a sender until [`Self::resume`] was called for each of these SMS.
    /// Returns whether it waits: once, and if there are any.
    pub(super) fn hold(&mut self, sender: &Sender, submitted: BTreeSet<SmsId>) -> bool {
        let Some(of_sender) = self.by_sender.get_mut(sender) else {
            return false;
        };
        let may_wait = matches!(of_sender.hold, Hold::Never) && !submitted.is_empty();
        if may_wait {
            of_sender.hold = Hold::For(submitted);
        }
        may_wait
    }

    /// What is to be done again, because it is known what became of the part of an SMS that was
    /// submitted.
    pub(super) fn resume(&mut self, id: SmsId) -> Vec<SmsTask> {
        let mut tasks = Vec::new();
        for (sender, of_sender) in &mut self.by_sender {
            if let Hold::For(submitted) = &mut of_sender.hold
                && submitted.remove(&id)
                && submitted.is_empty()
            {
                of_sender.hold = Hold::Over;
                tasks.extend(of_sender.queue.front().map(|first| first.task(sender)));
            }
        }
        tasks
    }

    /// Removes the first one of a sender, and returns what is to be done for the next.
    pub(super) fn pop(&mut self, sender: &Sender) -> Option<SmsTask> {
        let of_sender = self.by_sender.get_mut(sender)?;
        if of_sender.queue.pop_front().is_some() {
            self.count -= 1;
        }
        of_sender.hold = Hold::Never;
        let next = of_sender.queue.front().map(|next| next.task(sender));
        if next.is_none() {
            self.by_sender.remove(sender);
        }
        next
    }

    /// Forgets all but those that are being stored: the SMS centre delivers them again.
    pub(super) fn disconnect(&mut self) {
        self.by_sender.retain(|_, of_sender| {
            let is_held = matches!(of_sender.hold, Hold::For(_));
            of_sender.queue.truncate(usize::from(!is_held));
            for inbound in &mut of_sender.queue {
                inbound.sequence = None;
            }
            !of_sender.queue.is_empty()
        });
        self.count = self.by_sender.len();
    }
}
