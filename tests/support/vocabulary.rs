//! What do black-box tests share: a service, a caller, other programs, polling?
//!
//! A test program includes it by `#[path = "../support/vocabulary.rs"] mod vocabulary;`.

#![allow(dead_code, reason = "each test program uses its part")]

pub(crate) mod blockwise;
pub(crate) mod caller;
pub(crate) mod client;
pub(crate) mod device;
pub(crate) mod endpoint;
pub(crate) mod http;
pub(crate) mod inspector;
pub(crate) mod kernel;
pub(crate) mod link;
pub(crate) mod lwm2m;
pub(crate) mod plain;
pub(crate) mod poll;
pub(crate) mod postgres;
pub(crate) mod program;
pub(crate) mod secured;
pub(crate) mod service;
pub(crate) mod smsc;
pub(crate) mod upload;
pub(crate) mod wire;
