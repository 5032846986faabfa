//! Why does a device not take a request of a caller?

use std::net::{IpAddr, SocketAddr};

use crate::action::Mode;
use crate::directory::sms::waking::WakeUpRefusal;

/// A well-formed request that this device cannot take now.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SubmitRefusal {
    /// It is to be sent now over LwM2M, and the device has no registration.
    #[error("the device is not registered")]
    NotRegistered,
    /// It is to be sent now over UDP or CoAP, and the address of the device is unknown.
    #[error("the device has no IP address; set its ip")]
    NoAddress,
    /// No request may go to the address of the device.
    #[error("no request may go to the address of the device: {0}")]
    AddressForbidden(ForbiddenAddress),
    /// The device cannot be woken.
    #[error(transparent)]
    WakeUp(#[from] WakeUpRefusal),
    /// The maximum of waiting requests of its mode is reached.
    #[error("{waiting} requests of this mode wait for the device, and at most {max} may")]
    QueueFull {
        /// The mode.
        mode: Mode,
        /// How many wait: more than may, if the attempt of the one in flight ended without result.
        waiting: u32,
        /// How many may wait.
        max: u32,
    },
    /// The maximum of waiting data is reached.
    #[error("with these {more} bytes of data, {total} would wait, and at most {max} may")]
    DataFull {
        /// The bytes of its own data.
        more: usize,
        /// How many would wait with them.
        total: usize,
        /// How many may wait.
        max: usize,
    },
}

/// Why no request may go to an address.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ForbiddenAddress {
    /// The service itself listens there.
    #[error("{0} is an address of the service itself")]
    Own(SocketAddr),
    /// It is local to the host of the service, and the device was not heard from there.
    #[error("{0} is a loopback, link-local or metadata address that the device was not heard from")]
    Unheard(IpAddr),
    /// The device is sent nothing without DTLS.
    #[error("the device is reached over DTLS alone (security DTLS)")]
    WithoutDtls,
}
