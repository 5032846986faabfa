//! Which definitions apply to a customer? Those of the registry, and its own, which take
//! precedence.
//!
//! A customer without definitions uses the registry alone, which costs nothing.

use super::definition::Definition;
use super::{Object, Resource};
use crate::lwm2m::version::Version;

/// The definitions that apply to a customer.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Sorted by number and version, each once.
    own: Box<[Definition]>,
}

impl Catalog {
    /// The registry alone.
    pub fn registry() -> Self {
        Self::default()
    }

    /// The registry and definitions that take precedence over it. Of two definitions of the same
    /// version of an object the later one counts.
    pub fn with(definitions: impl IntoIterator<Item = Definition>) -> Self {
        let mut own: Vec<_> = definitions.into_iter().collect();
        // The sort is stable, and of equals the first is retained.
        own.reverse();
        own.sort_by_key(key);
        own.dedup_by_key(|definition| key(definition));
        Self { own: own.into() }
    }

    /// Returns an object in the given version, chosen among all versions as in the registry: the
    /// newest one that is not newer, otherwise the oldest.
    pub fn object(&self, object: u16, version: Version) -> Option<Object<'_>> {
        let registered = super::object(object, version).copied();
        let Some(own) = self.own_object(object, version) else {
            return registered;
        };
        let Some(registered) = registered else {
            return Some(own);
        };
        let is_newer = |it: &Object<'_>| it.version() > version;
        let own_fits = match (is_newer(&own), is_newer(&registered)) {
            (false, true) => true,
            (true, false) => false,
            (false, false) => own.version() >= registered.version(),
            (true, true) => own.version() <= registered.version(),
        };
        Some(if own_fits { own } else { registered })
    }

    /// Returns a resource of an object in the given version, chosen as in [`Catalog::object`].
    pub fn resource(&self, object: u16, version: Version, resource: u16) -> Option<&Resource> {
        self.object(object, version)?.resource(resource)
    }

    fn own_object(&self, object: u16, version: Version) -> Option<Object<'_>> {
        let versions = self.own_versions(object);
        let not_newer = versions.partition_point(|own| own.object().version() <= version);
        let chosen = versions.get(not_newer.saturating_sub(1))?;
        Some(chosen.object())
    }

    fn own_versions(&self, object: u16) -> &[Definition] {
        let id = |own: &Definition| own.object().id();
        let from = self.own.partition_point(|own| id(own) < object);
        let to = self.own.partition_point(|own| id(own) <= object);
        self.own.get(from..to).unwrap_or_default()
    }
}

fn key(definition: &Definition) -> (u16, Version) {
    let object = definition.object();
    (object.id(), object.version())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lwm2m::model::definition::parse;
    use crate::lwm2m::value::DataType;

    #[test]
    fn a_catalog_without_definitions_is_the_registry() {
        let catalog = Catalog::registry();
        for registered in crate::lwm2m::model::objects() {
            let (id, version) = (registered.id(), registered.version());
            let object = catalog.object(id, version).unwrap();
            assert_eq!((object.id(), object.version()), (id, version));
            assert_eq!(object.resources(), registered.resources());
        }
        assert!(catalog.object(33_000, Version::new(1, 0)).is_none());
        assert!(catalog.resource(3, Version::new(1, 0), 9999).is_none());
    }

    #[test]
    fn definitions_of_a_customer_are_known_in_addition_to_the_registry() {
        let catalog = Catalog::with([defined(33_000, "1.0"), defined(32_999, "1.0")]);
        let resource = catalog.resource(33_000, Version::new(1, 0), 7).unwrap();
        assert_eq!(resource.data_type(), Some(DataType::Opaque));
        assert!(catalog.resource(33_000, Version::new(1, 0), 8).is_none());
        assert!(catalog.object(33_001, Version::new(1, 0)).is_none());
        let registered = catalog.resource(3303, Version::new(1, 1), 5700).unwrap();
        assert_eq!(registered.data_type(), Some(DataType::Float));
    }

    #[test]
    fn a_version_is_chosen_among_all_of_them() {
        // The registry has 1.0 and 1.1.
        let catalog = Catalog::with([defined(3303, "1.1"), defined(3303, "2.0")]);
        let chosen = |major, minor| {
            let object = catalog.object(3303, Version::new(major, minor)).unwrap();
            (object.name(), object.version().to_string())
        };
        assert_eq!(chosen(0, 9), ("Temperature", "1.0".to_owned()));
        assert_eq!(chosen(1, 0), ("Temperature", "1.0".to_owned()));
        assert_eq!(chosen(1, 1), ("Own 1.1", "1.1".to_owned()));
        assert_eq!(chosen(1, 9), ("Own 1.1", "1.1".to_owned()));
        assert_eq!(chosen(2, 3), ("Own 2.0", "2.0".to_owned()));
        let older = Catalog::with([defined(3303, "0.5")]);
        let chosen = |major, minor| {
            let object = older.object(3303, Version::new(major, minor)).unwrap();
            object.version().to_string()
        };
        assert_eq!((chosen(0, 1), chosen(0, 7)), ("0.5".into(), "0.5".into()));
        assert_eq!((chosen(1, 0), chosen(3, 0)), ("1.0".into(), "1.1".into()));
    }

    #[test]
    fn of_two_definitions_of_a_version_the_later_counts() {
        let renamed = parse(xml(33_000, "1.0").replace("Own", "New").as_bytes()).unwrap();
        let catalog = Catalog::with([defined(33_000, "1.0"), renamed]);
        let object = catalog.object(33_000, Version::new(1, 0)).unwrap();
        assert_eq!(object.name(), "New 1.0");
    }

    fn defined(object: u16, version: &str) -> Definition {
        parse(xml(object, version).as_bytes()).unwrap()
    }

    fn xml(object: u16, version: &str) -> String {
        format!(
            "<LWM2M><Object><Name>Own {version}</Name><ObjectID>{object}</ObjectID>\
             <ObjectVersion>{version}</ObjectVersion>\
             <MultipleInstances>Single</MultipleInstances><Mandatory>Optional</Mandatory>\
             <Resources><Item ID=\"7\"><Name>It</Name><Operations>R</Operations>\
             <MultipleInstances>Single</MultipleInstances><Mandatory>Optional</Mandatory>\
             <Type>Opaque</Type></Item></Resources></Object></LWM2M>"
        )
    }
}
