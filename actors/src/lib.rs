//! Decisions to the world: the actix shells around the machines, their ears and their mouths.
//!
//! Shells perform and decide nothing. One arbiter owns a registry, its device actors and their
//! UDP socket; the logging actor keeps what no device's step carries; the web actor starts,
//! drains and stops the API.

pub mod devices;
