//! Does a body match its golden file? `UPDATE_GOLDEN=1 cargo test` rewrites the files.

use std::fs;
use std::path::Path;

use serde::Serialize;

/// Compares a body with `tests/golden/<name>.json`, including the order of the fields.
pub(super) fn check(name: &str, body: &impl Serialize) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let path = golden.join(format!("{name}.json"));
    let shown = serde_json::to_string_pretty(body).unwrap() + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &shown).unwrap();
    }
    let golden = fs::read_to_string(&path);
    assert_eq!(golden.unwrap_or_default(), shown, "{}", path.display());
}
