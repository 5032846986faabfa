//! How is kept what a call was promised for a device?
//!
//! The key says under which key, for which device and of which number.

use engine::ids::{ActionId, DeviceKey};
use engine::moment::Timestamp;
use engine::promise::{Fingerprint, Once, OnceKey, Promise};
use minicbor::bytes::ByteArray;
use minicbor::{Decode, Encode};

use super::{Unreadable, read, write};

const VERSION: u8 = 1;

#[derive(Decode, Encode)]
#[cbor(array)]
struct PromiseV1 {
    #[n(0)]
    call: ByteArray<16>,
    #[n(1)]
    action: ByteArray<16>,
    #[n(2)]
    at_ms: i64,
}

/// Writes a promise.
pub(crate) fn write_promise(promise: &Promise) -> Vec<u8> {
    let record = PromiseV1 {
        call: ByteArray::from(*promise.once.call.as_bytes()),
        action: ByteArray::from(*promise.action.as_bytes()),
        at_ms: promise.at.as_ms(),
    };
    write(VERSION, &record)
}

/// Reads a promise under a key for a device of a number.
pub(crate) fn read_promise(
    key: OnceKey,
    (device, number): (DeviceKey, u64),
    value: &[u8],
) -> Result<Promise, Unreadable> {
    let record: PromiseV1 = read(VERSION, value)?;
    let call = Fingerprint::from_bytes(record.call.into());
    Ok(Promise {
        once: Once { key, call },
        device,
        number,
        action: ActionId::from_bytes(record.action.into()),
        at: Timestamp::from_ms(record.at_ms),
    })
}
