//! How is a customer's definition of an object read? OMA XML, in the form of the files of the OMA
//! registry (LwM2M Core 1.1 appendix D.1, LWM2M.xsd).
//!
//! A definition is read whole or not at all, and all its faults are reported at once. Nothing
//! outside of it is used: no document type, no entity, no stylesheet, no schema.

mod names;
mod reading;

use std::fmt;

use super::{Instances, Name, Object, Resource};
use crate::lwm2m::version::Version;

/// Bounds the XML of one definition: several times the longest file of the registry.
pub const BYTES_MAX: usize = 262_144;

/// Bounds the resources of one object: several times those of the largest one in the registry.
pub const RESOURCES_MAX: usize = 1_000;

/// A definition of one version of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    id: u16,
    version: Version,
    name: Name,
    instances: Instances,
    /// By number.
    resources: Box<[Resource]>,
    /// All names end to end.
    names: Box<str>,
}

/// One fault of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionFault {
    /// The kind of fault.
    pub kind: DefinitionFaultKind,
    /// The element with the fault; empty if it is no single one.
    pub element: String,
    /// The line, from 1.
    pub line: u32,
    /// The character in the line, from 1.
    pub column: u32,
    /// What is wrong with it.
    pub why: String,
}

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinitionFaultKind {
    /// It is not XML, or XML of a kind that is not supported.
    NotXml,
    /// An element is missing.
    Missing,
    /// An element occurs twice.
    Repeated,
    /// There is no such element.
    Unknown,
    /// The text of an element is not allowed.
    Invalid,
    /// There is too much of something.
    TooMuch,
}

/// Reads a definition.
pub fn parse(xml: &[u8]) -> Result<Definition, Vec<DefinitionFault>> {
    reading::read(xml)
}

impl Definition {
    /// Returns the defined object.
    pub fn object(&self) -> Object<'_> {
        Object {
            id: self.id,
            version: self.version,
            name: self.name,
            instances: self.instances,
            resources: &self.resources,
            names: &self.names,
        }
    }
}

impl fmt::Display for DefinitionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line, column, why, ..
        } = self;
        write!(f, "line {line}, column {column}: {why}")
    }
}
