//! How is a value of a resource stored?

use engine::limits::VALUE_BYTES_MAX;
use engine::moment::Timestamp;
use engine::query::KnownValue;
use engine::{ObjectLink, Path, Value};
use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};

use super::{Unreadable, read, write};

const VERSION: u8 = 1;

/// A value with its path.
#[derive(Decode, Encode)]
#[cbor(array)]
pub(super) struct NamedValueV1 {
    #[n(0)]
    path: ByteVec,
    #[n(1)]
    value: ValueV1,
}

/// A last known value; its path is stored beside it.
#[derive(Decode, Encode)]
#[cbor(array)]
pub(super) struct KnownV1 {
    #[n(0)]
    at_ms: i64,
    #[n(1)]
    value: ValueV1,
}

#[derive(Decode, Encode)]
enum ValueV1 {
    #[n(0)]
    Boolean(#[n(0)] bool),
    #[n(1)]
    CoreLink(#[n(0)] String),
    #[n(2)]
    Float(#[n(0)] f64),
    #[n(3)]
    Integer(#[n(0)] i64),
    #[n(4)]
    ObjectLink(#[n(0)] u16, #[n(1)] u16),
    #[n(5)]
    Opaque(#[n(0)] ByteVec),
    #[n(6)]
    String(#[n(0)] String),
    #[n(7)]
    Time(#[n(0)] i64),
    #[n(8)]
    UnsignedInteger(#[n(0)] u64),
}

/// Whether a value is short enough to be stored as a last known one.
pub(crate) fn is_short(value: &Value) -> bool {
    match value {
        Value::CoreLink(text) | Value::String(text) => text.len() <= VALUE_BYTES_MAX,
        Value::Opaque(bytes) => bytes.len() <= VALUE_BYTES_MAX,
        Value::Boolean(_)
        | Value::Float(_)
        | Value::Integer(_)
        | Value::ObjectLink(_)
        | Value::Time(_)
        | Value::UnsignedInteger(_) => true,
    }
}

/// Writes a last known value.
pub(crate) fn write_known(at: Timestamp, value: &Value) -> Vec<u8> {
    write(VERSION, &KnownV1::of(at, value))
}

/// Reads the last known value of a path.
pub(crate) fn read_known(path: Path, value: &[u8]) -> Result<KnownValue, Unreadable> {
    read(VERSION, value).map(|known: KnownV1| known.read(path))
}

/// A path, as part of a record.
pub(super) fn path_record(path: Path) -> ByteVec {
    path.to_bytes().to_vec().into()
}

/// Reads a path.
pub(super) fn read_path(bytes: &[u8]) -> Result<Path, Unreadable> {
    Path::from_bytes(bytes).ok_or(Unreadable::Damaged("no path"))
}

/// Values with their paths, as part of a record.
pub(super) fn named_value_records(values: &[(Path, Value)]) -> Vec<NamedValueV1> {
    let record = |(path, value): &(Path, Value)| NamedValueV1 {
        path: path_record(*path),
        value: ValueV1::of(value),
    };
    values.iter().map(record).collect()
}

/// Reads values with their paths.
pub(super) fn read_named_value(
    records: Vec<NamedValueV1>,
) -> Result<Box<[(Path, Value)]>, Unreadable> {
    let read = |record: NamedValueV1| Ok((read_path(&record.path)?, record.value.read()));
    records.into_iter().map(read).collect()
}

impl KnownV1 {
    pub(super) fn of(at: Timestamp, value: &Value) -> Self {
        Self {
            at_ms: at.as_ms(),
            value: ValueV1::of(value),
        }
    }

    pub(super) fn read(self, path: Path) -> KnownValue {
        KnownValue {
            path,
            value: self.value.read(),
            at: Timestamp::from_ms(self.at_ms),
        }
    }
}

impl ValueV1 {
    fn of(value: &Value) -> Self {
        match value {
            Value::Boolean(value) => Self::Boolean(*value),
            Value::CoreLink(value) => Self::CoreLink(value.clone()),
            Value::Float(value) => Self::Float(*value),
            Value::Integer(value) => Self::Integer(*value),
            Value::ObjectLink(link) => Self::ObjectLink(link.object, link.instance),
            Value::Opaque(value) => Self::Opaque(value.clone().into()),
            Value::String(value) => Self::String(value.clone()),
            Value::Time(value) => Self::Time(*value),
            Value::UnsignedInteger(value) => Self::UnsignedInteger(*value),
        }
    }

    fn read(self) -> Value {
        match self {
            Self::Boolean(value) => Value::Boolean(value),
            Self::CoreLink(value) => Value::CoreLink(value),
            Self::Float(value) => Value::Float(value),
            Self::Integer(value) => Value::Integer(value),
            Self::ObjectLink(object, instance) => {
                Value::ObjectLink(ObjectLink { object, instance })
            }
            Self::Opaque(value) => Value::Opaque(value.into()),
            Self::String(value) => Value::String(value),
            Self::Time(value) => Value::Time(value),
            Self::UnsignedInteger(value) => Value::UnsignedInteger(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_and_infinite_floats_are_stored() {
        let path = Path::resource(3303, 0, 5700);
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let values =
                read_named_value(named_value_records(&[(path, Value::Float(number))])).unwrap();
            let [(at, value)] = &values[..] else {
                panic!("one value is kept: {values:?}");
            };
            // Compared as text: NaN equals nothing.
            assert_eq!((*at, value.to_text()), (path, number.to_string()));
        }
    }
}
