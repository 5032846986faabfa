//! A forwarder with a store in memory: queued events, deliveries in flight, stored progress, and
//! the events that a destination accepted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use engine::change::{Batch, Change};
use engine::delivery::backlog::{
    DeadLetter, DestinationProgress, PendingRetry, ProgressUpdate, QueuedEvent, Sequence,
};
use engine::delivery::command::{DestinationCommand, DestinationReply};
use engine::delivery::destination::{
    Destination, DestinationState, EventBatching, EventTypes, JsonPayload, Replay, SmsForwarder,
    Target, Webhook,
};
use engine::delivery::forwarder::{Forwarder, ForwarderEffect, ForwarderInput};
use engine::delivery::forwarding::{
    DeliveryOutcome, DeliveryRules, FailedDelivery, ForwarderTask, Forwarding, ReplayUnderWay,
};
use engine::event::EventType;
use engine::ids::{CustomerId, DestinationId, DeviceId, DeviceKey, EventId, Partition};
use engine::moment::{Moment, Timestamp};

pub(crate) const DELAYS_MS: [i64; 4] = [150, 180, 420, 1_020];
pub(crate) const SMS_DELAYS_MS: [i64; 3] = [300, 900, 1_800];
pub(crate) const PARALLEL_MAX: usize = 8;
pub(crate) const BACKLOG_MAX: u64 = 100;

const START: Timestamp = Timestamp::from_ms(1_795_000_000_000);

pub(crate) fn refused() -> DeliveryOutcome {
    failed("the endpoint answered 500", 0)
}

pub(crate) fn paused(pause_ms: i64) -> DeliveryOutcome {
    failed("the endpoint answered 429", pause_ms)
}

fn failed(why: &str, pause_ms: i64) -> DeliveryOutcome {
    DeliveryOutcome::Failed(FailedDelivery {
        why: why.into(),
        pause_ms,
        about: None,
    })
}

/// The stored state of a destination.
pub(crate) struct StoredState {
    destination: Destination,
    reached: BTreeMap<Partition, Sequence>,
    pub(crate) retrying: BTreeMap<Sequence, PendingRetry>,
    dead: BTreeMap<Sequence, DeadLetter>,
}

/// A forwarder of one destination.
pub(crate) struct ForwardingFixture {
    forwarder: Forwarder<()>,
    pub(crate) stored: StoredState,
    queued: BTreeMap<Partition, Vec<QueuedEvent>>,
    names: BTreeMap<Sequence, (u16, u32)>,
    counts: BTreeMap<u16, u32>,
    /// The events of each delivery, by its first one.
    in_flight: BTreeMap<Sequence, Vec<Sequence>>,
    reads: Vec<ForwarderTask>,
    accepted: Vec<Sequence>,
    /// Events that were accepted or are gone.
    done: BTreeSet<Sequence>,
    by_device: BTreeMap<u16, BTreeSet<Sequence>>,
    pub(crate) log: Vec<String>,
    pub(crate) tries: usize,
    pub(crate) most_in_flight: usize,
    now: Timestamp,
    last: u64,
}

impl ForwardingFixture {
    pub(crate) fn open() -> Self {
        Self::with_types(EventTypes::usual())
    }

    pub(crate) fn with_types(wants: EventTypes) -> Self {
        Self::of(destination(wants))
    }

    pub(crate) fn of_sms() -> Self {
        let forwarder = SmsForwarder {
            url: "https://example.com/sms/".into(),
            organisation: 1,
        };
        Self::of(Destination {
            target: Target::SmsForwarder(forwarder),
            ..destination(EventTypes::of_sms())
        })
    }

    /// A webhook that receives several events at a time.
    pub(crate) fn of_batches(events_max: u8, wait_ms_max: u32) -> Self {
        let mut destination = destination(EventTypes::usual());
        if let Target::Webhook(webhook) = &mut destination.target {
            webhook.batching = Some(EventBatching {
                events_max,
                wait_ms_max,
            });
        }
        Self::of(destination)
    }

    fn of(destination: Destination) -> Self {
        let stored = StoredState {
            destination: destination.clone(),
            reached: BTreeMap::new(),
            retrying: BTreeMap::new(),
            dead: BTreeMap::new(),
        };
        let progress = DestinationProgress::default();
        Self {
            forwarder: forwarder(destination, progress, Vec::new()),
            stored,
            queued: BTreeMap::new(),
            names: BTreeMap::new(),
            counts: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            reads: Vec::new(),
            accepted: Vec::new(),
            done: BTreeSet::new(),
            by_device: BTreeMap::new(),
            log: Vec::new(),
            tries: 0,
            most_in_flight: 0,
            now: START,
            last: 0,
        }
    }

    /// Queues events of a device, each with a notification of its own.
    pub(crate) fn emit(&mut self, device: u16, count: u32) {
        for _ in 0..count {
            self.emit_as(device, EventType::TelemetryData);
        }
    }

    pub(crate) fn emit_as(&mut self, device: u16, event_type: EventType) {
        // Some numbers are not used.
        self.last += 1 + u64::from(device % 3);
        let sequence = Sequence(self.last);
        let number = self.counts.entry(device).or_default();
        *number += 1;
        self.names.insert(sequence, (device, *number));
        let queued = QueuedEvent {
            sequence,
            device: key(device),
            event: event_id(self.now, self.last),
            event_type,
            lifecycle: None,
        };
        if self.stored.destination.event_types.wants(&queued) {
            self.by_device.entry(device).or_default().insert(sequence);
        }
        let partition = queued.partition();
        self.queued.entry(partition).or_default().push(queued);
        self.step(ForwarderInput::PartitionsReady(vec![partition]));
    }

    pub(crate) fn in_flight(&self) -> Vec<String> {
        let events = self.in_flight.values().flatten();
        events.map(|it| self.name(*it)).collect()
    }

    /// The deliveries in flight, each with its events.
    pub(crate) fn deliveries(&self) -> Vec<String> {
        let named = |events: &Vec<Sequence>| {
            let names: Vec<String> = events.iter().map(|it| self.name(*it)).collect();
            names.join(" ")
        };
        self.in_flight.values().map(named).collect()
    }

    pub(crate) fn accepted(&self) -> Vec<String> {
        self.accepted.iter().map(|it| self.name(*it)).collect()
    }

    pub(crate) fn accepted_once(&self) -> BTreeSet<Sequence> {
        self.accepted.iter().copied().collect()
    }

    pub(crate) fn dead(&self) -> Vec<String> {
        let dead = self.stored.dead.values();
        dead.map(|it| format!("{} after {}", self.name(it.queued.sequence), it.tries))
            .collect()
    }

    /// How many events the stored progress says are done.
    pub(crate) fn passed(&self) -> usize {
        let is_reached = |queued: &&QueuedEvent| {
            let reached = self.stored.reached.get(&queued.partition());
            reached.is_some_and(|reached| queued.sequence <= *reached)
        };
        let reached = self.queued.values().flatten().filter(is_reached).count();
        let retrying = self.stored.retrying.values().map(|retry| &retry.queued);
        reached - retrying.filter(is_reached).count()
    }

    pub(crate) fn failure(&self) -> Option<&str> {
        self.stored.destination.failure.as_deref()
    }

    pub(crate) fn state(&self) -> DestinationState {
        assert_eq!(
            self.stored.destination,
            *self.forwarder.forwarding().destination()
        );
        self.stored.destination.state
    }

    /// Ends the delivery of an event, and of those that are delivered with it.
    pub(crate) fn end(&mut self, name: &str, delivered: DeliveryOutcome) {
        let has = |events: &[Sequence]| events.iter().any(|it| self.name(*it) == name);
        let found = self.in_flight.iter().find(|(_, events)| has(events));
        let (first, _) = found.unwrap_or_else(|| panic!("{name} is not in flight"));
        self.deliver(*first, delivered);
    }

    /// Ends one of the deliveries in flight, if there are any.
    pub(crate) fn end_one(&mut self, which: u8, delivered: DeliveryOutcome) {
        let count = self.in_flight.len().max(1);
        let found = self.in_flight.keys().nth(usize::from(which) % count);
        if let Some(sequence) = found.copied() {
            self.deliver(sequence, delivered);
        }
    }

    pub(crate) fn end_all(&mut self, delivered: &DeliveryOutcome) {
        while let Some(first) = self.in_flight.keys().next().copied() {
            self.deliver(first, delivered.clone());
        }
    }

    pub(crate) fn pass_time(&mut self, ms: i64) {
        self.now = self.now.plus_ms(ms);
        self.step(ForwarderInput::Timeout);
    }

    pub(crate) fn note_backlog(&mut self, queued: u64) {
        self.step(ForwarderInput::Backlog(queued));
    }

    /// Fails the destination: uses up the tries of the first event of device 1.
    pub(crate) fn fail(&mut self) {
        self.emit(1, 1);
        // Events that wait for others to be delivered with are delivered then.
        self.pass_time(100);
        self.end("1/1", refused());
        for delay_ms in DELAYS_MS {
            self.pass_time(delay_ms);
            self.end("1/1", refused());
        }
    }

    pub(crate) fn restart(&mut self) {
        self.step(ForwarderInput::Command(DestinationCommand::Restart, ()));
    }

    pub(crate) fn replay(&mut self) {
        let reply = self.step(ForwarderInput::Command(DestinationCommand::Replay, ()));
        assert_eq!(reply, Some(DestinationReply::Replayed));
    }

    /// Discards a dead letter, which is not to be delivered from then on.
    pub(crate) fn discard(&mut self, name: &str) -> Result<(), ReplayUnderWay> {
        let found = self.stored.dead.keys().find(|it| self.name(**it) == name);
        let sequence = *found.unwrap_or_else(|| panic!("{name} is not dead"));
        let command = DestinationCommand::Discard([sequence].into());
        let answer = match self.step(ForwarderInput::Command(command, ())) {
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
        let sequence = *self.stored.dead.keys().next().expect("something is dead");
        self.take_step(ForwarderInput::Command(DestinationCommand::Replay, ()));
        let command = DestinationCommand::Discard([sequence].into());
        match self.take_step(ForwarderInput::Command(command, ())) {
            Some(DestinationReply::Discarded(discarded)) => discarded,
            other => panic!("{other:?}"),
        }
    }

    /// The service crashes at any point and starts again.
    pub(crate) fn restart_service(&mut self) {
        self.in_flight.clear();
        self.reads.clear();
        let progress = DestinationProgress {
            since: Sequence(0),
            reached: self.stored.reached.clone().into_iter().collect(),
            retrying: self.stored.retrying.values().copied().collect(),
        };
        let is_left = |(partition, rows): (&Partition, &Vec<QueuedEvent>)| {
            let reached = self
                .stored
                .reached
                .get(partition)
                .copied()
                .unwrap_or_default();
            (rows.last()?.sequence > reached).then_some(*partition)
        };
        let waiting_in = self.queued.iter().filter_map(is_left).collect();
        let destination = self.stored.destination.clone();
        self.forwarder = forwarder(destination, progress, waiting_in);
        self.step(ForwarderInput::Timeout);
    }

    /// The destination accepts everything until nothing is left.
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
        assert!(self.in_flight.len() <= PARALLEL_MAX);
        let events: usize = self.in_flight.values().map(Vec::len).sum();
        assert_eq!(self.forwarder.forwarding().in_flight(), events);
        let mut devices = BTreeSet::new();
        for events in self.in_flight.values() {
            let of: BTreeSet<u16> = events.iter().map(|it| self.names[it].0).collect();
            for device in of {
                assert!(devices.insert(device), "a device is in one delivery");
            }
        }
        for sequence in self.stored.retrying.keys() {
            assert!(!self.stored.dead.contains_key(sequence), "retrying or dead");
        }
    }

    /// Every event was accepted or is gone, and the stored progress agrees.
    pub(crate) fn assert_complete(&self) {
        assert!(self.stored.retrying.is_empty() && self.stored.dead.is_empty());
        for sequence in self.names.keys() {
            assert!(self.done.contains(sequence), "{}", self.name(*sequence));
        }
        assert_eq!(self.passed(), self.names.len(), "each is passed");
        for (partition, rows) in &self.queued {
            let last = rows.last().expect("a partition has rows").sequence;
            assert_eq!(self.stored.reached.get(partition), Some(&last));
        }
    }

    fn deliver(&mut self, first: Sequence, delivered: DeliveryOutcome) {
        let events = self.in_flight.remove(&first).expect("it is in flight");
        self.tries += 1;
        match &delivered {
            DeliveryOutcome::Delivered => {
                self.accepted.extend(&events);
                self.done.extend(&events);
            }
            DeliveryOutcome::Gone => self.done.extend(&events),
            DeliveryOutcome::Failed(_) => {}
        }
        self.step(ForwarderInput::Delivered(first, delivered));
    }

    fn step(&mut self, input: ForwarderInput<()>) -> Option<DestinationReply> {
        let answer = self.take_step(input);
        while !self.reads.is_empty() {
            match self.reads.remove(0) {
                ForwarderTask::Read {
                    partition,
                    after,
                    max,
                } => {
                    let rows = self.queued.get(&partition).into_iter().flatten();
                    let behind = rows.filter(|row| row.sequence > after);
                    let rows: Vec<QueuedEvent> = behind.take(max as usize).copied().collect();
                    self.take_step(ForwarderInput::EventsRead(partition, rows));
                }
                ForwarderTask::ReadDeadLetters { after, max } => {
                    let dead = self.stored.dead.values();
                    let behind = dead.filter(|it| Some(it.queued.sequence) > after);
                    let letters: Vec<DeadLetter> = behind.take(max as usize).cloned().collect();
                    self.take_step(ForwarderInput::DeadLettersRead(letters));
                }
                ForwarderTask::Deliver(_) => unreachable!("it is in flight"),
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
                    self.commit(batch);
                    let mut out = Vec::new();
                    self.forwarder.handle_receipt(Ok(()), &mut out);
                    effects.extend(out);
                }
                ForwarderEffect::Begin(ForwarderTask::Deliver(events)) => {
                    self.assert_in_order(&events);
                    let sequences: Vec<Sequence> = events.iter().map(|it| it.sequence).collect();
                    let before = self.in_flight.insert(sequences[0], sequences);
                    assert_eq!(before, None, "in flight twice");
                }
                ForwarderEffect::Begin(read) => self.reads.push(read),
                ForwarderEffect::Answer((), reply) => answer = reply.ok(),
                ForwarderEffect::ShowState { .. } => {}
                ForwarderEffect::Retarget(_)
                | ForwarderEffect::Test { .. }
                | ForwarderEffect::End(_) => panic!("it was not requested"),
            }
        }
        self.most_in_flight = self.most_in_flight.max(self.in_flight.len());
        answer
    }

    /// Earlier events of the same device with a wanted type were accepted, are gone, are dead
    /// letters, or come before it in the same delivery.
    fn assert_in_order(&self, events: &[QueuedEvent]) {
        let mut before = BTreeSet::new();
        for queued in events {
            let (device, _) = self.names[&queued.sequence];
            for sequence in self.by_device[&device].range(..queued.sequence) {
                let is_done = self.done.contains(sequence)
                    || self.stored.dead.contains_key(sequence)
                    || before.contains(sequence);
                assert!(is_done, "{} comes first", self.name(*sequence));
            }
            before.insert(queued.sequence);
        }
    }

    fn commit(&mut self, batch: Batch) {
        for change in batch.changes {
            match change {
                Change::PutDestination(destination) => self.stored.destination = *destination,
                Change::PutProgress(progress) => self.stored.advance(*progress),
                Change::AppendEntry(entry) => self.log.push(entry.message.to_string()),
                Change::PutCustomer(_)
                | Change::RemoveCustomer(_)
                | Change::RemoveActions(_)
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
                | Change::RemoveDefinition(_)
                | Change::PutJob(_)
                | Change::PutJobRequest { .. }
                | Change::PutJobPart { .. }
                | Change::RemoveJob(_)
                | Change::PutSchedule(_)
                | Change::PutScheduleContents { .. }
                | Change::RemoveSchedule { .. }
                | Change::PutSms { .. }
                | Change::PutBootstrapConfig { .. }
                | Change::RemoveBootstrapConfig(_)
                | Change::PutBootstrap { .. }
                | Change::PutImage(_)
                | Change::RemoveImage { .. }
                | Change::PutCampaign(_)
                | Change::PutCampaignDevice { .. }
                | Change::RemoveCampaignDevices(_)
                | Change::RemoveCampaign { .. } => panic!("a destination does not change it"),
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
        for (partition, reached) in progress.reached {
            let before = self.reached.insert(partition, reached);
            assert!(
                before.is_none_or(|before| before < reached),
                "a cursor only moves on"
            );
        }
        for sequence in progress.released {
            assert!(
                self.retrying.remove(&sequence).is_some(),
                "a released event was retrying"
            );
        }
        for sequence in progress.requeued {
            assert!(
                self.dead.remove(&sequence).is_some(),
                "a requeued event was dead"
            );
        }
        for retry in progress.retrying {
            self.retrying.insert(retry.queued.sequence, retry);
        }
        for letter in progress.dead_lettered {
            self.dead.insert(letter.queued.sequence, letter);
        }
    }
}

fn forwarder(
    destination: Destination,
    progress: DestinationProgress,
    waiting_in: Vec<Partition>,
) -> Forwarder<()> {
    let rules = DeliveryRules {
        retry_delays_ms: DELAYS_MS.into(),
        sms_retry_delays_ms: SMS_DELAYS_MS.into(),
        parallel_max: PARALLEL_MAX,
        backlog_max: BACKLOG_MAX,
    };
    let forwarding = Forwarding::restore(Arc::new(rules), destination, progress, waiting_in);
    Forwarder::new(forwarding)
}

fn event_id(at: Timestamp, number: u64) -> EventId {
    let mut bytes = *EventId::first_at(at).as_bytes();
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    EventId::from_bytes(bytes)
}

fn key(device: u16) -> DeviceKey {
    let device = DeviceId::parse(&format!("meter-{device}")).unwrap();
    DeviceKey::of(&customer(), &device)
}

/// Another device of the same partition.
pub(crate) fn neighbour_of(device: u16) -> u16 {
    let is_near =
        |other: &u16| *other != device && key(*other).partition() == key(device).partition();
    (0..).find(is_near).expect("there are few partitions")
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
            batching: None,
        }),
        event_types: wants,
        state: DestinationState::RolledOut,
        failure: None,
        replay: Replay::None,
        created_at: START,
        updated_at: START,
    }
}
