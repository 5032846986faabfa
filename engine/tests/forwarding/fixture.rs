//! A post office in memory: what happens, what is under way, what is kept, and what a destination
//! took.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use engine::change::{Batch, Change};
use engine::delivery::backlog::{
    DeadLetter, DestinationProgress, PendingRetry, ProgressUpdate, QueuedEvent, Sequence,
};
use engine::delivery::command::{DestinationCommand, DestinationReply};
use engine::delivery::destination::{
    Destination, DestinationState, EventTypes, JsonPayload, Replay, Target, Webhook,
};
use engine::delivery::forwarder::{Forwarder, ForwarderEffect, ForwarderInput};
use engine::delivery::forwarding::{
    DeliveryOutcome, DeliveryRules, ForwarderTask, Forwarding, NotActive, ReplayUnderWay,
};
use engine::event::EventType;
use engine::ids::{CustomerId, DestinationId, DeviceId, DeviceKey, EventId, Shard};
use engine::moment::{Moment, Timestamp};

pub(crate) const WAITS_MS: [i64; 4] = [150, 180, 420, 1_020];
pub(crate) const PARALLEL_MAX: usize = 8;
pub(crate) const BACKLOG_MAX: u64 = 100;

const START: Timestamp = Timestamp::from_ms(1_795_000_000_000);

pub(crate) fn not_taken() -> DeliveryOutcome {
    DeliveryOutcome::Failed {
        why: "the endpoint answered 500".into(),
    }
}

/// What is kept.
pub(crate) struct StoredState {
    destination: Destination,
    reached: BTreeMap<Shard, Sequence>,
    pub(crate) held: BTreeMap<Sequence, PendingRetry>,
    dead: BTreeMap<Sequence, DeadLetter>,
    passed: i64,
}

/// A post office with one destination.
pub(crate) struct ForwardingFixture {
    forwarder: Forwarder<()>,
    pub(crate) kept: StoredState,
    waiting: BTreeMap<Shard, Vec<QueuedEvent>>,
    names: BTreeMap<Sequence, (u16, u32)>,
    counts: BTreeMap<u16, u32>,
    under_way: BTreeSet<Sequence>,
    reads: Vec<ForwarderTask>,
    taken: Vec<Sequence>,
    /// What was taken, or is gone.
    done: BTreeSet<Sequence>,
    by_device: BTreeMap<u16, BTreeSet<Sequence>>,
    pub(crate) log: Vec<String>,
    pub(crate) tries: usize,
    pub(crate) most_under_way: usize,
    now: Timestamp,
    last: u64,
}

impl ForwardingFixture {
    pub(crate) fn open() -> Self {
        Self::telling(EventTypes::usual())
    }

    pub(crate) fn telling(wants: EventTypes) -> Self {
        let destination = destination(wants);
        let kept = StoredState {
            destination: destination.clone(),
            reached: BTreeMap::new(),
            held: BTreeMap::new(),
            dead: BTreeMap::new(),
            passed: 0,
        };
        let standing = DestinationProgress::default();
        Self {
            forwarder: forwarder(destination, standing, Vec::new()),
            kept,
            waiting: BTreeMap::new(),
            names: BTreeMap::new(),
            counts: BTreeMap::new(),
            under_way: BTreeSet::new(),
            reads: Vec::new(),
            taken: Vec::new(),
            done: BTreeSet::new(),
            by_device: BTreeMap::new(),
            log: Vec::new(),
            tries: 0,
            most_under_way: 0,
            now: START,
            last: 0,
        }
    }

    /// So many events of a device happen, each of them told at once.
    pub(crate) fn happen(&mut self, device: u16, count: u32) {
        for _ in 0..count {
            self.happen_as(device, EventType::TelemetryData);
        }
    }

    pub(crate) fn happen_as(&mut self, device: u16, event_type: EventType) {
        // Some numbers are nobody's.
        self.last += 1 + u64::from(device % 3);
        let sequence = Sequence(self.last);
        let number = self.counts.entry(device).or_default();
        *number += 1;
        self.names.insert(sequence, (device, *number));
        let waiting = QueuedEvent {
            sequence,
            device: key(device),
            event: EventId::from_bytes(u128::from(self.last).to_be_bytes()),
            event_type,
        };
        if self.kept.destination.event_types.has(event_type) {
            self.by_device.entry(device).or_default().insert(sequence);
        }
        let shard = waiting.shard();
        self.waiting.entry(shard).or_default().push(waiting);
        self.step(ForwarderInput::ShardsReady(vec![shard]));
    }

    pub(crate) fn under_way(&self) -> Vec<String> {
        self.under_way.iter().map(|it| self.name(*it)).collect()
    }

    pub(crate) fn taken(&self) -> Vec<String> {
        self.taken.iter().map(|it| self.name(*it)).collect()
    }

    pub(crate) fn taken_once(&self) -> BTreeSet<Sequence> {
        self.taken.iter().copied().collect()
    }

    pub(crate) fn dead(&self) -> Vec<String> {
        let dead = self.kept.dead.values();
        dead.map(|it| format!("{} after {}", self.name(it.queued.sequence), it.tries))
            .collect()
    }

    pub(crate) fn passed(&self) -> i64 {
        self.kept.passed
    }

    pub(crate) fn state(&self) -> DestinationState {
        assert_eq!(
            self.kept.destination,
            *self.forwarder.forwarding().destination()
        );
        self.kept.destination.state
    }

    pub(crate) fn end(&mut self, name: &str, delivered: DeliveryOutcome) {
        let found = self.under_way.iter().find(|it| self.name(**it) == name);
        let sequence = *found.unwrap_or_else(|| panic!("{name} is not under way"));
        self.deliver(sequence, delivered);
    }

    /// Ends one of those under way, if there are any.
    pub(crate) fn end_one(&mut self, which: u8, delivered: DeliveryOutcome) {
        let count = self.under_way.len().max(1);
        let found = self.under_way.iter().nth(usize::from(which) % count);
        if let Some(sequence) = found.copied() {
            self.deliver(sequence, delivered);
        }
    }

    pub(crate) fn end_all(&mut self, delivered: &DeliveryOutcome) {
        while let Some(sequence) = self.under_way.first().copied() {
            self.deliver(sequence, delivered.clone());
        }
    }

    pub(crate) fn pass_time(&mut self, ms: i64) {
        self.now = self.now.plus_ms(ms);
        self.step(ForwarderInput::Timeout);
    }

    pub(crate) fn note_backlog(&mut self, waiting: u64) {
        self.step(ForwarderInput::Backlog(waiting));
    }

    /// Uses up the tries of the first event of device 1.
    pub(crate) fn fail(&mut self) {
        self.happen(1, 1);
        self.end("1/1", not_taken());
        for wait_ms in WAITS_MS {
            self.pass_time(wait_ms);
            self.end("1/1", not_taken());
        }
    }

    pub(crate) fn restart(&mut self) {
        self.step(ForwarderInput::Command(DestinationCommand::Restart, ()));
    }

    pub(crate) fn replay(&mut self) -> Result<(), NotActive> {
        match self.step(ForwarderInput::Command(DestinationCommand::Replay, ())) {
            Some(DestinationReply::Replayed(replayed)) => replayed,
            other => panic!("{other:?}"),
        }
    }

    /// Discards a dead letter; it is nobody's to deliver from then on.
    pub(crate) fn discard(&mut self, name: &str) -> Result<(), ReplayUnderWay> {
        let found = self.kept.dead.keys().find(|it| self.name(**it) == name);
        let sequence = *found.unwrap_or_else(|| panic!("{name} is not dead"));
        let question = DestinationCommand::Discard([sequence].into());
        let answer = match self.step(ForwarderInput::Command(question, ())) {
            Some(DestinationReply::Discarded(discarded)) => discarded,
            other => panic!("{other:?}"),
        };
        if answer.is_ok() {
            self.done.insert(sequence);
        }
        answer
    }

    /// Begins a replay whose dead letters are not read yet, and discards one of them.
    pub(crate) fn discard_in_replay(&mut self) -> Result<(), ReplayUnderWay> {
        let sequence = *self.kept.dead.keys().next().expect("something is dead");
        self.take_step(ForwarderInput::Command(DestinationCommand::Replay, ()));
        let question = DestinationCommand::Discard([sequence].into());
        match self.take_step(ForwarderInput::Command(question, ())) {
            Some(DestinationReply::Discarded(discarded)) => discarded,
            other => panic!("{other:?}"),
        }
    }

    /// The service falls in the middle of everything and starts anew.
    pub(crate) fn restart_service(&mut self) {
        self.under_way.clear();
        self.reads.clear();
        let standing = DestinationProgress {
            since: Sequence(0),
            reached: self.kept.reached.clone().into_iter().collect(),
            retrying: self.kept.held.values().copied().collect(),
        };
        let is_left = |(shard, rows): (&Shard, &Vec<QueuedEvent>)| {
            let reached = self.kept.reached.get(shard).copied().unwrap_or_default();
            (rows.last()?.sequence > reached).then_some(*shard)
        };
        let waiting_in = self.waiting.iter().filter_map(is_left).collect();
        let destination = self.kept.destination.clone();
        self.forwarder = forwarder(destination, standing, waiting_in);
        self.step(ForwarderInput::Timeout);
    }

    /// The destination takes everything until nothing is left.
    pub(crate) fn heal(&mut self) {
        loop {
            self.end_all(&DeliveryOutcome::Delivered);
            let Some(at) = self.forwarder.next_timeout() else {
                break;
            };
            self.pass_time(at.since_ms(self.now).max(0));
        }
    }

    pub(crate) fn assert_sound(&self) {
        assert!(self.under_way.len() <= PARALLEL_MAX);
        assert_eq!(
            self.forwarder.forwarding().in_flight(),
            self.under_way.len()
        );
        let devices: BTreeSet<u16> = self.under_way.iter().map(|it| self.names[it].0).collect();
        assert_eq!(devices.len(), self.under_way.len(), "one of a device");
        for sequence in self.kept.held.keys() {
            assert!(!self.kept.dead.contains_key(sequence), "held or dead");
        }
    }

    /// Everything was taken or is gone, in order, and what is kept says so.
    pub(crate) fn assert_complete(&self) {
        assert!(self.kept.held.is_empty() && self.kept.dead.is_empty());
        for sequence in self.names.keys() {
            assert!(self.done.contains(sequence), "{}", self.name(*sequence));
        }
        let happened = i64::try_from(self.names.len()).expect("few happen");
        assert_eq!(self.kept.passed, happened, "each is passed once");
        for (shard, rows) in &self.waiting {
            let last = rows.last().expect("a shard has rows").sequence;
            assert_eq!(self.kept.reached.get(shard), Some(&last));
        }
    }

    fn deliver(&mut self, sequence: Sequence, delivered: DeliveryOutcome) {
        assert!(self.under_way.remove(&sequence));
        self.tries += 1;
        match &delivered {
            DeliveryOutcome::Delivered => {
                self.taken.push(sequence);
                self.done.insert(sequence);
            }
            DeliveryOutcome::Gone => {
                self.done.insert(sequence);
            }
            DeliveryOutcome::Failed { .. } => {}
        }
        self.step(ForwarderInput::Delivered(sequence, delivered));
    }

    fn step(&mut self, input: ForwarderInput<()>) -> Option<DestinationReply> {
        let answer = self.take_step(input);
        while !self.reads.is_empty() {
            match self.reads.remove(0) {
                ForwarderTask::Read { shard, after, max } => {
                    let rows = self.waiting.get(&shard).into_iter().flatten();
                    let behind = rows.filter(|row| row.sequence > after);
                    let rows: Vec<QueuedEvent> = behind.take(max as usize).copied().collect();
                    self.take_step(ForwarderInput::EventsRead(shard, rows));
                }
                ForwarderTask::ReadDeadLetters { after, max } => {
                    let dead = self.kept.dead.values();
                    let behind = dead.filter(|it| Some(it.queued.sequence) > after);
                    let letters: Vec<DeadLetter> = behind.take(max as usize).cloned().collect();
                    self.take_step(ForwarderInput::DeadLettersRead(letters));
                }
                ForwarderTask::Deliver(_) => unreachable!("it is under way"),
            }
        }
        answer
    }

    fn take_step(&mut self, input: ForwarderInput<()>) -> Option<DestinationReply> {
        let mut m = Moment::new(self.now, 7);
        let mut out = Vec::new();
        self.forwarder.handle(&mut m, input, &mut out);
        let mut answer = None;
        let mut effects = VecDeque::from(out);
        while let Some(effect) = effects.pop_front() {
            match effect {
                ForwarderEffect::Commit(batch) => {
                    self.keep(batch);
                    let mut out = Vec::new();
                    self.forwarder.handle_receipt(Ok(()), &mut out);
                    effects.extend(out);
                }
                ForwarderEffect::Begin(ForwarderTask::Deliver(waiting)) => {
                    self.assert_in_order(&waiting);
                    assert!(self.under_way.insert(waiting.sequence), "under way twice");
                }
                ForwarderEffect::Begin(read) => self.reads.push(read),
                ForwarderEffect::Answer((), answered) => answer = answered.ok(),
                ForwarderEffect::ShowState { .. } => {}
                ForwarderEffect::Retarget(_)
                | ForwarderEffect::Test { .. }
                | ForwarderEffect::End(_) => panic!("nobody asked for it"),
            }
        }
        self.most_under_way = self.most_under_way.max(self.under_way.len());
        answer
    }

    /// What came before of the same device, and is wanted, was taken, is gone or was set aside.
    fn assert_in_order(&self, waiting: &QueuedEvent) {
        let (device, _) = self.names[&waiting.sequence];
        for sequence in self.by_device[&device].range(..waiting.sequence) {
            let is_settled = self.done.contains(sequence) || self.kept.dead.contains_key(sequence);
            assert!(is_settled, "{} comes first", self.name(*sequence));
        }
    }

    fn keep(&mut self, batch: Batch) {
        for change in batch.changes {
            match change {
                Change::PutDestination(destination) => self.kept.destination = *destination,
                Change::PutProgress(progress) => self.kept.advance(*progress),
                Change::AppendEntry(entry) => self.log.push(entry.message.to_string()),
                Change::PutCustomer(_)
                | Change::RemoveCustomer(_)
                | Change::PutClient(_)
                | Change::RemoveClient(_)
                | Change::PutToken(_)
                | Change::PutSetting(_)
                | Change::PutDevice { .. }
                | Change::RemoveDevice(_)
                | Change::PutRecord { .. }
                | Change::PutAction { .. }
                | Change::PutIdempotencyRecord(_)
                | Change::AppendEvent(_)
                | Change::RemoveDestination { .. }
                | Change::PutDefinition(_)
                | Change::RemoveDefinition(_) => panic!("not a destination's to change"),
            }
        }
    }

    fn name(&self, sequence: Sequence) -> String {
        let (device, number) = self.names[&sequence];
        format!("{device}/{number}")
    }
}

impl StoredState {
    fn advance(&mut self, progress: ProgressUpdate) {
        for (shard, reached) in progress.reached {
            let before = self.reached.insert(shard, reached);
            assert!(
                before.is_none_or(|before| before < reached),
                "it only goes on"
            );
        }
        for sequence in progress.released {
            assert!(
                self.held.remove(&sequence).is_some(),
                "what is released was held"
            );
        }
        for sequence in progress.requeued {
            assert!(
                self.dead.remove(&sequence).is_some(),
                "what is revived was dead"
            );
        }
        for held in progress.retrying {
            self.held.insert(held.queued.sequence, held);
        }
        for letter in progress.dead_lettered {
            self.dead.insert(letter.queued.sequence, letter);
        }
        self.passed += progress.passed;
    }
}

fn forwarder(
    destination: Destination,
    standing: DestinationProgress,
    waiting_in: Vec<Shard>,
) -> Forwarder<()> {
    let rules = DeliveryRules {
        retry_delays_ms: WAITS_MS.into(),
        parallel_max: PARALLEL_MAX,
        backlog_max: BACKLOG_MAX,
    };
    let forwarding = Forwarding::restore(Arc::new(rules), destination, standing, waiting_in);
    Forwarder::new(forwarding)
}

fn key(device: u16) -> DeviceKey {
    let device = DeviceId::parse(&format!("meter-{device}")).unwrap();
    DeviceKey::of(&customer(), &device)
}

/// Another device of the same virtual shard.
pub(crate) fn neighbour_of(device: u16) -> u16 {
    let is_near = |other: &u16| *other != device && key(*other).shard() == key(device).shard();
    (0..).find(is_near).expect("there are few shards")
}

fn customer() -> CustomerId {
    CustomerId::parse("acme").unwrap()
}

fn destination(wants: EventTypes) -> Destination {
    Destination {
        id: DestinationId::from_bytes([5; 16]),
        customer: customer(),
        name: "ours".into(),
        target: Target::Webhook(Webhook {
            url: "https://example.com/".into(),
            headers: Box::default(),
            secret: None,
            json: JsonPayload::AsText,
        }),
        event_types: wants,
        state: DestinationState::RolledOut,
        replay: Replay::None,
        created_at: START,
        updated_at: START,
    }
}
