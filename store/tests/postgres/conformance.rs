//! Does the engine on PostgreSQL obey every law of the store? Each law has a schema of its own. The
//! stores that the laws leave are moved to the embedded engine and back.

use std::fs;
use std::path::Path;

use crate::migration::there_and_back;
use crate::open;
use crate::postgres::PostgresServer;

/// Where `cargo xtask prepare` installs a server of the newest version that is documented.
const NEWEST: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../target/interop/postgresql/node_modules"
);

#[test]
fn the_engine_on_postgresql_passes_the_conformance_suite() {
    let server = PostgresServer::start_without_fsync();
    let directory = tempfile::tempdir().unwrap();
    passes(&server, directory.path());
    there_and_back(&server, directory.path());
}

#[test]
fn the_engine_on_the_newest_postgresql_passes_the_conformance_suite() {
    let packages = fs::read_dir(NEWEST).unwrap().map(|it| it.unwrap().path());
    let mut programs = packages.map(|package| package.join("native/bin"));
    let programs = programs.find(|it| it.is_dir()).unwrap();
    let server = PostgresServer::start_of(&programs);
    let version = server.run("postgres", "SHOW server_version");
    assert!(version.starts_with("17."), "{version}");
    passes(&server, tempfile::tempdir().unwrap().path());
}

fn passes(server: &PostgresServer, directory: &Path) {
    store::conformance::run_all(directory, &|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        Box::new(open(server, &name.replace('-', "_")))
    });
}
