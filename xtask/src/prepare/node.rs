//! Is what the interop tests have from npm installed, in the versions of its lock file?

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machine::succeeds;
use crate::steps::{self, Stop, root};

/// The files that say what is installed.
const FILES: [&str; 2] = ["package.json", "package-lock.json"];

/// The packages of one folder.
pub(super) struct Modules {
    project: PathBuf,
    folder: PathBuf,
    use_of: Use,
}

/// What the packages are installed for.
enum Use {
    /// A program imports this library.
    Library(&'static str),
    /// Each has a PostgreSQL server, whose libraries a script of the package links.
    Servers,
}

impl Modules {
    /// Those of a library under the build's folder, from the lock file of the tests.
    pub(super) fn of_interop(library: &'static str) -> Self {
        Self::of(library, Use::Library(library))
    }

    /// The servers of PostgreSQL.
    pub(super) fn of_servers() -> Self {
        Self::of("postgresql", Use::Servers)
    }

    fn of(name: &str, use_of: Use) -> Self {
        Self {
            project: root().join("tests/interop").join(name),
            folder: root().join("target/interop").join(name),
            use_of,
        }
    }

    /// Whether they were installed from the current lock file, and can be used.
    pub(super) fn is_ready(&self) -> bool {
        let is_current = FILES.iter().all(|file| {
            let wanted = std::fs::read(self.project.join(file)).ok();
            wanted.is_some() && wanted == std::fs::read(self.folder.join(file)).ok()
        });
        let modules = self.folder.join("node_modules");
        is_current
            && match self.use_of {
                Use::Library(library) => {
                    let library = modules.join(library).display().to_string();
                    succeeds("node", &["-e", &format!("require({library:?})")])
                }
                Use::Servers => have_servers(&modules),
            }
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
        npm.args(["ci", "--silent", "--no-audit", "--no-fund"]);
        if let Use::Library(_) = self.use_of {
            npm.arg("--ignore-scripts");
        }
        steps::run(&mut npm)?;
        if self.is_ready() {
            return Ok(());
        }
        Err(Stop::Failed(format!(
            "the packages in {} were installed but cannot be used",
            self.folder.display()
        )))
    }
}

/// Whether every package of a folder has a server that runs.
fn have_servers(modules: &Path) -> bool {
    let packages = std::fs::read_dir(modules).into_iter().flatten().flatten();
    let servers = packages.map(|package| package.path().join("native/bin/postgres"));
    let mut servers = servers.filter(|server| server.is_file()).peekable();
    servers.peek().is_some() && servers.all(|server| succeeds(server, &["--version"]))
}
