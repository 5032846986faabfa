//! How does somebody else define an object? OMA XML, as the files of the OMA registry are written
//! (LwM2M Core 1.1 appendix D.1, LWM2M.xsd).
//!
//! A definition is read whole or not at all, and everything that is wrong with it is told at once.
//! Nothing outside of it is looked at: no document type, no entity, no stylesheet, no schema.

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

/// Tells one thing that is wrong with a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionFault {
    /// What sort of thing is wrong.
    pub kind: DefinitionFaultKind,
    /// The element it is about; empty if it is about no single one.
    pub element: String,
    /// The line it is in, from 1.
    pub line: u32,
    /// The character of the line, from 1.
    pub column: u32,
    /// What is wrong with it.
    pub why: String,
}

/// Tells what sort of thing is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinitionFaultKind {
    /// It is not XML, or XML of a kind that is not read.
    NotXml,
    /// An element is missing.
    Missing,
    /// Something is there twice.
    Repeated,
    /// There is no such element.
    Unknown,
    /// The text of an element is none of those it may have.
    Invalid,
    /// There is more of something than is read.
    TooMuch,
}

/// Reads a definition.
pub fn parse(xml: &[u8]) -> Result<Definition, Vec<DefinitionFault>> {
    reading::read(xml)
}

impl Definition {
    /// Returns what it says.
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
