//! Is this something a device can be asked? From what a caller wrote to a request, one file for
//! each protocol.
//!
//! Every fault is found in one go, and each says which part of the request it is about.

pub mod lwm2m;
