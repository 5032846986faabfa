//! The ears and mouth for datagrams: the only files that see UDP.
//!
//! Datagrams are taken and given in batches (`recvmmsg`, `sendmmsg`): a call of the kernel costs
//! as much as half of what an update costs here.

mod bare;
mod inbox;
mod outbox;
mod places;

use std::io;
use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use engine::peer::Via;
use futures_core::Stream;
use socket2::{Domain, Protocol, Socket as RawSocket, Type};
use tokio::net::UdpSocket;

pub(crate) use bare::BareMouth;
pub(crate) use inbox::Inbox;
pub(crate) use outbox::Outbox;
pub use places::heard_at;

/// What the kernel may hold for us: about a second of a busy core, so that a pause for breath
/// loses nothing. The kernel grants what its own limit allows.
const BUFFER_BYTES: usize = 8 << 20;

/// Opens a socket that has its address to itself.
pub fn open(address: SocketAddr) -> io::Result<StdSocket> {
    let socket = unbound(address)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Opens so many sockets, at least one, that share an address: the kernel deals datagrams out
/// among them by the address of the peer.
pub fn open_shared(address: SocketAddr, count: usize) -> io::Result<Vec<StdSocket>> {
    // Another process that shares its sockets too would be dealt half of the devices in silence;
    // a socket that does not share tells.
    let address = open(address)?.local_addr()?;
    let open_one = |_| {
        let socket = unbound(address)?;
        socket.set_reuse_port(true)?;
        socket.bind(&address.into())?;
        Ok(socket.into())
    };
    (0..count.max(1)).map(open_one).collect()
}

fn unbound(address: SocketAddr) -> io::Result<RawSocket> {
    let socket = RawSocket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    socket.set_recv_buffer_size(BUFFER_BYTES)?;
    socket.set_send_buffer_size(BUFFER_BYTES)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The open sockets of an arbiter, on the addresses devices know.
#[derive(Debug)]
pub struct Open {
    /// Where CoAP is spoken.
    pub plain: StdSocket,
    /// Where bare datagrams are taken and sent.
    pub bare: StdSocket,
}

/// A socket of an arbiter.
#[derive(Clone)]
pub(crate) struct Socket {
    socket: Rc<UdpSocket>,
    via: Via,
}

/// The sockets of an arbiter.
#[derive(Clone)]
pub(crate) struct Sockets {
    pub(crate) plain: Socket,
    pub(crate) bare: Socket,
}

impl Sockets {
    /// Takes over open sockets; to be called on the arbiter that shall own them.
    pub(crate) fn adopt(open: Open) -> io::Result<Self> {
        Ok(Self {
            plain: Socket::adopt(open.plain, Via::Plain)?,
            bare: Socket::adopt(open.bare, Via::Bare)?,
        })
    }

    /// The socket of what comes and goes so.
    pub(crate) fn of(&self, via: Via) -> &Socket {
        match via {
            Via::Plain => &self.plain,
            Via::Bare => &self.bare,
        }
    }
}

impl Socket {
    fn adopt(socket: StdSocket, via: Via) -> io::Result<Self> {
        let socket = Rc::new(UdpSocket::from_std(socket)?);
        Ok(Self { socket, via })
    }

    /// Says whenever there may be a datagram.
    pub(crate) fn arrivals(&self) -> Arrivals {
        Arrivals {
            socket: self.clone(),
            said: false,
        }
    }
}

/// There may be a datagram at the socket of what comes so.
pub(crate) struct Arrived(pub(crate) Via);

/// Says whenever a socket may have a datagram, and after each time lets others have their turn:
/// devices answer what was heard while it is still in the processor's cache, and while the
/// allocator has its memory at hand.
pub(crate) struct Arrivals {
    socket: Socket,
    said: bool,
}

impl Stream for Arrivals {
    type Item = Arrived;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Arrived>> {
        if std::mem::take(&mut self.said) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match ready!(self.socket.socket.poll_recv_ready(cx)) {
            Ok(()) => {
                self.said = true;
                Poll::Ready(Some(Arrived(self.socket.via)))
            }
            Err(_) => Poll::Ready(None),
        }
    }
}
