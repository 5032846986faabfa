//! Does a simulated device behave as LwM2M and CoAP devices do?

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "device/answers.rs"]
mod answers;
#[path = "device/blocks.rs"]
mod blocks;
#[path = "device/bootstrap.rs"]
mod bootstrap;
#[path = "device/firmware.rs"]
mod firmware;
#[path = "device/noise.rs"]
mod noise;
#[path = "device/observing.rs"]
mod observing;
#[path = "device/orders.rs"]
mod orders;
#[path = "device/plain.rs"]
mod plain;
#[path = "device/queue_mode.rs"]
mod queue_mode;
#[path = "device/refusals.rs"]
mod refusals;
#[path = "device/registration.rs"]
mod registration;
#[path = "device/repeats.rs"]
mod repeats;
#[path = "device/sending.rs"]
mod sending;
#[path = "device/several_values.rs"]
mod several_values;
#[path = "device/speaking.rs"]
mod speaking;
#[path = "device/updates.rs"]
mod updates;
#[path = "device/world.rs"]
mod world;
