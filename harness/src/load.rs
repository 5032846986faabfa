//! How do very many devices load a server? As a pure pool of them, and threads with sockets and a
//! clock.
//!
//! ```text
//!   DevicePool: Worker, ..
//!   Worker (thread) ---- datagrams ---> DevicePool: ArrivalSchedule, Exchange, Deadlines,
//!      |    ^                             |    Locations, Tally
//!      |    +------- Outbox --------------+
//!      +--- LoadSocket: one socket, every datagram from the address of its device
//! ```
//! A worker keeps its devices: a server identifies a device by its source address. Works with any
//! LwM2M server, because nothing in the datagrams is specific to this one.

pub mod addressing;
pub mod arrivals;
mod datagram;
mod deadlines;
mod device_group;
mod exchange;
pub mod figures;
#[cfg(not(target_os = "linux"))]
#[path = "load/no_line.rs"]
mod line;
#[cfg(target_os = "linux")]
mod load_socket;
mod locations;
mod outbox;
pub mod pool;
pub mod tally;
pub mod worker;

pub use device_group::DeviceBehaviour;
/// The transmission parameters of devices; re-exported so that callers need not import `protocol`.
pub use protocol::coap::exchange::Transmission;
