//! How the rest of the service reaches a device: by key, without knowing where it lives.

use engine::action::NewAction;
use engine::device::queue::{Accepted, CancelRefusal, Cancelled, SubmitRefusal};
use engine::device::snapshot::Snapshot;
use engine::ids::{ActionId, DeviceKey};

/// Why a device could not be asked; what it would have said is not known.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Unserved {
    /// There is no such device.
    #[error("there is no such device")]
    Unknown,
    /// The service has too much to do: try again later.
    #[error("the service is overloaded")]
    Busy,
    /// The device's actor or the store failed: whether it happened is to be read back.
    #[error("the device could not be asked")]
    Failed,
}

/// The door to all devices.
#[derive(Clone)]
pub struct Devices {}

impl Devices {
    /// Creates an action request for a device; when this returns Ok it is durable.
    pub async fn submit(
        &self,
        device: DeviceKey,
        action: NewAction,
    ) -> Result<Result<Accepted, SubmitRefusal>, Unserved> {
        let _ = (device, action);
        Err(Unserved::Unknown)
    }

    /// Takes back a request that was not sent.
    pub async fn cancel(
        &self,
        device: DeviceKey,
        action: ActionId,
    ) -> Result<Result<Cancelled, CancelRefusal>, Unserved> {
        let _ = (device, action);
        Err(Unserved::Unknown)
    }

    /// Takes back every request of a device that was not sent.
    pub async fn cancel_all(&self, device: DeviceKey) -> Result<Vec<Cancelled>, Unserved> {
        let _ = device;
        Err(Unserved::Unknown)
    }

    /// Forgets a device with all that belongs to it.
    pub async fn retire(&self, device: DeviceKey) -> Result<(), Unserved> {
        let _ = device;
        Err(Unserved::Unknown)
    }

    /// What a device is doing right now.
    pub async fn inspect(&self, device: DeviceKey) -> Result<Snapshot, Unserved> {
        let _ = device;
        Err(Unserved::Unknown)
    }
}
