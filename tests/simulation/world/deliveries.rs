//! How events reach the systems of customers: forwarders, their tasks, endpoints, and their faults.

use engine::change::{Batch, Owner};
use engine::delivery::backlog::QueuedEvent;
use engine::delivery::command::{DestinationCommand, DestinationReply};
use engine::delivery::forwarder::{ForwarderEffect, ForwarderInput};
use engine::delivery::forwarders::{
    CommandRoute, DestinationUnreadable, ForwarderExit, SupervisorEffect,
};
use engine::delivery::forwarding::{DeliveryOutcome, FailedDelivery, ForwarderTask, Forwarding};
use engine::dispatch::shard_map::ArbiterId;
use engine::ids::{DestinationId, Partition};
use engine::moment::{Moment, Timestamp};
use engine::supervision::Generation;
use engine::supervision::Unserved;

use super::World;
use crate::disk::Author;
use crate::endpoints::TIMEOUT_MS;
use crate::event::{Event, EventsInTransit};
use crate::laws::delivering;
use crate::service::{CommitResult, deliverer_in};
use crate::trace::TraceEvent;
use crate::world::customers::customer;

impl World {
    /// The service starts: each destination has a forwarder, which is restored.
    pub(super) fn restore_forwarders(&mut self) {
        for id in self.service.shard_map().arbiters() {
            self.restore_forwarders_of(id);
        }
    }

    /// A node takes a partition: it delivers to the destinations of it.
    pub(super) fn restore_forwarders_of(&mut self, deliverer: ArbiterId) {
        let all = self.disk.durable.outbox().destinations();
        let all = all.map(|record| record.destination.id);
        let own = all.filter(|id| self.service.deliverer_of(*id) == deliverer);
        for id in own.collect::<Vec<DestinationId>>() {
            self.restore_forwarder(id);
        }
    }

    /// A node gives a partition up, or has lost it: it does not deliver to its destinations any
    /// more.
    pub(super) fn end_forwarders_of(&mut self, deliverer: ArbiterId) {
        let shard_map = self.service.shard_map();
        for partition in Partition::all().filter(|it| deliverer_in(shard_map, *it) == deliverer) {
            let deliveries = &mut self.service.deliveries;
            let ended = deliveries.forwarders.forget_partition(partition);
            for id in deliveries.remove(&ended) {
                self.links.remove(&id);
            }
        }
    }

    /// A destination is durable: it is read at once, or once a node has its partition.
    pub(super) fn restore_forwarder(&mut self, id: DestinationId) {
        let deliverer = self.service.deliverer_of(id);
        if self.service.open_run_of(deliverer).is_none() {
            return;
        }
        self.service.deliveries.forwarders.restore(id, customer());
        self.read_forwarder(id);
    }

    fn read_forwarder(&mut self, id: DestinationId) {
        let run = self.service.run();
        let at_ms = self.now_ms + self.read_ms();
        self.queue.push(at_ms, Event::ForwarderRead { id, run });
    }

    /// Performs an effect of the supervisor of forwarders.
    fn supervise(&mut self, id: DestinationId, effect: SupervisorEffect<Forwarding>) {
        match effect {
            SupervisorEffect::Spawn(generation, found) => {
                self.spawn_forwarder(id, generation, found);
            }
            SupervisorEffect::RestoreAt(at) => {
                let run = self.service.run();
                self.queue
                    .push(at.as_ms(), Event::ForwarderRestored { id, run });
            }
            SupervisorEffect::LogRestore(_) => {
                self.census.forwarders_dropped += 1;
                self.note_of(id, "is dropped");
            }
            SupervisorEffect::LogParked => self.note_of(id, "is parked"),
        }
    }

    pub(super) fn forwarder_restored(&mut self, id: DestinationId, run: u64) {
        let forwarders = &self.service.deliveries.forwarders;
        if self.service.is_up_since(run) && forwarders.handle_timeout(id).is_some() {
            self.read_forwarder(id);
        }
    }

    /// The disk was read for a forwarder to be restored.
    pub(super) fn forwarder_read(&mut self, id: DestinationId, run: u64) {
        if !self.service.is_up_since(run) {
            return;
        }
        let found = match self.read() {
            Ok(()) => Ok(self.forwarding_of(id)),
            Err(_) => Err(DestinationUnreadable),
        };
        let now = Timestamp::from_ms(self.now_ms);
        let forwarders = &mut self.service.deliveries.forwarders;
        if let Some(effect) = forwarders.handle_restored(now, id, found) {
            self.supervise(id, effect);
        }
    }

    fn forwarding_of(&self, id: DestinationId) -> Option<Forwarding> {
        let outbox = self.disk.durable.outbox();
        let record = outbox.destination(id)?;
        let rules = self.settings.delivery.clone();
        let (destination, standing) = (record.destination.clone(), record.standing());
        let waiting_in = outbox.partitions_waiting(id);
        Some(Forwarding::restore(
            rules,
            destination,
            standing,
            waiting_in,
        ))
    }

    fn spawn_forwarder(
        &mut self,
        id: DestinationId,
        generation: Generation,
        forwarding: Forwarding,
    ) {
        let number = self.next_number();
        self.laws.ledgers.forwarder_restored(id);
        self.service
            .deliveries
            .start((id, generation), number, forwarding);
        self.start_link(id, number);
        self.census.forwarders_restored += 1;
        self.note_of(id, "is served");
        self.tell_forwarder(id, ForwarderInput::Timeout);
    }

    /// Sends a command to a destination.
    pub(crate) fn ask_destination(&mut self, id: DestinationId, question: DestinationCommand) {
        self.census.restarts += u64::from(matches!(question, DestinationCommand::Restart));
        self.census.replays += u64::from(matches!(question, DestinationCommand::Replay));
        self.note_of(id, "is asked");
        match self.service.deliveries.forwarders.route(id, &question) {
            CommandRoute::Deliver(_) => {
                self.tell_forwarder(id, ForwarderInput::Command(question, ()))
            }
            CommandRoute::Refuse(Unserved::Busy | Unserved::Unknown | Unserved::Failed) => {}
            CommandRoute::Remove(_) => panic!("no forwarder panics here, and none is parked"),
        }
    }

    /// Passes an input to a destination's machine, now or in its turn.
    pub(super) fn tell_forwarder(&mut self, id: DestinationId, input: ForwarderInput<()>) {
        if let Some(running) = self.service.deliveries.running_mut(id) {
            running.wait(input);
            self.take_steps(id);
        }
    }

    /// Lets a machine handle its inputs, up to the next step that has to be saved.
    fn take_steps(&mut self, id: DestinationId) {
        while let Some(running) = self.service.deliveries.running_mut(id)
            && let Some(input) = running.next_input()
        {
            let mut m = self.moment();
            if let ForwarderInput::Delivered(first, delivered) = &input {
                let events = self.laws.ledgers.landed(id, *first);
                if let DeliveryOutcome::Delivered | DeliveryOutcome::Gone = delivered {
                    self.laws.ledgers.settled(id, &events);
                }
            }
            let running = self.service.deliveries.running_mut(id);
            let machine = &mut running.expect("it has an input").machine;
            let mut out = Vec::new();
            machine.handle(&mut m, input, &mut out);
            self.perform_for(id, None, out);
        }
    }

    /// A step of a destination is committed or failed.
    pub(super) fn forwarder_step_ended(
        &mut self,
        (id, number, step): (DestinationId, u64, u64),
        receipt: CommitResult,
    ) {
        let Some(running) = self.service.deliveries.same(id, number) else {
            return;
        };
        let saving = running.saving.take();
        assert_eq!(saving, Some(step), "receipts come in the order of steps");
        let mut out = Vec::new();
        let receipt = match receipt {
            CommitResult::Durable => Ok(()),
            CommitResult::Unsaved | CommitResult::Conflict => Err(Unserved::Failed),
        };
        running.machine.handle_receipt(receipt, &mut out);
        self.perform_for(id, Some(step), out);
        self.take_steps(id);
    }

    /// Performs the effects of a step.
    fn perform_for(
        &mut self,
        id: DestinationId,
        mut step: Option<u64>,
        effects: Vec<ForwarderEffect<()>>,
    ) {
        for effect in effects {
            let verdict = self.laws.performs_effects(step);
            match effect {
                ForwarderEffect::Commit(batch) => step = Some(self.commit_step(id, batch)),
                ForwarderEffect::Begin(task) => {
                    self.check(verdict);
                    self.begin(id, task);
                }
                ForwarderEffect::Answer((), answer) => {
                    if answer.is_ok() {
                        self.check(verdict);
                    }
                    if let Ok(DestinationReply::Removed) = answer {
                        self.census.destinations_removed += 1;
                        self.apply_policy();
                    }
                }
                ForwarderEffect::End(end) => return self.end_forwarder(id, end),
                ForwarderEffect::Retarget(_)
                | ForwarderEffect::Test { .. }
                | ForwarderEffect::ShowState { .. } => {}
            }
        }
        self.arm_forwarder(id);
    }

    fn commit_step(&mut self, id: DestinationId, batch: Batch) -> u64 {
        let step = self.next_number();
        let deliverer = self.service.run_of(self.service.deliverer_of(id));
        let owner = Owner::Deliveries {
            partition: id.partition(),
            epoch: deliverer.expect("whoever delivers runs").epoch,
        };
        let batch = Batch { owner, ..batch };
        self.laws.will_be_saved(step);
        let running = self.service.deliveries.running_mut(id);
        let running = running.expect("it took a step");
        running.saving = Some(step);
        let generation = running.number;
        let author = Author::Forwarder {
            id,
            generation,
            step,
        };
        self.commit_as(author, batch);
        step
    }

    fn end_forwarder(&mut self, id: DestinationId, end: ForwarderExit) {
        let ended = self.service.deliveries.stop(id).generation;
        self.links.remove(&id);
        let now = Timestamp::from_ms(self.now_ms);
        let forwarders = &mut self.service.deliveries.forwarders;
        for effect in forwarders.handle_ended(now, (id, ended), end) {
            self.supervise(id, effect);
        }
    }

    fn begin(&mut self, id: DestinationId, task: ForwarderTask) {
        let running = self.service.deliveries.running(id);
        let generation = running.expect("whose errand it is").number;
        if let ForwarderTask::Deliver(waiting) = task {
            return self.set_out(id, generation, waiting);
        }
        let at_ms = self.now_ms + self.read_ms();
        let event = Event::ReadForForwarder {
            id,
            generation,
            task,
        };
        self.queue.push(at_ms, event);
    }

    fn arm_forwarder(&mut self, id: DestinationId) {
        let Some(running) = self.service.deliveries.running_mut(id) else {
            return;
        };
        let generation = running.number;
        if let Some(at) = running.arm() {
            let at_ms = at.as_ms().max(self.now_ms + 1);
            self.queue
                .push(at_ms, Event::ForwarderDue { id, generation });
        }
    }

    pub(super) fn forwarder_due(&mut self, id: DestinationId, generation: u64) {
        let now = Timestamp::from_ms(self.now_ms);
        if let Some(running) = self.service.deliveries.same(id, generation) {
            running.ring(now);
            self.tell_forwarder(id, ForwarderInput::Timeout);
        }
    }

    pub(super) fn read_for_forwarder(
        &mut self,
        id: DestinationId,
        generation: u64,
        task: ForwarderTask,
    ) {
        if self.service.deliveries.same(id, generation).is_none() {
            return;
        }
        if self.read().is_err() {
            return self.tell_forwarder(id, ForwarderInput::ReadFailed(task));
        }
        let outbox = self.disk.durable.outbox();
        let input = match task {
            ForwarderTask::Read {
                partition,
                after,
                max,
            } => {
                let rows = outbox.waiting(partition, after).take(max as usize);
                ForwarderInput::EventsRead(partition, rows.copied().collect())
            }
            ForwarderTask::ReadDeadLetters { after, max } => {
                let record = outbox.destination(id);
                ForwarderInput::DeadLettersRead(
                    record.map_or(Vec::new(), |record| record.dead_behind(after, max)),
                )
            }
            ForwarderTask::Deliver(_) => panic!("it sets out"),
        };
        self.tell_forwarder(id, input);
    }

    /// Events are sent to an endpoint.
    fn set_out(&mut self, id: DestinationId, generation: u64, waiting: Vec<QueuedEvent>) {
        let durable = &self.disk.durable;
        let ledgers = &self.laws.ledgers;
        let verdict =
            delivering::events_of_a_device_keep_their_order(ledgers, id, &waiting, durable);
        self.check(verdict);
        let ledgers = &mut self.laws.ledgers;
        let verdict = delivering::a_device_is_in_one_delivery(ledgers, id, &waiting);
        self.check(verdict);
        self.census.batches += u64::from(waiting.len() > 1);
        let parcel = EventsInTransit {
            id,
            generation,
            waiting,
        };
        let at_ms = self.now_ms + self.read_ms();
        self.queue.push(at_ms, Event::Delivers { parcel });
    }

    /// Events are read and reach the endpoint, which answers according to its behaviour.
    pub(super) fn delivers(&mut self, parcel: EventsInTransit) {
        let (id, generation) = (parcel.id, parcel.generation);
        let first = parcel.waiting[0].sequence;
        // A delivery in flight at a crash may still arrive.
        let is_awaited = self.service.deliveries.same(id, generation).is_some();
        if !is_awaited && self.rng.below(2) == 0 {
            return;
        }
        if is_awaited && self.read().is_err() {
            self.laws.ledgers.landed(id, first);
            let failed = ForwarderTask::Deliver(parcel.waiting);
            return self.tell_forwarder(id, ForwarderInput::ReadFailed(failed));
        }
        let outbox = self.disk.durable.outbox();
        let mut stored = parcel.waiting.iter();
        let Some(who) = stored.find_map(|queued| outbox.device_of(queued.event)) else {
            self.census.gone += 1;
            return self.answered_in(1, parcel, DeliveryOutcome::Gone);
        };
        if self.endpoints.is_broker(id) {
            return self.publish(parcel, who);
        }
        let now_ms = self.now_ms;
        let reception = self.endpoints.receive(id, now_ms, Some(who), &mut self.rng);
        self.census.count_reception(&reception);
        let sequence = first.0;
        let how = reception.answer.unwrap_or("does not answer");
        self.note(TraceEvent::Tried { id, sequence, how });
        let not_taken = |why: &str| {
            DeliveryOutcome::Failed(FailedDelivery {
                why: why.into(),
                pause_ms: 0,
                about: None,
            })
        };
        match reception.answer {
            Some(_) if reception.is_taken => {
                self.answered_in(reception.after_ms, parcel, DeliveryOutcome::Delivered);
            }
            Some(why) => self.answered_in(reception.after_ms, parcel, not_taken(why)),
            None => self.answered_in(TIMEOUT_MS, parcel, not_taken("did not answer in time")),
        }
    }

    pub(super) fn answered_in(
        &mut self,
        ms: i64,
        parcel: EventsInTransit,
        delivered: DeliveryOutcome,
    ) {
        let event = Event::Delivered { parcel, delivered };
        self.queue.push(self.now_ms + ms, event);
    }

    pub(super) fn delivered(&mut self, parcel: &EventsInTransit, delivered: DeliveryOutcome) {
        let (id, first) = (parcel.id, parcel.waiting[0].sequence);
        let is_awaited = self
            .service
            .deliveries
            .same(id, parcel.generation)
            .is_some();
        if is_awaited {
            self.tell_forwarder(id, ForwarderInput::Delivered(first, delivered));
        }
    }

    /// An event is queued in a partition, durably: forwarders are notified.
    pub(super) fn notify_forwarders(&mut self, partition: Partition) {
        for id in self.service.deliveries.ids() {
            let Some(running) = self.service.deliveries.running_mut(id) else {
                continue;
            };
            if running.note(partition) {
                let generation = running.number;
                let at_ms = self.now_ms + i64::from(self.rng.below(4));
                self.queue
                    .push(at_ms, Event::PartitionsNotified { id, generation });
            }
        }
    }

    pub(super) fn partitions_notified(&mut self, id: DestinationId, generation: u64) {
        if let Some(running) = self.service.deliveries.same(id, generation) {
            let partitions = running.take_notified_partitions();
            self.tell_forwarder(id, ForwarderInput::PartitionsReady(partitions));
        }
    }

    fn note_of(&mut self, id: DestinationId, does: &'static str) {
        self.note(TraceEvent::Post { id, does });
    }

    pub(super) fn moment(&mut self) -> Moment {
        let entropy = u128::from(self.rng.number()) << 64 | u128::from(self.rng.number());
        Moment::new(Timestamp::from_ms(self.now_ms), entropy)
    }
}
