//! The values, numbers and types that properties of payloads use.

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof};
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::{DataType, ObjectLink, Value};

/// Values of every type.
pub(crate) fn values() -> impl Strategy<Value = Value> {
    let link = |(object, instance)| Value::ObjectLink(ObjectLink { object, instance });
    let finite = any::<f64>().prop_filter("finite", |number| number.is_finite());
    let short = any::<f32>().prop_filter("finite", |number| number.is_finite());
    prop_oneof![
        any::<bool>().prop_map(Value::Boolean),
        any::<String>().prop_map(Value::CoreLink),
        finite.prop_map(Value::Float),
        short.prop_map(|number| Value::Float(number.into())),
        (any::<i64>(), 0..64_u32).prop_map(|(number, shift)| Value::Integer(number >> shift)),
        any::<(u16, u16)>().prop_map(link),
        vec(any::<u8>(), 0..300).prop_map(Value::Opaque),
        "\\PC{0,300}".prop_map(Value::String),
        any::<i64>().prop_map(Value::Time),
        any::<u64>().prop_map(Value::UnsignedInteger),
    ]
}

/// A type for each resource, or none, which differs from salt to salt.
pub(crate) fn type_by_number(path: Path, salt: u16) -> Option<DataType> {
    let place = usize::from(path.resource_id()?.wrapping_add(salt)) % (DataType::ALL.len() + 1);
    DataType::ALL.get(place).copied()
}
