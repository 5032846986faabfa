//! How do the datagrams of devices reach their server? Through one socket, as they are or over
//! DTLS.

use std::io;
use std::net::SocketAddrV4;

use super::addressing::{DeviceRange, Network};
use super::behaviour::{DeviceBehaviour, LinkSecurity};
use super::dtls_sessions::{DtlsSessions, LinkEvent, SessionCounts};
use super::load_socket::{LoadSocket, SocketBatches};
use super::outbox::Outbox;
use crate::clock::Stopwatch;

/// The link between some devices and their server.
pub struct LoadLink {
    socket: LoadSocket,
    sessions: Option<DtlsSessions>,
    // Records that wait for the socket.
    sealed: Outbox,
    server: SocketAddrV4,
    network: Network,
    first: u32,
}

impl LoadLink {
    /// Opens the link of some devices.
    pub fn open(
        server: SocketAddrV4,
        network: Network,
        devices: DeviceRange,
        behaviour: &DeviceBehaviour,
        seed: u64,
    ) -> io::Result<Self> {
        let sessions = match &behaviour.security {
            LinkSecurity::None => None,
            LinkSecurity::Psk(key) => {
                Some(DtlsSessions::new(behaviour, key.clone(), devices, seed))
            }
        };
        Ok(Self {
            socket: LoadSocket::open(server, network, devices.first)?,
            sessions,
            sealed: Outbox::default(),
            server,
            network,
            first: devices.first,
        })
    }

    /// Gives the devices a new port, as an outage of their network does. DTLS sessions outlast it:
    /// a Connection ID names them at any address.
    pub fn change_port(&mut self) -> io::Result<()> {
        self.socket = LoadSocket::open(self.server, self.network, self.first)?;
        Ok(())
    }

    /// Sends every datagram from the address of its device.
    pub fn send(
        &mut self,
        batches: &mut SocketBatches,
        now_ns: u64,
        out: &Outbox,
    ) -> io::Result<()> {
        let Some(sessions) = &mut self.sessions else {
            return self.socket.send(batches, out);
        };
        for member in out.forgetting() {
            sessions.forget(*member);
        }
        for (member, content) in out.datagrams() {
            sessions.send(member, content, now_ns, &mut self.sealed);
        }
        self.send_sealed(batches)
    }

    /// Passes on what devices notice, each event with its device and the time, of at most a batch
    /// of datagrams; returns the number of datagrams.
    pub fn receive(
        &mut self,
        batches: &mut SocketBatches,
        clock: &Stopwatch,
        mut take: impl FnMut(u32, LinkEvent<'_>, u64),
    ) -> io::Result<usize> {
        // Datagrams of one batch have the same arrival time.
        let mut arrived_at_ns = None;
        let Some(sessions) = &mut self.sessions else {
            return self.socket.receive(batches, |member, bytes| {
                let now_ns = *arrived_at_ns.get_or_insert_with(|| clock.now_ns());
                take(member, LinkEvent::Received(bytes), now_ns);
            });
        };
        let sealed = &mut self.sealed;
        let now_ns = clock.now_ns();
        sessions.handle_timeout(now_ns, sealed, &mut |member, event| {
            take(member, event, now_ns);
        });
        let received = self.socket.receive(batches, |member, bytes| {
            let now_ns = *arrived_at_ns.get_or_insert_with(|| clock.now_ns());
            let mut take = |member, event: LinkEvent<'_>| take(member, event, now_ns);
            sessions.handle_datagram(member, bytes, now_ns, sealed, &mut take);
        })?;
        self.send_sealed(batches)?;
        Ok(received)
    }

    /// When a handshake is due.
    pub fn next_at(&self) -> Option<u64> {
        self.sessions.as_ref()?.next_at()
    }

    /// Waits until a datagram arrives, at most this long.
    pub fn wait(&self, at_most_ns: u64) -> io::Result<()> {
        self.socket.wait(at_most_ns)
    }

    /// Takes what happened to sessions since the last call.
    pub fn take_counts(&mut self) -> SessionCounts {
        let sessions = self.sessions.as_mut();
        sessions.map_or_else(SessionCounts::default, DtlsSessions::take_counts)
    }

    fn send_sealed(&mut self, batches: &mut SocketBatches) -> io::Result<()> {
        if !self.sealed.is_empty() {
            self.socket.send(batches, &self.sealed)?;
            self.sealed.clear();
        }
        Ok(())
    }
}
