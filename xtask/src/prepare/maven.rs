//! Is a Maven program of the interop tests built, and from the current sources?
//!
//! Maven downloads third-party libraries from Maven Central into its own repository (`~/.m2`),
//! compiles our few files against them and puts both under `target/interop`.

use std::path::PathBuf;
use std::process::Command;

use crate::steps::{self, Stop, root};

const JAVA_MIN: u32 = 17;

/// Whether there is a recent enough Java compiler.
pub(super) fn has_compiler() -> bool {
    let output = Command::new("javac").arg("-version").output();
    output.is_ok_and(|output| {
        let version_text = String::from_utf8_lossy(&output.stdout);
        java_version(&version_text).is_some_and(|version| version >= JAVA_MIN)
    })
}

/// A program of ours on third-party libraries, or one of theirs.
pub(super) struct Program {
    project: PathBuf,
    folder: PathBuf,
    java: fn() -> Command,
    // Its class, and arguments with which it starts nothing.
    check: &'static [&'static str],
}

impl Program {
    /// The program under the build's folder, from the sources of the tests.
    pub(super) fn of_interop(name: &str, check: &'static [&'static str]) -> Self {
        Self {
            project: root().join("tests/interop").join(name),
            folder: root().join("target/interop").join(name),
            java: || Command::new("java"),
            check,
        }
    }

    /// The program, if it needs this Java.
    pub(super) fn on(self, java: fn() -> Command) -> Self {
        Self { java, ..self }
    }

    /// Whether it was built from the current sources, and still runs.
    pub(super) fn is_ready(&self) -> bool {
        let wanted = self.sources().ok();
        let built_from = std::fs::read(self.stamp()).ok();
        wanted.is_some() && wanted == built_from && self.runs()
    }

    /// Builds it. The stamp is written last: an interrupted build is repeated.
    pub(super) fn build(&self) -> Result<(), Stop> {
        let sources = self
            .sources()
            .map_err(|error| Stop::Failed(format!("cannot read its sources: {error}")))?;
        if self.folder.exists() {
            std::fs::remove_dir_all(&self.folder)
                .map_err(|error| Stop::Failed(format!("cannot clear the old program: {error}")))?;
        }
        let mut maven = Command::new("mvn");
        maven.args(["--quiet", "--batch-mode", "--file"]);
        maven.arg(self.project.join("pom.xml"));
        maven.args(["dependency:copy-dependencies", "compiler:compile"]);
        steps::run(&mut maven)?;
        std::fs::write(self.stamp(), sources)
            .map_err(|error| Stop::Failed(format!("cannot mark the program: {error}")))?;
        if self.is_ready() {
            return Ok(());
        }
        Err(Stop::Failed(format!(
            "the program in {} was built but does not run",
            self.folder.display()
        )))
    }

    /// All its sources as one text.
    fn sources(&self) -> std::io::Result<Vec<u8>> {
        let mut files = vec![self.project.join("pom.xml")];
        let folder = self.project.join("src");
        if folder.exists() {
            for entry in std::fs::read_dir(folder)? {
                files.push(entry?.path());
            }
        }
        files.sort_unstable();
        let texts = files.iter().map(std::fs::read);
        Ok(texts.collect::<std::io::Result<Vec<Vec<u8>>>>()?.concat())
    }

    /// Whether it starts, and exits with success if it has nothing to do.
    fn runs(&self) -> bool {
        let folder = self.folder.display();
        let parts = format!("{folder}/classes:{folder}/lib/*");
        let words = [&["-cp", &parts], self.check].concat();
        let output = (self.java)().args(words).output();
        output.is_ok_and(|output| output.status.success())
    }

    fn stamp(&self) -> PathBuf {
        self.folder.join("built-from.txt")
    }
}

/// The first number of `javac 17.0.15`; before 9 it was 1.
fn java_version(version_text: &str) -> Option<u32> {
    let number = version_text.trim().strip_prefix("javac ")?;
    let end = number.find(|letter: char| !letter.is_ascii_digit());
    number[..end.unwrap_or(number.len())].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::java_version;

    #[test]
    fn the_version_of_a_compiler_is_its_first_number() {
        for (version_text, version) in [
            ("javac 17.0.15\n", Some(17)),
            ("javac 21\n", Some(21)),
            ("javac 22-ea\n", Some(22)),
            ("javac 1.8.0_402\n", Some(1)),
            ("", None),
            ("gcj 4.8\n", None),
        ] {
            assert_eq!(java_version(version_text), version, "{version_text:?}");
        }
    }
}
