//! What does this machine have, and can missing packages be installed?

use std::path::Path;
use std::process::{Command, Stdio};

use crate::steps::{self, Stop, step};

/// A program or part that the tests need, and its Debian package.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    /// Its description.
    pub(crate) what: &'static str,
    /// The Debian package.
    pub(crate) package: &'static str,
    /// Whether the machine has it.
    pub(crate) is_met: fn() -> bool,
}

/// How packages can be installed here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Installer {
    /// We are root on Debian or a child of it.
    Apt,
    /// Only a person with the right to install packages can.
    Person,
}

/// Makes sure that every need is met, or prints what a person must do.
pub(crate) fn meet(needs: &[Need]) -> Result<(), Stop> {
    let missing = unmet(needs);
    if missing.is_empty() {
        return Ok(());
    }
    match installer() {
        Installer::Person => return Err(Stop::Missing(request(&missing))),
        Installer::Apt => step("Debian packages", || install(&missing))?,
    }
    let still = unmet(&missing);
    if still.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = still.iter().map(|need| need.what).collect();
    Err(Stop::Missing(format!(
        "the packages are installed, yet this is still missing: {}",
        names.join(", ")
    )))
}

/// Whether a program of this name can be run.
pub(crate) fn has_program(name: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else {
        return false;
    };
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// Whether a program runs and exits with status 0.
pub(crate) fn succeeds(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn unmet(needs: &[Need]) -> Vec<Need> {
    needs
        .iter()
        .copied()
        .filter(|need| !(need.is_met)())
        .collect()
}

fn installer() -> Installer {
    let is_debian = Path::new("/etc/debian_version").exists() && has_program("apt-get");
    let user = Command::new("id").arg("-u").output();
    let is_root = user.is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    if is_debian && is_root {
        Installer::Apt
    } else {
        Installer::Person
    }
}

fn packages(missing: &[Need]) -> Vec<&'static str> {
    let mut packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

fn install(missing: &[Need]) -> Result<(), Stop> {
    apt(&["update"])?;
    let mut words = vec!["install", "-y", "--no-install-recommends"];
    words.extend(packages(missing));
    apt(&words)
}

fn apt(words: &[&str]) -> Result<(), Stop> {
    let mut apt = Command::new("apt-get");
    apt.args(["-qq", "-o", "Dpkg::Use-Pty=0"]).args(words);
    apt.env("DEBIAN_FRONTEND", "noninteractive");
    // Its output is of no interest unless it fails, and errors go to standard error.
    steps::run(apt.stdin(Stdio::null()).stdout(Stdio::null()))
}

fn request(missing: &[Need]) -> String {
    let mut text = String::from("the tests need what this machine lacks:\n");
    for need in missing {
        text.push_str(&format!(
            "  {} (Debian package {})\n",
            need.what, need.package
        ));
    }
    text.push_str("On Debian or Ubuntu, install it with\n\n  sudo apt-get update && sudo apt-get ");
    text.push_str("install -y --no-install-recommends ");
    text.push_str(&packages(missing).join(" "));
    text.push_str("\n\nElsewhere, put these programs on PATH. Then run this again.");
    text
}

#[cfg(test)]
mod tests {
    use super::{Need, has_program, meet, packages, request, succeeds, unmet};

    const THERE: Need = Need {
        what: "a thing",
        package: "thing",
        is_met: || true,
    };
    const LACKING: Need = Need {
        what: "a tool",
        package: "tool",
        is_met: || false,
    };
    const TWIN: Need = Need {
        what: "its twin",
        package: "tool",
        is_met: || false,
    };

    #[test]
    fn what_is_installed_is_not_requested() {
        assert!(meet(&[THERE]).is_ok());
        assert_eq!(packages(&unmet(&[THERE, LACKING])), ["tool"]);
    }

    #[test]
    fn a_person_is_given_the_exact_command() {
        let text = request(&[LACKING, TWIN]);
        assert_eq!(packages(&[LACKING, TWIN]), ["tool"]);
        assert!(text.contains("a tool (Debian package tool)"), "{text}");
        assert!(text.contains("its twin (Debian package tool)"), "{text}");
        let command = "\n  sudo apt-get update && \
                       sudo apt-get install -y --no-install-recommends tool\n";
        assert!(text.contains(command), "{text}");
    }

    #[test]
    fn programs_are_found_by_name_and_judged_by_status() {
        assert!(has_program("cargo"));
        assert!(!has_program("no-such-program-anywhere"));
        assert!(succeeds("cargo", &["--version"]));
        assert!(!succeeds("cargo", &["no-such-command"]));
        assert!(!succeeds("no-such-program-anywhere", &[]));
    }
}
