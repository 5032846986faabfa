//! How is an idempotency record stored?
//!
//! Its idempotency key and device are in the row's key.

use engine::idempotency::{
    CallFingerprint, CreatedByCall, IdempotencyKey, IdempotencyRecord, IdempotentCall,
    IdentifiedDevice,
};
use engine::ids::ActionId;
use engine::moment::Timestamp;
use engine::sealed::Sealed;
use minicbor::bytes::{ByteArray, ByteVec};
use minicbor::{Decode, Encode};

use super::{Unreadable, read, write};

const VERSION: u8 = 1;

#[derive(Decode, Encode)]
#[cbor(array)]
struct IdempotencyRecordV1 {
    #[n(0)]
    call: ByteArray<16>,
    /// The id of an action request where the row's key has a device, else a sealed response.
    #[n(1)]
    created: ByteVec,
    #[n(2)]
    at_ms: i64,
}

/// Writes an idempotency record.
pub(crate) fn write_idempotency_record(record: &IdempotencyRecord) -> Vec<u8> {
    let created = match &record.created {
        CreatedByCall::Action { action, .. } => action.as_bytes().to_vec(),
        CreatedByCall::Answered(response) => response.as_bytes().to_vec(),
    };
    let stored = IdempotencyRecordV1 {
        call: ByteArray::from(*record.call.fingerprint.as_bytes()),
        created: ByteVec::from(created),
        at_ms: record.at.as_ms(),
    };
    write(VERSION, &stored)
}

/// Reads an idempotency record of an idempotency key, for a device or for the whole call.
pub(crate) fn read_idempotency_record(
    key: IdempotencyKey,
    device: Option<IdentifiedDevice>,
    value: &[u8],
) -> Result<IdempotencyRecord, Unreadable> {
    let record: IdempotencyRecordV1 = read(VERSION, value)?;
    let fingerprint = CallFingerprint::from_bytes(record.call.into());
    let created: Vec<u8> = record.created.into();
    let created = match device {
        Some(device) => {
            let id = created.try_into();
            let id = id.map_err(|_| Unreadable::Damaged("an idempotency record"))?;
            let action = ActionId::from_bytes(id);
            CreatedByCall::Action { device, action }
        }
        None => CreatedByCall::Answered(Sealed::from_bytes(created.into())),
    };
    Ok(IdempotencyRecord {
        call: IdempotentCall { key, fingerprint },
        created,
        at: Timestamp::from_ms(record.at_ms),
    })
}
