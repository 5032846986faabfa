//! Does the engine on PostgreSQL obey every law of the store, and survive what happens to a server?
//!
//! The tests start servers of their own from the system's packages, which `cargo xtask prepare`
//! installs; plain `cargo test` needs Rust alone.

#![allow(clippy::unwrap_used)]

mod conformance;
mod damaged;
mod kill9;
mod server;
