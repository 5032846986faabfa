//! Did it leave? Bare datagrams are given to the kernel one by one, because each is an attempt of
//! somebody who is told.
//!
//! They leave from the port that devices send bare datagrams to, so that whatever translates the
//! addresses on the way knows the answer to them.

use std::os::fd::AsRawFd as _;
use std::rc::Rc;

use engine::effect::Departure;
use engine::peer::Peer;
use engine::registry::form::Form;
use nix::sys::socket::{MsgFlags, SockaddrStorage, sendto};
use tracing::debug;

use crate::meters::Meters;
use crate::socket::Socket;

/// What speaks through the socket of bare datagrams.
pub(crate) struct BareMouth {
    socket: Socket,
    meters: Rc<Meters>,
}

impl BareMouth {
    /// Speaks through a socket.
    pub(crate) fn new(socket: Socket, meters: Rc<Meters>) -> Self {
        Self { socket, meters }
    }

    /// Lets a datagram leave now, and says whether the kernel took it.
    pub(crate) fn say(&self, to: Peer, bytes: &[u8]) -> Departure {
        let socket = self.socket.socket.as_raw_fd();
        let address = SockaddrStorage::from(to.address);
        // Not through the runtime: it refuses in the kernel's name until it has heard from it.
        match sendto(socket, bytes, &address, MsgFlags::MSG_DONTWAIT) {
            Ok(_) => {
                self.meters.sent.one(Form::BARE);
                Departure::Taken
            }
            Err(error) => {
                self.meters.unsent.one();
                debug!(%error, "a UDP datagram could not be sent");
                Departure::Refused
            }
        }
    }
}
