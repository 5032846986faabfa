//! Which crates does the service consist of, and are they permitted?
//!
//! Answered by two programs of the Rust registry, which are built under `target/tools` once.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::machine::succeeds;
use crate::steps::{self, Stop, cargo, root, step};

/// A program of the Rust registry in the version that the project uses.
struct Tool {
    name: &'static str,
    version: &'static str,
}

const DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
};

const CYCLONEDX: Tool = Tool {
    name: "cargo-cyclonedx",
    version: "0.5.9",
};

/// Checks licences, banned crates and sources by `deny.toml`; advisories too where their database
/// can be reached, because a machine without a network is to judge a commit the same way.
pub(crate) fn check() -> Result<(), Stop> {
    let program = DENY.installed()?;
    step("licences, bans and sources of crates", || {
        let mut deny = Command::new(&program);
        deny.current_dir(root());
        steps::run(deny.args(["check", "bans", "licenses", "sources"]))
    })?;
    if !succeeds(&program, &["fetch", "db"]) {
        println!("\n== advisories: not checked, their database cannot be reached");
        return Ok(());
    }
    step("advisories", || {
        let mut deny = Command::new(&program);
        deny.current_dir(root());
        steps::run(deny.args(["check", "--disable-fetch", "advisories"]))
    })
}

/// Writes the software bill of materials of the service, CycloneDX 1.5 in JSON, and says where.
pub(crate) fn sbom() -> Result<(), Stop> {
    /// The program writes one file beside the manifest of each package, under this name.
    const NAME: &str = "signalbox.cdx";
    let program = CYCLONEDX.installed()?;
    let mut cyclonedx = Command::new(program);
    cyclonedx
        .current_dir(root())
        .args(["cyclonedx", "--quiet", "--format", "json"]);
    cyclonedx.args(["--spec-version", "1.5", "--override-filename", NAME]);
    let made = steps::run(&mut cyclonedx);
    let file_name = format!("{NAME}.json");
    let folder = root().join("target/sbom");
    let moved = made.and_then(|()| {
        fs::create_dir_all(&folder)
            .and_then(|()| fs::rename(root().join(&file_name), folder.join(&file_name)))
            .map_err(|error| Stop::Failed(format!("no bill of materials was written: {error}")))
    });
    remove_others(&file_name)?;
    moved?;
    println!("{}", folder.join(file_name).display());
    Ok(())
}

fn remove_others(file_name: &str) -> Result<(), Stop> {
    let failed = |error| Stop::Failed(format!("cannot remove {file_name}: {error}"));
    for entry in fs::read_dir(root()).map_err(failed)? {
        let file = entry.map_err(failed)?.path().join(file_name);
        if file.exists() {
            fs::remove_file(file).map_err(failed)?;
        }
    }
    Ok(())
}

impl Tool {
    /// Where the program is, once it is installed.
    fn installed(&self) -> Result<PathBuf, Stop> {
        let folder = root().join(format!("target/tools/{}-{}", self.name, self.version));
        let program = folder.join("bin").join(self.name);
        if !program.exists() {
            step(self.name, || {
                let mut install = cargo();
                // Built without optimisation: it runs for seconds.
                install.args(["install", "--quiet", "--locked", "--debug"]);
                install.args([self.name, "--version", self.version, "--root"]);
                steps::run(install.arg(folder))
            })?;
        }
        Ok(program)
    }
}
