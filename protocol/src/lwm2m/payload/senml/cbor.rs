//! How is a SenML pack encoded in CBOR? (RFC 8428 section 6, application/senml+cbor)

use super::record::{SenmlLabel, SenmlRecord};
use super::{Entry, Take};
use crate::lwm2m::payload::cbor::reader::{CborReader, Remaining};
use crate::lwm2m::payload::cbor::writer::CborWriter;
use crate::lwm2m::payload::samples::MalformedSamples;
use crate::lwm2m::payload::scalar::Scalar;
use crate::lwm2m::value::{DataType, Value};

const BASE_NAME: i64 = -2;
const NAME: i64 = 0;
const NUMBER: i64 = 2;
const TEXT: i64 = 3;
const BOOLEAN: i64 = 4;
const DATA: i64 = 8;

/// The one field that LwM2M adds; it has no number.
const LINK: &str = "vlo";

/// Passes on the records of a pack in order.
pub(super) fn decode(payload: &[u8], taker: &mut impl Take) -> Result<(), MalformedSamples> {
    let mut reader = CborReader::new(payload);
    let mut records = reader.array()?;
    let mut number = 0;
    while reader.another(&mut records)? {
        number += 1;
        taker.take(read_record(&mut reader, number)?)?;
    }
    Ok(reader.finish()?)
}

fn read_record(
    reader: &mut CborReader<'_>,
    number: usize,
) -> Result<SenmlRecord, MalformedSamples> {
    let mut record = SenmlRecord::new(number);
    let mut fields: Remaining = reader.map()?;
    while reader.another(&mut fields)? {
        let label = read_label(reader)?;
        if record.note(&label)? {
            let value = reader.scalar_or_skip()?;
            record.put(label, value)?;
        } else {
            reader.skip()?;
        }
    }
    Ok(record)
}

fn read_label(reader: &mut CborReader<'_>) -> Result<SenmlLabel, MalformedSamples> {
    match reader.scalar()? {
        Scalar::Number(number) => {
            let number = number.to_signed().ok_or(MalformedSamples::Cbor)?;
            Ok(SenmlLabel::of_number(number))
        }
        Scalar::Text(text) => Ok(SenmlLabel::of_text(text)),
        Scalar::Boolean(_) | Scalar::Bytes(_) | Scalar::Link(_) | Scalar::Time(_) => {
            Err(MalformedSamples::Cbor)
        }
    }
}

/// Writes the records as a pack.
pub(super) fn encode(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut writer = CborWriter::new();
    writer.array(entries.len());
    for Entry { base, name, value } in entries {
        let fields = [base.is_some(), name.is_some(), value.is_some()];
        writer.map(fields.into_iter().filter(|there| *there).count());
        if let Some(base) = base {
            writer.integer(BASE_NAME);
            writer.text(base);
        }
        if let Some(name) = name {
            writer.integer(NAME);
            writer.text(name);
        }
        if let Some(value) = value {
            write_label(value, &mut writer);
            writer.value(value);
        }
    }
    writer.finish()
}

fn write_label(value: &Value, writer: &mut CborWriter) {
    match value.data_type() {
        DataType::Boolean => writer.integer(BOOLEAN),
        DataType::CoreLink | DataType::String => writer.integer(TEXT),
        DataType::Float | DataType::Integer | DataType::Time | DataType::UnsignedInteger => {
            writer.integer(NUMBER);
        }
        DataType::ObjectLink => writer.text(LINK),
        DataType::Opaque => writer.integer(DATA),
    }
}
