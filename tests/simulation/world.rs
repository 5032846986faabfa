//! The world: time, and everything that happens in it, one event after the other.

mod bootstrapping;
mod brokers;
mod calling;
mod campaigns;
pub(crate) mod customers;
mod deliveries;
mod devices;
mod faults;
mod keys;
mod nodes;
mod plain;
mod renaming;
mod restoring;
mod routing;
mod secured;
mod sending;
mod serving;

use std::collections::BTreeMap;
use std::process::Command;

use engine::delivery::command::DestinationCommand;
use engine::dispatch::shard_map::ShardMap;
use engine::ids::DestinationId;
use engine::moment::Timestamp;
use engine::peer::Peer;
use harness::device::event::DeviceOutput;
use harness::rng::Rng;

use crate::callers::Callers;
use crate::census::Census;
use crate::disk::Disk;
use crate::endpoints::Endpoints;
use crate::event::{Event, Queue};
use crate::fleet::{self, Fleet};
use crate::laws::rest::after_the_faults_everything_becomes_final;
use crate::laws::{Breach, LawChecker, Verdict, delivering, memory, ownership};
use crate::service::{Arbiter, ArbiterAct, ArbiterRun, Service, ServiceTurn};
use crate::settings::{Faults, WorldSettings};
use crate::trace::{Trace, TraceEvent};
use brokers::RunningLink;

/// When a world begins.
const BEGINNING_MS: i64 = 1_700_000_000_000;

/// How many events one instant may have. More means that a machine asks again and again to be woken
/// at once.
const EVENTS_PER_INSTANT_MAX: u32 = 2_000;

/// How many devices may be looked at after every event.
const WATCHED_DEVICES: u64 = 50;

/// A deterministic world: the same seed gives the same events.
pub(crate) struct World {
    seed: Option<u64>,
    pub(crate) now_ms: i64,
    events_of_now: u32,
    rng: Rng,
    queue: Queue,
    settings: WorldSettings,
    pub(crate) faults: Faults,
    activity: Activity,
    pub(crate) service: Service,
    pub(crate) disk: Disk,
    pub(crate) fleet: Fleet,
    pub(crate) endpoints: Endpoints,
    /// The links of the running forwarders of brokers.
    links: BTreeMap<DestinationId, RunningLink>,
    destinations_made: u64,
    campaigns_made: u64,
    pub(crate) callers: Callers,
    pub(crate) laws: LawChecker,
    pub(crate) trace: Trace,
    pub(crate) census: Census,
    /// How often each device still has to read its changed profile.
    unread_profiles: Vec<u32>,
    /// The last number that was assigned.
    numbers: u64,
    acts: Vec<ArbiterAct>,
    outputs: Vec<DeviceOutput>,
}

/// Whether customers, devices and faults act by themselves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Activity {
    /// They act at random.
    Lively,
    /// Nothing new begins.
    Still,
    /// Nothing new begins, and devices that left come back.
    Healing,
}

impl World {
    /// The world of a seed, in which everything may go wrong.
    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = Rng::from_seed(seed);
        let settings = WorldSettings::draw(&mut rng);
        let mut world = Self::new(settings, rng, Some(seed), Activity::Lively);
        for who in 0..world.fleet.count() {
            world.switch_on(who);
        }
        world.queue.push(world.now_ms, Event::DeviceAction);
        world.queue.push(world.now_ms, Event::Call);
        world.queue.push(world.now_ms, Event::Fault);
        world.queue.push(world.now_ms, Event::Sweep);
        world.queue.push(world.now_ms, Event::CustomerAction);
        world.choose_at_first();
        world
    }

    /// A world in which nothing happens unless a test causes it.
    pub(crate) fn still(devices: usize) -> Self {
        Self::with(WorldSettings::still(devices))
    }

    pub(crate) fn with(settings: WorldSettings) -> Self {
        Self::new(settings, Rng::from_seed(1), None, Activity::Still)
    }

    fn new(settings: WorldSettings, mut rng: Rng, seed: Option<u64>, activity: Activity) -> Self {
        let profiles = fleet::profiles(&settings);
        let disk = Disk::new(profiles.clone(), ShardMap::among(settings.arbiters));
        let known = disk.durable.known_devices();
        let rules = settings.rules.clone();
        let fleet = Fleet::new(&settings, &mut rng);
        let members = (settings.devices, fleet.count());
        let mut world = Self {
            seed,
            now_ms: BEGINNING_MS,
            events_of_now: 0,
            queue: Queue::default(),
            faults: settings.faults,
            activity,
            service: Service::new(rules, &profiles, known, (settings.arbiters, settings.nodes)),
            disk,
            fleet,
            endpoints: Endpoints::default(),
            links: BTreeMap::new(),
            destinations_made: 0,
            campaigns_made: 0,
            callers: Callers::new(settings.devices),
            laws: LawChecker::new(settings.rules.clone(), settings.arbiters, members),
            trace: Trace::default(),
            census: Census::default(),
            unread_profiles: vec![0; settings.devices],
            numbers: 0,
            acts: Vec::new(),
            outputs: Vec::new(),
            settings,
            rng,
        };
        world.start();
        world
    }

    /// Runs this many events.
    pub(crate) fn run(&mut self, events: u64) {
        for _ in 0..events {
            self.step();
        }
    }

    /// Lets time pass with all events in it.
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

    /// Ends all faults and random acts, brings all devices back, and checks that the world comes to
    /// rest.
    pub(crate) fn heal(&mut self) {
        self.census.heals += 1;
        self.note(TraceEvent::World("the world heals"));
        let before = (self.activity, self.faults);
        (self.activity, self.faults) = (Activity::Healing, Faults::NONE);
        self.disk.full_until_ms = self.now_ms;
        self.service.clear_panic();
        self.crash();
        self.part_who_shares();
        for who in 0..self.settings.devices {
            self.add(who);
        }
        for member in 0..self.fleet.count() {
            self.cure(member);
        }
        self.endpoints.cure();
        self.come_to_rest();
        let (ledgers, durable) = (&self.laws.ledgers, &self.disk.durable);
        self.check(delivering::what_is_acknowledged_is_delivered(
            ledgers, durable,
        ));
        // Now and then dead letters are left for the next act.
        if self.rng.below(3) > 0 {
            self.deliver_all_again();
        }
        self.endpoints.relapse();
        self.crash();
        self.join_who_shares();
        (self.activity, self.faults) = before;
    }

    /// Every destination has its dead letters replayed.
    pub(crate) fn deliver_all_again(&mut self) {
        for id in self.service.deliveries.ids() {
            self.ask_destination(id, DestinationCommand::Restart);
            self.ask_destination(id, DestinationCommand::Replay);
        }
        self.come_to_rest();
        let (ledgers, durable) = (&self.laws.ledgers, &self.disk.durable);
        self.check(delivering::replayed_dead_letters_are_delivered(
            ledgers, durable,
        ));
    }

    fn come_to_rest(&mut self) {
        let deadline_ms = self.now_ms + self.patience_ms();
        while let Err(breach) = after_the_faults_everything_becomes_final(self) {
            if self.now_ms > deadline_ms {
                self.fail(&breach);
            }
            self.step();
        }
    }

    /// How long healing may take: long enough for every device to be heard within its lifetime.
    fn patience_ms(&self) -> i64 {
        let waits_ms: i64 = self.settings.delivery.retry_delays_ms.iter().sum();
        let campaign_ms = self.campaign_ms_max();
        2 * 1_000 * i64::from(self.settings.lifetime_s.1) + 900_000 + waits_ms + campaign_ms
    }

    fn step(&mut self) {
        let (at_ms, event) = self.queue.pop().expect("a world has a future");
        self.trace.next_event();
        self.let_time_pass(at_ms);
        self.happen(event);
        self.watch();
    }

    /// Checks the laws that do not belong to a single act: at every event, unless the world has so
    /// many devices that a look at all of them has to be rare.
    fn watch(&mut self) {
        let every = 1 + self.settings.devices as u64 / WATCHED_DEVICES;
        if !self.trace.events().is_multiple_of(every) {
            return;
        }
        let (service, durable) = (&self.service, &self.disk.durable);
        let verdict = ownership::a_device_runs_once_at_its_arbiter(service, durable.devices())
            .and_then(|()| ownership::a_removed_device_is_gone(service, durable))
            .and_then(|()| ownership::live_devices_are_restored(service, durable))
            .and_then(|()| {
                ownership::a_device_follows_the_last_change_of_its_customer(
                    service,
                    durable,
                    &self.unread_profiles,
                )
            })
            .and_then(|()| {
                let held = service.datagrams_held();
                self.laws.routing.every_datagram_is_somewhere(held)
            })
            .and_then(|()| memory::unfinished_bodies_have_a_bound(service, self.now_ms))
            .and_then(|()| delivering::no_destination_delays_another(&self.laws.ledgers, durable));
        self.check(verdict);
    }

    fn let_time_pass(&mut self, at_ms: i64) {
        if at_ms > self.now_ms {
            let is_disk_at_rest =
                self.disk.full_until_ms.max(self.disk.busy_until_ms) <= self.now_ms;
            if self.service.is_up() && self.service.is_whole() && is_disk_at_rest {
                self.laws.ledgers.be_calm_for(at_ms - self.now_ms);
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
            Event::TurnEnds { at } => self.turn_ends(at),
            Event::Posted { from, to } => self.posted(from, to),
            Event::LookedUp { at, look_up } => self.looked_up(at, look_up),
            Event::ReachesDevice { to, datagram } => self.reach_device(to, &datagram),
            Event::DeviceDue { who } => self.device_due(who),
            Event::ClientDue { who } => self.client_due(who),
            Event::RecordForwarded { at, from, record } => {
                self.record_forwarded(at, from, &record);
            }
            Event::MessageForwarded { at, who, message } => {
                self.message_forwarded(at, who, &message);
            }
            Event::CredentialsRead {
                at,
                look_up: (claim, identity),
            } => self.credentials_read(at, (claim, &identity)),
            Event::AssociationsDue { at } => self.associations_due(at),
            Event::DeviceAction => self.act_of_device(),
            Event::Call => self.call(),
            Event::Rush { run } => self.rush(run),
            Event::Added { who } => self.add(who),
            Event::Sweep => self.sweep(),
            Event::ArbiterDue { at } => self.arbiter_due(at),
            Event::Idle { at, who, report } => self.idle(at, who, report),
            Event::Departed { at, who, departed } => self.departed(at, who, departed),
            Event::NamesRead { at, who, step } => self.names_read(at, who, step),
            Event::ProfileUnread { who, run } => self.profile_unread(who, run),
            Event::PageRead { at, keys } => self.page_read(at, keys),
            Event::Paged { at, first, page } => self.paged(at, first, page),
            Event::Committed { run } => self.committed(run),
            Event::CustomerAction => self.choose(),
            Event::ForwarderRestored { id, run } => self.forwarder_restored(id, run),
            Event::ForwarderRead { id, run } => self.forwarder_read(id, run),
            Event::ForwarderDue { id, generation } => self.forwarder_due(id, generation),
            Event::PartitionsNotified { id, generation } => {
                self.partitions_notified(id, generation)
            }
            Event::ReadForForwarder {
                id,
                generation,
                task,
            } => self.read_for_forwarder(id, generation, task),
            Event::Delivers { parcel } => self.delivers(parcel),
            Event::Delivered { parcel, delivered } => self.delivered(&parcel, delivered),
            Event::LinkConnects { at } => self.link_connects(at),
            Event::BrokerReads { at, packet } => self.broker_reads(at, &packet),
            Event::LinkReads { at, bytes } => self.link_reads(at, &bytes),
            Event::LinkDue { id, number } => self.link_due(id, number),
            Event::BootstrapRead { of } => self.bootstrap_read(of),
            Event::ImageRead { of, range } => self.image_read(of, &range),
            Event::CampaignsRead { run } => self.campaigns_read(run),
            Event::CampaignsDue { run } => self.campaigns_due(run),
            Event::CampaignLooked {
                campaign,
                wanted,
                run,
            } => self.campaign_looked(campaign, wanted, run),
            Event::CampaignAnswered { at, answer, run } => self.campaign_answered(at, answer, run),
            Event::Fault => self.inject_fault(),
            Event::PartitionGiven { at } => self.partition_given(at),
            Event::PartitionTaken { id, run } => self.partition_taken(id, run),
            Event::LeaseRenewed { node, run } => self.lease_renewed(node, run),
            Event::Start => self.start(),
        }
    }

    /// Lets an arbiter take a turn, if it still runs, and performs its acts.
    fn serve(&mut self, at: ArbiterRun, turn: impl FnOnce(&mut Arbiter, &mut ServiceTurn<'_>)) {
        let is_full = self.now_ms < self.disk.full_until_ms;
        let Some(arbiter) = self.service.arbiter_mut(at) else {
            return;
        };
        let mut acts = std::mem::take(&mut self.acts);
        turn(
            arbiter,
            &mut ServiceTurn {
                now: Timestamp::from_ms(self.now_ms),
                rng: &mut self.rng,
                is_store_full: is_full,
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

    /// Sends a datagram, which arrives never, once or twice.
    fn travel(&mut self, arrive: impl Fn() -> Event) {
        if self.rng.hits(self.faults.lost_percent) {
            self.census.lost += 1;
            return;
        }
        let at_ms = self.now_ms + self.delay_ms();
        self.queue.push(at_ms, arrive());
        if self.rng.hits(self.faults.repeated_percent) {
            self.census.repeated += 1;
            let at_ms = self.now_ms + self.delay_ms();
            self.queue.push(at_ms, arrive());
        }
    }

    /// How long a datagram travels: never longer than MAX_LATENCY (RFC 7252 section 4.8.2).
    fn delay_ms(&mut self) -> i64 {
        let most_ms = match self.rng.hits(self.faults.late_percent) {
            true => 90_000,
            false => 300,
        };
        10 + i64::from(self.rng.below(most_ms))
    }

    /// When the next random act happens.
    fn later_ms(&mut self) -> i64 {
        let pace_ms = u32::try_from(self.settings.pace_ms).expect("a pace is no longer than hours");
        let usual_ms = i64::from(1 + self.rng.below(2 * pace_ms));
        let is_pause = self.rng.below(50) == 0;
        self.now_ms + if is_pause { 20 * usual_ms } else { usual_ms }
    }

    fn note(&mut self, what: TraceEvent) {
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

/// The commit of the source tree, if it is a git tree.
fn commit() -> String {
    let output = Command::new("git")
        .args(["rev-parse", "--short", "HEAD"])
        .output();
    let commit = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    commit.unwrap_or_else(|_| "unknown".to_owned())
}

/// Prints how to reproduce a failure of a law, of a machine, or of the simulation.
impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let events = self.trace.events();
            eprintln!("at commit {}", commit());
            eprintln!("what happened last:\n{}", self.trace);
            eprintln!("at event {events} of {:?}", self.settings);
            if let Some(seed) = self.seed {
                eprintln!(
                    "again: SIMULATION_SEED={seed} SIMULATION_EVENTS={events} \
                     cargo test --test simulation"
                );
            }
        }
    }
}
