//! The program: reads what it is told to do and does it.

use std::error::Error;
use std::process::ExitCode;

use signalbox::cli::{Invocation, Task};
use signalbox::config::{self, Config, Layers};
use signalbox::{demo, service, telemetry};

/// The exit status of a command line or a configuration that cannot be used.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let invocation = match Invocation::parse(std::env::args_os()) {
        Ok(invocation) => invocation,
        Err(error) => error.exit(),
    };
    let preset = invocation.preset();
    match config::load(preset, invocation.file.as_deref(), invocation.flags) {
        Ok((config, layers)) => run(invocation.task, &config, &layers),
        Err(faults) => {
            eprintln!("signalbox: {faults}");
            ExitCode::from(USAGE)
        }
    }
}

fn run(task: Task, config: &Config, layers: &Layers) -> ExitCode {
    match task {
        Task::Config => {
            print!("{layers}");
            ExitCode::SUCCESS
        }
        Task::Serve => exit(serve(config, layers)),
        Task::Demo => exit(show(config, layers)),
    }
}

fn exit(outcome: Result<(), Box<dyn Error>>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("signalbox: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(config: &Config, layers: &Layers) -> Result<(), Box<dyn Error>> {
    start_log(config, layers)?;
    Ok(service::serve(config)?)
}

fn show(config: &Config, layers: &Layers) -> Result<(), Box<dyn Error>> {
    start_log(config, layers)?;
    Ok(demo::run(config, layers)?)
}

fn start_log(config: &Config, layers: &Layers) -> Result<(), Box<dyn Error>> {
    telemetry::start(&config.log, config.log_format)?;
    for place in layers.unheeded() {
        tracing::warn!(setting = place, "this setting has no effect in this build");
    }
    for stranger in layers.strangers() {
        tracing::warn!(variable = stranger, "there is no such setting");
    }
    Ok(())
}
