//! How does the OMA registry define an object's resources? (LwM2M Core 1.1 section 7.2)
//!
//! The tables are generated at build time from `data/oma-objects.csv`: plain static rows, nothing
//! is built at run time. A fact the registry lacks (a type, an operation) is missing here, too.
//! Definitions from elsewhere are in a [`catalog`].

pub mod catalog;
pub mod definition;

use super::value::DataType;
use super::version::{EnablerVersion, Version};

mod tables {
    use super::{DataType, Instances, Name, Object, Operations, Resource, Version, rows_of};

    include!(concat!(env!("OUT_DIR"), "/object_tables.rs"));
}

/// The definition of one version of an object.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a> {
    id: u16,
    version: Version,
    name: Name,
    instances: Instances,
    /// By number.
    resources: &'a [Resource],
    /// All names end to end.
    names: &'a str,
}

/// The definition of one resource of one version of an object; its name is in the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    id: u16,
    name: Name,
    units: Name,
    operations: Operations,
    instances: Instances,
    mandatory: bool,
    data_type: Option<DataType>,
}

/// How often an object or a resource may be present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instances {
    /// At most once.
    Single,
    /// Any number of times, each with its own number.
    Multiple,
}

/// What a server may do with a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operations {
    /// Nothing: it is for a bootstrap server only.
    None,
    /// Read and observe.
    Read,
    /// Write.
    Write,
    /// Read, observe and write.
    ReadWrite,
    /// Execute.
    Execute,
}

/// The position of a text among all names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    at: u16,
    length: u8,
}

/// Returns all versions of all objects, by number and then by version.
pub fn objects() -> &'static [Object<'static>] {
    &tables::OBJECTS
}

/// Returns the known versions of an object, the oldest first; empty for an unknown object.
pub fn versions(object: u16) -> &'static [Object<'static>] {
    let from = tables::OBJECTS.partition_point(|row| row.id < object);
    let to = tables::OBJECTS.partition_point(|row| row.id <= object);
    tables::OBJECTS.get(from..to).unwrap_or_default()
}

/// Returns an object in the given version.
///
/// If the registry lacks the version, it is the newest one before it, otherwise the oldest:
/// versions of an object share most of their definition.
pub fn object(object: u16, version: Version) -> Option<&'static Object<'static>> {
    let versions = versions(object);
    let not_newer = versions.partition_point(|row| row.version <= version);
    versions.get(not_newer.saturating_sub(1))
}

/// Returns a resource of an object in the given version, chosen as in [`object`].
pub fn resource(object: u16, version: Version, resource: u16) -> Option<&'static Resource> {
    self::object(object, version)?.resource(resource)
}

/// Returns the version an object has when its link states none.
///
/// An object outside the enabler is in version 1.0. The enabler's own objects are in the version of
/// that release: LwM2M 1.0 knows only 1.0, for 1.1 it is the table of 1.1.1 (1.1 differs from it in
/// compatible minor versions only), for 1.2 that of appendix E.
pub fn default_version(object: u16, enabler: EnablerVersion) -> Version {
    let (major, minor) = match (enabler, object) {
        (EnablerVersion::V1_1, 0 | 1 | 3) => (1, 1),
        (EnablerVersion::V1_1, 4) => (1, 2),
        (EnablerVersion::V1_2, 0 | 1 | 3) => (1, 2),
        (EnablerVersion::V1_2, 2 | 5) => (1, 1),
        (EnablerVersion::V1_2, 4) => (1, 3),
        (EnablerVersion::V1_2, 21) => (2, 0),
        (EnablerVersion::V1_0 | EnablerVersion::V1_1 | EnablerVersion::V1_2, _) => (1, 0),
    };
    Version::new(major, minor)
}

impl<'a> Object<'a> {
    /// Returns the object's number.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// Returns the version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the object's name.
    pub fn name(&self) -> &'a str {
        self.name.of(self.names)
    }

    /// Returns how many instances the object may have.
    pub fn instances(&self) -> Instances {
        self.instances
    }

    /// Returns all resources, by number.
    pub fn resources(&self) -> &'a [Resource] {
        self.resources
    }

    /// Returns one resource.
    pub fn resource(&self, resource: u16) -> Option<&'a Resource> {
        let at = self
            .resources
            .binary_search_by_key(&resource, |row| row.id)
            .ok()?;
        self.resources.get(at)
    }

    /// Returns the name of a resource.
    pub fn name_of(&self, resource: u16) -> Option<&'a str> {
        let resource = self.resource(resource)?;
        Some(resource.name.of(self.names))
    }

    /// Returns the unit of a resource's values, as written in the definition.
    pub fn units_of(&self, resource: u16) -> Option<&'a str> {
        let units = self.resource(resource)?.units.of(self.names);
        Some(units).filter(|units| !units.is_empty())
    }

    /// Returns whether a server may read at least one of its resources.
    pub fn is_readable(&self) -> bool {
        self.resources
            .iter()
            .any(|resource| resource.operations.can_read())
    }
}

impl Resource {
    /// Returns the resource's number.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// Returns what a server may do with the resource.
    pub fn operations(&self) -> Operations {
        self.operations
    }

    /// Returns the type of its values; an executable resource usually has none.
    pub fn data_type(&self) -> Option<DataType> {
        self.data_type
    }

    /// Returns how many instances the resource may have.
    pub fn instances(&self) -> Instances {
        self.instances
    }

    /// Returns whether every instance of the object has the resource.
    pub fn is_mandatory(&self) -> bool {
        self.mandatory
    }
}

impl Operations {
    /// Returns whether the resource may be read.
    pub fn can_read(self) -> bool {
        match self {
            Self::Read | Self::ReadWrite => true,
            Self::None | Self::Write | Self::Execute => false,
        }
    }

    /// Returns whether the resource may be written.
    pub fn can_write(self) -> bool {
        match self {
            Self::Write | Self::ReadWrite => true,
            Self::None | Self::Read | Self::Execute => false,
        }
    }

    /// Returns whether the resource may be executed.
    pub fn can_execute(self) -> bool {
        match self {
            Self::Execute => true,
            Self::None | Self::Read | Self::Write | Self::ReadWrite => false,
        }
    }
}

impl Name {
    fn of(self, names: &str) -> &str {
        let at = usize::from(self.at);
        names
            .get(at..at + usize::from(self.length))
            .unwrap_or_default()
    }
}

/// The rows of one object in the table of resources.
const fn rows_of(first: usize, count: usize) -> &'static [Resource] {
    let (_, rest) = tables::RESOURCES.split_at(first);
    rest.split_at(count).0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Instances, Operations, default_version, object, objects, resource, versions};
    use crate::lwm2m::value::DataType;
    use crate::lwm2m::version::{EnablerVersion, Version};

    #[test]
    fn the_whole_registry_is_there() {
        let ids: BTreeSet<u16> = objects().iter().map(|object| object.id()).collect();
        let resources: usize = objects()
            .iter()
            .map(|object| object.resources().len())
            .sum();
        assert_eq!((ids.len(), objects().len(), resources), (327, 424, 4506));
    }

    #[test]
    fn the_tables_stay_small() {
        let rows = size_of_val(&super::tables::OBJECTS) + size_of_val(&super::tables::RESOURCES);
        assert!(rows + super::tables::NAMES.len() < 150_000);
    }

    #[test]
    fn every_row_is_found_by_its_numbers_and_named() {
        for row in objects() {
            let found = object(row.id(), row.version()).unwrap();
            assert_eq!((found.id(), found.version()), (row.id(), row.version()));
            assert!(!found.name().is_empty() && !found.resources().is_empty());
            assert!(found.resources().is_sorted_by(|a, b| a.id() < b.id()));
            for listed in row.resources() {
                let found = resource(row.id(), row.version(), listed.id()).unwrap();
                assert!(std::ptr::eq(found, listed));
                assert!(!row.name_of(listed.id()).unwrap().is_empty());
            }
        }
    }

    #[test]
    fn a_resource_is_as_defined_in_the_registry() {
        let sensor = object(3303, Version::new(1, 1)).unwrap();
        let temperature = sensor.resource(5700).unwrap();
        assert_eq!(sensor.name_of(5700), Some("Sensor Value"));
        assert_eq!(temperature.data_type(), Some(DataType::Float));
        assert_eq!(temperature.operations(), Operations::Read);
        assert!(temperature.is_mandatory());

        let power_sources = resource(3, Version::new(1, 0), 6).unwrap();
        assert_eq!(power_sources.instances(), Instances::Multiple);
        assert_eq!(power_sources.data_type(), Some(DataType::Integer));

        let reboot = resource(3, Version::new(1, 0), 4).unwrap();
        assert!(reboot.operations().can_execute() && !reboot.operations().can_read());
        assert_eq!(reboot.data_type(), None);

        let package = resource(5, Version::new(1, 0), 0).unwrap();
        assert_eq!(package.data_type(), Some(DataType::Opaque));
        assert!(package.operations().can_write() && !package.operations().can_read());

        let device = object(3, Version::new(1, 0)).unwrap();
        assert_eq!(device.units_of(10), Some("KB"));
        assert_eq!(device.units_of(reboot.id()), None);
        assert_eq!((device.units_of(9999), device.name_of(9999)), (None, None));
    }

    #[test]
    fn a_quoted_name_keeps_its_comma() {
        let profile = object(11, Version::new(1, 0)).unwrap();
        assert_eq!(profile.name_of(8), Some("Validity (MCC, MNC)"));
    }

    #[test]
    fn a_type_may_change_between_versions() {
        let secret = |major, minor| resource(21, Version::new(major, minor), 0).unwrap();
        assert_eq!(secret(1, 1).data_type(), Some(DataType::String));
        assert_eq!(secret(2, 0).data_type(), Some(DataType::Opaque));
    }

    #[test]
    fn an_unknown_version_resolves_to_the_newest_before_it() {
        let chosen = |major, minor| object(20, Version::new(major, minor)).unwrap().version();
        assert_eq!(chosen(0, 9), Version::new(1, 0));
        assert_eq!(chosen(1, 7), Version::new(1, 0));
        assert_eq!(chosen(2, 1), Version::new(2, 1));
        assert_eq!(chosen(9, 9), Version::new(2, 1));
    }

    #[test]
    fn unknown_objects_and_resources_are_not_found() {
        assert!(object(65535, Version::new(1, 0)).is_none());
        assert!(versions(17).is_empty());
        assert!(resource(3, Version::new(1, 0), 9999).is_none());
    }

    #[test]
    fn an_unstated_version_follows_the_enabler_for_its_own_objects_only() {
        let default = |id, enabler| default_version(id, enabler).to_string();
        assert_eq!(default(3, EnablerVersion::V1_0), "1.0");
        assert_eq!(default(3, EnablerVersion::V1_1), "1.1");
        assert_eq!(default(3, EnablerVersion::V1_2), "1.2");
        assert_eq!(default(4, EnablerVersion::V1_1), "1.2");
        assert_eq!(default(21, EnablerVersion::V1_2), "2.0");
        assert_eq!(default(3303, EnablerVersion::V1_2), "1.0");
        for id in 0..=27 {
            for enabler in [
                EnablerVersion::V1_0,
                EnablerVersion::V1_1,
                EnablerVersion::V1_2,
            ] {
                let version = default_version(id, enabler);
                let known = versions(id)
                    .iter()
                    .any(|object| object.version() == version);
                assert!(known || versions(id).is_empty(), "{id} {enabler}");
            }
        }
    }

    #[test]
    fn an_object_is_readable_if_one_of_its_resources_is() {
        let readable = |id| object(id, Version::new(1, 0)).unwrap().is_readable();
        assert!(readable(3) && readable(6) && readable(7));
        assert!(!readable(0));
    }
}
