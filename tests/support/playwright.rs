//! Where are the packages with which a browser is driven?

use std::path::{Path, PathBuf};

/// The list of the packages of the console, Playwright among them, beside which they are installed.
pub(crate) fn packages() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let packages = root.join("target/console/work/console/package.json");
    assert!(
        packages.is_file(),
        "cargo xtask prepare installs the packages"
    );
    packages
}
