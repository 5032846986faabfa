//! Decisions to the world: the actix shells around the machines, the sockets, and HTTP.
//!
//! Shells perform and decide nothing. Each arbiter has a registry and its device actors, on a
//! thread whose receiver reads the UDP sockets; the logging actor writes log entries that belong to
//! no device's step; the web actor starts, drains and stops the API.

pub mod arbiters;
pub mod broker;
pub mod campaigns;
pub mod clock;
mod deadline_timer;
pub mod delivery;
pub mod devices;
mod drop_tally;
pub mod http;
pub mod image_files;
pub mod image_progress;
pub mod jobs;
pub mod kept_sessions;
pub mod lease;
pub mod logging;
mod meters;
pub mod policy;
mod receiver;
pub mod registry;
pub mod relay;
mod reply;
mod runner;
pub mod settle;
pub mod smpp;
pub mod sms;
pub mod socket;
mod step_events;
pub mod web;
