//! The readings of objects that properties of payloads use.

use std::collections::BTreeMap;

use proptest::collection::btree_map;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::Index;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::Reading;
use protocol::lwm2m::value::Value;

use crate::values::values;

/// A path, and values at or below it as a device could have them.
pub(crate) fn readings() -> impl Strategy<Value = (Path, Reading)> {
    let resources = btree_map((0..3_u16, numbers()), resources(), 0..6);
    (numbers(), resources, any::<Index>(), 0..4_usize).prop_map(
        |(object, resources, chosen, level)| {
            let mut all = Reading::new();
            for ((instance, id), values) in resources {
                let path = Path::resource(object, instance, id);
                all.extend(values.into_iter().map(|(below, value)| {
                    let at = below.and_then(|below| path.child(below));
                    (at.unwrap_or(path), value)
                }));
            }
            let paths: Vec<Path> = all.keys().copied().collect();
            let path = match paths.is_empty() {
                true => Path::object(object),
                false => above(*chosen.get(&paths), level),
            };
            all.retain(|at, _| path.contains(*at));
            (path, all)
        },
    )
}

/// Numbers of objects, instances and resources, mostly those at the edges of their encodings.
pub(crate) fn numbers() -> impl Strategy<Value = u16> {
    prop_oneof![
        0..4_u16,
        20..26_u16,
        254..258_u16,
        Just(65535),
        any::<u16>()
    ]
}

/// Bytes with one byte changed, and perhaps the end cut off.
pub(crate) fn spoilt(mut bytes: Vec<u8>, (place, end, byte): (Index, Index, u8)) -> Vec<u8> {
    if !bytes.is_empty() {
        let place = place.index(bytes.len());
        bytes[place] = byte;
        bytes.truncate(end.index(bytes.len()) + 1);
    }
    bytes
}

/// The ancestor of a path at a level, or the path itself.
fn above(path: Path, level: usize) -> Path {
    let below = path.segments().skip(1).take(level);
    let deeper = |at: Path, id| at.child(id).expect("it is no deeper than the path");
    below.fold(Path::object(path.object_id()), deeper)
}

/// The values of one resource: a single value, or one for each of its instances.
fn resources() -> impl Strategy<Value = BTreeMap<Option<u16>, Value>> {
    let single = values().prop_map(|value| BTreeMap::from([(None, value)]));
    let multiple = btree_map(numbers().prop_map(Some), values(), 1..4);
    prop_oneof![single, multiple]
}
