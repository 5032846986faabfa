//! How is one step run, named and timed, and why does a command stop?

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Why a command stops early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A step ran and failed.
    Failed(String),
    /// The machine lacks something, or the command does not exist: nothing was tried.
    Missing(String),
}

impl Stop {
    /// The exit status.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::Missing(_) => 2,
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(text) | Self::Missing(text) => f.write_str(text),
        }
    }
}

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the repository's root")
        .to_path_buf()
}

/// The cargo that runs us, in the repository's root.
pub(crate) fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// Runs a step under a headline and prints how long it took.
pub(crate) fn step<T>(headline: &str, act: impl FnOnce() -> Result<T, Stop>) -> Result<T, Stop> {
    println!("\n== {headline}");
    let begun = Instant::now();
    let outcome = act();
    let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
    println!("== {headline}: {verdict} in {}", seconds(begun.elapsed()));
    outcome
}

/// Runs a program to its end; its output goes to the terminal.
pub(crate) fn run(command: &mut Command) -> Result<(), Stop> {
    let status = command
        .status()
        .map_err(|error| Stop::Failed(format!("cannot start {}: {error}", shown(command))))?;
    if status.success() {
        return Ok(());
    }
    Err(Stop::Failed(format!(
        "{} ended with {status}",
        shown(command)
    )))
}

/// The command as typed in a shell.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    let mut words = vec![name.to_string_lossy().into_owned()];
    words.extend(
        command
            .get_args()
            .map(|word| word.to_string_lossy().into_owned()),
    );
    words.join(" ")
}

/// A duration for people.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::{Stop, run, shown, step};
    use std::process::Command;

    #[test]
    fn a_failed_program_is_named_with_its_arguments() {
        let mut command = Command::new("cargo");
        command.args(["no-such-command", "--x"]);
        assert_eq!(shown(&command), "cargo no-such-command --x");
        let stop = run(command.stderr(std::process::Stdio::null())).unwrap_err();
        assert_eq!(stop.status(), 1);
        assert!(
            stop.to_string()
                .starts_with("cargo no-such-command --x ended with")
        );
    }

    #[test]
    fn a_step_returns_its_outcome() {
        let outcome = step("a step that ends well", || Ok(7)).unwrap();
        assert_eq!(outcome, 7);
        let lost: Result<(), Stop> = step("a step that does not", || {
            Err(Stop::Missing("nothing there".into()))
        });
        assert_eq!(lost.unwrap_err().status(), 2);
    }
}
