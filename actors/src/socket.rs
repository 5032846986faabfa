//! How are datagrams received and sent? The only files that use UDP.
//!
//! Datagrams are received and sent in batches (`recvmmsg`, `sendmmsg`): a system call costs as much
//! as half of what an update costs here.

mod addresses;
mod inbox;
mod outbox;
mod record_layer;

use std::io;
use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use engine::dispatch::datagram_form::DatagramForm;
use engine::effect::SendOutcome;
use engine::peer::{ByTransport, Peer, Transport};
use futures_core::Stream;
use socket2::{Domain, Protocol, Socket as RawSocket, Type};
use tokio::net::UdpSocket;
use tracing::debug;

use crate::meters::ArbiterMeters;

pub use addresses::heard_at;
pub(crate) use inbox::Inbox;

use outbox::Outbox;
use record_layer::RecordLayer;

/// The kernel's receive buffer: about a second of a busy core, so that a short pause loses nothing.
/// The kernel grants what its own limit allows.
const BUFFER_BYTES: usize = 8 << 20;

/// Opens a socket that does not share its address.
pub fn open(address: SocketAddr) -> io::Result<StdSocket> {
    let socket = unbound(address)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Opens this many sockets, at least one, that share an address: the kernel distributes datagrams
/// among them by the address of the peer.
pub fn open_shared(address: SocketAddr, count: usize) -> io::Result<Vec<StdSocket>> {
    // If another process shares the address, too, it would silently get half of the devices;
    // opening a socket that does not share fails in that case.
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

/// The open sockets of an arbiter, on the addresses devices use.
pub type Open = ByTransport<StdSocket>;

/// The sockets of an arbiter.
pub(crate) type Sockets = ByTransport<Socket>;

/// A socket of an arbiter, with its record layer and its outbox.
pub(crate) struct Socket {
    socket: Rc<UdpSocket>,
    transport: Transport,
    layer: RecordLayer,
    outbox: Outbox,
    meters: Rc<ArbiterMeters>,
}

/// Takes over open sockets; to be called on the arbiter that will own them.
pub(crate) fn adopt(open: Open, meters: &Rc<ArbiterMeters>) -> io::Result<Sockets> {
    open.try_map(|transport, socket| Socket::adopt(socket, transport, meters))
}

impl Socket {
    fn adopt(
        socket: StdSocket,
        transport: Transport,
        meters: &Rc<ArbiterMeters>,
    ) -> io::Result<Self> {
        let socket = Rc::new(UdpSocket::from_std(socket)?);
        Ok(Self {
            outbox: Outbox::new(Rc::clone(&socket), Rc::clone(meters)),
            socket,
            transport,
            layer: RecordLayer::NoSec,
            meters: Rc::clone(meters),
        })
    }

    /// A stream that fires whenever there may be a datagram.
    pub(crate) fn arrivals(&self) -> ReadableEvents {
        ReadableEvents {
            socket: Rc::clone(&self.socket),
            transport: self.transport,
            has_fired: false,
        }
    }

    /// Reads the next batch from the kernel and passes on its messages.
    pub(crate) fn receive(
        &self,
        inbox: &mut Inbox,
        mut take: impl FnMut(Peer, &[u8]),
    ) -> io::Result<()> {
        inbox.fill(&self.socket)?;
        for (from, datagram) in inbox.datagrams() {
            let from = (from, self.transport);
            self.layer.open(from, datagram, &mut take);
        }
        Ok(())
    }

    /// Queues a message until the end of the round; the protocol retransmits it if it is lost.
    pub(crate) fn send(&self, to: Peer, message: Vec<u8>) {
        let form = self.form_of(&message);
        if let Some((to, datagram)) = self.layer.seal(to, message) {
            self.outbox.put(to, datagram, form);
        }
    }

    /// Sends a message now, and returns whether the kernel accepted it: it is an attempt whose
    /// outcome is reported.
    pub(crate) fn send_now(&self, to: Peer, message: Vec<u8>) -> SendOutcome {
        let form = self.form_of(&message);
        let sealed = self.layer.seal(to, message);
        let sent = sealed.map(|(to, datagram)| outbox::send_now(&self.socket, to, &datagram));
        match sent {
            Some(Ok(())) => {
                self.meters.sent.one(form);
                SendOutcome::Sent
            }
            Some(Err(error)) => {
                self.meters.unsent.one();
                debug!(%error, "a datagram did not leave");
                SendOutcome::Refused
            }
            None => SendOutcome::Refused,
        }
    }

    /// Sends everything now.
    pub(crate) fn flush(&self) {
        self.outbox.empty();
    }

    fn form_of(&self, message: &[u8]) -> DatagramForm {
        match self.transport {
            Transport::Coap => DatagramForm::of(message),
            Transport::Udp => DatagramForm::BARE,
        }
    }
}

/// There may be a datagram at the socket of this transport.
pub(crate) struct SocketReadable(pub(crate) Transport);

/// Fires whenever a socket may have a datagram, and yields to others each time: devices answer a
/// datagram while it is still in the processor's cache, and while the allocator has its memory at
/// hand.
pub(crate) struct ReadableEvents {
    socket: Rc<UdpSocket>,
    transport: Transport,
    has_fired: bool,
}

impl Stream for ReadableEvents {
    type Item = SocketReadable;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SocketReadable>> {
        if std::mem::take(&mut self.has_fired) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match ready!(self.socket.poll_recv_ready(cx)) {
            Ok(()) => {
                self.has_fired = true;
                Poll::Ready(Some(SocketReadable(self.transport)))
            }
            Err(_) => Poll::Ready(None),
        }
    }
}
