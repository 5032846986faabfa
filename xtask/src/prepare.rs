//! What do the interop tests need, and how does it get there?
//!
//! Two foreign CoAP stacks and a reader of metrics: libcoap's programs from the system's packages,
//! aiocoap and Prometheus' own client in a Python environment under `target/interop`. A machine
//! that has them is left alone in a moment.

use std::path::PathBuf;
use std::process::Command;

use crate::machine::{self, Need, has_program, succeeds};
use crate::steps::{self, Stop, root, step};

// Debian builds libcoap's programs once per TLS library and names them so; others build one.
const NEEDS: [Need; 4] = [
    Need {
        what: "Python 3.10 or newer as python3",
        package: "python3",
        is_met: || {
            succeeds(
                "python3",
                &["-c", "import sys; sys.exit(sys.version_info < (3, 10))"],
            )
        },
    },
    Need {
        what: "Python's venv and ensurepip",
        package: "python3-venv",
        is_met: || succeeds("python3", &["-c", "import venv, ensurepip"]),
    },
    Need {
        what: "coap-client of libcoap 4.3",
        package: "libcoap3-bin",
        is_met: || {
            ["coap-client-notls", "coap-client"]
                .into_iter()
                .any(has_program)
        },
    },
    Need {
        what: "coap-server of libcoap 4.3",
        package: "libcoap3-bin",
        is_met: || {
            ["coap-server-notls", "coap-server"]
                .into_iter()
                .any(has_program)
        },
    },
];

/// Installs what is missing; does nothing where all is there.
pub(crate) fn run() -> Result<(), Stop> {
    machine::meet(&NEEDS)?;
    let environment = Environment::of_interop();
    if environment.is_ready() {
        return Ok(());
    }
    step("Python environment", || environment.make())
}

/// The Python environment of the interop tests.
struct Environment {
    folder: PathBuf,
    requirements: PathBuf,
}

impl Environment {
    fn of_interop() -> Self {
        Self {
            folder: root().join("target/interop/venv"),
            requirements: root().join("tests/interop/requirements.txt"),
        }
    }

    /// Whether it was made from these very requirements and its Python still runs.
    fn is_ready(&self) -> bool {
        let wanted = std::fs::read(&self.requirements).ok();
        let made_from = std::fs::read(self.stamp()).ok();
        wanted.is_some()
            && wanted == made_from
            && succeeds(self.python(), &["-c", "import aiocoap, prometheus_client"])
    }

    /// Makes it anew. The stamp comes last: a half-made environment is made again.
    fn make(&self) -> Result<(), Stop> {
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

    fn python(&self) -> PathBuf {
        self.folder.join("bin/python")
    }

    fn stamp(&self) -> PathBuf {
        self.folder.join("made-from.txt")
    }
}
