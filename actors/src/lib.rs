//! Decisions to the world: the actix shells around the machines, their ears and their mouths.
//!
//! Shells perform and decide nothing. Each arbiter is home to a registry, its device actors and
//! a UDP socket; the logging actor keeps what no device's step carries; the web actor starts,
//! drains and stops the API.

mod alarm;
pub mod arbiters;
pub mod clock;
mod device;
pub mod devices;
pub mod home;
pub mod http;
pub mod logging;
mod meters;
mod neighbours;
pub mod post;
pub mod registry;
mod reply;
pub mod socket;
mod tally;
pub mod terms;
mod told;
pub mod web;
