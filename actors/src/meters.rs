//! What are the metrics of an arbiter?
//!
//! An arbiter counts in plain numbers of its own and publishes them once a second, so that a
//! datagram costs an addition and no two threads share a cache line for it.

pub(crate) mod census;
pub(crate) mod family;
pub(crate) mod pending;
pub(crate) mod sent;
pub(crate) mod words;

use std::cell::Cell;
use std::time::Duration;

use engine::associations::AssociationCounts;
use engine::dispatch::datagram_form::DatagramForm;
use engine::dispatch::shard_map::ArbiterId;
use engine::dispatch::{DropReason, RateScope};
use engine::moment::Timestamp;
use engine::step_event::{StepEvent, StepEventKind, UplinkKind};
use metrics::{Counter, Gauge, counter, gauge};

use crate::drop_tally::DropTally;

use census::{Census, DeviceTotals};
use family::{Count, DatagramCounts, Family};

/// How often an arbiter publishes: well within any interval at which metrics are scraped.
pub(crate) const PUBLISH_EVERY: Duration = Duration::from_secs(1);

/// What an arbiter reports when it publishes.
pub(crate) struct ArbiterReading<'a> {
    /// The time of the report.
    pub(crate) now: Timestamp,
    /// Datagrams that reached no device.
    pub(crate) dropped: &'a DropTally,
    /// Lookups of devices in the store that are in progress.
    pub(crate) lookups: usize,
    /// What the DTLS sessions of the arbiter went through.
    pub(crate) associations: AssociationCounts,
}

/// The metrics of an arbiter.
pub(crate) struct ArbiterMeters {
    /// Datagrams taken from the sockets.
    pub(crate) received: DatagramCounts,
    /// Messages for which there was no session.
    pub(crate) unsent: Count,
    /// Datagrams forwarded to another arbiter.
    pub(crate) forwarded: Count,
    /// The presence and activity of the devices in memory.
    pub(crate) census: Census,
    dropped: Family<{ words::DROP_REASONS.len() }>,
    uplinks: Family<{ words::UPLINK_KINDS.len() }>,
    begun: Family<{ words::PURPOSES.len() }>,
    repeated: Count,
    acknowledged: Count,
    ended: Family<{ words::EXCHANGE_OUTCOMES.len() }>,
    notified: Family<{ words::NOTIFICATION_OUTCOMES.len() }>,
    sends: Family<{ words::NOTIFICATION_OUTCOMES.len() }>,
    data: Family<{ words::DATA_SORTS }>,
    observations_lost: Count,
    created: Family<{ words::ASKED.len() }>,
    concluded: Family<{ words::FINISHED }>,
    handshakes: Family<{ words::HANDSHAKE_OUTCOMES.len() }>,
    records_dropped: Family<{ words::RECORD_DROPS.len() }>,
    cookies: Count,
    address_changes: Count,
    restored: Counter,
    restored_before: Cell<u64>,
    restore_progress: Gauge,
    levels: Levels,
}

/// The gauges.
struct Levels {
    unregistered: Gauge,
    awake: Gauge,
    asleep: Gauge,
    scheduled: Gauge,
    in_progress: Gauge,
    exchanges: Gauge,
    lookups: Gauge,
    sessions: Gauge,
    handshakes: Gauge,
}

impl ArbiterMeters {
    /// The metrics of an arbiter, all at zero.
    pub(crate) fn of(arbiter: ArbiterId) -> Self {
        words::describe();
        let arbiter = arbiter.index().to_string();
        let here = arbiter.as_str();
        let total = |name| counter!(name, "arbiter" => arbiter.clone());
        let count = |name| Count::new(total(name));
        Self {
            received: DatagramCounts::new(words::RECEIVED, here, DatagramForm::all()),
            unsent: count(words::UNSENT),
            forwarded: count(words::FORWARDED),
            census: Census::default(),
            dropped: Family::new(words::DROPPED, here, "reason", words::DROP_REASONS),
            uplinks: Family::new(words::HANDLED, here, "kind", words::UPLINK_KINDS),
            begun: Family::new(words::BEGUN, here, "purpose", words::PURPOSES),
            repeated: count(words::RETRANSMITTED),
            acknowledged: count(words::ACKNOWLEDGED),
            ended: Family::new(words::ENDED, here, "outcome", words::EXCHANGE_OUTCOMES),
            notified: Family::new(
                words::NOTIFIED,
                here,
                "outcome",
                words::NOTIFICATION_OUTCOMES,
            ),
            sends: Family::new(words::SENDS, here, "outcome", words::NOTIFICATION_OUTCOMES),
            data: Family::of(words::data(here)),
            observations_lost: count(words::OBSERVATIONS_LOST),
            handshakes: Family::new(
                words::HANDSHAKES,
                here,
                "outcome",
                words::HANDSHAKE_OUTCOMES,
            ),
            records_dropped: Family::new(
                words::RECORDS_DROPPED,
                here,
                "reason",
                words::RECORD_DROPS,
            ),
            cookies: count(words::COOKIES),
            address_changes: count(words::ADDRESS_CHANGES),
            created: Family::of(words::created(here)),
            concluded: Family::of(words::concluded(here)),
            restored: total(words::RESTORED),
            restored_before: Cell::new(0),
            restore_progress: gauge!(words::RESTORE_PROGRESS, "arbiter" => arbiter.clone()),
            levels: Levels::of(here),
        }
    }

    /// Counts a message of a device by its kind.
    pub(crate) fn uplink(&self, kind: UplinkKind) {
        self.uplinks.one(kind as usize);
    }

    /// Counts the events of a step.
    pub(crate) fn events(&self, events: &[StepEvent]) {
        for step_event in events {
            match step_event.kind {
                StepEventKind::Created(action) => self.created.one(words::place_of(action)),
                StepEventKind::Concluded(action, status) => {
                    self.concluded
                        .one(words::place_of_concluded(action, status));
                }
                StepEventKind::Begun(purpose) => self.begun.one(purpose as usize),
                StepEventKind::Repeated => self.repeated.one(),
                StepEventKind::Acknowledged => self.acknowledged.one(),
                StepEventKind::Ended(ending) => self.ended.one(ending as usize),
                StepEventKind::Notified(news) => self.notified.one(news as usize),
                StepEventKind::Sent(news) => self.sends.one(news as usize),
                StepEventKind::DataSent(over, news) => {
                    self.data.one(words::place_of_data(over, news))
                }
                StepEventKind::ObservationLost => self.observations_lost.one(),
            }
        }
    }

    /// Publishes the counts of the arbiter and its report.
    pub(crate) fn publish(&self, reading: &ArbiterReading<'_>) {
        self.received.publish();
        self.publish_dropped(reading.dropped);
        self.publish_associations(&reading.associations);
        self.uplinks.publish();
        self.begun.publish();
        self.ended.publish();
        self.notified.publish();
        self.sends.publish();
        self.data.publish();
        self.created.publish();
        self.concluded.publish();
        let counts = [
            &self.unsent,
            &self.forwarded,
            &self.repeated,
            &self.acknowledged,
            &self.observations_lost,
            &self.cookies,
            &self.address_changes,
        ];
        counts.into_iter().for_each(Count::publish);
        let totals = self.census.totals(reading.now);
        self.levels.publish(&totals, reading.lookups);
    }

    /// Publishes the progress of the start: how many devices it restored, and which part of the
    /// arbiter's keys is done, from 0 to 1.
    pub(crate) fn publish_progress(&self, restored: u64, part: f64) {
        let before = self.restored_before.replace(restored);
        self.restored.increment(restored.saturating_sub(before));
        self.restore_progress.set(part);
    }

    /// Publishes that nothing is in memory any more.
    pub(crate) fn end(&self) {
        self.levels.publish(&DeviceTotals::default(), 0);
        self.restore_progress.set(1.0);
        self.levels.sessions.set(0.0);
        self.levels.handshakes.set(0.0);
    }

    fn publish_associations(&self, counts: &AssociationCounts) {
        for (place, count) in counts.handshakes.into_iter().enumerate() {
            self.handshakes.reach(place, count);
        }
        let known = [
            counts.malformed,
            counts.not_authentic,
            counts.unknown_connection_ids,
        ];
        let other = counts.dropped.saturating_sub(known[1] + known[2]);
        for (place, count) in known.into_iter().chain([other]).enumerate() {
            self.records_dropped.reach(place, count);
        }
        self.handshakes.publish();
        self.records_dropped.publish();
        self.cookies.reach(counts.cookies_sent);
        self.address_changes.reach(counts.address_changes);
        self.levels.sessions.set(counts.sessions as f64);
        self.levels.handshakes.set(counts.handshakes_open as f64);
    }

    fn publish_dropped(&self, tally: &DropTally) {
        let mut counts = [0; words::DROP_REASONS.len()];
        for (reason, count) in tally.counts() {
            counts[place_of(reason)] += count;
        }
        for (place, count) in counts.into_iter().enumerate() {
            self.dropped.reach(place, count);
        }
        self.dropped.publish();
    }
}

impl Levels {
    fn of(arbiter: &str) -> Self {
        let arbiter = || arbiter.to_owned();
        let level = |name| gauge!(name, "arbiter" => arbiter());
        let devices =
            |presence| gauge!(words::RESIDENT, "arbiter" => arbiter(), "presence" => presence);
        let actions = |status| gauge!(words::WAITING, "arbiter" => arbiter(), "status" => status);
        Self {
            unregistered: devices("unregistered"),
            awake: devices("awake"),
            asleep: devices("asleep"),
            scheduled: actions("scheduled"),
            in_progress: actions("in_progress"),
            exchanges: level(words::IN_FLIGHT),
            lookups: level(words::LOOKUPS),
            sessions: level(words::SESSIONS),
            handshakes: level(words::HANDSHAKES_OPEN),
        }
    }

    fn publish(&self, totals: &DeviceTotals, lookups: usize) {
        let levels = [
            (&self.unregistered, totals.unregistered),
            (&self.awake, totals.awake),
            (&self.asleep, totals.asleep),
            (&self.scheduled, totals.scheduled),
            (&self.in_progress, totals.in_progress),
            (&self.exchanges, totals.exchanges),
            (&self.lookups, lookups as u64),
        ];
        for (gauge, level) in levels {
            // A gauge is a floating-point number, which counts devices exactly up to 2^53.
            gauge.set(level as f64);
        }
    }
}

/// The place of a drop reason in [`words::DROP_REASONS`].
fn place_of(reason: DropReason) -> usize {
    match reason {
        DropReason::Malformed(_) => 0,
        DropReason::UnknownOption => 1,
        DropReason::UnknownEndpoint => 2,
        DropReason::UnknownLocation => 3,
        DropReason::UnknownPeer => 4,
        DropReason::UnknownAddress => 5,
        DropReason::Proxied => 6,
        DropReason::Unanswerable => 7,
        DropReason::Overloaded => 8,
        DropReason::ArbiterBusy => 9,
        DropReason::MailboxFull => 10,
        DropReason::OverRate(RateScope::Stranger) => 11,
        DropReason::OverRate(RateScope::Strangers) => 12,
        DropReason::OverRate(RateScope::Device) => 13,
        DropReason::OverRate(RateScope::Customer) => 14,
        DropReason::NotRestored => 15,
    }
}
