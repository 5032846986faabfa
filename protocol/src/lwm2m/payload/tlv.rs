//! How are the values of an object, an instance or a resource encoded together? (LwM2M Core 1.1
//! section 7.4.3, application/vnd.oma.lwm2m+tlv)
//!
//! An entry holds a value or further entries, three levels at most:
//!
//! ```text
//! object instance > multiple resource > resource instance
//!                 > resource
//! ```
//!
//! Entries are relative to the requested path, and devices differ in which levels they omit. Each
//! level is read with and without those above it, as long as it is within the path.

mod entry;
mod value;

#[cfg(test)]
mod tests;

use thiserror::Error;

use self::entry::{TlvEntry, TlvKind, entries};
use super::samples::given_both_ways;
use super::{Model, Reading};
use crate::lwm2m::model::Instances;
use crate::lwm2m::path::{Level, Path};
use crate::lwm2m::value::{DataType, Value};

/// Bounds the values of one payload: several times what a real device sends at once, low enough
/// that storing all of them takes no longer than a commit, and that a payload of empty entries, two
/// bytes each, does not grow to many times its size. A longer one is refused.
pub const VALUES_MAX: usize = 512;

/// Why bytes are not valid TLV for the requested path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MalformedTlv {
    /// An entry exceeds the end of its parent.
    #[error("an entry is cut off")]
    CutOff,
    /// An entry is in a place where its kind is not allowed.
    #[error("an entry has an unexpected type")]
    Misplaced,
    /// An entry is at a path that was not requested.
    #[error("it contains {0}, which was not requested")]
    Elsewhere(Path),
    /// A resource occurs both as one value and as several.
    #[error("it contains {0} both as a single and as a multiple resource")]
    Ambiguous(Path),
    /// The bytes of a value are not of its type.
    #[error("the value of {path} is not of type {data_type}")]
    Value {
        /// The path of the value.
        path: Path,
        /// The expected type.
        data_type: DataType,
    },
    /// There are more values than allowed.
    #[error("it has more than {VALUES_MAX} values")]
    TooMany,
}

/// Reads the values at and below a path; of repeated ones the last counts.
///
/// A value of unknown type is bytes: a number often looks like text. An object instance or a
/// multiple resource may be empty, and adds nothing.
pub fn decode(path: Path, payload: &[u8], model: &dyn Model) -> Result<Reading, MalformedTlv> {
    let mut decoder = Decoder {
        requested: path,
        model,
        reading: Reading::new(),
        values_left: VALUES_MAX,
    };
    for entry in entries(payload) {
        decoder.read_outermost(entry?)?;
    }
    decoder.finish()
}

/// Writes the values at and below a path for a request to that path; values at other paths, or that
/// belong to no resource, are left out.
///
/// # Panics
///
/// If an entry is longer than 16 MiB.
pub fn encode(path: Path, values: &Reading) -> Vec<u8> {
    let within: Vec<(Path, &Value)> = values
        .iter()
        .filter(|(at, _)| path.contains(**at) && at.to_resource().is_some())
        .map(|(at, value)| (*at, value))
        .collect();
    let mut out = Vec::new();
    match path.level() {
        Level::Object => write_instances(&within, &mut out),
        Level::Instance | Level::Resource => write_resources(&within, &mut out),
        Level::ResourceInstance => write_values(TlvKind::ResourceInstance, &within, &mut out),
    }
    out
}

struct Decoder<'a> {
    requested: Path,
    model: &'a dyn Model,
    reading: Reading,
    values_left: usize,
}

impl Decoder<'_> {
    fn read_outermost(&mut self, entry: TlvEntry<'_>) -> Result<(), MalformedTlv> {
        match entry.kind {
            TlvKind::ObjectInstance => {
                let instance = Path::instance(self.requested.object_id(), entry.id);
                self.check_way(instance)?;
                for inner in entries(entry.value) {
                    self.read_resource(instance, inner?)?;
                }
                Ok(())
            }
            TlvKind::MultipleResource | TlvKind::Resource => {
                self.read_resource(self.implied_instance()?, entry)
            }
            TlvKind::ResourceInstance => {
                let resource = self
                    .requested
                    .to_resource()
                    .ok_or(MalformedTlv::Misplaced)?;
                self.read_value(resource, entry)
            }
        }
    }

    fn read_resource(&mut self, instance: Path, entry: TlvEntry<'_>) -> Result<(), MalformedTlv> {
        match entry.kind {
            TlvKind::Resource => self.read_value(instance, entry),
            TlvKind::MultipleResource => {
                let resource = child(instance, entry.id)?;
                self.check_way(resource)?;
                for inner in entries(entry.value) {
                    let inner = inner?;
                    if inner.kind != TlvKind::ResourceInstance {
                        return Err(MalformedTlv::Misplaced);
                    }
                    self.read_value(resource, inner)?;
                }
                Ok(())
            }
            TlvKind::ObjectInstance | TlvKind::ResourceInstance => Err(MalformedTlv::Misplaced),
        }
    }

    fn read_value(&mut self, parent: Path, entry: TlvEntry<'_>) -> Result<(), MalformedTlv> {
        let path = child(parent, entry.id)?;
        if !self.requested.contains(path) {
            return Err(MalformedTlv::Elsewhere(path));
        }
        self.values_left = self
            .values_left
            .checked_sub(1)
            .ok_or(MalformedTlv::TooMany)?;
        let data_type = self.model.type_of(path).unwrap_or(DataType::Opaque);
        let value =
            value::decode(entry.value, data_type).ok_or(MalformedTlv::Value { path, data_type })?;
        self.reading.insert(path, value);
        Ok(())
    }

    /// Checks that an entry with child entries is on the way to the requested path.
    fn check_way(&self, path: Path) -> Result<(), MalformedTlv> {
        if self.requested.contains(path) || path.contains(self.requested) {
            Ok(())
        } else {
            Err(MalformedTlv::Elsewhere(path))
        }
    }

    /// Returns the instance of resources without one. Some devices omit it when a whole object is
    /// read; that is unambiguous only if the object has one instance at most.
    fn implied_instance(&self) -> Result<Path, MalformedTlv> {
        let object = self.requested.object_id();
        let instances = self.model.instances_of(object);
        match self.requested.instance_id() {
            Some(instance) => Ok(Path::instance(object, instance)),
            None if instances.is_none_or(|known| known == Instances::Single) => {
                Ok(Path::instance(object, 0))
            }
            None => Err(MalformedTlv::Misplaced),
        }
    }

    fn finish(self) -> Result<Reading, MalformedTlv> {
        match given_both_ways(self.reading.keys()) {
            Some(resource) => Err(MalformedTlv::Ambiguous(resource)),
            None => Ok(self.reading),
        }
    }
}

fn child(parent: Path, id: u16) -> Result<Path, MalformedTlv> {
    parent.child(id).ok_or(MalformedTlv::Misplaced)
}

fn write_instances(values: &[(Path, &Value)], out: &mut Vec<u8>) {
    for of_one in values.chunk_by(|(one, _), (next, _)| one.instance_id() == next.instance_id()) {
        let mut resources = Vec::new();
        write_resources(of_one, &mut resources);
        let id = of_one.first().and_then(|(path, _)| path.instance_id());
        write(TlvKind::ObjectInstance, id, &resources, out);
    }
}

fn write_resources(values: &[(Path, &Value)], out: &mut Vec<u8>) {
    for of_one in values.chunk_by(|(one, _), (next, _)| one.to_resource() == next.to_resource()) {
        let is_single = |(path, _): &(Path, &Value)| path.is_resource();
        let (single, multiple) = of_one.split_at(of_one.partition_point(is_single));
        write_values(TlvKind::Resource, single, out);
        if let Some((first, _)) = multiple.first() {
            let mut instances = Vec::new();
            write_values(TlvKind::ResourceInstance, multiple, &mut instances);
            write(
                TlvKind::MultipleResource,
                first.resource_id(),
                &instances,
                out,
            );
        }
    }
}

fn write_values(kind: TlvKind, values: &[(Path, &Value)], out: &mut Vec<u8>) {
    for (path, value) in values {
        write(kind, path.segments().last(), &value::encode(value), out);
    }
}

fn write(kind: TlvKind, id: Option<u16>, value: &[u8], out: &mut Vec<u8>) {
    let id = id.expect("a value lies in a resource, and so in an instance");
    TlvEntry { kind, id, value }.write(out);
}
