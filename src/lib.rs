//! The service: its configuration, its HTTP API, and how its parts are connected.

pub mod api;
pub mod backup;
pub mod check;
pub mod cli;
pub mod coaps_key;
pub mod config;
mod data_dir;
mod deliverer;
pub mod deliveries;
pub mod demo;
mod handing_over;
mod listeners;
pub mod load;
pub mod migrate;
pub mod node;
pub mod oidc;
pub mod operator;
pub mod rekey;
mod relay;
pub mod rest_client;
pub mod service;
pub mod setting_file;
pub mod smpp;
mod standby;
pub mod storage;
pub mod telemetry;
pub mod tls;
