//! What survives: a store that does one batch after the other, all of it or nothing, and at a
//! crash forgets what was not durable.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use engine::action::{Action, Status};
use engine::admin_log::entry::Entry;
use engine::change::{Batch, Change, Counter, Expect, Owner};
use engine::device::record::{DeviceRecord, Restored};
use engine::ids::{ActionId, DeviceKey};
use engine::profile::Profile;

/// The disk, with the batches it has not done yet.
pub(crate) struct Disk {
    pub(crate) durable: Durable,
    waiting: VecDeque<Waiting>,
    /// When it is done with all that waits.
    pub(crate) busy_until_ms: i64,
    /// Until when it takes nothing in.
    pub(crate) full_until_ms: i64,
}

/// A batch that is not durable yet.
pub(crate) struct Waiting {
    pub(crate) who: usize,
    pub(crate) step: u64,
    pub(crate) batch: Batch,
    /// Whether there was room for it.
    pub(crate) fits: bool,
}

/// What is on the disk.
pub(crate) struct Durable {
    profiles: Vec<Profile>,
    keys: Vec<DeviceKey>,
    who_by_key: HashMap<DeviceKey, usize>,
    records: Vec<DeviceRecord>,
    actions: Vec<BTreeMap<ActionId, Action>>,
    /// Which of them are not final, oldest first.
    pending: Vec<BTreeSet<ActionId>>,
    counters: HashMap<Counter, i64>,
    first_contacts: Vec<u32>,
    failures_logged: Vec<u32>,
    epoch: u64,
}

/// What a batch did to one action request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    pub(crate) who: usize,
    pub(crate) action: ActionId,
    /// The status and the attempts it had, if it was there.
    pub(crate) from: Option<(Status, u8)>,
}

/// A batch expected what did not hold, or came from an owner that was superseded.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) &'static str);

impl Disk {
    pub(crate) fn new(profiles: Vec<Profile>) -> Self {
        Self {
            durable: Durable::new(profiles),
            waiting: VecDeque::new(),
            busy_until_ms: 0,
            full_until_ms: 0,
        }
    }

    pub(crate) fn take_in(&mut self, waiting: Waiting) {
        self.waiting.push_back(waiting);
    }

    /// The batch that is done next.
    pub(crate) fn next_batch(&mut self) -> Option<Waiting> {
        self.waiting.pop_front()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

impl Durable {
    fn new(profiles: Vec<Profile>) -> Self {
        let count = profiles.len();
        let keys: Vec<DeviceKey> = profiles.iter().map(Profile::key).collect();
        Self {
            who_by_key: keys.iter().copied().zip(0..).collect(),
            keys,
            records: vec![DeviceRecord::default(); count],
            actions: vec![BTreeMap::new(); count],
            pending: vec![BTreeSet::new(); count],
            counters: HashMap::new(),
            first_contacts: vec![0; count],
            failures_logged: vec![0; count],
            epoch: 0,
            profiles,
        }
    }

    /// Does a batch if all it expects holds, and tells what it did to action requests.
    pub(crate) fn apply(&mut self, batch: Batch) -> Result<Vec<Moved>, Refused> {
        let Owner::Shard { epoch, .. } = batch.owner else {
            return Err(Refused("a device's batch has an owner"));
        };
        if epoch < self.epoch {
            return Err(Refused("the owner is superseded"));
        }
        self.epoch = epoch;
        if !batch.expects.iter().all(|expect| self.holds(expect)) {
            return Err(Refused("what the batch expects does not hold"));
        }
        let changes = batch.changes.into_iter();
        let moved = changes.filter_map(|change| self.change(change)).collect();
        for add in batch.adds {
            *self.counters.entry(add.counter).or_default() += add.delta;
        }
        Ok(moved)
    }

    fn holds(&self, expect: &Expect) -> bool {
        match expect {
            Expect::Status { action, is } => {
                let found = self.actions.iter().find_map(|of| of.get(action));
                found.is_some_and(|action| action.status == *is)
            }
            Expect::Free(_) | Expect::Taken(_) => panic!("no device expects names"),
        }
    }

    fn change(&mut self, change: Change) -> Option<Moved> {
        match change {
            Change::PutRecord { device, record } => {
                self.records[self.who_by_key[&device]] = *record;
                None
            }
            Change::PutAction { was, action } => {
                let who = self.who_by_key[&action.device];
                let id = action.id;
                if action.status.is_pending() {
                    self.pending[who].insert(id);
                } else {
                    self.pending[who].remove(&id);
                }
                let before = self.actions[who].insert(id, *action);
                let from = before.map(|before| (before.status, before.attempts_made));
                assert_eq!(
                    from.map(|(status, _)| status),
                    was,
                    "a change says what was"
                );
                Some(Moved {
                    who,
                    action: id,
                    from,
                })
            }
            Change::AppendEntry(entry) => {
                self.append(&entry);
                None
            }
            Change::PutCustomer(_)
            | Change::RemoveCustomer(_)
            | Change::PutClient(_)
            | Change::RemoveClient(_)
            | Change::PutToken(_)
            | Change::PutSetting(_)
            | Change::PutDevice { .. }
            | Change::RemoveDevice(_) => panic!("no device changes this"),
        }
    }

    fn append(&mut self, entry: &Entry) {
        let about = entry.about.as_ref().expect("a device logs about itself");
        let who = self.who_by_key[&about.key];
        if &*entry.message == "Lifecycle[DeviceFirstTimeRegistered]" {
            self.first_contacts[who] += 1;
        } else if entry.message.starts_with("DeviceController[") {
            self.failures_logged[who] += 1;
        }
    }

    /// What a machine is restored from.
    pub(crate) fn restored(&self, who: usize) -> Restored {
        Restored {
            profile: self.profiles[who].clone(),
            record: self.records[who].clone(),
            pending: self.pending(who).cloned().collect(),
        }
    }

    pub(crate) fn pending(&self, who: usize) -> impl Iterator<Item = &Action> {
        let ids = self.pending[who].iter();
        ids.map(move |id| &self.actions[who][id])
    }

    /// Whether a device is brought back when the service starts.
    pub(crate) fn is_live(&self, who: usize) -> bool {
        self.records[who].registration.is_some() || self.pending(who).next().is_some()
    }

    pub(crate) fn action(&self, who: usize, id: ActionId) -> Option<&Action> {
        self.actions[who].get(&id)
    }

    pub(crate) fn actions(&self, who: usize) -> impl Iterator<Item = &Action> {
        self.actions[who].values()
    }

    pub(crate) fn record(&self, who: usize) -> &DeviceRecord {
        &self.records[who]
    }

    pub(crate) fn profile(&self, who: usize) -> &Profile {
        &self.profiles[who]
    }

    pub(crate) fn key(&self, who: usize) -> DeviceKey {
        self.keys[who]
    }

    pub(crate) fn devices(&self) -> usize {
        self.profiles.len()
    }

    pub(crate) fn first_contacts(&self, who: usize) -> u32 {
        self.first_contacts[who]
    }

    pub(crate) fn failures_logged(&self, who: usize) -> u32 {
        self.failures_logged[who]
    }

    pub(crate) fn count(&self, counter: &Counter) -> i64 {
        self.counters.get(counter).copied().unwrap_or(0)
    }
}
