//! Is each device requested in a format it has, and in the next best one when it refuses?

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::{select, subsequence};

use super::{
    COMPOSITE, FOR_ONE, FORMATS, FORMATS_MAX, Formats, PROVEN, SHORTEST, TELLING, TYPED, format_of,
    formats_to_compose, formats_to_read, formats_to_write,
};
use crate::coap::content::ContentFormat;
use crate::lwm2m::model::{self, Object, Resource};
use crate::lwm2m::operation::write_method;
use crate::lwm2m::path::Path;
use crate::lwm2m::value::{DataType, Value};
use crate::lwm2m::version::{EnablerVersion, Version};

const BATTERY_LEVEL: Path = Path::resource(3, 0, 9);
const PACKAGE: Path = Path::resource(5, 0, 0);
const POWER_SOURCES: Path = Path::resource(3, 0, 6);
const PROFILE_NAMES: Path = Path::resource(11, 0, 8);
const UNKNOWN: u16 = 42_000;
const LESHAN: [u16; 5] = [60, 110, 112, 11542, 11543];

const RELEASES: [EnablerVersion; 3] = [
    EnablerVersion::V1_0,
    EnablerVersion::V1_1,
    EnablerVersion::V1_2,
];

#[test]
fn every_format_of_a_list_is_among_all_formats() {
    let plain = [DataType::String, DataType::Opaque].map(format_of);
    let lists = [
        &FOR_ONE[..],
        &PROVEN,
        &SHORTEST,
        &TELLING,
        &TYPED,
        &COMPOSITE,
        &plain,
    ];
    let mut listed = lists.concat();
    assert!(listed.iter().all(|format| FORMATS.contains(format)));
    listed.sort_by_key(|format| format.0);
    listed.dedup();
    assert_eq!(
        listed.len(),
        FORMATS.len(),
        "each is listed, and each is there once"
    );
}

#[test]
fn one_value_is_requested_as_text_or_bytes_whatever_is_announced() {
    for announced in [&[][..], &[11542], &LESHAN, &[112], &[40]] {
        for enabler in RELEASES {
            let first = |path| read(path, announced, enabler).first().copied();
            assert_eq!(first(BATTERY_LEVEL), Some(0));
            assert_eq!(first(Path::resource_instance(3, 0, 6, 0)), Some(0));
            assert_eq!(first(PACKAGE), Some(42));
        }
    }
}

#[test]
fn one_value_of_unknown_type_is_requested_in_announced_formats_with_types() {
    let cases: [(&[u16], &[u16]); 6] = [
        (&[], &[]),
        (&[0, 42, 11542, 1542], &[]),
        (&LESHAN, &[112, 110, 60, 11543]),
        (&[110, 11544, 112], &[11544, 112, 110]),
        (&[60], &[60]),
        (&[1543, 0], &[1543]),
    ];
    for (announced, expected) in cases {
        for path in [
            Path::resource(UNKNOWN, 0, 1),
            Path::resource_instance(UNKNOWN, 0, 1, 2),
            Path::resource(3, 0, 9_999),
        ] {
            let formats = read(path, announced, EnablerVersion::V1_1);
            assert_eq!(formats, expected, "{path} {announced:?}");
        }
    }
}

#[test]
fn one_value_is_requested_next_in_announced_formats_and_then_in_those_of_the_release() {
    let cases: [(EnablerVersion, &[u16], &[u16]); 7] = [
        (EnablerVersion::V1_0, &[], &[0, 11542, 11543]),
        (EnablerVersion::V1_1, &[], &[0, 60, 11542, 112, 110, 11543]),
        (
            EnablerVersion::V1_2,
            &[],
            &[0, 60, 11542, 112, 110, 11544, 11543],
        ),
        (
            EnablerVersion::V1_1,
            &[112, 11544],
            &[0, 112, 11544, 60, 11542, 110, 11543],
        ),
        (
            EnablerVersion::V1_0,
            &[1542, 1541],
            &[0, 1541, 1542, 11542, 11543],
        ),
        (EnablerVersion::V1_0, &[110], &[0, 110, 11542, 11543]),
        (
            EnablerVersion::V1_1,
            &[0, 42, 11542],
            &[0, 11542, 60, 112, 110, 11543],
        ),
    ];
    for (enabler, announced, expected) in cases {
        let formats = read(BATTERY_LEVEL, announced, enabler);
        assert_eq!(formats, expected, "{enabler} {announced:?}");
    }
}

#[test]
fn bytes_are_requested_as_text_if_nothing_else_is_left() {
    let cases: [(EnablerVersion, &[u16], &[u16]); 4] = [
        (EnablerVersion::V1_0, &[], &[42, 11542, 11543, 0]),
        (EnablerVersion::V1_0, &[0], &[42, 0, 11542, 11543]),
        (
            EnablerVersion::V1_1,
            &[0, 112],
            &[42, 112, 0, 60, 11542, 110, 11543],
        ),
        (
            EnablerVersion::V1_2,
            &[],
            &[42, 60, 11542, 112, 110, 11544, 11543, 0],
        ),
    ];
    for (enabler, announced, expected) in cases {
        let formats = read(PACKAGE, announced, enabler);
        assert_eq!(formats, expected, "{enabler} {announced:?}");
    }
}

#[test]
fn several_values_are_requested_as_tlv_if_nothing_is_announced() {
    let cases: [(EnablerVersion, &[u16]); 3] = [
        (EnablerVersion::V1_0, &[11542, 11543]),
        (EnablerVersion::V1_1, &[11542, 112, 110, 11543]),
        (EnablerVersion::V1_2, &[11542, 112, 110, 11544, 11543]),
    ];
    for (enabler, expected) in cases {
        for path in [POWER_SOURCES, Path::instance(3, 0), Path::object(UNKNOWN)] {
            assert_eq!(read(path, &[], enabler), expected, "{path} {enabler}");
        }
    }
}

#[test]
fn several_values_of_known_types_are_requested_in_the_shortest_format_announced() {
    let cases: [(&[u16], &[u16]); 6] = [
        (&LESHAN, &[11542, 112, 110, 11543]),
        (&[110, 112], &[112, 110, 11542, 11543]),
        (&[112, 11542, 11544], &[11544, 11542, 112, 110, 11543]),
        (&[0, 1542], &[1542, 11542, 112, 110, 11543]),
        (&[1543], &[1543, 11542, 112, 110, 11543]),
        (&[0, 40, 65535], &[]),
    ];
    for (announced, expected) in cases {
        for path in [POWER_SOURCES, Path::instance(3, 0), Path::object(3)] {
            let formats = read(path, announced, EnablerVersion::V1_1);
            assert_eq!(formats, expected, "{path} {announced:?}");
        }
    }
}

#[test]
fn several_values_of_unknown_types_are_requested_in_a_format_with_types() {
    let cases: [(&[u16], &[u16]); 3] = [
        (&LESHAN, &[112, 110, 11543, 11542]),
        (&[11542], &[11542, 112, 110, 11543]),
        (
            &[1542, 11542, 11544],
            &[11544, 11542, 1542, 112, 110, 11543],
        ),
    ];
    for (announced, expected) in cases {
        for path in [Path::object(UNKNOWN), Path::instance(UNKNOWN, 0)] {
            let formats = read(path, announced, EnablerVersion::V1_1);
            assert_eq!(formats, expected, "{path} {announced:?}");
        }
    }
}

#[test]
fn a_value_is_written_as_text_or_bytes_first() {
    for enabler in RELEASES {
        for announced in [&[][..], &LESHAN] {
            let number = write(BATTERY_LEVEL, &Value::Integer(1), announced, enabler);
            assert_eq!(number.first(), Some(&0));
            let bytes = write(PACKAGE, &Value::Opaque(vec![]), announced, enabler);
            assert_eq!(bytes.first(), Some(&42));
        }
    }
    let unknown = Path::resource(UNKNOWN, 0, 1);
    let text = Value::String("x".into());
    let written = write(unknown, &text, &[], EnablerVersion::V1_1);
    assert_eq!(written, [0, 60, 11542, 112, 110, 11543]);
}

#[test]
fn a_partial_update_is_written_in_formats_of_lists() {
    let name = Value::String("x".into());
    let write = |announced: &[u16], enabler| write(PROFILE_NAMES, &name, announced, enabler);
    let first = EnablerVersion::V1_0;
    assert_eq!(write(&[], first), [11542, 11543]);
    assert_eq!(write(&[0, 1542], first), [1542, 11542, 11543]);
    assert_eq!(write(&[0], first), [11542, 11543]);
    assert_eq!(write(&[], EnablerVersion::V1_1).first(), Some(&0));
}

#[test]
fn several_paths_are_requested_at_once_if_the_device_can() {
    let cases: [(EnablerVersion, &[u16], &[u16]); 8] = [
        (EnablerVersion::V1_0, &[], &[]),
        (EnablerVersion::V1_0, &[112], &[]),
        (EnablerVersion::V1_1, &[], &[112, 110]),
        (EnablerVersion::V1_2, &[], &[112, 110, 11544]),
        (EnablerVersion::V1_1, &LESHAN, &[112, 110]),
        (EnablerVersion::V1_1, &[110], &[110, 112]),
        (EnablerVersion::V1_2, &[11544], &[11544, 112, 110]),
        (EnablerVersion::V1_1, &[0, 42, 11542], &[]),
    ];
    for (enabler, announced, expected) in cases {
        let formats = numbers(&formats_to_compose(announced, enabler));
        assert_eq!(formats, expected, "{enabler} {announced:?}");
    }
}

#[test]
fn after_the_last_format_and_an_unknown_one_there_is_none() {
    let formats = formats_to_compose(&[], EnablerVersion::V1_1);
    let after = |number| formats.after(ContentFormat(number));
    assert_eq!(after(112), Some(ContentFormat::SENML_JSON));
    assert_eq!(after(110), None);
    assert_eq!(after(0), None);
    assert_eq!(Formats::NONE.first(), None);
    assert_eq!(Formats::NONE.after(ContentFormat::TEXT), None);
}

proptest! {
    #[test]
    fn a_list_is_walked_from_its_first_to_its_last(
        path in paths(),
        announced in announcements(),
        enabler in select(&RELEASES[..]),
    ) {
        let formats = formats_to_read(path, object_of(path), &announced, enabler);
        let mut walked = Vec::new();
        let mut next = formats.first();
        while let Some(format) = next {
            walked.push(format.0);
            next = formats.after(format);
        }
        prop_assert_eq!(&walked, &numbers(&formats));
        prop_assert!(walked.len() <= FORMATS_MAX);
    }

    #[test]
    fn formats_that_were_not_announced_come_after_the_announced_ones(
        path in paths(),
        announced in announcements(),
        enabler in select(&RELEASES[..]),
    ) {
        let formats = read(path, &announced, enabler);
        // Text and bytes of one value need no announcement.
        let several = formats.iter().filter(|number| !matches!(number, 0 | 42));
        let left_out = several.map(|number| !announced.contains(number));
        prop_assert!(announced.is_empty() || left_out.is_sorted());
    }
}

fn paths() -> impl Strategy<Value = Path> {
    select(vec![
        BATTERY_LEVEL,
        PACKAGE,
        POWER_SOURCES,
        Path::instance(3, 0),
        Path::object(UNKNOWN),
        Path::resource(UNKNOWN, 0, 0),
    ])
}

fn announcements() -> impl Strategy<Value = Vec<u16>> {
    let known = vec![
        0, 40, 42, 60, 110, 112, 1541, 1542, 1543, 11542, 11543, 11544,
    ];
    let count = known.len();
    (subsequence(known, 0..=count), vec(any::<u16>(), 0..3))
        .prop_map(|(known, strange)| [known, strange].concat())
}

fn read(path: Path, announced: &[u16], enabler: EnablerVersion) -> Vec<u16> {
    let formats = formats_to_read(path, object_of(path), announced, enabler);
    numbers(&formats)
}

fn write(path: Path, value: &Value, announced: &[u16], enabler: EnablerVersion) -> Vec<u16> {
    let method = write_method(enabler, path, resource_at(path));
    let formats = formats_to_write(method, value, announced, enabler);
    numbers(&formats)
}

fn numbers(formats: &Formats) -> Vec<u16> {
    formats.iter().map(|format| format.0).collect()
}

fn object_of(path: Path) -> Option<Object<'static>> {
    model::object(path.object_id(), Version::new(1, 1)).copied()
}

fn resource_at(path: Path) -> Option<&'static Resource> {
    model::resource(path.object_id(), Version::new(1, 1), path.resource_id()?)
}
