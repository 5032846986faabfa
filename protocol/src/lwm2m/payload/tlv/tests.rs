//! Is each level of a TLV payload read with and without those above it?

use super::{MalformedTlv, VALUES_MAX, decode, encode};
use crate::lwm2m::model::{self, Instances};
use crate::lwm2m::path::Path;
use crate::lwm2m::payload::{Model, Reading};
use crate::lwm2m::value::{DataType, Value};
use crate::lwm2m::version::Version;

const LIFETIME: Path = Path::resource(1, 0, 1);
const POWER_SOURCES: Path = Path::resource(3, 0, 6);

#[test]
fn an_instance_is_read_with_and_without_its_own_entry() {
    let expected = reading([(LIFETIME, Value::Integer(300))]);
    let bare = [0xc2, 1, 1, 0x2c];
    let wrapped = [4, 0, 0xc2, 1, 1, 0x2c];
    for payload in [&bare[..], &wrapped] {
        assert_eq!(read(Path::instance(1, 0), payload), Ok(expected.clone()));
    }
}

#[test]
fn a_resource_is_read_with_and_without_its_instance() {
    let expected = reading([(LIFETIME, Value::Integer(300))]);
    let bare = [0xc2, 1, 1, 0x2c];
    let wrapped = [4, 0, 0xc2, 1, 1, 0x2c];
    for payload in [&bare[..], &wrapped] {
        assert_eq!(read(LIFETIME, payload), Ok(expected.clone()));
    }
}

#[test]
fn a_multiple_resource_is_read_with_and_without_the_levels_above_its_values() {
    let expected = reading([
        (power_source(0), Value::Integer(1)),
        (power_source(5), Value::Integer(7)),
    ]);
    let bare = [0x41, 0, 1, 0x41, 5, 7];
    let multiple = [0x86, 6, 0x41, 0, 1, 0x41, 5, 7];
    let wrapped = [8, 0, 8, 0x86, 6, 0x41, 0, 1, 0x41, 5, 7];
    for payload in [&bare[..], &multiple, &wrapped] {
        assert_eq!(read(POWER_SOURCES, payload), Ok(expected.clone()));
    }
}

#[test]
fn a_resource_instance_is_read_with_and_without_its_resource() {
    let expected = reading([(power_source(5), Value::Integer(7))]);
    let bare = [0x41, 5, 7];
    let multiple = [0x83, 6, 0x41, 5, 7];
    let wrapped = [5, 0, 0x83, 6, 0x41, 5, 7];
    for payload in [&bare[..], &multiple, &wrapped] {
        assert_eq!(read(power_source(5), payload), Ok(expected.clone()));
    }
}

#[test]
fn an_object_is_read_instance_by_instance() {
    let payload = [4, 0, 0xc2, 1, 1, 0x2c, 0x24, 1, 0, 0xc2, 1, 0, 0x3c];
    let expected = reading([
        (LIFETIME, Value::Integer(300)),
        (Path::resource(1, 256, 1), Value::Integer(60)),
    ]);
    assert_eq!(read(Path::object(1), &payload), Ok(expected));
}

#[test]
fn resources_without_instance_belong_to_the_only_one() {
    let payload = [0xc1, 9, 100];
    let battery_level = reading([(Path::resource(3, 0, 9), Value::Integer(100))]);
    assert_eq!(read(Path::object(3), &payload), Ok(battery_level));
    let unknown = reading([(Path::resource(42_000, 0, 9), Value::Opaque(vec![100]))]);
    assert_eq!(read(Path::object(42_000), &payload), Ok(unknown.clone()));
    // For an object with several instances, the instance is ambiguous.
    assert_eq!(
        read(Path::object(1), &payload),
        Err(MalformedTlv::Misplaced)
    );
    // A definition of the customer takes precedence over the registry.
    let one = decode(Path::object(42_000), &payload, &Present(Instances::Single));
    assert_eq!(one, Ok(unknown));
    let of_several = decode(
        Path::object(42_000),
        &payload,
        &Present(Instances::Multiple),
    );
    assert_eq!(of_several, Err(MalformedTlv::Misplaced));
}

#[test]
fn empty_instances_and_resources_leave_no_trace() {
    let cases: [(Path, &[u8]); 5] = [
        (Path::object(1), &[]),
        (Path::object(1), &[0, 0, 0, 1]),
        (Path::instance(3, 0), &[0x80, 6]),
        (POWER_SOURCES, &[0x80, 6]),
        (POWER_SOURCES, &[]),
    ];
    for (path, payload) in cases {
        assert_eq!(read(path, payload), Ok(Reading::new()), "{path}");
    }
}

#[test]
fn values_that_were_not_requested_are_refused() {
    let cases: [(Path, &[u8], Path); 7] = [
        (
            Path::instance(1, 0),
            &[3, 1, 0xc1, 1, 60],
            Path::instance(1, 1),
        ),
        (Path::instance(1, 0), &[0, 1], Path::instance(1, 1)),
        (LIFETIME, &[0xc1, 2, 60], Path::resource(1, 0, 2)),
        (
            LIFETIME,
            &[6, 0, 0xc1, 1, 60, 0xc1, 2, 60],
            Path::resource(1, 0, 2),
        ),
        (
            POWER_SOURCES,
            &[0x83, 7, 0x41, 0, 1],
            Path::resource(3, 0, 7),
        ),
        (power_source(5), &[0x83, 6, 0x41, 0, 1], power_source(0)),
        (power_source(5), &[0xc1, 6, 1], POWER_SOURCES),
    ];
    for (path, payload, elsewhere) in cases {
        let refused = Err(MalformedTlv::Elsewhere(elsewhere));
        assert_eq!(read(path, payload), refused, "{path} {payload:?}");
    }
}

#[test]
fn an_entry_among_those_of_another_kind_is_refused() {
    let cases: [(Path, &[u8]); 5] = [
        // A resource instance without resource.
        (Path::instance(3, 0), &[0x41, 0, 1]),
        (Path::object(3), &[3, 0, 0x41, 0, 1]),
        // An instance in an instance.
        (Path::object(3), &[2, 0, 0, 0]),
        // Resources in a resource.
        (POWER_SOURCES, &[0x83, 6, 0xc1, 0, 1]),
        (POWER_SOURCES, &[0x82, 6, 0x80, 0]),
    ];
    for (path, payload) in cases {
        assert_eq!(
            read(path, payload),
            Err(MalformedTlv::Misplaced),
            "{path} {payload:?}"
        );
    }
}

#[test]
fn an_entry_longer_than_its_parent_is_refused() {
    let cases: [(Path, &[u8]); 3] = [
        (Path::instance(3, 0), &[0xc2, 9, 100]),
        (Path::object(3), &[3, 0, 0xc2, 9, 100]),
        (Path::instance(3, 0), &[0x83, 6, 0x42, 0, 1, 0xc1, 9, 100]),
    ];
    for (path, payload) in cases {
        assert_eq!(
            read(path, payload),
            Err(MalformedTlv::CutOff),
            "{path} {payload:?}"
        );
    }
}

#[test]
fn a_resource_with_one_value_and_with_several_is_refused() {
    let payload = [0xc1, 6, 1, 0x83, 6, 0x41, 0, 1];
    let refused = Err(MalformedTlv::Ambiguous(POWER_SOURCES));
    assert_eq!(read(Path::instance(3, 0), &payload), refused);
}

#[test]
fn a_value_of_another_type_is_named() {
    let refused = Err(MalformedTlv::Value {
        path: power_source(5),
        data_type: DataType::Integer,
    });
    assert_eq!(read(Path::instance(3, 0), &[0x82, 6, 0x40, 5]), refused);
}

#[test]
fn of_repeated_values_the_last_counts() {
    let payload = [0xc1, 1, 60, 0xc1, 1, 120];
    let last = reading([(LIFETIME, Value::Integer(120))]);
    assert_eq!(read(Path::instance(1, 0), &payload), Ok(last));
}

#[test]
fn a_value_of_unknown_type_is_bytes() {
    let path = Path::resource(42_000, 0, 1);
    let bytes = reading([(path, Value::Opaque(b"text".to_vec()))]);
    assert_eq!(read(path, b"\xc4\x01text"), Ok(bytes));
}

#[test]
fn more_values_than_allowed_are_refused() {
    let values = |count: usize| [0x41, 0, 1].repeat(count);
    let last = reading([(power_source(0), Value::Integer(1))]);
    assert_eq!(read(POWER_SOURCES, &values(VALUES_MAX)), Ok(last));
    assert_eq!(
        read(POWER_SOURCES, &values(VALUES_MAX + 1)),
        Err(MalformedTlv::TooMany)
    );
}

#[test]
fn values_are_written_below_the_level_of_the_path() {
    let values = reading([
        (LIFETIME, Value::Integer(300)),
        (power_source(0), Value::Integer(1)),
        (power_source(5), Value::Integer(7)),
        (Path::resource(3, 0, 9), Value::Integer(100)),
        (Path::resource(3, 1, 9), Value::Integer(50)),
    ]);
    let cases: [(Path, &[u8]); 6] = [
        (power_source(5), &[0x41, 5, 7]),
        (POWER_SOURCES, &[0x86, 6, 0x41, 0, 1, 0x41, 5, 7]),
        (LIFETIME, &[0xc2, 1, 1, 0x2c]),
        (
            Path::instance(3, 0),
            &[0x86, 6, 0x41, 0, 1, 0x41, 5, 7, 0xc1, 9, 100],
        ),
        (
            Path::object(3),
            &[
                8, 0, 11, 0x86, 6, 0x41, 0, 1, 0x41, 5, 7, 0xc1, 9, 100, 3, 1, 0xc1, 9, 50,
            ],
        ),
        (Path::instance(5, 0), &[]),
    ];
    for (path, payload) in cases {
        assert_eq!(encode(path, &values), payload, "{path}");
    }
}

#[test]
fn values_without_a_resource_are_not_written() {
    let values = reading([
        (Path::object(3), Value::Integer(1)),
        (Path::instance(3, 0), Value::Integer(1)),
        (Path::resource(3, 0, 9), Value::Integer(100)),
    ]);
    assert_eq!(encode(Path::object(3), &values), [3, 0, 0xc1, 9, 100]);
    assert_eq!(encode(Path::instance(3, 0), &values), [0xc1, 9, 100]);
}

fn power_source(instance: u16) -> Path {
    Path::resource_instance(3, 0, 6, instance)
}

fn reading<const N: usize>(values: [(Path, Value); N]) -> Reading {
    Reading::from(values)
}

fn read(path: Path, payload: &[u8]) -> Result<Reading, MalformedTlv> {
    decode(path, payload, &type_of)
}

fn type_of(path: Path) -> Option<DataType> {
    let resource = path.resource_id()?;
    model::resource(path.object_id(), Version::new(1, 1), resource)?.data_type()
}

/// A model that knows how often objects may be present, and nothing else.
struct Present(Instances);

impl Model for Present {
    fn type_of(&self, _: Path) -> Option<DataType> {
        None
    }

    fn instances_of(&self, _: u16) -> Option<Instances> {
        Some(self.0)
    }
}
