//! Decisions to the world: the actix shells around the machines, their ears and their mouths.
//!
//! Shells perform and decide nothing. Each arbiter is home to a registry, its device actors and
//! a UDP socket; the logging actor keeps what no device's step carries; the web actor starts,
//! drains and stops the API.

pub mod arbiters;
pub mod clock;
pub mod delivery;
pub mod devices;
mod drop_tally;
pub mod http;
pub mod logging;
mod meters;
pub mod policy;
pub mod registry;
mod reply;
pub mod socket;
mod step_events;
pub mod web;
