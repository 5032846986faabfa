//! How do a hundred thousand devices send from one socket? Each datagram carries its source address
//! (`IP_PKTINFO`), and all of 127.0.0.0/8 is local.
//!
//! Beside the device pool of a load, because a datagram of the pool costs about as much as a bare
//! echo of it: to measure the echo, the sender must be cheaper, without statistics.

use std::io::{Error, ErrorKind, IoSlice};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId};
use socket2::{MsgHdr, SockAddr, SockRef};

use crate::fleet;
use crate::talk;

/// Datagrams that wait for their answer: enough that the server always finds the next one, and few
/// enough that no buffer on the way overflows.
const WINDOW: u32 = 256;

/// The requested size of the kernel's buffers: many windows, because the kernel counts its
/// overhead, too.
const BUFFER_BYTES: usize = 4 << 20;

/// Datagrams sent before answers are read again.
const BURST: u32 = 32;

/// Without an answer for this long, the datagram or its answer is lost, and the figure is invalid.
const PATIENCE: Duration = Duration::from_secs(5);

/// The size of an update: with the service's name, its lifetime and binding, none of them changed.
const UPDATE_BYTES: usize = 62;

/// `struct cmsghdr` and `struct in_pktinfo`, padded.
pub(crate) const CONTROL_BYTES: usize = 32;

/// `SOL_IP` and `IP_PKTINFO` of Linux.
const SOL_IP: i32 = 0;
const IP_PKTINFO: i32 = 8;

/// Devices that share one socket, each with its own address.
pub(crate) struct DeviceGroup {
    socket: UdpSocket,
    members: Vec<Member>,
    next: usize,
    message_id: u16,
    buffer: [u8; 2_048],
}

struct Member {
    control: [u8; CONTROL_BYTES],
    update: [u8; UPDATE_BYTES],
}

impl DeviceGroup {
    /// The first devices of the fleet, unregistered.
    pub(crate) fn gather(devices: u32) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port is free");
        socket
            .set_nonblocking(true)
            .expect("a socket need not block");
        SockRef::from(&socket)
            .set_recv_buffer_size(BUFFER_BYTES)
            .expect("the kernel grants what it may");
        let member = |number| Member {
            control: control(fleet::address(number)),
            update: [0; UPDATE_BYTES],
        };
        Self {
            socket,
            members: (0..devices).map(member).collect(),
            next: 0,
            message_id: 0,
            buffer: [0; 2_048],
        }
    }

    /// Registers every device.
    pub(crate) fn register(&mut self, server: SocketAddr) {
        let to = SockAddr::from(server);
        let devices = u32::try_from(self.members.len()).expect("the crowd was counted so");
        let (mut sent, mut answered) = (0, 0);
        while answered < devices {
            while sent < devices && sent - answered < WINDOW {
                let message = talk::register(sent, id_of(sent));
                let control = self.members[sent as usize].control;
                self.send(&to, &control, &message.encode());
                sent += 1;
            }
            let length = self.wait();
            let answer = Message::decode(&self.buffer[..length]).expect("it is a message");
            assert_eq!(answer.code, Code::CREATED, "every device is registered");
            // At most a window of ids is in flight, so the id identifies its device.
            let behind = id_of(sent - 1).0.wrapping_sub(answer.message_id.0);
            let number = sent - 1 - u32::from(behind);
            let update = talk::update(answer.location_path(), answer.message_id).encode();
            self.members[number as usize].update =
                update.try_into().expect("an update has its length");
            answered += 1;
        }
    }

    /// Sends updates, one device after the other, for this long; returns how many were answered.
    /// `code` is the second byte of every expected answer.
    pub(crate) fn update(&mut self, server: SocketAddr, code: u8, time: Duration) -> u64 {
        let to = SockAddr::from(server);
        let window = WINDOW.min(u32::try_from(self.members.len()).expect("the crowd is small"));
        let begun_at = Instant::now();
        let (mut open, mut answered) = (0, 0);
        while begun_at.elapsed() < time {
            while open < window {
                self.send_update(&to);
                open += 1;
            }
            for _ in 0..BURST.min(window) {
                self.take_answer(code);
                open -= 1;
                answered += 1;
            }
        }
        for _ in 0..open {
            self.take_answer(code);
            answered += 1;
        }
        answered
    }

    fn send_update(&mut self, to: &SockAddr) {
        if self.next == self.members.len() {
            self.next = 0;
            self.message_id = self.message_id.wrapping_add(1);
        }
        let member = &mut self.members[self.next];
        // A new message each time: the same one would be a duplicate.
        let id = self.message_id.to_be_bytes();
        member.update[2..4].copy_from_slice(&id);
        member.update[4..6].copy_from_slice(&id);
        let (control, update) = (member.control, member.update);
        self.send(to, &control, &update);
        self.next += 1;
    }

    fn take_answer(&mut self, code: u8) {
        let length = self.wait();
        assert_eq!(
            self.buffer[..length].get(1),
            Some(&code),
            "every answer is the right one"
        );
    }

    /// The socket, and for each device its ancillary data and its update.
    pub(crate) fn into_updates(
        self,
    ) -> (
        UdpSocket,
        impl Iterator<Item = ([u8; CONTROL_BYTES], Vec<u8>)>,
    ) {
        let members = self.members.into_iter();
        let updates = members.map(|member| (member.control, member.update.to_vec()));
        (self.socket, updates)
    }

    fn send(&self, to: &SockAddr, control: &[u8], bytes: &[u8]) {
        send_from(&self.socket, to, control, bytes).expect("a datagram leaves");
    }

    /// Waits for a datagram by polling, so that the server does not pay for waking this thread.
    fn wait(&mut self) -> usize {
        let begun_at = Instant::now();
        loop {
            let received = self.socket.recv(&mut self.buffer);
            let nothing = |error: &Error| error.kind() == ErrorKind::WouldBlock;
            if !received.as_ref().is_err_and(nothing) {
                return received.expect("the socket receives");
            }
            assert!(
                begun_at.elapsed() < PATIENCE,
                "a datagram or its answer was lost"
            );
        }
    }
}

/// Sends a datagram from the address in its ancillary data.
pub(crate) fn send_from(
    socket: &UdpSocket,
    to: &SockAddr,
    control: &[u8],
    bytes: &[u8],
) -> Result<usize, Error> {
    let buffers = [IoSlice::new(bytes)];
    let message = MsgHdr::new()
        .with_addr(to)
        .with_buffers(&buffers)
        .with_control(control);
    SockRef::from(socket).sendmsg(&message, 0)
}

fn id_of(number: u32) -> MessageId {
    let [.., high, low] = number.to_be_bytes();
    MessageId(u16::from_be_bytes([high, low]))
}

/// The ancillary data that makes a datagram leave from an address.
pub(crate) fn control(from: Ipv4Addr) -> [u8; CONTROL_BYTES] {
    let mut control = [0; CONTROL_BYTES];
    // The length is that of header and content without the padding; any interface will do.
    control[..8].copy_from_slice(&28_usize.to_ne_bytes());
    control[8..12].copy_from_slice(&SOL_IP.to_ne_bytes());
    control[12..16].copy_from_slice(&IP_PKTINFO.to_ne_bytes());
    control[20..24].copy_from_slice(&from.octets());
    control
}
