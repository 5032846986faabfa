//! Where a datagram came from and where its answer goes.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// One end of a path to a device.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Peer {
    /// The address and port the datagram came from.
    pub address: SocketAddr,
    /// What carries the datagrams.
    pub via: Via,
}

/// What carries the datagrams of a peer.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Via {
    /// UDP without security (LwM2M Transport 1.2 section 5.2, NoSec mode).
    Plain,
    /// Bare UDP: what is in the datagrams is of no protocol. It has a port of its own.
    Bare,
}

impl Peer {
    /// The peer that sends from this address without security.
    pub fn plain(address: SocketAddr) -> Self {
        Self::at(address, Via::Plain)
    }

    /// The peer that sends bare datagrams from this address.
    pub fn bare(address: SocketAddr) -> Self {
        Self::at(address, Via::Bare)
    }

    fn at(address: SocketAddr, via: Via) -> Self {
        let ip = address.ip().to_canonical();
        Self {
            address: SocketAddr::new(ip, address.port()),
            via,
        }
    }

    /// The network address alone.
    pub fn ip(&self) -> IpAddr {
        self.address.ip()
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}
