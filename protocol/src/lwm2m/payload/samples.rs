//! Which samples does a payload of named values have? (LwM2M Core 1.1 sections 7.4.4 to 7.4.6)
//!
//! The rules of every such format: a name is a resource or one of its instances, is within the
//! requested path, and has a value of its type.

use thiserror::Error;

use super::cbor::reader::UnreadableCbor;
use super::scalar::Scalar;
use super::{Measured, Model, SAMPLES_MAX, Sample, Scope};
use crate::lwm2m::path::Path;
use crate::lwm2m::value::{DataType, Value};

/// Why a payload of named values could not be decoded. Records count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MalformedSamples {
    /// The bytes are not JSON, or do not match the format.
    #[error("it is not valid JSON for the format")]
    Json,
    /// The bytes are not CBOR, or do not match the format.
    #[error("it is not valid CBOR for the format")]
    Cbor,
    /// A field has a value of the wrong kind.
    #[error("a field of record {0} has a value of the wrong kind")]
    Field(usize),
    /// A field is given twice.
    #[error("a field of record {0} is given twice")]
    Repeated(usize),
    /// A field that must be understood is unknown.
    #[error("record {0} has an unsupported field that must be understood")]
    NotUnderstood(usize),
    /// The record is of an unsupported version.
    #[error("record {0} has an unsupported version")]
    Version(usize),
    /// A name is not the path of a resource or a resource instance.
    #[error("record {0} does not name a resource")]
    Name(usize),
    /// A record has no value.
    #[error("record {0} has no value")]
    NoValue(usize),
    /// A record has several values.
    #[error("record {0} has several values")]
    SeveralValues(usize),
    /// A time is outside the range of the calendar.
    #[error("the time of record {0} is out of range")]
    Time(usize),
    /// A value is at a path that was not requested.
    #[error("it contains {0}, which was not requested")]
    Elsewhere(Path),
    /// A resource occurs both as one value and as several.
    #[error("it contains {0} both as a single and as a multiple resource")]
    Ambiguous(Path),
    /// A value is not of its type.
    #[error("the value of {path} is not of type {data_type}")]
    Value {
        /// The path of the value.
        path: Path,
        /// The expected type.
        data_type: DataType,
    },
    /// A value has no type of LwM2M, such as an integer of more than 64 bits.
    #[error("the value of {0} has no known type")]
    NoType(Path),
    /// A value is NaN or infinite, as a sensor reports that it has none.
    #[error("the value of {0} is not a finite number")]
    NotFinite(Path),
    /// There are more samples than allowed.
    #[error("it has more than {SAMPLES_MAX} samples")]
    TooMany,
}

impl From<UnreadableCbor> for MalformedSamples {
    fn from(_: UnreadableCbor) -> Self {
        Self::Cbor
    }
}

impl MalformedSamples {
    /// Whether the text of the reason has the path of the value.
    pub(super) fn names_path(self) -> bool {
        match self {
            Self::Elsewhere(_)
            | Self::Ambiguous(_)
            | Self::Value { .. }
            | Self::NoType(_)
            | Self::NotFinite(_) => true,
            Self::Json
            | Self::Cbor
            | Self::Field(_)
            | Self::Repeated(_)
            | Self::NotUnderstood(_)
            | Self::Version(_)
            | Self::Name(_)
            | Self::NoValue(_)
            | Self::SeveralValues(_)
            | Self::Time(_)
            | Self::TooMany => false,
        }
    }
}

/// What was read of one payload.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ReadSamples {
    /// The samples in the order of the payload.
    pub(super) samples: Vec<Sample>,
    /// The values that cannot be read: the path, where it is known, and the reason.
    pub(super) unreadable: Vec<(Option<Path>, MalformedSamples)>,
}

impl ReadSamples {
    /// Returns the samples, or the reason why the first of the others cannot be read.
    #[cfg(test)]
    pub(super) fn whole(self) -> Result<Vec<Sample>, MalformedSamples> {
        match self.unreadable.first() {
            Some((_, reason)) => Err(*reason),
            None => Ok(self.samples),
        }
    }
}

/// Collects the samples of one payload, and the values that cannot be read.
pub(super) struct Samples<'a> {
    scope: Scope,
    model: &'a dyn Model,
    read: ReadSamples,
}

impl<'a> Samples<'a> {
    /// Starts without samples.
    pub(super) fn new(scope: Scope, model: &'a dyn Model) -> Self {
        Self {
            scope,
            model,
            read: ReadSamples {
                samples: Vec::new(),
                unreadable: Vec::new(),
            },
        }
    }

    /// Adds the value of a resource or a resource instance, or that it cannot be read.
    pub(super) fn add(
        &mut self,
        path: Path,
        scalar: Scalar,
        measured: Option<Measured>,
    ) -> Result<(), MalformedSamples> {
        let value = match self.value_of(path, scalar) {
            Ok(value) => value,
            Err(reason) => return self.add_unreadable(Some(path), reason),
        };
        self.check_room()?;
        self.read.samples.push(Sample {
            path,
            value,
            measured,
        });
        Ok(())
    }

    /// Adds that a value cannot be read.
    pub(super) fn add_unreadable(
        &mut self,
        path: Option<Path>,
        reason: MalformedSamples,
    ) -> Result<(), MalformedSamples> {
        self.check_room()?;
        self.read.unreadable.push((path, reason));
        Ok(())
    }

    /// Returns what was added, in that order. The samples of a resource that occurs both as one
    /// value and as several cannot be read.
    pub(super) fn finish(mut self) -> ReadSamples {
        let mut paths: Vec<Path> = self.read.samples.iter().map(|it| it.path).collect();
        paths.sort_unstable();
        paths.dedup();
        for resource in given_both_ways(paths.iter()) {
            self.read.samples.retain(|it| !resource.contains(it.path));
            let reason = MalformedSamples::Ambiguous(resource);
            self.read.unreadable.push((Some(resource), reason));
        }
        self.read
    }

    fn value_of(&self, path: Path, scalar: Scalar) -> Result<Value, MalformedSamples> {
        if !self.scope.contains(path) {
            return Err(MalformedSamples::Elsewhere(path));
        }
        let data_type = self.model.type_of(path);
        match (scalar.into_value(data_type), data_type) {
            (Some(Value::Float(number)), _) if !number.is_finite() => {
                Err(MalformedSamples::NotFinite(path))
            }
            (Some(value), _) => Ok(value),
            (None, Some(data_type)) => Err(MalformedSamples::Value { path, data_type }),
            (None, None) => Err(MalformedSamples::NoType(path)),
        }
    }

    fn check_room(&self) -> Result<(), MalformedSamples> {
        let ReadSamples {
            samples,
            unreadable,
        } = &self.read;
        match samples.len() + unreadable.len() < SAMPLES_MAX {
            true => Ok(()),
            false => Err(MalformedSamples::TooMany),
        }
    }
}

/// Returns the resources that occur both as one value and as several; the paths are sorted and
/// unique.
pub(super) fn given_both_ways<'a>(paths: impl Iterator<Item = &'a Path> + Clone) -> Vec<Path> {
    // In sorted order, a resource is right before its instances.
    let pairs = paths.clone().zip(paths.skip(1));
    let found = pairs.filter(|(one, next)| one.contains(**next));
    found.map(|(resource, _)| *resource).collect()
}
