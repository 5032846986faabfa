//! The program: parses the command line and runs the task.

use std::error::Error;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::time::Duration;
use std::{env, io, thread};

use signalbox::cli::{CliCommand, Invocation};
use signalbox::config::{self, Config, Layers};
use signalbox::service::{self, ServiceExit};
use signalbox::{backup, check, demo, load, telemetry};

/// The exit status of a command line or a configuration that cannot be used.
const USAGE: u8 = 2;

/// The pause before the service starts anew, so that one that fails at once does not do so often.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

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
    match service::serve(config)? {
        ServiceExit::Stopped => Ok(ExitCode::SUCCESS),
        ServiceExit::StoreFailed => Err(start_anew().into()),
    }
}

/// Replaces the process with a new one, with the same arguments and the same id; returns why not.
/// What was acknowledged is durable, and the files of the store can only be opened again by a
/// process that has forgotten what it knew of them.
fn start_anew() -> io::Error {
    tracing::error!("the store has failed: the service starts anew");
    thread::sleep(RESTART_PAUSE);
    let mut arguments = env::args_os();
    let program = match (env::current_exe(), arguments.next()) {
        (Ok(program), _) => program,
        (Err(_), first) => first.unwrap_or_default().into(),
    };
    Command::new(program).args(arguments).exec()
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
    Ok(check::run(&config.data_dir))
}

fn start_log(config: &Config, layers: &Layers) -> Result<(), Box<dyn Error>> {
    telemetry::start(&config.log, config.log_format)?;
    for place in layers.unheeded() {
        tracing::warn!(setting = place, "setting has no effect in this build");
    }
    for stranger in layers.strangers() {
        tracing::warn!(variable = stranger, "unknown setting in the environment");
    }
    Ok(())
}
