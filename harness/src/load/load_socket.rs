//! How do very many devices send and receive through one socket? Each datagram carries its source
//! or destination address (`IP_PKTINFO`), and one system call transfers many of them.

use std::cell::Cell;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc::{in_addr, in_pktinfo};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::sockopt::Ipv4PacketInfo;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrIn, recvmmsg, sendmmsg,
    setsockopt,
};
use nix::sys::time::TimeSpec;
use socket2::SockRef;

use super::addressing::Network;
use super::outbox::Outbox;

/// Datagrams per system call: beyond a few dozen the saving is lost in the cache.
const BATCH: usize = 64;

/// The buffer for a datagram: no server sends a device more at once.
const DATAGRAM_BYTES: usize = 1_536;

/// The requested size of the kernel's buffers; the kernel grants what its own limit allows.
const BUFFER_BYTES: usize = 16 << 20;

/// A socket through which devices exchange datagrams with a server.
pub(super) struct LoadSocket {
    socket: UdpSocket,
    server: SockaddrIn,
    network: Network,
    first: u32,
}

/// The buffers of a thread that sends and receives batches; the kernel's structures stay on the
/// thread.
pub struct SocketBatches {
    received: MultiHeaders<SockaddrIn>,
    sent: MultiHeaders<SockaddrIn>,
    buffer: Vec<u8>,
}

impl LoadSocket {
    /// Opens a socket for the devices of a network from a number on.
    pub(super) fn open(server: SocketAddrV4, network: Network, first: u32) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        setsockopt(&socket, Ipv4PacketInfo, &true)?;
        let raw = SockRef::from(&socket);
        raw.set_recv_buffer_size(BUFFER_BYTES)?;
        raw.set_send_buffer_size(BUFFER_BYTES)?;
        Ok(Self {
            socket,
            server: server.into(),
            network,
            first,
        })
    }

    /// Sends every datagram from the address of its device.
    pub(super) fn send(&self, batches: &mut SocketBatches, out: &Outbox) -> io::Result<()> {
        let mut datagrams = out.datagrams().peekable();
        while datagrams.peek().is_some() {
            let batch: Vec<(u32, &[u8])> = datagrams.by_ref().take(BATCH).collect();
            let mut rest = batch.as_slice();
            while !rest.is_empty() {
                let sent = self.send_batch(&mut batches.sent, rest)?;
                rest = rest.get(sent..).unwrap_or_default();
            }
        }
        Ok(())
    }

    /// Passes on received datagrams, each with its device, at most a batch; returns their number.
    pub(super) fn receive(
        &self,
        batches: &mut SocketBatches,
        mut take: impl FnMut(u32, &[u8]),
    ) -> io::Result<usize> {
        let rooms = batches.buffer.chunks_exact_mut(DATAGRAM_BYTES);
        let mut rooms: Vec<[IoSliceMut<'_>; 1]> =
            rooms.map(|room| [IoSliceMut::new(room)]).collect();
        let flags = MsgFlags::MSG_DONTWAIT;
        let descriptor = self.socket.as_raw_fd();
        let received = recvmmsg(
            descriptor,
            &mut batches.received,
            rooms.iter_mut(),
            flags,
            None,
        );
        let received = match received {
            Ok(received) => received,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(0),
            Err(error) => return Err(error.into()),
        };
        let mut count = 0;
        for datagram in received {
            count += 1;
            let to = datagram.cmsgs()?.find_map(destination);
            let number = to.and_then(|to| self.network.number(to));
            let member = number.and_then(|number| number.checked_sub(self.first));
            let is_server = datagram.address == Some(self.server);
            if let Some(member) = member.filter(|_| is_server) {
                take(member, datagram.iovs().next().unwrap_or_default());
            }
        }
        Ok(count)
    }

    /// Waits until a datagram arrives, at most this long.
    pub(super) fn wait(&self, at_most_ns: u64) -> io::Result<()> {
        let mut watched = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        let at_most = TimeSpec::from_duration(std::time::Duration::from_nanos(at_most_ns));
        match ppoll(&mut watched, Some(at_most), None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn send_batch(
        &self,
        headers: &mut MultiHeaders<SockaddrIn>,
        batch: &[(u32, &[u8])],
    ) -> io::Result<usize> {
        let sources: Vec<in_pktinfo> = batch
            .iter()
            .map(|(member, _)| leaving_from(self.network.address(self.first + member)))
            .collect();
        let bytes: Vec<[IoSlice<'_>; 1]> = batch
            .iter()
            .map(|(_, bytes)| [IoSlice::new(bytes)])
            .collect();
        let servers = vec![Some(self.server); batch.len()];
        let sent = sendmmsg(
            self.socket.as_raw_fd(),
            headers,
            bytes.iter(),
            servers,
            ControlMessages::of(&sources),
            MsgFlags::empty(),
        );
        match sent {
            Ok(sent) => Ok(sent.count()),
            Err(Errno::EINTR) => Ok(0),
            Err(error) => Err(self.unsendable(error, batch)),
        }
    }

    /// The first datagram of a batch could not be sent; usually its address does not belong to this
    /// machine.
    fn unsendable(&self, error: Errno, batch: &[(u32, &[u8])]) -> io::Error {
        let member = batch.first().map_or(0, |(member, _)| *member);
        let from = self.network.address(self.first + member);
        let kind = io::Error::from(error).kind();
        io::Error::new(kind, format!("nothing can be sent from {from}: {error}"))
    }
}

impl SocketBatches {
    /// Buffers for a batch in each direction.
    #[expect(clippy::new_without_default, reason = "it allocates")]
    pub fn new() -> Self {
        let headers = || MultiHeaders::preallocate(BATCH, Some(cmsg_space!(in_pktinfo)));
        Self {
            received: headers(),
            sent: headers(),
            buffer: vec![0; BATCH * DATAGRAM_BYTES],
        }
    }
}

/// The control messages of a batch, one per datagram: nix takes one item per datagram from the
/// iterator. Its documentation speaks of messages that all datagrams share, so a test checks this.
struct ControlMessages<'a> {
    messages: Vec<[ControlMessage<'a>; 1]>,
    next: Cell<usize>,
}

impl<'a> ControlMessages<'a> {
    fn of(sources: &'a [in_pktinfo]) -> Self {
        let messages = sources
            .iter()
            .map(|source| [ControlMessage::Ipv4PacketInfo(source)]);
        Self {
            messages: messages.collect(),
            next: Cell::new(0),
        }
    }
}

impl<'a> AsRef<[ControlMessage<'a>]> for ControlMessages<'a> {
    fn as_ref(&self) -> &[ControlMessage<'a>] {
        let at = self.next.get();
        self.next.set(at + 1);
        self.messages
            .get(at)
            .map(|one| &one[..])
            .unwrap_or_default()
    }
}

fn leaving_from(address: Ipv4Addr) -> in_pktinfo {
    in_pktinfo {
        ipi_ifindex: 0,
        ipi_spec_dst: in_addr {
            s_addr: address.to_bits().to_be(),
        },
        ipi_addr: in_addr { s_addr: 0 },
    }
}

fn destination(message: ControlMessageOwned) -> Option<Ipv4Addr> {
    let ControlMessageOwned::Ipv4PacketInfo(info) = message else {
        return None;
    };
    Some(Ipv4Addr::from_bits(u32::from_be(info.ipi_addr.s_addr)))
}

#[cfg(test)]
mod tests {
    use super::*;

    // As many as a socket of default size buffers until they are read.
    const MANY: u32 = 200;

    fn network() -> Network {
        "127.64.0.0/10".parse().unwrap()
    }

    fn server() -> (UdpSocket, SocketAddrV4) {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let timeout = std::time::Duration::from_secs(60);
        socket.set_read_timeout(Some(timeout)).unwrap();
        let port = socket.local_addr().unwrap().port();
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        (socket, address)
    }

    #[test]
    fn each_datagram_of_a_batch_leaves_from_the_address_of_its_device() {
        let (server, address) = server();
        let line = LoadSocket::open(address, network(), 5).unwrap();
        let mut batches = SocketBatches::new();
        for round in 0..2 {
            let mut out = Outbox::default();
            for member in 0..MANY {
                out.put(member, |bytes| bytes.extend(member.to_be_bytes()));
            }
            line.send(&mut batches, &out).unwrap();
            for member in 0..MANY {
                let mut bytes = [0; 4];
                let (_, from) = server.recv_from(&mut bytes).unwrap();
                assert_eq!(u32::from_be_bytes(bytes), member, "round {round}");
                assert_eq!(from.ip(), network().address(5 + member));
            }
        }
    }

    #[test]
    fn each_device_receives_the_datagrams_to_its_address() {
        let (server, address) = server();
        let line = LoadSocket::open(address, network(), 5).unwrap();
        let port = line.socket.local_addr().unwrap().port();
        let mut batches = SocketBatches::new();
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut received = Vec::new();
        for member in 0..MANY {
            let to = (network().address(5 + member), port);
            stranger.send_to(b"noise", to).unwrap();
            server.send_to(&member.to_be_bytes(), to).unwrap();
            if member % 100 == 99 {
                let take = |member: u32, bytes: &[u8]| received.push((member, bytes.to_vec()));
                drain(&line, &mut batches, take);
            }
        }
        let expected = (0..MANY).map(|member| (member, member.to_be_bytes().to_vec()));
        assert_eq!(received, expected.collect::<Vec<_>>());
    }

    fn drain(line: &LoadSocket, batches: &mut SocketBatches, mut take: impl FnMut(u32, &[u8])) {
        line.wait(10_000_000_000).unwrap();
        while line.receive(batches, &mut take).unwrap() > 0 {}
    }
}
