//! How are devices simulated? LwM2M devices for the demo, for tests and for load.
//!
//! A [`device::SimulatedDevice`] is a pure machine that a deterministic simulation can hold by the
//! thousand; [`socket`] gives one a real UDP socket. [`load`] has devices by the million, each of
//! them simpler. Imports `dtls` and `protocol` alone: a device knows of the service only what
//! travels on the wire.

pub mod clock;
pub mod device;
pub mod load;
pub mod rng;
pub mod socket;

/// The format of a payload.
pub use protocol::coap::content::ContentFormat;
/// Whether a message is Confirmable.
pub use protocol::coap::message::MessageKind;
/// The path of a resource; re-exported so that callers need not import `protocol`.
pub use protocol::lwm2m::path::Path;
/// A measured value, and when it was measured.
pub use protocol::lwm2m::payload::{Measured, Sample};
/// The value of a resource.
pub use protocol::lwm2m::value::Value;
