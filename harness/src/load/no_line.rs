//! Why can devices not share a socket here? Only Linux sends each datagram of a batch from an
//! address of its own.

use std::io;
use std::net::SocketAddrV4;

use super::identity::Network;
use super::outbox::Outbox;

/// A socket through which devices speak with a server; there is none.
pub(super) enum LoadSocket {}

/// What a thread needs to hear and speak in batches: nothing.
pub(super) struct SocketBatches;

impl LoadSocket {
    /// Says that a load needs Linux.
    pub(super) fn open(_: SocketAddrV4, _: Network, _: u32) -> io::Result<Self> {
        let reason = "a load needs Linux";
        Err(io::Error::new(io::ErrorKind::Unsupported, reason))
    }

    /// Sends nothing.
    pub(super) fn send(&self, _: &mut SocketBatches, _: &Outbox) -> io::Result<()> {
        match *self {}
    }

    /// Hears nothing.
    pub(super) fn hear(
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
    /// Room for nothing.
    pub(super) fn new() -> Self {
        Self
    }
}
