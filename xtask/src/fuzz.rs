//! How long do the codecs get mutated inputs, and from which program?

use std::process::Command;

use crate::steps::{self, Stop, cargo, step};

/// The targets are a workspace of their own.
const MANIFEST: &str = "fuzz/Cargo.toml";

/// The duration within the project's own tests: a few seconds for each target.
const SECONDS: &str = "20";

/// The short run as a part of the tests.
pub(crate) fn short() -> Result<(), Stop> {
    run(&["--seconds", SECONDS])
}

/// The short run with the arguments: `--seconds N`, `--seed S`, `--target NAME`.
///
/// It needs neither a nightly compiler nor libFuzzer. Its build stays under `target/`.
pub(crate) fn run(words: &[&str]) -> Result<(), Stop> {
    check(words)?;
    step("fuzzing", || {
        let mut command = built("run");
        command.args(["--quiet", "--example", "short", "--"]);
        steps::run(command.args(words))
    })
}

/// Whether the targets are formatted.
pub(crate) fn check_format() -> Result<(), Stop> {
    let mut command = cargo();
    command.args(["fmt", "--manifest-path", MANIFEST, "--check"]);
    steps::run(&mut command)
}

/// Lints the crates of the short run.
pub(crate) fn lint() -> Result<(), Stop> {
    let mut command = built("clippy");
    steps::run(command.args(["--all-targets", "--", "-D", "warnings"]))
}

/// A cargo command on the targets that works with any compiler.
fn built(name: &str) -> Command {
    let mut command = cargo();
    command.args([name, "--locked", "--no-default-features"]);
    command.args(["--manifest-path", MANIFEST, "--target-dir", "target/fuzz"]);
    command
}

fn check(words: &[&str]) -> Result<(), Stop> {
    let is_option = |pair: &[&str]| match pair {
        ["--seconds" | "--seed", number] => number.parse::<u64>().is_ok(),
        ["--target", _] => true,
        _ => false,
    };
    if words.chunks(2).all(is_option) {
        Ok(())
    } else {
        let words = words.join(" ");
        Err(Stop::Missing(format!(
            "fuzz takes `--seconds N`, `--seed S` and `--target NAME`, not `{words}`"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn only_known_options_are_taken() {
        for words in [
            &[][..],
            &["--seconds", "5"],
            &["--seed", "7", "--seconds", "5"],
            &["--target", "tlv"],
        ] {
            assert!(check(words).is_ok(), "{words:?}");
        }
        for words in [
            &["--seconds"][..],
            &["--seed", "x"],
            &["tlv"],
            &["--runs", "5"],
        ] {
            assert_eq!(check(words).unwrap_err().status(), 2, "{words:?}");
        }
    }
}
