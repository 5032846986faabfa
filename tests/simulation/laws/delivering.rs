//! Laws about deliveries: complete, in order, and independent of other destinations.

use std::collections::{BTreeMap, BTreeSet};

use engine::delivery::backlog::{ProgressUpdate, QueuedEvent, Sequence};
use engine::ids::{DestinationId, DeviceKey};

use super::{Verdict, hold};
use crate::disk::{DestinationRecord, Durable};
use crate::endpoints::EndpointBehaviour;

/// How long a destination that accepts everything at once may be without a durable event. Only time
/// in which the service is up and the disk is at rest counts.
pub(crate) const DELAY_MAX_MS: i64 = 300_000;

/// What destinations have received, as far as the laws need it.
#[derive(Default)]
pub(crate) struct Ledgers {
    by_destination: BTreeMap<DestinationId, Ledger>,
    /// Time in which nothing outside the service delayed deliveries.
    calm_ms: i64,
}

/// The events that a destination is owed.
struct Ledger {
    /// Its behaviour while it is not made healthy.
    behaviour: EndpointBehaviour,
    owed: BTreeMap<Sequence, OwedEvent>,
    by_device: BTreeMap<DeviceKey, BTreeSet<Sequence>>,
    /// What its machine has in flight: the events of each delivery, by the first one.
    under_way: BTreeMap<Sequence, Vec<QueuedEvent>>,
    /// What it has received, if it is a broker.
    received: BTreeSet<Sequence>,
    /// The dead letters that were replayed: later events may be on their way before them.
    replayed: BTreeSet<Sequence>,
}

/// An event that a destination wants and has not received.
struct OwedEvent {
    waiting: QueuedEvent,
    /// The calm time when it became durable.
    since_ms: i64,
}

impl Ledgers {
    /// A destination was created.
    pub(crate) fn created(&mut self, id: DestinationId, behaviour: EndpointBehaviour) {
        let ledger = Ledger {
            behaviour,
            owed: BTreeMap::new(),
            by_device: BTreeMap::new(),
            under_way: BTreeMap::new(),
            received: BTreeSet::new(),
            replayed: BTreeSet::new(),
        };
        self.by_destination.entry(id).or_insert(ledger);
    }

    pub(crate) fn removed(&mut self, id: DestinationId) {
        self.by_destination.remove(&id);
    }

    /// Time passed in which the service was up and the disk at rest.
    pub(crate) fn be_calm_for(&mut self, ms: i64) {
        self.calm_ms += ms;
    }

    /// An event is durable and numbered: every destination that wants it is owed it.
    pub(crate) fn numbered(&mut self, waiting: &QueuedEvent, durable: &Durable) {
        for record in durable.outbox().destinations() {
            let ledger = self.by_destination.get_mut(&record.destination.id);
            let wants = record.destination.event_types.wants(waiting);
            let ledger = ledger.expect("a destination on the disk has a ledger");
            if wants {
                let since_ms = self.calm_ms;
                let waiting = *waiting;
                ledger
                    .owed
                    .insert(waiting.sequence, OwedEvent { waiting, since_ms });
                let of_device = ledger.by_device.entry(waiting.device).or_default();
                of_device.insert(waiting.sequence);
            }
        }
    }

    /// Dead letters of a destination are to be delivered after all.
    pub(crate) fn requeued(&mut self, progress: &ProgressUpdate) {
        let calm_ms = self.calm_ms;
        let Some(ledger) = self.by_destination.get_mut(&progress.destination) else {
            return;
        };
        ledger.replayed.extend(&progress.requeued);
        for sequence in &progress.requeued {
            let owed = ledger.owed.get_mut(sequence);
            owed.into_iter().for_each(|owed| owed.since_ms = calm_ms);
        }
    }

    /// A machine is restored for a destination, and has nothing in flight.
    pub(crate) fn forwarder_restored(&mut self, id: DestinationId) {
        if let Some(ledger) = self.by_destination.get_mut(&id) {
            ledger.under_way.clear();
        }
    }

    /// A delivery ended with or without success; returns its events.
    pub(crate) fn landed(&mut self, id: DestinationId, first: Sequence) -> Vec<QueuedEvent> {
        let ledger = self.by_destination.get_mut(&id);
        let landed = ledger.and_then(|ledger| ledger.under_way.remove(&first));
        landed.unwrap_or_default()
    }

    /// A destination accepted events and the service knows it, or they are no longer stored.
    pub(crate) fn settled(&mut self, id: DestinationId, events: &[QueuedEvent]) {
        let Some(ledger) = self.by_destination.get_mut(&id) else {
            return;
        };
        for queued in events {
            ledger.owed.remove(&queued.sequence);
            if let Some(of_device) = ledger.by_device.get_mut(&queued.device) {
                of_device.remove(&queued.sequence);
            }
        }
    }
}

/// A destination passes an event only after accepting it or with a dead letter or a retry of it. A
/// retry is dropped only for one of the other two.
pub(crate) fn passed_events_are_settled(
    ledgers: &Ledgers,
    progress: &ProgressUpdate,
    durable: &Durable,
) -> Verdict {
    let law = "what_is_acknowledged_is_delivered";
    let ledger = ledgers.by_destination.get(&progress.destination);
    let record = durable.outbox().destination(progress.destination);
    let (Some(ledger), Some(record)) = (ledger, record) else {
        return Ok(());
    };
    let becomes_dead = |sequence: &Sequence| {
        let mut dead_lettered = progress.dead_lettered.iter();
        let was_dead = record.dead.contains_key(sequence) && !progress.requeued.contains(sequence);
        was_dead || dead_lettered.any(|letter| letter.queued.sequence == *sequence)
    };
    let becomes_held = |sequence: &Sequence| {
        let mut held = progress.retrying.iter();
        let was_held = record.held.contains_key(sequence) && !progress.released.contains(sequence);
        was_held || held.any(|held| held.queued.sequence == *sequence)
    };
    let is_lost = |sequence: &Sequence| {
        let is_owed = ledger.owed.contains_key(sequence);
        is_owed && !becomes_dead(sequence) && !becomes_held(sequence)
    };
    for (partition, reached) in &progress.reached {
        let rows = durable
            .outbox()
            .waiting(*partition, record.place_in(*partition));
        let mut passed = rows.map(|row| row.sequence).filter(|row| row <= reached);
        let lost = passed.find(is_lost);
        hold(law, lost.is_none(), || {
            format!("{lost:?} is passed and was not accepted: {progress:?}")
        })?;
    }
    let mut dropped = progress.released.iter().chain(&progress.requeued);
    let lost = dropped.find(|sequence| is_lost(sequence));
    hold(law, lost.is_none(), || {
        format!("{lost:?} is dropped and was not accepted: {progress:?}")
    })
}

/// Once everything is at rest, each destination has every event it wants, or a dead letter of it.
pub(crate) fn what_is_acknowledged_is_delivered(ledgers: &Ledgers, durable: &Durable) -> Verdict {
    let mut owed = all_owed(ledgers, durable);
    let lost = owed.find(|(record, owed)| !record.dead.contains_key(&owed.waiting.sequence));
    let lost = lost.map(|(record, owed)| (record.destination.id, owed.waiting));
    hold("what_is_acknowledged_is_delivered", lost.is_none(), || {
        format!("{lost:?} was not delivered and has no dead letter")
    })
}

/// Once the dead letters were replayed, each destination has everything.
pub(crate) fn replayed_dead_letters_are_delivered(ledgers: &Ledgers, durable: &Durable) -> Verdict {
    let mut owed = all_owed(ledgers, durable);
    let lost = owed.next();
    let lost = lost.map(|(record, owed)| (record.destination.id, owed.waiting));
    hold("what_is_acknowledged_is_delivered", lost.is_none(), || {
        format!("{lost:?} was not delivered by the replay")
    })
}

fn all_owed<'a>(
    ledgers: &'a Ledgers,
    durable: &'a Durable,
) -> impl Iterator<Item = (&'a DestinationRecord, &'a OwedEvent)> {
    let destinations = durable.outbox().destinations();
    destinations.flat_map(|record| {
        let ledger = ledgers.by_destination.get(&record.destination.id);
        let owed = ledger.into_iter().flat_map(|ledger| ledger.owed.values());
        owed.map(move |owed| (record, owed))
    })
}

/// The events of a device that are in flight to a destination are in one delivery.
pub(crate) fn a_device_is_in_one_delivery(
    ledgers: &mut Ledgers,
    id: DestinationId,
    events: &[QueuedEvent],
) -> Verdict {
    let Some(ledger) = ledgers.by_destination.get_mut(&id) else {
        return Ok(());
    };
    let is_of_device = |under_way: &&QueuedEvent| {
        let mut devices = events.iter().map(|queued| queued.device);
        devices.any(|device| device == under_way.device)
    };
    let other = ledger.under_way.values().flatten().find(is_of_device);
    hold(
        "events_of_a_device_keep_their_order",
        other.is_none(),
        || format!("{events:?} leave, and {other:?} is under way"),
    )?;
    ledger.under_way.insert(events[0].sequence, events.to_vec());
    Ok(())
}

/// The events of a device that are tried are the oldest that the destination has not received, dead
/// letters excepted, in their order.
pub(crate) fn events_of_a_device_keep_their_order(
    ledgers: &Ledgers,
    id: DestinationId,
    events: &[QueuedEvent],
    durable: &Durable,
) -> Verdict {
    let ledger = ledgers.by_destination.get(&id);
    let record = durable.outbox().destination(id);
    let (Some(ledger), Some(record)) = (ledger, record) else {
        return Ok(());
    };
    let mut before_in_delivery = BTreeSet::new();
    for queued in events {
        let of_device = ledger.by_device.get(&queued.device);
        let mut before = of_device
            .into_iter()
            .flat_map(|of_device| of_device.range(..queued.sequence));
        let left_out = before.find(|sequence| {
            !record.dead.contains_key(sequence) && !before_in_delivery.contains(*sequence)
        });
        hold(
            "events_of_a_device_keep_their_order",
            left_out.is_none(),
            || format!("{queued:?} is tried before {left_out:?}"),
        )?;
        before_in_delivery.insert(queued.sequence);
    }
    Ok(())
}

/// A broker receives an event for the first time after it received those before of the device, dead
/// letters excepted, however its connections end.
pub(crate) fn a_broker_receives_events_in_order(
    ledgers: &mut Ledgers,
    id: DestinationId,
    (device, sequence): (DeviceKey, Sequence),
    durable: &Durable,
) -> Verdict {
    let ledger = ledgers.by_destination.get_mut(&id);
    let record = durable.outbox().destination(id);
    let (Some(ledger), Some(record)) = (ledger, record) else {
        return Ok(());
    };
    if !ledger.received.insert(sequence) {
        return Ok(());
    }
    let of_device = ledger.by_device.get(&device);
    let mut before = of_device
        .into_iter()
        .flat_map(|of_device| of_device.range(..sequence));
    let is_excepted = |it: &Sequence| record.dead.contains_key(it) || ledger.replayed.contains(it);
    let left_out = before.find(|it| !is_excepted(it) && !ledger.received.contains(it));
    hold(
        "a_broker_has_every_settled_message_and_each_sender_in_order",
        left_out.is_none(),
        || format!("{sequence:?} is received before {left_out:?}"),
    )
}

/// An event that is reported as delivered to a broker was received by it.
pub(crate) fn a_settled_event_was_received(
    ledgers: &Ledgers,
    id: DestinationId,
    sequence: Sequence,
) -> Verdict {
    let ledger = ledgers.by_destination.get(&id);
    hold(
        "a_broker_has_every_settled_message_and_each_sender_in_order",
        ledger.is_none_or(|ledger| ledger.received.contains(&sequence)),
        || format!("{sequence:?} is delivered, and {id} does not have it"),
    )
}

/// An event that a destination accepts at once arrives soon, whatever other destinations and
/// devices do.
pub(crate) fn no_destination_delays_another(ledgers: &Ledgers, durable: &Durable) -> Verdict {
    for (id, ledger) in &ledgers.by_destination {
        let Some(record) = durable.outbox().destination(*id) else {
            continue;
        };
        let is_late = |owed: &&OwedEvent| ledgers.calm_ms - owed.since_ms > DELAY_MAX_MS;
        let takes = |owed: &&OwedEvent| {
            let who = durable.who(owed.waiting.device);
            ledger.behaviour.always_takes(who) && !record.dead.contains_key(&owed.waiting.sequence)
        };
        let mut late = ledger.owed.values().take_while(is_late);
        let late = late.find(takes).map(|owed| owed.waiting);
        hold("no_destination_delays_another", late.is_none(), || {
            let (behaviour, state) = (ledger.behaviour, record.destination.state);
            format!("{id} is {behaviour:?} and {state:?}, and waits for {late:?}")
        })?;
    }
    Ok(())
}
