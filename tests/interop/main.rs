//! Does the service work with devices and tools by others?
//!
//! Real programs against the real binary, over real sockets: Eclipse Leshan and aiocoap as LwM2M
//! devices, libcoap's client and server as one, Prometheus' client as a reader of metrics, the
//! library of Standard Webhooks as a receiver of events, Mosquitto and aedes as brokers, node-smpp
//! and jSMPP as SMS centres, PostgreSQL as its store, Schemathesis and curl as callers,
//! TLS-Attacker against DTLS. Eclipse Californium tests only our CoAP layer, with a server made for
//! its requests; OpenSSL, GnuTLS, libcoap and Californium's Scandium find DTLS sessions with one
//! made for theirs. `cargo xtask test` installs these programs and runs this; `cargo xtask
//! prepare`, then `cargo test --test interop` runs this alone.

#![allow(clippy::unwrap_used, clippy::panic)]

mod aedes;
mod aiocoap;
mod coaps;
mod dtls;
mod guide;
mod leshan;
mod libcoap;
mod migration;
mod mosquitto;
mod nodes;
mod plain;
mod plugtest;
mod postgres;
mod prometheus;
mod schemathesis;
mod smsc;
#[path = "../support/vocabulary.rs"]
mod vocabulary;
mod webhooks;
