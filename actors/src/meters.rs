//! What is told of an arbiter to whoever measures the service?
//!
//! An arbiter counts in plain numbers of its own and publishes them once a second, so that a
//! datagram costs an addition and no two threads share a cache line for it.

pub(crate) mod census;
pub(crate) mod family;
pub(crate) mod waiting;
pub(crate) mod words;

use std::time::Duration;

use engine::moment::Timestamp;
use engine::occurrence::{Heard, Occurrence, What};
use engine::registry::Fate;
use engine::registry::form::Form;
use engine::registry::homes::ArbiterId;
use metrics::{Counter, Gauge, counter, gauge};

use crate::tally::Tally;

use census::{Census, Totals};
use family::{Count, Family, Forms};

/// How often an arbiter publishes: well within the interval anybody scrapes at.
pub(crate) const PUBLISH_EVERY: Duration = Duration::from_secs(1);

/// What an arbiter knows of itself when it publishes.
pub(crate) struct Reading<'a> {
    /// When that is.
    pub(crate) now: Timestamp,
    /// Datagrams that reached no device.
    pub(crate) turned_away: &'a Tally,
    /// Lookups of devices in the store that are under way.
    pub(crate) lookups: usize,
}

/// The meters of an arbiter.
pub(crate) struct Meters {
    /// Datagrams taken from the sockets.
    pub(crate) received: Forms,
    /// Datagrams the kernel took.
    pub(crate) sent: Forms,
    /// Datagrams it did not take.
    pub(crate) unsent: Count,
    /// Datagrams handed to another arbiter.
    pub(crate) forwarded: Count,
    /// How the devices in memory stand.
    pub(crate) census: Census,
    turned_away: Family<{ words::FATES.len() }>,
    heard: Family<{ words::MEANINGS.len() }>,
    begun: Family<{ words::PURPOSES.len() }>,
    repeated: Count,
    acknowledged: Count,
    ended: Family<{ words::ENDINGS.len() }>,
    notified: Family<{ words::NEWS.len() }>,
    sends: Family<{ words::NEWS.len() }>,
    data: Family<{ words::DATA_SORTS }>,
    observations_lost: Count,
    created: Family<{ words::ASKED.len() }>,
    concluded: Family<{ words::CONCLUDED }>,
    restored: Counter,
    restore_progress: Gauge,
    levels: Levels,
}

/// What goes up and down.
struct Levels {
    unregistered: Gauge,
    awake: Gauge,
    asleep: Gauge,
    scheduled: Gauge,
    in_progress: Gauge,
    exchanges: Gauge,
    lookups: Gauge,
}

impl Meters {
    /// The meters of an arbiter, all at nothing.
    pub(crate) fn of(arbiter: ArbiterId) -> Self {
        words::describe();
        let arbiter = arbiter.index().to_string();
        let here = arbiter.as_str();
        let total = |name| counter!(name, "arbiter" => arbiter.clone());
        let count = |name| Count::new(total(name));
        Self {
            received: Forms::new(words::RECEIVED, here, Form::all()),
            sent: Forms::new(words::SENT, here, Form::all().filter(|it| it.can_be_ours())),
            unsent: count(words::UNSENT),
            forwarded: count(words::FORWARDED),
            census: Census::default(),
            turned_away: Family::new(words::TURNED_AWAY, here, "fate", words::FATES),
            heard: Family::new(words::HEARD, here, "meaning", words::MEANINGS),
            begun: Family::new(words::BEGUN, here, "purpose", words::PURPOSES),
            repeated: count(words::REPEATED),
            acknowledged: count(words::ACKNOWLEDGED),
            ended: Family::new(words::ENDED, here, "ending", words::ENDINGS),
            notified: Family::new(words::NOTIFIED, here, "fate", words::NEWS),
            sends: Family::new(words::SENDS, here, "fate", words::NEWS),
            data: Family::of(words::data(here)),
            observations_lost: count(words::OBSERVATIONS_LOST),
            created: Family::of(words::created(here)),
            concluded: Family::of(words::concluded(here)),
            restored: total(words::RESTORED),
            restore_progress: gauge!(words::RESTORE_PROGRESS, "arbiter" => arbiter.clone()),
            levels: Levels::of(here),
        }
    }

    /// Counts a message of a device for what it was taken for.
    pub(crate) fn heard(&self, heard: Heard) {
        self.heard.one(heard as usize);
    }

    /// Counts what happened in a step.
    pub(crate) fn occurred(&self, occurred: &[Occurrence]) {
        for occurrence in occurred {
            match occurrence.what {
                What::Created(asked) => self.created.one(words::place_of(asked)),
                What::Concluded(asked, status) => {
                    self.concluded.one(words::place_of_concluded(asked, status));
                }
                What::Removed(asked) => self.concluded.one(words::place_of_removed(asked)),
                What::Begun(purpose) => self.begun.one(purpose as usize),
                What::Repeated => self.repeated.one(),
                What::Acknowledged => self.acknowledged.one(),
                What::Ended(ending) => self.ended.one(ending as usize),
                What::Notified(news) => self.notified.one(news as usize),
                What::Sent(news) => self.sends.one(news as usize),
                What::DataSent(over, news) => self.data.one(words::place_of_data(over, news)),
                What::ObservationLost => self.observations_lost.one(),
            }
        }
    }

    /// Publishes what the arbiter counted and what else it knows.
    pub(crate) fn publish(&self, reading: &Reading<'_>) {
        self.received.publish();
        self.sent.publish();
        self.publish_turned_away(reading.turned_away);
        self.heard.publish();
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
        ];
        counts.into_iter().for_each(Count::publish);
        let totals = self.census.totals(reading.now);
        self.levels.publish(&totals, reading.lookups);
    }

    /// Publishes how far the start has come: how many devices it brought back, and which part of
    /// the arbiter's keys it has behind it, from 0 to 1.
    pub(crate) fn publish_progress(&self, restored: u64, part: f64) {
        self.restored.absolute(restored);
        self.restore_progress.set(part);
    }

    fn publish_turned_away(&self, tally: &Tally) {
        let mut counts = [0; words::FATES.len()];
        for (fate, count) in tally.counts() {
            counts[place_of(fate)] += count;
        }
        for (place, count) in counts.into_iter().enumerate() {
            self.turned_away.reach(place, count);
        }
        self.turned_away.publish();
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
        }
    }

    fn publish(&self, totals: &Totals, lookups: usize) {
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

/// Where a fate stands among [`words::FATES`].
fn place_of(fate: Fate) -> usize {
    match fate {
        Fate::Malformed(_) => 0,
        Fate::UnknownOption => 1,
        Fate::UnknownEndpoint => 2,
        Fate::UnknownLocation => 3,
        Fate::UnknownPeer => 4,
        Fate::UnknownAddress => 5,
        Fate::Proxied => 6,
        Fate::Unanswerable => 7,
        Fate::Overloaded => 8,
        Fate::Crowded => 9,
        Fate::NoPlace => 10,
    }
}
