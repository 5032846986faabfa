//! The administration log of a customer (seed 2.2, 4.8).

pub mod daily;
pub mod entry;
mod integration;
pub mod payload;
mod schedule;
pub mod window;
