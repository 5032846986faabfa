//! What wakes a device that sleeps: the SMS that is sent to it when an action request says so.

use crate::sms::address::AddressType;

/// The SMS that wakes a device, as its customer set it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WakeUpMessage {
    /// The address of the sender.
    pub source: Box<str>,
    /// Its type.
    pub source_type: AddressType,
    /// What the device is sent; it fits one message.
    pub content: WakeUpContent,
}

/// What a device is woken with, without its contents.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WakeUpKind {
    /// A text.
    Text,
    /// 8-bit data.
    Data,
    /// The registration update trigger of LwM2M.
    RegistrationUpdateTrigger,
}

/// What a device is woken with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum WakeUpContent {
    /// A text.
    Text(Box<str>),
    /// 8-bit data.
    Data(Box<[u8]>),
    /// The registration update trigger of LwM2M: an Execute of the resource 8 of the instance 0 of
    /// the server object, as a CoAP message in 8-bit data (LwM2M Transport, SMS binding).
    RegistrationUpdateTrigger,
}

impl WakeUpContent {
    /// Its kind.
    pub fn kind(&self) -> WakeUpKind {
        match self {
            Self::Text(_) => WakeUpKind::Text,
            Self::Data(_) => WakeUpKind::Data,
            Self::RegistrationUpdateTrigger => WakeUpKind::RegistrationUpdateTrigger,
        }
    }
}
