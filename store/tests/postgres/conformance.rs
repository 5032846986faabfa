//! Does the engine on PostgreSQL obey every law of the store? Each law has a schema of its own.

use crate::server::{Durability, Server};

#[test]
fn the_engine_on_postgresql_passes_the_conformance_suite() {
    let server = Server::start(Durability::None);
    let directory = tempfile::tempdir().unwrap();
    store::conformance::run_all(directory.path(), &|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        Box::new(server.open(&name.replace('-', "_")))
    });
}
