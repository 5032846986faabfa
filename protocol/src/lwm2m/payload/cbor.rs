//! How is one value encoded as CBOR? (LwM2M Core 1.1 section 7.4.4, application/cbor)

pub(crate) mod reader;
pub(crate) mod writer;

#[cfg(test)]
mod tests;

use self::reader::CborReader;
use self::writer::CborWriter;
use super::samples::{MalformedSamples, ReadSamples, Samples};
use super::scalar::Scalar;
use super::{Model, Scope};
use crate::lwm2m::path::Path;
use crate::lwm2m::value::Value;

/// Reads the value of a resource or a resource instance.
pub(super) fn decode(
    path: Path,
    payload: &[u8],
    model: &dyn Model,
) -> Result<ReadSamples, MalformedSamples> {
    let mut samples = Samples::new(Scope::Within(path), model);
    samples.add(path, decode_item(payload)?, None)?;
    Ok(samples.finish())
}

/// Reads the one item of a payload.
fn decode_item(payload: &[u8]) -> Result<Scalar, MalformedSamples> {
    let mut reader = CborReader::new(payload);
    let scalar = reader.scalar()?;
    reader.finish()?;
    Ok(scalar)
}

/// Writes a value as one item.
pub(super) fn encode(value: &Value) -> Vec<u8> {
    let mut writer = CborWriter::new();
    writer.tagged_value(value);
    writer.finish()
}
