//! How is the private key of the service stored?

use engine::sealed::Sealed;
use minicbor::bytes::ByteSlice;
use minicbor::{Decode, Encode};

use super::{Unreadable, read, write};

const VERSION: u8 = 1;

#[derive(Decode, Encode)]
#[cbor(array)]
struct ServerKeyV1<'a> {
    #[b(0)]
    key: &'a ByteSlice,
}

/// Writes the key.
pub(crate) fn write_server_key(key: &Sealed) -> Vec<u8> {
    let key = key.as_bytes().into();
    write(VERSION, &ServerKeyV1 { key })
}

/// Reads the key.
pub(crate) fn read_server_key(value: &[u8]) -> Result<Sealed, Unreadable> {
    let record: ServerKeyV1<'_> = read(VERSION, value)?;
    Ok(Sealed::from_bytes(record.key.to_vec().into()))
}
