//! Which samples does a payload of named values have? (LwM2M Core 1.1 sections 7.4.4 to 7.4.6)
//!
//! The rules of every such format: a name is a resource or one of its instances, is within the
//! requested path, and has a value of its type.

use thiserror::Error;

use super::cbor::reader::UnreadableCbor;
use super::scalar::Scalar;
use super::{Measured, Model, SAMPLES_MAX, Sample, Scope};
use crate::lwm2m::path::Path;
use crate::lwm2m::value::DataType;

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
    /// There are more samples than allowed.
    #[error("it has more than {SAMPLES_MAX} samples")]
    TooMany,
}

impl From<UnreadableCbor> for MalformedSamples {
    fn from(_: UnreadableCbor) -> Self {
        Self::Cbor
    }
}

/// Collects the samples of one payload.
pub(super) struct Samples<'a> {
    scope: Scope,
    model: &'a dyn Model,
    found: Vec<Sample>,
}

impl<'a> Samples<'a> {
    /// Starts without samples.
    pub(super) fn new(scope: Scope, model: &'a dyn Model) -> Self {
        Self {
            scope,
            model,
            found: Vec::new(),
        }
    }

    /// Adds the value of a resource or a resource instance.
    pub(super) fn add(
        &mut self,
        path: Path,
        scalar: Scalar,
        measured: Option<Measured>,
    ) -> Result<(), MalformedSamples> {
        if self.found.len() >= SAMPLES_MAX {
            return Err(MalformedSamples::TooMany);
        }
        if !self.scope.contains(path) {
            return Err(MalformedSamples::Elsewhere(path));
        }
        let data_type = self.model.type_of(path);
        let unfit = || match data_type {
            Some(data_type) => MalformedSamples::Value { path, data_type },
            None => MalformedSamples::NoType(path),
        };
        let value = scalar.into_value(data_type).ok_or_else(unfit)?;
        self.found.push(Sample {
            path,
            value,
            measured,
        });
        Ok(())
    }

    /// Returns the samples in the order they were added.
    pub(super) fn finish(self) -> Result<Vec<Sample>, MalformedSamples> {
        let mut paths: Vec<Path> = self.found.iter().map(|sample| sample.path).collect();
        paths.sort_unstable();
        paths.dedup();
        match given_both_ways(paths.iter()) {
            Some(resource) => Err(MalformedSamples::Ambiguous(resource)),
            None => Ok(self.found),
        }
    }
}

/// Returns a resource that occurs both as one value and as several; the paths are sorted and
/// unique.
pub(super) fn given_both_ways<'a>(paths: impl Iterator<Item = &'a Path> + Clone) -> Option<Path> {
    // In sorted order, a resource is right before its instances.
    let mut pairs = paths.clone().zip(paths.skip(1));
    let found = pairs.find(|(one, next)| one.contains(**next));
    found.map(|(resource, _)| *resource)
}
