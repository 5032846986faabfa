//! Does the service keep what its callers, its devices and its operator were promised?
//!
//! The real binary on a data directory of its own, over HTTP and UDP, killed without a word and
//! started again. Only what can be seen from outside is judged.

#![allow(clippy::unwrap_used, clippy::panic)]

mod admin_log;
mod amending;
mod arbiters;
mod attempts;
mod bulk;
mod cancelling;
mod configuration;
mod crash;
mod datagrams;
mod delivery;
mod devices;
mod errors;
mod failures;
mod faults;
mod finding;
mod formats;
mod heads;
mod history;
mod idempotency;
mod identity;
mod import;
mod listing;
mod load;
mod log_statistics;
mod logs;
mod main_job;
mod metrics;
mod notifications;
mod objects;
mod observing;
mod operations;
mod ownership;
mod plain;
mod recorded;
mod records;
mod registering;
mod reporting;
mod results;
mod sending;
mod settings;
mod several_values;
mod test_service;
mod timeline;
mod tokens;
mod values;
#[path = "../support/vocabulary.rs"]
mod vocabulary;
