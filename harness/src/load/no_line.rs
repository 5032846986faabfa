//! Why can devices not share a socket on this system? Only Linux sends each datagram of a batch
//! from an address of its own.

use std::io;
use std::net::SocketAddrV4;

use super::addressing::Network;
use super::outbox::Outbox;

/// A socket through which devices exchange datagrams with a server; there is none.
pub(super) enum LoadSocket {}

/// The buffers of a thread that sends and receives batches; there are none.
pub struct SocketBatches;

impl LoadSocket {
    /// Fails, because a load requires Linux.
    pub(super) fn open(_: SocketAddrV4, _: Network, _: u32) -> io::Result<Self> {
        let reason = "a load needs Linux";
        Err(io::Error::new(io::ErrorKind::Unsupported, reason))
    }

    /// Sends nothing.
    pub(super) fn send(&self, _: &mut SocketBatches, _: &Outbox) -> io::Result<()> {
        match *self {}
    }

    /// Receives nothing.
    pub(super) fn receive(
        &self,
        _: &mut SocketBatches,
        _: impl FnMut(u32, &[u8]),
    ) -> io::Result<usize> {
        match *self {}
    }

    /// Does not wait.
    pub(super) fn wait(&self, _: u64) -> io::Result<()> {
        match *self {}
    }
}

impl SocketBatches {
    /// No buffers.
    #[expect(clippy::new_without_default, reason = "as on Linux")]
    pub fn new() -> Self {
        Self
    }
}
