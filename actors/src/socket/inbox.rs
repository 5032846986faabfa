//! What did the kernel receive? A batch of datagrams, in buffers that are reused.

use std::array;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd as _;

use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::bound_socket::{BoundSocket, destination_of};

/// Datagrams received at once; then devices, timers and commands get their turn. A larger batch
/// costs more per datagram, because datagrams leave the processor's cache before they are answered.
const BATCH: usize = 16;

/// The largest payload a UDP datagram can have.
const DATAGRAM_BYTES_MAX: usize = 65_535;

/// Buffers that begin a power of two apart would share the same few lines of the cache.
const STRIDE_BYTES: usize = DATAGRAM_BYTES_MAX + 193;

/// The datagrams of the last batch of one socket.
pub(super) struct Inbox {
    headers: MultiHeaders<SockaddrStorage>,
    buffers: Box<[u8]>,
    received: Vec<Envelope>,
}

/// What came with a datagram.
#[derive(Clone, Copy)]
struct Envelope {
    length: usize,
    from: Option<SocketAddr>,
    /// The address of the service it was sent to, if the socket asks for that.
    to: Option<IpAddr>,
}

impl Inbox {
    /// An empty inbox of a socket.
    pub(super) fn new(socket: &BoundSocket) -> Self {
        Self {
            headers: socket.headers(BATCH),
            buffers: vec![0; BATCH * STRIDE_BYTES].into(),
            received: Vec::with_capacity(BATCH),
        }
    }

    /// Reads the next batch from a socket; it is empty when there is no datagram.
    pub(super) fn fill(&mut self, socket: &UdpSocket) -> io::Result<()> {
        self.received.clear();
        match socket.try_io(Interest::READABLE, || self.take(socket)) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(()),
            taken => taken,
        }
    }

    /// The datagrams of the batch, with where they came from and which address they were sent to.
    pub(super) fn datagrams(&self) -> impl Iterator<Item = (SocketAddr, Option<IpAddr>, &[u8])> {
        let buffers = self.buffers.chunks_exact(STRIDE_BYTES);
        let datagrams = self.received.iter().zip(buffers);
        datagrams.filter_map(|(it, buffer)| Some((it.from?, it.to, buffer.get(..it.length)?)))
    }

    fn take(&mut self, socket: &UdpSocket) -> io::Result<()> {
        let mut buffers = self.buffers.chunks_exact_mut(STRIDE_BYTES);
        let mut slices: [_; BATCH] =
            array::from_fn(|_| [IoSliceMut::new(buffers.next().unwrap_or_default())]);
        let (fd, flags) = (socket.as_raw_fd(), MsgFlags::MSG_DONTWAIT);
        let taken = recvmmsg(fd, &mut self.headers, &mut slices, flags, None)?;
        let envelopes = taken.map(|message| Envelope {
            length: message.bytes,
            from: message.address.and_then(address_of),
            to: message
                .cmsgs()
                .ok()
                .and_then(|mut it| it.find_map(|it| destination_of(&it))),
        });
        self.received.extend(envelopes);
        Ok(())
    }
}

/// Converts an address of the kernel, if it is an internet address.
pub(super) fn address_of(address: SockaddrStorage) -> Option<SocketAddr> {
    let v4 = || {
        address
            .as_sockaddr_in()
            .map(|v4| SocketAddrV4::from(*v4).into())
    };
    let v6 = || {
        address
            .as_sockaddr_in6()
            .map(|v6| SocketAddrV6::from(*v6).into())
    };
    v4().or_else(v6)
}
