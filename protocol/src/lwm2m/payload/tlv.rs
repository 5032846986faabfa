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
    /// A value is NaN or infinite, as a sensor reports that it has none.
    #[error("the value of {0} is not a finite number")]
    NotFinite(Path),
    /// There are more values than allowed.
    #[error("it has more than {VALUES_MAX} values")]
    TooMany,
}

impl MalformedTlv {
    /// Returns the value that cannot be read, if the others can.
    pub(super) fn path(self) -> Option<Path> {
        match self {
            Self::Elsewhere(path)
            | Self::Ambiguous(path)
            | Self::Value { path, .. }
            | Self::NotFinite(path) => Some(path),
            Self::CutOff | Self::Misplaced | Self::TooMany => None,
        }
    }
}

/// Reads the values at and below a path, all of which must be readable; of repeated ones the last
/// counts.
pub fn decode(path: Path, payload: &[u8], model: &dyn Model) -> Result<Reading, MalformedTlv> {
    let (reading, unreadable) = decode_readable(path, payload, model)?;
    match unreadable.first() {
        Some(reason) => Err(*reason),
        None => Ok(reading),
    }
}

/// Reads the values at and below a path that can be read, and the reasons why others cannot; of
/// repeated ones the last counts.
///
/// A value of unknown type is bytes: a number often looks like text. An object instance or a
/// multiple resource may be empty, and adds nothing.
pub(super) fn decode_readable(
    path: Path,
    payload: &[u8],
    model: &dyn Model,
) -> Result<(Reading, Vec<MalformedTlv>), MalformedTlv> {
    let mut decoder = Decoder {
        requested: path,
        model,
        reading: Reading::new(),
        unreadable: Vec::new(),
        values_left: VALUES_MAX,
    };
    for entry in entries(payload) {
        decoder.read_outermost(entry?)?;
    }
    Ok(decoder.finish())
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
    unreadable: Vec<MalformedTlv>,
    values_left: usize,
}

impl Decoder<'_> {
    fn read_outermost(&mut self, entry: TlvEntry<'_>) -> Result<(), MalformedTlv> {
        match entry.kind {
            TlvKind::ObjectInstance => {
                let instance = Path::instance(self.requested.object_id(), entry.id);
                if !self.is_on_way(instance) {
                    return self.skip(MalformedTlv::Elsewhere(instance));
                }
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
                if !self.is_on_way(resource) {
                    return self.skip(MalformedTlv::Elsewhere(resource));
                }
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
            return self.skip(MalformedTlv::Elsewhere(path));
        }
        let data_type = self.model.type_of(path).unwrap_or(DataType::Opaque);
        match value::decode(entry.value, data_type) {
            Some(Value::Float(number)) if !number.is_finite() => {
                self.skip(MalformedTlv::NotFinite(path))
            }
            Some(value) => {
                self.count_value()?;
                self.reading.insert(path, value);
                Ok(())
            }
            None => self.skip(MalformedTlv::Value { path, data_type }),
        }
    }

    /// Adds that a value, or an entry with child entries, cannot be read.
    fn skip(&mut self, reason: MalformedTlv) -> Result<(), MalformedTlv> {
        self.count_value()?;
        self.unreadable.push(reason);
        Ok(())
    }

    fn count_value(&mut self) -> Result<(), MalformedTlv> {
        let left = self.values_left.checked_sub(1);
        self.values_left = left.ok_or(MalformedTlv::TooMany)?;
        Ok(())
    }

    /// Whether an entry with child entries is on the way to the requested path.
    fn is_on_way(&self, path: Path) -> bool {
        self.requested.contains(path) || path.contains(self.requested)
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

    /// Returns what was read. A resource that occurs both as one value and as several cannot be
    /// read.
    fn finish(mut self) -> (Reading, Vec<MalformedTlv>) {
        for resource in given_both_ways(self.reading.keys()) {
            self.reading.retain(|path, _| !resource.contains(*path));
            self.unreadable.push(MalformedTlv::Ambiguous(resource));
        }
        (self.reading, self.unreadable)
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
