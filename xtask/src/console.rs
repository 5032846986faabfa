//! How is the console built, checked and driven in a browser?

#[path = "../../build/console.rs"]
#[allow(dead_code, reason = "the build script uses the rest")]
mod console_build;

use std::process::Command;

use crate::machine::has_program;
use crate::steps::{self, Stop, root, step};

use console_build::{ConsoleWorkspace, INSTALL_NODE, NoConsole, Packages};

/// The names of Chromium on Debian and its children.
const CHROMIUM: [&str; 2] = ["chromium", "chromium-browser"];

/// Whether the machine has the Node that builds the console.
pub(crate) fn has_node() -> bool {
    console_build::has_node()
}

/// Whether the machine has the browser of the tests.
pub(crate) fn has_chromium() -> bool {
    CHROMIUM.into_iter().any(has_program)
}

/// Builds the console, or says why that fails; the next build of the service embeds it.
pub(crate) fn build() -> Result<(), Stop> {
    step("console", || made(&workspace()).map_err(stopped))
}

/// Builds the console, and installs the packages of its checks and of the browser tests.
pub(crate) fn prepare() -> Result<(), Stop> {
    step("packages of the console", || {
        let workspace = workspace();
        let prepared = workspace.prepare(Packages::All);
        prepared.and_then(|()| made(&workspace)).map_err(stopped)
    })
}

/// Checks types, lints, formatting and unit tests of the console, and the formatting of its
/// stories and of what measures it.
pub(crate) fn check() -> Result<(), Stop> {
    step("console: types, lints, formatting, tests", || {
        steps::run(npm().args(["run", "--silent", "check"]))?;
        let mut prettier = npm();
        prettier.args(["exec", "--", "prettier", "--log-level", "warn"]);
        prettier.args(["--config", ".prettierrc.json", "--check"]);
        let measuring = root().join("benches/spine/console.mjs");
        steps::run(prettier.arg(root().join("tests/browser")).arg(measuring))
    })
}

fn made(workspace: &ConsoleWorkspace) -> Result<(), NoConsole> {
    workspace.bundle()?;
    Ok(workspace.note_attempt()?)
}

fn npm() -> Command {
    let mut npm = Command::new("npm");
    npm.current_dir(workspace().copy());
    npm
}

fn workspace() -> ConsoleWorkspace {
    ConsoleWorkspace::new(&root(), &root().join("target"))
}

fn stopped(why: NoConsole) -> Stop {
    match why {
        NoConsole::Node => Stop::Missing(INSTALL_NODE.to_owned()),
        NoConsole::Packages(output) | NoConsole::Sources(output) => Stop::Failed(output),
        NoConsole::File(error) => Stop::Failed(error.to_string()),
    }
}
