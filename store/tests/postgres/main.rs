//! Does the engine on PostgreSQL obey every law of the store, and survive what happens to a server?
//!
//! The tests start servers of their own from the system's packages, which `cargo xtask prepare`
//! installs; plain `cargo test` needs Rust alone.

#![allow(clippy::unwrap_used, clippy::panic)]

mod conformance;
mod damaged;
mod kill9;
mod migration;
mod nodes;
#[allow(dead_code, reason = "other tests wait for more")]
#[path = "../../../tests/support/poll.rs"]
mod poll;
#[allow(dead_code, reason = "the tests of the service need more of a server")]
#[path = "../../../tests/support/postgres.rs"]
mod postgres;
#[allow(dead_code, reason = "other programs are signalled")]
#[path = "../../../tests/support/program.rs"]
mod program;

use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use store::{PostgresOptions, PostgresStore, PostgresUrl};

use postgres::PostgresServer;

/// The database in which each test has a schema.
const DATABASE: &str = "postgres";

/// Opens a store in a schema, which is created if it does not exist.
fn open(server: &PostgresServer, schema: &str) -> PostgresStore {
    open_with(options(server, schema))
}

fn open_with(options: PostgresOptions) -> PostgresStore {
    PostgresStore::open(options).unwrap()
}

/// How a schema is used, which is created if it does not exist.
fn options(server: &PostgresServer, schema: &str) -> PostgresOptions {
    server.run(DATABASE, &format!("CREATE SCHEMA IF NOT EXISTS {schema}"));
    let url = server.url(DATABASE) + "?options=-csearch_path%3D" + schema;
    let url = PostgresUrl::parse(&url).unwrap();
    PostgresOptions::at(url, no_trust())
}

/// TLS that trusts nobody: a server on the same machine needs none.
fn no_trust() -> ClientConfig {
    ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth()
}
