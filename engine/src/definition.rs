//! The objects a customer defines: OMA XML of its own, beside what the registry of OMA has.

use protocol::lwm2m::model::Object;
use protocol::lwm2m::model::catalog::Catalog;
use protocol::lwm2m::model::definition::{self, DefinitionFault};
use protocol::lwm2m::version::Version;

use crate::ids::CustomerId;
use crate::moment::Timestamp;

/// Names a customer's definition of a version of an object.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct DefinitionId {
    /// Whose it is.
    pub customer: CustomerId,
    /// The number of the object.
    pub object: u16,
    /// The version it defines.
    pub version: Version,
}

/// A customer's definition of a version of an object.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Definition {
    /// Which it is.
    pub id: DefinitionId,
    /// The OMA XML it came in, which was read without a fault.
    pub xml: Box<str>,
    /// When it was put.
    pub at: Timestamp,
}

/// OMA XML that was read without a fault, and what it says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ParsedDefinition {
    xml: Box<str>,
    says: definition::Definition,
}

impl DefinitionId {
    /// The definition of a version of an object, the version as it is written.
    pub fn of(customer: CustomerId, object: u16, version: &str) -> Option<Self> {
        Some(Self {
            customer,
            object,
            version: Version::parse(version).ok()?,
        })
    }
}

impl Definition {
    /// Reads the XML again; an error if it cannot be read by the rules of today.
    pub fn read(&self) -> Result<ParsedDefinition, Vec<DefinitionFault>> {
        ParsedDefinition::of(self.xml.as_bytes())
    }
}

impl ParsedDefinition {
    /// Reads OMA XML; an error with all that is wrong with it.
    pub fn of(xml: &[u8]) -> Result<Self, Vec<DefinitionFault>> {
        let says = definition::parse(xml)?;
        let xml = String::from_utf8_lossy(xml).into();
        Ok(Self { xml, says })
    }

    /// What it says.
    pub fn object(&self) -> Object<'_> {
        self.says.object()
    }

    /// The XML, byte for byte.
    pub fn xml(&self) -> &str {
        &self.xml
    }
}

/// What definitions say, before what the registry says; and those of them that cannot be read by
/// the rules of today.
pub(crate) fn catalog_of(definitions: &[Definition]) -> (Catalog, Vec<DefinitionId>) {
    let mut unreadable = Vec::new();
    let read = definitions.iter().filter_map(|kept| {
        let read = definition::parse(kept.xml.as_bytes());
        read.map_err(|_| unreadable.push(kept.id.clone())).ok()
    });
    let catalog = Catalog::with(read);
    (catalog, unreadable)
}
