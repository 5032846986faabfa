//! How do very many devices load a server? A pure crowd of them, and threads that give it a socket
//! and a clock.
//!
//! ```text
//!   DevicePool: Worker, ..
//!   Worker (thread) --- turn, hear ---> Crowd: ArrivalSchedule, Exchange, Deadlines, Locations,
//!      |    ^                             |    Tally
//!      |    +------- Outbox --------------+
//!      +--- Line: one socket, every datagram from the address of its device
//! ```
//! A worker has its devices for good: a server knows a device by where it sends from. Drives any
//! LwM2M server; what a device has said to this one is what it would say to every other.

mod crowd;
mod datagram;
mod deadlines;
mod exchange;
pub mod figures;
pub mod identity;
#[cfg(target_os = "linux")]
mod line;
#[cfg(not(target_os = "linux"))]
#[path = "load/no_line.rs"]
mod line;
mod locations;
mod outbox;
pub mod pace;
pub mod pool;
pub mod tally;
pub mod worker;

pub use crowd::Conduct;
/// How patient devices are; whoever plans a load needs no door to `protocol`.
pub use protocol::coap::exchange::Transmission;
