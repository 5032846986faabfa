//! What does a node that stands by do with a socket? It passes on what it receives, and sends what
//! it is given: it needs no lease for that, and knows no device.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket as StdSocket};

use engine::peer::{Peer, Transport};
use tracing::debug;

use super::bound_socket::BoundSocket;
use super::inbox::Inbox;

/// A socket of a node that relays datagrams.
pub(crate) struct RelaySocket {
    socket: BoundSocket,
    inbox: RefCell<Inbox>,
    transport: Transport,
    /// The address that it is bound to, which is that of all datagrams unless it has several.
    bound: IpAddr,
}

impl RelaySocket {
    /// Takes over an open socket; to be called on the arbiter that will own it.
    pub(crate) fn adopt(socket: StdSocket, transport: Transport) -> io::Result<Self> {
        let bound = socket.local_addr()?.ip();
        let socket = BoundSocket::adopt(socket)?;
        Ok(Self {
            inbox: RefCell::new(Inbox::new(&socket)),
            socket,
            transport,
            bound,
        })
    }

    /// Waits for datagrams and passes on those that are there, with their peers and the addresses
    /// that they were sent to.
    pub(crate) async fn receive(
        &self,
        mut take: impl FnMut(Peer, IpAddr, &[u8]),
    ) -> io::Result<()> {
        self.socket.udp().readable().await?;
        let mut inbox = self.inbox.borrow_mut();
        if let Err(error) = inbox.fill(self.socket.udp()) {
            // An ICMP error of an earlier send is reported here; it concerns one peer.
            debug!(%error, "the socket reported an error");
        }
        for (from, sent_to, datagram) in inbox.datagrams() {
            let at = sent_to.unwrap_or(self.bound);
            take(Peer::at(from, self.transport), at, datagram);
        }
        Ok(())
    }

    /// Passes a datagram to the kernel, which leaves from this address. If the kernel does not
    /// accept it at once, it is lost, as any datagram may be.
    pub(crate) fn send(&self, to: SocketAddr, from: IpAddr, datagram: &[u8]) {
        let peer = self.socket.peer(to, self.transport, Some(from));
        if let Err(error) = self.socket.send_now(peer, datagram) {
            debug!(%error, "a datagram did not leave");
        }
    }
}
