//! How does a simulated device get onto a real network? With a socket of its own, and a handle that
//! gives it orders.

mod shell;

use std::io;
use std::net::SocketAddr;

use protocol::coap::content::ContentFormat;
use protocol::coap::message::MessageKind;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::Sample;
use protocol::lwm2m::value::Value;
use thiserror::Error;
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use self::shell::{ShellCommand, SocketShell};
use crate::device::SimulatedDevice;
use crate::device::configuration::Configuration;
use crate::device::event::{DeviceEvent, DeviceOutput};
use crate::device::sending::Unsent;

/// Events that wait for a reader. At the bound the device continues and events are dropped: a
/// reader that does not read must not stop a device.
pub const EVENTS_MAX: usize = 256;

/// Orders that wait for the device. At the bound the sender of an order waits.
const ORDERS_MAX: usize = 16;

/// The addresses of a device and its server, and the quality of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLink {
    /// The address the device sends from, such as 127.0.1.7:0.
    pub local: SocketAddr,
    /// The address of its server; datagrams of others are dropped.
    pub server: SocketAddr,
    /// The server's port for bare datagrams, if it has one.
    pub bare: Option<SocketAddr>,
    /// The loss in each direction.
    pub loss: PacketLoss,
    /// The seed of what the device leaves to chance, and of the loss.
    pub seed: u64,
}

/// The percentage of lost datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketLoss {
    /// Towards the server.
    pub to_server_percent: u8,
    /// Towards the device.
    pub to_device_percent: u8,
}

/// A device that runs on a socket of its own. Dropping it ends the device.
#[derive(Debug)]
pub struct RunningDevice {
    address: SocketAddr,
    orders: mpsc::Sender<ShellCommand>,
    task: JoinHandle<SimulatedDevice>,
}

/// The device does not run any more: its socket failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the device has stopped")]
pub struct DeviceStopped;

/// Binds a socket, switches a device on, and returns it with its events.
pub async fn run(
    configuration: Configuration,
    link: DeviceLink,
) -> io::Result<(RunningDevice, mpsc::Receiver<DeviceEvent>)> {
    let socket = UdpSocket::bind(link.local).await?;
    let address = socket.local_addr()?;
    let (order_sender, orders) = mpsc::channel(ORDERS_MAX);
    let (events, event_receiver) = mpsc::channel(EVENTS_MAX);
    let shell = SocketShell::new(configuration, link, socket, orders, events);
    let task = tokio::spawn(shell.run());
    Ok((
        RunningDevice {
            address,
            orders: order_sender,
            task,
        },
        event_receiver,
    ))
}

impl RunningDevice {
    /// See [`SimulatedDevice::update`].
    pub async fn update(&self) -> Result<(), DeviceStopped> {
        self.order(SimulatedDevice::update).await
    }

    /// See [`SimulatedDevice::wake`].
    pub async fn wake(&self) -> Result<(), DeviceStopped> {
        self.order(SimulatedDevice::wake).await
    }

    /// See [`SimulatedDevice::sleep`].
    pub async fn sleep(&self) -> Result<(), DeviceStopped> {
        self.order(SimulatedDevice::sleep).await
    }

    /// See [`SimulatedDevice::reboot`].
    pub async fn reboot(&self) -> Result<(), DeviceStopped> {
        self.order(SimulatedDevice::reboot).await
    }

    /// See [`SimulatedDevice::deregister`].
    pub async fn deregister(&self) -> Result<(), DeviceStopped> {
        self.order(SimulatedDevice::deregister).await
    }

    /// See [`SimulatedDevice::press`].
    pub async fn press(&self, path: Path) -> Result<Option<Value>, DeviceStopped> {
        self.with(move |device| device.press(path)).await
    }

    /// See [`SimulatedDevice::set`].
    pub async fn set(&self, path: Path, value: Value) -> Result<Option<Value>, DeviceStopped> {
        self.with(move |device| device.set(path, value)).await
    }

    /// See [`SimulatedDevice::tell`].
    pub async fn tell(
        &self,
        kind: MessageKind,
        topic: &str,
        data: Vec<u8>,
    ) -> Result<Result<(), Unsent>, DeviceStopped> {
        let topic = topic.to_owned();
        self.order(move |device, now_ms, out| device.tell(now_ms, kind, (&topic, &data), out))
            .await
    }

    /// See [`SimulatedDevice::throw`].
    pub async fn throw(&self, bytes: Vec<u8>) -> Result<Result<(), Unsent>, DeviceStopped> {
        self.order(move |device, now_ms, out| device.throw(now_ms, &bytes, out))
            .await
    }

    /// See [`SimulatedDevice::send`].
    pub async fn send(
        &self,
        format: ContentFormat,
        samples: Vec<Sample>,
    ) -> Result<Result<(), Unsent>, DeviceStopped> {
        self.order(move |device, now_ms, out| device.send(now_ms, format, &samples, out))
            .await
    }

    /// Reads the device, or changes what needs no clock, and returns the result.
    pub async fn with<T: Send + 'static>(
        &self,
        look: impl FnOnce(&mut SimulatedDevice) -> T + Send + 'static,
    ) -> Result<T, DeviceStopped> {
        self.order(move |device, _, _| look(device)).await
    }

    /// Gives the device another address, as roaming or a new NAT mapping would. The device does not
    /// notice.
    pub async fn move_to(&mut self, local: SocketAddr) -> io::Result<()> {
        let (moved, answer) = oneshot::channel();
        let order = ShellCommand::MoveTo { local, moved };
        self.orders
            .send(order)
            .await
            .map_err(|_| io::Error::other(DeviceStopped))?;
        self.address = answer.await.map_err(io::Error::other)??;
        Ok(())
    }

    /// Stops the device where it is, closes its socket, and returns it.
    pub async fn stop(self) -> Result<SimulatedDevice, DeviceStopped> {
        drop(self.orders);
        self.task.await.map_err(|_| DeviceStopped)
    }

    /// The address that the device sends from.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    async fn order<T: Send + 'static>(
        &self,
        deed: impl FnOnce(&mut SimulatedDevice, i64, &mut Vec<DeviceOutput>) -> T + Send + 'static,
    ) -> Result<T, DeviceStopped> {
        let (sender, done) = oneshot::channel();
        let deed = move |device: &mut SimulatedDevice, now_ms, out: &mut Vec<DeviceOutput>| {
            // The sender of the order may be gone.
            let _ = sender.send(deed(device, now_ms, out));
        };
        self.orders
            .send(ShellCommand::Do(Box::new(deed)))
            .await
            .map_err(|_| DeviceStopped)?;
        done.await.map_err(|_| DeviceStopped)
    }
}
