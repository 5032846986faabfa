//! How do very many devices load a server? A pure pool of them, and threads that give it a socket
//! and a clock.
//!
//! ```text
//!   DevicePool: Worker, ..
//!   Worker (thread) --- turn, hear ---> DevicePool: ArrivalSchedule, Exchange, Deadlines,
//!      |    ^                             |    Locations, Tally
//!      |    +------- Outbox --------------+
//!      +--- Line: one socket, every datagram from the address of its device
//! ```
//! A worker has its devices for good: a server knows a device by where it sends from. Drives any
//! LwM2M server; what a device has said to this one is what it would say to every other.

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
/// How patient devices are; whoever plans a load needs no door to `protocol`.
pub use protocol::coap::exchange::Transmission;
