//! How are datagrams received and sent? The only files that use UDP.
//!
//! Datagrams are received and sent in batches (`recvmmsg`, `sendmmsg`): a system call costs as much
//! as half of what an update costs here.

mod addresses;
mod bound_socket;
mod inbox;
mod local_addresses;
mod outbox;
mod relays;

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket as StdSocket};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use engine::dispatch::datagram_form::DatagramForm;
use engine::effect::{SendOutcome, SendRefusal};
use engine::peer::{ByTransport, LocalAddressId, Peer, Transport};
use futures_core::Stream;
use nix::errno::Errno;
use socket2::{Domain, Protocol, Socket as RawSocket, Type};
use tracing::debug;

use crate::lease;
use crate::meters::sent::SentMeters;

pub use addresses::heard_at;
pub use local_addresses::RelayId;
pub(crate) use local_addresses::id_at_relay;
pub(crate) use relays::{ConnectedRelay, DepartingDatagram, disconnect_all};

use bound_socket::BoundSocket;
use inbox::Inbox;
use local_addresses::LocalAddresses;
use outbox::Outbox;

/// The kernel's receive buffer: about a second of a busy core, so that a short pause loses nothing.
/// The kernel grants what its own limit allows.
const BUFFER_BYTES: usize = 8 << 20;

/// Opens a socket that does not share its address. `[::]` is every address of both families, and
/// every IPv4 address on a host without IPv6.
pub fn open(address: SocketAddr) -> io::Result<StdSocket> {
    let (socket, address) = match unbound(address) {
        Err(e) if is_family_missing(&e) && address.ip().is_unspecified() => {
            let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()));
            (unbound(address)?, address)
        }
        opened => (opened?, address),
    };
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
    if address.is_ipv6() {
        // Only `[::]` takes IPv4 too; the default of the host may differ.
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.set_recv_buffer_size(BUFFER_BYTES)?;
    socket.set_send_buffer_size(BUFFER_BYTES)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn is_family_missing(error: &io::Error) -> bool {
    error.raw_os_error() == Some(nix::libc::EAFNOSUPPORT)
}

/// The number of an address of this host; none if it is unspecified.
pub(crate) fn id_here(address: IpAddr) -> Option<LocalAddressId> {
    LocalAddresses::default().id_of(address)
}

/// The relay whose sockets have the address that a peer sends to, and the address, which is
/// unspecified if it is not known. Without another relay they are those of `own`.
pub(crate) fn reached_at(peer: Peer, own: RelayId) -> (RelayId, IpAddr) {
    let addresses = LocalAddresses::default();
    let address = peer.local.and_then(|id| addresses.address_of(id));
    let address = address.unwrap_or(Ipv6Addr::UNSPECIFIED.into());
    let relay = peer.local.and_then(|id| addresses.relay_of(id));
    relay.unwrap_or((own, address))
}

/// The open sockets of a thread, on the addresses devices use.
pub type Open = ByTransport<StdSocket>;

/// The sockets of a thread.
pub(crate) type Sockets = ByTransport<Socket>;

/// A socket of a thread, with its outbox.
pub(crate) struct Socket {
    socket: Rc<BoundSocket>,
    inbox: RefCell<Inbox>,
    transport: Transport,
    outbox: Outbox,
    meters: Rc<SentMeters>,
}

/// Takes over open sockets; to be called on the thread that will own them.
pub(crate) fn adopt(open: Open, meters: &Rc<SentMeters>) -> io::Result<Sockets> {
    open.try_map(|transport, socket| Socket::adopt(socket, transport, meters))
}

impl Socket {
    fn adopt(socket: StdSocket, transport: Transport, meters: &Rc<SentMeters>) -> io::Result<Self> {
        let socket = Rc::new(BoundSocket::adopt(socket)?);
        Ok(Self {
            inbox: RefCell::new(Inbox::new(&socket)),
            outbox: Outbox::new(Rc::clone(&socket), Rc::clone(meters)),
            socket,
            transport,
            meters: Rc::clone(meters),
        })
    }

    /// The port.
    pub(crate) fn port(&self) -> u16 {
        self.socket.address().map_or(0, |address| address.port())
    }

    /// The address of the service that a peer sends to, if it is known.
    pub(crate) fn address_for(&self, peer: Peer) -> Option<IpAddr> {
        match self.socket.relay_to(peer) {
            Some((_, address)) => Some(address),
            None => self.socket.address_for(peer),
        }
    }

    /// A stream that fires whenever there may be a datagram.
    pub(crate) fn arrivals(&self) -> ReadableEvents {
        ReadableEvents {
            socket: Rc::clone(&self.socket),
            transport: self.transport,
            has_fired: false,
        }
    }

    /// Reads the next batch from the kernel and passes on its datagrams.
    pub(crate) fn receive(&self, mut take: impl FnMut(Peer, &[u8])) -> io::Result<()> {
        let mut inbox = self.inbox.borrow_mut();
        inbox.fill(self.socket.udp())?;
        for (from, sent_to, datagram) in inbox.datagrams() {
            let from = self.socket.peer(from, self.transport, sent_to);
            take(from, datagram);
        }
        Ok(())
    }

    /// Queues a datagram until the end of the round; the protocol retransmits it if it is lost.
    pub(crate) fn send(&self, to: Peer, datagram: Vec<u8>) {
        if self.send_through_relay(to, &datagram).is_none() {
            let form = self.form_of(&datagram);
            self.outbox.put(to, datagram, form);
        }
    }

    /// Sends a datagram now, and returns whether the kernel accepted it: it is an attempt whose
    /// outcome is reported.
    pub(crate) fn send_now(&self, to: Peer, datagram: &[u8]) -> SendOutcome {
        if !lease::is_held() {
            self.meters.unsent.one();
            return SendOutcome::Refused(SendRefusal::NotPermitted);
        }
        if let Some(outcome) = self.send_through_relay(to, datagram) {
            return outcome;
        }
        match self.socket.send_now(to, datagram) {
            Ok(()) => {
                self.meters.sent.one(self.form_of(datagram));
                SendOutcome::Sent
            }
            Err(error) => {
                self.meters.unsent.one();
                debug!(%error, "a datagram did not leave");
                SendOutcome::Refused(refusal_of(error))
            }
        }
    }

    /// Sends what another node has for one of its peers now, from this address. It needs no lease
    /// for that. If the kernel does not accept it, it is lost, as any datagram may be.
    pub(crate) fn pass_on(&self, to: SocketAddr, from: IpAddr, datagram: &[u8]) {
        let peer = self.socket.peer(to, self.transport, Some(from));
        if let Err(error) = self.socket.send_now(peer, datagram) {
            debug!(%error, "a datagram did not leave");
        }
    }

    /// Sends everything now.
    pub(crate) fn flush(&self) {
        self.outbox.empty();
    }

    /// Sends a datagram through the relay that its peer sends to; none, if the peer sends to this
    /// node, or the relay is gone, whose addresses this node may have by then.
    fn send_through_relay(&self, to: Peer, datagram: &[u8]) -> Option<SendOutcome> {
        let (relay, from) = self.socket.relay_to(to)?;
        if !lease::is_held() {
            self.meters.unsent.one();
            return Some(SendOutcome::Refused(SendRefusal::NotPermitted));
        }
        let outcome = relays::send(relay, to, from, datagram)?;
        match outcome {
            SendOutcome::Sent => self.meters.sent.one(self.form_of(datagram)),
            SendOutcome::Refused(_) => self.meters.unsent.one(),
        }
        Some(outcome)
    }

    fn form_of(&self, message: &[u8]) -> DatagramForm {
        match self.transport {
            Transport::Coap => DatagramForm::of(message),
            Transport::Coaps => DatagramForm::DTLS,
            Transport::Udp => DatagramForm::BARE,
        }
    }
}

/// What an error of the kernel says about a datagram (`man 2 sendmsg`, `man 7 ip`).
fn refusal_of(error: Errno) -> SendRefusal {
    const KNOWN: [(Errno, SendRefusal); 13] = [
        (Errno::EMSGSIZE, SendRefusal::TooLarge),
        (Errno::ENETUNREACH, SendRefusal::NoRoute),
        (Errno::EHOSTUNREACH, SendRefusal::NoRoute),
        (Errno::ENETDOWN, SendRefusal::NoRoute),
        (Errno::EHOSTDOWN, SendRefusal::NoRoute),
        (Errno::EACCES, SendRefusal::NotPermitted),
        (Errno::EPERM, SendRefusal::NotPermitted),
        (Errno::EAFNOSUPPORT, SendRefusal::UnusableAddress),
        (Errno::EADDRNOTAVAIL, SendRefusal::UnusableAddress),
        (Errno::EINVAL, SendRefusal::UnusableAddress),
        (Errno::EAGAIN, SendRefusal::BufferFull),
        (Errno::ENOBUFS, SendRefusal::BufferFull),
        (Errno::ENOMEM, SendRefusal::BufferFull),
    ];
    let known = KNOWN.iter().find(|(known, _)| *known == error);
    known.map_or(SendRefusal::Other(error as i32), |(_, refusal)| *refusal)
}

/// There may be a datagram at the socket of this transport.
pub(crate) struct SocketReadable(pub(crate) Transport);

/// Fires whenever a socket may have a datagram, and yields to others each time: devices answer a
/// datagram while it is still in the processor's cache, and while the allocator has its memory at
/// hand.
pub(crate) struct ReadableEvents {
    socket: Rc<BoundSocket>,
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
        match ready!(self.socket.udp().poll_recv_ready(cx)) {
            Ok(()) => {
                self.has_fired = true;
                Poll::Ready(Some(SocketReadable(self.transport)))
            }
            Err(_) => Poll::Ready(None),
        }
    }
}
