//! How are datagrams written into a stream between nodes?
//!
//! Each is a frame: the length of the datagram (2 bytes), its transport (1), the address of the
//! relaying node that it was sent to or leaves from (16), that of the peer (16) with its port (2)
//! and interface (4), and the datagram. Numbers are in network order, and IPv4 addresses mapped to
//! IPv6 (RFC 4291 section 2.5.5.2).

use std::net::{IpAddr, Ipv6Addr, SocketAddrV6};

use engine::peer::{Peer, Transport};

/// The bytes before the datagram.
const HEAD_BYTES: usize = 41;

/// A datagram of a peer, or to one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Frame<'a> {
    /// The peer. It has no number for the address of the service.
    pub(crate) peer: Peer,
    /// The address of the relaying node that the datagram was sent to or leaves from.
    pub(crate) at: IpAddr,
    /// What is in it.
    pub(crate) datagram: &'a [u8],
}

/// The bytes are no frame: they are not of a node of this version.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a frame has the unknown transport {0}")]
pub(crate) struct InvalidFrame(u8);

impl Frame<'_> {
    /// Appends the frame; a datagram that is too long for UDP is left out.
    pub(crate) fn write(&self, stream: &mut Vec<u8>) {
        let Ok(length) = u16::try_from(self.datagram.len()) else {
            return;
        };
        let interface = match self.peer.address {
            std::net::SocketAddr::V4(_) => 0,
            std::net::SocketAddr::V6(v6) => v6.scope_id(),
        };
        stream.reserve(HEAD_BYTES + self.datagram.len());
        stream.extend_from_slice(&length.to_be_bytes());
        stream.push(number_of(self.peer.transport));
        stream.extend_from_slice(&octets(self.at));
        stream.extend_from_slice(&octets(self.peer.ip()));
        stream.extend_from_slice(&self.peer.address.port().to_be_bytes());
        stream.extend_from_slice(&interface.to_be_bytes());
        stream.extend_from_slice(self.datagram);
    }
}

/// What has arrived of a stream of frames.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    /// The beginning of a frame.
    rest: Vec<u8>,
}

impl FrameReader {
    /// Passes on the frames that are complete with this part of the stream.
    pub(crate) fn read(
        &mut self,
        part: &[u8],
        mut take: impl FnMut(Frame<'_>),
    ) -> Result<(), InvalidFrame> {
        self.rest.extend_from_slice(part);
        let mut unread = self.rest.as_slice();
        while let Some((frame, after)) = split_frame(unread)? {
            take(frame);
            unread = after;
        }
        let read = self.rest.len() - unread.len();
        self.rest.drain(..read);
        Ok(())
    }
}

/// The first frame and what follows it; none, if it is not complete.
fn split_frame(bytes: &[u8]) -> Result<Option<(Frame<'_>, &[u8])>, InvalidFrame> {
    let Some((head, after)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
        return Ok(None);
    };
    let [l0, l1, transport, addresses @ .., p0, p1, i0, i1, i2, i3] = head;
    let transport = transport_of(*transport)?;
    let Some((datagram, after)) = after.split_at_checked(u16::from_be_bytes([*l0, *l1]).into())
    else {
        return Ok(None);
    };
    let [at, ip] = [0, 16].map(|from| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&addresses[from..from + 16]);
        Ipv6Addr::from(octets)
    });
    let interface = u32::from_be_bytes([*i0, *i1, *i2, *i3]);
    let address = SocketAddrV6::new(ip, u16::from_be_bytes([*p0, *p1]), 0, interface);
    let frame = Frame {
        peer: Peer::at(address.into(), transport),
        at: at.to_canonical(),
        datagram,
    };
    Ok(Some((frame, after)))
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

fn number_of(transport: Transport) -> u8 {
    match transport {
        Transport::Coap => 0,
        Transport::Coaps => 1,
        Transport::Udp => 2,
    }
}

fn transport_of(number: u8) -> Result<Transport, InvalidFrame> {
    match number {
        0 => Ok(Transport::Coap),
        1 => Ok(Transport::Coaps),
        2 => Ok(Transport::Udp),
        other => Err(InvalidFrame(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<Frame<'static>> {
        let frame = |peer: &str, transport, at: &str, datagram| Frame {
            peer: Peer::at(peer.parse().unwrap(), transport),
            at: at.parse().unwrap(),
            datagram,
        };
        vec![
            frame("10.0.0.7:5683", Transport::Coap, "10.0.2.1", b"one"),
            frame("[2001:db8::7]:1", Transport::Coaps, "2001:db8::1", b""),
            frame("[fe80::7%3]:65535", Transport::Udp, "fe80::1", &[7; 65_535]),
        ]
    }

    #[test]
    fn frames_are_read_as_they_were_written_whatever_parts_arrive() {
        let frames = frames();
        let mut stream = Vec::new();
        frames.iter().for_each(|frame| frame.write(&mut stream));
        for size in [1, 2, 40, 41, 42, 50_000, stream.len()] {
            let (mut reader, mut read) = (FrameReader::default(), 0);
            for part in stream.chunks(size) {
                let took = reader.read(part, |frame| {
                    assert_eq!(frame, frames[read]);
                    assert_eq!(frame.peer.address, frames[read].peer.address);
                    read += 1;
                });
                took.unwrap();
            }
            assert_eq!((read, reader.rest.len()), (frames.len(), 0), "{size}");
        }
    }

    #[test]
    fn bytes_of_another_protocol_are_refused() {
        let mut reader = FrameReader::default();
        let request = b"GET /api/v1/devices HTTP/1.1\r\nhost: localhost\r\n\r\n";
        let refused = reader.read(request, |frame| panic!("{frame:?}"));
        assert_eq!(refused, Err(InvalidFrame(b'T')));
    }
}
