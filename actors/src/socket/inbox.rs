//! What did the kernel hear for us? A batch of datagrams, in buffers that are used again.

use std::array;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd as _;

use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Datagrams taken in one go; then devices, timers and questions get their turn. More in one go
/// costs more each, because what is heard leaves the processor's cache before it is answered.
const BATCH: usize = 16;

/// The largest payload a UDP datagram can have.
const DATAGRAM_BYTES_MAX: usize = 65_535;

/// Buffers that begin a power of two apart would share the same few lines of the cache.
const STRIDE_BYTES: usize = DATAGRAM_BYTES_MAX + 193;

/// The datagrams heard last.
pub(crate) struct Inbox {
    headers: MultiHeaders<SockaddrStorage>,
    buffers: Box<[u8]>,
    heard: Vec<(usize, Option<SocketAddr>)>,
}

impl Inbox {
    /// Room for a batch.
    pub(crate) fn new() -> Self {
        Self {
            headers: MultiHeaders::preallocate(BATCH, None),
            buffers: vec![0; BATCH * STRIDE_BYTES].into(),
            heard: Vec::with_capacity(BATCH),
        }
    }

    /// Takes the next batch from a socket; it is empty when there is no datagram.
    pub(super) fn fill(&mut self, socket: &UdpSocket) -> io::Result<()> {
        self.heard.clear();
        match socket.try_io(Interest::READABLE, || self.take(socket)) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(()),
            taken => taken,
        }
    }

    /// The datagrams of the batch, with where they came from.
    pub(super) fn datagrams(&self) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        let buffers = self.buffers.chunks_exact(STRIDE_BYTES);
        let datagrams = self.heard.iter().zip(buffers);
        datagrams.filter_map(|(&(length, from), buffer)| Some((from?, buffer.get(..length)?)))
    }

    fn take(&mut self, socket: &UdpSocket) -> io::Result<()> {
        let mut buffers = self.buffers.chunks_exact_mut(STRIDE_BYTES);
        let mut slices: [_; BATCH] =
            array::from_fn(|_| [IoSliceMut::new(buffers.next().unwrap_or_default())]);
        let (fd, flags) = (socket.as_raw_fd(), MsgFlags::MSG_DONTWAIT);
        let taken = recvmmsg(fd, &mut self.headers, &mut slices, flags, None)?;
        let heard = taken.map(|message| (message.bytes, message.address.and_then(address_of)));
        self.heard.extend(heard);
        Ok(())
    }
}

/// An address of the kernel's as the library has it, if it is of the internet.
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
