//! The vocabulary of object definitions.

use std::sync::Arc;

use super::DeviceFixture;
use crate::definition::{Definition, DefinitionId, ParsedDefinition};
use crate::moment::Timestamp;
use crate::policy::{CustomerPolicy, CustomerSettings};

impl DeviceFixture {
    /// The customer defines these objects, and no others.
    pub(in crate::device::tests) fn define(&mut self, definitions: &[&str]) {
        let customer = self.saved.profile.customer.clone();
        let definition_of = |xml: &&str| {
            let read = ParsedDefinition::of(xml.as_bytes()).unwrap();
            Definition {
                id: DefinitionId {
                    customer: customer.clone(),
                    object: read.object().id(),
                    version: read.object().version(),
                },
                xml: (*xml).into(),
                at: Timestamp::default(),
            }
        };
        let chosen = CustomerSettings {
            customer: customer.clone(),
            settings: Vec::new(),
            definitions: definitions.iter().map(definition_of).collect(),
            destinations: Vec::new(),
            offline_after_s: None,
        };
        let policy = CustomerPolicy::of(Arc::clone(&self.policy.rules), &chosen);
        self.policy = Arc::new(policy);
        self.device.take_policy(Arc::clone(&self.policy));
    }
}

/// The definition of an object with one resource, 0, of a type.
pub(in crate::device::tests) fn definition(
    object: u16,
    version: &str,
    operations: &str,
    data_type: &str,
) -> String {
    format!(
        "<LWM2M><Object><Name>Own</Name><ObjectID>{object}</ObjectID>\
         <ObjectVersion>{version}</ObjectVersion>\
         <MultipleInstances>Single</MultipleInstances><Mandatory>Optional</Mandatory>\
         <Resources><Item ID=\"0\"><Name>It</Name><Operations>{operations}</Operations>\
         <MultipleInstances>Single</MultipleInstances><Mandatory>Optional</Mandatory>\
         <Type>{data_type}</Type></Item></Resources></Object></LWM2M>"
    )
}
