//! How are values encoded as a tree of CBOR? (LwM2M Core 1.2 section 7.4.7,
//! application/vnd.oma.lwm2m+cbor)
//!
//! A map holds values, or maps of what lies deeper. Its keys are numbers, or several numbers at
//! once, and lead down from the root whatever was asked for:
//!
//! ```text
//! {3: {0: {9: 95, 6: {0: 1, 1: 5}}}}     {[3, 0]: {9: 95, [6, 0]: 1, [6, 1]: 5}}
//! ```

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::cbor::reader::{CborReader, CborShape};
use super::cbor::writer::CborWriter;
use super::samples::{MalformedSamples, ReadSamples, Samples};
use super::scalar::{Number, Scalar};
use super::{Model, Reading, Scope};
use crate::lwm2m::path::{Level, Path};
use crate::lwm2m::value::Value;

/// Bounds the pairs of keys and values of one payload, empty ones included.
const PAIRS_MAX: usize = 4 * super::SAMPLES_MAX;

/// Reads the values of a payload. Each path has one value; an empty map adds nothing.
pub(super) fn decode(
    scope: Scope,
    payload: &[u8],
    model: &dyn Model,
) -> Result<ReadSamples, MalformedSamples> {
    let mut decoder = Decoder {
        reader: CborReader::new(payload),
        samples: Samples::new(scope, model),
        given: BTreeSet::new(),
        pairs: 0,
    };
    decoder.read_map(None)?;
    decoder.reader.finish()?;
    Ok(decoder.samples.finish())
}

/// Writes the values within the scope; values at other paths, or that belong to no resource, are
/// left out.
pub(super) fn encode(scope: Scope, values: &Reading) -> Vec<u8> {
    let within: Vec<(Path, &Value)> = values
        .iter()
        .filter(|(at, _)| scope.contains(**at) && at.to_resource().is_some())
        .map(|(at, value)| (*at, value))
        .collect();
    let mut writer = CborWriter::new();
    write_map(&within, Level::Object, &mut writer);
    writer.finish()
}

/// Writes paths as a list of lists of numbers.
pub(super) fn encode_paths(paths: &[Path]) -> Vec<u8> {
    let mut writer = CborWriter::new();
    writer.array(paths.len());
    for path in paths {
        let segments = path.segments();
        writer.array(segments.len());
        segments.for_each(|segment| writer.integer(segment.into()));
    }
    writer.finish()
}

/// Reads a list of lists of numbers as paths.
pub(super) fn decode_paths(payload: &[u8]) -> Result<Vec<Path>, MalformedSamples> {
    let mut decoder = Decoder {
        reader: CborReader::new(payload),
        samples: Samples::new(Scope::All, &|_| None),
        given: BTreeSet::new(),
        pairs: 0,
    };
    let mut paths = Vec::new();
    let mut remaining = decoder.reader.array()?;
    while decoder.reader.another(&mut remaining)? {
        decoder.pairs += 1;
        if decoder.pairs > super::SAMPLES_MAX {
            return Err(MalformedSamples::TooMany);
        }
        paths.push(decoder.read_key(None)?);
    }
    decoder.reader.finish()?;
    Ok(paths)
}

struct Decoder<'a> {
    reader: CborReader<'a>,
    samples: Samples<'a>,
    given: BTreeSet<Path>,
    /// How many pairs were read, to locate a fault in the payload.
    pairs: usize,
}

impl Decoder<'_> {
    /// Reads a map at a path; without a path it is the map of objects.
    ///
    /// Each level of maps is at least one level of paths, so maps never nest deeper than four.
    fn read_map(&mut self, above: Option<Path>) -> Result<(), MalformedSamples> {
        let mut remaining = self.reader.map()?;
        while self.reader.another(&mut remaining)? {
            self.pairs += 1;
            if self.pairs > PAIRS_MAX {
                return Err(MalformedSamples::TooMany);
            }
            let path = self.read_key(above)?;
            match self.reader.shape()? {
                CborShape::Map => self.read_map(Some(path))?,
                CborShape::Scalar | CborShape::Nothing | CborShape::Array => {
                    self.read_value(path)?;
                }
            }
        }
        Ok(())
    }

    /// Reads one number or several, and returns the path they refer to.
    fn read_key(&mut self, above: Option<Path>) -> Result<Path, MalformedSamples> {
        if self.reader.shape()? != CborShape::Array {
            return self.read_step(above);
        }
        let mut path = above;
        let mut remaining = self.reader.array()?;
        let mut steps = 0;
        while self.reader.another(&mut remaining)? {
            path = Some(self.read_step(path)?);
            steps += 1;
        }
        // A key of no number would not go deeper, so maps could nest without end.
        let leads_on = |_: &Path| steps > 0;
        path.filter(leads_on)
            .ok_or(MalformedSamples::Name(self.pairs))
    }

    fn read_step(&mut self, above: Option<Path>) -> Result<Path, MalformedSamples> {
        let name = MalformedSamples::Name(self.pairs);
        let Scalar::Number(Number::Integer(number)) = self.reader.scalar()? else {
            return Err(name);
        };
        let id = u16::try_from(number).map_err(|_| name)?;
        match above {
            None => Ok(Path::object(id)),
            Some(above) => above.child(id).ok_or(name),
        }
    }

    fn read_value(&mut self, path: Path) -> Result<(), MalformedSamples> {
        let shape = self.reader.shape()?;
        let scalar = self.reader.scalar_or_skip()?;
        let fault = if path.to_resource().is_none() {
            MalformedSamples::Name(self.pairs)
        } else if !self.given.insert(path) {
            MalformedSamples::Repeated(self.pairs)
        } else {
            match (scalar, shape) {
                (Some(scalar), _) => return self.samples.add(path, scalar, None),
                (None, CborShape::Nothing) => MalformedSamples::NoValue(self.pairs),
                (None, CborShape::Array | CborShape::Map | CborShape::Scalar) => {
                    MalformedSamples::Field(self.pairs)
                }
            }
        };
        self.samples.add_unreadable(Some(path), fault)
    }
}

/// Writes a map from the numbers of one level to their values. The values are in the order of the
/// tree, and share their path above that level.
fn write_map(values: &[(Path, &Value)], level: Level, writer: &mut CborWriter) {
    let number = |path: &Path| path.segments().nth(level as usize);
    let groups = || values.chunk_by(|(one, _), (next, _)| number(one) == number(next));
    writer.map(groups().count());
    for group in groups() {
        let (first, value) = group.first().expect("a group has a value");
        let id = number(first).expect("the values lie at this level or deeper");
        writer.integer(id.into());
        match deeper(level) {
            Some(level) if first.level() >= level => write_map(group, level, writer),
            Some(_) | None => writer.tagged_value(value),
        }
    }
}

fn deeper(level: Level) -> Option<Level> {
    match level {
        Level::Object => Some(Level::Instance),
        Level::Instance => Some(Level::Resource),
        Level::Resource => Some(Level::ResourceInstance),
        Level::ResourceInstance => None,
    }
}
