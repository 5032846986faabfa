//! Does the service keep its promises to callers, devices and the operator?
//!
//! The tests run the real binary on a data directory of its own, over HTTP and UDP, kill it and
//! start it again. They check only what can be observed from outside.

#![allow(clippy::unwrap_used, clippy::panic)]

mod access;
mod admin_log;
mod amending;
mod arbiters;
mod attempts;
mod backup;
mod bootstrap;
mod bulk;
mod cancelling;
mod certificates;
mod composite;
mod configuration;
mod console;
mod crash;
mod datagrams;
mod delivery;
mod devices;
mod errors;
mod failures;
mod faults;
mod finding;
mod floods;
mod formats;
mod full_disk;
mod heads;
mod history;
mod https;
mod idempotency;
mod identity;
mod import;
mod jobs;
mod keys;
mod listing;
mod load;
mod log_statistics;
mod logs;
mod main_job;
mod managing;
mod metrics;
mod notifications;
mod objects;
mod observing;
mod observing_several;
mod observing_under_conditions;
mod operations;
mod operator_http;
mod ownership;
mod plain;
mod presence;
mod recorded;
mod records;
mod registering;
mod reporting;
mod results;
mod schedules;
mod secrets;
mod secured;
mod sending;
mod series;
mod settings;
mod several_values;
mod sms;
mod strangers;
mod streaming;
mod tagging;
mod test_service;
mod timeline;
mod tokens;
mod values;
#[path = "../support/vocabulary.rs"]
mod vocabulary;
