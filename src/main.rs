//! The program: parses the command line and runs the task.

use std::convert::Infallible;
use std::error::Error;
use std::os::unix::process::CommandExt as _;
use std::process::{self, Command, ExitCode};
use std::time::Duration;
use std::{env, io};

use signalbox::cli::{CliCommand, Invocation};
use signalbox::config::{self, Config, Layers};
use signalbox::service::{self, ProcessEnds};
use signalbox::{backup, check, demo, load, migrate, rekey, telemetry};

/// Threads of the store free what others allocated, in sizes for which jemalloc keeps caches.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The exit status of a command line or a configuration that cannot be used.
const USAGE: u8 = 2;

/// The exit status of a node whose lease another node has (`EX_TEMPFAIL` of sysexits.h): started
/// again, it stands by.
const SUPERSEDED: i32 = 75;

/// A service that has run for this long was started well.
const STEADY: Duration = Duration::from_secs(60);

/// How often in a row the service starts anew without having been started well.
const RESTARTS_MAX: u32 = 2;

/// How a task ends.
type Outcome = Result<ExitCode, Box<dyn Error>>;

fn main() -> ExitCode {
    let invocation = match Invocation::parse(std::env::args_os()) {
        Ok(invocation) => invocation,
        Err(error) => error.exit(),
    };
    match &invocation.task {
        CliCommand::Serve => configured(&invocation, serve),
        CliCommand::Demo => configured(&invocation, show),
        CliCommand::Config => configured(&invocation, print),
        CliCommand::Check => configured(&invocation, check),
        CliCommand::Backup { to, api } => {
            let make = |config: &Config, _: &Layers| {
                backup::make(config, to, api.as_deref())?;
                Ok(ExitCode::SUCCESS)
            };
            configured(&invocation, make)
        }
        CliCommand::Restore { from } => {
            let restore = |config: &Config, _: &Layers| {
                backup::restore(config, from)?;
                Ok(ExitCode::SUCCESS)
            };
            configured(&invocation, restore)
        }
        CliCommand::Rekey { new_key } => {
            let change = |config: &Config, _: &Layers| Ok(rekey::run(config, new_key.as_deref())?);
            configured(&invocation, change)
        }
        CliCommand::Migrate { from, to } => {
            let moving = |config: &Config, _: &Layers| Ok(migrate::run(config, from, to)?);
            configured(&invocation, moving)
        }
        CliCommand::Load(options) => exit(load::run(options)),
    }
}

fn configured(invocation: &Invocation, task: impl FnOnce(&Config, &Layers) -> Outcome) -> ExitCode {
    let (preset, file) = (invocation.preset(), invocation.file.as_deref());
    match config::load(preset, file, invocation.flags.clone()) {
        Ok((config, layers)) => exit(task(&config, &layers)),
        Err(faults) => {
            eprintln!("signalbox: {faults}");
            ExitCode::from(USAGE)
        }
    }
}

fn exit(outcome: Outcome) -> ExitCode {
    outcome.unwrap_or_else(|error| {
        eprintln!("signalbox: {error}");
        ExitCode::FAILURE
    })
}

fn serve(config: &Config, layers: &Layers) -> Outcome {
    start_log(config, layers)?;
    service::serve(
        config,
        ProcessEnds {
            replace,
            superseded,
        },
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Replaces the process after its store failed, or ends it if that was in vain before.
fn replace(served_for: Duration) -> Infallible {
    let restarts = match served_for < STEADY {
        true => config::restarts(),
        false => 0,
    };
    let why = match restarts < RESTARTS_MAX {
        true => {
            tracing::error!("the store has failed: the service starts anew");
            start_anew(restarts + 1).to_string()
        }
        false => {
            "the store fails again and again soon after the start; run `signalbox check`, and \
                  restore a backup if it is damaged"
                .to_owned()
        }
    };
    tracing::error!("{why}");
    eprintln!("signalbox: {why}");
    process::exit(1)
}

/// Ends the process of a node that another one has taken over from: nothing that it knows holds any
/// more, and a process that has ended is silent for certain.
fn superseded() -> Infallible {
    process::exit(SUPERSEDED)
}

/// Replaces the process with a new one, with the same arguments and the same id; returns why not.
/// What was acknowledged is durable, and the files of the store can only be opened again by a
/// process that has forgotten what it knew of them.
fn start_anew(restarts: u32) -> io::Error {
    let mut arguments = env::args_os();
    let program = match (env::current_exe(), arguments.next()) {
        (Ok(program), _) => program,
        (Err(_), first) => first.unwrap_or_default().into(),
    };
    let mut command = Command::new(program);
    command.args(arguments);
    command.env(config::RESTARTS, restarts.to_string()).exec()
}

fn show(config: &Config, layers: &Layers) -> Outcome {
    start_log(config, layers)?;
    demo::run(config, layers)?;
    Ok(ExitCode::SUCCESS)
}

fn print(_: &Config, layers: &Layers) -> Outcome {
    print!("{layers}");
    Ok(ExitCode::SUCCESS)
}

fn check(config: &Config, _: &Layers) -> Outcome {
    Ok(check::run(config))
}

fn start_log(config: &Config, layers: &Layers) -> Result<(), Box<dyn Error>> {
    telemetry::start(&config.log, config.log_format)?;
    for stranger in layers.strangers() {
        tracing::warn!(variable = stranger, "unknown setting in the environment");
    }
    Ok(())
}
