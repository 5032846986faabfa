//! Which steps are the project's tests, and which are the whole CI run?

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::console;
use crate::fuzz;
use crate::prepare;
use crate::steps::{self, Stop, cargo, step};
use crate::supply;
use crate::tally::Tally;

/// The tests of the service that also run on PostgreSQL: those whose answers are questions to the
/// store. The suite of the engines tests the same questions alone, and all tests of the service
/// would take as long again as on the embedded store; `TEST_STORE=postgres` runs them by hand.
const ON_POSTGRES: [&str; 14] = [
    "access::",
    "crash::",
    "delivery::failing::",
    "devices::",
    "finding::",
    "history::",
    "idempotency::",
    "jobs::",
    "listing::",
    "logs::",
    "metrics::",
    "schedules::",
    "tagging::",
    "tokens::",
];

/// Prepares the machine, then runs every test.
pub(crate) fn test() -> Result<(), Stop> {
    let begun = Instant::now();
    let mut tally = Tally::default();
    let outcome = prepare::run().and_then(|()| every_test(&mut tally));
    close(&outcome, &tally, begun);
    outcome
}

/// Formatting, lints, documentation and crates, then every test. Nothing is written to the tree.
pub(crate) fn ci() -> Result<(), Stop> {
    step("formatting", || {
        steps::run(cargo().args(["fmt", "--all", "--check"]))?;
        fuzz::check_format()
    })?;
    step("lints", || {
        lint(&["--all-targets"])?;
        // `--all-targets` leaves out the tests that plain `cargo test` leaves out.
        lint(&[
            "--test", "interop", "--test", "browser", "--test", "postgres",
        ])?;
        fuzz::lint()
    })?;
    step("documentation", || {
        let doc = [
            "doc",
            "--locked",
            "--profile",
            "ci",
            "--workspace",
            "--no-deps",
        ];
        let mut command = cargo();
        command.args(doc).arg("--document-private-items");
        steps::run(command.env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    supply::check()?;
    test()
}

/// Lints targets of the workspace; of one package alone, its dependencies would be built again with
/// the features that this package needs.
fn lint(targets: &[&str]) -> Result<(), Stop> {
    let mut command = cargo();
    command
        .args(["clippy", "--locked", "--profile", "ci", "--workspace"])
        .args(targets);
    steps::run(command.args(["--", "-D", "warnings"]))
}

fn every_test(tally: &mut Tally) -> Result<(), Stop> {
    step("tests", || counted(&mut tests(&["--no-fail-fast"]), tally))?;
    fuzz::short()?;
    console::check()?;
    step("tests on PostgreSQL", || {
        counted(&mut tests(&["--test", "postgres"]), tally)
    })?;
    step("service tests on PostgreSQL", || {
        let mut service = tests(&["--test", "service", "--"]);
        service.args(ON_POSTGRES);
        counted(service.env("TEST_STORE", "postgres"), tally)
    })?;
    step("interop tests", || {
        counted(&mut tests(&["--test", "interop"]), tally)
    })?;
    step("browser tests", || {
        counted(&mut tests(&["--test", "browser"]), tally)
    })
}

/// Tests of the workspace; like lints, never of one package alone.
fn tests(arguments: &[&str]) -> Command {
    let mut command = cargo();
    command
        .args(["test", "--locked", "--profile", "ci", "--workspace"])
        .args(arguments);
    command
}

/// Runs tests, prints their output and counts their results.
fn counted(command: &mut Command, tally: &mut Tally) -> Result<(), Stop> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| Stop::Failed(format!("cannot start cargo: {error}")))?;
    let output = child.stdout.take().expect("standard output was piped");
    for line in BufReader::new(output).split(b'\n') {
        let line = line.map_err(|error| Stop::Failed(format!("cannot read cargo: {error}")))?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        tally.take(&line);
    }
    let status = child
        .wait()
        .map_err(|error| Stop::Failed(format!("cannot wait for cargo: {error}")))?;
    if status.success() {
        return Ok(());
    }
    Err(Stop::Failed(format!(
        "{} ended with {status}",
        steps::shown(command)
    )))
}

fn close(outcome: &Result<(), Stop>, tally: &Tally, begun: Instant) {
    let Tally {
        passed,
        failed,
        ignored,
        failures,
        ..
    } = tally;
    let verdict = match outcome {
        Ok(()) => "every step ended well",
        Err(Stop::Failed(_)) => "a step FAILED; the steps after it were not run",
        Err(Stop::Missing(_)) => "nothing was run",
    };
    print!("\n{failures}");
    println!(
        "\n== summary: {verdict}, {}",
        steps::seconds(begun.elapsed())
    );
    if *ignored > 0 {
        println!("{passed} passed, {failed} failed, {ignored} skipped");
    } else {
        println!("{passed} passed, {failed} failed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_that_runs_on_postgresql_exists() {
        let service = steps::root().join("tests/service");
        for module in ON_POSTGRES {
            let file = module.trim_end_matches("::").replace("::", "/") + ".rs";
            assert!(service.join(&file).exists(), "{file}");
        }
    }
}
