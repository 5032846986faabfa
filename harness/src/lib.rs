//! Who plays the devices? Simulated LwM2M devices for the demo, for tests and for load.
//!
//! A [`device::SimulatedDevice`] is a pure machine that a deterministic world can hold by the
//! thousand; [`socket`] gives one a real UDP socket. [`load`] has devices by the million, each of
//! them simpler. Imports `protocol` alone: what a device knows
//! about the service is what travels on the wire.

pub mod clock;
pub mod device;
pub mod load;
pub mod rng;
pub mod socket;

/// Names a format of what a device sends.
pub use protocol::coap::content::ContentFormat;
/// Says whether a device wants to know that what it posts was taken.
pub use protocol::coap::message::MessageKind;
/// Names a resource of a device; whoever configures devices needs no door to `protocol`.
pub use protocol::lwm2m::path::Path;
/// What a device sends by itself, and when it measured that.
pub use protocol::lwm2m::payload::{Measured, Sample};
/// What a resource of a device holds.
pub use protocol::lwm2m::value::Value;
