//! What is done to one fleet, how often, and which figures come of it?
//!
//! ```text
//!  on a new store, each time:  import, registration
//!  on the last of these:       updates, actions, idleness, restarts with either cache
//!  on an empty store:          starts with the least cache
//! ```

use std::thread;
use std::time::{Duration, Instant};

use crate::bench::data::Data;
use crate::bench::fleet::Owner;
use crate::bench::load::{self, Outcome, Scenario};
use crate::bench::options::Options;
use crate::bench::report::{Figure, Fleet};
use crate::bench::service::{Cache, Service};
use crate::steps::{Stop, seconds};

/// How long a service is left alone before its memory or idleness is looked at.
const SETTLED_AFTER: Duration = Duration::from_secs(3);

const MIB: f64 = 1_048_576.0;

/// The rounds of one fleet.
pub(crate) struct Rounds<'a> {
    options: &'a Options,
    begun_at: Instant,
    fleet: Fleet,
}

/// A service that has the whole fleet.
struct Stand {
    // Declared before the directory, so that it ends before that is removed.
    service: Service,
    owner: Owner,
    data: Data,
}

impl<'a> Rounds<'a> {
    /// Measures everything of a fleet of so many devices.
    pub(crate) fn of(devices: u32, options: &'a Options, begun_at: Instant) -> Result<Fleet, Stop> {
        let mut rounds = Self {
            options,
            begun_at,
            fleet: Fleet::of(devices),
        };
        let stand = rounds.set_up()?;
        rounds.updates(&stand)?;
        rounds.actions(&stand)?;
        rounds.repeat("idleness", |rounds| rounds.idleness(&stand.service))?;
        let Stand { service, data, .. } = stand;
        service.stop()?;
        rounds
            .fleet
            .note(Figure::DeviceDiskBytes, data.bytes()? / f64::from(devices));
        rounds.repeat("restart", |rounds| rounds.restart(&data))?;
        rounds.repeat("memory", |rounds| rounds.memory(&data))?;
        Ok(rounds.fleet)
    }

    fn set_up(&mut self) -> Result<Stand, Stop> {
        let mut last = self.set_up_once(1)?;
        for round in 2..=self.options.setup_rounds {
            last.service.stop()?;
            drop(last.data);
            last = self.set_up_once(round)?;
        }
        Ok(last)
    }

    fn set_up_once(&mut self, round: u32) -> Result<Stand, Stop> {
        let of = self.options.setup_rounds;
        self.tell("import and registration", round, of);
        let devices = self.fleet.devices;
        let data = Data::new("fleet")?;
        let (service, _) = Service::start(data.path(), Cache::Default)?;
        let owner = Owner::make(&service)?;
        self.note(Figure::ImportS, owner.import(&service, devices)?);
        let figures: [(Figure, &[&str]); 3] = [
            (Figure::RegisterS, &["measurement", "seconds"]),
            (Figure::RegistrationsPerS, &["measurement", "ratePerSecond"]),
            (Figure::Errors, &["errorCount"]),
        ];
        for load in load::apply(&service, devices, &Scenario::Register, || ())? {
            self.note_each(&load, &figures)?;
        }
        thread::sleep(SETTLED_AFTER);
        self.note(Figure::RegisteredMib, service.resident_bytes()? / MIB);
        Ok(Stand {
            service,
            owner,
            data,
        })
    }

    fn updates(&mut self, stand: &Stand) -> Result<(), Stop> {
        let figures: [(Figure, &[&str]); 4] = [
            (Figure::UpdatesPerS, &["measurement", "ratePerSecond"]),
            (Figure::UpdateP50Ms, &["measurement", "latencyMs", "p50"]),
            (Figure::UpdateP99Ms, &["measurement", "latencyMs", "p99"]),
            (Figure::Errors, &["errorCount"]),
        ];
        let scenario = Scenario::Update(self.measured());
        for load in self.apply("updates", stand, &scenario)? {
            self.note(Figure::UpdateProcessorUs, load.processor_us()?);
            self.note_each(&load, &figures)?;
        }
        Ok(())
    }

    fn actions(&mut self, stand: &Stand) -> Result<(), Stop> {
        let figures: [(Figure, &[&str]); 5] = [
            (Figure::ActionsPerS, &["measurement", "ratePerSecond"]),
            (Figure::ActionP50Ms, &["measurement", "latencyMs", "p50"]),
            (Figure::ActionP99Ms, &["measurement", "latencyMs", "p99"]),
            (Figure::ActionP999Ms, &["measurement", "latencyMs", "p999"]),
            (Figure::Errors, &["errorCount"]),
        ];
        let token = stand.owner.token(&stand.service)?;
        let scenario = Scenario::Actions(self.measured(), token);
        for load in self.apply("actions", stand, &scenario)? {
            self.note_each(&load, &figures)?;
        }
        Ok(())
    }

    fn apply(&self, what: &str, stand: &Stand, scenario: &Scenario) -> Result<Vec<Outcome>, Stop> {
        let of = self.options.rounds;
        let mut ended = 0;
        self.tell(&format!("{what}, the fleet registers"), 0, of);
        load::apply(&stand.service, self.fleet.devices, scenario, || {
            ended += 1;
            self.tell(&format!("{what}, ended"), ended, of);
        })
    }

    fn measured(&self) -> load::Rounds {
        load::Rounds {
            count: self.options.rounds,
            each: self.options.measured_for,
        }
    }

    fn idleness(&mut self, service: &Service) -> Result<(), Stop> {
        thread::sleep(SETTLED_AFTER);
        let (begun_at, before_s) = (Instant::now(), service.processor_s()?);
        thread::sleep(self.options.idle_for);
        let spent_s = service.processor_s()? - before_s;
        let percent = spent_s / begun_at.elapsed().as_secs_f64() * 100.0;
        self.note(Figure::IdlePercent, percent);
        Ok(())
    }

    fn restart(&mut self, data: &Data) -> Result<(), Stop> {
        let devices = self.fleet.devices;
        let (service, started) = Service::start_again(data.path(), Cache::Default, devices)?;
        thread::sleep(SETTLED_AFTER);
        self.note(Figure::ReadyS, started.ready_s);
        self.note(Figure::RestoredS, started.restored_s);
        self.note(Figure::RestoredMib, service.resident_bytes()? / MIB);
        self.note(Figure::StopS, service.stop()?);
        Ok(())
    }

    /// What a restored fleet holds beyond what the same service holds on an empty store, both with
    /// the least cache.
    fn memory(&mut self, data: &Data) -> Result<(), Stop> {
        let devices = self.fleet.devices;
        let (service, _) = Service::start_again(data.path(), Cache::Least, devices)?;
        let full = settled_bytes(service)?;
        let empty = Data::new("empty")?;
        let (service, _) = Service::start(empty.path(), Cache::Least)?;
        let empty = settled_bytes(service)?;
        self.note(Figure::DeviceBytes, (full - empty) / f64::from(devices));
        Ok(())
    }

    fn repeat(
        &mut self,
        what: &str,
        mut act: impl FnMut(&mut Self) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let of = self.options.rounds;
        (1..=of).try_for_each(|round| {
            self.tell(what, round, of);
            act(self)
        })
    }

    fn note_each(&mut self, load: &Outcome, figures: &[(Figure, &[&str])]) -> Result<(), Stop> {
        figures.iter().try_for_each(|(figure, names)| {
            self.note(*figure, load.number(names)?);
            Ok(())
        })
    }

    fn note(&mut self, figure: Figure, value: f64) {
        println!("           {figure:?} {value:.3}");
        self.fleet.note(figure, value);
    }

    fn tell(&self, what: &str, round: u32, of: u32) {
        let devices = self.fleet.devices;
        let since = seconds(self.begun_at.elapsed());
        println!("{since:>9}  {devices} devices: {what}, round {round} of {of}");
    }
}

fn settled_bytes(service: Service) -> Result<f64, Stop> {
    thread::sleep(SETTLED_AFTER);
    let bytes = service.resident_bytes()?;
    service.stop()?;
    Ok(bytes)
}
