//! What a machine test says of the objects a customer defines.

use std::sync::Arc;

use super::Bench;
use crate::definition::{Definition, DefinitionId, Read};
use crate::moment::Timestamp;
use crate::terms::{Chosen, Terms};

impl Bench {
    /// The customer of the device has these definitions from now on, and no others.
    pub(in crate::device::tests) fn define(&mut self, definitions: &[&str]) {
        let customer = self.kept.profile.customer.clone();
        let kept = |xml: &&str| {
            let read = Read::of(xml.as_bytes()).unwrap();
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
        let chosen = Chosen {
            customer: customer.clone(),
            settings: Vec::new(),
            definitions: definitions.iter().map(kept).collect(),
            destinations: Vec::new(),
        };
        let terms = Terms::of(Arc::clone(&self.terms.rules), &chosen);
        self.terms = Arc::new(terms);
        self.device.take_terms(Arc::clone(&self.terms));
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
