//! Does the engine on PostgreSQL obey every law of the store? Each law has a schema of its own. The
//! stores that the laws leave are moved to the embedded engine and back.

use crate::migration::there_and_back;
use crate::open;
use crate::postgres::PostgresServer;

#[test]
fn the_engine_on_postgresql_passes_the_conformance_suite() {
    let server = PostgresServer::start_without_fsync();
    let directory = tempfile::tempdir().unwrap();
    store::conformance::run_all(directory.path(), &|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        Box::new(open(&server, &name.replace('-', "_")))
    });
    there_and_back(&server, directory.path());
}
