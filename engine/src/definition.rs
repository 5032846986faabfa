//! The objects a customer defines: OMA XML of its own, in addition to the OMA registry.

use protocol::lwm2m::model::Object;
use protocol::lwm2m::model::catalog::Catalog;
use protocol::lwm2m::model::definition::{self, DefinitionFault};
use protocol::lwm2m::version::Version;

use crate::ids::CustomerId;
use crate::moment::Timestamp;

/// Names a customer's definition of a version of an object.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct DefinitionId {
    /// Its customer.
    pub customer: CustomerId,
    /// The object id.
    pub object: u16,
    /// The version it defines.
    pub version: Version,
}

/// A customer's definition of a version of an object.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Definition {
    /// Its id.
    pub id: DefinitionId,
    /// The OMA XML as uploaded; it was parsed without a fault.
    pub xml: Box<str>,
    /// When it was stored.
    pub at: Timestamp,
}

/// OMA XML without a fault, and the definition in it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ParsedDefinition {
    xml: Box<str>,
    definition: definition::Definition,
}

impl DefinitionId {
    /// The id for an object and the text of a version; `None` if the version is invalid.
    pub fn of(customer: CustomerId, object: u16, version: &str) -> Option<Self> {
        Some(Self {
            customer,
            object,
            version: Version::parse(version).ok()?,
        })
    }
}

impl Definition {
    /// Parses the XML again; an error if today's parser rejects it.
    pub fn read(&self) -> Result<ParsedDefinition, Vec<DefinitionFault>> {
        ParsedDefinition::of(self.xml.as_bytes())
    }
}

impl ParsedDefinition {
    /// Parses OMA XML; the error has every fault.
    pub fn of(xml: &[u8]) -> Result<Self, Vec<DefinitionFault>> {
        let definition = definition::parse(xml)?;
        let xml = String::from_utf8_lossy(xml).into();
        Ok(Self { xml, definition })
    }

    /// The object it defines.
    pub fn object(&self) -> Object<'_> {
        self.definition.object()
    }

    /// The XML, byte for byte.
    pub fn xml(&self) -> &str {
        &self.xml
    }
}

/// The catalog in which these definitions precede the registry, and the ids of those that today's
/// parser rejects.
pub(crate) fn catalog_of(definitions: &[Definition]) -> (Catalog, Vec<DefinitionId>) {
    let mut unreadable = Vec::new();
    let read = definitions.iter().filter_map(|stored| {
        let read = definition::parse(stored.xml.as_bytes());
        read.map_err(|_| unreadable.push(stored.id.clone())).ok()
    });
    let catalog = Catalog::with(read);
    (catalog, unreadable)
}
