//! Decisions about the objects a customer defines.
//!
//! The id of a definition is the object id and version in its XML. To put the same XML again
//! changes nothing.

use crate::change::{Batch, Change, Expect, UniqueName};
use crate::definition::{Definition, DefinitionId, ParsedDefinition};
use crate::directory::{Decision, DirectoryRefusal, decided};
use crate::ids::CustomerId;
use crate::limits::{DEFINITIONS_BYTES_MAX, DEFINITIONS_MAX};
use crate::moment::Moment;

/// The objects that cannot be redefined: those for the connection and security of a device. The
/// service relies on their definitions.
const RESERVED: [u16; 5] = [0, 1, 2, 3, 21];

/// The outcome of putting a definition.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PutOutcome {
    /// This version of the object had no definition.
    Made,
    /// It replaced another definition.
    Replaced,
    /// The same XML was stored already.
    Unchanged,
}

/// Puts a definition of a customer that has `others` already.
pub fn put_definition(
    m: &Moment,
    customer: CustomerId,
    others: &[Definition],
    read: &ParsedDefinition,
) -> Result<Decision<(Definition, PutOutcome)>, DirectoryRefusal> {
    let object = read.object();
    let definition = Definition {
        id: DefinitionId {
            customer,
            object: object.id(),
            version: object.version(),
        },
        xml: read.xml().into(),
        at: m.now(),
    };
    let same = others.iter().find(|other| other.id == definition.id);
    if let Some(same) = same.filter(|same| same.xml == definition.xml) {
        return Ok(Decision {
            batch: Batch::default(),
            answer: (same.clone(), PutOutcome::Unchanged),
        });
    }
    check(others, &definition)?;
    let expects = vec![Expect::Taken(UniqueName::Customer(
        definition.id.customer.clone(),
    ))];
    let put = same.map_or(PutOutcome::Made, |_| PutOutcome::Replaced);
    let change = Change::PutDefinition(Box::new(definition.clone()));
    Ok(decided(expects, change, (definition, put)))
}

/// Removes a definition; the registry's definition of the object applies again.
pub fn remove_definition(definition: Option<Definition>) -> Result<Decision<()>, DirectoryRefusal> {
    let id = definition.ok_or(DirectoryRefusal::DefinitionUnknown)?.id;
    let expects = vec![Expect::Taken(UniqueName::Customer(id.customer.clone()))];
    Ok(decided(expects, Change::RemoveDefinition(id), ()))
}

fn check(others: &[Definition], definition: &Definition) -> Result<(), DirectoryRefusal> {
    let object = definition.id.object;
    if RESERVED.contains(&object) {
        return Err(DirectoryRefusal::ObjectReserved { object });
    }
    let others = || others.iter().filter(|other| other.id != definition.id);
    if others().count() >= DEFINITIONS_MAX {
        let max = DEFINITIONS_MAX;
        return Err(DirectoryRefusal::TooManyDefinitions { max });
    }
    let bytes: usize = others().map(|other| other.xml.len()).sum();
    if bytes + definition.xml.len() > DEFINITIONS_BYTES_MAX {
        let max = DEFINITIONS_BYTES_MAX;
        return Err(DirectoryRefusal::DefinitionsTooLong { max });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::Timestamp;

    #[test]
    fn a_definition_is_put_while_its_customer_exists() {
        let decided = put(&[], &xml(33_000, "1.1", "Meter")).unwrap();
        let (definition, outcome) = decided.answer;
        assert_eq!(outcome, PutOutcome::Made);
        assert_eq!(definition.id, id(33_000, "1.1"));
        assert_eq!(&*definition.xml, xml(33_000, "1.1", "Meter"));
        assert_eq!(definition.at, Timestamp::from_ms(1_000));
        let batch = Batch {
            expects: vec![Expect::Taken(UniqueName::Customer(customer()))],
            changes: vec![Change::PutDefinition(Box::new(definition))],
            ..Batch::default()
        };
        assert_eq!(decided.batch, batch);
    }

    #[test]
    fn another_definition_of_the_version_replaces_it() {
        let stored = stored(33_000, "1.1");
        let decided = put(std::slice::from_ref(&stored), &xml(33_000, "1.1", "New")).unwrap();
        assert_eq!(decided.answer.1, PutOutcome::Replaced);
        assert_eq!(decided.batch.changes.len(), 1);
        let decided = put(&[stored], &xml(33_000, "1.2", "New")).unwrap();
        assert_eq!(decided.answer.1, PutOutcome::Made);
    }

    #[test]
    fn the_same_definition_again_changes_nothing() {
        let stored = stored(33_000, "1.1");
        let decided = put(std::slice::from_ref(&stored), &stored.xml).unwrap();
        assert_eq!(decided.answer, (stored, PutOutcome::Unchanged));
        assert!(decided.batch.is_empty());
    }

    #[test]
    fn objects_that_the_service_relies_on_cannot_be_redefined() {
        for object in [0, 1, 2, 3, 21] {
            let refused = put(&[], &xml(object, "1.0", "Mine"));
            assert_eq!(refused, Err(DirectoryRefusal::ObjectReserved { object }));
        }
        for object in [4, 5, 19, 22, 3303, 10_241, 65_535] {
            assert!(put(&[], &xml(object, "1.0", "Mine")).is_ok(), "{object}");
        }
    }

    #[test]
    fn the_number_of_definitions_of_a_customer_has_a_bound() {
        let ids = 30_000..30_000 + u16::try_from(DEFINITIONS_MAX).unwrap();
        let others: Vec<_> = ids.map(|object| stored(object, "1.0")).collect();
        let max = DEFINITIONS_MAX;
        let refused = put(&others, &xml(40_000, "1.0", "One more"));
        assert_eq!(refused, Err(DirectoryRefusal::TooManyDefinitions { max }));
        let replaced = put(&others, &xml(30_000, "1.0", "Another"));
        assert_eq!(replaced.unwrap().answer.1, PutOutcome::Replaced);
    }

    #[test]
    fn the_bytes_of_all_definitions_of_a_customer_have_a_bound() {
        let mut long = stored(30_000, "1.0");
        let new = xml(40_000, "1.0", "New");
        long.xml = " ".repeat(DEFINITIONS_BYTES_MAX - new.len()).into();
        assert!(put(std::slice::from_ref(&long), &new).is_ok());
        long.xml = " ".repeat(DEFINITIONS_BYTES_MAX - new.len() + 1).into();
        let max = DEFINITIONS_BYTES_MAX;
        let refused = put(std::slice::from_ref(&long), &new);
        assert_eq!(refused, Err(DirectoryRefusal::DefinitionsTooLong { max }));
        assert!(put(&[long], &xml(30_000, "1.0", "Shorter")).is_ok());
    }

    #[test]
    fn an_existing_definition_is_removed() {
        let stored = stored(33_000, "1.1");
        let batch = Batch {
            expects: vec![Expect::Taken(UniqueName::Customer(customer()))],
            changes: vec![Change::RemoveDefinition(stored.id.clone())],
            ..Batch::default()
        };
        let decided = Ok(Decision { batch, answer: () });
        assert_eq!(remove_definition(Some(stored)), decided);
        assert_eq!(
            remove_definition(None),
            Err(DirectoryRefusal::DefinitionUnknown)
        );
    }

    fn put(
        others: &[Definition],
        xml: &str,
    ) -> Result<Decision<(Definition, PutOutcome)>, DirectoryRefusal> {
        let moment = Moment::new(Timestamp::from_ms(1_000), 7);
        let read = ParsedDefinition::of(xml.as_bytes()).unwrap();
        put_definition(&moment, customer(), others, &read)
    }

    fn stored(object: u16, version: &str) -> Definition {
        Definition {
            id: id(object, version),
            xml: xml(object, version, "Kept").into(),
            at: Timestamp::from_ms(500),
        }
    }

    fn id(object: u16, version: &str) -> DefinitionId {
        DefinitionId::of(customer(), object, version).unwrap()
    }

    fn customer() -> CustomerId {
        CustomerId::parse("acme").unwrap()
    }

    fn xml(object: u16, version: &str, name: &str) -> String {
        format!(
            "<LWM2M><Object><Name>{name}</Name><ObjectID>{object}</ObjectID>\
             <ObjectVersion>{version}</ObjectVersion>\
             <MultipleInstances>Single</MultipleInstances><Mandatory>Optional</Mandatory>\
             <Resources><Item ID=\"0\"><Name>It</Name><Operations>R</Operations>\
             <MultipleInstances>Single</MultipleInstances><Mandatory>Optional</Mandatory>\
             <Type>Float</Type></Item></Resources></Object></LWM2M>"
        )
    }
}
