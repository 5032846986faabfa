//! How is the console built? With npm, from a copy of `console/` under `target/console`, once for
//! all profiles: nothing is written to the source tree.
//!
//! ```text
//! target/console/work/console        the copy, with its node_modules
//! target/console/bundle-<digest>     the built files, named by the digest of what they are made of
//! target/console/attempt             changes whenever `cargo xtask console` has built it
//! ```
//!
//! The build script and `cargo xtask` share this file.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders of `console/` that are made, not written.
const MADE: [&str; 3] = ["dist", "generated", "node_modules"];

/// A file outside `console/` that it is built from: the names of objects and resources.
pub(crate) const OBJECTS: &str = "protocol/data/oma-objects.csv";

/// What to do when there is no Node; the console's address says it.
pub(crate) const INSTALL_NODE: &str = "The console is not part of this build: install Node.js \
     20.19 or newer (22.12 or newer in later lines) with npm, run `cargo xtask console`, and build \
     again.";

/// What to do when npm could not install the packages.
pub(crate) const INSTALL_PACKAGES: &str = "The console is not part of this build, because npm \
     could not install its packages: run `cargo xtask console` with a network to see why, and \
     build again.";

/// Why there is no console.
#[derive(Debug)]
pub(crate) enum NoConsole {
    /// There is no suitable Node.
    Node,
    /// `npm ci` failed, with its output.
    Packages(String),
    /// The sources do not build, with the output of npm.
    Sources(String),
    /// A file could not be read or written.
    File(io::Error),
}

impl From<io::Error> for NoConsole {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

/// The packages of `package.json` that are installed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Packages {
    /// Those that the build takes.
    OfBuild,
    /// Those of the checks and the tests, too.
    All,
}

/// Where the console is built.
pub(crate) struct ConsoleWorkspace {
    root: PathBuf,
    target: PathBuf,
}

impl ConsoleWorkspace {
    /// That of the repository at `root`, under its target directory.
    pub(crate) fn new(root: &Path, target: &Path) -> Self {
        Self {
            root: root.to_owned(),
            target: target.join("console"),
        }
    }

    /// The copy of `console/`.
    pub(crate) fn copy(&self) -> PathBuf {
        self.target.join("work/console")
    }

    /// A file that changes when somebody has tried again.
    pub(crate) fn attempt(&self) -> PathBuf {
        self.target.join("attempt")
    }

    /// The folder with the built files, which are built unless they are there.
    pub(crate) fn bundle(&self) -> Result<PathBuf, NoConsole> {
        let _lock = self.locked()?;
        let bundle = self.target.join(format!("bundle-{}", self.digest()?));
        if bundle.is_dir() {
            return Ok(bundle);
        }
        self.install(Packages::OfBuild)?;
        npm(&self.copy(), &["run", "--silent", "build"]).map_err(NoConsole::Sources)?;
        fs::rename(self.copy().join("dist"), &bundle)?;
        Ok(bundle)
    }

    /// Copies the sources and installs packages; takes a moment where both are as they should be.
    pub(crate) fn prepare(&self, packages: Packages) -> Result<(), NoConsole> {
        let _lock = self.locked()?;
        self.install(packages)
    }

    /// Notes that somebody has tried: the next build tries, too.
    pub(crate) fn note_attempt(&self) -> io::Result<()> {
        fs::create_dir_all(&self.target)?;
        fs::write(self.attempt(), [])
    }

    /// Every file that the console is built from, in order.
    pub(crate) fn inputs(&self) -> io::Result<Vec<PathBuf>> {
        let mut inputs = vec![PathBuf::from(OBJECTS)];
        let mut folders = vec![PathBuf::from("console")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(self.root.join(&folder))? {
                let entry = entry?;
                let name = entry.file_name();
                let is_made = MADE.iter().any(|made| name == *made);
                let path = folder.join(&name);
                match entry.file_type()?.is_dir() {
                    true => folders.extend((!is_made).then_some(path)),
                    false => inputs.push(path),
                }
            }
        }
        inputs.sort();
        Ok(inputs)
    }

    /// Builds for several profiles at a time share the copy.
    fn locked(&self) -> io::Result<File> {
        fs::create_dir_all(&self.target)?;
        let lock = File::create(self.target.join("lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    fn digest(&self) -> io::Result<String> {
        let mut hasher = DefaultHasher::new();
        for input in self.inputs()? {
            input.hash(&mut hasher);
            fs::read(self.root.join(&input))?.hash(&mut hasher);
        }
        Ok(format!("{:016x}", hasher.finish()))
    }

    fn install(&self, packages: Packages) -> Result<(), NoConsole> {
        if !has_node() {
            return Err(NoConsole::Node);
        }
        self.mirror()?;
        let copy = self.copy();
        let stamp = copy.join("node_modules/.signalbox-lock");
        let lock = fs::read_to_string(copy.join("package-lock.json"))?;
        let all = format!("all\n{lock}");
        let wanted = match packages {
            Packages::OfBuild => format!("build\n{lock}"),
            Packages::All => all.clone(),
        };
        let installed = fs::read_to_string(&stamp).unwrap_or_default();
        if installed == wanted || installed == all {
            return Ok(());
        }
        let mut arguments = vec!["ci", "--no-audit", "--no-fund", "--ignore-scripts"];
        arguments.extend(["--prefer-offline", "--loglevel=error"]);
        // By default a machine without a network would wait for more than a minute.
        arguments.extend(["--fetch-retries=1", "--fetch-retry-mintimeout=1000"]);
        if packages == Packages::OfBuild {
            arguments.push("--omit=dev");
        }
        npm(&copy, &arguments).map_err(NoConsole::Packages)?;
        Ok(fs::write(stamp, wanted)?)
    }

    /// Makes the copy equal to the sources; a file that did not change keeps its time.
    fn mirror(&self) -> io::Result<()> {
        let work = self.target.join("work");
        let copied = Self::new(&work, &work);
        let inputs = self.inputs()?;
        if work.join("console").is_dir() && work.join(OBJECTS).is_file() {
            for former in copied.inputs()? {
                if !inputs.contains(&former) {
                    fs::remove_file(work.join(former))?;
                }
            }
        }
        for input in inputs {
            let (from, to) = (self.root.join(&input), work.join(&input));
            let content = fs::read(from)?;
            if fs::read(&to).is_ok_and(|former| former == content) {
                continue;
            }
            fs::create_dir_all(to.parent().unwrap_or(&work))?;
            fs::write(to, content)?;
        }
        Ok(())
    }
}

/// Whether the machine has a Node that builds the console.
pub(crate) fn has_node() -> bool {
    let version = |program: &str| {
        let output = Command::new(program).arg("--version").output().ok()?;
        String::from_utf8(output.stdout).ok()
    };
    version("npm").is_some() && version("node").is_some_and(|version| is_suitable(&version))
}

/// Whether `node --version` names 20.19 or newer of its line, or 22.12 or newer.
fn is_suitable(version: &str) -> bool {
    let numbers = version.trim().trim_start_matches('v').split('.');
    let mut numbers = numbers.map_while(|number| number.parse::<u32>().ok());
    let (major, minor) = (numbers.next(), numbers.next());
    match (major, minor) {
        (Some(20), Some(minor)) => minor >= 19,
        (Some(22), Some(minor)) => minor >= 12,
        (Some(major), Some(_)) => major > 22,
        _ => false,
    }
}

/// Runs npm; its output if it fails.
fn npm(folder: &Path, arguments: &[&str]) -> Result<(), String> {
    let mut npm = Command::new("npm");
    let output = npm.args(arguments).current_dir(folder).output();
    let output = output.map_err(|error| format!("npm: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let (said, warned) = (&output.stdout, &output.stderr);
    let text = [said, warned].map(|text| String::from_utf8_lossy(text).into_owned());
    Err(format!("npm {}:\n{}", arguments.join(" "), text.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_node_counts_as_none() {
        for version in ["v20.19.0\n", "v20.20.2", "v22.12.0", "v23.0.0", "v24.1.0"] {
            assert!(is_suitable(version), "{version}");
        }
        for version in [
            "v18.20.4", "v20.18.1", "v21.7.3", "v22.11.0", "v20", "", "none",
        ] {
            assert!(!is_suitable(version), "{version}");
        }
    }

    #[test]
    fn the_copy_follows_the_sources_and_the_digest_their_content() {
        let root = std::env::temp_dir().join(format!("signalbox-console-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(OBJECTS, "objects");
        write("console/src/kept.ts", "one");
        write("console/src/removed.ts", "two");
        write("console/node_modules/package/index.js", "three");
        let workspace = ConsoleWorkspace::new(&root, &root.join("target"));
        let before = workspace.digest().unwrap();
        workspace.mirror().unwrap();
        let copy = workspace.copy();
        assert_eq!(
            fs::read_to_string(copy.join("src/removed.ts")).unwrap(),
            "two"
        );
        assert!(!copy.join("node_modules").exists(), "it is no source");

        fs::remove_file(root.join("console/src/removed.ts")).unwrap();
        write("console/src/kept.ts", "changed");
        fs::create_dir_all(copy.join("node_modules")).unwrap();
        workspace.mirror().unwrap();
        assert_ne!(workspace.digest().unwrap(), before);
        assert!(!copy.join("src/removed.ts").exists());
        assert_eq!(
            fs::read_to_string(copy.join("src/kept.ts")).unwrap(),
            "changed"
        );
        assert!(
            copy.join("node_modules").exists(),
            "what was installed stays"
        );
        fs::remove_dir_all(root).unwrap();
    }
}
