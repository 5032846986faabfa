//! What does a fleet of a million cost? Runs the rounds of each fleet with the program an operator
//! runs, and writes the table.

mod kept_sends;
pub(crate) mod place;
pub(crate) mod report;
mod rounds;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use actix_rt::System;
use clap::builder::BoolishValueParser;
use clap::{ArgAction, Parser, value_parser};
use harness::load::figures::Figures;

use self::place::MachineInfo;
use self::report::{Fleet, Report};
use self::rounds::ScaleRounds;
use crate::service::PROGRAM;
use crate::{creates, updates};

/// Measures fleets up to a million
#[derive(Parser)]
#[command(name = "cargo xtask bench scale")]
pub(crate) struct Options {
    /// Devices of each fleet
    #[arg(long, value_delimiter = ',', default_values_t = updates::FLEETS)]
    #[arg(value_parser = value_parser!(u32).range(1..))]
    devices: Vec<u32>,
    /// Rounds of everything but import and registration
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..))]
    rounds: u32,
    /// Rounds of import and registration, each on a new store [default: same as --rounds]
    #[arg(long, value_parser = value_parser!(u32).range(1..))]
    setup_rounds: Option<u32>,
    /// Duration of the measurement of updates, and of that of actions, in seconds
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u64).range(1..))]
    seconds: u64,
    /// Duration of the measurement of an idle fleet, in seconds
    #[arg(long, default_value_t = 20, value_parser = value_parser!(u64).range(1..))]
    idle_seconds: u64,
    /// File for the JSON report
    #[arg(long, default_value = "target/scale.json")]
    out: PathBuf,
    /// Whether to compare updates with a bare echo
    #[arg(long, value_name = "yes|no", default_value = "yes", action = ArgAction::Set)]
    #[arg(value_parser = BoolishValueParser::new())]
    echo: bool,
    /// Program to measure instead of the one of this tree
    #[arg(long, default_value = PROGRAM)]
    program: PathBuf,
}

impl Options {
    fn setup_rounds(&self) -> u32 {
        self.setup_rounds.unwrap_or(self.rounds)
    }

    fn measured_for(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    fn idle_for(&self) -> Duration {
        Duration::from_secs(self.idle_seconds)
    }
}

/// Measures every fleet, prints the table and writes the report.
pub(crate) fn run(words: &[&str]) {
    let name = "cargo xtask bench scale";
    let options = Options::parse_from([&[name], words].concat());
    let mut place = MachineInfo::here();
    if options.program.as_os_str() != PROGRAM {
        place.words.push_str(", a program built elsewhere");
    }
    let begun_at = Instant::now();
    let fleets = options.devices.iter();
    let mut fleets: Vec<Fleet> = fleets
        .map(|devices| ScaleRounds::of(*devices, &options, begun_at))
        .collect();
    System::new().block_on(compare(&options, &mut fleets));
    let report = Report {
        date: place.date,
        place: place.words,
        command: [&[name], words].concat().join(" "),
        fleets,
    };
    println!("\n{}", report.markdown());
    let json = report.json();
    fs::write(&options.out, format!("{json:#}\n")).expect("the report can be written");
    println!("the same for programs: {}", options.out.display());
    let errors: f64 = report.fleets.iter().map(Fleet::errors).sum();
    assert_eq!(errors, 0.0, "requests came to nothing");
}

/// Measures what needs no program of its own, and notes it with the fleets.
async fn compare(options: &Options, fleets: &mut [Fleet]) {
    if let Some(largest) = fleets.last_mut() {
        note_all(
            largest,
            "keptSendBytes",
            &kept_sends::measure(options.rounds).await,
        );
        let created = creates::measure(options.rounds).await;
        note_all(largest, "createdPerS", &created.rates());
        note_all(largest, "createdHttpRatio", &created.of_http());
        note_all(largest, "createdStoreRatio", &created.of_store());
    }
    for fleet in fleets.iter_mut().filter(|_| options.echo) {
        let compared = updates::measure(fleet.devices).await;
        note_all(fleet, "updateCoreUs", &compared.service.costs());
        note_all(fleet, "updateEchoRatio", &compared.ratio());
    }
}

/// Adds the figures of all rounds.
fn note_all(fleet: &mut Fleet, key: &'static str, figures: &Figures) {
    for value in figures.rounds() {
        fleet.note(key, *value);
    }
}
