//! Which samples does a SenML pack have, and which pack encodes these values? (RFC 8428 section 4,
//! LwM2M Core 1.1 sections 7.4.5 and 7.4.6)
//!
//! A pack is a list of records. The base fields of a record (name, time, value) apply to it and to
//! all that follow. The bytes are JSON or CBOR; the meaning is the same.

mod cbor;
mod json;
mod record;

#[cfg(test)]
mod tests;

use self::record::SenmlRecord;
use super::samples::{MalformedSamples, ReadSamples, Samples};
use super::scalar::{Number, Scalar};
use super::{Measured, Model, Reading, Scope, Unencodable};
use crate::coap::content::ContentFormat;
use crate::lwm2m::path::Path;
use crate::lwm2m::value::Value;

/// A time from here on is absolute, below it is relative (RFC 8428 section 4.5.3).
const ABSOLUTE_FROM_S: i128 = 1 << 28;

/// The end of the year 9999: later times are outside the range of the calendar.
const TIME_MAX_MS: i64 = 253_402_300_799_999;

/// The name of everything that a device has.
const ROOT: &str = "/";

/// The longest path: four numbers of five digits.
const NAME_LENGTH_MAX: usize = 24;

/// The base fields of earlier records, which apply to later ones.
#[derive(Default)]
struct Base {
    name: String,
    time: Option<Number>,
    value: Option<Number>,
}

/// Converts the records of a pack to samples, one after the other.
struct Pack<'a> {
    base: Base,
    samples: Samples<'a>,
}

/// Converts the records of a pack to a list of paths, for a composite read.
#[derive(Default)]
struct PathList {
    base: Base,
    paths: Vec<Path>,
    /// Whether the list names everything that the device has.
    has_root: bool,
}

/// One record to write.
struct Entry<'v> {
    base: Option<String>,
    name: Option<String>,
    value: Option<&'v Value>,
}

/// Consumes the records of a pack.
trait Take {
    /// Consumes the next record.
    fn take(&mut self, record: SenmlRecord) -> Result<(), MalformedSamples>;
}

impl<'a> Pack<'a> {
    /// Starts without records.
    fn new(scope: Scope, model: &'a dyn Model) -> Self {
        Self {
            base: Base::default(),
            samples: Samples::new(scope, model),
        }
    }
}

impl Take for Pack<'_> {
    fn take(&mut self, record: SenmlRecord) -> Result<(), MalformedSamples> {
        self.base.heed(&record)?;
        // Strictly each record has a value (RFC 8428 section 4.2). Some devices begin a pack with a
        // record that has only base fields.
        if record.is_base_alone() {
            return Ok(());
        }
        let path = self.base.path_of(&record);
        match path.and_then(|path| Ok((path, self.base.value_of(record)?))) {
            Ok((path, (value, measured))) => self.samples.add(path, value, measured),
            Err(reason) => self.samples.add_unreadable(path.ok(), reason),
        }
    }
}

impl Take for PathList {
    fn take(&mut self, record: SenmlRecord) -> Result<(), MalformedSamples> {
        if self.paths.len() >= super::SAMPLES_MAX {
            return Err(MalformedSamples::TooMany);
        }
        if let Some(fault) = record.fault {
            return Err(fault);
        }
        if record.value.is_some() {
            return Err(MalformedSamples::Field(record.number));
        }
        self.base.heed(&record)?;
        if self.base.is_root(&record) {
            self.has_root = true;
        } else {
            let path = self.base.name_of(&record)?;
            self.paths.push(path);
        }
        Ok(())
    }
}

impl PathList {
    /// The paths; none if everything is named.
    fn finish(self) -> Vec<Path> {
        match self.has_root {
            true => Vec::new(),
            false => self.paths,
        }
    }
}

impl Base {
    /// Applies the base fields of the record.
    fn heed(&mut self, record: &SenmlRecord) -> Result<(), MalformedSamples> {
        if let Some(name) = &record.base_name {
            if name.len() > NAME_LENGTH_MAX {
                return Err(MalformedSamples::Name(record.number));
            }
            self.name.clone_from(name);
        }
        self.time = record.base_time.or(self.time);
        self.value = record.base_value.or(self.value);
        Ok(())
    }

    /// Returns the resource or the resource instance that a record with a value names.
    fn path_of(&self, record: &SenmlRecord) -> Result<Path, MalformedSamples> {
        let path = self.name_of(record)?;
        let unfit = MalformedSamples::Name(record.number);
        path.to_resource().map(|_| path).ok_or(unfit)
    }

    /// Returns the value of a record and when it was measured.
    fn value_of(
        &self,
        record: SenmlRecord,
    ) -> Result<(Scalar, Option<Measured>), MalformedSamples> {
        if let Some(fault) = record.fault {
            return Err(fault);
        }
        let number = record.number;
        let measured = self.measured(&record)?;
        let value = record.value.ok_or(MalformedSamples::NoValue(number))?;
        let value = self.offset(value).ok_or(MalformedSamples::Field(number))?;
        Ok((value, measured))
    }

    /// Returns whether a record names everything that the device has.
    fn is_root(&self, record: &SenmlRecord) -> bool {
        let name = record.name.as_deref().unwrap_or_default();
        !record.is_misnamed && (&*self.name, name) == ("", ROOT)
            || (&*self.name, name) == (ROOT, "")
    }

    /// Returns the path that a record names.
    fn name_of(&self, record: &SenmlRecord) -> Result<Path, MalformedSamples> {
        let unfit = MalformedSamples::Name(record.number);
        if record.is_misnamed {
            return Err(record.fault.unwrap_or(unfit));
        }
        match &record.name {
            None => Path::parse(&self.name).map_err(|_| unfit),
            Some(name) if name.len() > NAME_LENGTH_MAX => Err(unfit),
            Some(name) => Path::parse(&format!("{}{name}", self.name)).map_err(|_| unfit),
        }
    }

    /// Returns when the record's value was measured. If only one of the two times is there, the
    /// other counts as zero; without both, the time is unknown.
    fn measured(&self, record: &SenmlRecord) -> Result<Option<Measured>, MalformedSamples> {
        let times: Vec<Number> = self.time.into_iter().chain(record.time).collect();
        if times.is_empty() {
            return Ok(None);
        }
        let billionths = times.into_iter().map(Number::to_billionths);
        let add = |sum: i128, next: Option<i128>| sum.checked_add(next?);
        let sum_ns = billionths.into_iter().try_fold(0, add);
        let time = sum_ns.and_then(measured_at);
        time.map(Some).ok_or(MalformedSamples::Time(record.number))
    }

    /// Adds the base value to a number.
    fn offset(&self, value: Scalar) -> Option<Scalar> {
        match (value, self.value) {
            (Scalar::Number(number), Some(base)) => number.plus(base).map(Scalar::Number),
            (value, _) => Some(value),
        }
    }
}

pub(super) fn measured_at(sum_ns: i128) -> Option<Measured> {
    let nearest_ms = sum_ns.checked_add(500_000)?.div_euclid(1_000_000);
    let time_ms = i64::try_from(nearest_ms).ok()?;
    if time_ms.checked_abs()? > TIME_MAX_MS {
        return None;
    }
    if sum_ns < ABSOLUTE_FROM_S * 1_000_000_000 {
        Some(Measured::Relative(time_ms))
    } else {
        Some(Measured::Absolute(time_ms))
    }
}

/// Reads the samples of a pack in JSON.
pub(super) fn decode_json(
    scope: Scope,
    payload: &[u8],
    model: &dyn Model,
) -> Result<ReadSamples, MalformedSamples> {
    let mut pack = Pack::new(scope, model);
    json::decode(payload, &mut pack)?;
    Ok(pack.samples.finish())
}

/// Reads the samples of a pack in CBOR.
pub(super) fn decode_cbor(
    scope: Scope,
    payload: &[u8],
    model: &dyn Model,
) -> Result<ReadSamples, MalformedSamples> {
    let mut pack = Pack::new(scope, model);
    cbor::decode(payload, &mut pack)?;
    Ok(pack.samples.finish())
}

/// Reads the paths of a list in JSON.
pub(super) fn decode_paths_json(payload: &[u8]) -> Result<Vec<Path>, MalformedSamples> {
    let mut list = PathList::default();
    json::decode(payload, &mut list)?;
    Ok(list.finish())
}

/// Reads the paths of a list in CBOR.
pub(super) fn decode_paths_cbor(payload: &[u8]) -> Result<Vec<Path>, MalformedSamples> {
    let mut list = PathList::default();
    cbor::decode(payload, &mut list)?;
    Ok(list.finish())
}

/// Writes the values at and below a path, or all of them, as a pack in JSON.
pub(super) fn encode_json(
    format: ContentFormat,
    path: Option<Path>,
    values: &Reading,
) -> Result<Vec<u8>, Unencodable> {
    // JSON cannot represent NaN and infinity.
    let is_unfit = |value: &Value| matches!(value, Value::Float(it) if !it.is_finite());
    let within = written(path, values);
    if let Some((path, _)) = within.iter().find(|(_, value)| is_unfit(value)) {
        let path = *path;
        return Err(Unencodable::Value { format, path });
    }
    Ok(json::encode(&entries(path, &within)))
}

/// Writes the values at and below a path, or all of them, as a pack in CBOR.
pub(super) fn encode_cbor(path: Option<Path>, values: &Reading) -> Vec<u8> {
    cbor::encode(&entries(path, &written(path, values)))
}

/// Writes a list of paths in JSON.
pub(super) fn encode_paths_json(paths: &[Path]) -> Vec<u8> {
    json::encode(&entries_of_paths(paths))
}

/// Writes a list of paths in CBOR.
pub(super) fn encode_paths_cbor(paths: &[Path]) -> Vec<u8> {
    cbor::encode(&entries_of_paths(paths))
}

/// Returns records that have a name and nothing else. Without a path the name is that of the root.
fn entries_of_paths(paths: &[Path]) -> Vec<Entry<'static>> {
    let entry = |name: String| Entry {
        base: None,
        name: Some(name),
        value: None,
    };
    match paths {
        [] => vec![entry(ROOT.to_owned())],
        paths => paths.iter().map(|path| entry(path.to_string())).collect(),
    }
}

/// Returns the values at and below a path, or all of them; other values are left out.
fn written(path: Option<Path>, values: &Reading) -> Vec<(Path, &Value)> {
    let within = values
        .iter()
        .filter(|(at, _)| path.is_none_or(|path| path.contains(**at)))
        .filter(|(at, _)| at.to_resource().is_some())
        .map(|(at, value)| (*at, value));
    within.collect()
}

/// Returns the records of values.
fn entries<'v>(path: Option<Path>, values: &[(Path, &'v Value)]) -> Vec<Entry<'v>> {
    with_base(path.or_else(|| above(values)), values)
}

/// The first record has the common prefix of all names; a single record has its whole name there.
fn with_base<'v>(base: Option<Path>, values: &[(Path, &'v Value)]) -> Vec<Entry<'v>> {
    if let [(path, value)] = values {
        let only = Entry {
            base: Some(path.to_string()),
            name: None,
            value: Some(value),
        };
        return vec![only];
    }
    let mut base_name = base.map(|base| format!("{base}/"));
    let entry = |(path, value): &(Path, &'v Value)| Entry {
        base: base_name.take(),
        name: Some(name_below(base, *path)),
        value: Some(value),
    };
    values.iter().map(entry).collect()
}

/// Returns the part of a path after the base and a slash.
fn name_below(base: Option<Path>, path: Path) -> String {
    let Some(base) = base else {
        return path.to_string();
    };
    let below = path.segments().skip(base.segments().len());
    let names: Vec<String> = below.map(|segment| segment.to_string()).collect();
    names.join("/")
}

/// Returns the deepest path that all values are below, if there is one: because they are sorted,
/// the common part of the first and the last.
fn above(values: &[(Path, &Value)]) -> Option<Path> {
    let (first, _) = values.first()?;
    let (last, _) = values.last()?;
    let pairs = first.segments().zip(last.segments());
    let mut shared = pairs.take_while(|(one, other)| one == other);
    let (object, _) = shared.next()?;
    shared.try_fold(Path::object(object), |path, (id, _)| path.child(id))
}
