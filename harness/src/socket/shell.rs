//! Who drives the machine? One task: orders, datagrams and timeouts in, datagrams and events out.
//! It decides only which datagrams are lost.

use std::io;
use std::net::SocketAddr;

use tokio::net::UdpSocket;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use super::DeviceLink;
use crate::clock::Clock;
use crate::device::SimulatedDevice;
use crate::device::configuration::Configuration;
use crate::device::event::{DeviceEvent, DeviceOutput};
use crate::rng::Rng;

/// The longest datagram that is read whole. Longer bodies are transferred block-wise; a truncated
/// datagram is noise to the device.
const DATAGRAM_BYTES_MAX: usize = 2_048;

/// An action on the device, with the time and the buffer for its outputs.
type DeviceAction = Box<dyn FnOnce(&mut SimulatedDevice, i64, &mut Vec<DeviceOutput>) + Send>;

pub(super) enum ShellCommand {
    Do(DeviceAction),
    MoveTo {
        local: SocketAddr,
        moved: oneshot::Sender<io::Result<SocketAddr>>,
    },
}

pub(super) struct SocketShell {
    clock: Clock,
    device: SimulatedDevice,
    socket: UdpSocket,
    link: DeviceLink,
    rng: Rng,
    orders: mpsc::Receiver<ShellCommand>,
    events: mpsc::Sender<DeviceEvent>,
    out: Vec<DeviceOutput>,
}

impl SocketShell {
    pub(super) fn new(
        configuration: Configuration,
        link: DeviceLink,
        socket: UdpSocket,
        orders: mpsc::Receiver<ShellCommand>,
        events: mpsc::Sender<DeviceEvent>,
    ) -> Self {
        let mut rng = Rng::from_seed(link.seed);
        let device = SimulatedDevice::new(configuration, rng.number());
        let clock = Clock::start();
        Self {
            clock,
            device,
            socket,
            link,
            rng,
            orders,
            events,
            out: Vec::new(),
        }
    }

    /// Runs until the handle is dropped, or the socket fails.
    pub(super) async fn run(mut self) -> SimulatedDevice {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        self.device.handle_start(self.clock.now_ms(), &mut self.out);
        loop {
            self.perform().await;
            let next_timeout_ms = self.device.next_timeout();
            tokio::select! {
                order = self.orders.recv() => match order {
                    Some(order) => self.obey(order).await,
                    None => return self.device,
                },
                received = self.socket.recv_from(&mut buffer) => match received {
                    Ok((length, peer)) => {
                        let datagram = buffer.get(..length).unwrap_or_default();
                        self.handle_datagram(peer, datagram);
                    }
                    Err(error) if is_passing(&error) => {}
                    Err(error) => {
                        tracing::warn!(endpoint = self.device.endpoint(), %error, "socket broke");
                        return self.device;
                    }
                },
                () = self.clock.sleep_until(next_timeout_ms) => {
                    self.device.handle_timeout(self.clock.now_ms(), &mut self.out);
                }
            }
        }
    }

    async fn obey(&mut self, order: ShellCommand) {
        match order {
            ShellCommand::Do(deed) => deed(&mut self.device, self.clock.now_ms(), &mut self.out),
            ShellCommand::MoveTo { local, moved } => {
                // The sender of the order may be gone.
                let _ = moved.send(self.move_to(local).await);
            }
        }
    }

    fn handle_datagram(&mut self, peer: SocketAddr, datagram: &[u8]) {
        let is_bare = Some(peer) == self.link.bare;
        let is_known = is_bare || peer == self.link.server;
        if !is_known || self.rng.hits(self.link.loss.to_device_percent) {
            return;
        }
        tracing::trace!(
            endpoint = self.device.endpoint(),
            bytes = datagram.len(),
            "heard"
        );
        let (device, now_ms) = (&mut self.device, self.clock.now_ms());
        match is_bare {
            true => device.handle_bare(now_ms, datagram, &mut self.out),
            false => device.handle_datagram(now_ms, datagram, &mut self.out),
        }
    }

    async fn move_to(&mut self, local: SocketAddr) -> io::Result<SocketAddr> {
        self.socket = UdpSocket::bind(local).await?;
        self.socket.local_addr()
    }

    async fn perform(&mut self) {
        for output in std::mem::take(&mut self.out) {
            match output {
                DeviceOutput::Send(datagram) => self.send(&datagram, Some(self.link.server)).await,
                DeviceOutput::SendUdp(bytes) => self.send(&bytes, self.link.bare).await,
                DeviceOutput::Report(event) => {
                    tracing::debug!(endpoint = self.device.endpoint(), %event, "device");
                    if let Err(TrySendError::Full(event)) = self.events.try_send(event) {
                        tracing::debug!(endpoint = self.device.endpoint(), %event, "unread");
                    }
                }
            }
        }
    }

    async fn send(&mut self, datagram: &[u8], to: Option<SocketAddr>) {
        let Some(to) = to else {
            return;
        };
        if self.rng.hits(self.link.loss.to_server_percent) {
            return;
        }
        // A datagram that cannot be sent counts as lost.
        if let Err(error) = self.socket.send_to(datagram, to).await {
            tracing::debug!(endpoint = self.device.endpoint(), %error, "not sent");
        }
    }
}

// Some systems report that an earlier datagram was not delivered.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}
