//! Who floods? One socket that sends prepared datagrams, each from an address of its own, and reads
//! no answer.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use socket2::SockAddr;

use crate::device_group::{CONTROL_BYTES, send_from};
use crate::flood::kinds::FloodKind;

/// The pause between two bursts.
const PAUSE: Duration = Duration::from_millis(1);

/// How long a flood lasts before it is reported as begun.
pub(super) const LEAD: Duration = Duration::from_secs(1);

/// A datagram and where it comes from.
pub(super) struct FloodDatagram {
    pub(super) control: [u8; CONTROL_BYTES],
    pub(super) bytes: Vec<u8>,
}

/// The sender of one flood.
pub(super) struct FloodSender {
    socket: UdpSocket,
    datagrams: Vec<FloodDatagram>,
    next: usize,
    message_id: u16,
}

impl FloodSender {
    /// The sender of a flood; it has registered its devices, if it has any.
    pub(super) fn of(kind: FloodKind, server: SocketAddr) -> Self {
        let (socket, datagrams) = kind.prepare(server);
        Self {
            socket,
            datagrams,
            next: 0,
            message_id: 0,
        }
    }

    /// Sends one prepared datagram after the other at a rate until it is to stop, and reports when
    /// the lead is over.
    pub(super) fn send(
        &mut self,
        to: SocketAddr,
        per_second: u32,
        begun: &SyncSender<()>,
        stop: &Receiver<()>,
    ) {
        let (to, begun_at) = (SockAddr::from(to), Instant::now());
        let mut sent = 0;
        while stop.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
            let past = begun_at.elapsed();
            if past >= LEAD {
                // Reported already if there is no room.
                begun.try_send(()).ok();
            }
            let due = (past.as_secs_f64() * f64::from(per_second)) as u64;
            for _ in sent..due {
                self.send_one(&to);
            }
            sent = due;
        }
    }

    fn send_one(&mut self, to: &SockAddr) {
        if self.next == self.datagrams.len() {
            self.next = 0;
            self.message_id = self.message_id.wrapping_add(1);
        }
        let datagram = &mut self.datagrams[self.next];
        // The same message again would be a duplicate.
        datagram.bytes[2..4].copy_from_slice(&self.message_id.to_be_bytes());
        self.next += 1;
        let FloodDatagram { control, bytes } = datagram;
        // A full buffer of the receiver is no error, and one of the sender is what a flood meets.
        drop(send_from(&self.socket, to, control, bytes));
    }
}

/// A port that takes datagrams, and that nobody reads.
pub(super) struct UnreadPort(UdpSocket);

impl UnreadPort {
    /// Opens one.
    pub(super) fn open() -> Self {
        Self(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free"))
    }

    /// Its address.
    pub(super) fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("it is bound")
    }
}
