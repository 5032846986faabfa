//! The service: its configuration, its HTTP face, and everything wired together.

pub mod cli;
pub mod config;
pub mod telemetry;
