//! Are the libraries of the interop tests for Node installed, in the versions of their lock file?

use std::path::PathBuf;
use std::process::Command;

use crate::machine::succeeds;
use crate::steps::{self, Stop, root};

/// The files that say what is installed.
const FILES: [&str; 2] = ["package.json", "package-lock.json"];

/// The libraries of one program.
pub(super) struct Modules {
    project: PathBuf,
    folder: PathBuf,
    /// A library that a program imports.
    library: &'static str,
}

impl Modules {
    /// Those under the build's folder, from the lock file of the tests.
    pub(super) fn of_interop(library: &'static str) -> Self {
        Self {
            project: root().join("tests/interop").join(library),
            folder: root().join("target/interop").join(library),
            library,
        }
    }

    /// Whether they were installed from the current lock file, and can be imported.
    pub(super) fn is_ready(&self) -> bool {
        let is_current = FILES.iter().all(|file| {
            let wanted = std::fs::read(self.project.join(file)).ok();
            wanted.is_some() && wanted == std::fs::read(self.folder.join(file)).ok()
        });
        let library = self.folder.join("node_modules").join(self.library);
        let import = format!("require({:?})", library.display().to_string());
        is_current && succeeds("node", &["-e", &import])
    }

    /// Installs them.
    pub(super) fn install(&self) -> Result<(), Stop> {
        let failed = |error| Stop::Failed(format!("cannot copy the lock file: {error}"));
        std::fs::create_dir_all(&self.folder).map_err(failed)?;
        for file in FILES {
            let (from, to) = (self.project.join(file), self.folder.join(file));
            std::fs::copy(from, to).map_err(failed)?;
        }
        let mut npm = Command::new("npm");
        npm.current_dir(&self.folder);
        npm.args([
            "ci",
            "--silent",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
        ]);
        steps::run(&mut npm)?;
        if self.is_ready() {
            return Ok(());
        }
        Err(Stop::Failed(format!(
            "the libraries in {} were installed but cannot be imported",
            self.folder.display()
        )))
    }
}
