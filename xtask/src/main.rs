//! Which of the project's own commands was requested, and what does its exit status mean?
//!
//! `cargo xtask COMMAND`: 0 success, 1 a step failed, 2 the machine lacks something or the command
//! does not exist. No dependencies, so that a fresh machine builds it in seconds.

mod bench;
mod console;
mod fuzz;
mod machine;
mod prepare;
mod steps;
mod suite;
mod supply;
mod tally;

use std::process::ExitCode;

use crate::steps::Stop;

const USAGE: &str = "\
cargo xtask COMMAND

  prepare   installs what the interop and browser tests need: libcoap's programs, a Python
            environment, a device on Leshan, checks on Californium, Chromium
  console   builds the console, which the next build of the service embeds; says why if it cannot
  test      prepares, then runs every test of the project
  fuzz      gives every codec changed inputs for some seconds:
            `fuzz [--seconds N] [--seed S] [--target NAME]`
  ci        formatting, lints, documentation, crates, then every test
  sbom      writes the bill of materials of the service: target/sbom/signalbox.cdx.json, CycloneDX
  bench     measures, built for release: `bench scale`, fleets up to a million; `bench peers`, the
            service beside Leshan's server; `bench openssl`, its DTLS beside OpenSSL;
            `bench console`, the views of the console in Chromium; `bench cluster`, the faults of
            several nodes
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["prepare"] => prepare::run(),
        ["console"] => console::build(),
        ["test"] => suite::test(),
        ["ci"] => suite::ci(),
        ["sbom"] => supply::sbom(),
        ["fuzz", words @ ..] => fuzz::run(words),
        ["bench", words @ ..] => bench::run(words),
        [] | ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        _ => Err(Stop::Missing(format!(
            "no such command: {}\n\n{USAGE}",
            words.join(" ")
        ))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(stop) => {
            eprintln!("\nxtask: {stop}");
            ExitCode::from(stop.status())
        }
    }
}
