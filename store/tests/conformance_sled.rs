//! Does the embedded engine obey every law of the store?

use std::path::Path;

use store::{Options, SledStore, Store};

#[test]
fn the_embedded_engine_passes_the_conformance_suite() {
    let directory = tempfile::tempdir().expect("a directory");
    store::conformance::run_all(directory.path(), &open);
}

fn open(path: &Path) -> Box<dyn Store> {
    Box::new(SledStore::open(Options::at(path)).expect("a store"))
}
