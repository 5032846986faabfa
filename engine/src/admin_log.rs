//! The administration log: what a customer is told about its devices (seed 2.2, 4.8).

pub mod daily;
pub mod entry;
mod integration;
pub mod payload;
pub mod window;
