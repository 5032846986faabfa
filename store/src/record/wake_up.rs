//! How is the SMS that wakes a device stored, with the device and with its customer?

use engine::wake_up::{WakeUpContent, WakeUpMessage};
use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};

use super::{Unreadable, code};

#[derive(Decode, Encode)]
#[cbor(array)]
pub(super) struct WakeUpMessageV1<'a> {
    #[b(0)]
    source: &'a str,
    #[n(1)]
    source_type: u8,
    #[b(2)]
    content: WakeUpContentV1<'a>,
}

#[derive(Decode, Encode)]
enum WakeUpContentV1<'a> {
    #[n(0)]
    #[cbor(array)]
    Text(#[b(0)] &'a str),
    #[n(1)]
    #[cbor(array)]
    Data(#[n(0)] ByteVec),
    #[n(2)]
    RegistrationUpdateTrigger,
}

/// A message, as part of a record.
pub(super) fn wake_up_record(message: &WakeUpMessage) -> WakeUpMessageV1<'_> {
    WakeUpMessageV1 {
        source: &message.source,
        source_type: code::of_address_type(message.source_type),
        content: match &message.content {
            WakeUpContent::Text(text) => WakeUpContentV1::Text(text),
            WakeUpContent::Data(octets) => WakeUpContentV1::Data(octets.to_vec().into()),
            WakeUpContent::RegistrationUpdateTrigger => WakeUpContentV1::RegistrationUpdateTrigger,
        },
    }
}

/// Reads a message.
pub(super) fn read_wake_up(record: WakeUpMessageV1<'_>) -> Result<WakeUpMessage, Unreadable> {
    Ok(WakeUpMessage {
        source: record.source.into(),
        source_type: code::address_type(record.source_type)?,
        content: match record.content {
            WakeUpContentV1::Text(text) => WakeUpContent::Text(text.into()),
            WakeUpContentV1::Data(octets) => WakeUpContent::Data(Vec::from(octets).into()),
            WakeUpContentV1::RegistrationUpdateTrigger => WakeUpContent::RegistrationUpdateTrigger,
        },
    })
}
