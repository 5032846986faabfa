//! Do devices and tools that others wrote work with the service?
//!
//! Real programs against the real binary, over real sockets: Eclipse Leshan and aiocoap as LwM2M
//! devices, libcoap's client and server as one, Prometheus' client as a reader of metrics, the
//! library of Standard Webhooks as a receiver of events, Schemathesis and curl as callers. Eclipse
//! Californium asks our CoAP layer alone, which needs a server that has what it asks for.
//! `cargo xtask test` installs them and runs this; `cargo xtask prepare`, then
//! `cargo test --test interop` runs this alone.

#![allow(clippy::unwrap_used, clippy::panic)]

mod aiocoap;
mod guide;
mod leshan;
mod libcoap;
mod plain;
mod plugtest;
mod prometheus;
mod schemathesis;
#[path = "../support/vocabulary.rs"]
mod vocabulary;
mod webhooks;
