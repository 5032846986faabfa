//! Does a body match its golden file? `UPDATE_GOLDEN=1 cargo test` rewrites the files.

use std::fs;
use std::path::Path;

use serde::Serialize;

/// Compares a body with `tests/golden/<name>.json`, including the order of the fields.
pub(super) fn check(name: &str, body: &impl Serialize) {
    let shown = serde_json::to_string_pretty(body).unwrap() + "\n";
    check_file(&format!("tests/golden/{name}.json"), &shown);
}

/// Compares a text with a file of the repository.
pub(super) fn check_file(path: &str, shown: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, shown).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    let differing = golden.lines().zip(shown.lines()).find(|(a, b)| a != b);
    assert!(golden == shown, "{}: {differing:?}", path.display());
}
