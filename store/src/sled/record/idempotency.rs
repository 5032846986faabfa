//! How is an idempotency record stored?
//!
//! Its idempotency key, device and number are in the row's key.

use engine::idempotency::{CallFingerprint, IdempotencyKey, IdempotencyRecord, IdempotentCall};
use engine::ids::{ActionId, DeviceKey};
use engine::moment::Timestamp;
use minicbor::bytes::ByteArray;
use minicbor::{Decode, Encode};

use super::{Unreadable, read, write};

const VERSION: u8 = 1;

#[derive(Decode, Encode)]
#[cbor(array)]
struct IdempotencyRecordV1 {
    #[n(0)]
    call: ByteArray<16>,
    #[n(1)]
    action: ByteArray<16>,
    #[n(2)]
    at_ms: i64,
}

/// Writes an idempotency record.
pub(crate) fn write_idempotency_record(promise: &IdempotencyRecord) -> Vec<u8> {
    let record = IdempotencyRecordV1 {
        call: ByteArray::from(*promise.call.fingerprint.as_bytes()),
        action: ByteArray::from(*promise.action.as_bytes()),
        at_ms: promise.at.as_ms(),
    };
    write(VERSION, &record)
}

/// Reads an idempotency record of an idempotency key, for a device and a number.
pub(crate) fn read_idempotency_record(
    key: IdempotencyKey,
    (device, number): (DeviceKey, u64),
    value: &[u8],
) -> Result<IdempotencyRecord, Unreadable> {
    let record: IdempotencyRecordV1 = read(VERSION, value)?;
    let call = CallFingerprint::from_bytes(record.call.into());
    Ok(IdempotencyRecord {
        call: IdempotentCall {
            key,
            fingerprint: call,
        },
        device,
        number,
        action: ActionId::from_bytes(record.action.into()),
        at: Timestamp::from_ms(record.at_ms),
    })
}
