//! The program: parses the command line and runs the task.

use std::error::Error;
use std::process::ExitCode;

use signalbox::cli::{CliCommand, Invocation};
use signalbox::config::{self, Config, Layers};
use signalbox::{demo, load, service, telemetry};

/// The exit status of a command line or a configuration that cannot be used.
const USAGE: u8 = 2;

/// How a task ends.
type Outcome = Result<ExitCode, Box<dyn Error>>;

fn main() -> ExitCode {
    let invocation = match Invocation::parse(std::env::args_os()) {
        Ok(invocation) => invocation,
        Err(error) => error.exit(),
    };
    match &invocation.task {
        CliCommand::Serve => configured(invocation, serve),
        CliCommand::Demo => configured(invocation, show),
        CliCommand::Config => configured(invocation, print),
        CliCommand::Load(options) => exit(load::run(options)),
    }
}

fn configured(invocation: Invocation, task: fn(&Config, &Layers) -> Outcome) -> ExitCode {
    let preset = invocation.preset();
    match config::load(preset, invocation.file.as_deref(), invocation.flags) {
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
    service::serve(config)?;
    Ok(ExitCode::SUCCESS)
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
