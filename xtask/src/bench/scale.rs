//! What does a fleet of a million cost? Builds the service for release, puts it through the rounds
//! of each fleet, and writes the table down.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::bench::echo::{self, Comparison};
use crate::bench::options::{Options, Program, Yardstick};
use crate::bench::place::Place;
use crate::bench::report::{Fleet, Report};
use crate::bench::rounds::Rounds;
use crate::machine::has_program;
use crate::steps::{self, Stop, cargo, root, step};

/// Programs that measuring needs besides cargo.
const PROGRAMS: [&str; 3] = ["setpriv", "taskset", "kill"];

/// Measures every fleet, prints the table and writes the report.
pub(crate) fn run(options: &Options) -> Result<(), Stop> {
    look_for_programs()?;
    let mut place = Place::here();
    match options.program {
        Program::OfTree => step("the release build", || {
            steps::run(cargo().args(["build", "--locked", "--release", "--bin", "signalbox"]))
        })?,
        Program::AsItIs => place.words.push_str(", a program built earlier"),
    }
    let bench = match options.yardstick {
        // Now, so that no compiler runs beside what is measured.
        Yardstick::Echo => Some(step("the bench of updates", echo::build)?),
        Yardstick::None => None,
    };
    let begun_at = Instant::now();
    let fleets = step("fleets", || {
        let fleets = options.fleets.iter();
        let measured = fleets.map(|devices| Rounds::of(*devices, options, begun_at));
        measured.collect::<Result<Vec<Fleet>, Stop>>()
    })?;
    let compare = |bench: PathBuf| {
        step("updates against a bare echo", || {
            Comparison::run(&bench, &options.fleets)
        })
    };
    let comparison = bench.map(compare).transpose()?;
    let errors: f64 = fleets.iter().map(Fleet::errors).sum();
    let report = Report {
        place,
        command: options.command.clone(),
        fleets,
        comparison,
    };
    println!("\n{}", report.markdown());
    write(&report, &options.out)?;
    if errors > 0.0 {
        return Err(Stop::Failed(format!("{errors} requests came to nothing")));
    }
    Ok(())
}

fn look_for_programs() -> Result<(), Stop> {
    let missing: Vec<&str> = PROGRAMS
        .into_iter()
        .filter(|name| !has_program(name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(", ");
    Err(Stop::Missing(format!(
        "measuring needs Linux with these programs of util-linux and procps: {missing}"
    )))
}

fn write(report: &Report, out: &Path) -> Result<(), Stop> {
    let path = root().join(out);
    let text = format!("{:#}\n", report.json());
    fs::write(&path, text).map_err(|error| Stop::Failed(format!("{}: {error}", path.display())))?;
    println!("the same for programs: {}", path.display());
    Ok(())
}
