//! The world: time, and everything that happens in it, one event after the other.

mod calling;
pub(crate) mod choosing;
mod devices;
mod misfortune;
mod plain;
mod posting;
mod renaming;
mod restoring;
mod routing;
mod sending;
mod serving;

use std::process::Command;

use engine::delivery::question::Question;
use engine::moment::Timestamp;
use engine::peer::Peer;
use engine::registry::homes::ArbiterId;
use harness::chance::Chance;
use harness::device::event::Output;

use crate::callers::Callers;
use crate::census::Census;
use crate::disk::Disk;
use crate::endpoints::Endpoints;
use crate::event::{Event, Queue};
use crate::fleet::{self, Fleet};
use crate::laws::rest::a_healed_world_comes_to_rest;
use crate::laws::{Breach, Judge, Verdict, delivering, homes};
use crate::nature::{Faults, Nature};
use crate::service::{Act, Arbiter, Service, Turn};
use crate::trace::{Trace, What};

/// When a world begins.
const BEGINNING_MS: i64 = 1_700_000_000_000;

/// How many events one instant may have: more means that somebody asks to be woken at once,
/// again and again.
const EVENTS_PER_INSTANT_MAX: u32 = 2_000;

/// A deterministic world: the same seed, the same events.
pub(crate) struct World {
    seed: Option<u64>,
    pub(crate) now_ms: i64,
    events_of_now: u32,
    chance: Chance,
    queue: Queue,
    nature: Nature,
    pub(crate) faults: Faults,
    mood: Mood,
    pub(crate) service: Service,
    pub(crate) disk: Disk,
    pub(crate) fleet: Fleet,
    pub(crate) endpoints: Endpoints,
    destinations_made: u64,
    pub(crate) callers: Callers,
    pub(crate) judge: Judge,
    pub(crate) trace: Trace,
    pub(crate) census: Census,
    /// How often each device is still to be told that its customer said anew who it is.
    untold: Vec<u32>,
    /// The last number that was given to anything.
    numbers: u64,
    acts: Vec<Act>,
    outputs: Vec<Output>,
}

/// Whether people, devices and fate act by themselves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mood {
    /// They do as they like.
    Lively,
    /// They do what was begun and nothing else.
    Still,
    /// The same, and whoever went away comes back.
    Healing,
}

impl World {
    /// The world that belongs to a seed, in which everything may go wrong.
    pub(crate) fn of(seed: u64) -> Self {
        let mut chance = Chance::from_seed(seed);
        let nature = Nature::draw(&mut chance);
        let mut world = Self::new(nature, chance, Some(seed), Mood::Lively);
        for who in 0..world.fleet.count() {
            world.switch_on(who);
        }
        world.queue.push(world.now_ms, Event::Whim);
        world.queue.push(world.now_ms, Event::Call);
        world.queue.push(world.now_ms, Event::Misfortune);
        world.queue.push(world.now_ms, Event::Sweep);
        world.queue.push(world.now_ms, Event::Choice);
        world.choose_at_first();
        world
    }

    /// A world in which nothing happens unless a test wants it.
    pub(crate) fn still(devices: usize) -> Self {
        Self::with(Nature::still(devices))
    }

    pub(crate) fn with(nature: Nature) -> Self {
        Self::new(nature, Chance::from_seed(1), None, Mood::Still)
    }

    fn new(nature: Nature, mut chance: Chance, seed: Option<u64>, mood: Mood) -> Self {
        let profiles = fleet::profiles(&nature);
        let fleet = Fleet::new(&nature, &mut chance);
        let members = (nature.devices, fleet.count());
        let mut world = Self {
            seed,
            now_ms: BEGINNING_MS,
            events_of_now: 0,
            queue: Queue::default(),
            faults: nature.faults,
            mood,
            service: Service::new(nature.rules.clone(), &profiles, nature.arbiters),
            disk: Disk::new(profiles),
            fleet,
            endpoints: Endpoints::default(),
            destinations_made: 0,
            callers: Callers::new(nature.devices),
            judge: Judge::new(nature.rules.clone(), nature.arbiters, members),
            trace: Trace::default(),
            census: Census::default(),
            untold: vec![0; nature.devices],
            numbers: 0,
            acts: Vec::new(),
            outputs: Vec::new(),
            nature,
            chance,
        };
        world.start();
        world
    }

    /// Lets so many events happen.
    pub(crate) fn run(&mut self, events: u64) {
        for _ in 0..events {
            self.step();
        }
    }

    /// Lets so much time pass with all that happens in it.
    pub(crate) fn pass(&mut self, ms: i64) {
        let until_ms = self.now_ms + ms;
        while self
            .queue
            .next_at_ms()
            .is_some_and(|at_ms| at_ms <= until_ms)
        {
            self.step();
        }
        self.now_ms = until_ms;
    }

    /// Ends all faults and whims, revives everybody, and demands that the world comes to rest.
    pub(crate) fn heal(&mut self) {
        self.census.heals += 1;
        self.note(What::World("the world heals"));
        let before = (self.mood, self.faults);
        (self.mood, self.faults) = (Mood::Healing, Faults::NONE);
        self.disk.full_until_ms = self.now_ms;
        self.service.lift_curse();
        self.crash();
        self.part_who_shares();
        for who in 0..self.nature.devices {
            self.add(who);
        }
        for member in 0..self.fleet.count() {
            self.cure(member);
        }
        self.endpoints.cure();
        self.come_to_rest();
        let (ledgers, durable) = (&self.judge.ledgers, &self.disk.durable);
        self.check(delivering::what_is_acknowledged_is_delivered(
            ledgers, durable,
        ));
        // Now and then dead letters are left for the next act.
        if self.chance.below(3) > 0 {
            self.deliver_all_again();
        }
        self.endpoints.relapse();
        self.crash();
        self.join_who_shares();
        (self.mood, self.faults) = before;
    }

    /// Every destination is told what was set aside for it.
    pub(crate) fn deliver_all_again(&mut self) {
        for id in self.service.post.ids() {
            self.ask_destination(id, Question::Restart);
            self.ask_destination(id, Question::Replay);
        }
        self.come_to_rest();
        let (ledgers, durable) = (&self.judge.ledgers, &self.disk.durable);
        self.check(delivering::what_was_set_aside_is_delivered(
            ledgers, durable,
        ));
    }

    fn come_to_rest(&mut self) {
        let deadline_ms = self.now_ms + self.patience_ms();
        while let Err(breach) = a_healed_world_comes_to_rest(self) {
            if self.now_ms > deadline_ms {
                self.fail(&breach);
            }
            self.step();
        }
    }

    /// How long a healed world may take: every device was heard within its lifetime.
    fn patience_ms(&self) -> i64 {
        let waits_ms: i64 = self.nature.delivery.waits_ms.iter().sum();
        2 * 1_000 * i64::from(self.nature.lifetime_s.1) + 900_000 + waits_ms
    }

    fn step(&mut self) {
        let (at_ms, event) = self.queue.pop().expect("a world has a future");
        self.trace.next_event();
        self.let_time_pass(at_ms);
        self.happen(event);
        self.watch();
    }

    /// Sees to the laws that are about no single act.
    fn watch(&mut self) {
        let (service, durable) = (&self.service, &self.disk.durable);
        let verdict = homes::a_device_lives_once_and_at_home(service, durable.devices())
            .and_then(|()| homes::a_removed_device_is_gone(service, durable))
            .and_then(|()| homes::whoever_was_live_is_back(service, durable))
            .and_then(|()| {
                homes::a_device_goes_by_what_its_customer_said(service, durable, &self.untold)
            })
            .and_then(|()| {
                let held = service.datagrams_held();
                self.judge.ways.every_datagram_is_somewhere(held)
            })
            .and_then(|()| delivering::no_destination_delays_another(&self.judge.ledgers, durable));
        self.check(verdict);
    }

    fn let_time_pass(&mut self, at_ms: i64) {
        if at_ms > self.now_ms {
            let is_disk_at_rest =
                self.disk.full_until_ms.max(self.disk.busy_until_ms) <= self.now_ms;
            if self.service.is_up() && is_disk_at_rest {
                self.judge.ledgers.be_calm_for(at_ms - self.now_ms);
            }
            (self.now_ms, self.events_of_now) = (at_ms, 0);
        }
        self.events_of_now += 1;
        if self.events_of_now > EVENTS_PER_INSTANT_MAX {
            self.fail(&Breach {
                law: "time_passes",
                what: "somebody asks to be woken at once, again and again".to_owned(),
            });
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::ReachesService { from, datagram } => self.reach_service(from, &datagram),
            Event::TurnEnds { at, run } => self.turn_ends(at, run),
            Event::Posted { from, to, run } => self.posted(from, to, run),
            Event::LookedUp { at, look_up, run } => self.looked_up(at, look_up, run),
            Event::ReachesDevice { to, datagram } => self.reach_device(to, &datagram),
            Event::DeviceDue { who } => self.device_due(who),
            Event::Whim => self.whim(),
            Event::Call => self.call(),
            Event::Rush { run } => self.rush(run),
            Event::Added { who } => self.add(who),
            Event::Sweep => self.sweep(),
            Event::ArbiterDue { at, run } => self.arbiter_due(at, run),
            Event::Idle {
                at,
                who,
                report,
                run,
            } => self.idle(at, who, report, run),
            Event::Departed {
                at,
                who,
                departed,
                run,
            } => self.departed(at, who, departed, run),
            Event::NamesRead { at, who, step, run } => self.names_read(at, who, step, run),
            Event::NamesUntold { who, run } => self.names_untold(who, run),
            Event::PageRead { at, keys, run } => self.page_read(at, keys, run),
            Event::Paged {
                at,
                first,
                page,
                run,
            } => self.paged(at, first, page, run),
            Event::Committed { run } => self.committed(run),
            Event::Choice => self.choose(),
            Event::ForwarderRestored { id, run } => self.forwarder_restored(id, run),
            Event::ForwarderRead { id, run } => self.forwarder_read(id, run),
            Event::ForwarderDue { id, generation } => self.forwarder_due(id, generation),
            Event::BoardRead { id, generation } => self.board_read(id, generation),
            Event::ReadForForwarder {
                id,
                generation,
                errand,
            } => self.read_for_forwarder(id, generation, errand),
            Event::Delivers { parcel } => self.delivers(parcel),
            Event::Delivered { parcel, delivered } => self.delivered(&parcel, delivered),
            Event::Misfortune => self.misfortune(),
            Event::Start => self.start(),
        }
    }

    /// Lets an arbiter take a turn, and does what comes of it.
    fn serve(&mut self, at: ArbiterId, turn: impl FnOnce(&mut Arbiter, &mut Turn<'_>)) {
        let mut acts = std::mem::take(&mut self.acts);
        let is_full = self.now_ms < self.disk.full_until_ms;
        let of_devices = self.service.restoration();
        turn(
            self.service.arbiter_mut(at),
            &mut Turn {
                now: Timestamp::from_ms(self.now_ms),
                chance: &mut self.chance,
                is_store_full: is_full,
                of_devices,
                refused_percent: self.faults.refused_percent,
                numbers: &mut self.numbers,
                acts: &mut acts,
            },
        );
        for act in acts.drain(..) {
            self.perform(at, act);
        }
        self.acts = acts;
    }

    /// Sends a datagram on its way, to arrive never, once or twice.
    fn travel(&mut self, arrive: impl Fn() -> Event) {
        if self.chance.hits(self.faults.lost_percent) {
            self.census.lost += 1;
            return;
        }
        let at_ms = self.now_ms + self.delay_ms();
        self.queue.push(at_ms, arrive());
        if self.chance.hits(self.faults.repeated_percent) {
            self.census.repeated += 1;
            let at_ms = self.now_ms + self.delay_ms();
            self.queue.push(at_ms, arrive());
        }
    }

    /// How long a datagram travels: never longer than MAX_LATENCY (RFC 7252 section 4.8.2).
    fn delay_ms(&mut self) -> i64 {
        let most_ms = match self.chance.hits(self.faults.late_percent) {
            true => 90_000,
            false => 300,
        };
        10 + i64::from(self.chance.below(most_ms))
    }

    /// When somebody acts next who acts when he likes.
    fn later_ms(&mut self) -> i64 {
        let pace_ms = u32::try_from(self.nature.pace_ms).expect("a pace is no longer than hours");
        let usual_ms = i64::from(1 + self.chance.below(2 * pace_ms));
        let is_pause = self.chance.below(50) == 0;
        self.now_ms + if is_pause { 20 * usual_ms } else { usual_ms }
    }

    fn note(&mut self, what: What) {
        self.trace.note(self.now_ms, what);
    }

    fn check(&mut self, verdict: Verdict) {
        if let Err(breach) = verdict {
            self.fail(&breach);
        }
    }

    fn fail(&self, breach: &Breach) -> ! {
        panic!("{}: {}", breach.law, breach.what);
    }

    fn port_of(peer: Peer) -> u16 {
        peer.address.port()
    }
}

/// The commit the tree stands on, if there is a tree.
fn commit() -> String {
    let told = Command::new("git")
        .args(["rev-parse", "--short", "HEAD"])
        .output();
    let told = told.map(|told| String::from_utf8_lossy(&told.stdout).trim().to_owned());
    told.unwrap_or_else(|_| "unknown".to_owned())
}

/// Tells how to see a failure again, be it a law's, a machine's or the simulation's own.
impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let events = self.trace.events();
            eprintln!("at commit {}", commit());
            eprintln!("what happened last:\n{}", self.trace);
            eprintln!("at event {events} of {:?}", self.nature);
            if let Some(seed) = self.seed {
                eprintln!(
                    "again: SIMULATION_SEED={seed} SIMULATION_EVENTS={events} \
                     cargo test --test simulation"
                );
            }
        }
    }
}
