//! How do very many devices load a server? As a pure pool of them, and threads with sockets and a
//! clock.
//!
//! ```text
//!   DevicePool: Worker, ..
//!   Worker (thread) ---- datagrams ---> DeviceGroup: ArrivalSchedule, Exchange, Deadlines,
//!      |    ^                             |    SleepCycle, Locations, Tally
//!      |    +------- Outbox --------------+
//!      +--- LoadLink: DtlsSessions, if the devices speak DTLS
//!              +--- LoadSocket: one socket, every datagram from the address of its device
//! ```
//! A worker keeps its devices: a server identifies a device by its source address. Works with any
//! LwM2M server, because nothing in the datagrams is specific to this one.

pub mod addressing;
pub mod arrivals;
pub mod behaviour;
mod datagram;
mod deadlines;
mod device_group;
pub mod dtls_sessions;
mod exchange;
pub mod figures;
pub mod link;
#[cfg(not(target_os = "linux"))]
#[path = "load/no_line.rs"]
pub mod load_socket;
#[cfg(target_os = "linux")]
pub mod load_socket;
mod locations;
pub mod outbox;
pub mod pool;
pub mod request_mix;
mod sleep_cycle;
pub mod tally;
pub mod timeline;
pub mod worker;

/// The transmission parameters of devices; re-exported so that callers need not import `protocol`.
pub use protocol::coap::exchange::Transmission;
/// How long devices sleep, and stay awake.
pub use sleep_cycle::SleepTimes;
